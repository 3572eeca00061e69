//! Finds garbage: console output that is not valid UTF-8. Pure.
//!
//! Firmware prints UTF-8, which includes ASCII. A port at a wrong speed, or a bad cable, soon gives
//! invalid bytes.
//!
//! # Design
//! Garbage makes missing results doubtful, but not observed ones: a hang, an unfinished report or a
//! missing build id proves nothing then, and the test is attempted again. If garbage returns after
//! a known-good image has passed, the target prints it, and the verdict stands.

/// Bytes at the start of a boot in which garbage is ignored: a line that floats while a chip starts
/// gives one or two.
pub(super) const GLITCH: u64 = 4;

/// Longest range of garbage that is reported.
const SHOWN: u64 = 32;

/// Longest beginning of a character that the end of a chunk can cut.
const CUT: usize = 3;

/// So many bytes of other than plain text, without text after them, are garbage that goes on.
const GOES_ON: u64 = 8;

/// So many characters of plain text in a row end the garbage: noise contains them by chance once
/// in some thousand bytes.
const TEXT: u64 = 8;

/// Searches the output of one boot, however it is cut into chunks.
#[derive(Debug, Clone)]
pub(super) struct GarbageScanner {
    /// Where the boot's output begins.
    start: u64,
    /// The beginning of a character whose end has not come.
    cut: Vec<u8>,
    found: Option<(u64, u64)>,
    /// Bytes that are no plain text, from the first garbage or the last text on.
    noise: u64,
    /// Characters of plain text in a row, at the end.
    text: u64,
}

impl GarbageScanner {
    /// Begins with a boot.
    pub(super) fn new(start: u64) -> Self {
        Self { start, cut: Vec::new(), found: None, noise: 0, text: 0 }
    }

    /// Returns the first range of garbage: its first byte, and one past the last that is reported.
    pub(super) fn found(&self) -> Option<(u64, u64)> {
        self.found
    }

    /// Tells whether the last output is garbage without text after it.
    pub(super) fn goes_on(&self) -> bool {
        self.noise >= GOES_ON
    }

    /// Searches the bytes from an offset of the log.
    pub(super) fn feed(&mut self, offset: u64, bytes: &[u8]) {
        if self.found.is_some() {
            return self.follow(bytes);
        }
        if self.cut.is_empty() && bytes.is_ascii() {
            return;
        }
        let mut joined = std::mem::take(&mut self.cut);
        let mut at = offset.saturating_sub(joined.len() as u64);
        let end = offset + bytes.len() as u64;
        joined.extend_from_slice(bytes);
        for chunk in joined.utf8_chunks() {
            at += chunk.valid().len() as u64;
            let invalid = chunk.invalid();
            let behind = at + invalid.len() as u64;
            if invalid.is_empty() {
                continue;
            }
            if behind == end && invalid.len() <= CUT && begins_a_character(invalid) {
                self.cut = invalid.to_vec();
            } else if at >= self.start + GLITCH {
                self.found = Some((at, end.min(at + SHOWN)));
                let behind = usize::try_from(end - at).unwrap_or(joined.len());
                return self.follow(&joined[joined.len() - behind..]);
            }
            at = behind;
        }
    }

    /// Searches the output after the first garbage.
    fn follow(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n') {
                self.text += 1;
            } else {
                (self.text, self.noise) = (0, self.noise + 1);
            }
            if self.text >= TEXT {
                self.noise = 0;
            }
        }
    }
}

/// Tells whether bytes may become a character when others follow.
fn begins_a_character(bytes: &[u8]) -> bool {
    // An error without a length is one that more bytes may complete.
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scan(text: &[u8], cuts: &[usize]) -> Option<(u64, u64)> {
        scanned(text, cuts).found()
    }

    fn scanned(text: &[u8], cuts: &[usize]) -> GarbageScanner {
        let mut scanner = GarbageScanner::new(0);
        let (mut offset, mut rest, mut cuts) = (0, text, cuts.iter());
        while !rest.is_empty() {
            let (piece, behind) =
                rest.split_at(*cuts.next().unwrap_or(&rest.len()).min(&rest.len()));
            scanner.feed(offset, piece);
            (offset, rest) = (offset + piece.len() as u64, behind);
        }
        scanner
    }

    #[test]
    fn a_bad_byte_is_found_behind_the_first_few() {
        assert_eq!(scan(b"hello \xf0 world", &[]), Some((6, 13)));
        assert_eq!(scan(b"\xff\x80\xff\x80boot\n", &[]), None);
        assert_eq!(scan("grün\n".as_bytes(), &[3]), None);
        assert_eq!(scan(b"gr\xc3", &[]), None, "its end may still come");
    }

    #[test]
    fn garbage_goes_on_until_text_is_back() {
        let mut scanner = GarbageScanner::new(0);
        let mut fed = 0;
        for (bytes, goes_on) in [
            (&b"booting\n"[..], false),
            (b"\x80\xf0\x00\xff", false),
            (b"\xfe\x00\xe0\x80", true),
            (b"ok\xf0", true),
            (b"case 1: ok\n", false),
            (b"\xff\xff", false),
            (&[0xf0; 8], true),
        ] {
            scanner.feed(fed, bytes);
            fed += bytes.len() as u64;
            assert_eq!(scanner.goes_on(), goes_on, "{bytes:?}");
        }
        assert_eq!(scanner.found(), Some((8, 12)));
    }

    proptest! {
        #[test]
        fn text_holds_none_however_it_is_cut(
            text in "(?s).{0,40}",
            cuts in proptest::collection::vec(1..5_usize, 0..60),
        ) {
            prop_assert_eq!(scan(text.as_bytes(), &cuts), None);
        }

        #[test]
        fn where_it_begins_does_not_depend_on_the_cuts(
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
            cuts in proptest::collection::vec(1..5_usize, 0..60),
        ) {
            let start = |found: Option<(u64, u64)>| found.map(|(start, _)| start);
            prop_assert_eq!(start(scan(&bytes, &cuts)), start(scan(&bytes, &[])));
            prop_assert_eq!(scanned(&bytes, &cuts).goes_on(), scanned(&bytes, &[]).goes_on());
        }
    }
}
