//! The facts known of a board in one attempt, and the events that change them. Pure.
//!
//! Owns what each event changes. Refuses to know which task reports it and which waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jig_model::plan::PowerOp;
use jig_model::protocol::PowerState;
use jig_model::result::TestReport;
use jig_model::{Cause, ConsoleName, Note};

use super::expected_resets::ExpectedResets;
use crate::console::{means_crash, names_failure, tells_failure, tells_unexpected};
use crate::judge::{ByteRange, ExpectedCrash, Incident, IncidentKind, Listened, Standstill};

/// A boot that the plan started: where its output begins on each console.
pub(super) type Boot = BTreeMap<ConsoleName, u64>;

/// An event of an attempt, as a driver, a watcher or an action reports it.
#[derive(Debug, Clone)]
pub(super) enum Observed {
    /// An action begins, or has ended, to switch the power.
    Switching(bool),
    /// The driver says whether the board has power.
    Power(PowerState),
    /// A boot that the plan started begins.
    Boot(Boot),
    /// The rest of the plan expects this many resets by the target.
    ResetsAhead(usize),
    /// An action has got a reset by the target that it expected.
    ResetClaimed,
    /// A boot that the target began by an expected reset.
    TargetBoot(Boot),
    /// An incident: an event that the plan did not cause.
    Incident(Incident),
    /// A console showed something in a boot, counted from 1. If it is a headline of a crash, its dump
    /// begins at an offset of the log.
    Shown { boot: usize, incident: Incident, dump: Option<u64> },
    /// The target ended the boot by itself.
    Exit { code: i32, incident: Incident },
    /// The plan waited for a report in a boot, counted from 1, and got it.
    Heard { boot: usize },
    /// A behaviour is started again, before which the plan had got this many reports.
    Restarted { heard: usize },
    /// The port of a board is reached at an address.
    Forwarded { port: String, address: String },
    /// SHA-256 of what the board was found to hold of its image.
    ReadBack(Option<String>),
    /// The rig had to do something extra.
    Note(Note),
    /// The board could not run for a while, though it had power.
    Stood { time: Duration, stopped: bool },
    /// Jig itself was stopped for a while.
    Late(Duration),
    /// A quiet period is over.
    Listened(Listened),
    /// The plan expected this text, so a crash in it is none of the incidents. The text begins with
    /// its line or with a report; the pattern matched from `matched` on. The parts are those that the
    /// pattern spells out.
    Expected { text: ByteRange, matched: u64, spelled: Vec<ByteRange> },
}

/// The facts after all events so far.
#[derive(Debug, Clone, Default)]
pub(super) struct BoardFacts {
    pub(super) boots: Vec<Boot>,
    pub(super) incidents: Vec<Incident>,
    /// Boots (counted from 1) in which the plan waited for a report and got it.
    pub(super) heard: Vec<usize>,
    /// Addresses of forwarded ports.
    pub(super) forwards: BTreeMap<String, String>,
    pub(super) power: Option<PowerState>,
    /// The plan is switching the power: transports may end before the driver says that it is off.
    pub(super) switching: bool,
    /// Resets by the target that the plan expects.
    pub(super) resets: ExpectedResets,
    /// The code that the target ended this boot with, if it did.
    pub(super) exit: Option<i32>,
    /// SHA-256 of what the board was found to hold of the image that was put on it last.
    pub(super) read_back: Option<String>,
    /// What the rig had to do extra.
    pub(super) notes: Vec<Note>,
    /// A behaviour was started again, and no boot has begun since.
    restarted: bool,
    /// Output of boots up to this one belongs to a start of a behaviour that is over.
    forgiven: Option<usize>,
    /// For how long the board could not run, though it had power.
    stood: Duration,
    /// For how much of that its emulator was stopped.
    stopped: Duration,
    /// For how long Jig itself was stopped, in all and at most at once.
    late: Duration,
    latest: Duration,
    /// The last quiet period of this boot.
    pub(super) listened: Option<Listened>,
    /// Texts that the plan expected.
    expected: Vec<ByteRange>,
    /// The parts of them that patterns spell out.
    spelled: Vec<ByteRange>,
    /// Where the last of them was matched: what the pattern matched.
    matched: Option<ByteRange>,
    /// Where the dump of each crash begins that is among the incidents.
    dumps: Vec<(ByteRange, u64)>,
    /// The dumps of crashes that the plan expected: the log, and where they begin.
    expected_dumps: BTreeSet<(String, u64)>,
    /// The last text of this boot that was a crash, and that the plan expected.
    crash: Option<ByteRange>,
}

