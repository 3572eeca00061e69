//! Random numbers that can be had again.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// A stream of random numbers (SplitMix64, Steele et al. 2014).
pub(crate) struct TrialDice(u64);

impl TrialDice {
    /// Begins the stream of a name under a seed.
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        // FNV-1a: the same on every machine and in every version.
        let name = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(seed ^ name)
    }

    /// Returns a random seed.
    pub(crate) fn any() -> u64 {
        // The standard hasher is seeded by the system. Short enough to be typed again.
        RandomState::new().build_hasher().finish() % 1_000_000
    }

    /// Returns a number below a bound.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // The bounds are far below 2^32: no number is noticeably likelier than another.
        (z ^ (z >> 31)) % bound.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_under_a_seed_is_always_the_same_stream() {
        let stream = |seed, name| {
            let mut dice = TrialDice::new(seed, name);
            std::iter::repeat_with(move || dice.below(100)).take(50).collect::<Vec<_>>()
        };
        assert_eq!(stream(7, "a"), stream(7, "a"));
        assert_ne!(stream(7, "a"), stream(7, "b"));
        assert_ne!(stream(7, "a"), stream(8, "a"));
        assert!(stream(1, "a").iter().all(|n| *n < 100));
        assert_eq!(TrialDice::new(1, "a").below(0), 0);
    }
}
