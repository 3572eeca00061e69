//! `jig shell`: a shell that has a place, and gives it back when it ends.

use std::ffi::OsString;
use std::pin::pin;
use std::time::Duration;

use jig_drivers::process::{Ending, ForegroundRequest, run_in_foreground};
use jig_lab::{LEASE_KEPT, LEASE_RENEWAL, LEASE_UNRENEWED};
use jig_model::lease::{LeaseAnswer, LeaseAsk, LeaseNamed, LeaseOrder, LeaseState, LeaseView};
use jig_model::{Fault, LeaseId, exit};
use jig_rig::console::escape;
use jig_rig::leases::{LeaseError, new_lease_id};
use jig_rig::workflow::CancelToken;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::held::ShellBoard;
use super::{active, ask_for, release};
use crate::args::{Common, ShellArgs, ms};
use crate::commands::execute::unexpected;
use crate::commands::rig::{OpenRig, stopped};
use crate::commands::runtime::until_signalled;
use crate::failure::Failure;
use crate::render::Screen;

/// Runs a shell, or the command that is given, with a place of its own. Ends with its exit code, or
/// with that of the rig if the lease was lost meanwhile.
pub(crate) fn shell(common: &Common, screen: &Screen, args: ShellArgs) -> Result<u8, Failure> {
    let rig = OpenRig::open(common)?;
    until_signalled(async |cancel| {
        let (lease, own) = lease_for(&rig, screen, &args, common.lease.as_ref(), &cancel).await?;
        let ended = with_board(common, &rig, screen, &args, (&lease, own), &cancel).await;
        if own == LeaseOf::User {
            // It was there before the shell, and the user gives it back.
            return ended.map(|(code, lost)| if lost { exit::LAB } else { code });
        }
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

/// Whose lease a shell runs under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseOf {
    /// Made for the shell, and given back with it.
    Shell,
    /// The user had it before, and keeps it.
    User,
}

/// Returns the lease that the user names or has, where it is for a place that would do, or gets one for
/// the shell. One that is not named is used only where all other places are taken.
async fn lease_for(
    rig: &OpenRig,
    screen: &Screen,
    args: &ShellArgs,
    named: Option<&LeaseId>,
    cancel: &CancelToken,
) -> Result<(LeaseView, LeaseOf), Failure> {
    let own = async |named: Option<LeaseId>| {
        let need = args.wanted.board.clone();
        match rig.lease(LeaseOrder::Own { need, named }).await {
            Ok(LeaseAnswer::Lease { lease }) => Some((lease, LeaseOf::User)),
            // A rig of an older version does not know the question.
            Ok(LeaseAnswer::List { .. }) | Err(_) => None,
        }
    };
    if let Some(id) = named {
        let asked = LeaseOrder::Poll(LeaseNamed::Lease(id.clone()));
        if let LeaseAnswer::Lease { lease } = rig.lease(asked).await?
            && let LeaseState::Ended { why, .. } = lease.state
        {
            return Err(LeaseError::Ended { id: id.clone(), why }.into());
        }
        if let Some(lease) = own(Some(id.clone())).await {
            return Ok(lease);
        }
    }
    // Only commands within the shell use it: the user may have another shell for another place.
    let ask = args.wanted.ask(new_lease_id());
    let ask = LeaseAsk { ttl_ms: Some(ms(LEASE_KEPT)), by_id: true, kept: true, ..ask };
    if let LeaseAnswer::Lease { lease } = rig.lease(LeaseOrder::Ask(ask.clone())).await? {
        match &lease.state {
            LeaseState::Active { .. } => return Ok((lease, LeaseOf::Shell)),
            LeaseState::Queued { .. } => {
                if let Some(had) = own(None).await {
                    rig.lease(release(lease.id)).await?;
                    return Ok(had);
                }
            }
            LeaseState::Ended { .. } => {}
        }
    }
    Ok((ask_for(rig, screen, ask, args.wanted.wait, cancel).await?, LeaseOf::Shell))
}

/// Runs the shell, with the board held if there is an image for it.
async fn with_board(
    common: &Common,
    rig: &OpenRig,
    screen: &Screen,
    args: &ShellArgs,
    of: (&LeaseView, LeaseOf),
    cancel: &CancelToken,
) -> Result<(u8, bool), Failure> {
    let Some(image) = args.image.clone() else {
        return keep(rig, screen, args, of, cancel).await;
    };
    let board = ShellBoard::new(common, screen, of.0, image)?;
    // The board outlives a signal to the shell, which ends by it, and is released behind the shell.
    let release = CancelToken::new();
    let mut holding = pin!(board.hold(release.clone()));
    tokio::select! {
        ended = &mut holding => return Err(ended.err().unwrap_or_else(unexpected)),
        () = board.is_held() => {}
        () = cancel.cancelled() => {
            release.cancel();
            holding.await?;
            return Err(stopped());
        }
    }
    let mut shell = pin!(keep(rig, screen, args, of, cancel));
    let ended = tokio::select! {
        ended = &mut shell => ended,
        released = &mut holding => {
            let why = released.err().map_or_else(|| "it was released".to_owned(), |f| f.message);
            screen.insist(&format!("the board is not held any more: {}", escape(why.as_bytes())));
            return shell.await;
        }
    };
    release.cancel();
    if let Err(failure) = holding.await {
        screen.insist(&format!("the board: {}", escape(failure.message.as_bytes())));
    }
    ended
}

/// Runs the shell; returns its exit code and whether the lease was lost meanwhile.
async fn keep(
    rig: &OpenRig,
    screen: &Screen,
    args: &ShellArgs,
    (lease, own): (&LeaseView, LeaseOf),
    cancel: &CancelToken,
) -> Result<(u8, bool), Failure> {
    let (place, _) = active(lease)?;
    let (program, command) = match args.command.split_first() {
        Some((program, args)) => (program.clone(), args.to_vec()),
        None => {
            screen.say(&match own {
                LeaseOf::Shell => format!("{place} is yours in this shell; `exit` gives it back"),
                LeaseOf::User => format!(
                    "{place} is yours by lease {id}, which `exit` leaves as it is; give it back: jig \
                     lease release {id}",
                    id = lease.id
                ),
            });
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
    // The user's lease may be about to end.
    let first = if own == LeaseOf::User { Duration::ZERO } else { LEASE_RENEWAL };
    let mut renewals = interval_at(Instant::now() + first, LEASE_RENEWAL);
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