impl BoardFacts {
    /// Applies one event.
    pub(super) fn fold(&mut self, event: Observed) {
        match event {
            Observed::Switching(switching) => self.switching = switching,
            Observed::Power(state) => self.power = Some(state),
            Observed::Boot(boot) => {
                self.incidents.extend(self.resets.take_unclaimed());
                if std::mem::take(&mut self.restarted) {
                    // A crashing target prints until it is switched off, and the watchers read
                    // that output a little later.
                    self.forget();
                    self.forgiven = Some(self.boots.len());
                }
                self.begin(boot);
            }
            Observed::ResetsAhead(count) => self.resets.expect(count),
            Observed::ResetClaimed => self.resets.claim(),
            Observed::TargetBoot(boot) => self.begin(boot),
            Observed::Incident(incident) => {
                if !self.resets.admit(&incident) {
                    self.incidents.push(incident);
                }
            }
            Observed::Shown { boot, incident, dump } => {
                // A log whose boot turns out to be over is read again from there.
                let recognised = matches!(incident.kind, IncidentKind::Recognised(_));
                let again = recognised && self.incidents.contains(&incident);
                if again || self.resets.admit(&incident) {
                    return;
                }
                let expected = self.expected.iter().find(|text| self.expects(&incident, text));
                if let Some(expected) = expected.cloned() {
                    if boot == self.boots.len() {
                        self.crash = Some(expected);
                    }
                    self.expect_dumps(dump.map(|at| (incident.range.file, at)));
                } else if self.forgiven.is_none_or(|forgiven| boot > forgiven) {
                    self.dumps.extend(dump.map(|at| (incident.range.clone(), at)));
                    self.incidents.push(incident);
                    self.expect_dumps([]);
                }
            }
            Observed::Exit { code, incident } => {
                self.exit = Some(code);
                self.incidents.push(incident);
            }
            Observed::Heard { boot } => self.heard.push(boot),
            Observed::Restarted { heard } => {
                self.forget();
                self.heard.truncate(heard);
                self.resets = ExpectedResets::default();
                self.restarted = true;
            }
            Observed::Forwarded { port, address } => {
                self.forwards.insert(port, address);
            }
            Observed::ReadBack(sha256) => self.read_back = sha256,
            Observed::Note(note) => self.notes.push(note),
            Observed::Stood { time, stopped } => {
                self.stood = self.stood.saturating_add(time);
                if stopped {
                    self.stopped = self.stopped.saturating_add(time);
                }
            }
            Observed::Late(time) => {
                self.late = self.late.saturating_add(time);
                self.latest = self.latest.max(time);
            }
            Observed::Listened(listened) => self.listened = Some(listened),
            Observed::Expected { text, matched, spelled } => {
                self.spelled.extend(spelled);
                self.matched = Some(ByteRange { start: matched, ..text.clone() });
                let (crashes, others): (Vec<_>, _) = std::mem::take(&mut self.incidents)
                    .into_iter()
                    .partition(|incident| self.expects(incident, &text));
                if !crashes.is_empty() {
                    self.crash = Some(text.clone());
                }
                self.incidents = others;
                let dumps = crashes.iter().filter_map(|crash| {
                    Some((crash.range.file.clone(), self.dump_of(&crash.range)?))
                });
                let dumps: Vec<_> = dumps.collect();
                self.expect_dumps(dumps);
                self.expected.push(text);
            }
        }
    }

