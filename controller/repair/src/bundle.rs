//! The evidence bundle: what an agent is given, the same for each. Pure: files in, files out.
//!
//! Owns the names of the files, what is cut first where the budget is small, and the mark that says
//! so. What targets and logs say stands in files of its own, so that it is never part of the task.

use crate::redact::Redactor;

/// Bytes of text for one token, roughly: English and C have three to four.
const BYTES_PER_TOKEN: usize = 4;

/// Smallest part of a file that is worth keeping, in bytes.
const MIN_PART: usize = 200;

/// What a file of a bundle is, in the order in which the budget is given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BundlePart {
    /// What is to be reached, and in which form a proposal is expected.
    Task,
    /// What may change.
    Policy,
    /// What failed: cause, signature, first bad line and where it stands.
    Failure,
    /// Lines that may hold the fault.
    Suspects,
    /// What was tried, and how it ended.
    Attempts,
    /// Lines of source around the suspects.
    Source,
    /// Output of the board: the beginning, what is around the first bad line, the end.
    Log,
    /// What helped with a failure like this one.
    Similar,
    /// Files that exist.
    Files,
}

impl BundlePart {
    /// Lists all, in their order.
    pub const ALL: [Self; 9] = [
        Self::Task,
        Self::Policy,
        Self::Failure,
        Self::Suspects,
        Self::Attempts,
        Self::Source,
        Self::Log,
        Self::Similar,
        Self::Files,
    ];

    /// Returns the name of its file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Task => "TASK.md",
            Self::Policy => "policy.md",
            Self::Failure => "failure.json",
            Self::Suspects => "ranked.json",
            Self::Attempts => "attempts.json",
            Self::Source => "source.txt",
            Self::Log => "log.txt",
            Self::Similar => "similar.json",
            Self::Files => "files.txt",
        }
    }
}

/// A file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleFile {
    /// What it is.
    pub part: BundlePart,
    /// Its text.
    pub text: String,
    /// Whether something was left out.
    pub truncated: bool,
}

/// Makes a bundle that fits a number of tokens. Secrets are removed first; then each part gets what
/// it needs of what the parts before it have left. What does not fit is cut in its middle, at line
/// ends, with a line that says how much is missing.
pub fn bundle(
    mut parts: Vec<(BundlePart, String)>,
    tokens: usize,
    redactor: &Redactor,
) -> Vec<BundleFile> {
    parts.sort_by_key(|(part, _)| *part);
    let mut left = tokens.saturating_mul(BYTES_PER_TOKEN);
    let files = parts.into_iter().filter_map(|(part, text)| {
        let text = redactor.text(&text);
        let kept = if text.len() <= left { text.clone() } else { cut(&text, left)? };
        left = left.saturating_sub(kept.len());
        Some(BundleFile { part, truncated: kept != text, text: kept })
    });
    files.collect()
}

/// Keeps the beginning and the end of a text; nothing where too little would be left.
fn cut(text: &str, most: usize) -> Option<String> {
    let mark = |bytes: usize| format!("[{bytes} bytes are left out here]\n");
    let room = most.checked_sub(mark(text.len()).len()).filter(|room| *room >= MIN_PART)?;
    let head = line_end(&text[..text.floor_char_boundary(room / 2)]);
    let tail = text.ceil_char_boundary(text.len() - room / 2);
    let tail = text[tail..].find('\n').map_or(tail, |end| tail + end + 1);
    Some(format!("{}{}{}", &text[..head], mark(tail - head), &text[tail..]))
}

/// Returns where the last complete line of a text ends; of a single long line, the whole.
fn line_end(text: &str) -> usize {
    text.rfind('\n').map_or(text.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_fits_is_whole_and_in_order() {
        let parts = vec![
            (BundlePart::Files, "a.c\n".to_owned()),
            (BundlePart::Task, "mend it\n".to_owned()),
        ];
        let files = bundle(parts, 100, &Redactor::default());
        let names: Vec<_> = files.iter().map(|file| file.part.file_name()).collect();
        assert_eq!(names, ["TASK.md", "files.txt"]);
        assert!(files.iter().all(|file| !file.truncated));
    }

    #[test]
    fn the_middle_of_the_least_important_is_left_out_first_and_said() {
        let log: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let parts = vec![
            (BundlePart::Log, log),
            (BundlePart::Task, "mend it\n".to_owned()),
            (BundlePart::Files, "x\n".repeat(300)),
        ];
        let files = bundle(parts, 100, &Redactor::default());
        assert_eq!(files.len(), 2, "nothing is left for the list of files");
        let log = &files[1];
        assert!(
            log.truncated && log.text.starts_with("line 0\n") && log.text.ends_with("line 99\n")
        );
        assert_eq!(log.text.lines().filter(|line| line.contains("are left out here]")).count(), 1);
        assert!(files.iter().map(|file| file.text.len()).sum::<usize>() <= 400);
    }

    #[test]
    fn secrets_do_not_reach_an_agent() {
        let redactor = Redactor::new([("TOKEN".to_owned(), "s3cr3t-value".to_owned())]);
        let parts = vec![(BundlePart::Log, "key s3cr3t-value\n".to_owned())];
        assert_eq!(bundle(parts, 100, &redactor)[0].text, "key [removed: TOKEN]\n");
    }

    proptest! {
        #[test]
        fn a_bundle_fits_its_budget(texts in prop::collection::vec("(\\PC{0,40}\n){0,40}", 3), tokens in 0usize..800) {
            let parts = [BundlePart::Task, BundlePart::Log, BundlePart::Files];
            let files = bundle(parts.into_iter().zip(texts).collect(), tokens, &Redactor::default());
            prop_assert!(files.iter().map(|file| file.text.len()).sum::<usize>() <= tokens * BYTES_PER_TOKEN);
        }
    }
}
