//! A rig that breaks, is recovered, and gives the test its turn back.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jig_model::event::BoardEvent;
use jig_model::plan::Plan;
use jig_model::protocol::{
    BindContext, BoxFuture, CheckReport, DriverError, DriverFactory, HealthCheck, Host, Power,
    PowerState, ProcessLedger, Protocols, TransportEvent,
};
use jig_model::recovery::{RecoveryEvent, RecoveryStep};
use jig_model::rig_file::{Place, ProbePart};
use jig_model::{Cause, ConsoleName, PlaceName, Purpose, RunEvent, RunId, VerdictKind};

use super::super::{
    ClaimError, DutSpec, Extent, HubError, LabServices, Observer, RunEnvironment, SessionRequest,
    StartChecks, recover, run,
};
use crate::attempt::fake::{self, Beat, GREEN, RED, parse, plan, print};
use crate::console::ConsoleHandle;
use crate::health::{HealthEvent, HealthState, HealthStore, PlaceHealth};
use crate::store::{KnownFormat, Passed, PlaceLockError, Places, RunRecord, RunStore};
use crate::workflow::CancelToken;

/// What happens each time the place is taken up: for an attempt, or to be asked how it is.
#[derive(Clone)]
pub(super) enum Bind {
    /// An attempt whose first boot goes like this.
    Plays(Vec<Beat>),
    /// It is asked how it is, and says this.
    Says(bool),
    /// What switches its power does not answer.
    Mute,
}

use Bind::{Mute, Plays, Says};

/// A switch that does not answer.
struct Silent;

fn no_answer() -> BoxFuture<'static, Result<(), DriverError>> {
    Box::pin(async { Err(DriverError::new(Cause::PowerUnreachable, "pdu did not answer")) })
}

impl Power for Silent {
    fn on(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        no_answer()
    }
    fn off(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        no_answer()
    }
    fn status(&mut self) -> BoxFuture<'_, Result<PowerState, DriverError>> {
        Box::pin(async { Ok(PowerState::Off) })
    }
}

struct Script {
    binds: Mutex<VecDeque<Bind>>,
    cancel: CancelToken,
    profile: String,
}

struct Check(bool);

impl HealthCheck for Check {
    fn check(&mut self) -> BoxFuture<'_, CheckReport> {
        let ok = self.0;
        Box::pin(async move {
            CheckReport { check: "board-answers".to_owned(), ok, detail: format!("says {ok}") }
        })
    }
}

impl DriverFactory for Script {
    fn bind(&self, context: BindContext) -> Result<Protocols, DriverError> {
        let bind = self.binds.lock().unwrap().pop_front().expect("more binds than scripted");
        let (boots, answer) = match bind {
            Plays(beats) => (vec![beats], None),
            Says(ok) => (vec![], Some(ok)),
            Mute => return Ok(Protocols { power: Some(Box::new(Silent)), ..Protocols::default() }),
        };
        let environment = fake::Bench {
            profile: self.profile.clone(),
            cancel: self.cancel.clone(),
            ..fake::Bench::new(boots)
        };
        let bound = environment.bind(context)?;
        let check = |ok| Box::new(Check(ok)) as Box<dyn HealthCheck>;
        Ok(Protocols { health: answer.map(check).into_iter().collect(), ..bound })
    }
}

/// A lab whose other places are free, or not.
#[derive(Default)]
pub(super) struct Others {
    taken: Vec<&'static str>,
    /// What is looked at before a test.
    pub(super) start: Option<fn() -> StartChecks>,
}

impl LabServices for Others {
    fn claim<'a>(&'a self, place: &'a PlaceName) -> BoxFuture<'a, Result<(), ClaimError>> {
        let taken = self.taken.contains(&place.as_str());
        let held = || PlaceLockError::Held { place: place.clone(), holder: None };
        Box::pin(async move { if taken { Err(held().into()) } else { Ok(()) } })
    }
    fn hub_timeout(&self, _place: &PlaceName) -> Option<Duration> {
        Some(Duration::ZERO)
    }
    fn cycle_hub<'a>(&'a self, _place: &'a PlaceName) -> BoxFuture<'a, Result<String, HubError>> {
        let held = PlaceLockError::Held { place: "b".parse().unwrap(), holder: None };
        Box::pin(async { Err(HubError::InUse { hub: "h".to_owned(), held }) })
    }
    fn host_checks(&self, _place: &PlaceName) -> Vec<Box<dyn HealthCheck>> {
        Vec::new()
    }
    fn start_checks(&self, _place: &PlaceName) -> StartChecks {
        self.start.map_or_else(StartChecks::default, |make| make())
    }
}