    /// Tells whether an incident is the crash that a text, which the plan expected, shows. What the
    /// pattern spells out of its line has to mean the crash. A line that says that the run has
    /// failed is none, unless the pattern spells out that it has: `tohost` is a neutral word in
    /// `*** FAILED *** (tohost = 3)`.
    fn expects(&self, incident: &Incident, text: &ByteRange) -> bool {
        let range = &incident.range;
        let within = |part: &&ByteRange, range: &ByteRange| {
            part.file == range.file && part.start < range.end && range.start < part.end
        };
        let mut spelled = self.spelled.iter().filter(|part| within(part, text));
        is_crash_in(incident, text)
            && match says_run_failed(&range.text) {
                true => spelled.any(|part| within(&part, range) && names_failure(&part.text)),
                false => spelled.any(|part| means_crash(&part.text)),
            }
    }

    fn dump_of(&self, headline: &ByteRange) -> Option<u64> {
        self.dumps.iter().find(|(known, _)| known == headline).map(|&(_, dump)| dump)
    }

    /// Takes the other headlines of crashes that the plan expected off the incidents.
    fn expect_dumps(&mut self, dumps: impl IntoIterator<Item = (String, u64)>) {
        self.expected_dumps.extend(dumps);
        let mut incidents = std::mem::take(&mut self.incidents);
        incidents.retain(|Incident { kind, range }| {
            let unwanted = says_run_failed(&range.text) || tells_unexpected(&range.text);
            let dump = self.dump_of(range).filter(|_| is_crash(kind) && !unwanted);
            !dump.is_some_and(|dump| self.expected_dumps.contains(&(range.file.clone(), dump)))
        });
        self.incidents = incidents;
    }

    fn begin(&mut self, boot: Boot) {
        self.boots.push(boot);
        self.exit = None;
        self.listened = None;
        self.crash = None;
    }

    /// Forgets incidents of the target; those of the rig stay.
    fn forget(&mut self) {
        self.incidents.retain(|incident| matches!(incident.kind, IncidentKind::Lost(_)));
    }

    /// Returns the first boot whose output counts: not that of a start of a behaviour that is over.
    pub(super) fn first_boot(&self) -> Option<&Boot> {
        self.boots.get(self.forgiven.unwrap_or_default())
    }

    /// Tells whether the output of a boot, counted from 1, counts.
    pub(super) fn boot_counts(&self, boot: usize) -> bool {
        self.forgiven.is_none_or(|forgiven| boot > forgiven)
    }

    /// Tells whether the report of a boot before the last, counted from 1, counts: the plan got it, or
    /// it fails, and it does not belong to a start of a behaviour that is over.
    pub(super) fn earlier_counts(&self, boot: usize, report: &TestReport) -> bool {
        self.heard.contains(&boot) || (self.boot_counts(boot) && report.fails())
    }

    /// Returns what became of a crash of this boot that the plan expected; `report_end` is where in a
    /// log the last report of this boot ends.
    pub(super) fn expected_crash(&self, report_end: Option<(&str, u64)>) -> ExpectedCrash {
        let Some(crash) = &self.crash else { return ExpectedCrash::None };
        let behind = |text: &&ByteRange| text.file == crash.file && text.start >= crash.end;
        if report_end.is_some_and(|(file, end)| file == crash.file && end > crash.end) {
            ExpectedCrash::ReportBehind
        } else if self.expected.iter().any(|text| behind(&text)) {
            ExpectedCrash::TextBehind
        } else {
            ExpectedCrash::Last
        }
    }

    /// Tells whether a behaviour is started again, and no boot has begun since.
    pub(super) fn starts_again(&self) -> bool {
        self.restarted
    }

    /// Returns the texts that the plan expected.
    pub(super) fn expected(&self) -> &[ByteRange] {
        &self.expected
    }

    /// Returns what the pattern of the last expected text matched.
    pub(super) fn matched(&self) -> Option<&ByteRange> {
        self.matched.as_ref()
    }

    /// Returns the parts of expected texts that the patterns of the plan spell out.
    pub(super) fn spelled(&self) -> &[ByteRange] {
        &self.spelled
    }

    /// Tells whether the board has power, as far as its driver knows.
    pub(super) fn on(&self) -> bool {
        self.power == Some(PowerState::On)
    }

