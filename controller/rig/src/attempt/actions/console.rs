//! Waits, input and assertions on a console.

use std::collections::btree_map::Entry;
use std::future::pending;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use jig_model::pattern::Pattern;
use jig_model::plan::Assertion;
use jig_model::protocol::BoardSink as _;
use jig_model::{Cause, ConsoleName, chain};
use tokio::time::{Instant, timeout};

use super::quiet::{HaltPace, LostSince};
use super::unmatched::unmatched;
use super::{Actions, compile};
use crate::attempt::abort_condition::{abort_condition, found, found_beside, quiet_in_vain};
use crate::attempt::board::{AttemptBoard, REASON};
use crate::attempt::board_timeout::BoardTimeout;
use crate::attempt::compiled_patterns::RunPatterns;
use crate::attempt::facts::Observed;
use crate::console::lines::MAX_LINE;
use crate::console::spelled_parts;
use crate::console::{
    ExpectError, FaultReasons, FollowError, Follower, Matched, PatternSet, REASON_LINES, expect,
    find_all, find_shown,
};
use crate::judge::{ByteRange, Incident, IncidentKind};
use crate::workflow::ActionFailure;

impl Actions<'_> {
    pub(super) async fn expect(
        &mut self,
        console: Option<&ConsoleName>,
        any: &[Pattern],
        reject: &[Pattern],
        board_timeout: BoardTimeout,
    ) -> Result<Matched, ActionFailure> {
        let console = self.console(console);
        let any_patterns = any;
        let (any, reject) = (compile(any)?, compile(reject)?);
        let board = Arc::clone(&self.board);
        let file = board.lines.get(&console).map(|line| line.file.clone()).unwrap_or_default();
        let progress = self.watched.get(&console).cloned();
        let patterns = self.patterns;
        let mut follower = self.cursor(&console)?;
        let (began, mut in_vain) = (Instant::now(), false);
        let outcome = loop {
            let quiet = async {
                match &progress {
                    Some(progress) => quiet_in_vain(&board, &console, progress.clone()).await,
                    None => pending().await,
                }
            };
            let until = if in_vain { Instant::now() } else { board_timeout.until(&board) };
            let outcome = tokio::select! {
                biased;
                failure = abort_condition(&board) => {
                    let patterns = (any_patterns, &any, &reject);
                    if let Some(matched) = self.awaited_crash(&console, &file, patterns).await {
                        return Ok(matched);
                    }
                    // A headline may belong to a crash that was expected and is not recognised yet.
                    if !self.caught_up(&console).await || found(&board).is_some() {
                        return Err(failure);
                    }
                    follower = self.cursor(&console)?;
                    continue;
                }
                outcome = expect(follower, &any, &reject, until) => outcome,
                () = quiet => {
                    in_vain = true;
                    continue;
                }
            };
            let echoed = self.echoed(&console, &outcome).await;
            follower = self.cursor(&console)?;
            if echoed {
                continue;
            }
            // A wait that fails has consumed nothing, so it can simply go on.
            match outcome {
                Err(ExpectError::TimedOut { .. }) if !in_vain && !board_timeout.is_over(&board) => {
                }
                outcome => break outcome,
            }
        };
        let mut error = match outcome {
            Ok(matched) => {
                let reasons = reasons(patterns).await?;
                board.report(expected_text(follower, &file, (any_patterns, &matched), reasons));
                return Ok(matched);
            }
            Err(error) => error,
        };
        if let ExpectError::TimedOut { after, .. } = &mut error {
            // Not that of the last piece of an extended wait.
            *after = if in_vain { began.elapsed() } else { board_timeout.asked() };
        }
        let at = follower.cursor();
        let cause = match &error {
            ExpectError::TimedOut { .. } => Cause::ExpectMissed,
            ExpectError::Rejected { .. } => Cause::AssertFailed,
            ExpectError::Ended { .. } => {
                Self::board_is_off(&board).await;
                if let Some(failure) = found(&board) {
                    return Err(failure);
                }
                lost_or_over(&board)
            }
            ExpectError::Storage(_) => Cause::StorageFailed,
        };
        let timed_out = !in_vain && matches!(error, ExpectError::TimedOut { .. });
        let echo = self.last_echo(&console);
        let failure = failed_wait(&board, &console, (&any, at, echo), (cause, &error)).await;
        Err(if timed_out { board_timeout.judged(&board, failure) } else { failure })
    }

    /// Says what an expectation has missed that was cut off after this time.
    pub(super) async fn cut_off_wait(
        &mut self,
        console: Option<&ConsoleName>,
        any: &[Pattern],
        after: Duration,
    ) -> Result<ActionFailure, ActionFailure> {
        let console = self.console(console);
        let board = Arc::clone(&self.board);
        let any = compile(any)?;
        let follower = self.cursor(&console)?;
        let error = ExpectError::cut_off(follower, &any, after);
        let at = follower.cursor();
        let cause = match error {
            ExpectError::Storage(_) => Cause::StorageFailed,
            _ => Cause::ExpectMissed,
        };
        let echo = self.last_echo(&console);
        Ok(failed_wait(&board, &console, (&any, at, echo), (cause, &error)).await)
    }

    /// Waits until the driver has reported why the board went off, so that the judge knows.
    async fn board_is_off(board: &AttemptBoard) {
        let mut changes = board.changes();
        let off = async {
            loop {
                changes.borrow_and_update();
                if !board.facts().on() {
                    return;
                }
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // Without a report of the driver, the end of the transport is the cause.
        let _ = timeout(REASON, off).await;
    }

    pub(super) async fn send(
        &mut self,
        console: Option<&ConsoleName>,
        bytes: &[u8],
        timeout: Duration,
    ) -> Result<String, ActionFailure> {
        let console = self.console(console);
        let board = Arc::clone(&self.board);
        let Some(line) = board.lines.get(&console) else {
            return Err(no_console(&console));
        };
        self.remember_sent(&console, bytes);
        let board_timeout = BoardTimeout::new(&board, timeout);
        let sent = tokio::select! {
            biased;
            failure = abort_condition(&board) => return Err(failure),
            sent = line.handle.send(bytes) => Some(sent),
            () = board_timeout.run_out(&board) => None,
        };
        match sent {
            Some(Ok(())) => Ok(format!("{} bytes", bytes.len())),
            Some(Err(error)) => {
                Self::board_is_off(&board).await;
                if let Some(failure) = found(&board) {
                    return Err(failure);
                }
                let cause = lost_or_over(&board);
                Err(ActionFailure::new(cause, format!("send to {console}: {}", chain(&error))))
            }
            None => {
                let n = bytes.len();
                let detail =
                    format!("the target did not take {n} bytes on {console} in {timeout:?}");
                let failure = ActionFailure::new(Cause::ExpectMissed, detail);
                Err(board_timeout.judged(&board, failure))
            }
        }
    }

    pub(super) async fn assert(
        &mut self,
        console: Option<&ConsoleName>,
        pattern: &Pattern,
        assertion: Assertion,
        timeout: Duration,
    ) -> Result<String, ActionFailure> {
        let board = Arc::clone(&self.board);
        let looked = tokio::time::timeout(timeout, self.look_back(console, pattern, assertion));
        tokio::select! {
            biased;
            failure = abort_condition(&board) => Err(failure),
            looked = looked => looked.unwrap_or_else(|_| {
                let detail = format!("the output could not be looked through within {timeout:?}");
                Err(ActionFailure::new(Cause::StorageFailed, detail))
            }),
        }
    }

    async fn look_back(
        &mut self,
        console: Option<&ConsoleName>,
        pattern: &Pattern,
        assertion: Assertion,
    ) -> Result<String, ActionFailure> {
        let console = self.console(console);
        self.board.drained().await;
        let set = compile(std::slice::from_ref(pattern))?;
        let start = self.cursor(&console)?.floor();
        let board = Arc::clone(&self.board);
        let Some(line) = board.lines.get(&console) else {
            return Err(no_console(&console));
        };
        let storage = |error| ActionFailure::new(Cause::StorageFailed, chain(&error));
        let end = line.handle.state().borrow().len;
        let reader = line.handle.follow(start, start).map_err(storage)?;
        let limit = match assertion {
            Assertion::AtLeast(n) => n as usize,
            Assertion::Absent => 1,
        };
        let searched = (&reader, &set, start..end);
        let mut found = self.printed(&console, searched.clone(), limit, false).await;
        if assertion == Assertion::Absent && matches!(&found, Ok(found) if found.is_empty()) {
            found = self.printed(&console, searched, limit, true).await;
        }
        let found = found.map_err(storage)?;
        let file = line.file.clone();
        match assertion {
            Assertion::Absent => match found.first() {
                None => Ok(format!("no `{pattern}`")),
                Some(matched) => {
                    let detail = format!("`{pattern}` was printed, but must not be");
                    let (start, end) = (matched.start, matched.end);
                    let range = ByteRange { file, start, end, text: detail.clone() };
                    let evidence = vec![range.evidence()];
                    Err(ActionFailure { cause: Cause::AssertFailed, detail, evidence })
                }
            },
            Assertion::AtLeast(n) if found.len() as u64 >= u64::from(n) => {
                Ok(format!("`{pattern}` {n} times"))
            }
            Assertion::AtLeast(n) => {
                let seen = found.len();
                let detail = format!("`{pattern}` was printed {seen} times, not {n}");
                let range = ByteRange { file, start, end, text: detail.clone() };
                let evidence = vec![range.evidence()];
                Err(ActionFailure { cause: Cause::AssertFailed, detail, evidence })
            }
        }
    }

    /// Finds up to `limit` matches in a range of the log that are no echo: in its bytes, or in what a
    /// terminal shows of them.
    async fn printed(
        &mut self,
        console: &ConsoleName,
        (reader, set, range): (&Follower, &PatternSet, Range<u64>),
        limit: usize,
        as_shown: bool,
    ) -> Result<Vec<Matched>, FollowError> {
        let (mut found, mut from) = (Vec::new(), range.start);
        while found.len() < limit && from < range.end {
            let next = match as_shown {
                true => find_shown(reader, set, from..range.end, limit).await?,
                false => find_all(reader, set, from..range.end, limit).await?,
            };
            let last = next.last().filter(|_| next.len() >= limit);
            from = last.map_or(range.end, |last| last.end.max(from + 1));
            for matched in next {
                if !self.is_echo(console, &matched).await {
                    found.push(matched);
                }
            }
        }
        Ok(found)
    }

    /// Waits on where a crash would end the wait, since its text may be what is awaited. Returns the
    /// match if nothing but that text ends the wait.
    async fn awaited_crash(
        &mut self,
        console: &ConsoleName,
        file: &str,
        (patterns, any, reject): (&[Pattern], &PatternSet, &PatternSet),
    ) -> Option<Matched> {
        let board = Arc::clone(&self.board);
        let at = self.cursor(console).ok()?.cursor();
        let is_ahead = |incident: &Incident| {
            let recognised = matches!(incident.kind, IncidentKind::Recognised(_));
            recognised && incident.range.file == file && incident.range.end > at
        };
        if !board.facts().incidents.iter().any(is_ahead) {
            return None;
        }
        let mut lost = LostSince::new(self.lost_time().await.ok()?);
        let mut period = BoardTimeout::new(&board, HANDLER);
        let mut pace = HaltPace::new(HANDLER);
        let matched = loop {
            let follower = self.cursor(console).ok()?;
            match expect(follower, any, reject, period.until(&board).max(pace.at())).await {
                Ok(matched) => break matched,
                Err(ExpectError::TimedOut { .. }) => {}
                Err(_) => return None,
            }
            // What was lost is known exactly only of a halted board.
            self.halt().await.ok()?;
            period.lose(lost.of(self.lost_time().await.ok()?));
            let over = period.is_over(&board);
            self.run_on().await.ok()?;
            if over {
                return None;
            }
            period.lose(lost.of(self.lost_time().await.ok()?));
            pace.runs_on();
        };
        let reasons = reasons(self.patterns).await.ok()?;
        let follower = self.cursor(console).ok()?;
        board.report(expected_text(follower, file, (patterns, &matched), reasons));
        // What else the console shows may be awaited later, and is judged at the end.
        found_beside(&board, file).is_none().then_some(matched)
    }

    /// Waits until the watcher of a console has read what was captured so far; tells whether it has.
    async fn caught_up(&mut self, console: &ConsoleName) -> bool {
        let (Some(line), Some(progress)) =
            (self.board.lines.get(console), self.watched.get(console))
        else {
            return false;
        };
        let len = line.handle.state().borrow().len;
        let mut progress = progress.clone();
        let read = progress.wait_for(|now| now.processed >= len && !now.undecided);
        timeout(CATCH_UP, read).await.is_ok_and(|read| read.is_ok())
    }

    pub(super) fn console(&self, name: Option<&ConsoleName>) -> ConsoleName {
        name.unwrap_or(&self.board.primary).clone()
    }

    /// Returns the reader of a console, after the output that earlier waits of this boot consumed.
    pub(super) fn cursor(&mut self, console: &ConsoleName) -> Result<&mut Follower, ActionFailure> {
        let storage = |error: crate::console::FollowError| {
            ActionFailure::new(Cause::StorageFailed, chain(&error))
        };
        let Some(line) = self.board.lines.get(console) else {
            return Err(no_console(console));
        };
        let (boots, start) = {
            let facts = self.board.facts();
            let start = facts.boots.last().and_then(|boot| boot.get(console)).copied();
            (facts.boots.len(), start.unwrap_or_default())
        };
        let (seen, follower) = match self.cursors.entry(console.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                new.insert((boots, line.handle.follow(start, start).map_err(storage)?))
            }
        };
        if *seen != boots {
            *seen = boots;
            follower.begin_boot(start);
        }
        Ok(follower)
    }
}

