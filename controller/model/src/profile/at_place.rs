//! A board as it is at a place: the consoles that can be reached there, and the checks that apply.

use super::of_chip::usual_console;
use super::{BoardProfile, CheckKind, ConsoleKind, ConsoleSpec, Deploy, HealthSpec};
use crate::ConsoleName;
use crate::rig_file::Place;

impl BoardProfile {
    /// Returns the board with the consoles that it has at a place, in the profile's order.
    ///
    /// A real board has the serial ports that the place has something for, and behind a debug
    /// probe the RTT consoles and semihosting. An RTT console of channel 0 is added where the
    /// profile has none, so that any board works out of the box; before semihosting, which stops
    /// the core and which few programs use. A board that is a chip without a profile has the serial
    /// ports that the place names. An emulated board that a virtual probe deploys has
    /// RTT and the emulator's own. Without a probe a target's rings are not read, so there are no
    /// RTT consoles then. Where commands reach the board over SSH, a console with their output comes
    /// last. Where no console would be left all stay: a board has at least one.
    pub fn at(&self, place: &Place) -> Self {
        let is_rtt = |console: &ConsoleSpec| console.kind == ConsoleKind::Rtt;
        let mut board = self.clone();
        if self.id.chip().is_some() && !place.consoles.is_empty() {
            let named = place.consoles.iter().map(|transport| transport.console.clone());
            board.consoles = named.map(usual_console).collect();
        }
        let has_probe = match place.is_emulated() {
            true => self.deploy_at(place) == Some(Deploy::Probe),
            false => place.has_probe(),
        };
        let reached = |console: &ConsoleSpec| match console.kind {
            ConsoleKind::Rtt => has_probe,
            ConsoleKind::Semihosting => has_probe || place.is_emulated(),
            ConsoleKind::Uart => place.is_emulated() || place.console(&console.name).is_some(),
            ConsoleKind::Shell => true,
        };
        let shell = self.shell_at(place).and_then(|shell| shell.ssh);
        if has_probe || shell.is_some() || board.consoles.iter().any(reached) {
            board.consoles.retain(reached);
        }
        if has_probe && !board.consoles.iter().any(is_rtt) {
            let name = free_name(&board.consoles);
            let added = ConsoleSpec { name, kind: ConsoleKind::Rtt, baud: 0, channel: 0 };
            let is_hosted = |console: &ConsoleSpec| console.kind == ConsoleKind::Semihosting;
            let hosted = board.consoles.iter().position(is_hosted);
            let at = hosted.filter(|_| !place.is_emulated()).unwrap_or(board.consoles.len());
            board.consoles.insert(at, added);
        }
        let is_shell = |console: &ConsoleSpec| console.kind == ConsoleKind::Shell;
        if let Some(shell) = shell.filter(|_| !board.consoles.iter().any(is_shell)) {
            let (name, kind) = (shell.console, ConsoleKind::Shell);
            board.consoles.push(ConsoleSpec { name, kind, baud: 0, channel: 0 });
        }
        board
    }
}

/// Names the added console `rtt0`, or the next that is free.
fn free_name(consoles: &[ConsoleSpec]) -> ConsoleName {
    let names = (0..=consoles.len()).map(|number| format!("rtt{number}"));
    let mut free = names.filter(|name| consoles.iter().all(|c| c.name.as_str() != name));
    // One more name than there are consoles: one is free.
    ConsoleName::made(free.next().unwrap_or_else(|| "rtt".to_owned()))
}

impl CheckKind {
    /// Tells whether a place has what the check looks at. Transports, addresses and outlets are
    /// optional: without them, their checks find nothing to look at and pass.
    pub fn fits(self, place: &Place) -> bool {
        match self {
            Self::Console | Self::Network | Self::Power => !place.is_emulated(),
            Self::Board => place.is_emulated() || place.has_probe(),
            Self::Disk | Self::Memory | Self::Handles | Self::Clock => true,
        }
    }
}

impl HealthSpec {
    /// Returns the checks of a place, in the order in which they are run: the cheap ones come
    /// first, and those that a faulty host would make fail come last.
    pub fn checks_at(&self, place: &Place) -> Vec<CheckKind> {
        use CheckKind::{Board, Clock, Console, Disk, Handles, Memory, Network, Power};
        let order = [Clock, Disk, Memory, Handles, Power, Console, Network, Board];
        let wanted = |kind: &CheckKind| {
            self.checks.as_ref().is_none_or(|chosen| chosen.contains(kind)) && kind.fits(place)
        };
        order.into_iter().filter(wanted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConsoleName;
    use crate::profile::tests::shipped;
    use crate::rig_file::{
        ConsoleTransport, EmulatorDeploy, EmulatorPart, Endpoint, Place, ProbePart,
    };

    fn names(board: &BoardProfile) -> Vec<&str> {
        board.consoles.iter().map(|console| console.name.as_str()).collect()
    }

    fn place(emulator: Option<EmulatorPart>, probe: Option<ProbePart>) -> Place {
        let place = Place::new("p".parse().unwrap(), "b".parse().unwrap());
        Place { emulator, probe, ..place }
    }

    fn probed() -> Place {
        let deploy = Some(EmulatorDeploy::Probe);
        place(Some(EmulatorPart { deploy, ..EmulatorPart::default() }), None)
    }

    fn wired(place: Place, console: &ConsoleName) -> Place {
        let console = ConsoleTransport {
            console: console.clone(),
            end: Endpoint::Tty("/dev/ttyUSB0".to_owned()),
            baud: None,
            timeout: None,
            ready: None,
            capture: None,
        };
        Place { consoles: vec![console], ..place }
    }

    #[test]
    fn consoles_are_those_that_can_be_reached() {
        let real = place(None, Some(ProbePart::default()));
        let loaded = place(Some(EmulatorPart::default()), None);
        let probed = probed();
        let mut board = shipped().into_iter().find(|p| p.consoles.len() == 2).unwrap();
        let own = names(&board).join(" ");
        assert_eq!(names(&board.at(&real)), ["rtt0", "semihosting"]);
        let uart = board.consoles[0].name.clone();
        let bare = place(None, None);
        assert_eq!(names(&board.at(&wired(real.clone(), &uart))), ["uart0", "rtt0", "semihosting"]);
        assert_eq!(names(&board.at(&wired(bare.clone(), &uart))), ["uart0"]);
        assert_eq!(names(&board.at(&bare)).join(" "), own);
        assert_eq!(names(&board.at(&loaded)).join(" "), own);
        assert_eq!(names(&board.at(&probed)).join(" "), format!("{own} rtt0"));

        let log = ConsoleSpec {
            name: "log".parse().unwrap(),
            kind: ConsoleKind::Rtt,
            baud: 0,
            channel: 3,
        };
        board.consoles.insert(0, log);
        assert_eq!(names(&board.at(&real)), ["log", "semihosting"]);
        assert_eq!(board.at(&real).consoles[0].channel, 3);
        assert_eq!(names(&board.at(&loaded)).join(" "), own);
        assert_eq!(names(&board.at(&probed)).join(" "), format!("log {own}"));
        board.consoles.truncate(1);
        assert_eq!(names(&board.at(&loaded)), ["log"]);
    }

    #[test]
    fn an_added_console_takes_no_name_that_is_used() {
        let mut board = shipped().into_iter().find(|p| p.consoles.len() == 2).unwrap();
        board.consoles[0].name = "rtt0".parse().unwrap();
        assert_eq!(names(&board.at(&probed())), ["rtt0", "semihosting", "rtt1"]);
    }
}
