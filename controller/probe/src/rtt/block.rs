//! The control block of RTT and its rings, as SEGGER documents them.
//!
//! Layout, little-endian words of 32 bits: 16 bytes of id, the numbers of up and down
//! channels, then per channel: name, buffer, size, write offset, read offset, flags. The
//! target moves the write offset of an up channel, the debugger the read offset; of a down
//! channel the other way round. A ring is empty when both are equal, so it holds one byte
//! less than its size.
//!
//! All of it is memory of the target: nothing in it is believed before it was checked.

use std::ops::Range;

use crate::ProbeError;

/// Memory of a target that may be running.
pub trait TargetMemory {
    /// Fills the buffer from an address on.
    ///
    /// # Errors
    /// The target's bus refuses, or the probe fails.
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), ProbeError>;

    /// Writes the bytes from an address on.
    ///
    /// # Errors
    /// The target's bus refuses, or the probe fails.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), ProbeError>;
}

const ID: &[u8; 16] = b"SEGGER RTT\0\0\0\0\0\0";
const HEAD: u64 = 24;
const CHANNEL: u64 = 24;
const WRITE_OFFSET: u64 = 12;
const READ_OFFSET: u64 = 16;

/// Most channels of one direction; more than any library offers.
const MOST_CHANNELS: u32 = 64;

/// Largest ring; larger than the RAM of any chip this is used on.
const LARGEST_RING: u32 = 16 << 20;

/// Bytes that are looked through at once.
const STRIDE: u64 = 16 << 10;

/// Longest name of a channel.
const LONGEST_NAME: usize = 64;

/// Says why a channel cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RttError {
    /// Memory could not be accessed.
    #[error(transparent)]
    Memory(#[from] ProbeError),
    /// The control block holds what no target writes there; it was overwritten, or the
    /// target was reset.
    #[error("the RTT control block at {address:#x} is corrupted: {what}")]
    Corrupted {
        /// Its address.
        address: u64,
        /// What is wrong.
        what: String,
    },
    /// There is no such channel.
    #[error("the target has no RTT {direction} channel {channel}; it has {count}")]
    NoChannel {
        /// `up` or `down`.
        direction: &'static str,
        /// The number that was asked for.
        channel: usize,
        /// How many there are.
        count: usize,
    },
}

/// One direction of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RttChannel {
    /// Its name, as the target spells it: hostile text.
    pub name: String,
    /// Bytes of its ring.
    pub size: u32,
    descriptor: u64,
    buffer: u64,
}

/// A control block that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RttBlock {
    /// Where it is.
    pub address: u64,
    /// Channels from the target.
    pub up: Vec<RttChannel>,
    /// Channels to the target.
    pub down: Vec<RttChannel>,
}

impl RttBlock {
    /// Looks for a control block that its target has finished, in ranges of memory; the
    /// first one counts.
    ///
    /// # Errors
    /// Memory cannot be read, or the block holds nonsense.
    pub fn find(
        memory: &mut dyn TargetMemory,
        ranges: &[Range<u64>],
    ) -> Result<Option<Self>, RttError> {
        for address in places(memory, ranges, true)? {
            if let Some(block) = Self::at(memory, address)? {
                return Ok(Some(block));
            }
        }
        Ok(None)
    }

    /// Returns where an image puts its control block, if it says so: the address of the
    /// symbol that every library of RTT has.
    pub fn address_in(elf: &[u8]) -> Option<u64> {
        use object::{Object as _, ObjectSymbol as _};
        let file = object::File::parse(elf).ok()?;
        let symbol = file.symbols().find(|symbol| symbol.name() == Ok("_SEGGER_RTT"))?;
        Some(symbol.address())
    }

    /// Takes the control block at an address; nothing if the target has not written it yet.
    ///
    /// # Errors
    /// Memory cannot be read, or the block holds nonsense.
    pub fn at(memory: &mut dyn TargetMemory, address: u64) -> Result<Option<Self>, RttError> {
        let corrupted = |what: String| RttError::Corrupted { address, what };
        let mut head = [0; HEAD as usize];
        memory.read(address, &mut head)?;
        if !head.starts_with(ID) {
            return Ok(None);
        }
        let (up, down) = (word(&head, 16), word(&head, 20));
        if up > MOST_CHANNELS || down > MOST_CHANNELS {
            return Err(corrupted(format!("it has {up} up and {down} down channels")));
        }
        let mut channels = Vec::new();
        for index in 0..u64::from(up + down) {
            let descriptor = address + HEAD + index * CHANNEL;
            let mut bytes = [0; CHANNEL as usize];
            memory.read(descriptor, &mut bytes)?;
            let (buffer, size) = (u64::from(word(&bytes, 4)), word(&bytes, 8));
            if size > LARGEST_RING {
                return Err(corrupted(format!("channel {index} has a ring of {size} bytes")));
            }
            let name = name(memory, u64::from(word(&bytes, 0)));
            channels.push(RttChannel { name, size, descriptor, buffer });
        }
        let down = channels.split_off(up as usize);
        Ok(Some(Self { address, up: channels, down }))
    }

