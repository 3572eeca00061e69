//! What a Cortex-M's own status registers say about a fault, in sentences.
//!
//! Source: ARMv7-M Architecture Reference Manual B3.2, ARMv8-M D1.2; the registers are
//! memory of the snapshot, at their addresses.

use crate::debug_info::exception_name;
use crate::{CoreKind, CoreSnapshot};

/// The interrupts that are active, one bit each.
const IABR: u64 = 0xe000_e300;
const IABR_WORDS: u32 = 16;

/// Priorities of interrupts and of system exceptions, a byte each.
const IPR: u64 = 0xe000_e400;
const SHPR: u64 = 0xe000_ed18;

const ICSR: u64 = 0xe000_ed04;
const SHCSR: u64 = 0xe000_ed24;
const CFSR: u64 = 0xe000_ed28;
const HFSR: u64 = 0xe000_ed2c;
const DFSR: u64 = 0xe000_ed30;
const MMFAR: u64 = 0xe000_ed34;
const BFAR: u64 = 0xe000_ed38;
const SFSR: u64 = 0xe000_ede4;
const SFAR: u64 = 0xe000_ede8;

/// Bits of the configurable fault status register, all three parts of it.
pub(crate) mod cfsr {
    pub(crate) const IACCVIOL: u32 = 1;
    pub(crate) const DACCVIOL: u32 = 1 << 1;
    pub(crate) const MUNSTKERR: u32 = 1 << 3;
    pub(crate) const MSTKERR: u32 = 1 << 4;
    pub(crate) const MLSPERR: u32 = 1 << 5;
    pub(crate) const MMARVALID: u32 = 1 << 7;
    pub(crate) const IBUSERR: u32 = 1 << 8;
    pub(crate) const PRECISERR: u32 = 1 << 9;
    pub(crate) const IMPRECISERR: u32 = 1 << 10;
    pub(crate) const UNSTKERR: u32 = 1 << 11;
    pub(crate) const STKERR: u32 = 1 << 12;
    pub(crate) const LSPERR: u32 = 1 << 13;
    pub(crate) const BFARVALID: u32 = 1 << 15;
    pub(crate) const UNDEFINSTR: u32 = 1 << 16;
    pub(crate) const INVSTATE: u32 = 1 << 17;
    pub(crate) const INVPC: u32 = 1 << 18;
    pub(crate) const NOCP: u32 = 1 << 19;
    pub(crate) const STKOF: u32 = 1 << 20;
    pub(crate) const UNALIGNED: u32 = 1 << 24;
    pub(crate) const DIVBYZERO: u32 = 1 << 25;
}

/// Bits of the hard fault status register.
pub(crate) mod hfsr {
    pub(crate) const VECTTBL: u32 = 1 << 1;
    pub(crate) const FORCED: u32 = 1 << 30;
    pub(crate) const DEBUGEVT: u32 = 1 << 31;
}

/// Bits of the secure fault status register, which Armv8-M has. (ARMv8-M D1.2.241.)
pub(crate) mod sfsr {
    pub(crate) const INVEP: u32 = 1;
    pub(crate) const INVIS: u32 = 1 << 1;
    pub(crate) const INVER: u32 = 1 << 2;
    pub(crate) const AUVIOL: u32 = 1 << 3;
    pub(crate) const INVTRAN: u32 = 1 << 4;
    pub(crate) const LSPERR: u32 = 1 << 5;
    pub(crate) const SFARVALID: u32 = 1 << 6;
    pub(crate) const LSERR: u32 = 1 << 7;
}

/// Bits of the system handler control and state register.
mod shcsr {
    /// Handlers of faults that are active, and their exception numbers.
    pub(super) const FAULTS: [(u32, u32); 5] =
        [(1, 4), (1 << 1, 5), (1 << 2, 3), (1 << 3, 6), (1 << 4, 7)];
    /// Handlers of SVCall, DebugMonitor, PendSV and SysTick that are active.
    pub(super) const OTHERS: u32 = 1 << 7 | 1 << 8 | 1 << 10 | 1 << 11;
    /// Handlers of any kind that are active, and their exception numbers.
    pub(super) const ACTIVE: [(u32, u32); 10] = [
        (1, 4),
        (1 << 1, 5),
        (1 << 2, 3),
        (1 << 3, 6),
        (1 << 4, 7),
        (1 << 5, 2),
        (1 << 7, 11),
        (1 << 8, 12),
        (1 << 10, 14),
        (1 << 11, 15),
    ];
}

