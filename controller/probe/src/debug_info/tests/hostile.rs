//! Nonsense in images, memory and registers: bounded and never a panic.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::emulated::{Emulated, M0, M3, RISCV, address_of, fixture};
use crate::{CoreSnapshot, Symbols, SymbolsError, Why, explain};

/// Images and cores that stood in them.
static CORES: LazyLock<Vec<(Vec<u8>, CoreSnapshot)>> = LazyLock::new(|| {
    [(M0, "fault-stack", "fault_entry"), (M3, "fault-bus", "idle"), (RISCV, "fault-bus", "print")]
        .into_iter()
        .map(|(machine, name, symbol)| {
            let path = fixture(machine, name);
            let elf = std::fs::read(&path).unwrap();
            let mut core = Emulated::start(machine, &path);
            core.run_to(address_of(&elf, symbol));
            (elf, core.snapshot())
        })
        .collect()
});

type Changes = Vec<(prop::sample::Index, u8)>;

pub(super) fn change(bytes: &mut [u8], changes: &Changes) {
    for (index, value) in changes {
        let at = index.index(bytes.len());
        bytes[at] = *value;
    }
}

fn look(elf: &[u8], snapshot: &CoreSnapshot) {
    let symbols = Symbols::load(elf).ok();
    for why in [Why::Fault, Why::LockUp, Why::Hang] {
        let story = explain(snapshot, symbols.as_ref(), why);
        assert!(story.frames.len() <= 256, "{}", story.frames.len());
        assert!(story.summary.len() < 16 * 1024);
    }
}

pub(super) fn changes() -> impl Strategy<Value = Changes> {
    let value = prop_oneof![any::<u8>(), Just(0), Just(0xff), Just(0x80)];
    prop::collection::vec((any::<prop::sample::Index>(), value), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn no_image_breaks_the_walk(changes in changes(), which in 0..3_usize) {
        let (elf, snapshot) = &CORES[which];
        let mut elf = elf.clone();
        change(&mut elf, &changes);
        look(&elf, snapshot);
    }

    #[test]
    fn no_unwind_table_breaks_the_walk(changes in changes(), which in 0..3_usize) {
        let (elf, snapshot) = &CORES[which];
        let mut elf = elf.clone();
        let range = section(&elf, ".debug_frame");
        change(&mut elf[range], &changes);
        look(&elf, snapshot);
    }

    #[test]
    fn no_debug_information_breaks_the_lines(changes in changes(), which in 0..3_usize) {
        let (elf, snapshot) = &CORES[which];
        let mut elf = elf.clone();
        let names = [".debug_info", ".debug_abbrev", ".debug_line", ".debug_rnglists"];
        let range = section(&elf, names[changes.len() % names.len()]);
        change(&mut elf[range], &changes);
        look(&elf, snapshot);
    }

    #[test]
    fn no_memory_breaks_the_walk(changes in changes(), which in 0..3_usize) {
        let (elf, snapshot) = &CORES[which];
        let mut snapshot = snapshot.clone();
        for range in &mut snapshot.memory {
            change(&mut range.bytes, &changes);
        }
        look(elf, &snapshot);
    }

    #[test]
    fn no_register_breaks_the_walk(
        values in prop::collection::vec(
            (
                any::<prop::sample::Index>(),
                prop_oneof![
                    any::<u128>(),
                    any::<u32>().prop_map(u128::from),
                    (0xffff_ff80..=u32::MAX).prop_map(u128::from),
                    (0x1fff_ff00..0x2000_1100_u32).prop_map(u128::from),
                    (0..0x400_u32).prop_map(u128::from),
                ],
            ),
            1..8,
        ),
        which in 0..3_usize,
    ) {
        let (elf, snapshot) = &CORES[which];
        let mut snapshot = snapshot.clone();
        for (index, value) in values {
            let at = index.index(snapshot.registers.len());
            snapshot.registers[at].value = value;
        }
        look(elf, &snapshot);
    }
}

pub(super) fn section(elf: &[u8], name: &str) -> std::ops::Range<usize> {
    use object::{Object as _, ObjectSection as _};
    let file = object::File::parse(elf).unwrap();
    let (start, len) = file.section_by_name(name).unwrap().file_range().unwrap();
    start as usize..(start + len) as usize
}

#[test]
fn a_cut_image_is_refused_or_tells_less() {
    let (elf, snapshot) = &CORES[1];
    for len in (0..elf.len()).step_by(97) {
        look(&elf[..len], snapshot);
    }
}

#[test]
fn what_cannot_be_read_is_told_apart_from_what_is_not_there() {
    let (good, snapshot) = &CORES[1];
    assert_eq!(Symbols::load(good).unwrap().limits(), [""; 0]);
    let lines = "the image's debug information is unreadable (";
    for (name, value, says) in [
        (".debug_info", 0xff, lines),
        (".debug_abbrev", 0xff, lines),
        (".debug_line", 0xff, lines),
        (".debug_frame", 0x7f, "the image's unwind information in .debug_frame is unreadable ("),
    ] {
        let mut elf = good.clone();
        let range = section(&elf, name);
        elf[range].fill(value);
        let symbols = Symbols::load(&elf).unwrap();
        let [limit] = symbols.limits() else { panic!("{name}: {:?}", symbols.limits()) };
        assert!(limit.starts_with(says), "{name}: {limit}");
        let story = explain(snapshot, Some(&symbols), Why::Hang);
        assert!(story.limits.contains(limit), "{story:#?}");
        assert_eq!(story.frames[0].function.as_deref(), Some("idle"), "{name}: {story:#?}");
        assert_eq!(story.frames[0].line.is_some(), name == ".debug_frame", "{name}");
    }
}

#[test]
fn what_is_no_image_is_named() {
    assert!(matches!(Symbols::load(b"firmware"), Err(SymbolsError::NotElf(_))));
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let error = Symbols::load(&own).unwrap_err().to_string();
    assert!(error.starts_with("the image is for "), "{error}");
}

#[test]
fn an_image_for_another_core_is_not_used() {
    let (elf, _) = &CORES[2];
    let (_, snapshot) = &CORES[0];
    let symbols = Symbols::load(elf).unwrap();
    let story = explain(snapshot, Some(&symbols), Why::Hang);
    assert!(story.limits.iter().any(|l| l.contains("another kind of core")), "{story:#?}");
    assert!(story.frames.iter().all(|frame| frame.function.is_none()), "{story:#?}");
}

#[test]
fn symbols_may_move_to_the_thread_that_needs_them() {
    fn moves<T: Send + 'static>() {}
    moves::<Symbols>();
    moves::<CoreSnapshot>();
}
