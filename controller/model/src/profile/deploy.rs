//! How an image gets onto a board: a fact of its profile.
//!
//! A profile that says nothing is deployed as its place suggests: an emulated board by the
//! emulator's loader or out of its image set, a real one through its debug probe.

use std::ops::Range;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::placeholder::PlaceholderError;
use super::{BoardProfile, Emulation};
use crate::pattern::Pattern;
use crate::rig_file::{EmulatorDeploy, Place, ProbePart};

/// Names the ways to deploy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeployMethod {
    /// A debug probe writes flash or RAM.
    Probe,
    /// The emulator loads the image when it starts.
    EmulatorLoader,
    /// The emulator boots files that were built for it; no image is deployed.
    ImageSet,
    /// A program of its own writes the flash.
    Command,
}

impl DeployMethod {
    /// Returns the stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::EmulatorLoader => "emulator-loader",
            Self::ImageSet => "image-set",
            Self::Command => "command",
        }
    }
}

impl std::fmt::Display for DeployMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How an image gets onto a board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
pub enum Deploy {
    /// A debug probe writes flash or RAM.
    Probe,
    /// The emulator loads the image when it starts.
    EmulatorLoader,
    /// The emulator boots files that were built for it; no image is deployed.
    ImageSet,
    /// A program of its own writes the flash.
    Command(FlashCommand),
}

impl Deploy {
    /// Returns the method without what belongs to it.
    pub fn method(&self) -> DeployMethod {
        match self {
            Self::Probe => DeployMethod::Probe,
            Self::EmulatorLoader => DeployMethod::EmulatorLoader,
            Self::ImageSet => DeployMethod::ImageSet,
            Self::Command(_) => DeployMethod::Command,
        }
    }
}

/// A program that flashes a board, and how it is judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlashCommand {
    /// Program and arguments, one each and never a shell line, with placeholders (see
    /// [`deploy_parts`]). Never empty; the program holds none.
    pub argv: Vec<String>,
    /// How long it may take.
    pub timeout: Duration,
    /// Exit codes that mean success. Never empty.
    pub success_codes: Vec<i32>,
    /// Output that means failure, whatever the exit code.
    pub failure_patterns: Vec<Pattern>,
    /// Output that proves that the flash was read back and compared.
    pub verified_pattern: Option<Pattern>,
    /// Output whose first group is a percentage of the work done.
    pub progress_pattern: Option<Pattern>,
}

/// How long a flasher may take if its profile does not say: 2 MiB at 115200 baud take three
/// minutes, and the slow ones among them say so.
pub(crate) const FLASH_TIMEOUT: Duration = Duration::from_secs(240);

impl FlashCommand {
    /// Tells whether an argument holds a placeholder.
    pub fn uses(&self, placeholder: &DeployPart<'_>) -> bool {
        let parts = self.argv.iter().filter_map(|arg| deploy_parts(arg).ok()).flatten();
        parts.into_iter().any(|part| part == *placeholder)
    }

    /// Tells whether a place has what the placeholders stand for.
    pub fn can_be_filled(&self, place: &Place) -> bool {
        let serial = place.probe.as_ref().and_then(ProbePart::serial);
        (serial.is_some() || !self.uses(&DeployPart::Serial))
            && (place.flasher_port().is_some() || !self.uses(&DeployPart::Port))
    }
}

/// One part of a flasher's argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeployPart<'a> {
    /// Text that stays as it is.
    Text(&'a str),
    /// The path of the image: `{image}`.
    Image,
    /// The serial number of the place's probe: `{serial}`.
    Serial,
    /// The serial port of the place: `{port}`.
    Port,
    /// The lowest address of the image, such as `0x8000`: `{address}`.
    Address,
}

/// Splits an argument into text and placeholders. `{{` and `}}` stand for single braces,
/// because OpenOCD's own commands are quoted with them.
///
/// # Errors
/// Refuses unknown placeholders and braces that stand alone.
pub fn deploy_parts(arg: &str) -> Result<Vec<DeployPart<'_>>, PlaceholderError> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(rest) = arg.get(at..).filter(|rest| !rest.is_empty()) {
        let brace = rest.find(['{', '}']).unwrap_or(rest.len());
        let (part, length) = if brace > 0 {
            (Some(DeployPart::Text(&rest[..brace])), brace)
        } else if rest.starts_with("{{") || rest.starts_with("}}") {
            (Some(DeployPart::Text(&rest[..1])), 2)
        } else {
            let length = rest.find('}').map_or(rest.len(), |end| end + 1);
            let part = match &rest[..length] {
                "{image}" => Some(DeployPart::Image),
                "{serial}" => Some(DeployPart::Serial),
                "{port}" => Some(DeployPart::Port),
                "{address}" => Some(DeployPart::Address),
                _ => None,
            };
            (part, length)
        };
        let span: Range<usize> = at..at + length;
        let shown = || rest[..length].chars().take(40).collect();
        parts.push(part.ok_or_else(|| PlaceholderError { text: shown(), span: span.clone() })?);
        at = span.end;
    }
    Ok(parts)
}

