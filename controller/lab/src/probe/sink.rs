//! The consoles of an emulated board that a command holds by itself: passed on, or thrown away.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use jig_model::ConsoleName;
use jig_model::command::{CommandEvent, EventSink};
use jig_model::event::BoardEvent;
use jig_model::protocol::{BoardSink, BoxFuture, Transport};
use tokio::sync::watch;

/// Bytes taken at once.
const STRIDE: usize = 16 << 10;

/// Takes what a board prints, so that it never waits for a reader.
///
/// A command keeps no log: what was printed while it held the board is passed on or gone.
#[derive(Clone)]
pub(super) struct ConsoleSink {
    events: Option<Arc<dyn EventSink>>,
    lost: watch::Sender<Option<String>>,
    lines: Arc<Mutex<Vec<Arc<Mutex<SinkConsole>>>>>,
}

struct SinkConsole {
    console: ConsoleName,
    transport: Box<dyn Transport>,
    ended: bool,
}

impl ConsoleSink {
    /// Passes on what the board prints; or throws it away.
    pub(super) fn new(events: Option<Arc<dyn EventSink>>) -> Self {
        Self { events, lost: watch::Sender::new(None), lines: Arc::default() }
    }

    /// Waits until the rig loses the board; returns the driver's words, which may hold any text.
    pub(super) fn lost(&self) -> impl Future<Output = String> + Send + use<> {
        let mut lost = self.lost.subscribe();
        async move {
            let words = lost.wait_for(Option::is_some).await.map(|words| words.clone());
            match words {
                Ok(words) => words.unwrap_or_default(),
                Err(_) => std::future::pending().await,
            }
        }
    }

    /// Takes the bytes that have arrived; ready when the transport has ended.
    fn pump(&self, line: &Mutex<SinkConsole>, cx: &mut Context<'_>) -> Poll<()> {
        let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buf = vec![0; STRIDE];
        loop {
            if line.ended {
                return Poll::Ready(());
            }
            match line.transport.poll_read(cx, &mut buf) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0) | Err(_)) => line.ended = true,
                Poll::Ready(Ok(len)) => {
                    if let Some(events) = &self.events {
                        let (console, bytes) = (line.console.clone(), buf[..len].to_vec());
                        events.event(CommandEvent::ConsoleBytes { console, bytes });
                    }
                }
            }
        }
    }
}

impl BoardSink for ConsoleSink {
    fn attach(&self, console: &ConsoleName, transport: Box<dyn Transport>) {
        let line = SinkConsole { console: console.clone(), transport, ended: false };
        let line = Arc::new(Mutex::new(line));
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|line| !line.lock().unwrap_or_else(PoisonError::into_inner).ended);
        lines.push(Arc::clone(&line));
        let sink = self.clone();
        // Ends with its transport, at the latest when the board is off.
        tokio::spawn(async move { poll_fn(|cx| sink.pump(&line, cx)).await });
    }

    fn drained(&self) -> BoxFuture<'_, ()> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for line in lines {
            // The task that waits for this transport keeps its waker: this only takes what is
            // there, and wakes that task so that it waits again.
            let _ = self.pump(&line, &mut Context::from_waker(Waker::noop()));
        }
        Box::pin(std::future::ready(()))
    }

    fn event(&self, event: BoardEvent) {
        match event {
            BoardEvent::Lockup { .. } => tracing::info!("the core locked up"),
            BoardEvent::Lost { cause, detail } => {
                tracing::debug!(%cause, ?detail, "the board was lost");
                self.lost.send_replace(Some(format!("{cause}: {detail}")));
            }
            BoardEvent::TargetExit { code } => tracing::info!(code, "the firmware has ended"),
            _ => {}
        }
    }
}
