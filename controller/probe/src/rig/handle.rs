//! What others hold of a board: the protocols, each an order to its owner.

use std::sync::Arc;

use jig_model::image::{DeployReport, Image};
use jig_model::post_mortem::{FaultSighting, PostMortem};
use jig_model::protocol::{
    BoxFuture, CheckReport, DebugPort, DriverError, Flasher, HealthCheck, PostMortemRequest, Power,
    PowerSense, PowerState, Reset,
};
use jig_model::{Cause, chain};
use tokio::sync::{mpsc, oneshot};

use super::open_fault::OpenFault;

const CHECK: &str = "probe-answers";

/// What the owner is asked for.
pub(super) enum BoardOrder {
    Quiesce(OrderReply<()>),
    On(OrderReply<()>),
    Off(OrderReply<()>),
    Status(OrderReply<PowerState>),
    Reset(OrderReply<()>),
    Deploy(Image, OrderReply<DeployReport>),
    /// Another process has put an image on the board.
    Deployed(Image, OrderReply<()>),
    /// The SHA-256 of what the board holds where the deployed image belongs; nothing if it cannot be
    /// read.
    ReadBack(OrderReply<Option<String>>),
    Check(OrderReply<String>),
    Explain(PostMortemRequest, OrderReply<Option<PostMortem>>),
    /// The fault in which the core is, read while it runs.
    CurrentFault(OrderReply<Option<FaultSighting>>),
}

pub(super) type OrderReply<T> = oneshot::Sender<Result<T, DriverError>>;

/// Speaks for the board.
#[derive(Clone)]
pub(super) struct BoardHandle {
    pub(super) orders: mpsc::Sender<BoardOrder>,
    /// The cause a run ends with when the board does not answer.
    pub(super) silent: Cause,
    pub(super) open_fault: Arc<OpenFault>,
}

impl BoardHandle {
    pub(super) async fn ask<T>(
        &self,
        order: impl FnOnce(OrderReply<T>) -> BoardOrder,
    ) -> Result<T, DriverError> {
        let gone = || DriverError::new(Cause::InternalError, "the board's owner has ended");
        let (reply, answer) = oneshot::channel();
        self.orders.send(order(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

impl Power for BoardHandle {
    fn quiesce(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(self.ask(BoardOrder::Quiesce))
    }
    fn on(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(self.ask(BoardOrder::On))
    }
    fn off(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(self.ask(BoardOrder::Off))
    }
    fn status(&mut self) -> BoxFuture<'_, Result<PowerState, DriverError>> {
        Box::pin(self.ask(BoardOrder::Status))
    }
}

impl Reset for BoardHandle {
    fn reset(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(self.ask(BoardOrder::Reset))
    }
}

impl Flasher for BoardHandle {
    fn deploy<'a>(
        &'a mut self,
        image: &'a Image,
    ) -> BoxFuture<'a, Result<DeployReport, DriverError>> {
        let image = image.clone();
        Box::pin(self.ask(|reply| BoardOrder::Deploy(image, reply)))
    }
}

impl DebugPort for BoardHandle {
    fn post_mortem<'a>(
        &'a mut self,
        request: &'a PostMortemRequest,
    ) -> BoxFuture<'a, Result<Option<PostMortem>, DriverError>> {
        let request = request.clone();
        Box::pin(self.ask(|reply| BoardOrder::Explain(request, reply)))
    }

    fn current_fault(&mut self) -> BoxFuture<'_, Result<Option<FaultSighting>, DriverError>> {
        Box::pin(self.ask(BoardOrder::CurrentFault))
    }

    /// Not asked of the owner: it may wait for the probe.
    fn reset_in_fault(&mut self) -> Option<String> {
        self.open_fault.take()
    }
}

impl PowerSense for BoardHandle {
    fn name(&self) -> String {
        "the debug port".to_owned()
    }

    /// A chip that answers has power. One that does not answer a probe that does may have none;
    /// a probe that is not there tells nothing: it may hang on the same outlet.
    fn look(&mut self) -> BoxFuture<'_, Result<Option<PowerState>, DriverError>> {
        Box::pin(async {
            match self.ask(BoardOrder::Check).await {
                Ok(_) => Ok(Some(PowerState::On)),
                Err(error) if error.cause == Cause::TargetUnresponsive => Ok(Some(PowerState::Off)),
                Err(error) => {
                    tracing::debug!(error = chain(&error), "the debug port cannot tell");
                    Ok(None)
                }
            }
        })
    }

    fn is_sure_of(&self, seen: PowerState) -> bool {
        seen == PowerState::On
    }
}

impl HealthCheck for BoardHandle {
    fn name(&self) -> String {
        CHECK.to_owned()
    }

    fn cause(&self) -> Cause {
        self.silent
    }

    fn check(&mut self) -> BoxFuture<'_, CheckReport> {
        Box::pin(async {
            let (ok, detail) = match self.ask(BoardOrder::Check).await {
                Ok(detail) => (true, detail),
                Err(error) => (false, chain(&error)),
            };
            CheckReport { check: CHECK.to_owned(), ok, detail }
        })
    }
}
