//! What a place can do with the parts it has, and what it lacks.

use std::collections::BTreeSet;

use super::{ConsoleTransport, EmulatorPart, Endpoint, Network, Place, ProbePart, ResetPart};
use crate::power::{PlaceSense, PowerDriver};
use crate::profile::BoardProfile;
use crate::{BoardId, ConsoleName, PlaceName, Strictness};

impl Place {
    /// Returns a place without any part.
    pub fn new(name: PlaceName, board: BoardId) -> Self {
        Self {
            name,
            board,
            tags: BTreeSet::new(),
            emulator: None,
            probe: None,
            consoles: Vec::new(),
            power: None,
            reset: None,
            flasher: None,
            hub: None,
            canary: None,
            shell: None,
            network: Network::default(),
            strict: Strictness::Off,
            origin: String::new(),
        }
    }

    /// Returns the place with an emulator as its board.
    #[must_use]
    pub fn with_emulator(self, emulator: EmulatorPart) -> Self {
        Self { emulator: Some(emulator), ..self }
    }

    /// Returns the place with a debug probe on its board.
    #[must_use]
    pub fn with_probe(self, probe: ProbePart) -> Self {
        Self { probe: Some(probe), ..self }
    }

    /// Tells whether its board is emulated, and so a new one at each start.
    pub fn is_emulated(&self) -> bool {
        self.emulator.is_some()
    }

    /// Tells whether a debug probe hangs on its board.
    pub fn has_probe(&self) -> bool {
        self.probe.is_some()
    }

    /// Returns what carries a console of its board, if anything does here.
    pub fn console(&self, name: &ConsoleName) -> Option<&ConsoleTransport> {
        self.consoles.iter().find(|console| console.console == *name)
    }

    /// Returns what resets its board: what the place says, else the best that it has. A place
    /// with an emulator has the emulator's own.
    pub fn reset_part(&self) -> Option<ResetPart> {
        let usual = || match self {
            _ if self.is_emulated() => None,
            _ if self.has_probe() => Some(ResetPart::Probe),
            _ => self.power.as_ref().map(|_| ResetPart::Power),
        };
        self.reset.clone().or_else(usual)
    }

    /// Tells whether its board can be reset without taking its power.
    pub fn resets(&self) -> bool {
        self.is_emulated() || self.reset_part().is_some_and(|reset| reset != ResetPart::Power)
    }

    /// Tells whether something here can start a boot.
    pub fn starts_boots(&self) -> bool {
        self.is_emulated() || self.power.is_some() || self.reset_part().is_some()
    }

    /// Returns the serial port that a flasher is told: the one that the place names, else the
    /// only one that carries a console.
    pub fn flasher_port(&self) -> Option<&str> {
        let said = self.flasher.as_ref().and_then(|flasher| flasher.port.as_deref());
        let of_probe = || self.probe.as_ref().and_then(|probe| probe.port.as_deref());
        let only = || match self.consoles.as_slice() {
            [ConsoleTransport { end: Endpoint::Tty(path), .. }] => Some(path.as_str()),
            _ => None,
        };
        said.or_else(of_probe).or_else(only)
    }

    /// Returns the power sense of its board: what sees the power beside the device that switches it
    /// (`driver`).
    pub fn second_sense(&self, driver: &PowerDriver) -> PlaceSense {
        let said = self.power.as_ref().map(|power| power.second_sense(driver));
        match said {
            Some(PlaceSense::DebugPort) if !self.has_probe() => match self.consoles.is_empty() {
                true => PlaceSense::Absent,
                false => PlaceSense::Console,
            },
            Some(said) => said,
            None => PlaceSense::Absent,
        }
    }

    /// Tells whether a console of a board can be reached: all of an emulator's and some of a
    /// probe's need nothing of their own.
    pub fn reaches_a_console(&self) -> bool {
        self.is_emulated() || self.has_probe() || !self.consoles.is_empty()
    }