    /// Tells whether the state of the core says something of the target: it runs, and the rig has
    /// not lost it.
    pub(super) fn may_be_looked_at(&self) -> bool {
        let lost = |incident: &Incident| matches!(incident.kind, IncidentKind::Lost(_));
        self.on() && self.exit.is_none() && !self.incidents.iter().any(lost)
    }

    /// Tells whether the target has ended this boot by itself and claims success.
    pub(super) fn ended_well(&self) -> bool {
        self.exit == Some(0)
    }

    /// Returns what shows later whether a power command had an effect: the number of boots, and
    /// whether the board has power.
    pub(super) fn powered(&self) -> (usize, bool) {
        (self.boots.len(), self.on())
    }

    /// Tells whether a power command had an effect on the board, as far as its driver knows. The
    /// power device may report success and belong to another board.
    pub(super) fn obeyed(&self, op: PowerOp, before: (usize, bool)) -> bool {
        let (boots, on) = self.powered();
        match op {
            PowerOp::Off => !on,
            PowerOp::On => before.1 || boots > before.0,
            PowerOp::Cycle => boots > before.0,
        }
    }

    /// Returns for how long the board, and for how long Jig, could not run so far.
    pub(super) fn time_lost(&self) -> (Duration, Duration) {
        (self.stood, self.late)
    }

    /// Returns the stops that a target counts as elapsed time.
    pub(super) fn standstill(&self) -> Standstill {
        Standstill { stopped: self.stopped, latest: self.latest }
    }
}

/// Tells whether an incident is a crash that a console shows.
fn is_crash(kind: &IncidentKind) -> bool {
    match kind {
        IncidentKind::Recognised(cause) => !matches!(
            cause,
            Cause::BootLoop | Cause::OutputFlood | Cause::UnexpectedReset | Cause::AssertFailed
        ),
        _ => false,
    }
}

/// Tells whether the headline of a crash says that the run has failed. Among results a panic of Rust does;
/// as a crash it says no more than others.
fn says_run_failed(headline: &str) -> bool {
    tells_failure(headline) && !headline.contains("panicked at ")
}

