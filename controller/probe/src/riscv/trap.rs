//! Where the last trap of a RISC-V core left it.
//!
//! # Design
//! A Cortex-M keeps the number of the exception that it executes; a RISC-V core keeps only why it
//! last entered a trap handler. `mcause` still holds that after the handler has returned, and
//! `mstatus` does not tell a handler that runs from one that was left by a `longjmp`. So three
//! things together are taken as proof that the core *stands in* a fault:
//!
//! 1. The last trap was a fault: neither an interrupt nor an environment call, by which
//!    FreeRTOS, Zephyr and NuttX switch contexts. Each later interrupt overwrites the cause, so
//!    under a running system an old fault is forgotten with the next tick.
//! 2. The core executes the handler: a function on its stack is the one at `mtvec`, or is called
//!    from there and from nowhere else in the image. What `main` calls, too, such as a common
//!    `halt()`, proves nothing by itself; but if `mstatus` shows the entry of the trap, and the
//!    function was not called from where it would return to, it was jumped to by the handler. Nor
//!    does a function prove anything whose address other code computes, unless that sets the trap
//!    vector or `mstatus` shows the entry. Calls by pointers do not count, so a handler behind a
//!    table of handlers is recognised by the caller that the unwind tables lead to.
//! 3. The handler does not return: two looks find the same fault, and in between the program does
//!    not come by the faulting instruction or the ones behind it. This acquits a handler that
//!    emulates an instruction again and again, as for misaligned accesses. A handler that faults
//!    itself needs no such watch.
//!
//! Where each trap is reported when it is taken, as by an emulator, a handler that changes these
//! registers hides nothing; see `fault_watch/trap_watch.rs`.
//!
//! A handler that returns to the instruction that faulted, twice in a row, is a proof by itself; a
//! handler that has cleared `mcause` and `mepc` is in a fault if `mstatus` shows the entry.
//!
//! An environment call from machine mode whose handler is never left is a fault, too: there was
//! nothing to answer it. This is looked at for longer, and only if the faulting instruction is a
//! call and interrupts are off. A call that asks for the end of the program is none, unless its argument
//! tells of a failure: as handlers overwrite that register, this is no proof.
//!
//! Without a proof, a core whose interrupts are off and whose `mstatus` still shows the entry of
//! the trap (`MPP` is M; each `mret` sets it to U where the core has that mode) is told as a
//! remark and changes no verdict: the firmware may have left the handler by a `longjmp`.
//!
//! Supervisor mode is judged likewise by `scause` and `stvec`, unless addresses are translated:
//! under Linux these belong to the kernel, which reports its faults itself.

use crate::CoreSnapshot;
use crate::debug_info::{Symbols, TrapCode, Unwound};

/// `mstatus`: interrupts of machine mode are on.
const MIE: u32 = 1 << 3;
/// `mstatus`: interrupts of supervisor mode are on, and the mode from which its trap came.
const SIE: u32 = 1 << 1;
const SPP: u32 = 1 << 8;
/// Calls `exit` and `exit_group`, as newlib and Linux number them.
const EXITS: [u32; 2] = [93, 94];
/// Calls that end the program (SBI): the old shutdown, and the system reset extension.
const SBI_SHUTDOWN: u32 = 8;
const SBI_RESET: u32 = 0x5352_5354;
/// Largest number that is taken for an exit code. Other numbers in its register are those of the handler.
const MOST_EXIT_CODE: u32 = 512;
/// How many words of the stack may be those of saved registers, and how far `a0` is in front of `a7` there.
const SAVED_WORDS: u32 = 64;
const ARGUMENTS: u32 = 7;
/// `mcause`: not caused by an instruction.
const INTERRUPT: u32 = 1 << 31;
/// `mstatus`: the mode from which the trap came, in two bits.
const MPP: u32 = 3 << 11;

/// A trap that a core took last, and which is a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trap {
    /// The exception's number.
    pub(crate) cause: u32,
    /// Address of the instruction that faulted.
    pub(crate) at: u32,
    /// Value that the core adds, such as the address of a refused access.
    pub(crate) value: u32,
    /// Address of the handler.
    pub(crate) handler: u32,
}

