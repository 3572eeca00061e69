//! A fake probe, at probe-rs' own seam, with a Cortex-M0 behind it that is just alive enough
//! to be attached to.
//!
//! Why a fake: no machine of a test run can offer a probe that is pulled out in the middle
//! of a sector, a chip that is protected, a first attach that fails after power-up, a driver
//! that hangs. What probe-rs does above the transport is real; only the transport is not. The core
//! executes nothing: a function that is called in RAM returns at once. It has done what
//! [`FakeFlash`] does, where a test has put that in; else it has the result that the script
//! says, and a flash algorithm neither erases nor programs anything.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use probe_rs::architecture::arm::{ArmError, DapError, DapProbe, RawDapAccess, RegisterAddress};
use probe_rs::config::TargetSelector;
use probe_rs::probe::{DebugProbe, DebugProbeError, Probe, ProbeCreationError};

use super::fake_flash::{FakeFlash, Ram};
use super::leash::Cut;
use super::source::{OpenProbe, Opener};
use crate::ProbeSource;
use crate::swd_only::{swd_only_dap_access, swd_only_debug_probe};

/// What goes wrong, and when.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// How many of the first attaches find no target.
    pub(crate) deaf: usize,
    /// Whether only an attach under reset finds the target.
    pub(crate) asleep: bool,
    /// After how many transfers the probe is pulled out.
    pub(crate) pulled_out_after: Option<usize>,
    /// After how many transfers the driver hangs.
    pub(crate) hangs_after: Option<usize>,
    /// Whether the driver panics at its first transfer.
    pub(crate) panics: bool,
    /// What functions of a flash algorithm return.
    pub(crate) result: u32,
}

/// A flash that a core and a test share.
type SharedFlash = Arc<Mutex<FakeFlash>>;

/// A fake probe's source, and what a test can see of it.
#[derive(Default)]
pub(crate) struct Fake {
    script: Script,
    pub(crate) flash: Option<SharedFlash>,
    pub(crate) opened: AtomicUsize,
    pub(crate) transfers: AtomicUsize,
    /// Whether the probe is pulled out at the moment.
    pub(crate) pulled_out: AtomicBool,
    hang: Hang,
}

/// Where a hanging driver waits.
#[derive(Debug, Default)]
struct Hang {
    over: Mutex<bool>,
    changed: Condvar,
    was_cut: AtomicBool,
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fake").field("script", &self.script).finish_non_exhaustive()
    }
}

impl Cut for Fake {
    fn cut(&self) {
        self.hang.was_cut.store(true, Ordering::SeqCst);
        *self.hang.over.lock().unwrap() = true;
        self.hang.changed.notify_all();
    }
}

impl Fake {
    pub(crate) fn new(script: Script) -> Arc<Self> {
        Arc::new(Self { script, ..Self::default() })
    }

    /// Makes a probe with a flash behind it.
    pub(crate) fn with_flash(flash: FakeFlash) -> (Arc<Self>, SharedFlash) {
        let flash = Arc::new(Mutex::new(flash));
        let fake = Self { flash: Some(Arc::clone(&flash)), ..Self::default() };
        (Arc::new(fake), flash)
    }

    pub(crate) fn source(self: &Arc<Self>) -> ProbeSource {
        ProbeSource::Opener(Opener(Box::new(FakeOpener(Arc::clone(self)))))
    }

    pub(crate) fn was_cut(&self) -> bool {
        self.hang.was_cut.load(Ordering::SeqCst)
    }
}

struct FakeOpener(Arc<Fake>);

impl OpenProbe for FakeOpener {
    fn name(&self) -> String {
        "fake".to_owned()
    }

    fn open(&mut self) -> Result<Probe, DebugProbeError> {
        let nth = self.0.opened.fetch_add(1, Ordering::SeqCst);
        if self.0.is_pulled_out(self.0.count()) {
            return Err(ProbeCreationError::NotFound.into());
        }
        Ok(Probe::new(FakeProbe {
            fake: Arc::clone(&self.0),
            deaf: nth < self.0.script.deaf,
            in_reset: false,
            was_reset: false,
            port: Port::default(),
            core: FakeCore::new(self.0.script.result, self.0.flash.clone()),
        }))
    }

    fn target(&self) -> TargetSelector {
        "nRF51822_xxAA".into()
    }

    fn cutter(&self) -> Option<Arc<dyn Cut>> {
        Some(Arc::clone(&self.0) as Arc<dyn Cut>)
    }
}

