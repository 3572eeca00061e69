//! Chance that can be thrown again.

use std::time::{SystemTime, UNIX_EPOCH};

/// Xorshift*: a few lines are all the chance that is needed here.
pub(crate) struct Dice(u64);

impl Dice {
    /// Throws anew each time; the seed is printed, and `JIG_TEST_SEED` throws the same again.
    pub(crate) fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
        let seed = std::env::var("JIG_TEST_SEED").map_or(u64::from(now), |s| s.parse().unwrap());
        eprintln!("moments are thrown with JIG_TEST_SEED={seed}");
        Self::of(seed)
    }

    /// Throws what the seed says.
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(1))
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % limit
    }
}