impl Trap {
    /// Returns the last traps of machine and of supervisor mode, where these are faults.
    pub(crate) fn last(snapshot: &CoreSnapshot) -> Vec<Self> {
        let word = |name: &str| snapshot.register(name).and_then(|v| u32::try_from(v).ok());
        let trap = |cause: &str, at: &str, handler: &str, value: &str| {
            let cause = word(cause).filter(|&cause| is_fault(cause))?;
            // The lowest bits say how interrupts are told apart; faults go to the base.
            let handler = word(handler)? & !3;
            Some(Self { cause, at: word(at)?, value: word(value).unwrap_or(0), handler })
        };
        let machine = trap("mcause", "mepc", "mtvec", "mtval");
        let translated = word("satp").unwrap_or(0) != 0;
        // A cause of 0 is also that of a register that was never written, or was cleared.
        let supervisor = trap("scause", "sepc", "stvec", "stval")
            .filter(|trap| !translated && trap.handler != 0);
        machine
            .filter(|trap| trap.cause != 0 || trap.at != 0 || entry_shows(snapshot))
            .into_iter()
            .chain(supervisor)
            .collect()
    }

    /// Returns the last traps of machine and of supervisor mode that an instruction has caused.
    pub(crate) fn entered(snapshot: &CoreSnapshot) -> Vec<Self> {
        let word = |name: &str| snapshot.register(name).and_then(|v| u32::try_from(v).ok());
        let trap = |cause: &str, at: &str, handler: &str| {
            let cause = word(cause).filter(|&cause| cause & INTERRUPT == 0)?;
            Some(Self { cause, at: word(at)?, value: 0, handler: word(handler)? & !3 })
        };
        let (machine, supervisor) =
            (trap("mcause", "mepc", "mtvec"), trap("scause", "sepc", "stvec"));
        machine.into_iter().chain(supervisor).collect()
    }

    /// Adds to a trap, whose handler is not known, each handler that the core may have entered: that
    /// of machine mode, and that of supervisor mode unless addresses are translated.
    pub(crate) fn with_handlers(self, snapshot: &CoreSnapshot) -> Vec<Self> {
        let word = |name: &str| snapshot.register(name).and_then(|v| u32::try_from(v).ok());
        let supervisor = word("stvec").filter(|_| word("satp").unwrap_or(0) == 0);
        let handlers = word("mtvec").into_iter().chain(supervisor).map(|handler| handler & !3);
        let handlers = handlers.filter(|&handler| handler != 0);
        handlers.map(|handler| Self { handler, ..self }).collect()
    }

    /// Tells whether the core shows that a call of a less privileged program was not answered:
    /// interrupts are off, the program is to be returned to, and has not asked for its end.
    pub(crate) fn may_be_unanswered(snapshot: &CoreSnapshot) -> bool {
        let word = |name: &str| snapshot.register(name).map_or(0, |value| value as u32);
        let entered = word("mstatus") & MIE == 0 && word("mstatus") & MPP != MPP;
        let ends = asks_firmware_for_end(snapshot) || Self::is_good_exit(snapshot);
        entered && word("satp") == 0 && !ends
    }

    /// Returns the code of a failure with which the program asks for its end by a call: of the registers, or
    /// of those that the handler has saved on the stack, in the order of their numbers.
    pub(crate) fn failed_exit(snapshot: &CoreSnapshot) -> Option<i32> {
        let word = |name: &str| snapshot.register(name).map_or(0, |value| value as u32);
        let (call, stack) = (word("a7"), word("sp"));
        if !EXITS.contains(&call) {
            return None;
        }
        let saved = |index: u32| snapshot.word(stack.checked_add(4 * index)?);
        let mut frame = (ARGUMENTS..SAVED_WORDS).filter(|&index| saved(index) == Some(call));
        let code = match frame.next().and_then(|index| saved(index - ARGUMENTS)) {
            Some(code) => code,
            // A handler in C gets the cause as its argument.
            None => Some(word("a0")).filter(|&code| code != word("mcause"))?,
        };
        let is_code = (1..=MOST_EXIT_CODE).contains(&(code as i32).unsigned_abs());
        is_code.then_some(code as i32)
    }