/// The events of a run, and what spoils its folder as soon as it is known.
#[derive(Default)]
struct Seen(Mutex<Vec<RunEvent>>, Mutex<Option<fn(&Path)>>);

impl Observer for Seen {
    fn began(&self, _run: &RunId, dir: &Path) {
        if let Some(spoil) = self.1.lock().unwrap().take() {
            spoil(dir);
        }
    }
    fn event(&self, event: &RunEvent) {
        self.0.lock().unwrap().push(event.clone());
    }
    fn console(&self, _console: &ConsoleName, _handle: &ConsoleHandle) {}
}

/// A run on a scripted place.
pub(super) struct Case {
    binds: Vec<Bind>,
    place: Place,
    known_good: bool,
    pub(super) max_recoveries: u32,
    repeat: u32,
    spare: Vec<Bind>,
    pub(super) lab: Others,
    outlet: Option<Duration>,
    seen: Arc<Seen>,
    cancel: CancelToken,
    /// What was noted of the place before.
    pub(super) before: Vec<HealthEvent>,
    /// How the place is at the end.
    pub(super) health: Arc<Mutex<Option<PlaceHealth>>>,
}

/// Loads one byte.
const HEX: &str = ":0100000001FE\n:00000001FF\n";
const HEX_SHA256: &str = "cf22fd3297ac293ac0b420fbf33cd4b383a4c75487d29940c39aeb471f8dd1c0";

fn real() -> Place {
    let place = Place::new("fake".parse().unwrap(), "fake".parse().unwrap());
    place.with_probe(ProbePart::default())
}

impl Case {
    pub(super) fn of(binds: Vec<Bind>) -> Self {
        Self {
            binds,
            place: fake::emulated(),
            known_good: false,
            max_recoveries: 2,
            repeat: 1,
            spare: Vec::new(),
            lab: Others::default(),
            outlet: None,
            seen: Arc::default(),
            cancel: CancelToken::new(),
            before: Vec::new(),
            health: Arc::default(),
        }
    }

    pub(super) async fn made(self) -> RunRecord {
        let cancel = self.cancel.clone();
        let (repeat, max_recoveries) = (self.repeat, Some(self.max_recoveries));
        let request =
            SessionRequest { plan: test_plan(), image: None, repeat, max_recoveries, asked: None };
        self.with(|spec, environment, seen| {
            Box::pin(async move { run(spec, request, environment, seen, cancel).await.unwrap() })
        })
        .await
    }

    async fn recovered(self, extent: Extent) -> RunRecord {
        self.with(|spec, environment, seen| {
            Box::pin(async move {
                recover(spec, extent, environment, seen, CancelToken::new()).await.unwrap()
            })
        })
        .await
    }