impl Fake {
    fn count(&self) -> usize {
        self.transfers.load(Ordering::SeqCst)
    }

    /// Tells whether the probe is out after so many transfers.
    fn is_pulled_out(&self, count: usize) -> bool {
        self.pulled_out.load(Ordering::SeqCst)
            || self.script.pulled_out_after.is_some_and(|after| count >= after)
    }
}

#[derive(Debug)]
struct FakeProbe {
    fake: Arc<Fake>,
    deaf: bool,
    in_reset: bool,
    was_reset: bool,
    port: Port,
    core: FakeCore,
}

/// The debug port and its memory access port.
#[derive(Debug, Default)]
struct Port {
    select: u32,
    control: u32,
    status_word: u32,
    address: u32,
}

fn pulled_out() -> DebugProbeError {
    DebugProbeError::Usb(std::io::ErrorKind::NotConnected.into())
}

impl FakeProbe {
    /// Counts a transfer, and lets happen what the script says.
    fn transfer(&mut self, register: RegisterAddress) -> Result<(), ArmError> {
        let script = &self.fake.script;
        let nth = self.fake.transfers.fetch_add(1, Ordering::SeqCst);
        assert!(!script.panics, "the driver met a case that cannot be");
        if self.fake.was_cut() || self.fake.is_pulled_out(nth) {
            return Err(pulled_out().into());
        }
        if script.hangs_after.is_some_and(|after| nth >= after) {
            let over = self.fake.hang.over.lock().unwrap();
            let hang = &self.fake.hang;
            drop(hang.changed.wait_while(over, |over| !*over).unwrap());
            return Err(pulled_out().into());
        }
        // The debug port answers, what is behind it does not: for the port itself probe-rs
        // waits five seconds at each attempt.
        if register.is_ap() && (self.deaf || (script.asleep && !self.was_reset)) {
            return Err(DapError::NoAcknowledge.into());
        }
        Ok(())
    }

    fn bytes(&self) -> u32 {
        1 << (self.port.status_word & 0b11)
    }
}

impl RawDapAccess for FakeProbe {
    swd_only_dap_access!();

    fn raw_read_register(&mut self, register: RegisterAddress) -> Result<u32, ArmError> {
        self.transfer(register)?;
        if !register.is_ap() {
            return Ok(match register.a2_and_3() {
                0x0 => 0x0BB1_1477,
                // Every power-up request is granted.
                0x4 => self.port.control | (self.port.control & 0x5000_0000) << 1,
                _ => 0,
            });
        }
        if self.port.select >> 24 == 1 {
            // The control port of an nRF52, whose zeros say that the chip is protected.
            return Ok(if self.port.select & 0xf0 == 0xf0 { 0x0288_0000 } else { 0 });
        }
        let address = self.port.select & 0xf0 | u32::from(register.a2_and_3());
        Ok(match address {
            0x00 => self.port.status_word | 0x40,
            0x04 => self.port.address,
            0x0c => {
                let here = self.port.address;
                let lane = 8 * (here & 3);
                let value = self.core.read(here & !3)?;
                let step = self.bytes();
                self.port.address = here.wrapping_add(step);
                if step == 4 { value } else { value & (((1 << (8 * step)) - 1) << lane) }
            }
            0x10..=0x1c => self.core.read(self.port.address & !0xf | address & 0xc)?,
            0xf8 => 0xE00F_F003,
            0xfc => 0x0477_0021,
            _ => 0,
        })
    }