impl BoardProfile {
    /// Returns how an image gets onto this board at a place; nothing where nothing there can
    /// put one on it.
    ///
    /// What the place says wins, then what the profile says, as far as it can be done there:
    /// no emulator has a loader for a real board, no external program reaches into an
    /// emulator, and a program that needs a serial number or a port needs a part that has one.
    pub fn deploy_at(&self, place: &Place) -> Option<Deploy> {
        if let Some(emulator) = &place.emulator {
            return Some(match (emulator.deploy, &self.deploy) {
                (Some(EmulatorDeploy::Probe), _) => Deploy::Probe,
                (Some(EmulatorDeploy::Loader), _) => Deploy::EmulatorLoader,
                (None, Some(Deploy::Command(_)) | None) => default_of(self.emulation.as_ref()),
                (None, Some(said)) => said.clone(),
            });
        }
        let said = place.flasher.as_ref().and_then(|flasher| flasher.command.as_ref());
        let of_profile = match &self.deploy {
            Some(Deploy::Command(command)) => Some(command),
            _ => None,
        };
        match said.or(of_profile) {
            Some(command) if place.has_probe() || command.can_be_filled(place) => {
                Some(Deploy::Command(command.clone()))
            }
            Some(_) => None,
            None => place.has_probe().then_some(Deploy::Probe),
        }
    }
}

fn default_of(emulation: Option<&Emulation>) -> Deploy {
    match emulation {
        Some(emulation) if emulation.image_set.is_some() => Deploy::ImageSet,
        Some(_) | None => Deploy::EmulatorLoader,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::shipped;
    use crate::rig_file::{ConsoleWire, EmulatorPart, FlasherPart, ProbePart, WireEnd};

    #[test]
    fn parts_are_told_apart() {
        let parts = deploy_parts("program {{{image}}} {address}").unwrap();
        assert_eq!(
            parts,
            [
                DeployPart::Text("program "),
                DeployPart::Text("{"),
                DeployPart::Image,
                DeployPart::Text("}"),
                DeployPart::Text(" "),
                DeployPart::Address,
            ]
        );
        assert_eq!(deploy_parts(""), Ok(vec![]));
        for (arg, span) in
            [("a{imge}", 1..7), ("a{", 1..2), ("}", 0..1), ("{image:x}", 0..9), ("é{x}", 2..5)]
        {
            assert_eq!(deploy_parts(arg).unwrap_err().span, span, "{arg}");
        }
    }

    fn place() -> Place {
        Place::new("p".parse().unwrap(), "b".parse().unwrap())
    }

    #[test]
    fn boards_that_say_nothing_are_deployed_as_their_place_suggests() {
        let probe = place().with_probe(ProbePart::default());
        for profile in shipped() {
            assert_eq!(profile.deploy, None, "{}", profile.id);
            let emulated = profile.deploy_at(&place().with_emulator(EmulatorPart::default()));
            let boots_alone = profile.emulation.as_ref().unwrap().image_set.is_some();
            let wanted = if boots_alone { Deploy::ImageSet } else { Deploy::EmulatorLoader };
            assert_eq!(emulated, Some(wanted), "{}", profile.id);
            assert_eq!(profile.deploy_at(&probe), Some(Deploy::Probe));
            assert_eq!(profile.deploy_at(&place()), None);
        }
    }

    fn program(argv: &[&str]) -> FlashCommand {
        FlashCommand {
            argv: argv.iter().map(|&arg| arg.to_owned()).collect(),
            timeout: FLASH_TIMEOUT,
            success_codes: vec![0],
            failure_patterns: Vec::new(),
            verified_pattern: None,
            progress_pattern: None,
        }
    }

    #[test]
    fn a_place_wins_over_its_profile_where_it_can() {
        let command = program(&["dfu-util", "-D", "{image}"]);
        let of_profile = Deploy::Command(command.clone());
        let own = program(&["esptool", "write_flash", "{image}"]);
        let emulator =
            |deploy| place().with_emulator(EmulatorPart { deploy, ..Default::default() });
        let probe = place().with_probe(ProbePart::default());
        let flasher = FlasherPart { command: Some(own.clone()), port: None };
        let with_own = Place { flasher: Some(flasher), ..place() };
        let mut profile = shipped().into_iter().find(|p| p.chip.is_some()).unwrap();
        let (by_probe, by_loader) = (Some(EmulatorDeploy::Probe), Some(EmulatorDeploy::Loader));
        for (said, place, wanted) in [
            (Some(Deploy::Probe), emulator(None), Deploy::Probe),
            (Some(Deploy::Probe), emulator(by_loader), Deploy::EmulatorLoader),
            (None, emulator(by_probe), Deploy::Probe),
            (Some(of_profile.clone()), emulator(None), Deploy::EmulatorLoader),
            (Some(of_profile.clone()), probe.clone(), of_profile.clone()),
            (Some(of_profile.clone()), place(), of_profile.clone()),
            (Some(of_profile), with_own.clone(), Deploy::Command(own.clone())),
            (None, with_own, Deploy::Command(own)),
            (Some(Deploy::EmulatorLoader), probe, Deploy::Probe),
        ] {
            profile.deploy = said;
            assert_eq!(profile.deploy_at(&place), Some(wanted));
        }
    }

    #[test]
    fn a_program_that_a_place_cannot_fill_flashes_nothing_there() {
        let mut profile = shipped().remove(0);
        let console = |path: &str| ConsoleWire {
            console: "uart0".parse().unwrap(),
            end: WireEnd::Tty(path.to_owned()),
            baud: None,
            timeout: None,
            ready: None,
            keeper: None,
        };
        let with_console = Place { consoles: vec![console("/dev/ttyUSB0")], ..place() };
        let by_port = program(&["esptool", "--port", "{port}", "{image}"]);
        profile.deploy = Some(Deploy::Command(by_port.clone()));
        assert_eq!(profile.deploy_at(&place()), None);
        assert_eq!(with_console.flasher_port(), Some("/dev/ttyUSB0"));
        assert_eq!(profile.deploy_at(&with_console), Some(Deploy::Command(by_port)));
        profile.deploy = Some(Deploy::Command(program(&["f", "{serial}", "{image}"])));
        assert_eq!(profile.deploy_at(&with_console), None);
    }
}