    /// Tells whether the call of the core asks for the end of the program and tells of no failure.
    pub(crate) fn is_good_exit(snapshot: &CoreSnapshot) -> bool {
        let call = snapshot.register("a7").map_or(0, |value| value as u32);
        EXITS.contains(&call) && Self::failed_exit(snapshot).is_none()
    }

    /// Tells whether it is an environment call.
    pub(crate) fn is_call(&self) -> bool {
        matches!(self.cause, 8 | 9 | 11)
    }

    /// Tells whether the core shows the entry of this trap and no return: interrupts are off, and the
    /// mode to return to is the one from which the trap came.
    pub(crate) fn is_open(&self, snapshot: &CoreSnapshot) -> bool {
        let word = |name: &str| snapshot.register(name).map_or(0, |value| value as u32);
        let status = word("mstatus");
        // A handler may clear what it was entered for.
        let last = (word("scause"), word("sepc"));
        let supervisor =
            supervisor_entry_shows(status) && (last == (self.cause, self.at) || last == (0, 0));
        entry_shows(snapshot) || supervisor
    }

    /// Tells whether the core shows that the handler of this trap, the last one that came, has returned
    /// neither to the instruction nor behind it in the same function. The handler may have cleared the cause.
    pub(crate) fn was_left_elsewhere(
        &self,
        snapshot: &CoreSnapshot,
        symbols: Option<&Symbols>,
    ) -> bool {
        let word = |name: &str| snapshot.register(name).and_then(|v| u32::try_from(v).ok());
        let delegated = word("medeleg").unwrap_or(0) >> (self.cause & 31) & 1 != 0;
        let in_supervisor = delegated
            && word("mcause") != Some(self.cause)
            && word("sepc").is_some_and(|to| to != 0);
        let (cause, to) = if in_supervisor { ("scause", "sepc") } else { ("mcause", "mepc") };
        let last = word(cause).is_some_and(|cause| cause == self.cause || cause == 0);
        let returned = word(to).filter(|&to| to != 0);
        let function = |at: u32| symbols.and_then(|symbols| symbols.function_start(at.into()));
        let behind = |to: u32| {
            [0, 2, 4].contains(&to.wrapping_sub(self.at)) && function(to) == function(self.at)
        };
        last && !self.is_open(snapshot) && returned.is_some_and(|to| !behind(to))
    }

    /// Returns the last trap if it was an environment call from machine mode whose entry shows, and
    /// which does not ask the firmware below for the end of the program.
    pub(crate) fn call(snapshot: &CoreSnapshot) -> Option<Self> {
        const MACHINE_CALL: u32 = 11;
        let word = |name: &str| snapshot.register(name).and_then(|v| u32::try_from(v).ok());
        let cause = word("mcause").filter(|&cause| cause == MACHINE_CALL)?;
        let unexpected = entry_shows(snapshot) && !asks_firmware_for_end(snapshot);
        let trap = Self { cause, at: word("mepc")?, value: 0, handler: word("mtvec")? & !3 };
        unexpected.then_some(trap)
    }

    /// Tells whether the handler has cleared the cause: a jump to an aligned address has no fault.
    pub(crate) fn is_cleared(&self) -> bool {
        self.cause == 0 && self.value.is_multiple_of(4)
    }

    /// Tells whether the instruction could not be fetched.
    pub(crate) fn is_of_fetch(&self) -> bool {
        matches!(self.cause, 1 | 12)
    }

    /// Says in a few words what happened.
    pub(crate) fn what(&self) -> String {
        let Self { at, value, .. } = *self;
        match self.cause {
            0 if self.is_cleared() => "fault whose cause the handler has cleared".to_owned(),
            0 => format!("jump to {value:#010x}, which is not aligned"),
            _ if self.is_of_fetch() => nowhere(at),
            2 => "illegal instruction".to_owned(),
            3 => "breakpoint without a debugger".to_owned(),
            4 => format!("unaligned access reading {value:#010x}"),
            6 => format!("unaligned access writing {value:#010x}"),
            5 => format!("bus fault reading {value:#010x}"),
            7 => format!("bus fault writing {value:#010x}"),
            13 => format!("page fault reading {value:#010x}"),
            15 => format!("page fault writing {value:#010x}"),
            8 => "environment call from user mode".to_owned(),
            9 => "environment call from supervisor mode".to_owned(),
            11 => "environment call from machine mode".to_owned(),
            cause => format!("exception {cause}"),
        }
    }
}

