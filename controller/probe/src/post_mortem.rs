//! Explains a halted core: a summary in one line, and the evidence for it.

use jig_model::Cause;
use jig_model::post_mortem::{PostMortem, StackFrame, ThreadStory};

use crate::debug_info::{
    CodePlace, KnownMemory, Symbols, Unwound, exception_name, is_fault, unwind,
};
use crate::diagnosis::{exception_sentences, fault_at, in_fault_handler, lost_frame};
use crate::fault_status::{FaultStatus, cfsr};
use crate::riscv::{TrapStand, nowhere, stand};
use crate::rtos::{WAITING, threads};
use crate::{CoreKind, CoreSnapshot, RegisterValue};

/// How many callers the summary names: one line.
const MAX_CALLERS: usize = 8;

/// A core that locked up shows an address from here on in place of where it was.
const LOCKED_UP: u32 = 0xffff_fff0;

/// The occasion of a post-mortem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The core was caught at a fault, or a fault was printed.
    Fault,
    /// The core locked up.
    LockUp,
    /// The core was halted because nothing happened for too long.
    Hang,
}

/// Explains where a core stands and why, with whatever the image adds.
///
/// What the core says comes before what the caller thought: a hang that turns out to be a
/// fault handler waiting for ever is told as the fault. Never fails: what is missing makes
/// the story shorter, and `limits` says what was missing.
pub fn explain(snapshot: &CoreSnapshot, symbols: Option<&Symbols>, why: Why) -> PostMortem {
    let unwound = unwind(snapshot, symbols);
    if snapshot.kind == CoreKind::Riscv32 {
        return explain_trap(snapshot, symbols, why, unwound);
    }
    let memory = KnownMemory::new(snapshot, symbols);
    let status = FaultStatus::read(snapshot);
    let innermost = unwound.innermost.as_ref();
    let mut sentences = status.sentences();
    sentences.extend(exception_sentences(&unwound.interrupted));

    let handler = in_fault_handler(innermost);
    let fault = if handler { first_fault(&unwound, &status, memory, symbols) } else { None };
    let proves = match why {
        Why::LockUp => Some(Cause::Lockup),
        Why::Fault | Why::Hang => handler.then_some(Cause::CoreFault),
    };
    let mut before = None;
    let (kind, what, from) = match why {
        Why::LockUp => {
            // The instruction that locked it up is the one it stands at; the status
            // registers may still tell of the fault before.
            let standing = innermost
                .filter(|context| context.pc < LOCKED_UP)
                .and_then(|context| fault_at(context, &FaultStatus::default(), memory, symbols));
            before = fault.map(|(what, from)| line_of(&what, &unwound.frames[from..]));
            sentences.extend(before.iter().map(|line| format!("before: {line}")));
            ("lock-up".to_owned(), standing, 0)
        }
        Why::Fault | Why::Hang if handler => {
            let number = innermost.map_or(0, |context| context.exception());
            let (what, from) = match fault {
                Some((what, from)) => (Some(what), from),
                None => (None, 0),
            };
            (exception_name(number), what, from)
        }
        Why::Fault => ("halted".to_owned(), None, 0),
        Why::Hang => ("running".to_owned(), None, 0),
    };
    let mut summary = summarize(&kind, what.as_deref(), &unwound.frames[from..], symbols);
    let threads = threads(snapshot, symbols);
    if why == Why::Hang
        && !handler
        && let Some(waiting) = waiting(&threads, symbols)
    {
        summary = format!("{summary}; {waiting}");
    }
    if let Some(before) = before {
        summary = format!("{summary}; after {before}");
    }
    let story = post_mortem(snapshot, unwound, (kind, summary), sentences, proves);
    PostMortem { threads, ..story }
}

/// How many threads that wait the summary names, and how many of their calls.
const MAX_WAITING: usize = 3;
const MAX_WAITING_CALLS: usize = 4;

