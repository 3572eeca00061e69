//! The steps of the recovery ladder and their proofs, taken on a [`Dut`].

use std::sync::Arc;
use std::time::Duration;

use jig_model::protocol::{BoxFuture, CheckReport, DriverError, Power};
use jig_model::recovery::{RecoveryEvent, RecoveryStep, Rung};
use jig_model::rig_file::Place;
use jig_model::{Cause, RunEvent, chain};
use tokio::time::{Instant, sleep};

use super::dut::Dut;
use super::environment::{DutSpec, LabServices};
use super::known_good::Control;
use super::ladder::{ENUMERATION, Means, ladder};
use super::run_ladder::{LadderOutcome, Proof, StepActions, ladder_timeout, run_ladder};
use crate::attempt::{AttemptError, Bound, EventSink as _};
use crate::health::{HealthEvent, examine};
use crate::store::StoreError;

/// How long one check may take; each has its own, shorter limit.
const CHECK: Duration = Duration::from_secs(20);

/// How long a board may take to be there again. The scripted boards of the tests have no time.
const BACK: Duration = if cfg!(test) { Duration::ZERO } else { ENUMERATION };

/// How long a host may take until an emulator starts again: whoever has none installed waits
/// as long to be told.
const HOST: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 3 });

/// Pause between two looks for them.
const LOOK: Duration = Duration::from_millis(500);

/// Takes the steps for a run.
pub(super) struct Steps<'d, 'a> {
    dut: &'d mut Dut<'a>,
    /// Whether what checks say is noted: within a ladder only its outcome counts.
    recorded: bool,
    /// How often what switches the board's power has not answered, since it last had time.
    unanswered: u32,
    /// Whether the known-good image has passed.
    vouched: bool,
}

impl<'d, 'a> Steps<'d, 'a> {
    pub(super) fn new(dut: &'d mut Dut<'a>, recorded: bool) -> Self {
        Self { dut, recorded, unanswered: 0, vouched: false }
    }
}

/// A device that did not answer so often is asked no more: each time costs its whole time-out.
const SILENT: u32 = 2;

impl StepActions for Steps<'_, '_> {
    fn act(&mut self, step: RecoveryStep) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(self.take(step))
    }

    fn prove(&mut self, _step: RecoveryStep) -> BoxFuture<'_, Proof> {
        Box::pin(self.ask())
    }

    fn again(&self, step: RecoveryStep, spent: Duration) -> Option<Duration> {
        // Only waiting helps the more, the longer it lasts: whatever ends emulators, or keeps a
        // device away, may be over a moment later.
        let goes_on = step == RecoveryStep::Wait && spent < self.wait_timeout();
        goes_on.then(|| (spent / 2).clamp(LOOK / 2, LOOK * 4))
    }

    fn tell(&mut self, event: RecoveryEvent) {
        self.dut.events.emit(RunEvent::Recovery(event));
    }
}

impl Steps<'_, '_> {
    async fn take(&mut self, step: RecoveryStep) -> Result<String, String> {
        match step {
            // The power of another place is another device's, maybe.
            RecoveryStep::FailOver => self.unanswered = 0,
            RecoveryStep::Reset
            | RecoveryStep::AttachUnderReset
            | RecoveryStep::ReflashKnownGood
            | RecoveryStep::PowerCycle
            | RecoveryStep::LongPowerCycle => self.power_answers()?,
            RecoveryStep::Reopen
            | RecoveryStep::RestartEmulator
            | RecoveryStep::HubCycle
            | RecoveryStep::Wait
            | RecoveryStep::OutOfService => {}
        }
        match step {
            // What holds the place between attempts is nothing: each attempt and each proof
            // takes it up anew.
            RecoveryStep::Reopen => Ok("everything was let go of and taken up again".to_owned()),
            RecoveryStep::RestartEmulator => Ok("a new emulator was started".to_owned()),
            RecoveryStep::Reset => self.reset().await,
            RecoveryStep::AttachUnderReset => self.attach_under_reset().await,
            RecoveryStep::ReflashKnownGood => match self.control().await {
                Ok(Control::Passed(words)) => Ok(words),
                Ok(Control::Failed(words)) => Err(words),
                Ok(Control::None) => Err("there is no known-good image".to_owned()),
                Ok(Control::Cancelled) => Err("somebody asked to stop".to_owned()),
                Err(error) => Err(chain(&error)),
            },
            RecoveryStep::PowerCycle => self.cycle(None).await,
            RecoveryStep::LongPowerCycle => {
                let off = self.dut.spec.profile.recovery.long_off;
                self.cycle(Some(off)).await
            }
            RecoveryStep::HubCycle => {
                let done = self.dut.environment.lab.cycle_hub(self.dut.place()).await?;
                self.comes_back().await;
                Ok(done)
            }
            RecoveryStep::Wait => {
                self.comes_back().await;
                Ok("it was given time".to_owned())
            }
            RecoveryStep::FailOver => self.fail_over().await,
            RecoveryStep::OutOfService => {
                let why = "no step of the ladder was proven to help";
                self.dut.recorder.quarantine(self.dut.place(), why);
                Ok(format!("the place is out of service: {why}"))
            }
        }
    }

