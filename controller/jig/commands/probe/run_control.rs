//! `jig reset`, `halt`, `resume`, `step` and `bp`.

use std::time::Duration;

use jig_model::{Fault, exit};
use jig_probe::{CoreState, HaltReason, Leave, ResetInto};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::help::failed;
use super::port::{Lasting, Port, with_port};
use crate::args::{BpArgs, Common, ProbeTarget, ResetArgs, StepArgs, number};
use crate::failure::Failure;
use crate::render::{Screen, one_line};

/// How often a running core is asked whether it has reached a breakpoint.
const LOOK: Duration = Duration::from_millis(10);

/// Resets a board.
pub(crate) fn reset(common: &Common, screen: &Screen, args: ResetArgs) -> Result<u8, Failure> {
    let lasting = if args.halt { Lasting::Board } else { Lasting::Flash };
    with_port(common, screen, "reset", &args.at, lasting, async |port: &Port| {
        let (into, leave) = match args.halt {
            true => (ResetInto::Halt, Leave::Halted),
            false => (ResetInto::Run, Leave::Running),
        };
        port.handle.reset(into).await.map_err(|error| failed(&error, &port.place))?;
        tell_state(screen, port).await?;
        Ok((exit::PASS, leave))
    })
}

/// Stops a board's core.
pub(crate) fn halt(common: &Common, screen: &Screen, at: ProbeTarget) -> Result<u8, Failure> {
    with_port(common, screen, "halt", &at, Lasting::Board, async |port: &Port| {
        port.handle.halt().await.map_err(|error| failed(&error, &port.place))?;
        tell_state(screen, port).await?;
        Ok((exit::PASS, Leave::Halted))
    })
}

/// Lets a halted core go on.
pub(crate) fn resume(common: &Common, screen: &Screen, at: ProbeTarget) -> Result<u8, Failure> {
    with_port(common, screen, "resume", &at, Lasting::Board, async |port: &Port| {
        port.handle.run().await.map_err(|error| failed(&error, &port.place))?;
        tell_state(screen, port).await?;
        Ok((exit::PASS, Leave::Running))
    })
}

/// Executes single instructions.
pub(crate) fn step(common: &Common, screen: &Screen, args: StepArgs) -> Result<u8, Failure> {
    with_port(common, screen, "step", &args.at, Lasting::Board, async |port: &Port| {
        for _ in 0..args.count {
            port.handle.step().await.map_err(|error| failed(&error, &port.place))?;
        }
        tell_state(screen, port).await?;
        Ok((exit::PASS, Leave::Halted))
    })
}

/// Runs to a breakpoint. Ends with the code of a failed target if it was not reached.
pub(crate) fn breakpoint(common: &Common, screen: &Screen, args: BpArgs) -> Result<u8, Failure> {
    with_port(common, screen, "bp", &args.at, Lasting::Flash, async |port: &Port| {
        let told = |error| failed(&error, &port.place);
        let address = match number(&args.location) {
            Ok(address) => address,
            Err(_) => port.function(&args.location, args.image.as_deref())?,
        };
        if args.reset {
            port.handle.reset(ResetInto::Halt).await.map_err(told)?;
        }
        port.handle.set_breakpoint(address).await.map_err(told)?;
        if let CoreState::Halted { .. } = port.handle.state().await.map_err(told)? {
            port.handle.run().await.map_err(told)?;
        }
        let deadline = Instant::now() + args.timeout;
        let reached = loop {
            match port.handle.state().await.map_err(told)? {
                CoreState::Halted { reason: HaltReason::Breakpoint, pc } if pc == address => {
                    break true;
                }
                CoreState::Halted { .. } | CoreState::LockedUp => break false,
                CoreState::Running | CoreState::Sleeping if Instant::now() >= deadline => {
                    break false;
                }
                CoreState::Running | CoreState::Sleeping => sleep(LOOK).await,
            }
        };
        port.handle.clear_breakpoint(address).await.map_err(told)?;
        tell_state(screen, port).await?;
        if !reached {
            let words = format!("{address:#010x} was not reached in {:?}", args.timeout);
            return Err(Failure::new(Fault::Target, words)
                .help(format!("see where it is instead: jig bt -b {}", port.place)));
        }
        Ok((exit::PASS, Leave::Halted))
    })
}

/// Says what the core does. JSON: `{"place","chip","state",...}`.
pub(super) async fn tell_state(screen: &Screen, port: &Port) -> Result<(), Failure> {
    let state = port.handle.state().await.map_err(|error| failed(&error, &port.place))?;
    if screen.json() {
        screen.out_json(&json!({
            "place": port.place,
            "chip": port.attached.chip,
            "core": state,
        }));
    } else {
        screen.out(&format!("{}: {}", port.place, one_line(&state_words(state))));
    }
    Ok(())
}

fn state_words(state: CoreState) -> String {
    match state {
        CoreState::Running => "running".to_owned(),
        CoreState::Sleeping => "sleeping".to_owned(),
        CoreState::LockedUp => "locked up".to_owned(),
        CoreState::Halted { reason, pc } => {
            let why = match reason {
                HaltReason::Requested => "",
                HaltReason::Breakpoint => " by a breakpoint",
                HaltReason::Step => " after a step",
                HaltReason::VectorCatch => " at a caught vector",
                HaltReason::Watchpoint => " by a watchpoint",
                HaltReason::Unknown => "",
            };
            format!("halted{why} at {pc:#010x}")
        }
    }
}
