//! `jig chips`: the chips that can be used without a board profile.

use jig_model::chip::ChipFacts;
use jig_model::profile::MemoryKind;
use jig_model::{Fault, byte_size, exit};
use jig_probe::DescribedChips;

use crate::args::ChipsArgs;
use crate::failure::Failure;
use crate::render::{Screen, Style, TextTable, one_line};

/// Lists the chips that a pattern fits. Looks at no device.
///
/// JSON: `[{"name","family","arch","packages","cores":[{"name","architecture"}],"memory":[{"name",
/// "kind","start","size","writable"}]}]`, sorted by name; a chip with one package has no `packages`.
/// `writable` tells whether a debug probe can write the memory.
pub(crate) fn chips(screen: &Screen, args: &ChipsArgs) -> Result<u8, Failure> {
    let pattern = args.pattern.join(" ");
    let found = DescribedChips.search(&pattern);
    if screen.json() {
        screen.out_json(&found);
        return Ok(exit::PASS);
    }
    if found.is_empty() {
        let shown: String = pattern.chars().take(60).collect();
        let words = format!("no chip fits {shown:?}");
        return Err(Failure::new(Fault::Usage, words).help("try fewer letters: jig chips f411"));
    }
    screen.out(&table(&found).text(screen.out_paint()));
    screen.say("use one: jig flash --chip NAME app.elf, or board = \"chip:NAME\" in a rig file");
    Ok(exit::PASS)
}

fn table(found: &[ChipFacts]) -> TextTable {
    let mut table = TextTable::new(&["CHIP", "CORES", "FLASH", "RAM", "FAMILY"]);
    for facts in found {
        let mut cores: Vec<&str> = facts.cores.iter().map(|core| core.architecture).collect();
        cores.dedup();
        let count = facts.cores.len();
        let cores = match (count, cores.as_slice()) {
            (2.., [one]) => format!("{count} x {one}"),
            _ => cores.join(" + "),
        };
        let size = |kind| match facts.size_of(kind) {
            0 => "-".to_owned(),
            size => byte_size(size),
        };
        let flash = match facts.size_of(MemoryKind::Flash) {
            0 => "-".to_owned(),
            size if facts.flashes() => byte_size(size),
            size => format!("{}, no algorithm", byte_size(size)),
        };
        table.row([
            (one_line(&facts.name), Some(Style::Bold)),
            (cores, None),
            (flash, None),
            (size(MemoryKind::Ram), None),
            (one_line(&facts.family), Some(Style::Dim)),
        ]);
    }
    table
}
