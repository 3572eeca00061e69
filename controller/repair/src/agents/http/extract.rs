//! The patch in the answer of a model: exactly one diff in a fenced block. Pure.
//!
//! Models write wrong numbers of lines into the headers of hunks, and leave out `a/` and `b/`. Both
//! are corrected, because both follow from the rest of the diff. Nothing else is guessed.

use jig_agents::{FencedBlock, blocks, spoken};

use crate::agents::PatchProposal;
use crate::agents::hypothesis::hypothesis;
use crate::excerpt::beginning;
use crate::patch::{Patch, PatchError};

/// Says why an answer holds no patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ExtractError {
    #[error("the answer holds no diff in a block; it begins: {0:?}")]
    NoDiff(String),
    #[error("{0}")]
    Unreadable(PatchError),
    #[error("the answer holds {0} different diffs; one is asked for")]
    Several(usize),
}

/// A patch, and its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Extracted {
    pub(super) id: String,
    pub(super) proposal: PatchProposal,
}

/// Finds the patch in an answer.
pub(super) fn extract(answer: &str) -> Result<Extracted, ExtractError> {
    let said = spoken(answer);
    let blocks = blocks(said);
    let is_diff =
        |block: &&FencedBlock<'_>| matches!(block.info, "diff" | "patch") || looks_like_diff(block);
    let mut unreadable = None;
    let mut found: Vec<Extracted> = Vec::new();
    for block in blocks.iter().filter(is_diff) {
        match readable(&block.text) {
            Ok((diff, patch)) => {
                let id = patch.id();
                if !found.iter().any(|other| other.id == id) {
                    let proposal = PatchProposal { diff, hypothesis: hypothesis(said) };
                    found.push(Extracted { id, proposal });
                }
            }
            Err(error) => unreadable = unreadable.or(Some(error)),
        }
    }
    match (found.len(), unreadable) {
        (1, _) => Ok(found.remove(0)),
        (0, Some(error)) => Err(ExtractError::Unreadable(error)),
        (0, None) => Err(ExtractError::NoDiff(beginning(said))),
        (several, _) => Err(ExtractError::Several(several)),
    }
}

fn looks_like_diff(block: &FencedBlock<'_>) -> bool {
    let begins = |word: &str| block.text.lines().any(|line| line.starts_with(word));
    begins("--- ") && begins("+++ ") && begins("@@ ")
}

/// Reads a diff; where it is not what its headers announce, with corrected headers.
fn readable(text: &str) -> Result<(String, Patch), PatchError> {
    match Patch::read(text) {
        Err(error @ (PatchError::Count { .. } | PatchError::Form { .. })) => {
            let counted = with_counts(text);
            let patch = Patch::read(&counted).map_err(|_| error)?;
            Ok((counted, patch))
        }
        read => read.map(|patch| (text.to_owned(), patch)),
    }
}

/// Tells whether the header of a file begins at a line.
fn is_header(lines: &[&str], at: usize) -> bool {
    let begins = |at: usize, word: &str| lines.get(at).is_some_and(|line| line.starts_with(word));
    begins(at, "diff --git ") || (begins(at, "--- ") && begins(at + 1, "+++ "))
}

/// Writes into the header of each hunk how many lines it has.
fn with_counts(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut counted = String::with_capacity(text.len() + 64);
    let mut at = 0;
    while at < lines.len() {
        let (line, from) = (lines[at], at + 1);
        at = from;
        let Some((old, new, rest)) = starts(line) else {
            counted.push_str(line);
            counted.push('\n');
            continue;
        };
        while at < lines.len() && !is_header(&lines, at) && starts(lines[at]).is_none() {
            at += 1;
        }
        // An empty line at the end separates; it is no line of a file.
        let body = &lines[from..at];
        let used = body.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
        let body = &body[..used];
        let count =
            |other: char| body.iter().filter(|line| !line.starts_with([other, '\\'])).count();
        counted.push_str(&format!("@@ -{old},{} +{new},{} @@{rest}\n", count('+'), count('-')));
        for line in body {
            counted.push_str(line);
            counted.push('\n');
        }
    }
    counted
}