/// Tells whether an incident is a crash that a console shows within a text.
fn is_crash_in(incident: &Incident, text: &ByteRange) -> bool {
    let Incident { kind, range } = incident;
    is_crash(kind) && range.file == text.file && range.start < text.end && text.start < range.end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(events: impl IntoIterator<Item = Observed>) -> BoardFacts {
        let mut facts = BoardFacts::default();
        events.into_iter().for_each(|event| facts.fold(event));
        facts
    }

    fn incident(kind: IncidentKind) -> Incident {
        Incident { kind, range: ByteRange::default() }
    }

    fn shown(boot: usize) -> Observed {
        Observed::Shown { boot, incident: incident(IncidentKind::Lockup), dump: None }
    }

    fn boot() -> Observed {
        Observed::Boot(Boot::new())
    }

    #[test]
    fn a_restart_forgets_what_the_target_did_and_not_what_the_rig_did() {
        let lost = IncidentKind::Lost(Cause::ConsoleLost);
        let before = [boot(), shown(1), Observed::Incident(incident(lost.clone()))];
        let restart = [
            Observed::Heard { boot: 1 },
            Observed::Heard { boot: 1 },
            Observed::Restarted { heard: 1 },
        ];
        let facts = after(before.into_iter().chain(restart));
        assert_eq!(facts.incidents, [incident(lost)]);
        assert_eq!(facts.heard, [1]);
    }

    #[test]
    fn output_of_a_try_that_is_over_counts_no_more() {
        // The first boot prints on after the restart, before and after the second begins.
        let late = [boot(), Observed::Restarted { heard: 0 }, shown(1), boot(), shown(1)];
        let mut facts = after(late);
        assert_eq!(facts.incidents, []);
        facts.fold(shown(2));
        assert_eq!(facts.incidents.len(), 1);
        // A boot without a restart forgives nothing.
        assert_eq!(after([boot(), shown(1), boot(), shown(1)]).incidents.len(), 2);
    }

    #[test]
    fn a_failure_of_the_run_is_expected_only_by_its_own_words() {
        let range = |start, end, text: &str| ByteRange {
            file: "uart0.raw".to_owned(),
            start,
            end,
            text: text.to_owned(),
        };
        for (line, spelled, left) in [
            ("*** FAILED *** (tohost = 3)", (16, 22, "tohost"), 1),
            ("*** FAILED *** (tohost = 3)", (4, 10, "FAILED"), 0),
            ("*** RIOT kernel panic:", (4, 15, "RIOT kernel"), 1),
            ("*** RIOT kernel panic:", (16, 22, "panic:"), 0),
            ("panicked at src/main.rs:9:5: index out of bounds", (29, 34, "index"), 1),
            ("panicked at src/main.rs:9:5: index out of bounds", (35, 48, "out of bounds"), 0),
            ("hard fault on thread: app_main", (22, 30, "app_main"), 1),
            ("hard fault on thread: app_main", (0, 10, "hard fault"), 0),
            ("ASSERTION FAIL [device_is_ready(dev)] @ main.c:31", (26, 31, "ready"), 1),
            ("ASSERTION FAIL [device_is_ready(dev)] @ main.c:31", (16, 25, "device_is"), 1),
            ("ASSERTION FAIL [device_is_ready(dev)] @ main.c:31", (0, 14, "ASSERTION FAIL"), 0),
            ("panicked at src/net.rs:17:5: no link up", (32, 39, "link up"), 1),
            ("Kernel panic - not syncing: VFS: Unable to mount root fs", (43, 53, "mount root"), 1),
            ("Kernel panic - not syncing: VFS: Unable to mount root fs", (28, 31, "VFS"), 1),
            (
                "Kernel panic - not syncing: VFS: Unable to mount root fs",
                (15, 26, "not syncing"),
                0,
            ),
        ] {
            let (start, end, word) = spelled;
            let kind = IncidentKind::Recognised(Cause::GuestPanic);
            let incident = Incident { kind, range: range(0, line.len() as u64, line) };
            let expected = Observed::Expected {
                text: range(0, end, ""),
                matched: start,
                spelled: vec![range(start, end, word)],
            };
            for first in [true, false] {
                let incident = incident.clone();
                let shown = Observed::Shown { boot: 1, incident, dump: Some(0) };
                let expected = expected.clone();
                let both = if first { [shown, expected] } else { [expected, shown] };
                let facts = after([boot()].into_iter().chain(both));
                assert_eq!(facts.incidents.len(), left, "{line} {word} {first}");
            }
        }
    }

    #[test]
    fn an_exit_code_belongs_to_its_boot() {
        let exit = Observed::Exit { code: 3, incident: incident(IncidentKind::Exit(3)) };
        let mut facts = after([boot(), exit]);
        assert_eq!((facts.exit, facts.incidents.len()), (Some(3), 1));
        facts.fold(boot());
        assert_eq!((facts.exit, facts.incidents.len()), (None, 1));
    }

    #[test]
    fn a_board_obeys_its_power_if_a_boot_follows() {
        let off = after([]);
        let on = after([Observed::Power(PowerState::On), boot()]);
        assert!(on.obeyed(PowerOp::On, off.powered()) && on.obeyed(PowerOp::Cycle, off.powered()));
        assert!(on.obeyed(PowerOp::On, on.powered()) && !on.obeyed(PowerOp::Cycle, on.powered()));
        assert!(!on.obeyed(PowerOp::Off, on.powered()) && off.obeyed(PowerOp::Off, on.powered()));
    }

    #[test]
    fn lost_time_adds_up() {
        let ms = Duration::from_millis;
        let facts = after([
            Observed::Stood { time: ms(5), stopped: false },
            Observed::Stood { time: ms(2), stopped: true },
            Observed::Late(ms(4)),
            Observed::Late(ms(3)),
        ]);
        assert_eq!(facts.time_lost(), (ms(7), ms(7)));
        assert_eq!(facts.standstill(), Standstill { stopped: ms(2), latest: ms(4) });
    }
}
