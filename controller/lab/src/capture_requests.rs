//! Carries out the requests of the clients of captured consoles.

use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use jig_drivers::serial::capture_service::Caller;
use jig_model::capture_service::{
    CaptureAnswer, CaptureRequest, CaptureStatus, LoanPosition, MOST_INPUT, Returned, VERSION,
    WriterEvent, WriterOrder,
};
use jig_model::rig_file::Endpoint;
use jig_model::{ConsoleName, PlaceName, chain};
use jig_rig::capture_service::{
    CaptureError, CaptureHandle, CaptureService, IdleRounds, InputWriter, Loan,
};
use tokio::time::timeout;

/// Time limit for a client to send its request.
const REQUEST: Duration = Duration::from_secs(10);

/// Longest client name that is kept, in characters.
const MOST_BY: usize = 200;

/// State that requests act on.
#[derive(Default)]
pub struct ClientRequests {
    consoles: RwLock<Vec<ServedConsole>>,
    /// Checks of idle places.
    pub idle: IdleRounds,
}

#[derive(Clone)]
struct ServedConsole {
    place: PlaceName,
    name: ConsoleName,
    end: Endpoint,
    handle: CaptureHandle,
}

impl ClientRequests {
    /// Replaces the list of captured consoles.
    pub fn set(&self, service: &CaptureService) {
        let all = service.all().map(|(spec, handle)| ServedConsole {
            place: spec.place.clone(),
            name: spec.transport.console.clone(),
            end: spec.transport.end.clone(),
            handle: handle.clone(),
        });
        *self.consoles.write().unwrap_or_else(PoisonError::into_inner) = all.collect();
    }