/// Reads the first lines of a hunk's header, and what follows it.
fn starts(line: &str) -> Option<(u32, u32, &str)> {
    let (ranges, rest) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let first = |range: &str| range.split(',').next().and_then(|first| first.parse().ok());
    Some((first(old)?, first(new)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "--- a/src/ring.c\n+++ b/src/ring.c\n@@ -4,3 +4,3 @@ int next(void)\n {\n\
                        -    return head + 2;\n+    return head + 1;\n }\n";

    fn answer(diff: &str) -> String {
        format!("I looked.\n\nHYPOTHESIS: one is skipped\n```diff\n{diff}```\nDone.\n")
    }

    fn diff(answer: &str) -> String {
        extract(answer).unwrap().proposal.diff
    }

    #[test]
    fn the_diff_and_the_hypothesis_are_found() {
        let found = extract(&answer(DIFF)).unwrap();
        assert_eq!(found.proposal.diff, DIFF);
        assert_eq!(found.proposal.hypothesis, "one is skipped");
        assert_eq!(found.id, Patch::read(DIFF).unwrap().id());
    }

    #[test]
    fn the_block_that_is_a_diff_is_taken() {
        let code = "```c\nint head;\n```\n";
        let draft = "<think>\n```diff\n--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-a\n+b\n```\n</think>\n";
        let untagged = answer(DIFF).replace("```diff", "```");
        for text in [
            format!("{code}{}{code}", answer(DIFF)),
            format!("{draft}{}", answer(DIFF)),
            untagged.replace("```", "````"),
            answer(DIFF).replace("```diff", "```patch"),
            format!("{}{}", answer(DIFF), answer(DIFF)),
            answer(DIFF).replace('\n', "\r\n"),
            answer(DIFF).replace("```\nDone.\n", ""),
        ] {
            let found = diff(&text);
            assert_eq!(Patch::read(&found).unwrap(), Patch::read(DIFF).unwrap(), "{text}");
        }
    }

    #[test]
    fn a_fence_inside_of_a_diff_does_not_end_it() {
        let readme = "--- a/README.md\n+++ b/README.md\n@@ -1,3 +1,3 @@\n ```\n-a\n+b\n ```\n";
        assert_eq!(diff(&answer(readme)), readme);
    }

    #[test]
    fn wrong_counts_are_corrected() {
        for wrong in [
            DIFF.replace("-4,3 +4,3", "-4,9 +4,7"),
            DIFF.replace("-4,3 +4,3", "-4 +4"),
            format!("{}\n\n", DIFF.replace("-4,3 +4,3", "-4,6 +4,6")),
        ] {
            assert_eq!(diff(&answer(&wrong)), DIFF, "{wrong}");
        }
        let two =
            format!("{DIFF}@@ -20,9 +20,9 @@\n a\n--- b\n+-- c\n d\n{}", DIFF.replace("ring", "b"));
        let right = two.replace("-20,9 +20,9", "-20,3 +20,3");
        assert_eq!(diff(&answer(&two)), right);
        let bare = DIFF.replace("a/src", "src").replace("b/src", "src");
        let counted = diff(&answer(&bare.replace("-4,3 +4,3", "-4,9 +4,7")));
        assert_eq!(Patch::read(&counted).unwrap(), Patch::read(DIFF).unwrap());
    }

    #[test]
    fn anything_else_is_an_error() {
        let none = extract("I am sorry.\nI cannot.").unwrap_err();
        assert_eq!(
            none.to_string(),
            "the answer holds no diff in a block; it begins: \"I am sorry. I cannot.\""
        );
        assert!(matches!(extract(DIFF), Err(ExtractError::NoDiff(_))), "it is not in a block");
        assert!(matches!(extract(""), Err(ExtractError::NoDiff(_))));
        let other = DIFF.replace("head + 1", "head + 3");
        let several = format!("{}{}", answer(DIFF), answer(&other));
        assert_eq!(extract(&several), Err(ExtractError::Several(2)));
        let outside = answer(&DIFF.replace("/src/", "/../"));
        assert!(matches!(extract(&outside), Err(ExtractError::Unreadable(PatchError::Path(_)))));
        let bad = answer(&DIFF.replace("\n }\n", "\n}\n"));
        assert!(matches!(extract(&bad), Err(ExtractError::Unreadable(PatchError::Count { .. }))));
        let empty = answer("no changes\n");
        assert_eq!(extract(&empty), Err(ExtractError::Unreadable(PatchError::Empty)));
    }

    proptest::proptest! {
        #[test]
        fn no_answer_breaks_it(text in "(`{0,4}(diff)?|\\PC{0,9}|@@ -1 \\+1 @@|--- a|\\+\\+\\+ b|\\n){0,40}") {
            let _ = extract(&text);
        }
    }
}