    fn raw_write_register(
        &mut self,
        register: RegisterAddress,
        value: u32,
    ) -> Result<(), ArmError> {
        self.transfer(register)?;
        if !register.is_ap() {
            match register.a2_and_3() {
                0x4 => self.port.control = value,
                0x8 => self.port.select = value,
                _ => {}
            }
            return Ok(());
        }
        let address = self.port.select & 0xf0 | u32::from(register.a2_and_3());
        match address {
            0x00 => self.port.status_word = value,
            0x04 => self.port.address = value,
            0x0c => {
                let (here, step) = (self.port.address, self.bytes());
                let mask =
                    if step == 4 { !0 } else { ((1u32 << (8 * step)) - 1) << (8 * (here & 3)) };
                self.core.write(here & !3, value, mask)?;
                self.port.address = here.wrapping_add(step);
            }
            0x10..=0x1c => {
                self.core.write(self.port.address & !0xf | address & 0xc, value, !0)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn swj_sequence(&mut self, _: u8, _: u64) -> Result<(), DebugProbeError> {
        Ok(())
    }

    fn swj_pins(&mut self, out: u32, select: u32, _: u32) -> Result<u32, DebugProbeError> {
        /// nRESET among the pins of the CMSIS-DAP protocol.
        const RESET: u32 = 0x80;
        if select & RESET != 0 {
            if self.in_reset && out & RESET != 0 {
                self.core.reset();
            }
            self.in_reset = out & RESET == 0;
            self.was_reset |= self.in_reset;
        }
        Ok(!0)
    }
}

impl DapProbe for FakeProbe {}

impl DebugProbe for FakeProbe {
    swd_only_debug_probe!();

    fn get_name(&self) -> &str {
        "fake"
    }

    fn speed_khz(&self) -> u32 {
        1000
    }

    fn set_speed(&mut self, speed: u32) -> Result<u32, DebugProbeError> {
        Ok(speed)
    }

    fn target_reset(&mut self) -> Result<(), DebugProbeError> {
        Ok(())
    }

    fn target_reset_assert(&mut self) -> Result<(), DebugProbeError> {
        Ok(())
    }

    fn target_reset_deassert(&mut self) -> Result<(), DebugProbeError> {
        Ok(())
    }
}

/// A core that has registers and memory but executes nothing.
struct FakeCore {
    words: BTreeMap<u32, u32>,
    registers: [u32; 32],
    transfer: u32,
    catch: u32,
    halted: bool,
    result: u32,
    flash: Option<SharedFlash>,
}

impl fmt::Debug for FakeCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeCore").finish_non_exhaustive()
    }
}

impl FakeCore {
    fn new(result: u32, flash: Option<SharedFlash>) -> Self {
        let mut core = Self {
            words: BTreeMap::new(),
            registers: [0; 32],
            transfer: 0,
            catch: 0,
            halted: false,
            result,
            flash,
        };
        core.registers[16] = 1 << 24;
        core
    }

    fn reset(&mut self) {
        self.halted = self.catch & 1 != 0;
        self.registers[14] = !0;
    }

    fn read(&mut self, address: u32) -> Result<u32, ArmError> {
        Ok(match address {
            0xE000_EDF0 => 1 | 1 << 16 | if self.halted { 1 << 17 | 2 } else { 0 },
            0xE000_EDF8 => self.transfer,
            0xE000_EDFC => self.catch,
            0xE000_2000 => 4 << 4,
            0..0x4_0000 => self.words.get(&address).copied().unwrap_or(!0),
            0x2000_0000..0x2000_4000 | 0x1000_0000..0x1000_1000 | 0x4000_0000..0x5000_0000 => {
                self.words.get(&address).copied().unwrap_or(0)
            }
            0xE000_0000.. => self.words.get(&address).copied().unwrap_or(0),
            _ => return Err(DapError::FaultResponse.into()),
        })
    }

    fn write(&mut self, address: u32, value: u32, mask: u32) -> Result<(), ArmError> {
        match address {
            0xE000_EDF0 if value >> 16 == 0xA05F => self.resume(value),
            0xE000_EDF4 => {
                let number = (value & 0x1f) as usize;
                if value & 1 << 16 == 0 {
                    self.transfer = self.registers[number];
                } else {
                    self.registers[number] = self.transfer;
                }
            }
            0xE000_EDF8 => self.transfer = value,
            0xE000_EDFC => self.catch = value,
            0xE000_ED0C if value & 4 != 0 => self.reset(),
            // Flash is not written like memory.
            0..0x4_0000 => {}
            _ => {
                let old = self.read(address)?;
                self.words.insert(address, old & !mask | value & mask);
            }
        }
        Ok(())
    }

    /// Obeys a write to the halting control register.
    fn resume(&mut self, control: u32) {
        let (halt, step) = (control & 2 != 0, control & 4 != 0);
        // A function whose return address holds a breakpoint has returned.
        let back = self.registers[14] & !1;
        let word = self.words.get(&(back & !3)).copied().unwrap_or(0);
        if self.halted && !halt && !step && word >> 8 & 0xff == 0xbe {
            // The code is behind the breakpoint, and probe-rs has stepped over the first
            // instruction.
            let code = (back & !3) + 4;
            let entry = self.registers[15].checked_sub(code).map(|offset| offset & !0xf);
            self.registers[15] = back;
            self.registers[0] = match (&self.flash, entry) {
                (Some(flash), Some(entry)) => {
                    flash.lock().unwrap().call(entry, &self.registers, &mut Ram(&mut self.words))
                }
                _ => self.result,
            };
        } else {
            self.halted = halt || step;
        }
    }
}