    async fn with(
        self,
        work: impl for<'b> FnOnce(
            DutSpec<'b>,
            &'b RunEnvironment<'b>,
            Arc<dyn Observer>,
        ) -> std::pin::Pin<Box<dyn Future<Output = RunRecord> + 'b>>,
    ) -> RunRecord {
        let root = tempfile::tempdir().unwrap();
        // A board that boots by itself needs no image file.
        let mut text = fake::Bench::new(vec![]).profile;
        text.push_str("image_set = \"set\"\nargs = [\"-D\", \"{artifact:log}\"]\n");
        text.push_str("[recovery]\ntimeout = \"20s\"\n");
        let profile = fake::Bench { profile: text.clone(), ..fake::Bench::new(vec![]) }.profile();
        let script = |binds: Vec<Bind>| Script {
            binds: Mutex::new(binds.into()),
            cancel: self.cancel.clone(),
            profile: text.clone(),
        };
        let (here, there) = (script(self.binds), script(self.spare.clone()));
        let places = Places::new(root.path());
        let place: PlaceName = "fake".parse().unwrap();
        if self.known_good {
            let (board, format) = (&profile.id, KnownFormat::IntelHex);
            let passed = Passed { board, format, sha256: HEX_SHA256, until: None, took_ms: 1 };
            for _ in 0..3 {
                let (now, read) = (jiff::Timestamp::UNIX_EPOCH, || Ok(HEX.into()));
                places.note_pass(&place, &passed, now, read).unwrap();
            }
        }
        let spare = DutSpec {
            place: Arc::new(Place { name: "other".parse().unwrap(), ..self.place.clone() }),
            profile: Arc::clone(&profile),
            factory: &there,
            outlet: None,
            canary: None,
        };
        let spares = if self.spare.is_empty() { vec![] } else { vec![spare] };
        let spec = DutSpec {
            place: Arc::new(self.place),
            profile,
            factory: &here,
            outlet: self.outlet,
            canary: None,
        };
        let store = RunStore::new(root.path());
        let health_store = HealthStore::open(&HealthStore::path_in(root.path())).unwrap();
        for event in &self.before {
            health_store.note(&spec.place.name, jiff::Timestamp::UNIX_EPOCH, event).unwrap();
        }
        let host = |_: Arc<dyn ProcessLedger>| Box::new(fake::Bench::new(vec![])) as Box<dyn Host>;
        let environment = RunEnvironment {
            store: &store,
            spare: &spares,
            lab: &self.lab,
            places: Some(&places),
            health: Some(&health_store),
            host: &host,
            image_sets: Path::new("/"),
            version: "1",
            clock: None,
        };
        let record = work(spec, &environment, self.seen).await;
        *self.health.lock().unwrap() = Some(health_store.of(&"fake".parse().unwrap()).unwrap());
        let left = here.binds.lock().unwrap().len() + there.binds.lock().unwrap().len();
        assert_eq!(left, 0, "the place was taken up less often than scripted");
        record
    }
}

fn test_plan() -> Plan {
    // No target here is waited for in vain: those that say nothing end by themselves.
    parse(&plan("{ power = 'cycle' }, { wait_for_results = true, timeout = '60s' }"))
}

fn lost() -> Bind {
    Plays(vec![Beat::Event(fake::lost())])
}

pub(super) fn green() -> Bind {
    Plays(vec![print(GREEN)])
}

fn red() -> Bind {
    Plays(vec![print(RED)])
}

fn silent() -> Bind {
    Plays(vec![ends()])
}

/// The target ends by itself, and says that all is well.
fn ends() -> Beat {
    Beat::End(BoardEvent::TargetExit { code: 0 })
}

/// What each attempt was for, whether it was replaced, and what it amounted to.
fn attempts(record: &RunRecord) -> Vec<(Purpose, bool, Cause)> {
    record.attempts.iter().map(|made| (made.purpose, made.replaced, made.verdict.cause)).collect()
}

#[tokio::test]
async fn a_recovered_rig_runs_the_test_again() {
    let case = Case::of(vec![lost(), Says(true), green()]);
    let seen = Arc::clone(&case.seen);
    let record = case.made().await;
    let spoiled = (Purpose::Test, true, Cause::EmulatorKilled);
    assert_eq!(attempts(&record), [spoiled, (Purpose::Test, false, Cause::Passed)]);
    let verdict = record.verdict.unwrap();
    assert_eq!((verdict.kind, verdict.cause), (VerdictKind::Pass, Cause::Passed));
    assert_eq!(verdict.notes, ["the rig was recovered by restart-emulator after emulator_killed"]);
    let told: Vec<RunEvent> = std::mem::take(&mut seen.0.lock().unwrap());
    let steps = told.iter().filter_map(|event| match event {
        RunEvent::Recovery(RecoveryEvent::Began { .. }) => Some("began"),
        RunEvent::Recovery(RecoveryEvent::Step { .. }) => Some("step"),
        RunEvent::Recovery(RecoveryEvent::Proof { ok: true, .. }) => Some("proof"),
        RunEvent::Recovery(RecoveryEvent::Ended { .. }) => Some("ended"),
        _ => None,
    });
    assert_eq!(steps.collect::<Vec<_>>(), ["began", "step", "proof", "ended"]);
}

