//! What the emulator's lines on exceptions amount to. Pure.
//!
//! # Design
//! The lines are those of QEMU 7.2 with `-d int,cpu_reset`: of a Cortex-M each entry and each return,
//! of a RISC-V core each entry only. Everything else is output of a console, and a line may begin with
//! some of it. A firmware that prints such lines itself deceives only the summary; what the core
//! shows of itself is looked at as well.

use std::io::BufRead as _;

use super::executed::{CollectedCode, ExecutedCode};
use super::trace::BlockTrace;

/// Longest piece of a line that is kept: a line of the emulator has some 120 bytes.
const MAX_LINE: usize = 512;

/// Most exceptions that are open at a time, handlers, and places at which a handler was interrupted.
const MAX_OPEN: usize = 64;
const MAX_HANDLERS: usize = 16;
const MAX_PLACES: usize = 32;

/// How lines of the emulator begin.
const TRAP: &str = "riscv_cpu_do_interrupt: ";
const ENTRY: &str = "Taking exception ";
const RETURN: &str = "Exception return: ";
const RESET: &str = "CPU Reset (CPU ";
const DETAIL: &str = "...";
const BEGINNINGS: [&str; 5] = [DETAIL, ENTRY, RETURN, TRAP, RESET];

/// First words of the details, from `target/arm/helper.c` and `target/arm/m_helper.c`: what else follows
/// three dots is output, as in `test trap ... ok`.
const DETAIL_WORDS: [&str; 20] = [
    "at",
    "derived",
    "from",
    "function",
    "handled",
    "handling",
    "loaded",
    "loading",
    "really",
    "successful",
    "tailchaining",
    "taking",
    "to",
    "with",
    "BusFault",
    "MemManageFault",
    "Secure",
    "SecureFault",
    "STKOF",
    "UsageFault",
];

/// What an emulator has reported of its core since the last reset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exceptions {
    /// How many faults were taken.
    pub faults: u32,
    /// How many since the launch: resets do not end this count.
    pub since_launch: u64,
    /// Whether a console has printed since the last fault.
    pub printed: bool,
    /// Exceptions of a Cortex-M that were entered and not left, the innermost last.
    pub open: Vec<OpenException>,
    /// First addresses of the handlers of a Cortex-M's faults.
    pub handlers: Vec<u32>,
    /// The last fault of a RISC-V core.
    pub fault: Option<TrapTaken>,
    /// The last environment call of a RISC-V core.
    pub call: Option<TrapTaken>,
    /// How many traps of any kind a RISC-V core has taken.
    pub traps: u64,
}

/// An exception of a Cortex-M that was entered and not left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenException {
    /// Its number.
    pub number: u32,
    /// Tells one entry from another of the same exception.
    pub entry: u64,
}

/// A trap of a RISC-V core that an instruction has caused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrapTaken {
    /// The exception's number.
    pub cause: u32,
    /// Address of the instruction.
    pub at: u32,
    /// Value that the core adds, such as the address of a refused access.
    pub value: u32,
    /// How often the instruction has caused it without another one doing so in between.
    pub in_a_row: u32,
    /// Addresses at which later traps have interrupted the core, the first of them.
    pub interrupted: Vec<u32>,
}

/// Tells whether a Cortex-M's exception is a fault: hard, memory, bus, usage or secure fault.
fn is_fault(number: u32) -> bool {
    (3..=7).contains(&number)
}

#[derive(Debug, Default)]
pub(super) struct ExceptionFold {
    seen: Exceptions,
    line: Vec<u8>,
    /// The last trap's line, which often comes again.
    last: (Vec<u8>, Option<TrapLine>),
    /// The exception that a Cortex-M is entering.
    entering: Option<u32>,
    entries: u64,
    /// The first fault in whose handler the core was reset.
    reset_in: Option<u32>,
    /// How many faults were taken since the launch.
    taken: u64,
    /// The code that was executed since the launch, where the emulator lists it. Then no output of a
    /// console stands between its lines.
    executed: Option<ExecutedCode>,
    /// When it was executed, where the emulator tells.
    trace: Option<BlockTrace>,
    output: OutputCount,
}

/// How much the consoles have printed, and where between it faults were taken.
#[derive(Debug, Default)]
struct OutputCount {
    /// Bytes since the last reset.
    printed: u64,
    /// How many of them lie in front of the last fault, and in front of the last one before it that
    /// lies elsewhere.
    last: Option<u64>,
    earlier: Option<u64>,
}

