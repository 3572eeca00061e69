//! Output behind the end: what the target printed after its report, or after the last expected
//! text. Reads the complete logs of an attempt and decides nothing.
//!
//! # Design
//! The lines are read from the log after the attempt and not while it runs. Hence the finding
//! depends on the bytes and not on how they arrived, and a run pays for it only once.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use jig_model::ConsoleName;
use jig_model::pattern::Pattern;
use jig_model::plan::{ActionKind, Plan};

use crate::console::lines::{LineSplitter, RawLine, lossy, plain};
use crate::console::{Follower, PatternSet, PatternSetError, is_suspicious};
use crate::judge::ByteRange;

/// Bytes read at once.
const STRIDE: usize = 64 << 10;
/// Longest quote of a line.
const QUOTE: usize = 200;

/// Where the waits of the plan have read to in the last boot, by console.
pub(super) type WaitedTo = BTreeMap<ConsoleName, u64>;

/// Returns where the waits of the plan have read to in boot number `boots`.
pub(super) fn waited_to(
    cursors: &BTreeMap<ConsoleName, (usize, Follower)>,
    boots: usize,
) -> WaitedTo {
    let current = cursors.iter().filter(|(_, (boot, _))| *boot == boots);
    current.map(|(name, (_, follower))| (name.clone(), follower.cursor())).collect()
}

/// Returns the console of the text that ends the plan, if such a text ends it. Output behind an
/// earlier one belongs to the actions that follow.
pub(super) fn last_expected(plan: &Plan, primary: &ConsoleName) -> Option<ConsoleName> {
    let actions = plan.stages.iter().flat_map(|stage| &stage.steps).flat_map(|s| &s.behaviors);
    let last = actions
        .flat_map(|behavior| &behavior.actions)
        .rfind(|a| !matches!(a.kind, ActionKind::Sleep { .. } | ActionKind::Assert { .. }))?;
    match &last.kind {
        ActionKind::Expect { console, .. } => Some(console.as_ref().unwrap_or(primary).clone()),
        _ => None,
    }
}

/// Finds the first line of a log behind an offset that looks like a crash and is not allowed.
///
/// The rest of the line at the offset is looked at as a line of its own.
///
/// # Errors
/// Names the allowed pattern that cannot be compiled.
pub(super) fn suspicious_line<'a>(
    run: &Path,
    file: &str,
    start: u64,
    allowed: impl IntoIterator<Item = &'a Pattern>,
) -> Result<Option<ByteRange>, PatternSetError> {
    // A log that cannot be read has failed the attempt already.
    let Ok(log) = File::open(run.join(file)) else { return Ok(None) };
    let allowed: Vec<Pattern> = allowed.into_iter().cloned().collect();
    let mut search = Search {
        splitter: LineSplitter::new(start),
        allowed: PatternSet::new(&allowed)?,
        found: None,
    };
    let mut buf = vec![0; STRIDE];
    let mut at = start;
    while search.found.is_none() {
        let Ok(len @ 1..) = log.read_at(&mut buf, at) else { break };
        search.feed(&buf[..len]);
        at += len as u64;
    }
    search.finish();
    Ok(search.found.map(|((start, end), mut text)| {
        text.truncate(text.floor_char_boundary(QUOTE));
        ByteRange { file: file.to_owned(), start, end, text }
    }))
}

struct Search {
    splitter: LineSplitter,
    allowed: PatternSet,
    /// The first line that looks like a crash and is not allowed.
    found: Option<((u64, u64), String)>,
}

impl Search {
    fn feed(&mut self, bytes: &[u8]) {
        let Self { splitter, allowed, found } = self;
        splitter.feed(bytes, |raw| look(&raw, allowed, found));
    }

    fn finish(&mut self) {
        if let Some(raw) = self.splitter.begun() {
            look(&raw, &self.allowed, &mut self.found);
        }
    }
}

fn look(raw: &RawLine<'_>, allowed: &PatternSet, found: &mut Option<((u64, u64), String)>) {
    if found.is_some() {
        return;
    }
    let bytes = plain(raw.bytes);
    let text = lossy(&bytes);
    let text = text.trim_ascii();
    if is_suspicious(text) && !allowed.matches(text.as_bytes()) {
        *found = Some(((raw.span.start, raw.span.end), text.to_owned()));
    }
}