/// Tells whether a call asks the firmware below (SBI) for the end of the program and tells of no failure.
fn asks_firmware_for_end(snapshot: &CoreSnapshot) -> bool {
    let word = |name: &str| snapshot.register(name).map_or(0, |value| value as u32);
    match word("a7") {
        SBI_SHUTDOWN => true,
        // Its second argument is a reason, 0 for none.
        SBI_RESET => word("a1") == 0,
        _ => false,
    }
}

/// Says that the program left its code.
pub(crate) fn nowhere(at: u32) -> String {
    match at {
        0 => "call of a null pointer".to_owned(),
        at => format!("jump to {at:#010x}, which holds no code"),
    }
}

fn is_fault(cause: u32) -> bool {
    matches!(cause, 0..=7 | 12 | 13 | 15)
}

/// How far it is known that a core stands in the handler of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrapStand {
    /// It executes the handler: its frames up to this number belong to it.
    InHandler {
        /// The fault.
        trap: Trap,
        /// How many frames belong to the handler.
        frames: usize,
        /// Whether the handler itself has faulted.
        handler_faulted: bool,
    },
    /// No return from the trap shows, and where the core stands is not known to be the handler.
    Unclear {
        /// The fault.
        trap: Trap,
    },
}

impl TrapStand {
    /// Returns the fault.
    pub(crate) fn trap(&self) -> Trap {
        match self {
            Self::InHandler { trap, .. } | Self::Unclear { trap } => *trap,
        }
    }
}

/// Finds out whether a core stands in the handler of its last fault; nothing if it does not.
pub(crate) fn stand(
    snapshot: &CoreSnapshot,
    symbols: Option<&Symbols>,
    unwound: &Unwound,
) -> Option<TrapStand> {
    let traps = Trap::last(snapshot);
    let standing = traps.iter().find_map(|&trap| {
        let code = TrapCode::find(symbols?, trap.handler);
        let entered = entry_shows(snapshot);
        in_handler(trap, &code, unwound, entered).or_else(|| {
            let jumped = entered && jumped_out(&code, symbols?, unwound);
            jumped.then_some(TrapStand::InHandler { trap, frames: 1, handler_faulted: false })
        })
    });
    standing.or_else(|| {
        let trap = traps.first().copied().filter(|_| entry_shows(snapshot))?;
        // Without an image, the loop of one instruction at the handler's address is still known.
        let pc = snapshot.register("pc")?;
        let looping = pc == u128::from(trap.handler);
        match looping {
            true => Some(TrapStand::InHandler {
                trap,
                frames: 1,
                handler_faulted: trap.at == trap.handler,
            }),
            false => Some(TrapStand::Unclear { trap }),
        }
    })
}

/// Finds the environment call in whose handler a core is at this moment.
pub(crate) fn in_call(
    snapshot: &CoreSnapshot,
    symbols: Option<&Symbols>,
    unwound: &Unwound,
) -> Option<Trap> {
    const ECALL: [u8; 4] = 0x73_u32.to_le_bytes();
    let trap = Trap::call(snapshot)?;
    let symbols = symbols.filter(|s| s.code(u64::from(trap.at), 4) == Some(&ECALL))?;
    in_handler(trap, &TrapCode::find(symbols, trap.handler), unwound, true).map(|_| trap)
}

/// Returns the interrupt that a core took last, if `mstatus` shows its entry: its handler has not returned.
pub(crate) fn interrupt(snapshot: &CoreSnapshot) -> Option<u32> {
    entered_interrupt(snapshot).map(|(cause, _)| cause)
}

/// Interrupts of supervisor mode, which are off by another bit where they are handled there.
const OF_SUPERVISOR: u32 = 1 << 1 | 1 << 5 | 1 << 9;