/// Says where threads wait: `waiting: rx in xQueueReceive (queue.c:1543) <- read_sensor <- rx`.
fn waiting(threads: &[ThreadStory], symbols: Option<&Symbols>) -> Option<String> {
    let waits = |thread: &&ThreadStory| thread.state == WAITING && !thread.frames.is_empty();
    let named: Vec<String> = threads
        .iter()
        .filter(waits)
        .map(|ThreadStory { name, frames, .. }| {
            let calls = frames.len().min(MAX_WAITING_CALLS);
            format!("{name} in {}", chain(&frames[..calls], symbols))
        })
        .collect();
    let more = named.len().saturating_sub(MAX_WAITING);
    let text = named.iter().take(MAX_WAITING).cloned().collect::<Vec<_>>().join(", ");
    match (named.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(format!("waiting: {text}")),
        (false, more) => Some(format!("waiting: {text}, and {more} more")),
    }
}

fn post_mortem(
    snapshot: &CoreSnapshot,
    unwound: Unwound,
    (kind, summary): (String, String),
    status: Vec<String>,
    proves: Option<Cause>,
) -> PostMortem {
    let registers = snapshot.registers.iter();
    PostMortem {
        summary,
        kind,
        status,
        frames: unwound.frames,
        limits: unwound.limits,
        threads: Vec::new(),
        registers: registers
            .map(|register| (register.name.clone(), register.value as u64))
            .collect(),
        core: None,
        proves,
    }
}

/// Explains a RISC-V core, which shows a fault by its last trap and by where it stands.
fn explain_trap(
    snapshot: &CoreSnapshot,
    symbols: Option<&Symbols>,
    why: Why,
    mut unwound: Unwound,
) -> PostMortem {
    let sentences = trap_sentences(snapshot);
    let kind = if why == Why::Hang { "running" } else { "halted" }.to_owned();
    let Some(stand) = stand(snapshot, symbols, &unwound) else {
        let summary = summarize(&kind, None, &unwound.frames, symbols);
        return post_mortem(snapshot, unwound, (kind, summary), sentences, None);
    };
    let trap = stand.trap();
    match stand {
        TrapStand::InHandler { frames, handler_faulted, .. } => {
            // Below the handler, the walk may follow registers that it has changed.
            unwound.frames.truncate(frames);
            if let Some(last) = unwound.frames.last_mut() {
                last.exception = true;
            }
            let from = unwound.frames.len();
            push_places(&mut unwound.frames, trap.at, symbols);
            let kind = if handler_faulted { "trap in its own handler" } else { "trap" }.to_owned();
            let is_code = symbols.map(|symbols| symbols.is_code(u64::from(trap.at)));
            let what = match (is_code, trap.at) {
                (Some(false), at) if !trap.is_cleared() => nowhere(at),
                (Some(true), at) if trap.is_of_fetch() => {
                    format!("execution of {at:#010x}, which is forbidden")
                }
                _ => trap.what(),
            };
            let summary = summarize(&kind, Some(&what), &unwound.frames[from..], symbols);
            post_mortem(snapshot, unwound, (kind, summary), sentences, Some(Cause::CoreFault))
        }
        TrapStand::Unclear { .. } => {
            let summary = summarize(&kind, None, &unwound.frames, symbols);
            unwound.limits.push(format!(
                "the last trap was a fault ({} at {:#010x}), and no return from it shows",
                trap.what(),
                trap.at
            ));
            post_mortem(snapshot, unwound, (kind, summary), sentences, None)
        }
    }
}

/// Appends the calls in which an address lies.
fn push_places(frames: &mut Vec<StackFrame>, pc: u32, symbols: Option<&Symbols>) {
    let places = symbols.map_or_else(Vec::new, |symbols| symbols.places(u64::from(pc)));
    let count = places.len();
    let blank = CodePlace { function: None, file: None, line: None };
    let places = if places.is_empty() { vec![blank] } else { places };
    frames.extend(places.into_iter().enumerate().map(|(index, place)| StackFrame {
        pc: u64::from(pc),
        function: place.function,
        file: place.file,
        line: place.line,
        inlined: index + 1 < count,
        exception: false,
    }));
}