const CFSR_WORDS: [(u32, &str); 18] = [
    (cfsr::IACCVIOL, "IACCVIOL: an instruction was fetched from where execution is forbidden"),
    (cfsr::DACCVIOL, "DACCVIOL: data was accessed where memory protection forbids it"),
    (cfsr::MUNSTKERR, "MUNSTKERR: memory protection forbade to unstack on exception return"),
    (cfsr::MSTKERR, "MSTKERR: memory protection forbade to stack on exception entry"),
    (cfsr::MLSPERR, "MLSPERR: memory protection forbade to save floating point state"),
    (cfsr::IBUSERR, "IBUSERR: the bus refused to fetch an instruction"),
    (cfsr::PRECISERR, "PRECISERR: the bus refused a data access of the stacked instruction"),
    (cfsr::IMPRECISERR, "IMPRECISERR: the bus refused an earlier, buffered write"),
    (cfsr::UNSTKERR, "UNSTKERR: the bus refused to unstack on exception return"),
    (cfsr::STKERR, "STKERR: the bus refused to stack on exception entry"),
    (cfsr::LSPERR, "LSPERR: the bus refused to save floating point state"),
    (cfsr::UNDEFINSTR, "UNDEFINSTR: an undefined instruction was executed"),
    (cfsr::INVSTATE, "INVSTATE: the Thumb bit was clear, as after a jump to an even address"),
    (cfsr::INVPC, "INVPC: an exception return failed its integrity checks"),
    (cfsr::NOCP, "NOCP: an instruction was for a coprocessor that is off or absent"),
    (cfsr::STKOF, "STKOF: the stack pointer passed its limit"),
    (cfsr::UNALIGNED, "UNALIGNED: an unaligned access was trapped"),
    (cfsr::DIVBYZERO, "DIVBYZERO: an integer was divided by zero"),
];

const HFSR_WORDS: [(u32, &str); 3] = [
    (hfsr::VECTTBL, "VECTTBL: the vector table could not be read"),
    (hfsr::FORCED, "FORCED: another fault escalated to HardFault"),
    (hfsr::DEBUGEVT, "DEBUGEVT: a breakpoint was reached without a debugger"),
];

const SFSR_WORDS: [(u32, &str); 7] = [
    (sfsr::INVEP, "INVEP: non-secure code called secure code where no entry is"),
    (sfsr::INVIS, "INVIS: the integrity signature on the stack was wrong on exception return"),
    (sfsr::INVER, "INVER: an exception return was for the wrong security state"),
    (sfsr::AUVIOL, "AUVIOL: non-secure code accessed secure memory"),
    (sfsr::INVTRAN, "INVTRAN: secure code branched to non-secure code without changing its state"),
    (sfsr::LSPERR, "LSPERR: floating point state could not be saved in secure memory"),
    (sfsr::LSERR, "LSERR: floating point state was saved in the wrong security state"),
];

const DFSR_WORDS: [(u32, &str); 5] = [
    (1, "HALTED: a debugger asked to halt or to step"),
    (1 << 1, "BKPT: a breakpoint was reached"),
    (1 << 2, "DWTTRAP: a watchpoint was hit"),
    (1 << 3, "VCATCH: caught at a vector"),
    (1 << 4, "EXTERNAL: halted from outside of the core"),
];

const SHCSR_WORDS: [(u32, &str); 8] = [
    (1, "MEMFAULTACT: a MemManage handler is active"),
    (1 << 1, "BUSFAULTACT: a BusFault handler is active"),
    (1 << 3, "USGFAULTACT: a UsageFault handler is active"),
    (1 << 7, "SVCALLACT: an SVCall handler is active"),
    (1 << 11, "SYSTICKACT: a SysTick handler is active"),
    (1 << 12, "USGFAULTPENDED: a UsageFault is pending"),
    (1 << 13, "MEMFAULTPENDED: a MemManage fault is pending"),
    (1 << 14, "BUSFAULTPENDED: a BusFault is pending"),
];

