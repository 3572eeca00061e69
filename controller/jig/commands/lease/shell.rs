//! `jig shell`: a shell that has a place, and gives it back when it ends.

use std::ffi::OsString;
use std::pin::pin;

use jig_drivers::process::{Ending, ForegroundRequest, run_in_foreground};
use jig_lab::{LEASE_KEPT, LEASE_RENEWAL, LEASE_UNRENEWED};
use jig_model::lease::{LeaseAnswer, LeaseAsk, LeaseNamed, LeaseOrder, LeaseState, LeaseView};
use jig_model::{Fault, LeaseId, exit};
use jig_rig::console::escape;
use jig_rig::leases::new_lease_id;
use jig_rig::workflow::CancelToken;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::{active, ask_for, release};
use crate::args::{Common, ShellArgs, ms};
use crate::commands::rig::OpenRig;
use crate::commands::runtime::until_signalled;
use crate::failure::Failure;
use crate::render::Screen;

/// Runs a shell, or the command that is given, with a place of its own. Ends with its exit code, or
/// with that of the rig if the lease was lost meanwhile.
pub(crate) fn shell(common: &Common, screen: &Screen, args: ShellArgs) -> Result<u8, Failure> {
    let rig = OpenRig::open(common)?;
    until_signalled(async |cancel| {
        // Only commands within the shell use it: the user may have another shell for another place.
        let ask = args.wanted.ask(new_lease_id());
        let ask = LeaseAsk { ttl_ms: Some(ms(LEASE_KEPT)), by_id: true, kept: true, ..ask };
        let lease = ask_for(&rig, screen, ask, args.wanted.wait, &cancel).await?;
        let ended = keep(&rig, screen, &args, &lease, &cancel).await;
        // A rig that cannot be reached ends the lease by itself.
        let given_back = timeout(LEASE_RENEWAL, rig.lease(release(lease.id.clone()))).await;
        match (ended, given_back) {
            (Ok((_, true)), _) => Ok(exit::LAB),
            (Ok((code, false)), Ok(Ok(_))) => Ok(code),
            (Ok((code, false)), Ok(Err(_)) | Err(_)) => {
                screen.say(&format!("the lease was not given back; it ends in {LEASE_KEPT:?}"));
                Ok(code)
            }
            (Err(failure), _) => Err(failure),
        }
    })
}

/// Runs the shell; returns its exit code and whether the lease was lost meanwhile.
async fn keep(
    rig: &OpenRig,
    screen: &Screen,
    args: &ShellArgs,
    lease: &LeaseView,
    cancel: &CancelToken,
) -> Result<(u8, bool), Failure> {
    let (place, _) = active(lease)?;
    let (program, command) = match args.command.split_first() {
        Some((program, args)) => (program.clone(), args.to_vec()),
        None => {
            screen.say(&format!("{place} is yours in this shell; `exit` gives it back"));
            let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
            (shell.unwrap_or_else(|| "/bin/sh".into()), Vec::new())
        }
    };
    let env: Vec<(OsString, OsString)> = vec![
        ("JIG_LEASE".into(), lease.id.as_str().into()),
        ("JIG_BOARD".into(), place.as_str().into()),
    ];
    let request = ForegroundRequest { program, args: command, env };
    let mut shell = pin!(run_in_foreground(request, cancel.cancelled()));
    let mut renewals = interval_at(Instant::now() + LEASE_RENEWAL, LEASE_RENEWAL);
    renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut lost, mut kept) = (false, Instant::now());
    let ended = loop {
        tokio::select! {
            ended = &mut shell => break ended,
            _ = renewals.tick(), if !lost => {}
        }
        let why = match renew(rig, &lease.id).await {
            Renewal::Kept => {
                kept = Instant::now();
                continue;
            }
            Renewal::Failed(_) if kept.elapsed() < LEASE_UNRENEWED => continue,
            Renewal::Failed(why) | Renewal::Ended(why) => why,
        };
        let why = escape(why.as_bytes());
        screen.insist(&format!("{place} is not yours any more: {why}"));
        lost = true;
    };
    let code = match ended.map_err(|error| Failure::of(Fault::Usage, &error))? {
        Ending::Exited(code) => u8::try_from(code).unwrap_or(exit::FAIL),
        // As shells tell it.
        Ending::Signalled(signal) => 128u8.saturating_add(u8::try_from(signal as i32).unwrap_or(0)),
    };
    Ok((code, lost))
}

/// What came of keeping a lease.
enum Renewal {
    Kept,
    /// It has ended, for this reason.
    Ended(String),
    /// Whether it still is one is not known, for this reason.
    Failed(String),
}

async fn renew(rig: &OpenRig, lease: &LeaseId) -> Renewal {
    let order = LeaseOrder::Renew { lease: lease.clone(), for_ms: ms(LEASE_KEPT) };
    let ask = async {
        let Err(failure) = rig.lease(order).await else { return Renewal::Kept };
        let look = LeaseOrder::Poll(LeaseNamed::Lease(lease.clone()));
        match rig.lease(look).await {
            Ok(LeaseAnswer::Lease { lease }) => match lease.state {
                LeaseState::Ended { why, .. } => Renewal::Ended(why.to_string()),
                LeaseState::Active { .. } | LeaseState::Queued { .. } => {
                    Renewal::Failed(failure.message)
                }
            },
            Ok(LeaseAnswer::List { .. }) | Err(_) => Renewal::Failed(failure.message),
        }
    };
    let asked = timeout(LEASE_RENEWAL, ask).await;
    asked.unwrap_or_else(|_| Renewal::Failed("the rig does not answer".to_owned()))
}
