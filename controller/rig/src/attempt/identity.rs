//! Finds the build id that a target prints.

/// What stands in front of the id in the line that an image with the announce section prints at each
/// boot; the id is the GNU build id, at least the first 8 digits of it.
const FRONT: &[u8] = b"jig-build-id: ";
const FEWEST_DIGITS: usize = 8;
const MOST_DIGITS: usize = 64;

/// Longest line.
pub(super) const MAX_LINE: u64 = 16 + 64 + 2;

/// Looks for the line in a stream: `^jig-build-id: [0-9a-f]{8,64}\r?\n`. The automaton of this
/// expression would cost each start more than the run itself.
#[derive(Debug, Clone)]
pub(super) struct IdentityScanner {
    seen: Seen,
}

/// How much of the line was seen.
#[derive(Debug, Clone, Copy)]
enum Seen {
    /// So many bytes of [`FRONT`], at the start of a line.
    Front(usize),
    Digits(usize),
    /// All but the line feed.
    Return,
    /// Another line.
    Other,
}

impl IdentityScanner {
    pub(super) fn new() -> Self {
        Self { seen: Seen::Front(0) }
    }

    pub(super) fn restart(&mut self) {
        *self = Self::new();
    }

    /// Returns how many of the bytes lead up to the end of the first line found.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            let was = std::mem::replace(&mut self.seen, Seen::Other);
            self.seen = match (was, byte) {
                (Seen::Digits(FEWEST_DIGITS..) | Seen::Return, b'\n') => {
                    self.restart();
                    return Some(at);
                }
                (Seen::Digits(FEWEST_DIGITS..), b'\r') => Seen::Return,
                (_, b'\n' | b'\r') => Seen::Front(0),
                (Seen::Front(count), _) => after_front(count, byte),
                (Seen::Return, _) => after_front(0, byte),
                (Seen::Digits(count), b'0'..=b'9' | b'a'..=b'f') if count < MOST_DIGITS => {
                    Seen::Digits(count + 1)
                }
                (Seen::Digits(_) | Seen::Other, _) => {
                    let rest = bytes.get(at..).unwrap_or_default();
                    at += memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
                    Seen::Other
                }
            };
        }
        None
    }
}

fn after_front(count: usize, byte: u8) -> Seen {
    match FRONT.get(count) {
        Some(wanted) if *wanted == byte && count + 1 == FRONT.len() => Seen::Digits(0),
        Some(wanted) if *wanted == byte => Seen::Front(count + 1),
        _ => Seen::Other,
    }
}

/// Takes the id out of a range that ends with the line.
pub(super) fn id_in(range: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(range);
    let (_, id) = text.trim_end().rsplit_once("jig-build-id: ")?;
    Some(id.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_line_is_found_and_read() {
        let mut scanner = IdentityScanner::new();
        let text = b"boot\njig-build-id: 0123abcd\r\nrest";
        let used = scanner.feed(text).unwrap();
        assert_eq!(id_in(&text[..used]).as_deref(), Some("0123abcd"));
        assert!(scanner.feed(b"the jig-build-id: 0123abcd is prose\n").is_none());
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_expression(
            parts in prop::collection::vec(
                prop::sample::select(&["\r", "\n", "\r\n", "jig-build-id: ", "jig-", "0123abcd", "7", "x", " "][..]),
                0..12,
            ),
            digits in 0usize..70,
            cuts in prop::collection::vec(any::<usize>(), 0..5),
        ) {
            let text = parts.concat().replace('7', &"7".repeat(digits)).into_bytes();
            let mut builder = regex::bytes::RegexBuilder::new(r"^jig-build-id: [0-9a-f]{8,64}\r?\n");
            let line = builder.unicode(false).multi_line(true).crlf(true).build().unwrap();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
            cuts.sort_unstable();
            let (mut scanner, mut at, mut found) = (IdentityScanner::new(), 0, None);
            for cut in cuts.into_iter().chain([text.len()]) {
                found = found.or_else(|| scanner.feed(&text[at..cut]).map(|used| at + used));
                at = cut;
            }
            prop_assert_eq!(found, line.find(&text).map(|line| line.end()));
        }
    }
}
