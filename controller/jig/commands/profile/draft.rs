//! The text of a new board profile. Pure.

use std::fmt::Write as _;

use jig_model::BoardId;
use jig_model::chip::{ChipFacts, ChipMemory};
use jig_model::image::ElfHints;
use jig_model::profile::{Arch, MemoryKind};

use crate::render::one_line;

/// What a profile is drafted of.
pub(super) struct Drafted<'a> {
    pub(super) id: &'a BoardId,
    pub(super) facts: &'a ChipFacts,
    pub(super) hints: Option<&'a ElfHints>,
}

/// Writes a profile that passes the checks as it is.
pub(super) fn draft(of: &Drafted<'_>) -> String {
    let Drafted { id, facts, hints } = of;
    let chip = one_line(&facts.name);
    let mut text = format!(
        "# Made of the chip description of {chip} ({}). What a description cannot know is to be\n\
         # edited: title, consoles, and what firmware prints. `jig profile check` checks the file.\n\
         version = 1\n\
         id = \"{id}\"  # the file's name without .toml\n\
         title = \"{chip}\"  # the board's name for people\n\
         arch = \"{}\"\n\
         chip = \"{chip}\"\n\
         status = \"data-sheet\"  # \"hardware\" once it was tried on the board\n\
         sources = [\"probe-rs target description of {chip}\"]\n",
        one_line(&facts.family),
        facts.arch,
    );
    cores(&mut text, facts);
    if let Some(hints) = hints {
        program(&mut text, facts, hints);
    }
    memory(&mut text, facts);
    consoles(&mut text, *hints);
    text.push_str(
        "\n# What the firmware prints at each start; seen too often, it shows a boot loop.\n\
         #boot_banner = '^MyFirmware v\\d'\n\
         \n# A program that flashes the board instead of a debug probe.\n\
         #[deploy]\n#method = \"command\"\n#argv = [\"openocd\", \"...\", \"{image}\"]\n",
    );
    text
}

fn cores(text: &mut String, facts: &ChipFacts) {
    let cores = facts.cores.iter().map(|core| format!("{} ({})", core.name, core.architecture));
    let cores: Vec<String> = cores.collect();
    let _ = writeln!(text, "# Cores: {}.", one_line(&cores.join(", ")));
}

/// Tells what a program says of the board, as comments.
fn program(text: &mut String, facts: &ChipFacts, hints: &ElfHints) {
    text.push_str("\n# Of the program:\n");
    if hints.arch != Some(facts.arch) {
        let built_for = hints.arch.map_or("unknown", Arch::as_str);
        let _ = writeln!(
            text,
            "# - It was built for another processor family ({built_for}) than the chip's first core."
        );
    }
    // A Thumb function has an odd address.
    let entry = if facts.arch == Arch::Arm { hints.entry & !1 } else { hints.entry };
    let _ = writeln!(text, "# - It starts at {entry:#010x}.");
    if let Some(top) = hints.stack_top {
        let _ = writeln!(text, "# - The top of its first stack is {top:#010x}.");
    }
    if let Some(rtt) = hints.rtt {
        let _ = writeln!(text, "# - Its RTT control block is at {rtt:#010x} (_SEGGER_RTT).");
    }
    if let Some(system) = hints.system {
        let _ = writeln!(text, "# - It is linked with {}.", system.as_str());
    }
    let regions = || facts.memory.iter().map(|memory| &memory.region);
    let holds = |&(start, end): &(u64, u64)| {
        regions().any(|r| start >= r.start && end <= r.start.saturating_add(r.size))
    };
    for (start, end) in hints.spans.iter().filter(|span| !holds(span)) {
        let _ = writeln!(
            text,
            "# - It uses {start:#010x}..{end:#010x}, which is no memory of the description."
        );
    }
}

fn memory(text: &mut String, facts: &ChipFacts) {
    let is_ram = |memory: &ChipMemory| memory.region.kind == MemoryKind::Ram;
    if !facts.memory.iter().any(is_ram) {
        text.push_str(
            "\n# The description has no RAM: without [[memory]] no image is loaded. Add both:\n\
             #[[memory]]\n#name = \"flash\"\n#kind = \"flash\"\n#start = 0x0\n#size = \"256K\"\n\
             #[[memory]]\n#name = \"ram\"\n#kind = \"ram\"\n#start = 0x2000_0000\n#size = \"64K\"\n",
        );
        return;
    }
    for ChipMemory { region, writable, .. } in &facts.memory {
        let kind = match region.kind {
            MemoryKind::Flash => "flash",
            MemoryKind::Ram => "ram",
        };
        let note = match writable {
            true => "",
            false => "  # no flash algorithm: a debug probe cannot write it",
        };
        let _ = write!(
            text,
            "\n[[memory]]\nname = \"{}\"\nkind = \"{kind}\"{note}\nstart = {}\nsize = {}\n",
            region.name,
            hexadecimal(region.start),
            size(region.size),
        );
    }
}

