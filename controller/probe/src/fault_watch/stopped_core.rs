//! What is told of a core that was stopped though nothing has failed, and is in a fault.

use jig_drivers::qemu::TrapTaken;
use jig_model::Cause;
use jig_model::post_mortem::PostMortem;
use jig_model::protocol::PostMortemRequest;

use super::fault_loop::{FaultMachine, FaultShape, FaultStand, Followed, follow};
use super::halted_core::HaltedCore;
use super::telling::{RequestSymbols, told_with};
use super::trap_watch::{TrapFound, TrapShape};
use crate::debug_info::exception_name;
use crate::riscv::Trap;
use crate::{CoreSnapshot, Why};

/// What is added to what is told of a fault.
const RETURNS_AND_REPEATS: &str = "; its handler returns, and the fault repeats";
const REPEATS: &str = "; the fault repeats";
const CALL_REPEATS: &str =
    "; the handler of an environment call (`ecall`) returns to the call itself, which repeats";
const STANDS_IN_CALL: &str = "; this handles an environment call (`ecall`) and does not return";
const IN_HANDLER: &str = "; this does not return from: ";
const NOT_LEFT: &str = "; behind the last output the core has not returned from: ";
const LEFT_UNCLEARED: &str = "; behind the last output the core took a fault whose handler has \
     returned, and the fault is still in the status registers";

const ONLY_ELSEWHERE: &str = "; behind the last output the core took a fault, and was only seen in \
     other functions since";

const LEFT_ELSEWHERE: &str = "; behind the last output the core took a fault whose handler has \
     returned neither to the instruction nor behind it";

const LEFT_UNSEEN: &str = "; behind the last output the core took a fault whose handler, of vectors that were \
     set later, has returned unseen";

const TAKEN_AT: &str = "; the handler has set another address, the fault was taken at ";

fn failed_exit(code: i32) -> String {
    format!("; the program has asked for its end by `ecall` with code {code}, and nothing answers")
}

/// Finds out whether a core on which nothing has failed is in a fault for good, and tells of it;
/// nothing if it is not. `caught` is the core at the only fault that it took.
pub(crate) fn standing_fault<M: FaultMachine>(
    machine: &mut M,
    handlers: Vec<u32>,
    caught: Option<&CoreSnapshot>,
    request: &PostMortemRequest,
) -> Result<Option<PostMortem>, M::Error> {
    let image = RequestSymbols::load(request);
    Ok(match follow(machine, handlers, image.symbols.as_ref())? {
        Followed::InFault(FaultStand { shape, snapshot }) => {
            Some(story_of(shape, &snapshot, caught, &image, request))
        }
        Followed::GoesOn | Followed::InNone { .. } => None,
    })
}

/// Tells of a core that stands in a fault.
pub(super) fn story_of(
    shape: FaultShape,
    snapshot: &CoreSnapshot,
    caught: Option<&CoreSnapshot>,
    image: &RequestSymbols,
    request: &PostMortemRequest,
) -> PostMortem {
    let best = match shape {
        FaultShape::InHandler | FaultShape::Below { .. } => caught.unwrap_or(snapshot),
        // What was caught is another fault.
        FaultShape::Repeats | FaultShape::LeftUnseen => snapshot,
        FaultShape::Uncleared | FaultShape::LeftElsewhere => caught.unwrap_or(snapshot),
    };
    let mut story = told_with(image, best, Why::Fault, request);
    story.proves = Some(Cause::CoreFault);
    match shape {
        FaultShape::InHandler => {}
        FaultShape::Below { fault, running } => {
            let (fault, running) = (exception_name(fault), exception_name(running));
            story.summary = format!("{running} above the handler of {fault}: {}", story.summary);
        }
        FaultShape::Repeats => story.summary += RETURNS_AND_REPEATS,
        FaultShape::Uncleared => {
            story.proves = Some(Cause::Unconfirmed);
            story.summary += LEFT_UNCLEARED;
        }
        FaultShape::LeftElsewhere => {
            story.proves = Some(Cause::Unconfirmed);
            story.summary += LEFT_ELSEWHERE;
        }
        FaultShape::LeftUnseen => {
            story.proves = Some(Cause::Unconfirmed);
            story.summary += LEFT_UNSEEN;
        }
    }
    story
}

