//! Random scripts: what may pass, and that nothing depends on how bytes are cut.

use std::time::Duration;

use jig_model::event::BoardEvent;
use jig_model::{Cause, VerdictKind};
use proptest::prelude::*;

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
            Self::Broken => return vec![Beat::BreakTransport(1), Beat::Drain],
            _ => return vec![reset_by_target()],
        };
        vec![Beat::Event(event)]
    }

    /// Tells whether the target itself does it, and in its own time.
    fn is_output(self) -> bool {
        self.text().is_some() || matches!(self, Self::Exit(_))
    }

    /// Tells whether it takes a pass away whenever it happens.
    fn is_bad(self) -> bool {
        !matches!(self, Self::Noise | Self::Green | Self::Red | Self::Torn | Self::Exit(0))
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

/// Says whether a pass is deserved; the last boot alone is awaited, and an earlier one may fail it.
fn deserves(boots: &[Vec<Deed>]) -> bool {
    let Some((last, before)) = boots.split_last() else { return false };
    let reports = |wanted: Deed| last.iter().filter(|deed| **deed == wanted).count();
    let good = |deed: &Deed| !deed.is_bad();
    last.iter().all(good)
        && before.iter().flatten().all(|deed| good(deed) && *deed != Deed::Red)
        && reports(Deed::Green) == 1
        && reports(Deed::Red) + reports(Deed::Torn) == 0
}

fn verdict(bench: &Bench, boots: usize) -> (VerdictKind, Cause) {
    let cycles = "{ power = 'cycle' }, ".repeat(boots);
    let text = plan(&format!("{cycles}{{ wait_for_results = true, timeout = '20s' }}"));
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build().unwrap();
    // That it returns at all, with the power taken last, is checked there.
    runtime.block_on(bench.verdict(&text))
}

/// Plays each boot to its end before the judge looks.
fn at_once(boots: &[Vec<Deed>], cuts: &[usize]) -> (VerdictKind, Cause) {
    let mut cuts = cuts.iter().copied().cycle();
    let scripts = boots
        .iter()
        .map(|deeds| deeds.iter().flat_map(|deed| deed.beats(&mut cuts)).collect::<Vec<_>>());
    let bench = Bench { at_once: true, ..Bench::new(scripts.collect()) };
    verdict(&bench, boots.len())
}

/// Plays one boot beside the wait, with pauses that are together shorter than the time for
/// which the target is watched behind a report.
fn bit_by_bit(boot: &[Deed], cuts: &[usize]) -> (VerdictKind, Cause) {
    let mut pauses = cuts.iter().map(|cut| Duration::from_millis(*cut as u64 % 90)).cycle();
    let mut cuts = cuts.iter().copied().cycle();
    let beats = boot.iter().flat_map(|deed| deed.beats(&mut cuts));
    let beats = beats.map(|beat| match beat {
        Beat::Drain => Beat::Pause(pauses.next().unwrap_or_default()),
        other => other,
    });
    let mut bench = Bench::new(vec![beats.collect()]);
    bench.profile = bench.profile.replace("settle = \"50ms\"", "settle = \"1s\"");
    verdict(&bench, 1)
}

/// A failing script is shrunk and printed whole: no seed has to be kept.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, cases: 96, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn only_a_clean_green_boot_passes_however_it_is_cut(
        boots in proptest::collection::vec(boot(), 1..3),
        cuts in proptest::collection::vec(0usize..200, 8),
    ) {
        let seen = at_once(&boots, &cuts);
        prop_assert_eq!(seen.0 == VerdictKind::Pass, deserves(&boots), "{:?}", seen);
        prop_assert_eq!(seen, at_once(&boots, &[0]));
    }

    #[test]
    fn what_a_target_prints_is_judged_alike_whenever_somebody_looks(
        boot in boot(),
        cuts in proptest::collection::vec(0usize..200, 8),
    ) {
        // Only output: an event that fails a boot by other means cuts short what follows.
        let boot: Vec<Deed> = boot.into_iter().filter(|deed| deed.is_output()).collect();
        prop_assert_eq!(bit_by_bit(&boot, &cuts), at_once(&[boot], &[0]));
    }
}