/// What has become of a core since a fault of it was caught on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// It is in the fault still, or came to its end in it.
    Standing,
    /// It locked up, at this address where that is known.
    LockedUp(Option<u32>),
    /// It got over it.
    WentOn,
}

impl Since {
    /// Tells where a core is that stands now: one that left its fault handler and has cleared
    /// what the fault left in its status registers got over the fault.
    pub(crate) fn of(now: &CoreSnapshot) -> Self {
        let in_fault = exception_of(&now.registers).is_some_and(is_fault);
        match in_fault || FaultStatus::read(now).tells_of_fault() {
            true => Self::Standing,
            false => Self::WentOn,
        }
    }

    /// Tells the story of the fault that was caught, as it went on.
    pub(crate) fn continue_story(
        self,
        mut story: PostMortem,
        symbols: Option<&Symbols>,
    ) -> PostMortem {
        match self {
            Self::Standing => {}
            Self::LockedUp(at) => {
                let mut places = Vec::new();
                if let Some(at) = at.filter(|&at| at < LOCKED_UP) {
                    push_places(&mut places, at, symbols);
                }
                // Where the handler itself has faulted.
                let place = chain(&places[..places.len().min(1)], symbols);
                let place = if place.is_empty() { place } else { format!(" in {place}") };
                story.summary = format!("lock-up{place} after {}", story.summary);
                "lock-up".clone_into(&mut story.kind);
                story.proves = Some(Cause::Lockup);
            }
            Self::WentOn => {
                story.limits.push("the firmware got over this fault and went on".to_owned());
                story.proves = None;
            }
        }
        story
    }
}

/// Returns the number of the exception that a core executes, where it has such numbers.
pub(crate) fn exception_of(registers: &[RegisterValue]) -> Option<u32> {
    let xpsr = registers.iter().find(|register| register.name == "xpsr")?;
    Some((xpsr.value & 0x1ff) as u32)
}

/// Finds what the innermost fault handler was entered for, and the index of the first frame
/// of what it interrupted.
fn first_fault(
    unwound: &Unwound,
    status: &FaultStatus,
    memory: KnownMemory<'_>,
    symbols: Option<&Symbols>,
) -> Option<(String, usize)> {
    let entry = unwound.interrupted.iter().find(|entry| is_fault(entry.number))?;
    let from = entry.frame.min(unwound.frames.len());
    if let Some(context) = &entry.context
        && let Some(what) = unsaved_frame(entry.at, context.pc, status, symbols)
    {
        // Where it was is not known.
        return Some((what, unwound.frames.len()));
    }
    let what = match &entry.context {
        Some(context) => fault_at(context, status, memory, symbols)
            .unwrap_or_else(|| "fault of unknown cause".to_owned()),
        // A test may have left it set.
        None if status.has(cfsr::INVPC)
            && !status.has(cfsr::STKERR | cfsr::MSTKERR | cfsr::STKOF) =>
        {
            "invalid exception return".to_owned()
        }
        None => lost_frame(entry, memory),
    };
    Some((what, from))
}

/// Says that the core could not save the registers of what a fault has interrupted, if so: then what lies
/// there is old. The address at which it was to go on tells this from a fault that came later.
fn unsaved_frame(
    at: u32,
    pc: u32,
    status: &FaultStatus,
    symbols: Option<&Symbols>,
) -> Option<String> {
    let is_old = pc == 0 || symbols.is_some_and(|symbols| !symbols.is_code(pc.into()));
    if !is_old || !status.has(cfsr::STKERR | cfsr::MSTKERR | cfsr::STKOF) {
        return None;
    }
    Some(match status.has(cfsr::STKOF) {
        true => "stack overflow: the stack pointer passed its limit".to_owned(),
        false => {
            format!("the stack may have overflowed: no registers could be saved at {at:#010x}")
        }
    })
}

