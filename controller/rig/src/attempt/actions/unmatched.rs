//! Says where text stands that a wait did not accept although a reader of the logs finds it: on
//! another console, in front of the wait, or with control sequences in it.

use jig_model::ConsoleName;

use crate::attempt::board::{AttemptBoard, BoardConsole};
use crate::console::lines::{LineSplitter, plain};
use crate::console::{PatternSet, find_all};
use crate::judge::console_advice;

/// Most bytes of a log that are searched, from its end: this is a hint, and a flood must cost
/// nothing.
const SEARCHED: u64 = 1 << 20;

/// Searches for text that a wait on a console has missed; the wait began at an offset.
pub(super) async fn unmatched(
    board: &AttemptBoard,
    awaited: &ConsoleName,
    patterns: &PatternSet,
    began: u64,
) -> Option<String> {
    for (name, console) in &board.lines {
        let is_awaited = name == awaited;
        let len = console.handle.state().borrow().len;
        let end = if is_awaited { began } else { len };
        if let Some(at) = first_match(console, patterns, end).await {
            return Some(if is_awaited {
                format!("it matches in front of this wait, at byte {at} of {name}")
            } else {
                format!("it matches on {name}, at byte {at}: {}", console_advice(name))
            });
        }
        if is_awaited && matches_when_plain(console, patterns, began..len) {
            let hint = "it matches only without the control sequences that the target prints";
            return Some(hint.to_owned());
        }
    }
    None
}

async fn first_match(console: &BoardConsole, patterns: &PatternSet, end: u64) -> Option<u64> {
    let reader = console.handle.follow(0, 0).ok()?;
    let range = end.saturating_sub(SEARCHED)..end;
    let found = find_all(&reader, patterns, range, 1).await.ok()?;
    found.first().map(|matched| matched.start)
}

fn matches_when_plain(
    console: &BoardConsole,
    patterns: &PatternSet,
    range: std::ops::Range<u64>,
) -> bool {
    let start = range.start.max(range.end.saturating_sub(SEARCHED));
    let Ok(reader) = console.handle.follow(start, start) else { return false };
    let mut bytes = vec![0; usize::try_from(range.end - start).unwrap_or(0)];
    let Ok(len) = reader.read_at(start, &mut bytes) else { return false };
    let mut splitter = LineSplitter::new(start);
    let mut found = false;
    splitter.feed(&bytes[..len], |raw| found |= patterns.matches(&plain(raw.bytes)));
    found || splitter.begun().is_some_and(|raw| patterns.matches(&plain(raw.bytes)))
}
