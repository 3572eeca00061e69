//! `jig reset`, `halt`, `resume`, `step` and `bp`.

use jig_model::command::{
    BoardResetCommand, BreakpointOutcome, BreakpointReply, CodeLocation, Command, CoreReply,
    DebugAction, Reply, ResetBy, ResetMethod,
};
use jig_model::debug::{CoreState, HaltReason};
use jig_model::{Fault, exit};

use super::access::{ProbedBoard, debug, quiet};
use super::debug::show;
use crate::args::{BpArgs, Common, ProbeTarget, ResetArgs, StepArgs, ms, number};
use crate::commands::execute::{execute, unexpected};
use crate::failure::Failure;
use crate::render::{Screen, one_line};

/// Resets a board. JSON: the state of its core; `{"place","method"}` where another part than a debug
/// probe resets it.
pub(crate) fn reset(common: &Common, screen: &Screen, args: ResetArgs) -> Result<u8, Failure> {
    let board = ProbedBoard::of(common, &args.at)?;
    // What only a probe can do chooses the probe.
    let by = match args.halt || board.names_probe() {
        true => ResetBy::Probe { halt: args.halt },
        false => ResetBy::Usual,
    };
    let ProbedBoard { rig, place, probe } = board;
    let command = Command::Reset(BoardResetCommand { place, probe, by });
    let reply = execute(&rig, command, quiet(screen))?;
    let Reply::Reset(reset) = reply else { return told(screen, reply) };
    if screen.json() {
        screen.out_json(&reset);
    } else {
        screen.out(&format!("{}: reset by {}", reset.place, reset_words(reset.method)));
    }
    Ok(exit::PASS)
}

fn reset_words(method: ResetMethod) -> &'static str {
    match method {
        ResetMethod::Power => "its power",
        ResetMethod::Line => "a line of its console",
        ResetMethod::Outlet => "an outlet",
        ResetMethod::Command => "a program",
        ResetMethod::Emulator => "its emulator",
    }
}

/// Stops a board's core. JSON: its state.
pub(crate) fn halt(common: &Common, screen: &Screen, at: ProbeTarget) -> Result<u8, Failure> {
    told(screen, debug(common, &at, DebugAction::Halt, quiet(screen))?)
}

/// Lets a halted core continue. JSON: its state.
pub(crate) fn resume(common: &Common, screen: &Screen, at: ProbeTarget) -> Result<u8, Failure> {
    told(screen, debug(common, &at, DebugAction::Resume, quiet(screen))?)
}

/// Executes single instructions. JSON: the state of the core.
pub(crate) fn step(common: &Common, screen: &Screen, args: StepArgs) -> Result<u8, Failure> {
    let action = DebugAction::Step { count: args.count };
    told(screen, debug(common, &args.at, action, quiet(screen))?)
}

/// Runs to a breakpoint. Ends with the code of a failed target if it was not reached.
///
/// JSON: `{"place","chip","address","outcome","core"}`; `outcome` is `hit`, `timed_out`, `stopped`
/// or `locked_up`. The last two come with `found`, the post-mortem of `jig bt`.
pub(crate) fn breakpoint(common: &Common, screen: &Screen, args: BpArgs) -> Result<u8, Failure> {
    let BpArgs { at, location, image, reset, timeout } = args;
    let location = match (number(&location), image) {
        (Ok(address), _) => CodeLocation::Address(address),
        (Err(_), Some(image)) => CodeLocation::Function { name: location, image },
        (Err(_), None) => {
            return Err(Failure::new(Fault::Usage, format!("{location:?} is no address"))
                .help("to name a function, say whose it is: --image APP.elf"));
        }
    };
    let action = DebugAction::Breakpoint { at: location, reset, timeout_ms: ms(timeout) };
    let reply = debug(common, &at, action, quiet(screen))?;
    let Reply::Breakpoint(reply) = reply else { return Err(unexpected()) };
    if screen.json() {
        screen.out_json(&reply);
        return Ok(match reply.outcome {
            BreakpointOutcome::Hit => exit::PASS,
            _ => exit::of_fault(Fault::Target),
        });
    }
    let BreakpointReply { place, chip, address, outcome, core, found } = reply;
    let help = format!("see where it is instead: jig bt -b {place}");
    tell_core(screen, &CoreReply { place, chip, core });
    if let Some(found) = &found {
        show(screen, found);
    }
    let words = match outcome {
        BreakpointOutcome::Hit => return Ok(exit::PASS),
        BreakpointOutcome::TimedOut => {
            let words = format!("{address:#010x} was not reached in {timeout:?}");
            return Err(Failure::new(Fault::Target, words).help(help));
        }
        BreakpointOutcome::Stopped => "stopped elsewhere",
        BreakpointOutcome::LockedUp => "locked up",
    };
    Err(Failure::new(Fault::Target, format!("{address:#010x} was not reached: the core {words}")))
}

fn told(screen: &Screen, reply: Reply) -> Result<u8, Failure> {
    let Reply::Core(reply) = reply else { return Err(unexpected()) };
    tell_core(screen, &reply);
    Ok(exit::PASS)
}

/// Says what the core does. JSON: `{"place","chip","core":{"state",...}}`.
fn tell_core(screen: &Screen, reply: &CoreReply) {
    if screen.json() {
        screen.out_json(reply);
    } else {
        screen.out(&format!("{}: {}", reply.place, one_line(&core_words(reply.core))));
    }
}

fn core_words(core: CoreState) -> String {
    match core {
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