/// Writes the one line.
fn summarize(
    kind: &str,
    what: Option<&str>,
    frames: &[StackFrame],
    symbols: Option<&Symbols>,
) -> String {
    let chain = chain(frames, symbols);
    match (what, chain.is_empty()) {
        (Some(what), true) => format!("{kind}: {what}"),
        (Some(what), false) => format!("{kind}: {what} in {chain}"),
        (None, true) => kind.to_owned(),
        (None, false) => format!("{kind} in {chain}"),
    }
}

fn line_of(what: &str, frames: &[StackFrame]) -> String {
    match frames.iter().find(|frame| frame.function.is_some()) {
        Some(frame) => format!("{what} in {}", frame.brief()),
        None => what.to_owned(),
    }
}

/// Writes `inner (file.c:1) <- outer <- main`: from the first frame that has a name to
/// `main`, without the reset handler, repetitions counted.
fn chain(frames: &[StackFrame], symbols: Option<&Symbols>) -> String {
    let named = frames.iter().position(|frame| frame.function.is_some());
    let frames = &frames[named.unwrap_or(0)..];
    let end = frames
        .iter()
        .position(|frame| frame.function.as_deref() == Some("main"))
        .map_or(frames.len(), |main| main + 1);
    let is_entry =
        |frame: &StackFrame| symbols.is_some_and(|symbols| symbols.is_entry_frame(frame));
    let end = match frames[..end].split_last() {
        Some((last, rest)) if !rest.is_empty() && is_entry(last) => end - 1,
        _ => end,
    };
    let mut chain: Vec<(String, String, usize)> = Vec::new();
    for (index, frame) in frames[..end].iter().enumerate() {
        let plain = frame.function.clone().unwrap_or_else(|| format!("{:#010x}", frame.pc));
        match chain.last_mut() {
            Some((name, _, count)) if *name == plain => *count += 1,
            _ => {
                let shown = if index == 0 { frame.brief() } else { plain.clone() };
                chain.push((plain, shown, 1));
            }
        }
    }
    let more = chain.len() > MAX_CALLERS;
    let mut names: Vec<String> = chain
        .into_iter()
        .take(MAX_CALLERS)
        .map(|(_, shown, count)| match count {
            1 => shown,
            _ => format!("{shown} x{count}"),
        })
        .collect();
    if more {
        names.push("...".to_owned());
    }
    names.join(" <- ")
}

/// Says what a RISC-V core keeps about its last trap, where its registers were captured.
fn trap_sentences(snapshot: &CoreSnapshot) -> Vec<String> {
    // RISC-V Privileged Architecture, "Machine Cause Register".
    const CAUSES: [&str; 16] = [
        "instruction address misaligned",
        "instruction access fault",
        "illegal instruction",
        "breakpoint",
        "load address misaligned",
        "load access fault",
        "store address misaligned",
        "store access fault",
        "environment call from user mode",
        "environment call from supervisor mode",
        "reserved cause 10",
        "environment call from machine mode",
        "instruction page fault",
        "load page fault",
        "reserved cause 14",
        "store page fault",
    ];
    let word = |name: &str| snapshot.register(name).and_then(|value| u32::try_from(value).ok());
    let mut said = Vec::new();
    for [cause_name, at_name, value_name] in
        [["mcause", "mepc", "mtval"], ["scause", "sepc", "stval"]]
    {
        let (cause, at) = (word(cause_name), word(at_name));
        // Supervisor mode may never have been used.
        if cause_name == "scause" && cause.unwrap_or(0) == 0 && at.unwrap_or(0) == 0 {
            continue;
        }
        if let Some(cause) = cause {
            said.push(match (cause >> 31, CAUSES.get(cause as usize & 0x7fff_ffff)) {
                (0, Some(text)) => format!("{cause_name}: {text}"),
                (0, None) => format!("{cause_name}: exception {cause}"),
                _ => format!("{cause_name}: interrupt {}", cause & 0x7fff_ffff),
            });
        }
        said.extend(at.map(|at| format!("{at_name}: the last trap was taken at {at:#010x}")));
        let value = word(value_name);
        said.extend(value.map(|value| format!("{value_name}: it was about {value:#010x}")));
    }
    said
}
