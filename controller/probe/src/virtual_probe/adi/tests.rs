//! The two ports over a bus that is a little memory.

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

pub(crate) fn port() -> AdiPort<FakeBus> {
    let identity = PortIdentity { debug_port: 0x0bb1_1477, access_port: 0x0477_0021 };
    AdiPort::new(FakeBus::new(), identity)
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