    fn consoles(&self) -> Vec<ServedConsole> {
        self.consoles.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn find(&self, place: &PlaceName, name: &ConsoleName) -> Option<CaptureHandle> {
        let all = self.consoles();
        let found = all.into_iter().find(|at| at.place == *place && at.name == *name);
        found.map(|console| console.handle)
    }

    /// Serves one client until its request is done or it has disconnected.
    pub async fn serve(self: std::sync::Arc<Self>, mut caller: Caller) {
        let request = match timeout(REQUEST, caller.request()).await {
            Ok(Ok(Some(request))) => request,
            Ok(Ok(None)) | Err(_) => return,
            Ok(Err(error)) => {
                let words = jig_model::chain(&error);
                let answer = CaptureAnswer::Refused(format!(
                    "this is no request: {words}; is jig serve of another version? restart it"
                ));
                let _ = caller.answer(&answer, None).await;
                return;
            }
        };
        if request.version != VERSION {
            let words = format!("this speaks version {VERSION}; restart jig serve, or update jig");
            let _ = caller.answer(&CaptureAnswer::Refused(words), None).await;
            return;
        }
        let by: String = request.by.chars().take(MOST_BY).collect();
        let by = match caller.pid() {
            Some(pid) => format!("{by} (pid {pid})"),
            None => by,
        };
        // The client may have disconnected.
        match request.ask {
            CaptureRequest::Transport { place, console } => match self.find(&place, &console) {
                Some(kept) => lend(caller, &kept, by).await,
                None => drop(caller.answer(&CaptureAnswer::NotCaptured, None).await),
            },
            CaptureRequest::Release { tty } => self.release_port(caller, &tty, &by).await,
            CaptureRequest::InputWriter { place, console, take } => {
                match self.find(&place, &console) {
                    Some(kept) => write(caller, &kept, by, take).await,
                    None => drop(caller.answer(&CaptureAnswer::NotCaptured, None).await),
                }
            }
            CaptureRequest::Line { place, console, what } => {
                let answer = match self.find(&place, &console) {
                    Some(kept) => match kept.line(what).await {
                        Ok(()) => CaptureAnswer::Done,
                        Err(refusal) => refused(&refusal),
                    },
                    None => CaptureAnswer::NotCaptured,
                };
                drop(caller.answer(&answer, None).await);
            }
            CaptureRequest::GiveWay { place } => {
                let answer = match self.idle.give_way(&place) {
                    true => CaptureAnswer::Done,
                    false => CaptureAnswer::NotCaptured,
                };
                drop(caller.answer(&answer, None).await);
            }
            CaptureRequest::Status => {
                let status =
                    |at: ServedConsole| -> CaptureStatus { at.handle.status().borrow().clone() };
                let all = self.consoles().into_iter().map(status).collect();
                drop(caller.answer(&CaptureAnswer::Status(all), None).await);
            }
        }
    }

    /// Closes every transport to a port until the client is done.
    async fn release_port(&self, mut caller: Caller, tty: &str, by: &str) {
        // Several links in /dev/serial may name one port.
        let real = |path: &str| std::fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
        let wanted = real(tty);
        let mut held = Vec::new();
        for console in self.consoles() {
            if matches!(&console.end, Endpoint::Tty(path) if path == tty || real(path) == wanted) {
                match console.handle.release_port(by.to_owned()).await {
                    Ok(guard) => held.push(guard),
                    Err(refusal) => {
                        drop(caller.answer(&refused(&refusal), None).await);
                        return;
                    }
                }
            }
        }
        let answer = if held.is_empty() { CaptureAnswer::NotCaptured } else { CaptureAnswer::Done };
        if caller.answer(&answer, None).await.is_ok() && !held.is_empty() {
            let _ = caller.next::<Returned>().await;
        }
    }
}

fn refused(refusal: &CaptureError) -> CaptureAnswer {
    CaptureAnswer::Refused(chain(refusal))
}

async fn lend(mut caller: Caller, kept: &CaptureHandle, by: String) {
    let lent = tokio::select! {
        lent = kept.lend(by) => lent,
        // The client has disconnected, or sent a message out of order.
        _ = caller.next::<Returned>() => return,
    };
    let Loan { end, file, offset, back } = match lent {
        Ok(lent) => lent,
        Err(refusal) => return drop(caller.answer(&refused(&refusal), None).await),
    };
    let told =
        caller.answer(&CaptureAnswer::Transport(LoanPosition { file, offset }), Some(&end)).await;
    drop(end);
    // Dropping it reports that the number of bytes read is unknown.
    if told.is_ok()
        && let Ok(Some(returned)) = caller.next::<Returned>().await
    {
        let _ = back.send(returned.read);
    }
}

async fn write(mut caller: Caller, kept: &CaptureHandle, by: String, take: bool) {
    let mut writer = match kept.writer(by, take).await {
        Ok(writer) => writer,
        Err(refusal) => return drop(caller.answer(&refused(&refusal), None).await),
    };
    if caller.answer(&CaptureAnswer::Done, None).await.is_err() {
        return;
    }
    loop {
        let order = tokio::select! {
            by = writer.taken() => {
                // Without a name the service shuts down, which the end of the connection tells.
                if let Some(by) = by {
                    let _ = caller.tell(&WriterEvent::Taken(by)).await;
                }
                return;
            }
            order = caller.next::<WriterOrder>() => order,
        };
        let done = match order {
            Ok(Some(order)) => carry_out(&mut writer, &mut caller, order).await,
            Ok(None) => return,
            Err(error) => Some(WriterEvent::Failed(jig_model::chain(&error))),
        };
        let Some(event) = done else { return };
        let last = matches!(event, WriterEvent::Taken(_));
        if caller.tell(&event).await.is_err() || last {
            return;
        }
    }
}

/// Carries out an order of the writer; none if the client has disconnected or the service shuts
/// down.
async fn carry_out(
    writer: &mut InputWriter,
    caller: &mut Caller,
    order: WriterOrder,
) -> Option<WriterEvent> {
    let done = match order {
        WriterOrder::Send(bytes) if bytes.len() > MOST_INPUT => {
            return Some(WriterEvent::Failed(format!("more than {MOST_INPUT} bytes at once")));
        }
        WriterOrder::Send(bytes) => writer.send(bytes),
        WriterOrder::Line(what) => writer.control(what),
    };
    tokio::select! {
        done = done => Some(match done {
            Ok(()) => WriterEvent::Done,
            Err(refusal) if refusal.is_unsupported() => WriterEvent::Unsupported,
            Err(refusal) => WriterEvent::Failed(chain(&refusal)),
        }),
        by = writer.taken() => by.map(WriterEvent::Taken),
        // A client sends its next order after this answer, so here it has disconnected.
        _ = caller.next::<WriterOrder>() => None,
    }
}