impl OutputCount {
    fn add(&mut self, bytes: usize) {
        self.printed = self.printed.saturating_add(bytes as u64);
    }

    fn fault(&mut self) {
        if self.last != Some(self.printed) {
            self.earlier = self.last.replace(self.printed);
        }
    }

    /// Returns how much was printed since the last fault behind which anything was. `begun` bytes of
    /// output are not counted yet.
    fn since_fault(&self, begun: usize) -> Option<u64> {
        let printed = self.printed.saturating_add(begun as u64);
        let behind = |place: &u64| *place < printed;
        Some(printed - self.last.filter(behind).or(self.earlier)?)
    }
}

#[derive(Debug, Clone, Copy)]
struct TrapLine {
    interrupt: bool,
    cause: u32,
    at: u32,
    value: u32,
}

impl ExceptionFold {
    /// Begins with nothing. `code` says what the emulator also lists of the code that it executes.
    pub(super) fn new(code: Option<CollectedCode>) -> Self {
        Self {
            executed: code.map(|_| ExecutedCode::default()),
            trace: (code == Some(CollectedCode::Spans)).then(BlockTrace::default),
            ..Self::default()
        }
    }

    /// Tells what the emulator lists of the code that it executes.
    pub(super) fn takes_code(&self) -> Option<CollectedCode> {
        let traced = self.trace.as_ref().map(|_| CollectedCode::Spans);
        traced.or(self.executed.as_ref().map(|_| CollectedCode::Instructions))
    }

    /// Returns how many faults were taken since the launch.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the code that was executed since the launch, where the emulator lists it.
    pub(super) fn executed(&self) -> Option<ExecutedCode> {
        let executed = self.executed.clone()?;
        Some(self.trace.iter().fold(executed, ExecutedCode::with_trace))
    }

    /// Notes that a console has printed since the last fault.
    pub(super) fn printed(&mut self) {
        self.seen.printed = true;
    }

    /// Counts output that is copied to a pipe of its own. What came with a fault counts as behind it.
    pub(super) fn copied(&mut self, bytes: usize) {
        self.output.add(bytes);
    }

    /// Returns how many bytes the consoles have printed since the last fault behind which they printed
    /// any; nothing if there is no such fault.
    pub(super) fn output_since_fault(&self) -> Option<u64> {
        let begun = if self.executed.is_none() { self.line.len() } else { 0 };
        self.output.since_fault(begun)
    }

