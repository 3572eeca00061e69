//! Leases of this host's places: what users ask of them, and the right of a command to its place.
//!
//! # Design
//! *A command needs no lease where no user has asked for one.* It asks whether the place is leased,
//! and goes on if not; the lock of the place keeps commands apart, as ever. Where the place is leased
//! or others wait for it, a command that may wait asks for a lease of its own and stands in the queue
//! like everyone.
//!
//! *A lease does not end while a command runs under it.* The command renews it; if another user has
//! ended it, the command is cancelled. A command that keeps the board of a lease powered is the other way
//! round: it renews nothing, and ends when the lease has ended.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use jig_model::command::{AttachInput, Command, CommandEvent, EventSink, PowerAction};
use jig_model::lease::{
    LeaseAnswer, LeaseAsk, LeaseNamed, LeaseOrder, LeaseState, LeaseView, PlaceSelector,
};
use jig_model::{LeaseId, PlaceName, chain};
use jig_rig::audit::AuditLease;
use jig_rig::health::HealthState;
use jig_rig::leases::{
    Admission, Fitness, LeasablePlace, LeaseError, RigLeases, has_leases, new_lease_id,
};
use jig_rig::store::PlaceLock;
use jig_rig::workflow::CancelToken;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::{Catalogue, Lab, health_subject};

/// How long a lease is kept beyond the last word of the process that keeps it: a host that is too
/// busy for a minute is not one that tests run on.
pub const KEPT: Duration = Duration::from_secs(60);

/// How often it is renewed: several times within that time, so that a failure or two do no harm.
pub const RENEWAL: Duration = Duration::from_secs(15);

/// How often a command that ends with its lease looks whether it has ended: who comes next waits for it.
const LEASE_LOOK: Duration = Duration::from_millis(500);

/// How long the keeper of a lease goes on without having renewed it: two thirds of that time, by the
/// keeper's own clock, so that it has stopped before another user may begin.
pub const UNRENEWED: Duration = Duration::from_secs(40);

/// Pause between two looks at the queue by the user who is next, and the longest pause. A place that is given
/// back is the next user's at once, who sees it half a pause later; users behind look the less often the more
/// there are before them, so a long queue costs little more than a short one.
const LOOK: Duration = Duration::from_millis(20);
const LONGEST_LOOK: Duration = Duration::from_millis(250);

/// How long a run waits for its place.
const RUN_WAIT: Duration = Duration::from_secs(30);

/// The leases of a rig at one moment.
#[derive(Debug, Clone, Default)]
pub struct LeaseOverview {
    /// The active lease of each place that has one.
    pub active: BTreeMap<PlaceName, LeaseView>,
    /// Who waits, in order.
    pub queue: Vec<LeaseView>,
    /// How many of the queue each place would do for.
    pub waiting: BTreeMap<PlaceName, usize>,
}

impl Catalogue {
    /// Answers what the user asks of the leases, who is known to have the right. Waits for the disk and
    /// for other processes.
    pub(crate) fn answer_lease(&self, order: &LeaseOrder) -> Result<LeaseAnswer, LeaseError> {
        self.with_leases(|leases| leases.answer(self.user(), order))
    }

    /// Lists the leases of all places, and who waits. Without a lease that was ever asked for, the
    /// answer is empty and no store is begun.
    ///
    /// # Errors
    /// The store cannot be used.
    pub fn leases(&self) -> Result<LeaseOverview, LeaseError> {
        self.overview(|answer| answer)
    }

    /// Lists the leases of the places that the user may see, and who waits for those.
    ///
    /// # Errors
    /// As [`Catalogue::leases`].
    pub(crate) fn visible_leases(&self) -> Result<LeaseOverview, LeaseError> {
        self.overview(|answer| self.visible(answer))
    }

