//! Reports: waiting for one, and watching what comes right behind it.

use std::sync::Arc;
use std::time::Duration;

use jig_model::protocol::PowerState;
use jig_model::{Cause, ConsoleName};
use tokio::time::{Instant, sleep, timeout};

use super::Actions;
use crate::attempt::board::REASON;
use crate::attempt::trouble::{exit, trouble};
use crate::attempt::watcher::Progress;
use crate::judge::Passage;
use crate::workflow::ActionFailure;

/// Bytes of the last output that a failure quotes: about three lines.
const QUOTE: u64 = 200;

/// What ended a wait for results.
enum ReportEnd {
    Marker,
    Exit(i32),
    Overdue,
}

impl Actions<'_> {
    pub(super) async fn wait_for_results(
        &mut self,
        within: Duration,
    ) -> Result<String, ActionFailure> {
        let board = Arc::clone(&self.board);
        let boots = board.boots();
        let deadline = Instant::now() + within;
        let mut progress = self.progress.clone();
        // A report that an earlier wait of this boot has heard is not what this one is for.
        let old = if self.heard.0 == boots { self.heard.1 } else { 0 };
        // An error means that the watcher broke off; the attempt fails by that.
        let ended = async {
            drop(progress.wait_for(|p| p.boots >= boots && p.ended && p.reports > old).await);
        };
        let end = tokio::select! {
            biased;
            failure = trouble(&board) => return Err(failure),
            () = ended => ReportEnd::Marker,
            code = exit(&board) => ReportEnd::Exit(code),
            () = tokio::time::sleep_until(deadline) => ReportEnd::Overdue,
        };
        match end {
            ReportEnd::Overdue => return Err(self.hang(within)),
            ReportEnd::Exit(code) => {
                self.looked_at_everything().await;
                self.hear();
                return Ok(format!("the target ended with code {code}"));
            }
            ReportEnd::Marker => {}
        }
        self.settle().await?;
        self.hear();
        Ok("end marker seen".to_owned())
    }

    /// Remembers that the plan was served a report in this boot: it counts.
    fn hear(&mut self) {
        let Progress { boots, reports, .. } = *self.progress.borrow();
        self.heard = (boots, reports);
        self.board.facts().heard.push(boots);
    }

    /// Watches the target a little longer: a fault often comes right behind the last "OK".
    pub(in crate::attempt) async fn settle(&mut self) -> Result<(), ActionFailure> {
        let board = Arc::clone(&self.board);
        let off = board.facts().power != Some(PowerState::On);
        if std::mem::replace(&mut self.settled, true) || off {
            return Ok(());
        }
        tokio::select! {
            biased;
            failure = trouble(&board) => Err(failure),
            _ = exit(&board) => {
                self.looked_at_everything().await;
                Ok(())
            }
            () = sleep(self.profile.limits.settle) => Ok(()),
        }
    }

    /// Waits until the watcher has read all that the ended target printed.
    async fn looked_at_everything(&mut self) {
        let board = Arc::clone(&self.board);
        let Some(line) = board.lines.get(&board.results) else { return };
        let len = line.handle.state().borrow().len;
        // An error means that the watcher has ended, which it says itself.
        let _ = timeout(REASON, self.progress.wait_for(|p| p.processed >= len)).await;
    }

    fn hang(&mut self, within: Duration) -> ActionFailure {
        let console = self.board.results.clone();
        let reporting = self.progress.borrow().reporting;
        let what = if reporting { "the report did not end" } else { "no report was seen" };
        let (file, len) = match self.board.lines.get(&console) {
            Some(line) => (line.file.clone(), line.handle.state().borrow().len),
            None => (String::new(), 0),
        };
        let (start, last) = self.last_bytes(&console, len);
        let detail = format!("{what} within {within:?}; the last output is {last:?}");
        let passage = Passage { file, start, end: len, text: "last output".to_owned() };
        ActionFailure { cause: Cause::Hang, detail, evidence: vec![passage.evidence()] }
    }

    fn last_bytes(&mut self, console: &ConsoleName, len: u64) -> (u64, String) {
        let start = len.saturating_sub(QUOTE);
        let Ok(follower) = self.cursor(console) else { return (start, String::new()) };
        let start = start.max(follower.floor());
        let mut bytes = vec![0; len.saturating_sub(start) as usize];
        let read = follower.read_at(start, &mut bytes).unwrap_or_default();
        (start, String::from_utf8_lossy(&bytes[..read]).into_owned())
    }
}