/// Returns an interrupt of machine mode that is enabled and pending, and that the core does not take, because
/// they are off.
pub(crate) fn masked_interrupt(snapshot: &CoreSnapshot) -> Option<u32> {
    let word = |name: &str| snapshot.register(name).and_then(|v| u32::try_from(v).ok());
    let waiting = word("mip")? & word("mie")? & !OF_SUPERVISOR;
    (word("mstatus")? & MIE == 0 && waiting != 0).then(|| waiting.trailing_zeros())
}

/// Returns where an interrupt that [`interrupt`] tells has interrupted the core.
pub(crate) fn interrupted_at(snapshot: &CoreSnapshot) -> Option<u32> {
    entered_interrupt(snapshot).map(|(_, trap)| trap.at)
}

/// Returns such an interrupt of machine or supervisor mode, and its trap.
fn entered_interrupt(snapshot: &CoreSnapshot) -> Option<(u32, Trap)> {
    let word = |name: &str| snapshot.register(name).and_then(|v| u32::try_from(v).ok());
    let trap = |cause: &str, at: &str, handler: &str| {
        let cause = word(cause).filter(|cause| cause & INTERRUPT != 0)?;
        let handler = word(handler)? & !3;
        Some((cause & !INTERRUPT, Trap { cause, at: word(at)?, value: 0, handler }))
    };
    let machine = trap("mcause", "mepc", "mtvec").filter(|_| entry_shows(snapshot));
    machine.or_else(|| {
        let entered = supervisor_entry_shows(word("mstatus")?);
        trap("scause", "sepc", "stvec").filter(|_| entered)
    })
}

/// Finds the interrupt in whose handler a core is at this moment.
pub(crate) fn in_interrupt(
    snapshot: &CoreSnapshot,
    symbols: Option<&Symbols>,
    unwound: &Unwound,
) -> Option<u32> {
    let ((cause, trap), symbols) = (entered_interrupt(snapshot)?, symbols?);
    let code = TrapCode::find(symbols, trap.handler);
    let inside = in_handler(trap, &code, unwound, true).is_some();
    (inside || jumped_out(&code, symbols, unwound)).then_some(cause)
}

/// Tells whether a core stands in the handler of a trap that it has reported, though its registers may
/// show a later one, which has come while the handler was executed: `later` are the addresses that
/// later traps have interrupted.
pub(crate) fn in_reported(
    trap: Trap,
    later: &[u32],
    snapshot: &CoreSnapshot,
    symbols: Option<&Symbols>,
    unwound: &Unwound,
) -> bool {
    let Some(symbols) = symbols else { return false };
    let code = TrapCode::find(symbols, trap.handler);
    let interrupted = later.iter().all(|&at| code.holds(u64::from(at)));
    interrupted && in_handler(trap, &code, unwound, entry_shows(snapshot)).is_some()
}

fn in_handler(trap: Trap, code: &TrapCode, unwound: &Unwound, entered: bool) -> Option<TrapStand> {
    let holds = |address: u64| code.holds(address) || entered && code.may_hold(address);
    let position = unwound.frames.iter().enumerate().rposition(|(index, frame)| {
        // Of a caller, the address behind the call is known: another function may begin there.
        holds(if index == 0 { frame.pc } else { frame.pc.wrapping_sub(1) })
    })?;
    let handler_faulted = holds(u64::from(trap.at));
    Some(TrapStand::InHandler { trap, frames: position + 1, handler_faulted })
}

/// Tells whether the handler has jumped to the innermost function, which others call.
fn jumped_out(code: &TrapCode, symbols: &Symbols, unwound: &Unwound) -> bool {
    // Functions that were inlined share the address of the one around them.
    let Some(around) = unwound.frames.iter().position(|frame| !frame.inlined) else { return false };
    let (Some(inner), Some(caller)) = (unwound.frames.first(), unwound.frames.get(around + 1))
    else {
        return false;
    };
    code.jumped_to(symbols, inner.pc, caller.pc)
}

