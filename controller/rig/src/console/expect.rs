//! Waits for text on a console.
//!
//! What a wait finds depends on the bytes alone and never on how they were cut, but for one thing: a
//! prompt has no line end, so `$` also matches at the end of what was printed once nothing followed
//! for [`PAUSE`]. Control sequences at that end, which switch a colour off, belong to no text. A match
//! consumes up to its end; a wait that fails or is dropped consumes nothing.
//!
//! Where nothing followed for [`PAUSE`], and at the end of the wait, lines with control sequences are
//! also searched as a reader sees them: without the sequences. Such a match is the line. What is rejected
//! is searched as a terminal shows it at once, when a line ends and where an awaited text ends.
//!
//! At one offset a rejected pattern wins over an awaited one, unless it needs to see a
//! further byte to be sure.

use std::time::Duration;

use jig_model::pattern::Pattern;
use tokio::time::Instant;

use super::follow::{Beyond, FollowError, Follower};
use super::lines::{LineSplitter, RawLine, Span, plain, text_len};
use super::queue::TransportEnd;
use super::scan::{PatternSet, Scanner};
use super::search::{Capture, Matched, locate, shown_behind};
use super::shown_text::{ShownMatch, ShownSearch};

/// Bytes of the last output that an error quotes: about three lines.
const QUOTE: u64 = 200;
/// How long nothing may follow where `$` matches in the middle of a line. A line is printed in
/// milliseconds; a loaded host may hold it up for some hundred.
pub(crate) const PAUSE: Duration = Duration::from_millis(500);
/// Bytes of the last output in which a match is looked for that control sequences follow.
const TAIL: u64 = 64 << 10;
/// Bytes searched between two checks of the clock.
const STRIDE: usize = 64 << 10;

