//! One connection: calls and their answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jig_model::Fault;
use jig_model::command::Refusal;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};

use crate::protocol::{
    CallId, Hello, HelloAnswer, Incoming, LineReader, Outgoing, RequestError, RpcCall, write_line,
};

/// Messages of a stream that may wait for their reader. The connection waits when there are more.
const WAITING: usize = 64;

/// Says why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The connection is lost.
    #[error("the connection to the rig's host is lost{}", because(.0.as_deref()))]
    Lost(Option<String>),
    /// The host does not carry the call out.
    #[error(transparent)]
    Refused(#[from] RequestError),
    /// The host answers something else.
    #[error("the rig's host answers {method} with something else")]
    Stranger {
        /// The call.
        method: &'static str,
        /// Why.
        source: serde_json::Error,
    },
}

fn because(why: Option<&str>) -> String {
    why.map_or_else(String::new, |why| format!(": {why}"))
}

impl CallError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Refused(RequestError { data: Some(refusal), .. }) => refusal.fault,
            Self::Lost(_) | Self::Refused(_) | Self::Stranger { .. } => Fault::Lab,
        }
    }

    /// Returns what the host said, ready to be shown.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(error) => error.data.as_deref(),
            Self::Lost(_) | Self::Stranger { .. } => None,
        }
    }

    /// Tells whether the call may succeed on another connection.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_))
    }
}

/// A connection to a rig's host. Cheap to clone.
#[derive(Clone)]
pub struct RigClient {
    out: mpsc::Sender<Vec<u8>>,
    state: Arc<ConnectionState>,
}

#[derive(Default)]
struct ConnectionState {
    next: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    answers: HashMap<CallId, oneshot::Sender<Result<Value, RequestError>>>,
    streams: HashMap<CallId, mpsc::Sender<Value>>,
    /// Why the connection is lost, once it is.
    lost: Option<Option<String>>,
}

/// A call that streams.
pub(super) struct CallStream {
    client: RigClient,
    items: mpsc::Receiver<Value>,
    answer: oneshot::Receiver<Result<Value, RequestError>>,
}

impl RigClient {
    /// Speaks to a host over a connection, from a tokio runtime.
    pub fn over(
        from: impl AsyncRead + Unpin + Send + 'static,
        to: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Self {
        let (out, lines) = mpsc::channel(WAITING);
        let client = Self { out, state: Arc::default() };
        let (reads, writes) = (LostAtEnd(Arc::clone(&client.state)), Arc::clone(&client.state));
        tokio::spawn(async move {
            let why = read(from, &reads.0).await;
            reads.0.lose(why);
        });
        tokio::spawn(async move {
            if let Err(error) = write(lines, to).await {
                writes.lose(Some(error.to_string()));
            }
        });
        client
    }

    /// Settles the version, and learns what the host is.
    ///
    /// # Errors
    /// The host speaks another version, or does not answer.
    pub async fn hello(&self, hello: &Hello) -> Result<HelloAnswer, CallError> {
        self.call(hello).await
    }

    /// Tells whether the connection is lost.
    pub(super) fn is_lost(&self) -> bool {
        self.state.waiting().lost.is_some()
    }

    /// Calls a method and waits for the answer.
    ///
    /// # Errors
    /// The connection is lost, or the host refuses.
    pub async fn call<C: RpcCall>(&self, call: &C) -> Result<C::Answer, CallError> {
        let answer = self.begin(call, None).await?;
        self.explained(read_answer::<C>(answer.await))
    }

    /// Adds why the connection is lost, if that is known.
    fn explained<T>(&self, answer: Result<T, CallError>) -> Result<T, CallError> {
        match answer {
            Err(CallError::Lost(None)) => {
                Err(CallError::Lost(self.state.waiting().lost.clone().flatten()))
            }
            told => told,
        }
    }

    /// Calls a method that streams.
    pub(super) async fn stream<C: RpcCall>(&self, call: &C) -> Result<CallStream, CallError> {
        let (sender, items) = mpsc::channel(WAITING);
        let answer = self.begin(call, Some(sender)).await?;
        Ok(CallStream { client: self.clone(), items, answer })
    }

    async fn begin<C: RpcCall>(
        &self,
        call: &C,
        stream: Option<mpsc::Sender<Value>>,
    ) -> Result<oneshot::Receiver<Result<Value, RequestError>>, CallError> {
        let id = self.state.next.fetch_add(1, Ordering::Relaxed) + 1;
        let line = Outgoing::request(id, call)
            .map_err(|source| CallError::Stranger { method: C::METHOD, source })?;
        let (sender, answer) = oneshot::channel();
        {
            let mut waiting = self.state.waiting();
            if let Some(why) = &waiting.lost {
                return Err(CallError::Lost(why.clone()));
            }
            waiting.answers.insert(id, sender);
            if let Some(stream) = stream {
                waiting.streams.insert(id, stream);
            }
        }
        // A connection that is lost meanwhile drops the sender of the answer.
        let _ = self.out.send(line).await;
        Ok(answer)
    }
}

impl CallStream {
    /// Waits for the next message; nothing at the end of the stream. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Value> {
        self.items.recv().await
    }