/// The registers; `None` where the core lacks one or it was not captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FaultStatus {
    pub(crate) cfsr: Option<u32>,
    pub(crate) hfsr: Option<u32>,
    mmfar: Option<u32>,
    bfar: Option<u32>,
    sfsr: Option<u32>,
    sfar: Option<u32>,
    dfsr: Option<u32>,
    shcsr: Option<u32>,
    icsr: Option<u32>,
    /// The first interrupt that is active.
    active_irq: Option<u32>,
}

impl FaultStatus {
    pub(crate) fn read(snapshot: &CoreSnapshot) -> Self {
        let word = |address: u64| {
            let bytes = snapshot.read(address, 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        let secure = |address| word(address).filter(|_| snapshot.kind == CoreKind::Armv8m);
        match snapshot.kind {
            CoreKind::Riscv32 => Self::default(),
            // These addresses read as nothing in particular there.
            CoreKind::Armv6m => Self { dfsr: word(DFSR), icsr: word(ICSR), ..Self::default() },
            CoreKind::Armv7m | CoreKind::Armv8m => Self {
                cfsr: word(CFSR),
                hfsr: word(HFSR),
                mmfar: word(MMFAR),
                bfar: word(BFAR),
                sfsr: secure(SFSR),
                sfar: secure(SFAR),
                dfsr: word(DFSR),
                shcsr: word(SHCSR),
                icsr: word(ICSR),
                active_irq: (0..IABR_WORDS).find_map(|index| {
                    let active = word(IABR + 4 * u64::from(index)).filter(|&active| active != 0)?;
                    Some(32 * index + active.trailing_zeros())
                }),
            },
        }
    }

    /// Tells whether a fault was taken and never cleared.
    pub(crate) fn shows_fault(&self) -> bool {
        self.cfsr.unwrap_or(0) | self.hfsr.unwrap_or(0) | self.sfsr.unwrap_or(0) != 0
    }

    /// Tells whether any of the given bits of the configurable fault status is set.
    pub(crate) fn has(&self, bits: u32) -> bool {
        self.cfsr.is_some_and(|cfsr| cfsr & bits != 0)
    }

    /// Tells whether any of the given bits of the secure fault status is set.
    pub(crate) fn has_secure(&self, bits: u32) -> bool {
        self.sfsr.is_some_and(|sfsr| sfsr & bits != 0)
    }

    /// Tells whether a fault was taken since the last reset and is not cleared.
    pub(crate) fn tells_of_fault(&self) -> bool {
        let escalated = hfsr::VECTTBL | hfsr::FORCED;
        self.cfsr.is_some_and(|cfsr| cfsr != 0)
            || self.sfsr.is_some_and(|sfsr| sfsr != 0)
            || self.hfsr.is_some_and(|hfsr| hfsr & escalated != 0)
    }

    /// Returns the fault whose handler is active below the exception that the core executes, where
    /// its registers say so; `running` is the number of that exception.
    ///
    /// Source: ARMv7-M manual B3.2.13 (SHCSR), ARMv8-M D1.2.240; `RETTOBASE` B3.2.4. Before Armv8-M,
    /// no register tells that HardFault is active. Only NMI can interrupt it, so it is active
    /// where NMI has interrupted a handler that is none of those that can be told.
    pub(crate) fn active_fault(&self, running: u32, irq_active: bool) -> Option<u32> {
        const RETTOBASE: u32 = 1 << 11;
        const NMI: u32 = 2;
        const HARD_FAULT: u32 = 3;
        let shcsr = self.shcsr?;
        let told = shcsr::FAULTS.iter().find(|(bit, _)| shcsr & bit != 0);
        let nested = self.icsr.is_some_and(|icsr| icsr & RETTOBASE == 0);
        let others = shcsr & shcsr::OTHERS != 0 || irq_active;
        told.map(|&(_, number)| number)
            .or_else(|| (running == NMI && nested && !others).then_some(HARD_FAULT))
            .filter(|&number| number != running)
    }

    /// Returns the priority of an exception, where it can be set: the lower, the more urgent.
    ///
    /// Source: ARMv7-M manual B3.2.10 to B3.2.12 (SHPR), B3.4.9 (NVIC_IPR).
    pub(crate) fn priority_of(snapshot: &CoreSnapshot, exception: u32) -> Option<u32> {
        let at = match exception {
            4..=15 => SHPR + u64::from(exception - 4),
            16.. => IPR + u64::from(exception - 16),
            _ => return None,
        };
        snapshot.read(at, 1)?.first().map(|&priority| priority.into())
    }

    /// Returns the number of an exception that the core holds active. In a thread, none is.
    ///
    /// Source: ARMv7-M manual B3.2.13 (SHCSR), ARMv8-M D1.2.240; `NVIC_IABR` B3.4.6.
    pub(crate) fn active(&self) -> Option<u32> {
        let told = shcsr::ACTIVE.iter().find(|(bit, _)| self.shcsr.unwrap_or(0) & bit != 0);
        told.map(|&(_, number)| number).or(self.active_irq.map(|irq| 16 + irq))
    }

    /// Returns the most urgent exception that is pending and enabled; `PRIMASK` does not count.
    ///
    /// Source: ARMv7-M manual B3.2.4 (ICSR).
    pub(crate) fn pending(&self) -> Option<u32> {
        self.icsr.map(|icsr| icsr >> 12 & 0x1ff).filter(|&pending| pending != 0)
    }

    /// Returns the address of a data access that the bus refused, if the core kept it.
    pub(crate) fn bus_address(&self) -> Option<u32> {
        self.bfar.filter(|_| self.has(cfsr::BFARVALID))
    }

    /// Returns the address of a data access that memory protection refused.
    pub(crate) fn protected_address(&self) -> Option<u32> {
        self.mmfar.filter(|_| self.has(cfsr::MMARVALID))
    }

    /// Returns the address of a data access that the security of memory refused.
    pub(crate) fn secure_address(&self) -> Option<u32> {
        self.sfar.filter(|_| self.has_secure(sfsr::SFARVALID))
    }

    /// Says in sentences what is set; nothing for what is not.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let mut said = Vec::new();
        let mut say = |register: &str, value: Option<u32>, words: &[(u32, &str)]| {
            let Some(value) = value else { return };
            for (_, text) in words.iter().filter(|(bit, _)| value & bit != 0) {
                said.push(format!("{register} {text}"));
            }
        };
        say("CFSR", self.cfsr, &CFSR_WORDS);
        say("HFSR", self.hfsr, &HFSR_WORDS);
        say("SFSR", self.sfsr, &SFSR_WORDS);
        say("DFSR", self.dfsr, &DFSR_WORDS);
        say("SHCSR", self.shcsr, &SHCSR_WORDS);
        if let Some(address) = self.bus_address() {
            said.push(format!("BFAR: the bus refused {address:#010x}"));
        }
        if let Some(address) = self.protected_address() {
            said.push(format!("MMFAR: memory protection refused {address:#010x}"));
        }
        if let Some(address) = self.secure_address() {
            said.push(format!("SFAR: the security of memory refused {address:#010x}"));
        }
        if let Some(icsr) = self.icsr {
            let active = icsr & 0x1ff;
            if active != 0 {
                said.push(format!("ICSR: {} is active", exception_name(active)));
            }
            if let Some(pending) = self.pending() {
                said.push(format!("ICSR: {} is pending", exception_name(pending)));
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryRange;

    fn snapshot(kind: CoreKind, words: &[(u64, u32)]) -> CoreSnapshot {
        let memory = words
            .iter()
            .map(|&(start, word)| MemoryRange { start, bytes: word.to_le_bytes().to_vec() })
            .collect();
        CoreSnapshot { kind, registers: Vec::new(), memory }
    }

    #[test]
    fn each_set_bit_is_a_sentence_and_no_clear_one_is() {
        let words = [(ICSR, 0x0001_0803), (CFSR, 0x8200), (HFSR, 1 << 30), (BFAR, 4), (DFSR, 8)];
        let status = FaultStatus::read(&snapshot(CoreKind::Armv7m, &words));
        assert_eq!(
            status.sentences(),
            [
                "CFSR PRECISERR: the bus refused a data access of the stacked instruction",
                "HFSR FORCED: another fault escalated to HardFault",
                "DFSR VCATCH: caught at a vector",
                "BFAR: the bus refused 0x00000004",
                "ICSR: HardFault is active",
                "ICSR: IRQ 0 is pending",
            ]
        );
    }

    #[test]
    fn an_address_counts_only_if_the_core_says_so() {
        let words = [(CFSR, 0x0200), (BFAR, 4), (MMFAR, 8)];
        let status = FaultStatus::read(&snapshot(CoreKind::Armv7m, &words));
        assert_eq!((status.bus_address(), status.protected_address()), (None, None));
    }

    #[test]
    fn a_fault_handler_is_active_below_another_exception() {
        const NESTED: u32 = 0;
        const ALONE: u32 = 1 << 11;
        for (running, icsr, shcsr, irq, fault) in [
            (15, NESTED, 1 << 3 | 1 << 11, false, Some(6)),
            (15, NESTED, 1 | 1 << 11, false, Some(4)),
            (2, NESTED, 1 << 1, false, Some(5)),
            // HardFault, which has a bit from Armv8-M on.
            (2, NESTED, 1 << 2, false, Some(3)),
            (2, NESTED, 0, false, Some(3)),
            // NMI above a tick or an interrupt, or above no handler.
            (2, NESTED, 1 << 11, false, None),
            (2, NESTED, 0, true, None),
            (2, ALONE, 0, false, None),
            (15, NESTED, 1 << 11, true, None),
            // What the core executes is not below it.
            (6, ALONE, 1 << 3, false, None),
        ] {
            let words = [(ICSR, icsr | running), (SHCSR, shcsr)];
            let status = FaultStatus::read(&snapshot(CoreKind::Armv7m, &words));
            let found = status.active_fault(running, irq);
            assert_eq!(found, fault, "{running} {icsr:#x} {shcsr:#x} {irq}");
        }
        let none = FaultStatus::read(&snapshot(CoreKind::Armv6m, &[(SHCSR, 8)]));
        assert_eq!(none.active_fault(15, false), None);
    }

    #[test]
    fn an_active_exception_is_told() {
        for (shcsr, irqs, active) in [
            (0, [0, 0], None),
            // Enabled, and pending.
            (0x7 << 16 | 1 << 12, [0, 0], None),
            (1 << 10, [0, 0], Some(14)),
            (1 << 3, [1, 0], Some(6)),
            (0, [1 << 5, 1], Some(21)),
            (0, [0, 1 << 2], Some(50)),
        ] {
            let words = [(SHCSR, shcsr), (IABR, irqs[0]), (IABR + 4, irqs[1])];
            let status = FaultStatus::read(&snapshot(CoreKind::Armv7m, &words));
            assert_eq!(status.active(), active, "{shcsr:#x} {irqs:?}");
            let none = FaultStatus::read(&snapshot(CoreKind::Armv6m, &words));
            assert_eq!(none.active(), None);
        }
    }

    #[test]
    fn a_core_without_the_registers_says_nothing_about_them() {
        let words = [(CFSR, u32::MAX), (HFSR, u32::MAX)];
        let status = FaultStatus::read(&snapshot(CoreKind::Armv6m, &words));
        assert_eq!(status.sentences(), Vec::<String>::new());
    }

    #[test]
    fn all_bits_together_are_sentences_of_their_own() {
        let words: Vec<_> = [ICSR, SHCSR, CFSR, HFSR, SFSR, DFSR, MMFAR, BFAR, SFAR]
            .map(|a| (a, u32::MAX))
            .to_vec();
        let sentences = FaultStatus::read(&snapshot(CoreKind::Armv8m, &words)).sentences();
        let mut unique = sentences.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), sentences.len());
        assert_eq!(sentences.len(), 18 + 3 + 7 + 5 + 8 + 3 + 2);
    }
}