    /// Wipes every control block in these ranges, so that after a reset only one that the
    /// new boot wrote is found. Returns how many there were.
    ///
    /// # Errors
    /// Memory cannot be accessed.
    pub fn wipe(memory: &mut dyn TargetMemory, ranges: &[Range<u64>]) -> Result<usize, RttError> {
        let found = places(memory, ranges, false)?;
        for address in &found {
            memory.write(*address, &[0; ID.len()])?;
        }
        Ok(found.len())
    }

    /// Takes what the target has put into an up channel and appends it.
    ///
    /// # Errors
    /// There is no such channel, its offsets are nonsense, or memory cannot be accessed.
    pub fn read(
        &self,
        memory: &mut dyn TargetMemory,
        channel: usize,
        into: &mut Vec<u8>,
    ) -> Result<usize, RttError> {
        let ring = pick(&self.up, "up", channel)?;
        let (write, read) = self.offsets(memory, ring)?;
        if write == read {
            return Ok(0);
        }
        let start = into.len();
        let first = if write > read { read..write } else { read..ring.size };
        let second = if write > read { 0..0 } else { 0..write };
        for part in [first, second] {
            let at = into.len();
            into.resize(at + part.len(), 0);
            if !part.is_empty() {
                let got = memory.read(ring.buffer + u64::from(part.start), &mut into[at..]);
                if let Err(error) = got {
                    // Not taken: the offset in the target has not moved.
                    into.truncate(start);
                    return Err(error.into());
                }
            }
        }
        if let Err(error) = memory.write(ring.descriptor + READ_OFFSET, &write.to_le_bytes()) {
            into.truncate(start);
            return Err(error.into());
        }
        Ok(into.len() - start)
    }

    /// Puts bytes into a down channel; returns how many there was room for.
    ///
    /// # Errors
    /// There is no such channel, its offsets are nonsense, or memory cannot be accessed.
    pub fn write(
        &self,
        memory: &mut dyn TargetMemory,
        channel: usize,
        bytes: &[u8],
    ) -> Result<usize, RttError> {
        let ring = pick(&self.down, "down", channel)?;
        let (mut write, read) = self.offsets(memory, ring)?;
        let used = if write >= read { write - read } else { ring.size - read + write };
        let room = (ring.size - 1 - used) as usize;
        let mut rest = &bytes[..bytes.len().min(room)];
        let count = rest.len();
        if count == 0 {
            return Ok(0);
        }
        while !rest.is_empty() {
            let to_end = (ring.size - write) as usize;
            let (part, more) = rest.split_at(rest.len().min(to_end));
            memory.write(ring.buffer + u64::from(write), part)?;
            // Neither sum can reach the size of the address space: the ring is smaller.
            write = (write + part.len() as u32) % ring.size;
            rest = more;
        }
        memory.write(ring.descriptor + WRITE_OFFSET, &write.to_le_bytes())?;
        Ok(count)
    }

    fn offsets(
        &self,
        memory: &mut dyn TargetMemory,
        ring: &RttChannel,
    ) -> Result<(u32, u32), RttError> {
        let mut bytes = [0; 8];
        memory.read(ring.descriptor + WRITE_OFFSET, &mut bytes)?;
        let (write, read) = (word(&bytes, 0), word(&bytes, 4));
        if write >= ring.size || read >= ring.size {
            let what =
                format!("channel {:?} is at {write} and {read} of {} bytes", ring.name, ring.size);
            return Err(RttError::Corrupted { address: self.address, what });
        }
        Ok((write, read))
    }
}

fn pick<'c>(
    channels: &'c [RttChannel],
    direction: &'static str,
    channel: usize,
) -> Result<&'c RttChannel, RttError> {
    let count = channels.len();
    // A ring without room is how targets mark a channel that is not in use.
    let usable = channels.get(channel).filter(|ring| ring.size > 1);
    usable.ok_or(RttError::NoChannel { direction, channel, count })
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

