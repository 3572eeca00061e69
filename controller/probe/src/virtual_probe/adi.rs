//! A debug port with one memory access port, as the Arm Debug Interface (ADIv5) has them.
//!
//! A state machine over a [`Bus`]; knows neither probe-rs nor any transport.

#[cfg(test)]
pub(crate) mod tests;

use super::bus::{Access, Bus, BusError};

/// Identification of the two ports, which depends on the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortIdentity {
    /// DPIDR.
    pub(crate) debug_port: u32,
    /// IDR of the access port.
    pub(crate) access_port: u32,
}

/// Register offsets, of the debug port and of the access port.
mod offset {
    pub(super) const DPIDR_ABORT: u8 = 0x0;
    pub(super) const CTRL_STAT: u8 = 0x4;
    pub(super) const SELECT: u8 = 0x8;
    pub(super) const CSW: u8 = 0x00;
    pub(super) const TAR: u8 = 0x04;
    pub(super) const DRW: u8 = 0x0c;
    pub(super) const BD0: u8 = 0x10;
    pub(super) const BD3: u8 = 0x1c;
    pub(super) const BASE: u8 = 0xf8;
    pub(super) const IDR: u8 = 0xfc;
}

/// Address of the ROM table, with the bits that say it is there.
const BASE: u32 = 0xe00f_f003;

/// Bits of CTRL/STAT that can be written: requests and modes, not the sticky flags.
const CTRL_WRITABLE: u32 = 0x5fff_ff0f;
const CTRL_REQUESTS: u32 = 0x5000_0000;
const STICKY_ERROR: u32 = 1 << 5;
const ABORT_CLEARS_ERROR: u32 = 1 << 2;

/// CSW after power-up: accesses allowed (bit 6), 32 bits wide.
const CSW_RESET: u32 = 0x0300_0042;
const CSW_DEVICE_ENABLED: u32 = 1 << 6;
const CSW_IN_PROGRESS: u32 = 1 << 7;
const CSW_SIZE: u32 = 7;
const CSW_INCREMENT: u32 = 0b11 << 4;

/// Most values of one block; longer ones are cut, so that no peer can ask for much memory.
pub(crate) const MAX_BLOCK: usize = 4096;

/// The two ports and the bus behind them.
pub(crate) struct AdiPort<B> {
    bus: B,
    identity: PortIdentity,
    select: u32,
    control: u32,
    csw: u32,
    tar: u32,
    sticky: bool,
}

impl<B: Bus> AdiPort<B> {
    pub(crate) fn new(bus: B, identity: PortIdentity) -> Self {
        Self { bus, identity, select: 0, control: 0, csw: CSW_RESET, tar: 0, sticky: false }
    }

    /// Returns the bus, for its reset pin.
    pub(crate) fn bus(&mut self) -> &mut B {
        &mut self.bus
    }

    /// Forgets that an access failed.
    pub(crate) fn clear_sticky(&mut self) {
        self.sticky = false;
    }

    /// Reads a debug port register; only bits 2 and 3 of the offset count. RDBUFF is the
    /// caller's affair: it depends on the transport.
    pub(crate) fn read_dp(&mut self, offset: u8) -> u32 {
        match (offset & 0xc, self.select & 0xf) {
            (offset::DPIDR_ABORT, _) => self.identity.debug_port,
            (offset::CTRL_STAT, 0) => {
                // Power comes the moment it is asked for: acknowledgements mirror requests.
                let acknowledged = (self.control & CTRL_REQUESTS) << 1;
                self.control | acknowledged | if self.sticky { STICKY_ERROR } else { 0 }
            }
            _ => 0,
        }
    }

    /// Writes a debug port register.
    pub(crate) fn write_dp(&mut self, offset: u8, value: u32) {
        match (offset & 0xc, self.select & 0xf) {
            (offset::DPIDR_ABORT, _) if value & ABORT_CLEARS_ERROR != 0 => self.sticky = false,
            (offset::CTRL_STAT, 0) => self.control = value & CTRL_WRITABLE,
            (offset::SELECT, _) => self.select = value,
            _ => {}
        }
    }

    /// Tells whether an access port offset is the data register now.
    pub(crate) fn is_data(&self, offset: u8) -> bool {
        self.register(offset) == Some(offset::DRW)
    }

