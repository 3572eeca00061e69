//! Matches in output that is on disk already.

use std::ops::Range;

use super::follow::{FollowError, Follower};
use super::scan::{PatternSet, Scanner};
use super::shown_text::{ShownMatch, ShownSearch};

/// Bytes before a match's end within which its start and groups are looked for.
const WINDOW: u64 = 64 << 10;
/// Bytes read at once.
const STRIDE: u64 = 64 << 10;
/// Most bytes of a begun line that are read again: longer than a row of a terminal.
const HEAD: u64 = 4 << 10;

/// A capture group of a match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// What it holds, if it took part.
    pub bytes: Option<Vec<u8>>,
}

/// A match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matched {
    /// Index of the pattern in its set.
    pub pattern: usize,
    /// Offset of the first byte in the log; at most 64 KiB before the end.
    pub start: u64,
    /// Offset one past the last byte.
    pub end: u64,
    /// Groups from 1 on; empty where the match is longer than 64 KiB.
    pub captures: Vec<Capture>,
}

impl From<ShownMatch> for Matched {
    fn from(ShownMatch { pattern, printed, .. }: ShownMatch) -> Self {
        Self { pattern, start: printed.start, end: printed.end, captures: Vec::new() }
    }
}

/// Finds the matches of any of the patterns within a range of the log, each behind the
/// one before, but at most `limit` of them.
///
/// The end of the range counts as the end of the text, so `$` matches there. Yields to other tasks;
/// does not use the cursor of the follower.
///
/// # Errors
/// Fails where the log cannot be read.
pub async fn find_all(
    follower: &Follower,
    set: &PatternSet,
    range: Range<u64>,
    limit: usize,
) -> Result<Vec<Matched>, FollowError> {
    let mut found: Vec<Matched> = Vec::new();
    let mut from = range.start.max(follower.floor());
    let mut scanner = Scanner::new(set, follower.byte_before(from)?);
    let mut position = from;
    let mut buf = vec![0; STRIDE as usize];
    loop {
        let room = range.end.saturating_sub(position).min(STRIDE) as usize;
        let len = follower.read_at(position, &mut buf[..room])?;
        let mut rest = &buf[..len];
        // Once more with nothing at the end of the range, for what looked ahead.
        loop {
            if found.len() >= limit {
                return Ok(found);
            }
            let hits = if len == 0 {
                scanner.finish()
            } else {
                let scanned = scanner.scan(rest);
                position += scanned.used as u64;
                rest = &rest[scanned.used..];
                scanned.hits
            };
            let Some(&hit) = hits.first() else { break };
            found.push(locate(follower, set, hit, from, position)?);
            from = position;
            scanner.restart(follower.byte_before(from)?);
        }
        if len == 0 {
            return Ok(found);
        }
        tokio::task::yield_now().await;
    }
}

/// Finds what a terminal shows of a range of the log that its bytes need not spell: text with control
/// sequences within it, or written over. Returns at most `limit` matches, each by the bytes that printed it.
///
/// The end of the range counts as the end of the text. Yields to other tasks; does not use the cursor of
/// the follower.
///
/// # Errors
/// Fails where the log cannot be read.
pub async fn find_shown(
    follower: &Follower,
    set: &PatternSet,
    range: Range<u64>,
    limit: usize,
) -> Result<Vec<Matched>, FollowError> {
    let mut position = range.start.max(follower.floor());
    let mut search = shown_behind(follower, set, position)?;
    let mut found = Vec::new();
    let mut buf = vec![0; STRIDE as usize];
    loop {
        let room = range.end.saturating_sub(position).min(STRIDE) as usize;
        let len = follower.read_at(position, &mut buf[..room])?;
        let shown = if len == 0 { search.begun(true) } else { search.feed(&buf[..len]) };
        found.extend(shown.into_iter().map(Matched::from));
        if len == 0 || found.len() >= limit {
            found.truncate(limit);
            return Ok(found);
        }
        position += len as u64;
        tokio::task::yield_now().await;
    }
}

/// Begins a search of what a terminal shows behind an offset, which may stand within a line.
pub(super) fn shown_behind(
    follower: &Follower,
    set: &PatternSet,
    from: u64,
) -> Result<ShownSearch, FollowError> {
    let start = from.saturating_sub(HEAD).max(follower.floor()).min(from);
    let mut head = vec![0; (from - start) as usize];
    let len = follower.read_at(start, &mut head)?;
    let line = memchr::memrchr2(b'\n', b'\r', &head[..len]).map(|end| end + 1);
    let whole = line.is_some() || start == follower.floor();
    Ok(ShownSearch::behind(set, &head[line.unwrap_or_default()..len], whole, from))
}

/// Finds start and groups of a match that ends at `end` and begins at `from` or later.
pub(super) fn locate(
    follower: &Follower,
    set: &PatternSet,
    pattern: usize,
    from: u64,
    end: u64,
) -> Result<Matched, FollowError> {
    let start = from.max(end.saturating_sub(WINDOW));
    // One byte more on each side, for `^`, `$` and `\b`.
    let base = start.saturating_sub(1).max(follower.floor());
    let mut text = vec![0; (end - base) as usize + 1];
    let len = follower.read_at(base, &mut text)?;
    text.truncate(len);
    let span = (start - base) as usize..(end - base) as usize;
    let Some(located) = set.locate(pattern, &text, span) else {
        return Ok(Matched { pattern, start, end, captures: Vec::new() });
    };
    let captures = located
        .groups
        .into_iter()
        .map(|(name, range)| Capture { name, bytes: range.map(|r| text[r].to_vec()) })
        .collect();
    Ok(Matched { pattern, start: base + located.start as u64, end, captures })
}
