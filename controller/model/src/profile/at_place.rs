//! A board as it is at a place: which of its consoles can be reached there.

use super::{BoardProfile, ConsoleKind, ConsoleSpec, Deploy};
use crate::ConsoleName;
use crate::rig_file::Resource;

impl BoardProfile {
    /// Returns the board with the consoles that it has at a place, in the profile's order.
    ///
    /// Behind a debug probe there are the RTT consoles; one of channel 0 is added where the
    /// profile has none, so that any board works out of the box. An emulated board that a
    /// virtual probe deploys has these and the emulator's own. Without a probe nobody empties
    /// a target's rings, so there are no RTT consoles then, unless there would be none at all.
    pub fn at(&self, resource: &Resource) -> Self {
        let is_rtt = |console: &ConsoleSpec| console.kind == ConsoleKind::Rtt;
        let mut board = self.clone();
        let has_probe = match resource {
            Resource::Probe(_) => {
                board.consoles.retain(is_rtt);
                true
            }
            Resource::Emulator(_) => self.deploy_on(resource) == Deploy::Probe,
        };
        if !has_probe {
            if !board.consoles.iter().all(is_rtt) {
                board.consoles.retain(|console| !is_rtt(console));
            }
        } else if !board.consoles.iter().any(is_rtt) {
            let added = free_name(&board.consoles);
            board.consoles.push(ConsoleSpec {
                name: added,
                kind: ConsoleKind::Rtt,
                baud: 0,
                channel: 0,
            });
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
    use crate::rig_file::{EmulatorDeploy, EmulatorResource, ProbeResource};

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
        assert_eq!(names(&board.at(&real)), ["rtt0"]);
        assert_eq!(names(&board.at(&loaded)).join(" "), own);
        assert_eq!(names(&board.at(&probed)).join(" "), format!("{own} rtt0"));

        let log = ConsoleSpec {
            name: "log".parse().unwrap(),
            kind: ConsoleKind::Rtt,
            baud: 0,
            channel: 3,
        };
        board.consoles.insert(0, log);
        assert_eq!(names(&board.at(&real)), ["log"]);
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