/// Tells of a fault of a machine that has ended, of which nothing but its number was seen.
pub(super) fn unseen_story() -> PostMortem {
    PostMortem {
        summary: format!("the end of the program{LEFT_UNSEEN}"),
        kind: "fault".to_owned(),
        status: Vec::new(),
        frames: Vec::new(),
        limits: Vec::new(),
        threads: Vec::new(),
        registers: Vec::new(),
        core: None,
        proves: Some(Cause::Unconfirmed),
    }
}

/// Tells of a core that has halted for good.
pub(super) fn halt_story(
    halted: &HaltedCore,
    snapshot: &CoreSnapshot,
    image: &RequestSymbols,
    request: &PostMortemRequest,
) -> PostMortem {
    let mut story = told_with(image, snapshot, Why::Fault, request);
    story.proves = Some(halted.proves());
    story.summary += &format!("; {}", halted.words());
    story
}

/// Tells of a RISC-V core that is in a fault; `last` is the fault that it has reported last.
pub(super) fn trap_story(
    TrapFound { snapshot, shape }: &TrapFound,
    last: Option<&TrapTaken>,
    image: &RequestSymbols,
    request: &PostMortemRequest,
) -> PostMortem {
    let mut story = told_with(image, snapshot, Why::Hang, request);
    let place = |at: u32| {
        let function = image.symbols.as_ref().and_then(|symbols| symbols.function_at(at.into()));
        let function = function.map(|name| format!(" in {name}")).unwrap_or_default();
        format!("{at:#010x}{function}")
    };
    let what = |trap: Trap| format!("{} at {}", trap.what(), place(trap.at));
    let (proves, how) = match *shape {
        TrapShape::Last => {
            let taken_at = |trap: &Trap| last.filter(|last| last.cause == trap.cause).map(|l| l.at);
            let traps = Trap::last(snapshot).into_iter();
            let moved = traps.filter_map(|trap| taken_at(&trap).filter(|&at| at != trap.at)).next();
            if let Some(at) = moved {
                story.summary += &format!("{TAKEN_AT}{}", place(at));
            }
            return story;
        }
        TrapShape::Reported(trap) => (Cause::CoreFault, IN_HANDLER.to_owned() + &what(trap)),
        TrapShape::NotLeft(trap) => (Cause::CoreFault, NOT_LEFT.to_owned() + &what(trap)),
        TrapShape::LeftElsewhere(trap) => {
            (Cause::Unconfirmed, format!("{LEFT_ELSEWHERE}: {}", what(trap)))
        }
        TrapShape::OnlyElsewhereSince(trap) => {
            (Cause::Unconfirmed, format!("{ONLY_ELSEWHERE}: {}", what(trap)))
        }
        TrapShape::MayNotBeLeft(trap) => (Cause::Unconfirmed, NOT_LEFT.to_owned() + &what(trap)),
        TrapShape::CallOfUser(trap) => (Cause::Unconfirmed, IN_HANDLER.to_owned() + &what(trap)),
        TrapShape::Repeats => (Cause::CoreFault, REPEATS.to_owned()),
        TrapShape::CallRepeats => (Cause::CoreFault, CALL_REPEATS.to_owned()),
        TrapShape::Call => (Cause::CoreFault, STANDS_IN_CALL.to_owned()),
        // The handler may have put another number there.
        TrapShape::FailedExit(code) => (Cause::Unconfirmed, failed_exit(code)),
    };
    story.proves = Some(proves);
    story.summary += &how;
    story
}
