//! The debug registers that hold something of their own.

/// Reasons in DFSR.
pub(super) mod fault_cause {
    pub(crate) const HALTED: u32 = 1;
    pub(crate) const BKPT: u32 = 1 << 1;
    pub(crate) const VCATCH: u32 = 1 << 3;
}

pub(super) const C_DEBUGEN: u32 = 1;
pub(super) const C_HALT: u32 = 1 << 1;
pub(super) const C_STEP: u32 = 1 << 2;
pub(super) const C_MASKINTS: u32 = 1 << 3;

const VC_CORERESET: u32 = 1;
const VC_HARDERR: u32 = 1 << 10;

/// Debug registers that hold something of their own.
#[derive(Debug)]
pub(super) struct DebugRegisters {
    /// The C bits of DHCSR.
    pub(super) control: u32,
    pub(super) demcr: u32,
    pub(super) dfsr: u32,
    pub(super) dcrdr: u32,
    /// Whether the core was reset since DHCSR was last read.
    pub(super) was_reset: bool,
}

impl Default for DebugRegisters {
    /// The state after an attach before the first instruction: halted.
    fn default() -> Self {
        let control = C_DEBUGEN | C_HALT;
        Self { control, demcr: 0, dfsr: 0, dcrdr: 0, was_reset: false }
    }
}

impl DebugRegisters {
    pub(super) fn is_attached(&self) -> bool {
        self.control & C_DEBUGEN != 0
    }

    pub(super) fn masks_interrupts(&self) -> bool {
        self.control & C_MASKINTS != 0
    }

    pub(super) fn catches_hard_faults(&self) -> bool {
        self.demcr & VC_HARDERR != 0
    }

    pub(super) fn catches_reset(&self) -> bool {
        self.demcr & VC_CORERESET != 0
    }

    /// Forgets what a debugger set.
    pub(super) fn detach(&mut self) {
        self.control = 0;
        self.demcr = 0;
    }

    pub(super) fn set_halted(&mut self, halted: bool) {
        self.control &= !(C_HALT | C_STEP);
        if halted {
            self.control |= C_HALT;
        }
    }

    pub(super) fn cause(&mut self, cause: u32) {
        self.dfsr |= cause;
    }

    /// Returns the causes noted so far, and forgets them.
    pub(super) fn take_causes(&mut self) -> u32 {
        std::mem::take(&mut self.dfsr)
    }

    pub(super) fn clear_causes(&mut self) {
        self.dfsr = 0;
    }
}