    fn overview(
        &self,
        filtered: impl FnOnce(LeaseAnswer) -> LeaseAnswer,
    ) -> Result<LeaseOverview, LeaseError> {
        if !has_leases(&self.lease_store()) {
            return Ok(LeaseOverview::default());
        }
        let listed = filtered(self.answer_lease(&LeaseOrder::List)?);
        let LeaseAnswer::List { places, queue, .. } = listed else {
            return Ok(LeaseOverview::default());
        };
        let mut waiting = BTreeMap::new();
        for place in self.leasable() {
            let fits = queue.iter().filter(|lease| lease.need.fits(&place.traits)).count();
            waiting.insert(place.traits.place, fits);
        }
        let active = places.into_iter().filter_map(|at| Some((at.place, at.lease?)));
        Ok(LeaseOverview { active: active.collect(), queue, waiting })
    }

    /// Tells whether the user of this process may use a place now; `lock` tells that no other process
    /// does.
    pub(crate) fn admission(
        &self,
        place: &PlaceName,
        lock: Option<&PlaceLock>,
    ) -> Result<Admission, LeaseError> {
        if !has_leases(&self.lease_store()) {
            return match &self.user().lease {
                None => Ok(Admission::Free),
                Some(id) => Err(LeaseError::Unknown(id.clone())),
            };
        }
        self.with_leases(|leases| leases.admit(self.user(), place, lock))
    }

    fn with_leases<T>(
        &self,
        work: impl FnOnce(&RigLeases<'_>) -> Result<T, LeaseError>,
    ) -> Result<T, LeaseError> {
        let store = self.stores().leases(&self.lease_store())?;
        let (locks, places) = (self.places(), self.leasable());
        let policy = &self.rig.leases;
        let access = &self.rig.access;
        work(&RigLeases { store: &store, locks: &locks, policy, places: &places, access })
    }

    /// Lists the places with what they are selected by and how well they would do.
    pub(crate) fn leasable(&self) -> Vec<LeasablePlace> {
        let health = self.known_health();
        let places = self.rig.places.iter().enumerate().filter_map(|(number, place)| {
            let fitness = match health.get(number).copied().flatten() {
                None | Some(HealthState::Healthy) => Fitness::Healthy,
                Some(state) if state.usable() => Fitness::Suspect,
                Some(_) => Fitness::OutOfService,
            };
            let traits = self.traits(place)?;
            Some(LeasablePlace { traits, fitness })
        });
        places.collect()
    }

    /// Lists how each place of the rig is, in one look. Without notes that can be read nothing is known.
    fn known_health(&self) -> Vec<Option<HealthState>> {
        let path = self.health_store();
        // To look begins no store.
        let Some(store) = path.exists().then(|| self.stores().health(&path).ok()).flatten() else {
            return Vec::new();
        };
        let places = &self.rig.places;
        let subjects: Vec<_> = places.iter().map(health_subject).collect();
        let asked: Vec<_> = places.iter().map(|place| &place.name).zip(&subjects).collect();
        let known = store.of_all(&asked).unwrap_or_default();
        known.into_iter().map(|health| health.ok().map(|health| health.state)).collect()
    }
}

/// Asks for a lease until it has a place or `wait` is over; then it leaves the queue. `ask` carries a
/// question to the rig; `queued` is told the lease whenever its position changes.
///
/// # Errors
/// It is refused, no place was free in time, or the caller cancelled.
pub async fn acquire<E: From<LeaseError>, A: Future<Output = Result<LeaseAnswer, E>>>(
    ask: LeaseAsk,
    wait: Duration,
    cancel: &CancelToken,
    mut order: impl FnMut(LeaseOrder) -> A,
    mut queued: impl FnMut(&LeaseView),
) -> Result<LeaseView, E> {
    let (began, id) = (Instant::now(), ask.lease.clone());
    let (mut question, mut told) = (LeaseOrder::Ask(ask), None);
    let leave = || LeaseOrder::Release(LeaseNamed::Lease(id.clone()));
    loop {
        let LeaseAnswer::Lease { lease } = order(question).await? else {
            return Err(LeaseError::Unknown(id).into());
        };
        let position = match &lease.state {
            LeaseState::Active { .. } => return Ok(lease),
            LeaseState::Ended { why, .. } => {
                return Err(LeaseError::Ended { id, why: why.clone() }.into());
            }
            LeaseState::Queued { position, .. } => *position,
        };
        let waited = began.elapsed();
        if waited >= wait {
            order(leave()).await?;
            return Err(LeaseError::NotInTime { waited: wait, position }.into());
        }
        if told != Some(position) {
            queued(&lease);
            told = Some(position);
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                order(leave()).await?;
                return Err(LeaseError::Cancelled.into());
            }
            () = sleep(pause(position).min(wait.saturating_sub(waited))) => {}
        }
        question = LeaseOrder::Poll(LeaseNamed::Lease(id.clone()));
    }
}

