//! Unwinds the stack of a halted core into its chain of calls.

use std::collections::BTreeSet;

use jig_model::post_mortem::StackFrame;

use super::cfi::CfiError;
use super::context::{Context, CoreMachine};
use super::exception::{ExcReturn, exception_name, is_fault, is_fnc_return, unstack};
use super::memory::KnownMemory;
use super::search;
use super::symbols::Symbols;
use crate::CoreSnapshot;
use crate::riscv;
use crate::stack_overrun::StackPlace;
use crate::thumb::{self, ThumbCall};

/// How many frames are walked. Deeper chains are recursions, whose shape shows long before.
const MAX_FRAMES: usize = 128;

/// How many exceptions may nest: there are at most 256 priorities, and real firmware nests
/// a handful.
const MAX_EXCEPTIONS: usize = 16;

/// A chain of calls, and what kept it from being better.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backtrace {
    /// The calls, innermost first.
    pub frames: Vec<StackFrame>,
    /// Why there are not more, or why some are uncertain: sentences for people.
    pub limits: Vec<String>,
}

/// Finds the chain of calls that led to where a core stands.
///
/// Walks by the image's unwind tables, through exceptions, over inlined calls. Without an
/// image, or where its tables say nothing, there are the program counter and the link
/// register. Ends at the reset handler, where no caller is known, or after 128 frames.
pub fn backtrace(snapshot: &CoreSnapshot, symbols: Option<&Symbols>) -> Backtrace {
    let Unwound { frames, limits, .. } = unwind(snapshot, symbols);
    Backtrace { frames, limits }
}

/// What an exception interrupted.
#[derive(Debug, Clone)]
pub(crate) struct Interrupted {
    /// The exception's number.
    pub(crate) number: u32,
    /// What the handler returns by; nothing if the frame was found by searching.
    pub(crate) exc_return: Option<ExcReturn>,
    /// Where the frame is, or would be.
    pub(crate) at: u32,
    /// The registers of what was interrupted; nothing if the frame is unreadable.
    pub(crate) context: Option<Context>,
    /// Index of the first frame of what was interrupted.
    pub(crate) frame: usize,
}

/// A walk and its by-products.
#[derive(Debug, Default)]
pub(crate) struct Unwound {
    pub(crate) frames: Vec<StackFrame>,
    pub(crate) limits: Vec<String>,
    /// The registers as they stand; nothing without a program counter.
    pub(crate) innermost: Option<Context>,
    /// The exceptions on the way, innermost first.
    pub(crate) interrupted: Vec<Interrupted>,
    /// Where the stack stood in each frame whose registers were reached, apart for each stretch between
    /// two exceptions.
    pub(crate) stacks: Vec<Vec<StackPlace>>,
}

/// Walks the stack.
pub(crate) fn unwind(snapshot: &CoreSnapshot, symbols: Option<&Symbols>) -> Unwound {
    let mut limits: Vec<String> = Vec::new();
    let innermost = Context::innermost(snapshot);
    let symbols = match (symbols, &innermost) {
        (Some(symbols), Some(context)) if symbols.machine() != context.machine => {
            limits.push("the image is for another kind of core: ignored".to_owned());
            None
        }
        (symbols, _) => symbols,
    };
    match symbols {
        Some(symbols) => limits.extend(symbols.limits().iter().cloned()),
        None => limits.push("no image: no names, no lines, no stack walk".to_owned()),
    }
    let psp = snapshot.register("psp").and_then(|value| u32::try_from(value).ok());
    let mut walk = Walk {
        memory: KnownMemory::new(snapshot, symbols),
        symbols,
        psp,
        out: Unwound { limits, ..Unwound::default() },
    };
    match innermost {
        Some(context) => {
            walk.out.innermost = Some(context.clone());
            walk.run(context);
        }
        None => walk.out.limits.push("the program counter is unknown".to_owned()),
    }
    let mut seen = BTreeSet::new();
    walk.out.limits.retain(|limit| seen.insert(limit.clone()));
    walk.out
}

/// Walks the stack of a thread that does not run, from the registers with which it goes on.
pub(crate) fn walk_thread(
    context: Context,
    snapshot: &CoreSnapshot,
    symbols: &Symbols,
) -> Vec<StackFrame> {
    /// What threads return to: functions that no thread has called.
    const BELOW: [&str; 3] = ["prvTaskExitError", "sched_task_exit", "z_thread_entry"];
    let innermost = Some(context.clone());
    let mut walk = Walk {
        memory: KnownMemory::new(snapshot, Some(symbols)),
        symbols: Some(symbols),
        psp: None,
        out: Unwound { innermost, ..Unwound::default() },
    };
    walk.follow(context, true);
    let mut frames = walk.out.frames;
    let below =
        |frame: &StackFrame| frame.function.as_deref().is_some_and(|name| BELOW.contains(&name));
    while frames.len() > 1 && frames.last().is_some_and(below) {
        frames.pop();
    }
    frames
}

