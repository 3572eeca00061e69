//! A debug port with one memory access port, as the Arm Debug Interface (ADIv5) has them.
//!
//! A state machine over a [`Bus`]; knows neither probe-rs nor any transport.

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
pub(crate) struct DebugPort<B> {
    bus: B,
    identity: PortIdentity,
    select: u32,
    control: u32,
    csw: u32,
    tar: u32,
    sticky: bool,
}

impl<B: Bus> DebugPort<B> {
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A bus with a little memory at 0 and nothing else.
    #[derive(Debug, Clone)]
    pub(crate) struct FakeBus {
        pub(crate) memory: Vec<u8>,
        pub(crate) reset: bool,
        pub(crate) accesses: usize,
    }

    impl FakeBus {
        pub(crate) fn new() -> Self {
            Self { memory: (0..=255).collect(), reset: true, accesses: 0 }
        }

        fn range(&mut self, address: u32, len: usize) -> Result<&mut [u8], BusError> {
            self.accesses += 1;
            if self.memory.is_empty() {
                return Err(BusError::Lost("it has no memory left".to_owned()));
            }
            let start = address as usize;
            self.memory.get_mut(start..start + len).ok_or(BusError::Fault)
        }
    }

    impl Bus for FakeBus {
        fn read(&mut self, address: u32, _: Access, out: &mut [u8]) -> Result<(), BusError> {
            out.copy_from_slice(self.range(address, out.len())?);
            Ok(())
        }
        fn write(&mut self, address: u32, _: Access, bytes: &[u8]) -> Result<(), BusError> {
            self.range(address, bytes.len())?.copy_from_slice(bytes);
            Ok(())
        }
        fn drive_reset(&mut self, level: bool) -> Result<(), BusError> {
            self.reset = level;
            Ok(())
        }
        fn reset_level(&self) -> bool {
            self.reset
        }
    }

    pub(crate) fn port() -> DebugPort<FakeBus> {
        let identity = PortIdentity { debug_port: 0x0bb1_1477, access_port: 0x0477_0021 };
        DebugPort::new(FakeBus::new(), identity)
    }

    const SELECT: u8 = offset::SELECT;
    const CTRL: u8 = offset::CTRL_STAT;

    #[test]
    fn power_is_acknowledged_and_identities_are_told() {
        let mut port = port();
        assert_eq!(port.read_dp(0), 0x0bb1_1477);
        port.write_dp(CTRL, 0x5000_0000);
        assert_eq!(port.read_dp(CTRL), 0xf000_0000);
        port.write_dp(SELECT, 0xf0);
        assert_eq!(port.read_ap(offset::IDR).unwrap(), 0x0477_0021);
        assert_eq!(port.read_ap(offset::BASE).unwrap(), BASE);
        port.write_dp(SELECT, 0x0100_00f0);
        assert_eq!(port.read_ap(offset::IDR).unwrap(), 0);
        assert!(!port.is_data(offset::DRW));
    }

    #[test]
    fn a_fault_sticks_until_it_is_cleared() {
        let mut port = port();
        port.write_ap(offset::TAR, 0x100).unwrap();
        assert_eq!(port.read_ap(offset::DRW), Err(BusError::Fault));
        assert_eq!(port.read_dp(CTRL) & STICKY_ERROR, STICKY_ERROR);
        port.write_dp(0, 1 << 1);
        assert_eq!(port.read_dp(CTRL) & STICKY_ERROR, STICKY_ERROR);
        port.write_dp(0, ABORT_CLEARS_ERROR);
        assert_eq!(port.read_dp(CTRL) & STICKY_ERROR, 0);
        assert_eq!(port.read_ap(offset::TAR).unwrap(), 0x100);
    }

    #[test]
    fn narrow_values_lie_on_the_lanes_of_their_address() {
        let mut port = port();
        // Bytes, address incremented.
        port.write_ap(offset::CSW, 0x10).unwrap();
        port.write_ap(offset::TAR, 0x11).unwrap();
        let mut values = [0; 4];
        port.read_data(&mut values).unwrap();
        assert_eq!(values, [0x1100, 0x12_0000, 0x1300_0000, 0x14]);
        port.write_ap(offset::CSW, 0x11).unwrap();
        port.write_ap(offset::TAR, 0x22).unwrap();
        port.write_data(&[0xbeef_0000, 0xcafe]).unwrap();
        assert_eq!(port.bus().memory[0x22..0x26], [0xef, 0xbe, 0xfe, 0xca]);
        // Banked registers are words and leave the address alone.
        port.write_ap(offset::TAR, 0x44).unwrap();
        port.write_dp(SELECT, 0x10);
        assert_eq!(port.read_ap(0x8).unwrap(), 0x4b4a_4948);
        port.write_ap(0xc, 7).unwrap();
        assert_eq!(port.bus().memory[0x4c..0x50], [7, 0, 0, 0]);
        port.write_dp(SELECT, 0);
        assert_eq!(port.read_ap(offset::TAR).unwrap(), 0x44);
    }

    proptest! {
        /// A block is what its transfers are, one by one.
        #[test]
        fn blocks_are_transfers(
            size in 0_u32..3,
            increments: bool,
            start in 0_u32..64,
            values in proptest::collection::vec(any::<u32>(), 1..40),
        ) {
            let start = start << size;
            let csw = size | u32::from(increments) << 4;
            let (mut block, mut single) = (port(), port());
            for port in [&mut block, &mut single] {
                port.write_ap(offset::CSW, csw).unwrap();
                port.write_ap(offset::TAR, start).unwrap();
            }
            let written = block.write_data(&values);
            let singly = values.iter().try_for_each(|&value| single.write_ap(offset::DRW, value));
            prop_assert_eq!(&written, &singly);
            if written.is_ok() {
                prop_assert_eq!(&block.bus().memory, &single.bus().memory);
            }
            for port in [&mut block, &mut single] {
                port.write_ap(offset::TAR, start).unwrap();
            }
            let mut read = vec![0; values.len()];
            let result = block.read_data(&mut read);
            let mut one_by_one = Vec::new();
            let singly = values.iter().try_for_each(|_| {
                single.read_ap(offset::DRW).map(|value| one_by_one.push(value))
            });
            prop_assert_eq!(&result, &singly);
            if result.is_ok() {
                if written.is_ok() {
                    prop_assert_eq!(read, one_by_one);
                }
                prop_assert_eq!(block.read_ap(offset::TAR), single.read_ap(offset::TAR));
            }
        }

        #[test]
        fn any_transfers_are_taken_without_harm(
            transfers in proptest::collection::vec((0_u8..4, any::<u8>(), any::<u32>()), 0..60),
        ) {
            let mut port = port();
            for (kind, offset, value) in transfers {
                match kind {
                    0 => drop(port.read_ap(offset)),
                    1 => drop(port.write_ap(offset, value)),
                    2 => drop(port.read_dp(offset)),
                    _ => port.write_dp(offset, value),
                }
            }
        }
    }
}