/// Tells whether `mstatus` is as the entry of a trap from supervisor mode to supervisor mode leaves it.
fn supervisor_entry_shows(mstatus: u32) -> bool {
    mstatus & SIE == 0 && mstatus & SPP != 0
}

/// Tells whether `mstatus` is as the entry of a trap from machine mode leaves it.
fn entry_shows(snapshot: &CoreSnapshot) -> bool {
    let is = |name: &str, value: u128| snapshot.register(name).unwrap_or(0) == value;
    let Some(status) = snapshot.register("mstatus") else { return false };
    let status = status as u32;
    status & MIE == 0 && status & MPP == MPP && is("satp", 0) && is("medeleg", 0)
}

#[cfg(test)]
mod tests {
    use super::super::parse_registers;
    use super::super::registers::tests::DUMP;
    use super::*;
    use crate::MemoryRange;

    fn with(changes: &[(&str, u128)]) -> CoreSnapshot {
        let mut snapshot = parse_registers(DUMP).unwrap();
        for (name, value) in changes {
            let register = snapshot.registers.iter_mut().find(|r| r.name == *name).unwrap();
            register.value = *value;
        }
        snapshot
    }

    #[test]
    fn only_faults_are_traps_that_count() {
        let causes = |changes: &[(&str, u128)]| -> Vec<u32> {
            Trap::last(&with(changes)).iter().map(|trap| trap.cause).collect()
        };
        assert_eq!(causes(&[]), [2]);
        for cause in [8, 9, 11, 0x8000_0007, 0x8000_000b] {
            assert!(causes(&[("mcause", cause)]).is_empty(), "{cause:#x}");
        }
        // Nothing has trapped since the reset.
        assert!(causes(&[("mcause", 0), ("mepc", 0), ("mstatus", 0)]).is_empty());
        // The handler has cleared what it was entered for.
        assert_eq!(causes(&[("mcause", 0), ("mepc", 0)]), [0]);
        let cleared = Trap::last(&with(&[("mcause", 0), ("mepc", 0), ("mtval", 0)]));
        assert!(cleared[0].is_cleared() && cleared[0].what().contains("cleared"));
        assert_eq!(causes(&[("mcause", 9), ("scause", 13), ("stvec", 0x8020_0000)]), [13]);
        let linux = [("scause", 13), ("stvec", 0xc000_0000), ("satp", 0x8008_0000), ("mcause", 9)];
        assert!(causes(&linux).is_empty());
    }

    #[test]
    fn a_handler_that_returns_elsewhere_is_told_by_where_it_returned() {
        let trap = Trap { cause: 2, at: 0x8000_0100, value: 0, handler: 0 };
        let left = |mepc, mcause, mstatus| {
            let place = [("mepc", mepc), ("mcause", mcause), ("mstatus", mstatus)];
            trap.was_left_elsewhere(&with(&place), None)
        };
        let returned = 0x80;
        assert!(left(0x8000_0200, 2, returned));
        assert!(left(0x8000_00f0, 2, returned));
        for stepped in [0x8000_0100, 0x8000_0102, 0x8000_0104] {
            assert!(!left(stepped, 2, returned), "{stepped:#x}");
        }
        // The handler has cleared the cause.
        assert!(left(0x8000_0200, 0, returned));
        // Of supervisor mode.
        let delegated = |sepc, scause, mstatus| {
            let place = [
                ("medeleg", 1 << 2),
                ("mcause", 9),
                ("mepc", 0x8000_0300),
                ("scause", scause),
                ("sepc", sepc),
                ("mstatus", mstatus),
            ];
            trap.was_left_elsewhere(&with(&place), None)
        };
        assert!(delegated(0x8000_0200, 2, 0) && delegated(0x8000_0200, 0, 0));
        assert!(!delegated(0x8000_0104, 2, 0) && !delegated(0x8000_0200, 5, 0));
        assert!(!delegated(0x8000_0100, 2, 0x100));
        // Another trap came, the handler has not returned, or has cleared where from.
        assert!(!left(0x8000_0200, 0x8000_0007, returned));
        assert!(!left(0x8000_0200, 2, 0x1800));
        assert!(!left(0, 2, returned));
    }

