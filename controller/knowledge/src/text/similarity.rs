//! Near-duplicates: how much two texts share, and how texts that share much are found.
//!
//! # Design
//! A text is a set of runs of three tokens, and two texts are as like as their sets (Jaccard). MinHash
//! of 32 values in eight bands of four finds 99.7 % of the pairs that share .85, by an index of bands;
//! what it finds is compared exactly.

use std::collections::BTreeSet;

use super::tokens::each_token;

/// Bands of a sketch: two texts with an equal band are compared.
pub const BANDS: usize = 8;

const ROWS: usize = 4;

/// Tokens of a run.
const RUN: usize = 3;

/// The sketch of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinHash([i64; BANDS]);

impl MinHash {
    /// Makes the sketch of a text.
    pub fn of(text: &str) -> Self {
        let mut least = [u64::MAX; BANDS * ROWS];
        for run in runs(text) {
            for (index, least) in (0u64..).zip(&mut least) {
                *least = (*least).min(mixed(run ^ mixed(index + 1)));
            }
        }
        let mut bands = [0; BANDS];
        for (band, rows) in bands.iter_mut().zip(least.chunks_exact(ROWS)) {
            *band = rows.iter().fold(0, |hash, row| mixed(hash ^ *row)).cast_signed();
        }
        Self(bands)
    }

    /// Returns its bands with their numbers.
    pub fn bands(&self) -> impl Iterator<Item = (u8, i64)> {
        (0..).zip(self.0)
    }
}

/// Returns how much two texts share, from 0 to 1. Two texts without a word share nothing.
pub fn likeness(one: &str, other: &str) -> f64 {
    let (one, other) = (runs(one), runs(other));
    let both = one.intersection(&other).count();
    let all = one.len() + other.len() - both;
    if all == 0 { 0.0 } else { both as f64 / all as f64 }
}

/// Returns the hashes of the runs of a text; a short text is one run.
fn runs(text: &str) -> BTreeSet<u64> {
    let mut hashes = Vec::new();
    each_token(text, |token| {
        // FNV-1a: the sketch is stored, so the hash must not change with the standard library.
        let hash = token.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        hashes.push(hash);
    });
    let joined = |run: &[u64]| run.iter().fold(0, |hash, token| mixed(hash ^ token));
    if hashes.is_empty() {
        return BTreeSet::new();
    }
    hashes.windows(RUN.min(hashes.len())).map(joined).collect()
}

/// The finaliser of SplitMix64.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: std::ops::Range<u32>) -> String {
        words.map(|n| format!("w{n}x ")).collect()
    }

    #[test]
    fn texts_share_what_their_runs_share() {
        assert_eq!(likeness("a b c d", "a b c d"), 1.0);
        assert_eq!(likeness("ring full", "ring empty"), 0.0);
        assert_eq!(likeness("", ""), 0.0);
        let like = likeness(&text(0..100), &text(0..98));
        assert!((0.9..1.0).contains(&like), "{like}");
    }

    #[test]
    fn near_duplicates_share_a_band_and_others_do_not() {
        let bands = |text: &str| MinHash::of(text).bands().collect::<BTreeSet<_>>();
        let (mut like, mut unlike) = (0, 0);
        for start in (0..100).map(|n| n * 1000) {
            let one = bands(&text(start..start + 100));
            like += usize::from(!one.is_disjoint(&bands(&text(start + 3..start + 101))));
            unlike += usize::from(!one.is_disjoint(&bands(&text(start + 90..start + 190))));
        }
        assert_eq!((like, unlike), (100, 0));
    }
}