/// Returns how long one at a position of the queue, from 1, waits before it looks again.
fn pause(position: usize) -> Duration {
    LOOK.saturating_mul(u32::try_from(position.max(1)).unwrap_or(u32::MAX)).min(LONGEST_LOOK)
}

/// What a command does with its place, as far as others are concerned.
enum Claim {
    /// Nothing: it looks.
    None,
    /// It uses the place, and waits for it for so long.
    Use(Duration),
}

/// Tells what a command does with its place.
fn claim(command: &Command) -> Claim {
    let within = |ms: u64| Claim::Use(Duration::from_millis(ms));
    match command {
        Command::Run(_)
        | Command::Test(_)
        | Command::Shell(_)
        | Command::Console(_)
        | Command::Recover(_) => Claim::Use(RUN_WAIT),
        Command::Attach(attach) => match (attach.input, &attach.boot) {
            (AttachInput::None, _) => Claim::None,
            (_, Some(_)) => Claim::Use(RUN_WAIT),
            (_, None) => Claim::Use(Duration::ZERO),
        },
        Command::LineControl(_) => Claim::Use(Duration::ZERO),
        Command::RecoverySteps(_) => Claim::None,
        Command::Power(power) => match power.action {
            PowerAction::Status | PowerAction::Explain => Claim::None,
            PowerAction::On | PowerAction::Off | PowerAction::Cycle | PowerAction::Verify => {
                within(power.wait_ms)
            }
        },
        Command::Check(check) => within(check.wait_ms.unwrap_or(0)),
        Command::Flash(flash) => within(flash.probe.wait_ms),
        Command::Erase(erase) => within(erase.probe.wait_ms),
        Command::Reset(reset) => within(reset.probe.wait_ms),
        Command::Debug(debug) => within(debug.probe.wait_ms),
        Command::ServeProbe(serve) => within(serve.wait_ms),
        Command::Hold(hold) => within(hold.wait_ms),
    }
}

/// The right of a command to use its place.
pub(crate) struct Permit<'l> {
    lab: &'l Lab,
    /// The lease that it runs under.
    lease: Option<LeaseId>,
    /// Its token.
    token: u64,
    /// How the lease and the command depend on each other.
    tie: LeaseTie,
}

/// How a lease and a command that runs under it depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseTie {
    /// The lease is the user's, and does not end while the command runs.
    Renewed,
    /// The lease is the command's own, and ends with it.
    Own,
    /// The command ends with the lease.
    Followed,
}

impl Lab {
    /// Takes the right to use the place of a command, waiting for as long as the command may.
    pub(crate) async fn permit(
        &self,
        command: &Command,
        events: &dyn EventSink,
        cancel: &CancelToken,
    ) -> Result<Permit<'_>, LeaseError> {
        let none = Permit { lab: self, lease: None, token: 0, tie: LeaseTie::Renewed };
        let Claim::Use(wait) = claim(command) else { return Ok(none) };
        let (place, catalogue) = (command.place(), self.catalogue());
        if catalogue.rig.place(place.as_str()).is_err() {
            // The command says so.
            return Ok(none);
        }
        let refused = match catalogue.admission(place, None) {
            Ok(Admission::Free) => return Ok(none),
            Ok(Admission::Own { id, token }) => {
                let tie = match command {
                    Command::Hold(hold) if hold.ends_with_lease => LeaseTie::Followed,
                    _ => LeaseTie::Renewed,
                };
                return Ok(Permit { lab: self, lease: Some(id), token, tie });
            }
            Err(refused) => refused,
        };
        let waits = matches!(refused, LeaseError::Leased { .. } | LeaseError::QueuedAhead { .. });
        if !waits || wait.is_zero() || catalogue.user().lease.is_some() {
            return Err(refused);
        }
        events.event(CommandEvent::Waiting { place: place.clone(), holder: refused.others() });
        let ask = LeaseAsk {
            lease: new_lease_id(),
            need: PlaceSelector::of_place(place),
            ttl_ms: Some(ms(KEPT)),
            class: None,
            comment: None,
            by_id: false,
            kept: true,
        };
        let order = |order| std::future::ready(catalogue.answer_lease(&order));
        let got = acquire(ask, wait, cancel, order, |lease| {
            if let LeaseState::Queued { position, .. } = lease.state {
                let holder = format!("others; position {position} in the queue");
                events.event(CommandEvent::Waiting { place: place.clone(), holder });
            }
        });
        let got = got.await?;
        let token = match got.state {
            LeaseState::Active { token, .. } => token,
            LeaseState::Queued { .. } | LeaseState::Ended { .. } => 0,
        };
        Ok(Permit { lab: self, lease: Some(got.id), token, tie: LeaseTie::Own })
    }
}

