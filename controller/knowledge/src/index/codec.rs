//! Numbers in the file of the base: LEB128, and reading that a damaged file cannot lead astray.

/// Appends a number.
pub(super) fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Reads numbers; nothing behind the end or where a number is too long.
#[derive(Debug, Clone)]
pub(super) struct NumberReader<'a>(pub(super) &'a [u8]);

impl NumberReader<'_> {
    /// Reads a number.
    #[inline]
    pub(super) fn number(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(value);
            }
            shift += 7;
        }
    }
}

/// Folds bytes into a checksum, eight at a time: it finds a torn or a rotten file, not a forger.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    let mut sum = 0xcbf2_9ce4_8422_2325_u64 ^ bytes.len() as u64;
    for word in &mut words {
        let word = word.iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
        sum = (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    for &byte in words.remainder() {
        sum = (sum ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_read_back(values in proptest::collection::vec(any::<u64>(), 0..50)) {
            let mut bytes = Vec::new();
            values.iter().for_each(|value| put(&mut bytes, *value));
            let mut reader = NumberReader(&bytes);
            for value in values {
                prop_assert_eq!(reader.number(), Some(value));
            }
            prop_assert_eq!(reader.number(), None);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..50)) {
            let mut reader = NumberReader(&bytes);
            while reader.number().is_some() {}
        }
    }

    #[test]
    fn each_changed_byte_changes_the_checksum() {
        let bytes: Vec<u8> = (0..100).collect();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_ne!(checksum(&bytes), checksum(&changed));
        }
    }
}