/// Reads a name; nothing where none can be read.
fn name(memory: &mut dyn TargetMemory, address: u64) -> String {
    let mut bytes = [0; LONGEST_NAME];
    if address == 0 || memory.read(address, &mut bytes).is_err() {
        return String::new();
    }
    let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(LONGEST_NAME);
    String::from_utf8_lossy(&bytes[..len]).into_owned()
}

/// Lists where the id stands at a multiple of four; all of them, or the first.
fn places(
    memory: &mut dyn TargetMemory,
    ranges: &[Range<u64>],
    first: bool,
) -> Result<Vec<u64>, RttError> {
    let mut found = Vec::new();
    let mut buffer = Vec::new();
    for range in ranges {
        let mut start = range.start.next_multiple_of(4);
        while start + HEAD <= range.end {
            // Strides overlap by an id, so that none is cut in two.
            let len = (range.end - start).min(STRIDE + ID.len() as u64);
            buffer.resize(usize::try_from(len).unwrap_or(0), 0);
            memory.read(start, &mut buffer)?;
            for at in (0..buffer.len().saturating_sub(ID.len() - 1)).step_by(4) {
                if buffer[at..].starts_with(ID) && !found.contains(&(start + at as u64)) {
                    found.push(start + at as u64);
                    if first {
                        return Ok(found);
                    }
                }
            }
            start += STRIDE;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RAM: u64 = 0x2000_0000;

    /// RAM of a target that fills and empties its rings by itself.
    struct Ram(Vec<u8>);

    impl Ram {
        fn slice(&mut self, address: u64, len: usize) -> Result<&mut [u8], ProbeError> {
            let refused = ProbeError::BusFault { access: "access", address };
            let start = address.checked_sub(RAM).and_then(|at| usize::try_from(at).ok());
            let range = start.and_then(|at| self.0.get_mut(at..at.checked_add(len)?));
            range.ok_or(refused)
        }

        fn word(&mut self, address: u64) -> u32 {
            word(self.slice(address, 4).unwrap(), 0)
        }

        fn set(&mut self, address: u64, value: u32) {
            self.slice(address, 4).unwrap().copy_from_slice(&value.to_le_bytes());
        }

        /// The target puts a byte into its up channel, or finds it full.
        fn put(&mut self, block: u64, buffer: u64, size: u32, byte: u8) -> bool {
            let up = block + HEAD;
            let (write, read) = (self.word(up + WRITE_OFFSET), self.word(up + READ_OFFSET));
            let next = (write + 1) % size;
            if next == read {
                return false;
            }
            self.slice(buffer + u64::from(write), 1).unwrap()[0] = byte;
            self.set(up + WRITE_OFFSET, next);
            true
        }

        fn get(&mut self, block: u64, buffer: u64, size: u32) -> Option<u8> {
            let down = block + HEAD + CHANNEL;
            let (write, read) = (self.word(down + WRITE_OFFSET), self.word(down + READ_OFFSET));
            if write == read {
                return None;
            }
            let byte = self.slice(buffer + u64::from(read), 1).unwrap()[0];
            self.set(down + READ_OFFSET, (read + 1) % size);
            Some(byte)
        }
    }

    impl TargetMemory for Ram {
        fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), ProbeError> {
            into.copy_from_slice(self.slice(address, into.len())?);
            Ok(())
        }

        fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), ProbeError> {
            self.slice(address, bytes.len())?.copy_from_slice(bytes);
            Ok(())
        }
    }

    const UP: u64 = RAM + 0x400;
    const DOWN: u64 = RAM + 0x500;
    const NAME: u64 = RAM + 0x600;

    fn target(block: u64, up_size: u32, down_size: u32) -> Ram {
        let mut ram = Ram(vec![0; 0x9000]);
        ram.write(NAME, b"term\x1b\0").unwrap();
        ram.write(block, ID).unwrap();
        ram.set(block + 16, 1);
        ram.set(block + 20, 1);
        for (index, buffer, size) in [(0, UP, up_size), (1, DOWN, down_size)] {
            let channel = block + HEAD + index * CHANNEL;
            ram.set(channel, u32::try_from(NAME).unwrap());
            ram.set(channel + 4, u32::try_from(buffer).unwrap());
            ram.set(channel + 8, size);
        }
        ram
    }

    fn ram_range() -> [Range<u64>; 2] {
        [RAM..RAM + 0x9000, 0..0]
    }

    #[test]
    fn a_block_is_found_wherever_it_is() {
        // At the start, across the border of two strides, and at the very end.
        for at in [0, STRIDE - 8, STRIDE, 0x9000 - HEAD - 2 * CHANNEL] {
            let mut ram = target(RAM + at, 16, 16);
            let block = RttBlock::find(&mut ram, &ram_range()).unwrap().unwrap();
            assert_eq!((block.address, block.up.len(), block.down.len()), (RAM + at, 1, 1));
            assert_eq!(block.up[0].name, "term\x1b");
            assert_eq!(RttBlock::wipe(&mut ram, &ram_range()).unwrap(), 1);
            assert_eq!(RttBlock::find(&mut ram, &ram_range()).unwrap(), None);
        }
    }

    #[test]
    fn half_a_block_and_nonsense_are_told_apart() {
        let mut ram = target(RAM, 16, 16);
        ram.write(RAM, b"\0").unwrap();
        assert_eq!(RttBlock::at(&mut ram, RAM).unwrap(), None);
        let breaks: [(u64, u32); 3] = [(16, 65), (20, u32::MAX), (HEAD + 8, LARGEST_RING + 1)];
        for (at, value) in breaks {
            let mut ram = target(RAM, 16, 16);
            ram.set(RAM + at, value);
            let error = RttBlock::at(&mut ram, RAM).unwrap_err();
            assert!(matches!(error, RttError::Corrupted { .. }), "{error}");
        }
        let mut ram = target(RAM, 16, 16);
        let block = RttBlock::at(&mut ram, RAM).unwrap().unwrap();
        ram.set(RAM + HEAD + READ_OFFSET, 16);
        let error = block.read(&mut ram, 0, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("at 0 and 16 of 16 bytes"), "{error}");
        let error = block.write(&mut ram, 1, b"x").unwrap_err();
        assert!(matches!(error, RttError::NoChannel { channel: 1, count: 1, .. }), "{error}");
    }

    #[test]
    fn a_failed_read_takes_nothing() {
        let mut ram = target(RAM, 16, 16);
        ram.set(RAM + HEAD + 4, 0x3000_0000);
        ram.set(RAM + HEAD + WRITE_OFFSET, 3);
        let block = RttBlock::at(&mut ram, RAM).unwrap().unwrap();
        let mut got = b"before".to_vec();
        assert!(matches!(block.read(&mut ram, 0, &mut got), Err(RttError::Memory(_))));
        assert_eq!(got, b"before");
        assert_eq!(ram.word(RAM + HEAD + READ_OFFSET), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_byte_arrives_once_and_in_order(
            up_size in 2u32..40,
            down_size in 2u32..40,
            turns in proptest::collection::vec((0usize..60, 0usize..60, 0usize..60), 1..40),
        ) {
            let mut ram = target(RAM, up_size, down_size);
            let block = RttBlock::at(&mut ram, RAM).unwrap().unwrap();
            let (mut sent, mut seen) = (Vec::new(), Vec::new());
            let (mut typed, mut heard) = (Vec::new(), Vec::new());
            let mut next = 0u8;
            for (puts, types, gets) in turns {
                for _ in 0..puts {
                    if ram.put(RAM, UP, up_size, next) {
                        sent.push(next);
                        next = next.wrapping_add(1);
                    }
                }
                block.read(&mut ram, 0, &mut seen).unwrap();
                prop_assert_eq!(&seen, &sent);
                let bytes: Vec<u8> = (0..types).map(|n| next.wrapping_add(n as u8)).collect();
                let taken = block.write(&mut ram, 0, &bytes).unwrap();
                prop_assert!(taken == types || typed.len() + taken - heard.len() == down_size as usize - 1);
                typed.extend_from_slice(&bytes[..taken]);
                for _ in 0..gets {
                    heard.extend(ram.get(RAM, DOWN, down_size));
                }
            }
            while let Some(byte) = ram.get(RAM, DOWN, down_size) {
                heard.push(byte);
            }
            prop_assert_eq!(heard, typed);
        }

        #[test]
        fn no_memory_breaks_it(bytes in proptest::collection::vec(any::<u8>(), 72), at in 0usize..24) {
            let mut ram = Ram(vec![0; 0x1000]);
            ram.write(RAM, &bytes).unwrap();
            ram.write(RAM, &ID[..at.min(16)]).unwrap();
            if let Ok(Some(block)) = RttBlock::find(&mut ram, &[0..0, RAM..RAM + 0x1000]) {
                let mut got = Vec::new();
                let _ = block.read(&mut ram, 0, &mut got);
                let _ = block.write(&mut ram, 0, b"x");
            }
        }
    }
}
