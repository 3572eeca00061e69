//! Says where text stands that a wait did not accept although a reader of the logs finds it: on
//! another console, in front of the wait, or behind bytes that readers of lines leave out.

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
        if is_awaited && is_hidden(console, patterns, began..len) == Some(true) {
            let bytes = "bytes 0x00, 0xff, 0x11 and 0x13";
            return Some(format!("it matches only without the {bytes} that the target prints"));
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

/// Tells whether a line matches only without the bytes that readers of lines leave out. Lines with
/// control sequences were searched without them by the wait itself.
fn is_hidden(
    console: &BoardConsole,
    patterns: &PatternSet,
    range: std::ops::Range<u64>,
) -> Option<bool> {
    let start = range.start.max(range.end.saturating_sub(SEARCHED));
    let reader = console.handle.follow(start, start).ok()?;
    let mut bytes = vec![0; usize::try_from(range.end - start).unwrap_or(0)];
    let len = reader.read_at(start, &mut bytes).ok()?;
    let mut splitter = LineSplitter::new(start);
    let hidden = |line: &[u8]| {
        let clean = plain(line);
        // Where nothing is left out, the line matches only because it is taken for complete.
        clean.len() < line.len() && !line.contains(&0x1b) && patterns.matches(&clean)
    };
    let mut found = false;
    splitter.feed(&bytes[..len], |raw| found |= hidden(raw.bytes));
    Some(found || splitter.begun().is_some_and(|line| hidden(line.bytes)))
}