/// Says why awaited text was not found.
#[derive(Debug, thiserror::Error)]
pub enum ExpectError {
    /// The time-out passed.
    #[error("waited {} for {}; {}", seconds(*.after), any_of(.awaited), output(*.printed, .last_bytes))]
    TimedOut {
        /// What was awaited.
        awaited: Vec<Pattern>,
        /// For how long.
        after: Duration,
        /// The last output, at most 200 bytes, lossy; hostile text.
        last_bytes: String,
        /// How many bytes were printed in that time and did not match.
        printed: u64,
    },
    /// Text that the caller rejects came first.
    #[error("`{pattern}` was seen while waiting for {}", any_of(.awaited))]
    Rejected {
        /// What was awaited.
        awaited: Vec<Pattern>,
        /// The rejected pattern.
        pattern: Pattern,
        /// Where it was seen.
        matched: Matched,
        /// The range, at most 200 bytes, lossy; hostile text.
        text: String,
    },
    /// The transport ended first.
    #[error("the console's transport ended{} while waiting for {}; {}", why(.end), any_of(.awaited), output(*.printed, .last_bytes))]
    Ended {
        /// What was awaited.
        awaited: Vec<Pattern>,
        /// How the transport ended; `None` where the console was closed.
        end: Option<TransportEnd>,
        /// The last output, at most 200 bytes, lossy; hostile text.
        last_bytes: String,
        /// How many bytes were printed and did not match.
        printed: u64,
    },
    /// The log failed.
    #[error("wait for console output")]
    Storage(#[source] FollowError),
}

impl ExpectError {
    /// Builds the failure of a wait behind the follower's cursor that was cut off after this time.
    pub(crate) fn cut_off(follower: &Follower, any: &PatternSet, after: Duration) -> Self {
        let (from, end) = (follower.cursor(), follower.state().len);
        match quote(follower, from, end.max(from)) {
            Ok(last_bytes) => Self::TimedOut {
                awaited: any.patterns().to_vec(),
                after,
                last_bytes,
                printed: end.saturating_sub(from),
            },
            Err(error) => Self::Storage(error),
        }
    }
}

impl From<FollowError> for ExpectError {
    fn from(error: FollowError) -> Self {
        Self::Storage(error)
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn any_of(patterns: &[Pattern]) -> String {
    match patterns {
        [] => "the end".to_owned(),
        [only] => format!("`{only}`"),
        many => {
            let texts: Vec<String> = many.iter().map(|p| format!("`{p}`")).collect();
            format!("any of {}", texts.join(", "))
        }
    }
}

fn output(count: u64, last: &str) -> String {
    match count {
        0 => "nothing was printed".to_owned(),
        n => format!("{n} bytes were printed, and the output ends with {last:?}"),
    }
}

fn why(end: &Option<TransportEnd>) -> String {
    match end {
        Some(TransportEnd::Broken(error)) => format!(" ({error})"),
        Some(TransportEnd::Closed) | None => String::new(),
    }
}

/// Waits until one of `any` matches behind the follower's cursor, and puts the cursor
/// behind the match.
///
/// Everything committed when the deadline passes is still looked at. Cancel-safe.
///
/// # Errors
/// Fails when the deadline passes, one of `reject` matches first, the transport ends, or the
/// log fails; the cursor stays.
pub async fn expect(
    follower: &mut Follower,
    any: &PatternSet,
    reject: &PatternSet,
    deadline: Instant,
) -> Result<Matched, ExpectError> {
    let began = Instant::now();
    let from = follower.cursor();
    let before = follower.byte_before(from)?;
    let mut wait = Wait {
        from,
        position: from,
        any,
        reject,
        wanted: Scanner::new(any, before),
        refused: Scanner::new(reject, before),
        shown: shown_behind(follower, reject, from)?,
    };
    let mut buf = vec![0; STRIDE];
    // Once the deadline has passed: how much was committed then.
    let mut last_look = None;
    let mut heard = began;
    // Where the target has paused behind control sequences, without a match.
    let mut looked_behind = None;
    loop {
        if last_look.is_none() && Instant::now() >= deadline {
            last_look = Some(follower.state().len);
        }
        let beyond = match last_look {
            Some(limit) if wait.position < limit => Beyond::Bytes,
            Some(_) => {
                if let Some(found) = wait.without_controls(follower)? {
                    return wait.conclude(follower, found);
                }
                return Err(ExpectError::TimedOut {
                    awaited: any.patterns().to_vec(),
                    after: began.elapsed(),
                    last_bytes: wait.quote(follower)?,
                    printed: wait.position - from,
                });
            }
            None => {
                let paused = wait.at_pause();
                let looks = paused.is_some() || looked_behind != Some(wait.position);
                let until = if looks { deadline.min(heard + PAUSE) } else { deadline };
                let waited = follower.wait_beyond(wait.position);
                match tokio::time::timeout_at(until, waited).await {
                    Ok(beyond) => beyond?,
                    Err(_) if until == deadline => continue,
                    Err(_) => {
                        if let Some(found) = wait.in_pause(follower, paused)? {
                            return wait.conclude(follower, found);
                        }
                        looked_behind = Some(wait.position);
                        continue;
                    }
                }
            }
        };
        let found = match &beyond {
            Beyond::Bytes => {
                let len = follower.read_at(wait.position, &mut buf)?;
                wait.look(&buf[..len])
            }
            Beyond::Ended(_) => wait.look_at_end(),
        };
        match (found, beyond) {
            (Some(found), _) => return wait.conclude(follower, found),
            // Reads are always ready while a target floods, so yield to other tasks.
            (None, Beyond::Bytes) => {
                heard = Instant::now();
                tokio::task::yield_now().await;
            }
            (None, Beyond::Ended(end)) => {
                if let Some(found) = wait.without_controls(follower)? {
                    return wait.conclude(follower, found);
                }
                return Err(ExpectError::Ended {
                    awaited: any.patterns().to_vec(),
                    end,
                    last_bytes: wait.quote(follower)?,
                    printed: wait.position - from,
                });
            }
        }
    }
}

/// A match in the bytes that ends where the wait has come to, or one in what a terminal shows of a line.
enum ExpectMatch {
    Wanted(usize),
    WantedAsShown(Matched),
    Refused(usize),
    RefusedAsShown(Matched),
}

fn first_refused(found: Vec<ShownMatch>) -> Option<ExpectMatch> {
    found.into_iter().next().map(|found| ExpectMatch::RefusedAsShown(found.into()))
}

struct Wait<'a> {
    from: u64,
    position: u64,
    any: &'a PatternSet,
    reject: &'a PatternSet,
    wanted: Scanner,
    refused: Scanner,
    shown: ShownSearch,
}

impl Wait<'_> {
    fn look(&mut self, bytes: &[u8]) -> Option<ExpectMatch> {
        let wanted = if self.any.is_empty() {
            // An empty set means: only what is rejected, or the end, ends the wait.
            super::scan::Scanned { used: bytes.len(), hits: Vec::new() }
        } else {
            self.wanted.scan(bytes)
        };
        // The rejected patterns see exactly the bytes that decided, so that bytes which
        // happen to have arrived already change nothing.
        let refused = if self.reject.is_empty() {
            None
        } else {
            let seen = self.refused.scan(&bytes[..wanted.used]);
            seen.hits.first().map(|&hit| (hit, seen.used))
        };
        if let Some((hit, used)) = refused {
            self.position += used as u64;
            return Some(ExpectMatch::Refused(hit));
        }
        self.position += wanted.used as u64;
        let mut shown = self.shown.feed(&bytes[..wanted.used]);
        if !wanted.hits.is_empty() {
            shown.append(&mut self.shown.begun(false));
        }
        let wanted = || wanted.hits.first().map(|&hit| ExpectMatch::Wanted(hit));
        first_refused(shown).or_else(wanted)
    }