    /// Waits for the answer behind the last message.
    pub(super) async fn answer<C: RpcCall>(self) -> Result<C::Answer, CallError> {
        self.client.explained(read_answer::<C>(self.answer.await))
    }
}

/// Held by what reads the connection, which is lost with it: also where its runtime ends.
struct LostAtEnd(Arc<ConnectionState>);

impl Drop for LostAtEnd {
    fn drop(&mut self) {
        self.0.lose(None);
    }
}

fn read_answer<C: RpcCall>(
    answer: Result<Result<Value, RequestError>, oneshot::error::RecvError>,
) -> Result<C::Answer, CallError> {
    let value = answer.map_err(|_| CallError::Lost(None))??;
    serde_json::from_value(value)
        .map_err(|source| CallError::Stranger { method: C::METHOD, source })
}

impl ConnectionState {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lose(&self, why: Option<String>) {
        let mut waiting = self.waiting();
        waiting.lost.get_or_insert(why);
        waiting.answers.clear();
        waiting.streams.clear();
    }
}

/// Reads until the connection ends; returns why it did, if that is known.
async fn read(from: impl AsyncRead + Unpin, state: &ConnectionState) -> Option<String> {
    let mut lines = LineReader::new(from);
    loop {
        let line = match lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => return None,
            Err(error) => return Some(error.to_string()),
        };
        match Incoming::from_line(&line) {
            Ok(Incoming::Response(id, told)) => {
                let (answer, stream) = {
                    let mut waiting = state.waiting();
                    (waiting.answers.remove(&id), waiting.streams.remove(&id))
                };
                // The stream ends before its answer is taken.
                drop(stream);
                if let Some(answer) = answer {
                    // The caller may have gone.
                    let _ = answer.send(told);
                }
            }
            Ok(Incoming::Notification(notification)) => {
                let id = notification.params.get("call").and_then(Value::as_u64);
                let stream = id.and_then(|id| state.waiting().streams.get(&id).cloned());
                if let Some(stream) = stream {
                    // Waits for a reader that is slow; one that has gone takes nothing.
                    let _ = stream.send(notification.params).await;
                }
            }
            Ok(Incoming::Request(_)) => {}
            Err(error) => {
                let start: String = String::from_utf8_lossy(&line).chars().take(200).collect();
                return Some(format!("{error}: {start:?}"));
            }
        }
    }
}

async fn write(
    mut lines: mpsc::Receiver<Vec<u8>>,
    mut to: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    while let Some(line) = lines.recv().await {
        write_line(&mut to, &line).await?;
    }
    Ok(())
}
