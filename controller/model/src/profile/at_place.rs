//! A board as it is at a place: which of its consoles can be reached there.

use super::{BoardProfile, ConsoleKind, ConsoleSpec, Deploy};
use crate::ConsoleName;
use crate::rig_file::Resource;

impl BoardProfile {
    /// Returns the board with the consoles that it has at a place, in the profile's order.
    ///
    /// Behind a debug probe there are the RTT consoles, semihosting, and the serial ports that
    /// the place has a wire to. An RTT console of channel 0 is added where the profile has
    /// none, so that any board works out of the box; before semihosting, which stops the core
    /// and which few programs use. An emulated board that a virtual probe deploys has RTT and
    /// the emulator's own. Without a probe nobody empties
    /// a target's rings, so there are no RTT consoles then, unless there would be none at all.
    pub fn at(&self, resource: &Resource) -> Self {
        let is_rtt = |console: &ConsoleSpec| console.kind == ConsoleKind::Rtt;
        let mut board = self.clone();
        let has_probe = match resource {
            Resource::Probe(probe) => {
                board.consoles.retain(|console| match console.kind {
                    ConsoleKind::Rtt | ConsoleKind::Semihosting => true,
                    ConsoleKind::Uart => probe.wire(&console.name).is_some(),
                });
                true
            }
            Resource::Emulator(_) => self.deploy_on(resource) == Deploy::Probe,
        };
        if !has_probe {
            if !board.consoles.iter().all(is_rtt) {
                board.consoles.retain(|console| !is_rtt(console));
            }
        } else if !board.consoles.iter().any(is_rtt) {
            let name = free_name(&board.consoles);
            let added = ConsoleSpec { name, kind: ConsoleKind::Rtt, baud: 0, channel: 0 };
            let is_hosted = |console: &ConsoleSpec| console.kind == ConsoleKind::Semihosting;
            let place = match resource {
                Resource::Probe(_) => board.consoles.iter().position(is_hosted),
                Resource::Emulator(_) => None,
            };
            board.consoles.insert(place.unwrap_or(board.consoles.len()), added);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::shipped;
    use crate::rig_file::{ConsoleWire, EmulatorDeploy, EmulatorResource, ProbeResource, WireEnd};

    fn names(board: &BoardProfile) -> Vec<&str> {
        board.consoles.iter().map(|console| console.name.as_str()).collect()
    }

    #[test]
    fn consoles_are_those_that_can_be_reached() {
        let real = Resource::Probe(ProbeResource::default());
        let loaded = Resource::Emulator(EmulatorResource::default());
        let probed = Resource::Emulator(EmulatorResource {
            deploy: Some(EmulatorDeploy::Probe),
            ..EmulatorResource::default()
        });
        let mut board = shipped().into_iter().find(|p| p.consoles.len() == 2).unwrap();
        let own = names(&board).join(" ");
        assert_eq!(names(&board.at(&real)), ["rtt0", "semihosting"]);
        let wired = Resource::Probe(ProbeResource {
            wires: vec![ConsoleWire {
                console: board.consoles[0].name.clone(),
                end: WireEnd::Tty("/dev/ttyUSB0".to_owned()),
                baud: None,
                timeout: None,
                ready: None,
                keeper: None,
            }],
            ..ProbeResource::default()
        });
        assert_eq!(names(&board.at(&wired)), ["uart0", "rtt0", "semihosting"]);
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
        let probed = Resource::Emulator(EmulatorResource {
            deploy: Some(EmulatorDeploy::Probe),
            ..EmulatorResource::default()
        });
        assert_eq!(names(&board.at(&probed)), ["rtt0", "semihosting", "rtt1"]);
    }
}
