//! What a bad transport does to bytes. Pure.

use std::time::Duration;

/// Something that is wrong with a console's transport.
#[derive(Debug, Clone)]
pub(super) enum LineEffect {
    /// The other end is away.
    Away,
    /// The transport is broken.
    Cut,
    /// So many more bytes are lost; the port counts them.
    Overrun(u64),
    /// So many more bytes are lost.
    Drop(u64),
    /// So many more bytes have a flipped bit.
    Corrupt(u64),
    /// The port listens at another speed.
    Garble,
    /// Bytes are late.
    Delay(Duration),
    /// The line with the build id does not arrive.
    HideId(LineFilter),
}

/// What one effect has done to a few bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LineDamage {
    /// What, in words; nothing if nothing was done.
    pub(super) what: Option<String>,
    /// So many bytes are missing, and the port knows.
    pub(super) counted: u64,
    /// So many characters came with errors, which the port counts.
    pub(super) garbled: u64,
}

/// What a receiver reads that samples at a wrong speed: runs of equal bits. Text at a tenth
/// or ten times of the speed looks like this.
const RUNS: [u8; 9] = [0x00, 0x80, 0xc0, 0xe0, 0xf0, 0xf8, 0xfc, 0xfe, 0xff];

impl LineEffect {
    /// Does to the bytes what is wrong with the transport. `dice` are advanced. The words are about
    /// all that it is going to do.
    pub(super) fn apply(&mut self, bytes: &mut Vec<u8>, dice: &mut FaultDice) -> LineDamage {
        if bytes.is_empty() {
            return LineDamage::default();
        }
        let what = match self {
            Self::Away | Self::Cut | Self::Delay(_) => return LineDamage::default(),
            Self::Overrun(left) => {
                let what = Some(format!("{left} bytes overrun the port, from here on"));
                return LineDamage { what, counted: lose(left, bytes), garbled: 0 };
            }
            Self::Drop(left) => {
                let what = Some(format!("{left} bytes are dropped, from here on"));
                lose(left, bytes);
                what
            }
            Self::Corrupt(left) => {
                let what = format!("a bit of each of {left} bytes is flipped, from here on");
                let count = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= count as u64;
                for byte in &mut bytes[..count] {
                    *byte ^= 1 << (dice.roll() % 8);
                }
                Some(what)
            }
            Self::Garble => {
                for byte in bytes.iter_mut() {
                    *byte = RUNS[dice.roll() as usize % RUNS.len()];
                }
                let what = Some("bytes come as garbage, from here on".to_owned());
                return LineDamage { what, counted: 0, garbled: bytes.len() as u64 };
            }
            Self::HideId(filter) => {
                let hidden = filter.filter(bytes);
                hidden.then(|| "the line with the build id was hidden".to_owned())
            }
        };
        LineDamage { what, counted: 0, garbled: 0 }
    }

    /// Tells whether nothing is left to do.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Overrun(0) | Self::Drop(0) | Self::Corrupt(0))
    }
}

fn lose(left: &mut u64, bytes: &mut Vec<u8>) -> u64 {
    let count = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
    bytes.drain(..count);
    *left -= count as u64;
    count as u64
}

/// Random numbers of the plainest kind (xorshift, Marsaglia 2003): the same ones each time,
/// so that a try can be repeated.
#[derive(Debug, Clone)]
pub(super) struct FaultDice(u64);

impl FaultDice {
    pub(super) fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // The low bits of a shift register are its worst.
        self.0 >> 32
    }
}

/// Takes lines out of a stream that begin with a text.
///
/// Holds back what may still become one: at most the length of that text.
#[derive(Debug, Clone)]
pub(super) struct LineFilter {
    begins: &'static [u8],
    /// How much of the beginning has matched, if the line may still be one.
    matched: Option<usize>,
    hiding: bool,
}

impl LineFilter {
    pub(super) fn new(begins: &'static [u8]) -> Self {
        Self { begins, matched: Some(0), hiding: false }
    }

    /// Removes the lines; tells whether the end of one was removed.
    fn filter(&mut self, bytes: &mut Vec<u8>) -> bool {
        let mut kept = Vec::with_capacity(bytes.len());
        let mut hidden = false;
        for &byte in bytes.iter() {
            if self.hiding {
                if byte == b'\n' {
                    (self.hiding, self.matched, hidden) = (false, Some(0), true);
                }
                continue;
            }
            match self.matched {
                Some(matched) if self.begins.get(matched) == Some(&byte) => {
                    self.hiding = matched + 1 == self.begins.len();
                    self.matched = (!self.hiding).then_some(matched + 1);
                    continue;
                }
                Some(matched) => kept.extend_from_slice(&self.begins[..matched]),
                None => {}
            }
            kept.push(byte);
            self.matched = (byte == b'\n').then_some(0);
        }
        *bytes = kept;
        hidden
    }

    /// Returns what was held back, when nothing follows.
    pub(super) fn rest(&mut self) -> &'static [u8] {
        &self.begins[..self.matched.take().unwrap_or_default()]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn applied(mut effect: LineEffect, text: &[u8]) -> (Vec<u8>, LineDamage, bool) {
        let mut bytes = text.to_vec();
        let done = effect.apply(&mut bytes, &mut FaultDice::new());
        (bytes, done, effect.is_over())
    }

    #[test]
    fn bytes_are_lost_flipped_or_garbled_as_told() {
        let (left, done, over) = applied(LineEffect::Drop(3), b"hello");
        assert_eq!((left.as_slice(), done.counted, over), (&b"lo"[..], 0, true));
        let (left, done, over) = applied(LineEffect::Overrun(9), b"hello");
        assert_eq!((left.as_slice(), done.counted, over), (&b""[..], 5, false));
        let (flipped, done, over) = applied(LineEffect::Corrupt(3), b"hello");
        let bits = flipped.iter().zip(b"hello").map(|(a, b)| (a ^ b).count_ones());
        assert_eq!((bits.collect::<Vec<_>>(), over), (vec![1, 1, 1, 0, 0], true));
        assert!(done.what.is_some());
        let (noise, done, _) = applied(LineEffect::Garble, &[b'a'; 64]);
        assert_eq!(done.garbled, 64);
        assert!(std::str::from_utf8(&noise).is_err());
        let (same, done, _) = applied(LineEffect::Away, b"hello");
        assert_eq!((same.as_slice(), done), (&b"hello"[..], LineDamage::default()));
    }

    const ID: &[u8] = b"jig-build-id: ";

    proptest! {
        #[test]
        fn only_the_lines_that_begin_so_are_hidden_however_they_are_cut(
            lines in proptest::collection::vec("(jig-build-id: ab|jig-build|xjig-build-id: c|jjig|[a-j-]{0,4})", 0..6),
            open in any::<bool>(),
            cuts in proptest::collection::vec(1..9_usize, 0..40),
        ) {
            let mut text = lines.join("\n");
            if !open { text.push('\n'); }
            let wanted: Vec<_> = text.split_inclusive('\n')
                .filter(|line| !line.starts_with("jig-build-id: ")).collect();
            let mut filter = LineFilter::new(ID);
            let (mut seen, mut rest) = (Vec::new(), text.as_bytes());
            let mut cuts = cuts.into_iter();
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(cuts.next().unwrap_or(rest.len()).min(rest.len()));
                let mut piece = piece.to_vec();
                filter.filter(&mut piece);
                seen.extend(piece);
                rest = behind;
            }
            if !filter.hiding { seen.extend_from_slice(filter.rest()); }
            prop_assert_eq!(String::from_utf8(seen).unwrap(), wanted.concat());
        }
    }
}
