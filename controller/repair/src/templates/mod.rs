//! Repair by templates: small edits of suspect lines of C, without a model.
//!
//! Owns the reader of a line's tokens, the templates, and the order in which candidates are tried.
//! It finds about one simple fault in ten, which costs nothing; a candidate that passes the tests is
//! plausible and not proven.
//!
//! # Design
//! A template sees one line as tokens and answers with other lines, so it cannot touch a comment or
//! a text. Whether an edit makes sense is found out by building and running it.

mod edit;
mod operators;
mod statements;
mod tokens;

use crate::localise::SuspectLine;

pub use edit::{CandidateEdit, Template};

/// Most candidates of a run.
pub const MAX_CANDIDATES: usize = 150;

/// Returns the edits of one line of a file, likely ones first, each once.
pub fn edits_of(source: &str, line: u32) -> Vec<CandidateEdit> {
    let lines: Vec<&str> = source.lines().collect();
    let Some(at) = (line as usize).checked_sub(1).filter(|&at| at < lines.len()) else {
        return Vec::new();
    };
    let mut edits = Vec::new();
    operators::edits(&lines, at, &mut edits);
    statements::edits(&lines, at, &mut edits);
    edits.sort_by_key(|edit: &CandidateEdit| edit.template);
    let mut known = std::collections::BTreeSet::new();
    let old = [lines[at].to_owned()];
    edits.retain(|edit| edit.lines != old && known.insert(edit.lines.clone()));
    edits
}

/// Returns candidates for suspect lines as unified diffs, the most promising first: by how suspicious
/// the line is; of equally suspicious lines, by template.
///
/// `source` returns the text of a file of the repository.
pub fn candidates(
    suspects: &[SuspectLine],
    mut source: impl FnMut(&str) -> Option<String>,
) -> Vec<(CandidateEdit, String)> {
    let mut found = Vec::new();
    for equal in suspects.chunk_by(|a, b| a.score == b.score) {
        let mut group = Vec::new();
        for suspect in equal.iter().take(MAX_CANDIDATES) {
            let Some(text) = source(&suspect.line.file) else { continue };
            for edit in edits_of(&text, suspect.line.line) {
                let diff = edit::diff(&suspect.line.file, &text, suspect.line.line, &edit);
                group.push((edit, diff));
            }
        }
        group.sort_by_key(|(edit, _)| edit.template);
        found.append(&mut group);
        if found.len() >= MAX_CANDIDATES {
            break;
        }
    }
    found.truncate(MAX_CANDIDATES);
    found
}

#[cfg(test)]
mod tests;
