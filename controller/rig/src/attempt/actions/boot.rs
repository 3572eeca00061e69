//! The stages of booting.

use std::sync::Arc;
use std::time::Duration;

use jig_model::Cause;
use jig_model::pattern::Pattern;
use jig_model::profile::StageProbe;
use tokio::time::Instant;

use super::{Actions, compile};
use crate::attempt::abort_condition::abort_condition;
use crate::attempt::board_timeout::BoardTimeout;
use crate::workflow::ActionFailure;

impl Actions<'_> {
    pub(super) async fn boot(
        &mut self,
        until: Option<&str>,
        timeout: Duration,
    ) -> Result<String, ActionFailure> {
        let board_timeout = BoardTimeout::new(&self.board, timeout);
        let profile = Arc::clone(&self.profile);
        let mut reached = Vec::new();
        for stage in &profile.stages {
            let board_timeout = board_timeout.part(&self.board, stage.timeout);
            let began = Instant::now();
            match &stage.probe {
                StageProbe::Console(pattern) => {
                    let wanted = std::slice::from_ref(pattern);
                    self.expect(None, wanted, &[], board_timeout).await.map_err(|mut failed| {
                        failed.detail = format!("boot stage {}: {}", stage.name, failed.detail);
                        failed
                    })?;
                }
                StageProbe::Banner { port, pattern } => {
                    self.banner(&stage.name, port, pattern, board_timeout).await?;
                }
            }
            reached.push(format!("{} {:.1} s", stage.name, began.elapsed().as_secs_f64()));
            if until == Some(stage.name.as_str()) {
                break;
            }
        }
        Ok(reached.join(", "))
    }

    async fn banner(
        &mut self,
        stage: &str,
        port: &str,
        pattern: &Pattern,
        board_timeout: BoardTimeout,
    ) -> Result<(), ActionFailure> {
        let address = self.board.facts().forwards.get(port).cloned();
        let Some(address) = address else {
            let detail = format!("boot stage {stage}: the board forwards no port {port}");
            return Err(ActionFailure::new(Cause::PowerFailed, detail));
        };
        let set = compile(std::slice::from_ref(pattern))?;
        let board = Arc::clone(&self.board);
        let banner = tokio::select! {
            biased;
            failure = abort_condition(&board) => return Err(failure),
            banner = self.host.banner(&address) => Some(banner),
            () = board_timeout.run_out(&board) => None,
        };
        let Some(banner) = banner else {
            let detail = format!("boot stage {stage}: {address} said nothing in time");
            let failure = ActionFailure::new(Cause::ExpectMissed, detail);
            return Err(board_timeout.judged(&board, failure));
        };
        let mut scanner = crate::console::Scanner::new(&set, None);
        if scanner.scan(&banner).hits.is_empty() && scanner.finish().is_empty() {
            let words = String::from_utf8_lossy(&banner);
            let detail = format!("boot stage {stage}: {address} said {words:?}, not `{pattern}`");
            return Err(ActionFailure::new(Cause::ExpectMissed, detail));
        }
        Ok(())
    }
}