    fn look_at_end(&mut self) -> Option<ExpectMatch> {
        let wanted = self.wanted.finish().first().map(|&hit| ExpectMatch::Wanted(hit));
        let refused = || self.refused.finish().first().map(|&hit| ExpectMatch::Refused(hit));
        first_refused(self.shown.begun(true)).or(wanted).or_else(refused)
    }

    /// Returns what would match if nothing followed.
    fn at_pause(&self) -> Option<ExpectMatch> {
        let wanted = || self.wanted.clone().finish().first().map(|&hit| ExpectMatch::Wanted(hit));
        let refused = self.refused.clone().finish().first().map(|&hit| ExpectMatch::Refused(hit));
        refused.or_else(wanted)
    }

    /// Returns what matches in a pause; `paused` would match in the bytes if nothing followed.
    fn in_pause(
        &mut self,
        follower: &Follower,
        paused: Option<ExpectMatch>,
    ) -> Result<Option<ExpectMatch>, FollowError> {
        if let Some(found) = first_refused(self.shown.begun(true)).or(paused) {
            return Ok(Some(found));
        }
        match self.in_front_of_controls(follower)? {
            None => self.without_controls(follower),
            found => Ok(found),
        }
    }

    /// Returns what would match if the output ended in front of the control sequences at its end, and
    /// moves to there.
    fn in_front_of_controls(
        &mut self,
        follower: &Follower,
    ) -> Result<Option<ExpectMatch>, FollowError> {
        let from = self.from.max(self.position.saturating_sub(TAIL));
        let mut output = vec![0; (self.position - from) as usize];
        let len = follower.read_at(from, &mut output)?;
        let text = &output[..text_len(&output[..len])];
        if text.len() == len {
            return Ok(None);
        }
        let before = follower.byte_before(from)?;
        let found = |set: &PatternSet| {
            let mut scanner = Scanner::new(set, before);
            let mut rest = text;
            while !rest.is_empty() {
                rest = &rest[scanner.scan(rest).used..];
            }
            scanner.finish().first().copied()
        };
        let refused = found(self.reject).map(ExpectMatch::Refused);
        let found = refused.or_else(|| found(self.any).map(ExpectMatch::Wanted));
        if found.is_some() {
            self.position = from + text.len() as u64;
        }
        Ok(found)
    }

