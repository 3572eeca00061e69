//! Polling of a running core: has it locked up, reset itself or halted?

use crate::{Attached, CoreKind, CoreState, HaltReason, MemoryWidth, ProbeError, ProbeHandle};

/// Debug halting control and status register: ARMv7-M manual C1.6.2.
const DHCSR: u64 = 0xe000_edf0;
const S_HALT: u32 = 1 << 17;
const S_LOCKUP: u32 = 1 << 19;
/// The core was reset since this register was read last.
const S_RESET_ST: u32 = 1 << 25;

/// Debug exception and monitor control register: ARMv7-M manual C1.6.5.
const DEMCR: u64 = 0xe000_edfc;
/// Halt at the entry of HardFault.
const VC_HARDERR: u32 = 1 << 10;

const EXCEPTION: u128 = 0x1ff;
/// The number of the exception that a core is caught at.
pub(super) const HARD_FAULT: u32 = 3;

/// What a look found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CoreLook {
    pub(super) locked_up: bool,
    pub(super) was_reset: bool,
    pub(super) halted: bool,
}

/// Tells whether a core has the registers that are used here.
pub(super) fn is_cortex_m(attached: &Attached) -> bool {
    matches!(attached.core, Some(CoreKind::Armv6m | CoreKind::Armv7m | CoreKind::Armv8m))
}

/// Looks once, at the cost of one read on Cortex-M.
pub(super) async fn look(handle: &ProbeHandle, cortex_m: bool) -> Result<CoreLook, ProbeError> {
    if cortex_m {
        let status = word(handle, DHCSR).await?;
        return Ok(CoreLook {
            locked_up: status & S_LOCKUP != 0,
            was_reset: status & S_RESET_ST != 0,
            halted: status & S_HALT != 0,
        });
    }
    let state = handle.state().await?;
    Ok(CoreLook {
        locked_up: state == CoreState::LockedUp,
        was_reset: false,
        halted: matches!(state, CoreState::Halted { .. }),
    })
}

/// Chooses whether the core stops at the entry of HardFault.
pub(super) async fn catch_faults(handle: &ProbeHandle, catch: bool) -> Result<(), ProbeError> {
    let before = word(handle, DEMCR).await?;
    let after = if catch { before | VC_HARDERR } else { before & !VC_HARDERR };
    handle.write_as(MemoryWidth::Word, DEMCR, after.to_le_bytes().to_vec()).await
}

/// Tells whether a core that stands does so because of a fault.
pub(super) async fn stands_at_fault(handle: &ProbeHandle) -> Result<bool, ProbeError> {
    match handle.state().await? {
        CoreState::Halted { reason: HaltReason::VectorCatch, .. } => Ok(true),
        // Several reasons at once: an earlier one was never cleared.
        CoreState::Halted { reason: HaltReason::Unknown, .. } => {
            let registers = handle.registers().await?;
            let xpsr = registers.iter().find(|register| register.name == "xpsr");
            Ok(xpsr.is_some_and(|xpsr| xpsr.value & EXCEPTION == HARD_FAULT.into()))
        }
        _ => Ok(false),
    }
}

/// Reads the number of the exception that a Cortex-M executes, 0 for none; it goes on meanwhile.
pub(super) async fn active_exception(handle: &ProbeHandle) -> Result<u32, ProbeError> {
    /// Interrupt control and state register: ARMv7-M manual B3.2.4.
    const ICSR: u64 = 0xe000_ed04;
    const VECTACTIVE: u32 = 0x1ff;
    Ok(word(handle, ICSR).await? & VECTACTIVE)
}

/// Tells whether the status registers of a core show a fault; it goes on meanwhile. Armv6-M has no
/// such registers.
pub(super) async fn shows_fault(handle: &ProbeHandle, kind: CoreKind) -> Result<bool, ProbeError> {
    /// Configurable and hard fault status: ARMv7-M manual B3.2.15 and B3.2.16.
    const CFSR: u64 = 0xe000_ed28;
    const HFSR: u64 = 0xe000_ed2c;
    const FORCED_OR_VECTTBL: u32 = 1 << 30 | 1 << 1;
    if kind == CoreKind::Armv6m {
        return Ok(false);
    }
    let configurable = word(handle, CFSR).await?;
    Ok(configurable != 0 || word(handle, HFSR).await? & FORCED_OR_VECTTBL != 0)
}

/// Tells whether an interrupt of a core that stands is active; no register of Armv6-M says so.
pub(super) async fn active_interrupt(
    handle: &ProbeHandle,
    kind: CoreKind,
) -> Result<bool, ProbeError> {
    /// Interrupt active bit registers: ARMv7-M manual B3.4.7.
    const IABR: u64 = 0xe000_e300;
    if kind == CoreKind::Armv6m {
        return Ok(false);
    }
    let active = handle.read_as(MemoryWidth::Word, IABR, 64).await?;
    Ok(active.iter().any(|&byte| byte != 0))
}

/// Reads where the handlers of faults begin: hard fault and, where the core has them, memory, bus,
/// usage and secure faults.
pub(super) async fn fault_handlers(
    handle: &ProbeHandle,
    kind: CoreKind,
) -> Result<Vec<u32>, ProbeError> {
    const VECTOR_TABLE: u64 = 0xe000_ed08;
    let count = match kind {
        CoreKind::Armv6m => 1,
        CoreKind::Armv8m => 5,
        _ => 4,
    };
    // It reads as 0 where the table cannot be moved.
    let table = u64::from(word(handle, VECTOR_TABLE).await?);
    let vectors = match handle.read(table + 4 * u64::from(HARD_FAULT), 4 * count).await {
        Err(ProbeError::BusFault { .. }) => return Ok(Vec::new()),
        vectors => vectors?,
    };
    let vectors = vectors.as_chunks().0.iter().map(|&vector| u32::from_le_bytes(vector));
    // A handler is Thumb code; anything else is an empty table.
    let mut handlers: Vec<u32> =
        vectors.filter(|vector| vector & 1 == 1).map(|vector| vector & !1).collect();
    handlers.sort_unstable();
    handlers.dedup();
    Ok(handlers)
}

async fn word(handle: &ProbeHandle, address: u64) -> Result<u32, ProbeError> {
    let bytes = handle.read_as(MemoryWidth::Word, address, 4).await?;
    let bytes: [u8; 4] = bytes.try_into().unwrap_or_default();
    Ok(u32::from_le_bytes(bytes))
}

/// Reads what the core says it is: CPUID, or what it does where it has none.
pub(super) async fn identify(handle: &ProbeHandle, cortex_m: bool) -> Result<String, ProbeError> {
    const CPUID: u64 = 0xe000_ed00;
    if cortex_m {
        match word(handle, CPUID).await {
            Ok(cpuid) => return Ok(format!("the core says CPUID {cpuid:#010x}")),
            // A core that is locked up or held in reset may refuse; its debug unit answers.
            Err(ProbeError::BusFault { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(format!("the core is {:?}", handle.state().await?))
}
