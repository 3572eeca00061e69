//! Random scripts: what may pass, and that nothing depends on how bytes are cut.

use jig_model::event::BoardEvent;
use jig_model::{Cause, VerdictKind};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::fake::*;

/// One thing that a random target does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Noise,
    Green,
    Red,
    Torn,
    Fault,
    FaultElsewhere,
    Reset,
    Watchdog,
    Panic,
    Loss,
    Broken,
    Exit(i32),
}

impl Deed {
    fn text(self) -> Option<(usize, &'static str)> {
        match self {
            Self::Noise => Some((0, "some words\r\n")),
            Self::Green => Some((0, GREEN)),
            Self::Red => Some((0, RED)),
            // What follows on its line is no result.
            Self::Torn => Some((0, "TAP version 13\n1..2\nok 1 - a\n")),
            Self::Fault => Some((0, FAULT)),
            Self::FaultElsewhere => Some((1, FAULT)),
            Self::Reset | Self::Watchdog | Self::Panic | Self::Loss => None,
            Self::Broken | Self::Exit(_) => None,
        }
    }

    fn beats(self, cuts: &mut impl Iterator<Item = usize>) -> Vec<Beat> {
        if let Some((console, text)) = self.text() {
            let (head, tail) = text.as_bytes().split_at(cuts.next().unwrap_or(0) % text.len());
            let print = |bytes: &[u8]| Beat::Print(console, bytes.to_vec());
            return vec![print(head), Beat::Drain, print(tail), Beat::Drain];
        }
        let event = match self {
            Self::Watchdog => BoardEvent::Watchdog { action: "reset".to_owned() },
            Self::Panic => BoardEvent::GuestPanic { detail: "panic".to_owned() },
            Self::Loss => lost(),
            Self::Exit(code) => return vec![exit(code)],
            Self::Broken => return vec![Beat::BreakWire(1), Beat::Drain],
            _ => return vec![reset_by_target()],
        };
        vec![Beat::Event(event)]
    }

    /// Tells whether it takes a pass away whenever it happens.
    fn is_bad(self) -> bool {
        !matches!(self, Self::Noise | Self::Green | Self::Red | Self::Torn | Self::Exit(0))
    }

    /// Tells whether a wait for results ends with it.
    fn ends_a_wait(self) -> bool {
        !matches!(self, Self::Noise | Self::Torn)
    }
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        3 => Just(Deed::Noise),
        8 => Just(Deed::Green),
        1 => Just(Deed::Red),
        1 => Just(Deed::Torn),
        1 => Just(Deed::Fault),
        1 => Just(Deed::FaultElsewhere),
        1 => Just(Deed::Reset),
        1 => Just(Deed::Watchdog),
        1 => Just(Deed::Panic),
        1 => Just(Deed::Loss),
        1 => Just(Deed::Broken),
        2 => Just(Deed::Exit(0)),
        1 => Just(Deed::Exit(1)),
    ]
}

/// A boot ends with the first exit.
fn boot() -> impl Strategy<Value = Vec<Deed>> {
    proptest::collection::vec(deed(), 0..4).prop_map(|mut deeds| {
        if let Some(end) = deeds.iter().position(|deed| matches!(deed, Deed::Exit(_))) {
            deeds.truncate(end + 1);
        }
        deeds
    })
}

/// Says whether a pass is deserved; the last boot alone is awaited.
fn deserves(boots: &[Vec<Deed>]) -> bool {
    let Some((last, before)) = boots.split_last() else { return false };
    let reports = |wanted: Deed| last.iter().filter(|deed| **deed == wanted).count();
    let good = |deed: &Deed| !deed.is_bad();
    last.iter().all(good)
        && before.iter().flatten().all(good)
        && reports(Deed::Green) == 1
        && reports(Deed::Red) + reports(Deed::Torn) == 0
}

fn attempt(boots: &[Vec<Deed>], cuts: &[usize]) -> (VerdictKind, Cause) {
    let mut cuts = cuts.iter().copied().cycle();
    let scripts = boots
        .iter()
        .map(|deeds| deeds.iter().flat_map(|deed| deed.beats(&mut cuts)).collect::<Vec<_>>());
    let bench = Bench { at_once: true, ..Bench::new(scripts.collect()) };
    // Only a wait that ends by itself gets the time to do so on a busy machine.
    let ends = boots.last().is_some_and(|boot| boot.iter().any(|deed| deed.ends_a_wait()));
    let within = if ends && !goes_on(boots) { "20s" } else { "100ms" };
    let cycles = "{ power = 'cycle' }, ".repeat(boots.len());
    let text = plan(&format!("{cycles}{{ wait_for_results = true, timeout = '{within}' }}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    // That it returns at all, with the power taken last, is checked there.
    runtime.block_on(bench.verdict(&text))
}

/// Tells whether a report that does not end is begun in the last boot. Behind one that did,
/// it depends on the moment of the look whether the wait was over by then: it is no pass
/// either way, but the cause is that the end is missing, or that it did not come.
fn goes_on(boots: &[Vec<Deed>]) -> bool {
    boots.last().is_some_and(|boot| boot.contains(&Deed::Torn))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(20261121), cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn only_a_clean_green_boot_passes_however_it_is_cut(
        boots in proptest::collection::vec(boot(), 1..3),
        cuts in proptest::collection::vec(0usize..200, 8),
    ) {
        let (kind, cause) = attempt(&boots, &cuts);
        prop_assert_eq!(kind == VerdictKind::Pass, deserves(&boots), "{:?}", cause);
        // Where several things go wrong at once, which of them is named first may differ.
        if !goes_on(&boots) {
            let (uncut, other) = attempt(&boots, &[0]);
            prop_assert_eq!(kind, uncut, "{:?} and {:?}", cause, other);
        }
    }
}
