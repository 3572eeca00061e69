//! The parts of variables, from debug information that a compiler has written, and from damaged one.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use object::{Object as _, ObjectSymbol as _};
use proptest::prelude::*;

use super::super::variable_parts::MOST;
use super::hostile::{change, changes, section};
use crate::Symbols;

static IMAGE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/debug_info/tests");
    let dir = tempfile::tempdir().unwrap();
    let elf = dir.path().join("variable_parts.elf");
    let mut gcc = Command::new("arm-none-eabi-gcc");
    gcc.args(["-mcpu=cortex-m3", "-mthumb", "-g", "-ffreestanding", "-nostdlib"]);
    gcc.args(["-Wl,--entry=0", "-Wl,-Ttext=0", "-Wl,-Tbss=0x20000000"]);
    let status = gcc.arg(here.join("variable_parts.c")).arg("-o").arg(&elf).status().unwrap();
    assert!(status.success());
    std::fs::read(&elf).unwrap()
});

fn address(name: &str) -> u32 {
    let file = object::File::parse(&IMAGE[..]).unwrap();
    let found = file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
    u32::try_from(found.address()).unwrap()
}

#[test]
fn parts_are_those_of_the_type() {
    let symbols = Symbols::load(&IMAGE).unwrap();
    for (name, parts) in [
        ("plain", Some(&[(0, 32)][..])),
        ("stacks", Some(&[(0, 32), (32, 32), (64, 32)])),
        ("table", Some(&[(0, 4), (4, 4), (8, 4), (12, 4), (16, 4), (20, 4)])),
        ("thread", Some(&[(0, 4), (4, 32)])),
        ("threads", Some(&[(0, 4), (4, 32), (40, 4), (44, 32)])),
        ("either", Some(&[(0, 24)])),
        ("empties", None),
        ("too_many", None),
    ] {
        let start = address(name);
        let found = symbols.parts_of(start).map(|found| {
            let of =
                |part: std::ops::Range<u64>| (part.start - u64::from(start), part.end - part.start);
            found.into_iter().map(of).collect::<Vec<_>>()
        });
        assert_eq!(found.as_deref(), parts, "{name}");
    }
    assert_eq!(symbols.parts_of(0x4000_0000), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_debug_information_makes_the_parts_endless(changes in changes()) {
        let mut elf = IMAGE.clone();
        let range = section(&elf, [".debug_info", ".debug_abbrev"][changes.len() % 2]);
        change(&mut elf[range], &changes);
        let Ok(symbols) = Symbols::load(&elf) else { return Ok(()) };
        for name in ["plain", "stacks", "table", "threads", "empties", "too_many"] {
            let found = symbols.parts_of(address(name)).unwrap_or_default();
            prop_assert!(found.len() <= MOST, "{}", found.len());
        }
    }
}
