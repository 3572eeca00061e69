//! The profile of a board that is only a chip, made of the description of that chip.
//!
//! # Design
//! Only what the chip decides is in it. Which consoles a board has is said by its place: the serial
//! ports of the rig file, and RTT behind a probe (see [`BoardProfile::at`]).

use super::{BoardProfile, ConsoleKind, ConsoleSpec, FaultSets, HealthSpec, Limits, MemoryRegion};
use crate::chip::{ChipFacts, ChipName};
use crate::recovery::Recovery;
use crate::{BoardId, ConsoleName};

/// Speed of a serial console that nothing says more about: what most firmware uses.
pub(crate) const USUAL_BAUD: u32 = 115_200;

impl BoardProfile {
    /// Makes the board of a chip. `wanted` is the name by which it was asked for.
    pub fn of_chip(wanted: &ChipName, facts: &ChipFacts, faults: &FaultSets) -> Self {
        let signatures = faults.names().filter_map(|name| faults.get(name)).flatten();
        Self {
            id: BoardId::of_chip(wanted),
            title: format!("{} ({})", facts.name, facts.family),
            status: None,
            sources: Vec::new(),
            usb: Vec::new(),
            arch: facts.arch,
            chip: Some(facts.name.clone()),
            features: std::collections::BTreeSet::new(),
            memory: memory_of(facts),
            consoles: vec![usual_console(ConsoleName::made("uart0".to_owned()))],
            emulation: None,
            deploy: None,
            boot_banner: None,
            allow_output: Vec::new(),
            shell: None,
            stages: Vec::new(),
            faults: signatures.cloned().collect(),
            limits: Limits::default(),
            recovery: Recovery::default(),
            health: HealthSpec::default(),
            origin: format!("chip description of {}", facts.name),
        }
    }
}

/// Returns the memory that an image may use. A board without RAM takes no image, as far as is known.
fn memory_of(facts: &ChipFacts) -> Vec<MemoryRegion> {
    let regions = || facts.memory.iter().map(|memory| &memory.region);
    match regions().any(|region| region.kind == super::MemoryKind::Ram) {
        true => regions().cloned().collect(),
        false => Vec::new(),
    }
}

/// Returns a serial console of a chip without a profile.
pub(super) fn usual_console(name: ConsoleName) -> ConsoleSpec {
    ConsoleSpec { name, kind: ConsoleKind::Uart, baud: USUAL_BAUD, channel: 0 }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::chip::{ChipCore, ChipMemory};
    use crate::profile::{Arch, MemoryKind};
    use crate::rig_file::{ConsoleTransport, Endpoint, Place, ProbePart};

    pub(crate) fn facts() -> ChipFacts {
        let memory = |name: &str, kind, start, size| ChipMemory {
            region: MemoryRegion { name: name.to_owned(), kind, start, size },
            writable: true,
            alias: false,
        };
        ChipFacts {
            name: "STM32F411CEUx".to_owned(),
            family: "STM32F4 Series".to_owned(),
            arch: Arch::Arm,
            packages: Vec::new(),
            cores: vec![ChipCore { name: "main".to_owned(), architecture: "Armv7E-M" }],
            memory: vec![
                memory("flash", MemoryKind::Flash, 0x0800_0000, 512 << 10),
                memory("ram", MemoryKind::Ram, 0x2000_0000, 128 << 10),
            ],
        }
    }

    fn board(facts: &ChipFacts) -> BoardProfile {
        BoardProfile::of_chip(&"stm32f411ce".parse().unwrap(), facts, &FaultSets::default())
    }

    #[test]
    fn a_chip_is_a_board_with_its_memory() {
        let found = board(&facts());
        assert_eq!(found.id.as_str(), "chip:stm32f411ce");
        assert_eq!(found.chip.as_deref(), Some("STM32F411CEUx"));
        assert!(found.holds(0x0800_0000, 0x0808_0000) && !found.holds(0, 4));
        let mut without_ram = facts();
        without_ram.memory.pop();
        assert_eq!(board(&without_ram).memory, []);
    }

    #[test]
    fn its_consoles_are_those_of_the_place() {
        let found = board(&facts());
        let names = |board: &BoardProfile| {
            board.consoles.iter().map(|c| c.name.to_string()).collect::<Vec<_>>()
        };
        let place = |consoles: &[&str], probe: bool| {
            let place = Place::new("p".parse().unwrap(), found.id.clone());
            let transport = |name: &&str| ConsoleTransport {
                console: name.parse().unwrap(),
                end: Endpoint::Tty(format!("/dev/{name}")),
                baud: None,
                timeout: None,
                ready: None,
                capture: None,
            };
            let consoles = consoles.iter().map(transport).collect();
            Place { consoles, probe: probe.then(ProbePart::default), ..place }
        };
        assert_eq!(names(&found.at(&place(&[], true))), ["rtt0"]);
        assert_eq!(names(&found.at(&place(&["shell", "log"], false))), ["shell", "log"]);
        assert_eq!(names(&found.at(&place(&["uart0", "rtt0"], true))), ["uart0", "rtt0", "rtt1"]);
        assert_eq!(names(&found.at(&place(&[], false))), ["uart0"]);
        let log = found.at(&place(&["log"], true));
        assert_eq!((log.consoles[0].kind, log.consoles[0].baud), (ConsoleKind::Uart, USUAL_BAUD));
    }
}