/// Builds the failure of a wait that began at an offset; its text may have come in an echo.
async fn failed_wait(
    board: &AttemptBoard,
    console: &ConsoleName,
    (any, at, echo): (&PatternSet, u64, Option<u64>),
    (cause, error): (Cause, &ExpectError),
) -> ActionFailure {
    let line = board.lines.get(console);
    let (start, end) = match error {
        ExpectError::Rejected { matched, .. } => (matched.start, matched.end),
        _ => (at, line.map_or(at, |line| line.handle.state().borrow().len)),
    };
    let mut detail = chain(error);
    if matches!(error, ExpectError::Ended { .. })
        && let Some(code) = board.facts().exit
    {
        detail = format!("the target ended with code {code}: {detail}");
    }
    if let Some(echo) = echo.filter(|_| cause == Cause::ExpectMissed) {
        detail = format!(
            "{detail}; at byte {echo} of {console} it matches only what the console repeats of the \
             text that was sent, which proves nothing: expect a text of the answer (or the echo \
             itself, by `echo = true`)"
        );
    } else if cause == Cause::ExpectMissed
        && let Some(hint) = unmatched(board, console, any, at).await
    {
        detail = format!("{detail}; {hint}");
    }
    let file = line.map(|line| line.file.clone()).unwrap_or_default();
    let range = ByteRange { file, start, end, text: detail.clone() };
    ActionFailure { cause, detail, evidence: vec![range.evidence()] }
}