#[tokio::test]
async fn a_repair_never_turns_a_failure_into_anything_else() {
    let record = Case::of(vec![red()]).made().await;
    assert_eq!(attempts(&record), [(Purpose::Test, false, Cause::TestFailed)]);
    // Nor does a failure behind a recovered attempt become flaky.
    let record = Case::of(vec![lost(), Says(true), red()]).made().await;
    assert_eq!(record.verdict.unwrap().cause, Cause::TestFailed);
}

#[tokio::test]
async fn spoiled_attempts_are_no_attempts() {
    let binds = vec![green(), lost(), Says(true), green(), green()];
    let record = Case { repeat: 3, ..Case::of(binds) }.made().await;
    let counted = record.attempts.iter().filter(|made| !made.replaced).count();
    assert_eq!((counted, record.attempts.len()), (3, 4));
    let verdict = record.verdict.unwrap();
    assert_eq!(verdict.cause, Cause::Passed, "{}", verdict.summary);
}

#[tokio::test]
async fn the_budget_of_recoveries_is_for_the_whole_run() {
    let binds = vec![lost(), Says(true), lost(), Says(true), lost()];
    let record = Case::of(binds).made().await;
    let verdict = record.verdict.unwrap();
    assert_eq!((verdict.kind, verdict.cause), (VerdictKind::EnvError, Cause::EmulatorKilled));
    assert_eq!(verdict.notes.len(), 2, "{:?}", verdict.notes);
    let record = Case { max_recoveries: 0, ..Case::of(vec![lost()]) }.made().await;
    assert_eq!(record.attempts.len(), 1);
}

#[tokio::test]
async fn a_step_without_proof_is_no_recovery() {
    let record = Case::of(vec![lost(), Says(false), Says(false)]).made().await;
    let verdict = record.verdict.unwrap();
    assert_eq!(verdict.cause, Cause::EmulatorKilled);
    let told = "not recovered: it was given time; board-answers";
    assert!(verdict.notes[0].to_string().contains(told), "{:?}", verdict.notes);
    // Nothing is asked, nothing answers: that proves nothing either.
    let record = Case::of(vec![lost(), silent(), silent()]).made().await;
    let verdict = record.verdict.unwrap();
    assert!(
        verdict.notes[0].to_string().contains("nothing at this place can prove"),
        "{:?}",
        verdict.notes
    );
}

#[tokio::test]
async fn the_known_good_image_tells_the_firmware_from_the_rig() {
    let binds = vec![silent(), green(), silent(), green()];
    let record = Case { known_good: true, ..Case::of(binds) }.made().await;
    let canary = (Purpose::Canary, false, Cause::Passed);
    let shown = |replaced| (Purpose::Test, replaced, Cause::NoOutput);
    assert_eq!(attempts(&record), [shown(true), canary, shown(false), canary]);
    let verdict = record.verdict.unwrap();
    assert_eq!(verdict.cause, Cause::NoOutput);
    assert!(verdict.notes[0].to_string().contains("known-good"), "{:?}", verdict.notes);

    // The test is silent, the known-good image fails, and so does a check: the rig is recovered.
    let binds = vec![silent(), red(), Says(false), Says(true), green(), green()];
    let record = Case { known_good: true, ..Case::of(binds) }.made().await;
    let verdict = record.verdict.clone().unwrap();
    assert_eq!(verdict.cause, Cause::Passed, "{}", verdict.summary);
    let first = &record.attempts[0].verdict;
    assert_eq!((first.cause, record.attempts[0].replaced), (Cause::RigUnhealthy, true));
    assert!(first.notes[0].to_string().contains("no_output"), "{:?}", first.notes);

    // An image that fails, passes and fails again tells nothing: what the test showed stands.
    let (bad, good) = (Says(false), Says(true));
    let binds = vec![silent(), red(), bad.clone(), good, green(), silent(), red(), bad, silent()];
    let record = Case { known_good: true, ..Case::of(binds) }.made().await;
    let verdict = record.verdict.unwrap();
    assert_eq!(verdict.cause, Cause::NoOutput, "{}", verdict.summary);
    assert!(verdict.notes[0].to_string().contains("contradicts itself"), "{:?}", verdict.notes);

    // A recovery that the known-good image does not confirm is none.
    let proof = || vec![Says(true), red(), Says(true), red(), red()];
    let binds = [vec![lost()], proof(), proof()].concat();
    let record = Case { known_good: true, ..Case::of(binds) }.made().await;
    assert_eq!(record.verdict.unwrap().cause, Cause::EmulatorKilled);
}

