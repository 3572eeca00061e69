//! `jig lease`: the exclusive use of places, and who is next.

mod held;
mod list;
mod shell;

use std::time::Duration;

use jiff::Timestamp;
use jig_lab::acquire;
use jig_model::lease::{LeaseAnswer, LeaseAsk, LeaseNamed, LeaseOrder, LeaseState, LeaseView};
use jig_model::{Fault, LeaseId, PlaceName, exit};
use jig_rig::console::escape;
use jig_rig::leases::new_lease_id;
use jig_rig::workflow::CancelToken;
use serde_json::json;

pub(crate) use self::shell::shell;
use super::execute::unexpected;
use super::rig::OpenRig;
use super::runtime::until_signalled;
use crate::args::{Common, LeaseCommand};
use crate::failure::Failure;
use crate::render::{Screen, rest};

/// Does what is asked of leases.
///
/// JSON of all but `ls`: the lease as `{"id","owner","need","class","comment","by_id","asked",
/// "state"}`; `state` has `state` (`queued`, `active`, `ended`) and what belongs to it.
pub(crate) fn lease(
    common: &Common,
    screen: &Screen,
    command: LeaseCommand,
) -> Result<u8, Failure> {
    let rig = OpenRig::open(common)?;
    let named = |of: Option<LeaseNamed>| {
        of.or_else(|| common.lease.clone().map(LeaseNamed::Lease)).ok_or_else(|| {
            let words = "no lease is named";
            Failure::new(Fault::Usage, words)
                .help("name a lease or a place; `jig lease ls` shows them")
        })
    };
    let order = match command {
        LeaseCommand::Acquire(args) => {
            let ask = args.ask(new_lease_id());
            let image = args.image.clone();
            let lease = until_signalled(async |cancel| {
                let lease = ask_for(&rig, screen, ask, args.wanted.wait, &cancel).await?;
                if let Some(image) = image
                    && let Err(failure) =
                        held::hold_until_end(common, screen, &lease, image, &cancel).await
                {
                    // A lease without its board is not what was asked for.
                    let _ = rig.lease(release(lease.id)).await;
                    return Err(failure);
                }
                Ok(lease)
            })?;
            let (place, until) = active(&lease)?;
            if screen.json() {
                screen.out_json(&json!(lease));
                return Ok(exit::PASS);
            }
            let (id, left) = (&lease.id, rest(Timestamp::now(), until));
            screen.out(id.as_str());
            let by_id = if args.by_id { format!("JIG_LEASE={id} ") } else { String::new() };
            let way = match args.image {
                None => format!("use it: {by_id}jig run -b {place} app.elf"),
                Some(_) => format!("its board is powered as long: {by_id}jig console -b {place}"),
            };
            screen.say(&format!(
                "{place} is yours for {left}; {way}; give it back: jig lease release {id}"
            ));
            return Ok(exit::PASS);
        }
        LeaseCommand::Ls => return list::list(&rig, screen),
        LeaseCommand::Extend { of, by } => {
            LeaseOrder::Extend { of: named(of)?, by_ms: crate::args::ms(by) }
        }
        LeaseCommand::Release { of } => LeaseOrder::Release(named(of)?),
        LeaseCommand::Steal { place, why } => LeaseOrder::Steal { place, why },
    };
    let LeaseAnswer::Lease { lease } = until_signalled(async |_| rig.lease(order).await)? else {
        return Err(unexpected());
    };
    if screen.json() {
        screen.out_json(&json!(lease));
        return Ok(exit::PASS);
    }
    let id = &lease.id;
    screen.say(&match &lease.state {
        LeaseState::Active { place, until, .. } => {
            format!("{place} is yours for {}", rest(Timestamp::now(), *until))
        }
        LeaseState::Queued { position, .. } => {
            format!("lease {id} waits; position {position} in the queue")
        }
        LeaseState::Ended { place, why, .. } => {
            let owner = escape(lease.owner.as_bytes());
            let place = place.as_ref().map_or_else(String::new, |place| format!(" for {place}"));
            let why = escape(why.to_string().as_bytes()).to_string();
            format!("lease {id}{place} of {owner} has ended: {why}")
        }
    });
    Ok(exit::PASS)
}

/// Asks for a lease until it has a place or `wait` is over.
async fn ask_for(
    rig: &OpenRig,
    screen: &Screen,
    ask: LeaseAsk,
    wait: Duration,
    cancel: &CancelToken,
) -> Result<LeaseView, Failure> {
    let order = |order| rig.lease(order);
    acquire(ask, wait, cancel, order, |lease| {
        let LeaseState::Queued { position, expected } = &lease.state else { return };
        let expected = expected.map_or_else(String::new, |at| {
            format!("; at the latest in {} if no lease is extended", rest(Timestamp::now(), at))
        });
        screen.say(&format!("position {position} in the queue{expected}"));
    })
    .await
}

/// Returns the place of a lease that has one, and when the lease ends.
fn active(lease: &LeaseView) -> Result<(&PlaceName, Timestamp), Failure> {
    match &lease.state {
        LeaseState::Active { place, until, .. } => Ok((place, *until)),
        LeaseState::Queued { .. } | LeaseState::Ended { .. } => Err(unexpected()),
    }
}

/// Asks for the release of a lease.
fn release(lease: LeaseId) -> LeaseOrder {
    LeaseOrder::Release(LeaseNamed::Lease(lease))
}
