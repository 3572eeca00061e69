//! The frontend towards probe-rs in this process: its own traits for probes of debug ports.

use std::fmt;

use probe_rs::architecture::arm::{ArmError, DapError, DapProbe, RawDapAccess, RegisterAddress};
use probe_rs::probe::{DebugProbe, DebugProbeError, Probe};

use crate::swd_only::{swd_only_dap_access, swd_only_debug_probe};
use crate::virtual_probe::adi::AdiPort;
use crate::virtual_probe::bus::{Bus, BusError};

/// Bit of the reset pin among the pins of a probe.
const NRESET: u32 = 1 << 7;

/// Speed of a debug wire that does not exist, in kHz.
const SPEED: u32 = 10_000;

/// Supply voltage that is reported for the target.
const VOLTS: f32 = 3.3;

/// Makes a probe out of a debug port.
pub(in crate::virtual_probe) fn open_probe<B>(port: AdiPort<B>, board: &str) -> Probe
where
    B: Bus + Send + 'static,
{
    Probe::new(VirtualProbe { port, name: format!("virtual probe of {board}"), speed: SPEED })
}

struct VirtualProbe<B> {
    port: AdiPort<B>,
    name: String,
    speed: u32,
}

impl<B> fmt::Debug for VirtualProbe<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualProbe").field("name", &self.name).finish_non_exhaustive()
    }
}

fn arm(error: BusError) -> ArmError {
    match error {
        BusError::Fault => ArmError::Dap(DapError::FaultResponse),
        BusError::Lost(_) => ArmError::Probe(probe(error)),
    }
}

fn probe(error: BusError) -> DebugProbeError {
    DebugProbeError::Other(error.to_string())
}

/// Offset of the register behind an address, which the selected bank completes.
fn offset(address: RegisterAddress) -> u8 {
    address.lsb() & 0xc
}

/// Debug port register that repeats the last access port read.
const RDBUFF: u8 = 0xc;

impl<B: Bus + Send + 'static> RawDapAccess for VirtualProbe<B> {
    swd_only_dap_access!();

    fn raw_read_register(&mut self, address: RegisterAddress) -> Result<u32, ArmError> {
        if address.is_ap() {
            return self.port.read_ap(offset(address)).map_err(arm);
        }
        match offset(address) {
            // Reads are not posted here: there is no value to repeat.
            RDBUFF => Ok(0),
            other => Ok(self.port.read_dp(other)),
        }
    }

    fn raw_write_register(&mut self, address: RegisterAddress, value: u32) -> Result<(), ArmError> {
        if address.is_ap() {
            return self.port.write_ap(offset(address), value).map_err(arm);
        }
        self.port.write_dp(offset(address), value);
        Ok(())
    }

    fn raw_read_block(
        &mut self,
        address: RegisterAddress,
        values: &mut [u32],
    ) -> Result<(), ArmError> {
        if address.is_ap() && self.port.is_data(offset(address)) {
            return self.port.read_data(values).map_err(arm);
        }
        values.iter_mut().try_for_each(|value| {
            *value = self.raw_read_register(address)?;
            Ok(())
        })
    }

    fn raw_write_block(
        &mut self,
        address: RegisterAddress,
        values: &[u32],
    ) -> Result<(), ArmError> {
        if address.is_ap() && self.port.is_data(offset(address)) {
            return self.port.write_data(values).map_err(arm);
        }
        values.iter().try_for_each(|value| self.raw_write_register(address, *value))
    }

    fn swj_sequence(&mut self, _bit_len: u8, _bits: u64) -> Result<(), DebugProbeError> {
        // Line resets and protocol switches: there is no line.
        Ok(())
    }

    fn swj_pins(&mut self, out: u32, select: u32, _wait: u32) -> Result<u32, DebugProbeError> {
        if select & NRESET != 0 {
            self.port.bus().drive_reset(out & NRESET != 0).map_err(probe)?;
        }
        Ok(if self.port.bus().reset_level() { NRESET } else { 0 })
    }
}

impl<B: Bus + Send + 'static> DapProbe for VirtualProbe<B> {}

impl<B: Bus + Send + 'static> DebugProbe for VirtualProbe<B> {
    swd_only_debug_probe!();

    fn get_name(&self) -> &str {
        &self.name
    }

    fn speed_khz(&self) -> u32 {
        self.speed
    }

    fn set_speed(&mut self, speed_khz: u32) -> Result<u32, DebugProbeError> {
        self.speed = speed_khz;
        Ok(speed_khz)
    }

    fn target_reset(&mut self) -> Result<(), DebugProbeError> {
        self.target_reset_assert()?;
        self.target_reset_deassert()
    }

    fn target_reset_assert(&mut self) -> Result<(), DebugProbeError> {
        self.port.bus().drive_reset(false).map_err(probe)
    }

    fn target_reset_deassert(&mut self) -> Result<(), DebugProbeError> {
        self.port.bus().drive_reset(true).map_err(probe)
    }

    fn get_target_voltage(&mut self) -> Result<Option<f32>, DebugProbeError> {
        Ok(Some(VOLTS))
    }
}