    /// Takes in what has arrived.
    pub(super) fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            // A read from memory cannot fail.
            let _ = bytes.read_until(b'\n', &mut self.line);
            if self.line.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.take_line(&line[..line.len() - 1]);
                self.line = line;
                self.line.clear();
            } else if self.line.len() > MAX_LINE {
                self.seen.printed |= self.executed.is_none();
                let cut = self.line.drain(..self.line.len() - MAX_LINE / 2).len();
                self.count(cut);
            }
        }
    }

    /// Returns what was reported, a line that a console has begun included.
    pub(super) fn seen(&self) -> Exceptions {
        let mut seen = self.seen.clone();
        seen.printed |= !self.line.is_empty() && self.executed.is_none();
        seen.since_launch = self.taken;
        seen
    }

    /// Returns the first fault in whose handler a Cortex-M was reset since this was asked last.
    pub(super) fn take_reset_in(&mut self) -> Option<u32> {
        self.reset_in.take()
    }

    fn reset(&mut self) {
        let open = self.seen.open.iter().rev().map(|open| open.number);
        let reset_in = self.reset_in.or_else(|| open.into_iter().find(|&number| is_fault(number)));
        let (entries, taken, executed) = (self.entries, self.taken, self.executed.take());
        let mut trace = self.trace.take();
        trace.iter_mut().for_each(BlockTrace::reset);
        *self = Self { entries, taken, executed, trace, reset_in, ..Self::default() };
    }

    fn take_line(&mut self, line: &[u8]) {
        // What the handler of a fault executes is no part of what has failed.
        let in_fault = self.seen.open.iter().any(|open| is_fault(open.number));
        if self.trace.as_mut().is_some_and(|trace| trace.take(line, in_fault)) {
            return;
        }
        if let Some(code) = &mut self.executed {
            code.take(line, self.seen.faults > 0, self.trace.as_mut());
        }
        let begin = begin_of(line);
        let own = begin.filter(|&begin| is_of_emulator(&line[begin..]));
        self.count(own.unwrap_or(line.len() + 1));
        let Some(begin) = begin else {
            self.seen.printed |= self.executed.is_none();
            return;
        };
        self.seen.printed |= begin > 0 && self.executed.is_none();
        let line = &line[begin..];
        if line.starts_with(TRAP.as_bytes()) {
            if self.last.0 != line {
                self.last = (line.to_vec(), trap_of(line));
            }
            if let Some(trap) = self.last.1 {
                self.trap(trap);
            }
        } else if line.starts_with(RESET.as_bytes()) {
            self.reset();
        } else if let Ok(line) = str::from_utf8(line) {
            self.cortex_m(line);
        }
    }

    /// Counts output, where it stands between the lines.
    fn count(&mut self, bytes: usize) {
        if self.executed.is_none() {
            self.output.add(bytes);
        }
    }

    fn trap(&mut self, trap: TrapLine) {
        let TrapLine { interrupt, cause, at, value } = trap;
        self.seen.traps += 1;
        for earlier in [&mut self.seen.fault, &mut self.seen.call].into_iter().flatten() {
            let same = !interrupt && (earlier.cause, earlier.at) == (cause, at);
            let full = earlier.interrupted.len() >= MAX_PLACES;
            if !same && !full && !earlier.interrupted.contains(&at) {
                earlier.interrupted.push(at);
            }
            if !same && !interrupt {
                earlier.in_a_row = 0;
            }
        }
        let last = match cause {
            _ if interrupt => return,
            // Environment calls of user, supervisor and machine mode.
            8..=11 => &mut self.seen.call,
            _ => {
                self.seen.faults = self.seen.faults.saturating_add(1);
                self.seen.printed = false;
                self.taken += 1;
                self.output.fault();
                &mut self.seen.fault
            }
        };
        let again = last.as_ref().filter(|last| (last.cause, last.at) == (cause, at));
        let in_a_row = again.map_or(0, |last| last.in_a_row).saturating_add(1);
        *last = Some(TrapTaken { cause, at, value, in_a_row, interrupted: Vec::new() });
    }

    fn cortex_m(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("...taking pending ") {
            self.enter(rest);
        } else if let Some(rest) = line.strip_prefix("...loaded new PC 0x") {
            let fault = self.entering.take().is_some_and(is_fault);
            let handler = hex(rest).map(|pc| pc & !1);
            let handlers = &mut self.seen.handlers;
            let new = handler.filter(|at| !handlers.contains(at) && handlers.len() < MAX_HANDLERS);
            handlers.extend(new.filter(|_| fault));
        } else if line.starts_with(RETURN) {
            let number = line.rsplit_once(" previous exception ").and_then(|(_, n)| n.parse().ok());
            let is_left = |open: &OpenException| Some(open.number) == number;
            if let Some(index) = self.seen.open.iter().rposition(is_left) {
                self.seen.open.remove(index);
            }
        } else if let Some(call) = line.strip_prefix("...handling as semihosting call 0x") {
            // A character, a text or a file is written: some of these go to no console.
            self.seen.printed |= matches!(hex(call), Some(3..=5));
        }
    }

    /// Takes in which exception is entered: `nonsecure exception 3`.
    fn enter(&mut self, which: &str) {
        let number = which.rsplit_once(" exception ").and_then(|(_, number)| number.parse().ok());
        self.entering = number;
        let Some(number) = number else { return };
        self.entries += 1;
        if self.seen.open.len() >= MAX_OPEN {
            self.seen.open.remove(0);
        }
        self.seen.open.push(OpenException { number, entry: self.entries });
        if is_fault(number) {
            self.seen.faults = self.seen.faults.saturating_add(1);
            self.seen.printed = false;
            self.taken += 1;
            self.output.fault();
        }
    }
}

/// Tells what begins like a line of the emulator from output with dots in it.
fn is_of_emulator(line: &[u8]) -> bool {
    let Some(detail) = line.strip_prefix(DETAIL.as_bytes()) else { return true };
    let end = detail.iter().position(|&byte| byte == b' ').unwrap_or(detail.len());
    DETAIL_WORDS.iter().any(|word| word.as_bytes() == &detail[..end])
}