/// How long a crash handler may take to print the text that the plan expects of it, in board time.
const HANDLER: Duration = Duration::from_millis(100);

/// How long the watcher of a console may take to read on, a crash that may be excused included.
const CATCH_UP: Duration = Duration::from_secs(2);

/// Longest beginning of a crash report that belongs to a match in it: its headline and its reason.
const REPORT: u64 = 2 * MAX_LINE as u64;

async fn reasons(patterns: &RunPatterns) -> Result<&FaultReasons, ActionFailure> {
    let compiled = patterns.compiled().await;
    let compiled =
        compiled.map_err(|error| ActionFailure::new(Cause::InternalError, chain(&error)))?;
    Ok(&compiled.reasons)
}

/// Returns the text that a match stands for: from the beginning of its line, or of the headline of a
/// fault whose reason the line is. Other lines below a crash report are no part of it.
fn expected_text(
    follower: &Follower,
    file: &str,
    (patterns, matched): (&[Pattern], &Matched),
    reasons: &FaultReasons,
) -> Observed {
    let from = matched.start.saturating_sub(REPORT).max(follower.floor());
    let mut text = vec![0; (matched.end.max(matched.start) - from) as usize];
    let len = follower.read_at(from, &mut text).unwrap_or_default();
    text.truncate(len);
    let at = (matched.start - from) as usize;
    let start = from + report_start(&text, at, reasons) as u64;
    let range = |start: u64, end: u64| {
        let part = text.get((start - from) as usize..(end - from) as usize).unwrap_or_default();
        let text = String::from_utf8_lossy(part).into_owned();
        ByteRange { file: file.to_owned(), start, end, text }
    };
    let pattern = patterns.get(matched.pattern);
    let parts = pattern.and_then(|pattern| spelled_parts(pattern, &text, at));
    let spelled = match parts {
        Some(parts) => parts
            .into_iter()
            .map(|part| range(from + part.start as u64, from + part.end as u64))
            .collect(),
        None => vec![range(matched.start, matched.end)],
    };
    Observed::Expected { text: range(start, matched.end), matched: matched.start, spelled }
}

/// Returns where the text that a match at an index stands for begins.
fn report_start(text: &[u8], matched: usize, reasons: &FaultReasons) -> usize {
    let line_at = |at: usize| memchr::memrchr(b'\n', &text[..at]).map_or(0, |end| end + 1);
    let line = line_at(matched.min(text.len()));
    let above = std::iter::successors(Some(line), |&line| (line > 0).then(|| line_at(line - 1)));
    let is_reason_of = |headline: &usize| {
        let reason = reasons.find(&text[*headline..]);
        reason.is_some_and(|(end, _)| headline + end > matched)
    };
    above.skip(1).take(REASON_LINES).find(is_reason_of).unwrap_or(line)
}

/// Names the end of a transport: with the board off the target is over, else the transport is lost.
fn lost_or_over(board: &AttemptBoard) -> Cause {
    if board.facts().on() { Cause::ConsoleLost } else { Cause::ExpectMissed }
}

fn no_console(console: &ConsoleName) -> ActionFailure {
    ActionFailure::new(Cause::ConsoleLost, format!("the board has no console {console}"))
}