    #[test]
    fn a_call_counts_while_its_entry_shows_unless_firmware_below_ends_the_program() {
        let call = [("mcause", 11), ("a7", 0)];
        let found = |changes: &[(&str, u128)]| {
            Trap::call(&with(&[&call[..], changes].concat())).map(|trap| trap.cause)
        };
        assert_eq!(found(&[]), Some(11));
        for change in [("mcause", 8), ("mcause", 2), ("mstatus", 0x80), ("mstatus", 0x1808)] {
            assert_eq!(found(&[change]), None, "{change:?}");
        }
        assert_eq!(found(&[("a7", 8)]), None);
        // Where the handler has put 0, the program may have loaded another code.
        assert_eq!(found(&[("a7", 93), ("a0", 0)]), Some(11));
        assert_eq!(found(&[("a7", 129), ("a0", 0)]), Some(11));
        for (registers, saved, code) in [
            (1, None, Some(1)),
            (256, None, Some(256)),
            (u32::MAX, None, Some(-1)),
            // Of the handler, which has saved what was there.
            (11, None, None),
            (11, Some(3), Some(3)),
            (11, Some(0), None),
            (0x8000_0100, None, None),
        ] {
            let registers = [("a7", 93), ("a0", u128::from(registers)), ("sp", 0x8000_1000)];
            let mut core = with(&[&call[..], &registers].concat());
            let frame = saved.map_or([0; 12], |code| [0, 0, 0, 0, code, 0, 0, 0, 0, 0, 0, 93]);
            let bytes = frame.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
            core.memory = vec![MemoryRange { start: 0x8000_1000, bytes }];
            assert_eq!(Trap::failed_exit(&core), code, "{registers:?} {saved:?}");
            assert_eq!(Trap::is_good_exit(&core), code.is_none(), "{registers:?} {saved:?}");
        }
    }

    #[test]
    fn a_reported_trap_is_open_while_the_core_shows_an_entry() {
        let trap = Trap { cause: 2, at: 0x40, value: 0, handler: 0 };
        let open = |changes: &[(&str, u128)]| trap.is_open(&with(changes));
        let cleared = ("mcause", 0);
        assert!(open(&[]) && open(&[cleared, ("mepc", 0), ("mtvec", 0x8000_1000)]));
        for change in [("mstatus", 0x80), ("mstatus", 0x1808), ("satp", 0x8000_0000)] {
            assert!(!open(&[change]), "{change:?}");
        }
        // From supervisor mode to supervisor mode: the last trap there has to be this one.
        let supervisor = [("mstatus", 0x120), ("scause", 2), ("sepc", 0x40), ("satp", 1 << 31)];
        assert!(open(&supervisor));
        assert!(open(&[supervisor[0], ("scause", 0), ("sepc", 0), supervisor[3]]));
        for change in [("mstatus", 0x122), ("mstatus", 0x20), ("scause", 5), ("sepc", 0x44)] {
            assert!(!open(&[&supervisor[..], &[change]].concat()), "{change:?}");
        }
    }

    #[test]
    fn a_reported_trap_may_have_entered_each_handler_that_is_set() {
        let trap = Trap { cause: 2, at: 0x40, value: 0, handler: 0 };
        let handlers = |changes: &[(&str, u128)]| -> Vec<u32> {
            let traps = trap.with_handlers(&with(changes));
            traps.iter().map(|trap| trap.handler).collect()
        };
        let both = [("mtvec", 0x8000_0101), ("stvec", 0x8000_0200)];
        assert_eq!(handlers(&both), [0x8000_0100, 0x8000_0200]);
        assert_eq!(handlers(&[both[0], ("stvec", 0)]), [0x8000_0100]);
        assert_eq!(handlers(&[both[0], both[1], ("satp", 1 << 31)]), [0x8000_0100]);
        assert!(Trap::may_be_unanswered(&with(&[("mstatus", 0x80), ("a7", 999)])));
        for change in [("mstatus", 0x88), ("mstatus", 0x1880), ("a7", 93)] {
            let answered = with(&[("mstatus", 0x80), ("a7", 999), change]);
            assert!(!Trap::may_be_unanswered(&answered), "{change:?}");
        }
        let reset = |reason| {
            let call = [("mstatus", 0x880), ("mcause", 9), ("a7", 0x5352_5354), ("a1", reason)];
            Trap::may_be_unanswered(&with(&call))
        };
        assert!(!reset(0) && reset(1));
    }