/// What lies below a frame.
enum UnwindStep {
    /// Its caller: the program counter is a return address.
    Caller(Context),
    /// What it interrupted: the program counter is exact.
    Interrupted(Context),
    /// A caller that is known, but not its stack: the walk ends there.
    Last(Context),
}

/// Why there is nothing below a frame: a sentence, or nothing where a chain ends in order.
type UnwindEnd = Option<String>;

struct Walk<'a> {
    memory: KnownMemory<'a>,
    symbols: Option<&'a Symbols>,
    psp: Option<u32>,
    out: Unwound,
}

impl Walk<'_> {
    fn run(&mut self, first: Context) {
        let handler = self.follow(first.clone(), true);
        // A handler is running, and the walk did not get below it.
        if first.machine != CoreMachine::Arm || first.exception() == 0 {
            return;
        }
        let Some(symbols) = self.symbols else { return };
        if self.out.interrupted.is_empty() {
            let found = search::stacked_frame(&handler, self.psp, self.memory, symbols)
                .or_else(|| search::stacked_frame(&first, self.psp, self.memory, symbols));
            if let Some((at, context)) = found {
                self.out.limits.push(format!(
                    "the handler moved to another stack: what it interrupted was recognised at \
                     {at:#010x}, not reached"
                ));
                self.enter(first.exception(), None, at, Some(context.clone()));
                self.follow(context, true);
            } else if is_fault(first.exception())
                && let Some(at) = search::overrun_stack(&handler, self.memory)
                    .or_else(|| search::overrun_stack(&first, self.memory))
            {
                self.out.limits.push(format!(
                    "the handler moved to another stack: the one before was recognised at \
                     {at:#010x}, outside of memory"
                ));
                self.enter(first.exception(), None, at, None);
            }
        }
        if let Some(lost) = self.out.interrupted.last()
            && lost.context.is_none()
            && let Some(context) = search::call_on_stack(lost.at, &first, self.memory, symbols)
        {
            self.out.limits.push(
                "the innermost call was recognised on the rest of the stack, not reached"
                    .to_owned(),
            );
            self.follow(context, false);
        }
    }

    /// Walks until there is no more; returns the outermost registers that were reached.
    fn follow(&mut self, mut context: Context, mut exact: bool) -> Context {
        self.out.stacks.push(Vec::new());
        let (mut calls, mut adjoins) = (false, false);
        loop {
            if self.out.frames.len() >= MAX_FRAMES {
                self.out.limits.push(format!("there are more than {MAX_FRAMES} frames"));
                return context;
            }
            let lookup = u64::from(if exact { context.pc } else { context.pc.wrapping_sub(1) });
            self.push(context.pc, lookup);
            let place = context.sp().map(|pointer| StackPlace { pointer, calls, adjoins });
            self.out.stacks.last_mut().into_iter().for_each(|stack| stack.extend(place));
            if self.symbols.is_some_and(|symbols| symbols.is_entry(lookup)) {
                return context;
            }
            match self.step(&context, exact, lookup) {
                Ok(UnwindStep::Caller(caller)) => {
                    calls = self.calls(&caller, lookup);
                    adjoins = self.adjoins(&context, &caller, lookup);
                    (context, exact) = (caller, false);
                }
                Ok(UnwindStep::Interrupted(below)) => {
                    self.out.stacks.push(Vec::new());
                    (context, exact) = (below, true);
                }
                Ok(UnwindStep::Last(caller)) => {
                    self.push(caller.pc, u64::from(caller.pc.wrapping_sub(1)));
                    return caller;
                }
                Err(limit) => {
                    self.out.limits.extend(limit);
                    return context;
                }
            }
        }
    }

    /// Appends the frames of one address: one, and those that were inlined into it.
    fn push(&mut self, pc: u32, lookup: u64) {
        let places = self.symbols.map_or_else(Vec::new, |symbols| symbols.places(lookup));
        let count = places.len();
        let frame = |function, file, line, inlined| StackFrame {
            pc: u64::from(pc),
            function,
            file,
            line,
            inlined,
            exception: false,
        };
        if count == 0 {
            self.out.frames.push(frame(None, None, None, false));
        }
        for (index, place) in places.into_iter().enumerate() {
            let inlined = index + 1 < count;
            self.out.frames.push(frame(place.function, place.file, place.line, inlined));
        }
    }

    fn step(
        &mut self,
        context: &Context,
        exact: bool,
        lookup: u64,
    ) -> Result<UnwindStep, UnwindEnd> {
        let Some(symbols) = self.symbols else {
            return self.by_link_register(context, exact, None);
        };
        if exact && !symbols.is_code(lookup) {
            return self.out_of_nowhere(context, symbols);
        }
        match symbols.tables().caller(context, lookup, self.memory.snapshot()) {
            Ok(caller) => self.arrive(context, caller),
            Err(CfiError::Outermost) => Err(None),
            Err(reason) => self.by_link_register(context, exact, Some((lookup, reason))),
        }
    }

    /// Tells whether the code in front of a return address calls the function that holds an address, or one
    /// whose address it has computed.
    fn calls(&self, caller: &Context, inner: u64) -> bool {
        let start = self.symbols.and_then(|symbols| symbols.function_start(inner));
        let Some(start) = start.and_then(|start| u32::try_from(start).ok()) else { return false };
        let code = |at| self.memory.instruction(at);
        match caller.machine {
            CoreMachine::Arm => {
                let call = thumb::call_before(caller.pc, code);
                call == Some(ThumbCall::Direct(start)) || call == Some(ThumbCall::Indirect)
            }
            CoreMachine::Riscv => riscv::is_call_before(caller.pc, start, code),
        }
    }

    /// Tells whether a function has allocated all that lies between its stack pointer and its caller's.
    fn adjoins(&self, context: &Context, caller: &Context, lookup: u64) -> bool {
        let (Some(symbols), Some(here), Some(there)) = (self.symbols, context.sp(), caller.sp())
        else {
            return false;
        };
        symbols.tables().allocates(lookup, there.wrapping_sub(here))
    }

    /// Judges what the tables computed.
    fn arrive(&mut self, context: &Context, mut caller: Context) -> Result<UnwindStep, UnwindEnd> {
        let to = caller.pc;
        if context.machine == CoreMachine::Arm {
            if let Some(exc_return) = ExcReturn::of(to) {
                return self.interrupted(&caller, exc_return);
            }
            if is_fnc_return(to) {
                return Err(Some("the caller is in the other security state".to_owned()));
            }
        }
        self.check_return_address(to)?;
        match (context.sp(), caller.sp()) {
            (Some(here), Some(there)) if there < here => {
                return Err(Some(format!(
                    "the stack pointer of the caller, {there:#010x}, lies below {here:#010x}"
                )));
            }
            (Some(here), Some(there)) if there == here && to & !1 == context.pc => {
                return Err(Some(format!("the frame at {here:#010x} is its own caller")));
            }
            (_, Some(there)) if there % 4 != 0 => {
                return Err(Some(format!("the stack pointer {there:#010x} is not aligned")));
            }
            _ => {}
        }
        if context.machine == CoreMachine::Arm {
            caller.pc = to & !1;
        }
        // The call overwrote it.
        caller.set_lr(None);
        Ok(UnwindStep::Caller(caller))
    }

    /// Ends the walk at addresses that no call returns to.
    fn check_return_address(&self, to: u32) -> Result<(), UnwindEnd> {
        if to == 0 || to == u32::MAX {
            return Err(None);
        }
        let arm = self.out.innermost.as_ref().is_some_and(|c| c.machine == CoreMachine::Arm);
        if arm && to & 1 == 0 {
            return Err(Some(format!("the return address {to:#010x} is not one of Thumb code")));
        }
        let inside = u64::from((if arm { to & !1 } else { to }).wrapping_sub(1));
        match self.symbols {
            Some(symbols) if !symbols.is_code(inside) => {
                Err(Some(format!("the return address {to:#010x} is outside of the image's code")))
            }
            Some(symbols) if arm && self.is_never_called(to & !1, symbols) => {
                let name = symbols.function_at(u64::from(to & !1)).unwrap_or_default();
                Err(Some(format!("the return address is that of {name}, which nothing has called")))
            }
            _ => Ok(()),
        }
    }

    /// Tells whether a return address of Thumb code is the beginning of a function, as that of a thread's
    /// first function is. A call that does not return may stand there as the last one of its function.
    fn is_never_called(&self, to: u32, symbols: &Symbols) -> bool {
        symbols.function_start(u64::from(to)) == Some(u64::from(to))
            && thumb::call_before(to, |at| self.memory.instruction(at)).is_none()
    }

    /// Leaves a handler. `entry` holds the registers at its first instruction.
    fn interrupted(
        &mut self,
        entry: &Context,
        exc_return: ExcReturn,
    ) -> Result<UnwindStep, UnwindEnd> {
        if self.out.interrupted.len() >= MAX_EXCEPTIONS {
            return Err(Some(format!("more than {MAX_EXCEPTIONS} exceptions nest")));
        }
        let number = match self.out.interrupted.last() {
            Some(above) => above.context.as_ref(),
            None => self.out.innermost.as_ref(),
        }
        .map_or(0, Context::exception);
        let at = if exc_return.uses_psp() { self.psp } else { entry.sp() };
        let Some(at) = at else {
            return Err(Some(
                "the process stack pointer is unknown: what was interrupted is too".to_owned(),
            ));
        };
        match unstack(entry, exc_return, at, self.memory) {
            Ok(below) => {
                self.enter(number, Some(exc_return), at, Some(below.clone()));
                Ok(UnwindStep::Interrupted(below))
            }
            Err(address) => {
                self.enter(number, Some(exc_return), at, None);
                Err(Some(format!(
                    "what {} interrupted was saved at {at:#010x}, and {address:#010x} is \
                     unreadable",
                    exception_name(number)
                )))
            }
        }
    }

    fn enter(
        &mut self,
        number: u32,
        exc_return: Option<ExcReturn>,
        at: u32,
        context: Option<Context>,
    ) {
        if let Some(last) = self.out.frames.last_mut() {
            last.exception = true;
        }
        let frame = self.out.frames.len();
        self.out.interrupted.push(Interrupted { number, exc_return, at, context, frame });
    }

    /// Takes the caller of something that is no code, so that nothing has been pushed since.
    fn out_of_nowhere(
        &mut self,
        context: &Context,
        symbols: &Symbols,
    ) -> Result<UnwindStep, UnwindEnd> {
        let pc = context.pc;
        let Some(lr) = context.lr() else {
            return Err(Some(format!("{pc:#010x} is no code of the image")));
        };
        if context.machine == CoreMachine::Arm
            && let Some(exc_return) = ExcReturn::of(lr)
        {
            return self.interrupted(context, exc_return);
        }
        self.check_return_address(lr)?;
        self.out.limits.push(format!(
            "{pc:#010x} is no code of the image: its caller comes from the link register"
        ));
        let mut caller = context.clone();
        if context.machine == CoreMachine::Arm {
            caller.pc = lr & !1;
            if let Some((jump, exactly)) = search::tail_caller(lr, self.memory, symbols) {
                self.push(jump, u64::from(jump));
                if let Some(frame) = self.out.frames.last_mut() {
                    let name = frame.function.clone().unwrap_or_default();
                    self.out.limits.push(format!(
                        "{name} jumped to {pc:#010x} in place of a last call: its frame is \
                         inferred"
                    ));
                    if !exactly {
                        (frame.file, frame.line) = (None, None);
                    }
                }
            }
        } else {
            caller.pc = lr;
        }
        caller.set_lr(None);
        caller.xpsr = None;
        Ok(UnwindStep::Caller(caller))
    }

    /// Takes the caller from the link register, where that can still hold it.
    fn by_link_register(
        &mut self,
        context: &Context,
        exact: bool,
        reason: Option<(u64, CfiError)>,
    ) -> Result<UnwindStep, UnwindEnd> {
        let because = reason.map(|(lookup, error)| self.explain(lookup, error));
        let lr = if exact { context.lr() } else { None };
        let Some(lr) = lr else { return Err(because) };
        if context.machine == CoreMachine::Arm
            && let Some(exc_return) = ExcReturn::of(lr)
        {
            self.out.limits.extend(because);
            return self.interrupted(context, exc_return);
        }
        self.out.limits.extend(because);
        self.check_return_address(lr)?;
        let mut caller = context.clone();
        caller.pc = if context.machine == CoreMachine::Arm { lr & !1 } else { lr };
        self.out.limits.push(
            "the outermost frame comes from the link register and may be an earlier call"
                .to_owned(),
        );
        Ok(UnwindStep::Last(caller))
    }

    fn explain(&self, lookup: u64, error: CfiError) -> String {
        let name = self
            .symbols
            .and_then(|symbols| symbols.function_at(lookup))
            .map_or_else(|| format!("{lookup:#010x}"), str::to_owned);
        match error {
            CfiError::Missing => format!("the image has no unwind information for {name}"),
            CfiError::Malformed => format!("the image's unwind information for {name} is broken"),
            CfiError::Unreadable(address) => {
                format!("the stack of {name} at {address:#010x} is unreadable")
            }
            CfiError::Unknown(register) => {
                format!("the caller of {name} depends on register {register}, which is lost")
            }
            CfiError::Outermost => format!("{name} has no caller"),
        }
    }
}