#[tokio::test]
async fn a_known_good_image_that_cannot_be_written_leaves_a_verdict() {
    let case = Case { known_good: true, ..Case::of(vec![silent()]) };
    *case.seen.1.lock().unwrap() = Some(|dir| {
        std::fs::remove_dir_all(dir.join("artefacts")).unwrap();
        std::fs::write(dir.join("artefacts"), "").unwrap();
    });
    let record = case.made().await;
    let verdict = record.verdict.unwrap();
    assert_eq!((verdict.kind, verdict.cause), (VerdictKind::EnvError, Cause::StorageFailed));
    assert!(verdict.summary.contains("known-good.hex"), "{}", verdict.summary);
    assert!(verdict.notes[0].to_string().contains("had shown: no_output"), "{:?}", verdict.notes);
}

#[tokio::test]
async fn a_run_whose_folder_is_deleted_recovers_nothing() {
    let case = Case::of(vec![lost()]);
    *case.seen.1.lock().unwrap() = Some(|dir| std::fs::remove_dir_all(dir).unwrap());
    let record = case.made().await;
    let verdict = record.verdict.unwrap();
    assert_eq!(verdict.cause, Cause::StorageFailed, "{}", verdict.summary);
    let recovered = verdict.notes.iter().any(|note| note.to_string().contains("recovered"));
    assert!(!recovered && record.attempts.len() == 1, "{:?}", verdict.notes);
}

#[tokio::test]
async fn an_image_that_fails_now_and_then_does_not_accuse_the_rig() {
    // Every check passes, and the kept image fails, then passes: what the test shows stands, and
    // the image is not run again.
    let binds = vec![silent(), red(), Says(true), red(), green(), silent()];
    let record = Case { known_good: true, ..Case::of(binds) }.made().await;
    let canary = |cause| (Purpose::Canary, false, cause);
    let shown = |replaced| (Purpose::Test, replaced, Cause::NoOutput);
    let failed = canary(Cause::TestFailed);
    let wanted = [shown(true), failed, failed, canary(Cause::Passed), shown(false)];
    assert_eq!(attempts(&record), wanted);
    let verdict = record.verdict.unwrap();
    assert_eq!(verdict.cause, Cause::NoOutput, "{}", verdict.summary);
    // One that fails each time does, although every check passes.
    let fails = || vec![red(), Says(true), red(), red()];
    let asked = || [vec![Says(true)], fails()].concat();
    let binds = [vec![silent()], fails(), asked(), asked()].concat();
    let record = Case { known_good: true, ..Case::of(binds) }.made().await;
    assert_eq!(record.verdict.unwrap().cause, Cause::RigUnhealthy);
}

/// Prints a mixture that no text holds, and no report.
/// The transport has counted characters with errors.
fn reported() -> Beat {
    Beat::News(TransportEvent::Garbled(6))
}

fn garbled() -> Bind {
    let bytes = b"hello \xf0\x0f\xe6\x18\x9e\x06 world\n".to_vec();
    Plays(vec![Beat::Print(0, bytes), Beat::Drain, reported(), ends()])
}