    #[test]
    fn a_core_is_in_a_call_if_its_handler_runs_and_the_call_is_one() {
        use crate::debug_info::tests::emulated::{RISCV, fixture};
        let elf = std::fs::read(fixture(RISCV, "fault-silent")).unwrap();
        let elf = called(elf);
        let symbols = Symbols::load(&elf).unwrap();
        let address = |name: &str| u128::from(symbols.address_of(name).unwrap());
        let found = |at: &str, pc: &str| {
            let call = [("mcause", 11), ("a7", 0), ("mtvec", address("trap_entry"))];
            let place = [("mepc", address(at)), ("pc", address(pc))];
            let snapshot = with(&[&call[..], &place].concat());
            let unwound = crate::debug_info::unwind(&snapshot, Some(&symbols));
            in_call(&snapshot, Some(&symbols), &unwound).is_some()
        };
        assert!(found("fixture_main", "trap_report"));
        assert!(!found("fixture_main", "fixture_main"));
        assert!(!found("runtime_start", "trap_report"));
    }

    /// Puts an environment call at the begin of a fixture's `fixture_main`.
    fn called(mut elf: Vec<u8>) -> Vec<u8> {
        use object::{Object as _, ObjectSection as _};
        let at = Symbols::load(&elf).unwrap().address_of("fixture_main").unwrap();
        let file = object::File::parse(&*elf).unwrap();
        let offset = file.sections().find_map(|section| {
            let (start, len) = section.file_range()?;
            let offset = at.checked_sub(section.address()).filter(|&offset| offset < len)?;
            usize::try_from(start + offset).ok()
        });
        let offset = offset.unwrap();
        elf[offset..offset + 4].copy_from_slice(&0x73_u32.to_le_bytes());
        elf
    }

    #[test]
    fn without_an_image_only_the_loop_at_the_handler_is_proof() {
        let unwound = |snapshot: &CoreSnapshot| crate::debug_info::unwind(snapshot, None);
        let found = |changes: &[(&str, u128)]| {
            let snapshot = with(changes);
            stand(&snapshot, None, &unwound(&snapshot))
        };
        assert!(matches!(found(&[]), Some(TrapStand::Unclear { .. })));
        let looping = found(&[("pc", 0x8000_00c8)]);
        assert!(matches!(looping, Some(TrapStand::InHandler { handler_faulted: false, .. })));
        let vector = [("pc", 0), ("mtvec", 0), ("mepc", 0), ("mcause", 1)];
        let faulting = found(&vector);
        assert!(matches!(faulting, Some(TrapStand::InHandler { handler_faulted: true, .. })));
        // After `mret`, with interrupts on, or where traps are delegated.
        for change in [("mstatus", 0x80), ("mstatus", 0x1808), ("medeleg", 0xb109)] {
            assert_eq!(found(&[change]), None, "{change:?}");
        }
    }

    #[test]
    fn a_function_with_a_pointer_to_it_is_the_handlers_while_the_entry_shows() {
        let snapshot = with(&[]);
        let unwound = crate::debug_info::unwind(&snapshot, None);
        let trap = Trap::last(&snapshot)[0];
        let pc = unwound.frames[0].pc;
        let (here, elsewhere) = (pc..pc + 4, 0..4);
        for (code, entered, stands) in [
            (TrapCode::with(here.clone(), elsewhere.clone()), false, true),
            (TrapCode::with(elsewhere.clone(), here.clone()), true, true),
            (TrapCode::with(elsewhere.clone(), here.clone()), false, false),
            (TrapCode::with(elsewhere.clone(), elsewhere.clone()), true, false),
        ] {
            let found = in_handler(trap, &code, &unwound, entered);
            assert_eq!(found.is_some(), stands, "{code:?} {entered}");
        }
    }
}
