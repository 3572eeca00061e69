//! What is known of a failure that is seen again, as text for people.

use jig_knowledge::SeenBefore;
use jig_lab::{seen_in, signature_of};
use jig_rig::store::{RunDir, RunRecord};

use super::diagnostics::one_line;
use super::screen::Screen;

/// Longest line.
const MOST: usize = 300;

/// Returns what was known of the failure of a run when it ended, in one line that is safe everywhere.
pub(crate) fn seen_words(dir: &RunDir, record: &RunRecord) -> Option<String> {
    // Never for a pass, whatever lies in its folder.
    signature_of(record)?;
    line_of(&seen_in(dir.path())?)
}

/// Returns what is known of a failure, in one line that is safe everywhere.
pub(crate) fn line_of(seen: &SeenBefore) -> Option<String> {
    let words: String = seen.words().chars().take(MOST).collect();
    Some(one_line(&words)).filter(|words| !words.is_empty())
}

/// Shows it behind the verdict.
pub(crate) fn show_seen(screen: &Screen, words: Option<&str>) {
    if let Some(words) = words.filter(|_| !screen.json()) {
        screen.say(&format!("  seen before: {words}"));
    }
}