#[tokio::test]
async fn garbage_is_the_transports_unless_it_comes_again_on_a_good_one() {
    let record = Case::of(vec![garbled(), Says(true), green()]).made().await;
    let doubted = (Purpose::Test, true, Cause::OutputLost);
    assert_eq!(attempts(&record), [doubted, (Purpose::Test, false, Cause::Passed)]);
    // A recovery without a known-good image vouches for no transport.
    let again = vec![garbled(), Says(true), garbled(), Says(true), garbled()];
    let record = Case::of(again).made().await;
    assert_eq!(record.verdict.unwrap().cause, Cause::OutputLost);
    // With one it does: the target prints the garbage, and this is how it would be judged.
    let again = vec![garbled(), Says(true), green(), garbled(), green(), garbled(), green()];
    let record = Case { known_good: true, ..Case::of(again) }.made().await;
    let verdict = record.verdict.unwrap();
    assert_eq!(verdict.cause, Cause::NoResults, "{}", verdict.summary);
    assert!(verdict.notes.iter().any(|note| note.to_string().contains("the target prints it")));
}

/// Text that no format and no signature knows is not forgotten with the attempt.
#[tokio::test]
async fn a_failure_in_text_beside_garbage_is_not_forgotten() {
    let mixture = b"hello \xf0\x0f\xe6\x18\x9e\x06 world\n";
    for (text, wanted) in [
        ("all is quiet\n", Cause::Passed),
        ("Tests: 3 failed\n", Cause::Unconfirmed),
        ("PANIC in task 2\n", Cause::Unconfirmed),
    ] {
        let bytes = [mixture, text.as_bytes()].concat();
        let doubted = Plays(vec![Beat::Print(0, bytes), Beat::Drain, reported(), ends()]);
        let record = Case::of(vec![doubted, Says(true), green()]).made().await;
        let verdict = record.verdict.unwrap();
        assert_eq!(verdict.cause, wanted, "{text:?}: {}", verdict.summary);
        let told = verdict.summary.contains(text.trim_end());
        assert_eq!(told, wanted != Cause::Passed, "{}", verdict.summary);
    }
}

/// A report that lacks its last line, of a target that ends by itself.
fn short() -> Bind {
    let (kept, _) = GREEN.split_at(GREEN.len() - "ok 2 - b\n".len());
    Plays(vec![print(kept), ends()])
}

#[tokio::test]
async fn a_report_in_pieces_is_asked_for_again_and_never_passes() {
    for (mut again, wanted) in [
        (vec![short(), green()], Cause::PlanMismatch),
        (vec![green()], Cause::Unconfirmed),
        (vec![red()], Cause::TestFailed),
    ] {
        let mut binds = vec![short(), green()];
        binds.append(&mut again);
        let record = Case { known_good: true, ..Case::of(binds) }.made().await;
        let made: Vec<_> =
            attempts(&record).into_iter().map(|(why, again, _)| (why, again)).collect();
        let tests = [(Purpose::Test, true), (Purpose::Canary, false), (Purpose::Test, false)];
        assert_eq!(made[..3], tests);
        assert_eq!(record.verdict.unwrap().cause, wanted);
    }
}

#[tokio::test]
async fn a_run_that_was_made_to_fail_says_so_however_it_ends() {
    let injected = BoardEvent::Injected { fault: "x@0s".to_owned(), detail: "done".to_owned() };
    let killed = BoardEvent::Lost { cause: Cause::EmulatorKilled, detail: "killed".to_owned() };
    let struck = Plays(vec![Beat::Event(injected), Beat::End(killed)]);
    let record = Case::of(vec![struck, Says(true), green()]).made().await;
    let verdict = record.verdict.unwrap();
    assert_eq!(
        (verdict.cause, verdict.notes[0].to_string().as_str()),
        (Cause::Passed, "injected x@0s: done")
    );
}

#[tokio::test]
async fn who_asks_to_stop_before_the_rig_is_cleared_leaves_nobody_blamed() {
    let stopped = Plays(vec![Beat::Cancel]);
    let record = Case { known_good: true, ..Case::of(vec![silent(), stopped]) }.made().await;
    let verdict = record.verdict.unwrap();
    assert_eq!((verdict.kind, verdict.cause), (VerdictKind::Cancelled, Cause::Cancelled));
    assert!(
        verdict.notes[0].to_string().starts_with("the test had shown: no_output"),
        "{:?}",
        verdict.notes
    );
}

