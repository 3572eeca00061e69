//! The steps of the recovery ladder and their proofs, taken on a [`Dut`].

use std::sync::Arc;
use std::time::Duration;

use jig_model::protocol::{BoxFuture, CheckReport, DriverError, Power};
use jig_model::recovery::{RecoveryEvent, RecoveryStep, Rung};
use jig_model::rig_file::Place;
use jig_model::{Cause, Note, RunEvent, chain};
use tokio::time::{Instant, sleep};

use super::dut::Dut;
use super::environment::{DutSpec, LabServices};
use super::known_good::KnownGoodResult;
use super::ladder::{ENUMERATION, Means, ladder};
use super::run_ladder::{LadderOutcome, StepActions, StepProof, ladder_timeout, run_ladder};
use super::step_outcome::{NOTHING_HELPED, StepDone, StepError};
use crate::attempt::RunEventSink as _;
use crate::health::{HealthEvent, examine};
use crate::store::StoreError;

/// How long one check may take; each has its own, shorter limit.
const CHECK: Duration = Duration::from_secs(20);

/// How long a board may take to come back. Zero in unit tests, whose boards are scripted.
const BACK: Duration = if cfg!(test) { Duration::ZERO } else { ENUMERATION };

/// How long a host may take until an emulator starts again. A host without the emulator waits as
/// long before the error.
const HOST: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 3 });

/// Pause between two checks for either.
const LOOK: Duration = Duration::from_millis(500);

/// Takes the steps for a run.
pub(super) struct Steps<'d, 'a> {
    dut: &'d mut Dut<'a>,
    /// Whether checks are recorded in the health store. Within a ladder only its outcome is.
    recorded: bool,
    /// How often the power device has not answered since the last pause.
    unanswered: u32,
    /// Whether the known-good image has passed.
    vouched: bool,
}

impl<'d, 'a> Steps<'d, 'a> {
    pub(super) fn new(dut: &'d mut Dut<'a>, recorded: bool) -> Self {
        Self { dut, recorded, unanswered: 0, vouched: false }
    }
}

/// A power device that did not answer this often is not asked again: each time costs its whole
/// time-out.
const SILENT: u32 = 2;

impl StepActions for Steps<'_, '_> {
    fn act(&mut self, step: RecoveryStep) -> BoxFuture<'_, Result<StepDone, StepError>> {
        Box::pin(self.take(step))
    }

    fn prove(&mut self, _step: RecoveryStep) -> BoxFuture<'_, StepProof> {
        Box::pin(async {
            match self.ask().await {
                Ok(detail) => StepProof { ok: true, detail },
                Err(error) => StepProof { ok: false, detail: chain(&error) },
            }
        })
    }

    fn again(&self, step: RecoveryStep, spent: Duration) -> Option<Duration> {
        // Only `wait` may help when repeated: what ends emulators or keeps a device away may be
        // over a moment later.
        let goes_on = step == RecoveryStep::Wait && spent < self.wait_timeout();
        goes_on.then(|| (spent / 2).clamp(LOOK / 2, LOOK * 4))
    }

    fn tell(&mut self, event: RecoveryEvent) {
        self.dut.events.emit(RunEvent::Recovery(event));
    }
}

impl Steps<'_, '_> {
    async fn take(&mut self, step: RecoveryStep) -> Result<StepDone, StepError> {
        match step {
            // The other place may have another power device.
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
            // Nothing is open between attempts: each attempt and each proof binds the place anew.
            RecoveryStep::Reopen => Ok(StepDone::Reopened),
            RecoveryStep::RestartEmulator => Ok(StepDone::EmulatorRestarted),
            RecoveryStep::Reset => self.reset().await,
            RecoveryStep::AttachUnderReset => self.attach_under_reset().await,
            RecoveryStep::ReflashKnownGood => match self.control().await? {
                KnownGoodResult::Passed(image) => Ok(StepDone::Reflashed(image)),
                KnownGoodResult::Failed(failure) | KnownGoodResult::Unreliable(failure) => {
                    Err(failure.into())
                }
                KnownGoodResult::None => Err(StepError::NoKnownGood),
                KnownGoodResult::Cancelled => Err(StepError::Cancelled),
            },
            RecoveryStep::PowerCycle => self.cycle(None).await,
            RecoveryStep::LongPowerCycle => {
                let off = self.dut.spec.profile.recovery.long_off;
                self.cycle(Some(off)).await
            }
            RecoveryStep::HubCycle => {
                let done = self.dut.environment.lab.cycle_hub(self.dut.place()).await?;
                self.comes_back().await;
                Ok(StepDone::HubCycled(done))
            }
            RecoveryStep::Wait => {
                self.comes_back().await;
                Ok(StepDone::Waited)
            }
            RecoveryStep::FailOver => self.fail_over().await,
            RecoveryStep::OutOfService => {
                self.dut.recorder.quarantine(self.dut.place(), NOTHING_HELPED);
                Ok(StepDone::OutOfService)
            }
        }
    }

    /// Fails if the power device has not answered several times before.
    fn power_answers(&self) -> Result<(), StepError> {
        if self.unanswered < SILENT { Ok(()) } else { Err(StepError::PowerSilent(SILENT)) }
    }

    /// Counts a failure of the power device.
    fn power_failed(&mut self, error: DriverError) -> StepError {
        if error.cause == Cause::PowerUnreachable {
            self.unanswered += 1;
        }
        error.into()
    }

    /// Checks the board itself. A board behind an outlet is powered first.
    pub(super) async fn examined(
        &mut self,
        place: &Arc<Place>,
    ) -> Result<Vec<CheckReport>, StepError> {
        self.power_answers()?;
        let mut bound = self.dut.bind(place)?;
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
        powered.map_err(|error| self.power_failed(error))?;
        ended.map_err(|error| self.power_failed(error))?;
        Ok(reports)
    }