fn consoles(text: &mut String, hints: Option<&ElfHints>) {
    text.push_str(
        "\n# The serial ports of the board that a rig file may connect; the first is the primary \
         one.\n[[console]]\nname = \"uart0\"\nkind = \"uart\"\nbaud = 115200\n",
    );
    if hints.is_some_and(|hints| hints.rtt.is_some()) {
        text.push_str("\n[[console]]\nname = \"rtt0\"\nkind = \"rtt\"\nchannel = 0\n");
    }
}

/// Writes an address in groups of four digits, as the shipped profiles do.
fn hexadecimal(address: u64) -> String {
    let (high, low) = (address >> 16, address & 0xffff);
    match (high >> 16, high & 0xffff) {
        (0, 0) => format!("{low:#x}"),
        (0, high) => format!("{high:#06x}_{low:04x}"),
        (top, high) => format!("{top:#x}_{high:04x}_{low:04x}"),
    }
}

/// Writes a size with its unit where it has a whole number of one.
fn size(bytes: u64) -> String {
    const K: u64 = 1 << 10;
    const M: u64 = 1 << 20;
    match bytes {
        _ if bytes.is_multiple_of(M) => format!("\"{}M\"", bytes / M),
        _ if bytes.is_multiple_of(K) => format!("\"{}K\"", bytes / K),
        _ => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use jig_model::image::LinkedSystem;
    use jig_model::profile::{BoardProfile, FaultSets};
    use jig_probe::DescribedChips;

    use super::*;

    #[test]
    fn the_profile_of_every_chip_passes_the_checks_unchanged() {
        let id: BoardId = "my-board".parse().unwrap();
        let sets = FaultSets::default();
        // Each family has chips of one kind; every twentieth chip meets all of them.
        for facts in DescribedChips.search("").iter().step_by(20) {
            let text = draft(&Drafted { id: &id, facts, hints: None });
            let board = BoardProfile::parse("my-board.toml", &text, &sets)
                .unwrap_or_else(|problems| panic!("{}: {problems}\n{text}", facts.name));
            let made =
                BoardProfile::of_chip(&facts.name.parse().unwrap(), facts, &FaultSets::default());
            assert_eq!((board.memory, board.arch), (made.memory, made.arch), "{}", facts.name);
            assert_eq!(board.chip, made.chip);
        }
    }

    #[test]
    fn what_a_program_tells_stands_in_comments() {
        let facts = DescribedChips.search("stm32f411ce").remove(0);
        let hints = ElfHints {
            arch: Some(Arch::Arm),
            entry: 0x0800_0151,
            stack_top: Some(0x2002_0000),
            rtt: Some(0x2000_0040),
            system: Some(LinkedSystem::Zephyr),
            spans: vec![(0x0800_0000, 0x0800_1000), (0x1000_0000, 0x1000_0010)],
        };
        let id: BoardId = "b".parse().unwrap();
        let text = draft(&Drafted { id: &id, facts: &facts, hints: Some(&hints) });
        for line in [
            "# - It starts at 0x08000150.\n",
            "# - The top of its first stack is 0x20020000.\n",
            "# - Its RTT control block is at 0x20000040 (_SEGGER_RTT).\n",
            "# - It is linked with Zephyr.\n",
            "# - It uses 0x10000000..0x10000010, which is no memory of the description.\n",
            "start = 0x0800_0000\nsize = \"512K\"\n",
            "kind = \"rtt\"\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
        let other = ElfHints { arch: Some(Arch::Riscv32), ..hints };
        let text = draft(&Drafted { id: &id, facts: &facts, hints: Some(&other) });
        assert!(text.contains("another processor family (riscv32)"), "{text}");
        let sets = FaultSets::default();
        BoardProfile::parse("b.toml", &text, &sets).unwrap_or_else(|problems| panic!("{problems}"));
    }

    #[test]
    fn numbers_are_written_as_people_read_them() {
        assert_eq!([0, 0x400, 0x0800_0000].map(hexadecimal), ["0x0", "0x400", "0x0800_0000"]);
        assert_eq!(hexadecimal(0x1_0000_0000), "0x1_0000_0000");
        assert_eq!([512 << 10, 1 << 20, 100].map(size), ["\"512K\"", "\"1M\"", "100"]);
    }
}
