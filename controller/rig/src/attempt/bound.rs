//! A place bound without a plan: for its checks and its recovery.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jig_model::profile::BoardProfile;
use jig_model::protocol::{
    BindContext, BoardSink as _, DriverError, DriverFactory, ProcessLedger, Protocols,
};
use jig_model::rig_file::Place;

use super::board::{AttemptBoard, RunEventSink};
use super::consoles::CapturedConsoles;
use super::error::AttemptError;
use super::facts::Observed;
use crate::console::Syncing;
use crate::store::RunDir;

/// Everything a binding needs.
pub struct BindRequest<'a> {
    /// Number in the names of the console logs, unique in the run.
    pub number: u32,
    /// The board.
    pub profile: &'a Arc<BoardProfile>,
    /// The place.
    pub place: &'a Arc<Place>,
    /// Binds it.
    pub factory: &'a dyn DriverFactory,
    /// Where logs go.
    pub dir: &'a RunDir,
    /// Folder for what drivers leave as evidence; it exists.
    pub evidence: &'a Path,
    /// Stamps the console logs.
    pub clock: Arc<dyn crate::console::ConsoleClock>,
    /// Takes the events.
    pub events: Arc<dyn RunEventSink>,
    /// Folder of the built image sets.
    pub image_sets: &'a Path,
    /// Accounts for child processes.
    pub ledger: Arc<dyn ProcessLedger>,
}

/// A bound place. Its consoles are captured as in an attempt.
pub struct Bound {
    /// What the place offers.
    pub protocols: Protocols,
    board: Arc<AttemptBoard>,
    consoles: CapturedConsoles,
    dir: RunDir,
    number: u32,
}

impl Bound {
    /// Binds a place. Touches nothing yet.
    ///
    /// # Errors
    /// The consoles cannot be captured, or the driver refuses.
    pub fn bind(request: BindRequest<'_>) -> Result<Self, AttemptError> {
        let BindRequest { number, profile, place, dir, clock, .. } = request;
        let consoles =
            CapturedConsoles::start(profile, dir, number, &clock).map_err(AttemptError::Log)?;
        let lines = consoles.lines(dir, number);
        let primary = consoles.primary.clone();
        let garbage = (false, place.is_emulated());
        let board = AttemptBoard::new(lines, (primary.clone(), primary), garbage, request.events);
        let board = Arc::new(board);
        let protocols = request.factory.bind(BindContext {
            profile: Arc::clone(profile),
            place: Arc::clone(place),
            sink: Arc::clone(&board) as _,
            evidence: request.evidence.to_owned(),
            images: request.image_sets.to_owned(),
            ledger: request.ledger,
        });
        let protocols = protocols.map_err(AttemptError::Bind)?;
        Ok(Self { protocols, board, consoles, dir: dir.clone(), number })
    }

    /// Switches the board off, releases the place and ends the logs.
    ///
    /// # Errors
    /// The board could not be switched off; everything else is done all the same.
    pub async fn end(mut self) -> Result<Vec<Syncing>, DriverError> {
        let off = match &mut self.protocols.power {
            Some(power) if self.board.facts().on() => {
                self.board.report(Observed::Switching(true));
                let timeout = power.off_timeout();
                tokio::time::timeout(timeout, power.off())
                    .await
                    .unwrap_or_else(|_| Err(late(timeout)))
            }
            _ => Ok(()),
        };
        if self.board.facts().on() {
            // The transports may still hold bytes.
            self.board.drained().await;
        }
        drop(self.protocols);
        let closed = self.consoles.close(&self.dir, self.number).await;
        off.map(|()| closed.syncing)
    }
}

fn late(timeout: Duration) -> DriverError {
    let message = format!("the board's power could not be taken within {timeout:?}");
    DriverError::new(jig_model::Cause::PowerFailed, message)
}