#[tokio::test]
async fn a_real_board_is_not_given_an_image_that_nobody_declared() {
    let case = Case { known_good: true, place: real(), ..Case::of(vec![silent(), silent()]) };
    assert_eq!(case.made().await.attempts.len(), 2);
}

#[tokio::test]
async fn a_board_that_nothing_repairs_is_replaced_by_its_equal() {
    // Taken up again, reset, attached under reset, given time, each in vain.
    let broken = || vec![lost(), Says(false), silent(), Says(false), Says(false), Says(false)];
    let case = Case { place: real(), spare: vec![Says(true), green()], ..Case::of(broken()) };
    let health = Arc::clone(&case.health);
    let record = case.made().await;
    assert_eq!(record.place.unwrap().as_str(), "other");
    let verdict = record.verdict.unwrap();
    assert_eq!(verdict.cause, Cause::Passed, "{}: {:?}", verdict.summary, verdict.notes);
    assert!(verdict.notes[0].to_string().contains("fail-over"), "{:?}", verdict.notes);
    // The place that was left is not well, though its state is known.
    assert_eq!(health.lock().unwrap().as_ref().unwrap().state, HealthState::Unhealthy);

    let lab = Others { taken: vec!["other"], ..Others::default() };
    let case = Case { place: real(), lab, ..Case::of(broken()) };
    let health = Arc::clone(&case.health);
    let record = case.made().await;
    assert_eq!(record.place.unwrap().as_str(), "fake");
    assert_eq!(record.verdict.unwrap().cause, Cause::EmulatorKilled);
    // Nothing is left to try, and nothing proves anything: it is out of service.
    assert_eq!(health.lock().unwrap().as_ref().unwrap().state, HealthState::Quarantined);
}

#[tokio::test]
async fn a_power_device_that_is_silent_twice_is_asked_no_more() {
    let outlet = Some(Duration::from_secs(1));
    let case = Case { place: real(), outlet, ..Case::of(vec![Mute, Mute]) };
    let seen = Arc::clone(&case.seen);
    let record = case.recovered(Extent::From(RecoveryStep::Reopen)).await;
    assert_eq!(record.verdict.unwrap().cause, Cause::RigUnhealthy);
    let told: Vec<RunEvent> = std::mem::take(&mut seen.0.lock().unwrap());
    let skipped = told.iter().filter_map(|event| match event {
        RunEvent::Recovery(RecoveryEvent::Proof { step, detail, .. }) => {
            detail.contains("skipped: what switches the board's power").then_some(step.as_str())
        }
        _ => None,
    });
    assert_eq!(
        skipped.collect::<Vec<_>>(),
        ["attach-under-reset", "power-cycle", "long-power-cycle", "wait"]
    );
}

#[tokio::test]
async fn a_place_is_repaired_only_if_it_does_not_prove_to_work() {
    let record = Case::of(vec![Says(true)]).recovered(Extent::Recover).await;
    let verdict = record.verdict.unwrap();
    assert_eq!((verdict.cause, verdict.notes.len()), (Cause::ExpectationsMet, 0));
    // A check that failed is repeated until the place counts as healthy.
    let record = Case::of(vec![Says(false), Says(true), Says(true), Says(true)])
        .recovered(Extent::Recover)
        .await;
    let verdict = record.verdict.unwrap();
    assert_eq!(verdict.cause, Cause::ExpectationsMet);
    assert!(verdict.summary.contains("works again, by restart-emulator"), "{}", verdict.summary);
    let record = Case::of(vec![Says(false), Says(true), Says(true), Says(false)])
        .recovered(Extent::Recover)
        .await;
    let verdict = record.verdict.unwrap();
    assert!(verdict.summary.contains("only now and then"), "{}", verdict.summary);
    // A rig that is only asked is not recovered.
    let record = Case::of(vec![Says(false)]).recovered(Extent::Ask).await;
    assert!(record.verdict.unwrap().summary.starts_with("does not work: board-answers"));
    let record =
        Case::of(vec![Says(false), Says(false), Says(false)]).recovered(Extent::Recover).await;
    assert_eq!(record.verdict.unwrap().cause, Cause::RigUnhealthy);
}
