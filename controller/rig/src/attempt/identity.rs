//! Finds the build id that a target prints.

use jig_model::pattern::Pattern;

use crate::console::{PatternSet, PatternSetError, Scanner};

/// What an image with the announce section prints at each boot; the id is the GNU build
/// id, at least the first 8 digits of it.
const LINE: &str = r"^jig-build-id: [0-9a-f]{8,64}\r?\n";

/// Longest range [`LINE`] can match.
pub(super) const MAX_LINE: u64 = 16 + 64 + 2;

/// Looks for the line in a stream. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct IdentityScanner {
    set: PatternSet,
    scanner: Scanner,
}

impl IdentityScanner {
    pub(super) fn new() -> Result<Self, PatternSetError> {
        // The expression is a constant that the test below compiles.
        let patterns: Vec<Pattern> = Pattern::new(LINE).into_iter().collect();
        let set = PatternSet::new(&patterns)?;
        let scanner = Scanner::new(&set, None);
        Ok(Self { set, scanner })
    }

    pub(super) fn restart(&mut self) {
        self.scanner = Scanner::new(&self.set, None);
    }

    /// Returns how many of the bytes lead up to the end of the first line found.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        let scanned = self.scanner.scan(bytes);
        (!scanned.hits.is_empty()).then_some(scanned.used)
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
    use super::*;

    #[test]
    fn the_line_is_found_and_read() {
        let mut scanner = IdentityScanner::new().unwrap();
        let text = b"boot\njig-build-id: 0123abcd\r\nrest";
        let used = scanner.feed(text).unwrap();
        assert_eq!(id_in(&text[..used]).as_deref(), Some("0123abcd"));
        assert!(scanner.feed(b"the jig-build-id: 0123abcd is prose\n").is_none());
    }
}