impl Permit<'_> {
    /// Returns the lease that the command runs under, for the audit log.
    pub(crate) fn noted(&self) -> Option<AuditLease> {
        let id = self.lease.clone()?;
        Some(AuditLease { id, token: self.token })
    }

    /// Carries out a command, and cancels it if the lease that it runs under is ended by another user.
    pub(crate) async fn during<R>(
        &self,
        mut work: Pin<Box<impl Future<Output = R>>>,
        events: &dyn EventSink,
        cancel: &CancelToken,
    ) -> R {
        let Some(lease) = &self.lease else { return work.await };
        let mut renewals = interval(match self.tie {
            LeaseTie::Renewed | LeaseTie::Own => RENEWAL,
            LeaseTie::Followed => LEASE_LOOK,
        });
        renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut kept, mut renewed) = (true, Instant::now());
        loop {
            tokio::select! {
                ended = &mut work => return ended,
                _ = renewals.tick(), if kept => {}
            }
            let holds = match self.tie {
                LeaseTie::Renewed | LeaseTie::Own => self.renew(lease, Some(KEPT)),
                LeaseTie::Followed => self.look_at(lease),
            };
            let why = match holds {
                Ok(()) => {
                    renewed = Instant::now();
                    continue;
                }
                Err(LeaseError::Ended { why, .. }) => why.to_string(),
                Err(error) if renewed.elapsed() < UNRENEWED => {
                    tracing::warn!(%lease, error = chain(&error), "the lease was not renewed");
                    continue;
                }
                Err(error) => chain(&error),
            };
            events.event(CommandEvent::LeaseLost { lease: lease.clone(), why });
            cancel.cancel();
            kept = false;
        }
    }

    /// Tells by an error that a lease has ended.
    fn look_at(&self, lease: &LeaseId) -> Result<(), LeaseError> {
        let named = LeaseOrder::Poll(LeaseNamed::Lease(lease.clone()));
        match self.lab.catalogue().answer_lease(&named)? {
            LeaseAnswer::Lease { lease: LeaseView { id, state, .. } } => match state {
                LeaseState::Ended { why, .. } => Err(LeaseError::Ended { id, why }),
                LeaseState::Active { .. } | LeaseState::Queued { .. } => Ok(()),
            },
            LeaseAnswer::List { .. } => Err(LeaseError::Unknown(lease.clone())),
        }
    }

    fn renew(&self, lease: &LeaseId, time: Option<Duration>) -> Result<(), LeaseError> {
        let catalogue = self.lab.catalogue();
        catalogue.with_leases(|leases| leases.use_lease(catalogue.user(), lease, time.map(ms)))
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let Some(lease) = &self.lease else { return };
        let catalogue = self.lab.catalogue();
        let given_back = match self.tie {
            LeaseTie::Followed => return,
            LeaseTie::Renewed => self.renew(lease, None),
            LeaseTie::Own => {
                let release = LeaseOrder::Release(LeaseNamed::Lease(lease.clone()));
                catalogue.answer_lease(&release).map(drop)
            }
        };
        match given_back {
            Ok(()) | Err(LeaseError::Ended { .. }) => {}
            Err(error) => tracing::warn!(%lease, error = chain(&error), "the lease is left to end"),
        }
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