    /// Refuses to ask what switches the board's power once more, if it did not answer before.
    fn power_answers(&self) -> Result<(), String> {
        if self.unanswered < SILENT {
            return Ok(());
        }
        Err(format!("skipped: what switches the board's power did not answer {SILENT} times"))
    }

    /// Counts a failure of what switches the board's power, and returns its words.
    fn power_failed(&mut self, error: &DriverError) -> String {
        if error.cause == Cause::PowerUnreachable {
            self.unanswered += 1;
        }
        chain(error)
    }

    fn bind(&mut self, place: &Arc<Place>) -> Result<Bound, String> {
        self.dut.bind(place).map_err(|error: AttemptError| chain(&error))
    }

    /// Asks the board itself. One that hangs on an outlet answers only with power.
    pub(super) async fn examined(
        &mut self,
        place: &Arc<Place>,
    ) -> Result<Vec<CheckReport>, String> {
        self.power_answers()?;
        let mut bound = self.bind(place)?;
        let outlet = self.dut.spec.outlet.is_some();
        let powered = match bound.protocols.power.as_mut().filter(|_| outlet) {
            Some(power) => power.on().await,
            None => Ok(()),
        };
        let reports = match &powered {
            Ok(()) => examine(&mut bound.protocols.health, CHECK).await,
            Err(_) => Vec::new(),
        };
        let ended = bound.end().await;
        powered.map_err(|error| self.power_failed(&error))?;
        ended.map_err(|error| self.power_failed(&error))?;
        Ok(reports)
    }

    async fn reset(&mut self) -> Result<String, String> {
        let place = Arc::clone(&self.dut.spec.place);
        let mut bound = self.bind(&place)?;
        let done = async {
            // A board is reset by whoever holds it, so it is taken up first.
            let on = powered(&mut bound.protocols.power)?.on().await;
            on.map_err(|error| self.power_failed(&error))?;
            match &mut bound.protocols.reset {
                Some(reset) => reset.reset().await.map_err(|e| chain(&e)),
                None => Err("this place has no reset".to_owned()),
            }
        };
        let done = done.await;
        let ended = bound.end().await.map_err(|error| self.power_failed(&error));
        done?;
        ended?;
        Ok("the board was reset".to_owned())
    }

    async fn attach_under_reset(&mut self) -> Result<String, String> {
        let mut place = Place::clone(&self.dut.spec.place);
        let Some(probe) = &mut place.probe else {
            return Err("the place has no debug probe".to_owned());
        };
        probe.under_reset = true;
        let place = Arc::new(place);
        verdict_of(&self.examined(&place).await?)?;
        Ok("the probe attached while the chip was held in reset".to_owned())
    }

    async fn cycle(&mut self, off_time: Option<Duration>) -> Result<String, String> {
        let place = Arc::clone(&self.dut.spec.place);
        let mut bound = self.bind(&place)?;
        let done = match powered(&mut bound.protocols.power) {
            Ok(power) => power.cycle(off_time).await.map_err(|error| self.power_failed(&error)),
            Err(why) => Err(why),
        };
        let ended = bound.end().await.map_err(|error| self.power_failed(&error));
        done?;
        ended?;
        Ok(match off_time {
            None => "the board's power was cycled".to_owned(),
            Some(time) => format!("the board's power was cycled, off for {time:?}"),
        })
    }

    /// Returns how long it is waited for what passes by itself.
    fn wait_timeout(&self) -> Duration {
        if self.dut.spec.place.is_emulated() { HOST } else { BACK }
    }

    /// Waits until what the place stands on is well and its board answers again, if that comes at
    /// all: the proof that follows tells.
    async fn comes_back(&mut self) {
        let place = Arc::clone(&self.dut.spec.place);
        let until = Instant::now() + self.wait_timeout();
        while Instant::now() < until {
            // What was silent has time now, and may answer again.
            self.unanswered = 0;
            let mut host = self.dut.environment.lab.host_checks(self.dut.place());
            if verdict_of(&examine(&mut host, CHECK).await).is_ok()
                && self.examined(&place).await.is_ok_and(|seen| verdict_of(&seen).is_ok())
            {
                return;
            }
            sleep(LOOK).await;
        }
    }

    /// Moves the run to the first equivalent place that is free.
    async fn fail_over(&mut self) -> Result<String, String> {
        let dut = &mut *self.dut;
        let here = dut.place().clone();
        let mut taken: Vec<String> = Vec::new();
        for spare in dut.environment.spare.iter().filter(|spare| spare.place.name != here) {
            let there = &spare.place.name;
            match dut.environment.lab.claim(there).await {
                Ok(()) => {
                    dut.spec = spare.clone();
                    let noted = dut.live.note(|record| record.place = Some(there.clone()));
                    noted.map_err(|error| chain(&error))?;
                    return Ok(format!("the run moved from place {here} to {there}"));
                }
                Err(why) => taken.push(why),
            }
        }
        Err(format!("no equivalent place is free: {}", taken.join("; ")))
    }

