//! Resets of boards that no debug probe resets: by a line, an outlet, the power, a program.
//!
//! Owns what all of them share ([`with_reset`]): the board is held, what it has printed is
//! captured, the rig is told, and the board is let go. Refuses to know what holds it.
//!
//! # Design
//! *A place without power control boots by its reset.* Its power is then: off is held in reset,
//! and on is let go. What cannot hold a board, a program, leaves it running unwatched at "off".

mod captured_line;
mod command;

use std::sync::Arc;
use std::time::Duration;

use jig_model::event::BoardEvent;
use jig_model::protocol::{
    BindContext, BoxFuture, DriverError, Power, PowerState, Protocols, Reset, SharedSink,
};
use tokio::sync::Mutex;
use tokio::time::sleep;

pub use captured_line::reset_by_captured_line;
pub use command::CommandResetFactory;

/// How long a board is held in reset: chips want microseconds, and the capacitor at a reset pin
/// or the transistors of an auto-reset circuit want some milliseconds.
const PULSE: Duration = Duration::from_millis(100);

/// Something that resets a board.
pub(crate) trait ResetMeans: Send {
    /// Holds the board in reset; does nothing where that cannot be done.
    fn hold(&mut self) -> BoxFuture<'_, Result<(), DriverError>>;
    /// Lets the board boot.
    fn release(&mut self) -> BoxFuture<'_, Result<(), DriverError>>;
}

/// Adds a reset, and a power made of it where the place has none.
pub(crate) fn with_reset(
    means: Box<dyn ResetMeans>,
    context: &BindContext,
    mut built: Protocols,
) -> Protocols {
    let held = BoardInReset { means, sink: Arc::clone(&context.sink), held: false, on: false };
    let reset = BoardReset(Arc::new(Mutex::new(held)));
    if built.power.is_none() {
        built.power = Some(Box::new(reset.clone()));
    }
    built.reset = Some(Box::new(reset));
    built
}

struct BoardInReset {
    means: Box<dyn ResetMeans>,
    sink: SharedSink,
    held: bool,
    /// The board was let go here, and not held since.
    on: bool,
}

impl BoardInReset {
    async fn hold(&mut self) -> Result<(), DriverError> {
        self.on = false;
        if !self.held {
            self.means.hold().await?;
            self.held = true;
            sleep(PULSE).await;
        }
        Ok(())
    }

    /// Tells the rig of the boot and begins it.
    async fn boot(&mut self, event: BoardEvent) -> Result<(), DriverError> {
        self.hold().await?;
        self.sink.drained().await;
        self.sink.event(event);
        self.held = false;
        self.means.release().await?;
        self.on = true;
        Ok(())
    }
}

#[derive(Clone)]
struct BoardReset(Arc<Mutex<BoardInReset>>);

impl Reset for BoardReset {
    fn reset(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        let reason = "asked for".to_owned();
        Box::pin(async {
            self.0.lock().await.boot(BoardEvent::Reset { by_target: false, reason }).await
        })
    }
}

impl Power for BoardReset {
    fn quiesce(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async { self.0.lock().await.hold().await })
    }

    fn on(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            let mut held = self.0.lock().await;
            match held.on {
                true => Ok(()),
                false => held.boot(BoardEvent::Power { state: PowerState::On }).await,
            }
        })
    }

    fn off(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            let mut held = self.0.lock().await;
            held.hold().await?;
            // What holds it may be let go of now, such as a port that is closed.
            held.held = false;
            held.sink.event(BoardEvent::Power { state: PowerState::Off });
            Ok(())
        })
    }

    fn status(&mut self) -> BoxFuture<'_, Result<PowerState, DriverError>> {
        Box::pin(async {
            let on = self.0.lock().await.on;
            Ok(if on { PowerState::On } else { PowerState::Off })
        })
    }
}

#[cfg(test)]
mod tests {
    use jig_model::ConsoleName;
    use jig_model::protocol::{BoardSink, Transport};

    use super::*;

    /// Notes what is done, in order.
    #[derive(Clone, Default)]
    struct Notes(Arc<std::sync::Mutex<Vec<String>>>);

    impl Notes {
        fn add(&self, what: impl Into<String>) {
            self.0.lock().unwrap().push(what.into());
        }
    }

    impl ResetMeans for Notes {
        fn hold(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
            self.add("hold");
            Box::pin(std::future::ready(Ok(())))
        }
        fn release(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
            self.add("release");
            Box::pin(std::future::ready(Ok(())))
        }
    }

    impl BoardSink for Notes {
        fn attach(&self, _: &ConsoleName, _: Box<dyn Transport>) {}
        fn drained(&self) -> BoxFuture<'_, ()> {
            self.add("drained");
            Box::pin(std::future::ready(()))
        }
        fn event(&self, event: BoardEvent) {
            self.add(match event {
                BoardEvent::Power { state } => format!("{state:?}"),
                BoardEvent::Reset { by_target, .. } => format!("reset by_target={by_target}"),
                other => format!("{other:?}"),
            });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_boot_is_told_while_the_board_is_held() {
        let notes = Notes::default();
        let (means, sink) = (Box::new(notes.clone()), Arc::new(notes.clone()));
        let held = BoardInReset { means, sink, held: false, on: false };
        let mut board = BoardReset(Arc::new(Mutex::new(held)));
        board.quiesce().await.unwrap();
        board.on().await.unwrap();
        // Both are idempotent.
        board.on().await.unwrap();
        assert_eq!(board.status().await.unwrap(), PowerState::On);
        board.reset().await.unwrap();
        board.off().await.unwrap();
        // It is held anew: the port whose line did that may have been closed.
        board.on().await.unwrap();
        let done = notes.0.lock().unwrap().join(" ");
        let boot = "hold drained On release";
        let reset = "hold drained reset by_target=false release";
        assert_eq!(done, format!("{boot} {reset} hold Off {boot}"));
    }
}