    /// Searches the lines with control sequences, among the last ones, as a reader sees them.
    fn without_controls(&self, follower: &Follower) -> Result<Option<ExpectMatch>, FollowError> {
        let refused = first_refused(self.shown.begun(true));
        if refused.is_some() {
            return Ok(refused);
        }
        let from = self.from.max(self.position.saturating_sub(TAIL));
        let mut output = vec![0; (self.position - from) as usize];
        let len = follower.read_at(from, &mut output)?;
        let output = &output[..len];
        if memchr::memchr(0x1b, output).is_none() {
            return Ok(None);
        }
        let before = follower.byte_before(from)?;
        let mut found = None;
        let mut look = |line: RawLine<'_>| {
            let known = line.span.start > from || before.is_none_or(|b| matches!(b, b'\n' | b'\r'));
            if found.is_none() && known && line.bytes.contains(&0x1b) {
                found = self.match_in_line(&plain(line.bytes), line.span);
            }
        };
        let mut splitter = LineSplitter::new(from);
        splitter.feed(output, &mut look);
        if let Some(line) = splitter.begun() {
            look(line);
        }
        Ok(found.map(ExpectMatch::WantedAsShown))
    }

    /// Looks for an awaited text in a line whose control sequences were removed.
    fn match_in_line(&self, text: &[u8], span: Span) -> Option<Matched> {
        let mut scanner = Scanner::new(self.any, None);
        let scanned = scanner.scan(text);
        let hits = if scanned.hits.is_empty() { scanner.finish() } else { scanned.hits };
        let pattern = *hits.first()?;
        let located = self.any.locate(pattern, text, 0..scanned.used);
        let groups = located.map(|located| located.groups).unwrap_or_default();
        let captures = groups
            .into_iter()
            .map(|(name, range)| Capture { name, bytes: range.map(|range| text[range].to_vec()) });
        let captures = captures.collect();
        Some(Matched { pattern, start: span.start, end: span.end, captures })
    }

    /// Ends the wait by a match.
    fn conclude(
        &self,
        follower: &mut Follower,
        found: ExpectMatch,
    ) -> Result<Matched, ExpectError> {
        let located = |set, hit| locate(follower, set, hit, self.from, self.position);
        let matched = match found {
            ExpectMatch::Wanted(hit) => located(self.any, hit)?,
            ExpectMatch::WantedAsShown(matched) => matched,
            ExpectMatch::Refused(hit) => {
                let matched = located(self.reject, hit)?;
                return Err(self.refusal(follower, matched)?);
            }
            ExpectMatch::RefusedAsShown(matched) => return Err(self.refusal(follower, matched)?),
        };
        follower.seek(matched.end);
        Ok(matched)
    }

    fn refusal(&self, follower: &Follower, matched: Matched) -> Result<ExpectError, FollowError> {
        let start = matched.start.max(matched.end.saturating_sub(QUOTE));
        Ok(ExpectError::Rejected {
            awaited: self.any.patterns().to_vec(),
            pattern: self.reject.patterns()[matched.pattern].clone(),
            text: lossy(follower, start, matched.end)?,
            matched,
        })
    }

    fn quote(&self, follower: &Follower) -> Result<String, FollowError> {
        quote(follower, self.from, self.position)
    }
}

/// Quotes the end of what was printed in a range. Of a line that was begun in front of it, the beginning
/// belongs to the quote: patterns match lines, not what a wait has seen of them.
fn quote(follower: &Follower, from: u64, end: u64) -> Result<String, FollowError> {
    let start = from.max(end.saturating_sub(QUOTE));
    if start > from || start == end {
        return lossy(follower, start, end);
    }
    let mut head = start;
    while start - head < QUOTE
        && follower.byte_before(head)?.is_some_and(|byte| !matches!(byte, b'\n' | b'\r'))
    {
        head -= 1;
    }
    lossy(follower, head, end)
}

fn lossy(follower: &Follower, start: u64, end: u64) -> Result<String, FollowError> {
    let mut bytes = vec![0; (end - start) as usize];
    let len = follower.read_at(start, &mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes[..len]).into_owned())
}

#[cfg(test)]
#[path = "expect_tests.rs"]
mod tests;