    async fn reset(&mut self) -> Result<StepDone, StepError> {
        let place = Arc::clone(&self.dut.spec.place);
        let mut bound = self.dut.bind(&place)?;
        let done = async {
            // A driver can reset only a board that it has powered.
            let on = powered(&mut bound.protocols.power)?.on().await;
            on.map_err(|error| self.power_failed(error))?;
            match &mut bound.protocols.reset {
                Some(reset) => Ok(reset.reset().await?),
                None => Err(StepError::NoReset),
            }
        };
        let done = done.await;
        let ended = bound.end().await.map_err(|error| self.power_failed(error));
        done?;
        ended?;
        Ok(StepDone::Reset)
    }

    async fn attach_under_reset(&mut self) -> Result<StepDone, StepError> {
        let mut place = Place::clone(&self.dut.spec.place);
        let Some(probe) = &mut place.probe else {
            return Err(StepError::NoProbe);
        };
        probe.under_reset = true;
        let place = Arc::new(place);
        verdict_of(&self.examined(&place).await?)?;
        Ok(StepDone::AttachedUnderReset)
    }

    async fn cycle(&mut self, off_time: Option<Duration>) -> Result<StepDone, StepError> {
        let place = Arc::clone(&self.dut.spec.place);
        let mut bound = self.dut.bind(&place)?;
        let done = match powered(&mut bound.protocols.power) {
            Ok(power) => power.cycle(off_time).await.map_err(|error| self.power_failed(error)),
            Err(error) => Err(error),
        };
        let ended = bound.end().await.map_err(|error| self.power_failed(error));
        done?;
        ended?;
        Ok(StepDone::PowerCycled(off_time))
    }

    /// Returns how long the step `wait` lasts.
    fn wait_timeout(&self) -> Duration {
        if self.dut.spec.place.is_emulated() { HOST } else { BACK }
    }

    /// Waits until the checks of the host and of the board pass, or the time is over: the proof
    /// that follows decides.
    async fn comes_back(&mut self) {
        let place = Arc::clone(&self.dut.spec.place);
        let until = Instant::now() + self.wait_timeout();
        while Instant::now() < until {
            // After a pause the power device may answer again.
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
    async fn fail_over(&mut self) -> Result<StepDone, StepError> {
        let dut = &mut *self.dut;
        let here = dut.place().clone();
        let mut taken = Vec::new();
        for spare in dut.environment.spare.iter().filter(|spare| spare.place.name != here) {
            let there = &spare.place.name;
            match dut.environment.lab.claim(there).await {
                Ok(()) => {
                    dut.spec = spare.clone();
                    dut.live.note(|record| record.place = Some(there.clone()))?;
                    return Ok(StepDone::FailedOver { from: here, to: there.clone() });
                }
                Err(error) => taken.push(error),
            }
        }
        Err(StepError::NoSpare(taken))
    }

    /// Runs the known-good image.
    async fn control(&mut self) -> Result<KnownGoodResult, StoreError> {
        let control = self.dut.control().await?;
        self.vouched |= matches!(control, KnownGoodResult::Passed(_));
        Ok(control)
    }

    /// Checks the host and the place and runs the known-good image; returns what proves that the
    /// rig works.
    async fn ask(&mut self) -> Result<String, StepError> {
        self.power_answers()?;
        let mut reports =
            examine(&mut self.dut.environment.lab.host_checks(self.dut.place()), CHECK).await;
        let place = Arc::clone(&self.dut.spec.place);
        reports.extend(self.examined(&place).await?);
        for report in &reports {
            self.dut.events.emit(RunEvent::Health(report.clone()));
        }
        if self.recorded {
            let event = HealthEvent::Checked(reports.clone());
            self.dut.recorder.note(self.dut.place(), &event);
        }
        let mut proofs: Vec<String> = verdict_of(&reports)?.into_iter().collect();
        match self.control().await? {
            KnownGoodResult::Passed(image) => {
                self.dut.doubt(None).await;
                proofs.push(Note::KnownGoodPassed { image }.to_string());
            }
            KnownGoodResult::Failed(failure) => {
                self.dut.doubt(Some(1)).await;
                return Err(failure.into());
            }
            KnownGoodResult::Cancelled => return Err(StepError::Cancelled),
            // The checks alone prove it then.
            KnownGoodResult::None | KnownGoodResult::Unreliable(_) => {}
        }
        if proofs.is_empty() { Err(StepError::NoProof) } else { Ok(proofs.join("; ")) }
    }
}

fn powered(power: &mut Option<Box<dyn Power>>) -> Result<&mut Box<dyn Power>, StepError> {
    power.as_mut().ok_or(StepError::NoPower)
}

/// Returns the names of the checks if all passed and there are any, or the first that failed.
pub(super) fn verdict_of(reports: &[CheckReport]) -> Result<Option<String>, StepError> {
    if let Some(bad) = reports.iter().find(|report| !report.ok) {
        return Err(StepError::Check(bad.clone()));
    }
    let names: Vec<&str> = reports.iter().map(|report| report.check.as_str()).collect();
    Ok((!names.is_empty()).then(|| format!("{} passed", names.join(", "))))
}

impl Dut<'_> {
    /// Recovers the rig after a failure by the whole ladder.
    pub(super) async fn recover(&mut self, cause: Cause) -> LadderOutcome {
        let (spare, lab) = (self.environment.spare, self.environment.lab);
        let (rungs, timeout) = rungs(&self.spec, spare, lab, None);
        self.run_ladder(cause, &rungs, timeout).await
    }

    /// Runs a ladder and records its result.
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
        // A place that the run had to leave counts as not recovered.
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
        of_command: spec.place.name.chip().is_some(),
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