/// Finds where a line of the emulator begins; nothing in output of a console.
fn begin_of(line: &[u8]) -> Option<usize> {
    let begins = |rest: &[u8]| BEGINNINGS.iter().any(|begin| rest.starts_with(begin.as_bytes()));
    if begins(line) && line.get(DETAIL.len()) != Some(&b'.') {
        return Some(0);
    }
    // The last one: output in front of it may look like one, too.
    (0..line.len()).rev().find(|&at| begins(&line[at..]))
}

/// Reads `hart:0, async:0, cause:00000002, epc:0x8000006e, tval:0x00000000, desc=...`.
fn trap_of(line: &[u8]) -> Option<TrapLine> {
    let line = str::from_utf8(line).ok()?.strip_prefix(TRAP)?;
    let field = |name: &str| {
        let (_, value) = line.split(", ").find_map(|field| {
            let (key, value) = field.split_once(':')?;
            (key == name).then_some((key, value))
        })?;
        hex(value.strip_prefix("0x").unwrap_or(value))
    };
    Some(TrapLine {
        interrupt: field("async")? != 0,
        cause: field("cause")?,
        at: field("epc")?,
        value: field("tval")?,
    })
}

fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fold(text: &str) -> Exceptions {
        let mut fold = ExceptionFold::default();
        fold.take(text.as_bytes());
        fold.seen()
    }

    fn trap(interrupt: u32, cause: u32, at: u32) -> String {
        format!(
            "{TRAP}hart:0, async:{interrupt}, cause:{cause:08x}, epc:{at:#010x}, \
             tval:0x00000000, desc=x\n"
        )
    }

    fn entry(number: u32) -> String {
        format!(
            "Taking exception 1 [Undefined Instruction] on CPU 0\n\
             ...taking pending nonsecure exception {number}\n\
             ...loading from element {number} of non-secure vector table at 0xc\n\
             ...loaded new PC 0x{:x}\n",
            0x101 + 16 * number
        )
    }

    fn leave(number: u32) -> String {
        format!(
            "Taking exception 8 [QEMU v7M exception exit] on CPU 0\n\
             Exception return: magic PC fffffff9 previous exception {number}\n\
             ...successful exception return\n"
        )
    }

    fn open(text: &str) -> Vec<u32> {
        fold(text).open.iter().map(|open| open.number).collect()
    }

    #[test]
    fn exceptions_of_a_cortex_m_are_open_until_they_are_left() {
        assert_eq!(open(&entry(3)), [3]);
        assert_eq!(open(&[entry(3), leave(3)].concat()), [0; 0]);
        assert_eq!(open(&[entry(6), entry(15), leave(15)].concat()), [6]);
        assert_eq!(open(&[entry(6), entry(15)].concat()), [6, 15]);
        let tail_chained = "Exception return: magic PC fffffff1 previous exception 15\n\
                            ...tailchaining to pending exception\n\
                            ...taking pending nonsecure exception 14\n...loaded new PC 0x41\n";
        assert_eq!(open(&[&*entry(15), tail_chained].concat()), [14]);
        let reset = fold(&[&*entry(3), "CPU Reset (CPU 0)\n"].concat());
        assert_eq!(reset, Exceptions { since_launch: 1, ..Exceptions::default() });
        let reset_in = |text: &str| {
            let mut fold = ExceptionFold::default();
            fold.take(text.as_bytes());
            (fold.take_reset_in(), fold.take_reset_in())
        };
        let reset = "CPU Reset (CPU 0)\n";
        for (text, number) in [
            ([&*entry(3), reset].concat(), Some(3)),
            ([&*entry(6), &*entry(15), reset, reset].concat(), Some(6)),
            ([&*entry(3), &*leave(3), reset].concat(), None),
            ([&*entry(15), reset, &*entry(3)].concat(), None),
        ] {
            assert_eq!(reset_in(&text), (number, None), "{text}");
        }
        let faults = fold(&[entry(15), leave(15), entry(3), leave(3), entry(5)].concat());
        assert_eq!((faults.faults, faults.handlers), (2, vec![0x130, 0x150]));
        let again = [entry(3), leave(3), entry(3)].concat();
        assert_ne!(fold(&again).open[0].entry, fold(&entry(3)).open[0].entry);
    }

    #[test]
    fn output_behind_a_fault_is_told_from_output_in_front_of_it() {
        let (fault, left, ill, tick) = (entry(3), leave(3), trap(0, 2, 64), trap(1, 7, 64));
        let (fault, left, ill, tick) = (&*fault, &*left, &*ill, &*tick);
        let (call, long) = (trap(0, 11, 64), "x".repeat(2 * MAX_LINE));
        for (pieces, printed) in [
            (&["OK\n", fault][..], false),
            (&["OK", fault], false),
            (&[fault, "OK\n"], true),
            (&[fault, "O"], true),
            (&[fault, "O", left], true),
            (&[fault, left], false),
            (&[fault, "x\n..", left], true),
            (&[fault, "...handling as semihosting call 0x5\n"], true),
            (&[fault, "...handling as semihosting call 0x10\n"], false),
            (&["OK\n", ill], false),
            (&[ill, tick, "x", tick], true),
            // Calls and interrupts are no faults.
            (&[ill, "x\n", &call], true),
            (&[fault, &long], true),
        ] {
            assert_eq!(fold(&pieces.concat()).printed, printed, "{pieces:?}");
        }
    }

    #[test]
    fn output_since_a_fault_is_counted() {
        let since = |pieces: &[&str]| {
            let mut fold = ExceptionFold::default();
            fold.take(pieces.concat().as_bytes());
            fold.output_since_fault()
        };
        let (fault, left, ill, long) = (entry(3), leave(3), trap(0, 2, 64), "x".repeat(3000));
        let (fault, left, ill) = (&*fault, &*left, &*ill);
        for (pieces, count) in [
            (&["OK\n"][..], None),
            (&["OK\n", fault], None),
            (&["OK\n", fault, left, "bye\n"], Some(4)),
            (&["OK\n", fault, "b", left, "ye"], Some(3)),
            (&["O", ill, "K\n"], Some(2)),
            (&["O", ill, &long, "\n"], Some(3001)),
            // The last one that is followed by output counts.
            (&[fault, left, "OK\n", fault, left, fault, left], Some(3)),
            (&[fault, left, "OK\n", fault, left, fault, left, "bye"], Some(3)),
            // Output with dots is output.
            (&[fault, left, "test trap ... ok\n", "...\n", "boot...done\n"], Some(33)),
            (&[fault, left, "...", fault, left, "OK"], Some(2)),
            (&[fault, "OK\n", "CPU Reset (CPU 0)\n", "OK\n"], None),
        ] {
            assert_eq!(since(pieces), count, "{pieces:?}");
        }
    }

    #[test]
    fn the_last_fault_and_call_of_a_riscv_core_are_kept_with_what_came_behind() {
        let fault = |text: &str| {
            let fault = fold(text).fault.unwrap();
            (fault.at, fault.in_a_row, fault.interrupted)
        };
        let (ill, tick) = (trap(0, 2, 64), trap(1, 7, 96));
        assert_eq!(fault(&ill), (64, 1, vec![]));
        assert_eq!(fault(&[&*ill, &tick, &ill, &tick, &tick].concat()), (64, 2, vec![96]));
        assert_eq!(fault(&[&*ill, &trap(0, 2, 66), &ill].concat()), (64, 1, vec![]));
        let text = [&*ill, &trap(0, 11, 128), &trap(0, 11, 128), &tick].concat();
        assert_eq!(fault(&text), (64, 0, vec![128, 96]));
        let call = fold(&text).call.unwrap();
        assert_eq!((call.cause, call.in_a_row, call.interrupted), (11, 2, vec![96]));
        assert_eq!(fold(&text).faults, 1);
        let many: String = (0..100).map(|at| trap(1, 7, at)).collect();
        assert_eq!(fault(&[ill, many].concat()).2.len(), MAX_PLACES);
        assert_eq!(fold(&format!("{TRAP}hart:0, async:x\n")), Exceptions::default());
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(
            pieces in proptest::collection::vec(0_usize..8, 0..24),
            cut in 0_usize..2000,
        ) {
            let known = [
                entry(3), leave(3), entry(15), leave(15), trap(0, 2, 64), trap(1, 7, 96),
                "OK\n".to_owned(), ".".to_owned(),
            ];
            let text: String = pieces.iter().map(|&piece| known[piece].as_str()).collect();
            let whole = fold(&text);
            let (a, b) = text.as_bytes().split_at(cut.min(text.len()));
            let mut fold = ExceptionFold::default();
            fold.take(a);
            fold.take(b);
            prop_assert_eq!(fold.seen(), whole);
            let mut at_once = ExceptionFold::default();
            at_once.take(text.as_bytes());
            prop_assert_eq!(fold.output_since_fault(), at_once.output_since_fault());
        }
    }
}