    /// Checks that the place has what a verb or a plan needs.
    ///
    /// # Errors
    /// Says what is missing, and which part to add.
    pub fn needs(
        &self,
        needed: Needed,
        profile: &BoardProfile,
        by: &str,
    ) -> Result<(), MissingPart> {
        let over_ssh = || profile.shell_at(self).is_some_and(|shell| shell.ssh.is_some());
        let has = match needed {
            Needed::Probe => self.has_probe() || self.is_emulated(),
            Needed::Boot => self.starts_boots(),
            Needed::Reset => self.is_emulated() || self.reset_part().is_some(),
            Needed::Flasher => profile.deploy_at(self).is_some(),
            Needed::Console => self.reaches_a_console() || over_ssh(),
            Needed::Shell => profile.shell_at(self).is_some(),
        };
        let missing = || MissingPart {
            place: self.name.clone(),
            needed,
            by: by.to_owned(),
            help: match self.name.chip() {
                Some(chip) => needed.help_for_chip(chip),
                None => needed.help(&self.origin),
            },
        };
        if has { Ok(()) } else { Err(missing()) }
    }
}

/// What a verb or a plan may need of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// A debug probe.
    Probe,
    /// Anything that can start a boot.
    Boot,
    /// Anything that can reset the board.
    Reset,
    /// A way to put an image on the board.
    Flasher,
    /// A console that can be reached.
    Console,
    /// A shell of the board's operating system.
    Shell,
}

impl Needed {
    fn what(self) -> &'static str {
        match self {
            Self::Probe => "no debug probe",
            Self::Boot => "neither power control nor a reset",
            Self::Reset => "no reset",
            Self::Flasher => "no way to put an image on its board",
            Self::Console => "no console that can be reached",
            Self::Shell => "no shell that can be reached",
        }
    }

    fn help(self, origin: &str) -> String {
        match self {
            Self::Probe => format!("add `[place.probe]` with its `selector` to {origin}"),
            Self::Boot => format!(
                "add `power = {{ device = \"...\" }}` (a device of kind `manual` asks a person), \
                 `reset = {{ console = \"...\", lines = \"rts\" }}`, or `[place.probe]` to {origin}"
            ),
            Self::Reset => format!(
                "add `reset = {{ console = \"...\", lines = \"rts\" }}` or another `reset`, \
                 `power`, or `[place.probe]` to {origin}"
            ),
            Self::Flasher => format!(
                "add `[place.probe]`, or `flasher = {{ preset = \"NAME\" }}` (see: jig flashers) to \
                 {origin}"
            ),
            Self::Console => format!(
                "add `[[place.console]]` with a `name` and a `tty`, or `[place.probe]` to {origin}"
            ),
            Self::Shell => format!(
                "add `[place.shell]` with `host` and `user` for SSH, or with `prompt` for a serial \
                 console, to {origin}"
            ),
        }
    }
}

impl Needed {
    /// Says what to do where a chip on a probe stands for a place: it has a probe and nothing else.
    fn help_for_chip(self, chip: &str) -> String {
        let part = match self {
            Self::Shell => {
                "[place.shell] with `prompt` for a serial console, or `host` and `user` for SSH"
            }
            Self::Probe | Self::Flasher => "`probe`",
            Self::Boot | Self::Reset => "`probe`, `power` or `reset`",
            Self::Console => "`[[place.console]]`",
        };
        format!(
            "a chip on a probe has its probe alone; write a `[[place]]` into a rig file, with \
             board = \"chip:{chip}\" and {part} (jig discover -o rig.toml drafts one)"
        )
    }
}

/// Says what a place lacks for something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("place {place} has {}: {by} needs one", .needed.what())]
pub struct MissingPart {
    /// The place.
    pub place: PlaceName,
    /// What it lacks.
    pub needed: Needed,
    /// The command that needs it, such as `regs`.
    pub by: String,
    /// What to add, and where.
    pub help: String,
}