    /// Reads an access port register.
    ///
    /// # Errors
    /// The bus fails.
    pub(crate) fn read_ap(&mut self, offset: u8) -> Result<u32, BusError> {
        let mut value = [0];
        match self.register(offset) {
            Some(offset::CSW) => Ok(self.csw),
            Some(offset::TAR) => Ok(self.tar),
            Some(offset::DRW) => self.read_data(&mut value).map(|()| value[0]),
            Some(bank @ offset::BD0..=offset::BD3) => {
                let address = self.banked(bank);
                let mut bytes = [0; 4];
                let read = self.bus.read(address, Access::Word, &mut bytes);
                self.note(read)?;
                Ok(u32::from_le_bytes(bytes))
            }
            Some(offset::BASE) => Ok(BASE),
            Some(offset::IDR) => Ok(self.identity.access_port),
            // There is no other access port: its IDR is 0, and so is all else.
            Some(_) | None => Ok(0),
        }
    }

    /// Writes an access port register.
    ///
    /// # Errors
    /// The bus fails.
    pub(crate) fn write_ap(&mut self, offset: u8, value: u32) -> Result<(), BusError> {
        match self.register(offset) {
            Some(offset::CSW) => {
                self.csw = value & !CSW_IN_PROGRESS | CSW_DEVICE_ENABLED;
                Ok(())
            }
            Some(offset::TAR) => {
                self.tar = value;
                Ok(())
            }
            Some(offset::DRW) => self.write_data(&[value]),
            Some(bank @ offset::BD0..=offset::BD3) => {
                let address = self.banked(bank);
                let written = self.bus.write(address, Access::Word, &value.to_le_bytes());
                self.note(written)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Reads the data register as often as there are values.
    ///
    /// # Errors
    /// The bus fails; then no value counts and the address has not moved.
    pub(crate) fn read_data(&mut self, values: &mut [u32]) -> Result<(), BusError> {
        let (access, increments) = self.mode();
        let width = access.bytes();
        for values in values.chunks_mut(MAX_BLOCK) {
            if !increments {
                for value in values {
                    let mut bytes = [0; 4];
                    let read = self.bus.read(self.tar, access, &mut bytes[..width]);
                    self.note(read)?;
                    *value = into_lane(self.tar, &bytes);
                }
                continue;
            }
            let mut bytes = vec![0; values.len() * width];
            let read = self.bus.read(self.tar, access, &mut bytes);
            self.note(read)?;
            for (value, chunk) in values.iter_mut().zip(bytes.chunks(width)) {
                let mut word = [0; 4];
                word[..width].copy_from_slice(chunk);
                *value = into_lane(self.tar, &word);
                self.tar = self.tar.wrapping_add(width as u32);
            }
        }
        Ok(())
    }

    /// Writes the data register with one value after the other.
    ///
    /// # Errors
    /// The bus fails; how many values were written is unknown.
    pub(crate) fn write_data(&mut self, values: &[u32]) -> Result<(), BusError> {
        let (access, increments) = self.mode();
        let width = access.bytes();
        for values in values.chunks(MAX_BLOCK) {
            if !increments {
                for value in values {
                    let bytes = out_of_lane(self.tar, *value);
                    let written = self.bus.write(self.tar, access, &bytes[..width]);
                    self.note(written)?;
                }
                continue;
            }
            let mut bytes = Vec::with_capacity(values.len() * width);
            let mut at = self.tar;
            for value in values {
                bytes.extend_from_slice(&out_of_lane(at, *value)[..width]);
                at = at.wrapping_add(width as u32);
            }
            let written = self.bus.write(self.tar, access, &bytes);
            self.note(written)?;
            self.tar = at;
        }
        Ok(())
    }

    /// Returns the full offset in the access port, if the one there is is selected.
    fn register(&self, offset: u8) -> Option<u8> {
        (self.select >> 24 == 0).then_some((self.select & 0xf0) as u8 | offset & 0xc)
    }

    fn mode(&self) -> (Access, bool) {
        let access = match self.csw & CSW_SIZE {
            0 => Access::Byte,
            1 => Access::Half,
            _ => Access::Word,
        };
        (access, self.csw & CSW_INCREMENT != 0)
    }

    fn banked(&self, offset: u8) -> u32 {
        self.tar & !0xf | u32::from(offset & 0xc)
    }

    fn note<T>(&mut self, result: Result<T, BusError>) -> Result<T, BusError> {
        self.sticky |= result.is_err();
        result
    }
}

/// Places a value on the byte lanes of its address.
fn into_lane(address: u32, bytes: &[u8; 4]) -> u32 {
    u32::from_le_bytes(*bytes) << ((address & 3) * 8)
}

/// Takes a value from the byte lanes of its address.
fn out_of_lane(address: u32, value: u32) -> [u8; 4] {
    (value >> ((address & 3) * 8)).to_le_bytes()
}