    /// Runs the known-good image.
    async fn control(&mut self) -> Result<Control, StoreError> {
        let control = self.dut.control().await?;
        self.vouched |= matches!(control, Control::Passed(_));
        Ok(control)
    }

    /// Asks host, place and known-good image whether the rig works.
    async fn ask(&mut self) -> Proof {
        let proof = |ok, detail| Proof { ok, detail };
        if let Err(why) = self.power_answers() {
            return proof(false, why);
        }
        let mut reports =
            examine(&mut self.dut.environment.lab.host_checks(self.dut.place()), CHECK).await;
        let place = Arc::clone(&self.dut.spec.place);
        match self.examined(&place).await {
            Ok(more) => reports.extend(more),
            Err(why) => return proof(false, why),
        }
        for report in &reports {
            self.dut.events.emit(RunEvent::Health(report.clone()));
        }
        if self.recorded {
            let event = HealthEvent::Checked(reports.clone());
            self.dut.recorder.note(self.dut.place(), &event);
        }
        let mut found = match verdict_of(&reports) {
            Ok(found) => found,
            Err(why) => return proof(false, why),
        };
        match self.control().await {
            Ok(Control::Passed(words)) => {
                self.dut.doubt(None);
                found.push(words);
            }
            Ok(Control::Failed(words)) => {
                self.dut.doubt(Some(1));
                return proof(false, words);
            }
            Ok(Control::Cancelled) => return proof(false, "somebody asked to stop".to_owned()),
            Ok(Control::None) => {}
            Err(error) => return proof(false, chain(&error)),
        }
        if found.is_empty() {
            return proof(false, "nothing at this place can prove that it works".to_owned());
        }
        proof(true, found.join("; "))
    }
}

fn powered(power: &mut Option<Box<dyn Power>>) -> Result<&mut Box<dyn Power>, String> {
    power.as_mut().ok_or_else(|| "this place has no power control".to_owned())
}

/// Says which checks passed, or what the first said that did not; what each said is an event.
pub(super) fn verdict_of(reports: &[CheckReport]) -> Result<Vec<String>, String> {
    if let Some(bad) = reports.iter().find(|report| !report.ok) {
        return Err(format!("{}: {}", bad.check, bad.detail));
    }
    let names: Vec<&str> = reports.iter().map(|report| report.check.as_str()).collect();
    let passed = format!("{} passed", names.join(", "));
    Ok(if names.is_empty() { Vec::new() } else { vec![passed] })
}

impl Dut<'_> {
    /// Recovers the rig after a failure, as far as its ladder goes.
    pub(super) async fn recover(&mut self, cause: Cause) -> LadderOutcome {
        let (spare, lab) = (self.environment.spare, self.environment.lab);
        let (rungs, timeout) = rungs(&self.spec, spare, lab, None);
        self.run_ladder(cause, &rungs, timeout).await
    }

    /// Runs a ladder and notes what it came to.
    pub(super) async fn run_ladder(
        &mut self,
        cause: Cause,
        rungs: &[Rung],
        timeout: Duration,
    ) -> LadderOutcome {
        let (cancel, place) = (self.cancel.clone(), self.place().clone());
        let mut steps = Steps::new(self, false);
        let mut outcome = run_ladder(cause, rungs, timeout, &mut steps, &cancel).await;
        outcome.vouched = steps.vouched;
        // A place that the run had to leave was not recovered.
        let recovered_by = outcome.recovered_by.filter(|_| *self.place() == place);
        let here = LadderOutcome { recovered_by, ..outcome.clone() };
        self.recorder.ladder_ended(&place, cause, &here);
        outcome
    }
}

/// Returns the ladder of a place as a run takes it, and how long that takes at most.
///
/// `spare` are the places that may stand in for it.
pub(super) fn rungs(
    spec: &DutSpec<'_>,
    spare: &[DutSpec<'_>],
    lab: &dyn LabServices,
    from: Option<RecoveryStep>,
) -> (Vec<Rung>, Duration) {
    let emulated = spec.place.is_emulated();
    let others = spare.iter().map(|spare| &spare.place.name);
    let means = Means {
        emulated,
        probe: spec.place.has_probe(),
        resets: spec.place.resets(),
        outlet: spec.outlet,
        known_good: emulated || spec.canary.is_some(),
        hub: lab.hub_timeout(&spec.place.name),
        equivalents: others.filter(|other| **other != spec.place.name).cloned().collect(),
    };
    let recovery = &spec.profile.recovery;
    let mut rungs = ladder(recovery, &means);
    if let Some(from) = from {
        let start = rungs.iter().position(|rung| rung.step == from);
        rungs.drain(..start.unwrap_or(0));
    }
    let timeout = ladder_timeout(&rungs, recovery.timeout);
    (rungs, timeout)
}
