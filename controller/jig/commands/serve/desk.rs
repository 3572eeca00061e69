//! Doing what callers ask for.

use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use jig_drivers::serial::keeper::Caller;
use jig_model::keeper::{
    KeeperAnswer, KeeperAsk, KeptStatus, LentTransport, MOST_INPUT, PenNews, PenOrder, Returned,
    VERSION,
};
use jig_model::rig_file::Endpoint;
use jig_model::{ConsoleName, PlaceName};
use jig_rig::keeper::{IdleRounds, Keeper, KeptHandle, Lent, Pen, Refusal};
use tokio::time::timeout;

/// How long a caller may take to say what it wants.
const REQUEST: Duration = Duration::from_secs(10);

/// How much is kept of what a caller says it is.
const MOST_BY: usize = 200;

/// What callers may ask of.
pub(super) struct Desk {
    consoles: RwLock<Vec<Console>>,
    /// Looks at idle places.
    pub(super) idle: IdleRounds,
}

#[derive(Clone)]
struct Console {
    place: PlaceName,
    name: ConsoleName,
    end: Endpoint,
    handle: KeptHandle,
}

impl Desk {
    /// Begins with no console.
    pub(super) fn new(idle: IdleRounds) -> Self {
        Self { consoles: RwLock::default(), idle }
    }

    /// Takes up what is kept now.
    pub(super) fn set(&self, keeper: &Keeper) {
        let all = keeper.all().map(|(spec, handle)| Console {
            place: spec.place.clone(),
            name: spec.transport.console.clone(),
            end: spec.transport.end.clone(),
            handle: handle.clone(),
        });
        *self.consoles.write().unwrap_or_else(PoisonError::into_inner) = all.collect();
    }

    fn consoles(&self) -> Vec<Console> {
        self.consoles.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn find(&self, place: &PlaceName, name: &ConsoleName) -> Option<KeptHandle> {
        let all = self.consoles();
        let found = all.into_iter().find(|at| at.place == *place && at.name == *name);
        found.map(|console| console.handle)
    }

    /// Serves one caller until it has what it wants, or has gone.
    pub(super) async fn serve(self: std::sync::Arc<Self>, mut caller: Caller) {
        let request = match timeout(REQUEST, caller.request()).await {
            Ok(Ok(Some(request))) => request,
            Ok(Ok(None)) | Err(_) => return,
            Ok(Err(error)) => {
                let words = jig_model::chain(&error);
                let answer = KeeperAnswer::Refused(format!("this is no request: {words}"));
                let _ = caller.answer(&answer, None).await;
                return;
            }
        };
        if request.version != VERSION {
            let words = format!("this speaks version {VERSION}; restart jig serve, or update jig");
            let _ = caller.answer(&KeeperAnswer::Refused(words), None).await;
            return;
        }
        let by: String = request.by.chars().take(MOST_BY).collect();
        let by = match caller.pid() {
            Some(pid) => format!("{by} (pid {pid})"),
            None => by,
        };
        // Whoever has gone meanwhile is told nothing.
        match request.ask {
            KeeperAsk::Transport { place, console } => match self.find(&place, &console) {
                Some(kept) => lend(caller, &kept, by).await,
                None => drop(caller.answer(&KeeperAnswer::NotKept, None).await),
            },
            KeeperAsk::LetGo { tty } => self.let_go(caller, &tty, &by).await,
            KeeperAsk::Pen { place, console, take } => match self.find(&place, &console) {
                Some(kept) => write(caller, &kept, by, take).await,
                None => drop(caller.answer(&KeeperAnswer::NotKept, None).await),
            },
            KeeperAsk::GiveWay { place } => {
                let answer = match self.idle.give_way(&place) {
                    true => KeeperAnswer::Done,
                    false => KeeperAnswer::NotKept,
                };
                drop(caller.answer(&answer, None).await);
            }
            KeeperAsk::Status => {
                let status = |at: Console| -> KeptStatus { at.handle.status().borrow().clone() };
                let all = self.consoles().into_iter().map(status).collect();
                drop(caller.answer(&KeeperAnswer::Status(all), None).await);
            }
        }
    }

    /// Has every transport to a port closed until the caller is done.
    async fn let_go(&self, mut caller: Caller, tty: &str, by: &str) {
        // Links that name one device by its place and by its number are one port.
        let real = |path: &str| std::fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
        let wanted = real(tty);
        let mut held = Vec::new();
        for console in self.consoles() {
            if matches!(&console.end, Endpoint::Tty(path) if path == tty || real(path) == wanted) {
                match console.handle.let_go(by.to_owned()).await {
                    Ok(guard) => held.push(guard),
                    Err(refusal) => {
                        drop(caller.answer(&refused(&refusal), None).await);
                        return;
                    }
                }
            }
        }
        let answer = if held.is_empty() { KeeperAnswer::NotKept } else { KeeperAnswer::Done };
        if caller.answer(&answer, None).await.is_ok() && !held.is_empty() {
            let _ = caller.next::<Returned>().await;
        }
    }
}

fn refused(refusal: &Refusal) -> KeeperAnswer {
    KeeperAnswer::Refused(refusal.to_string())
}

async fn lend(mut caller: Caller, kept: &KeptHandle, by: String) {
    let lent = tokio::select! {
        lent = kept.lend(by) => lent,
        // It has gone, or says what nobody has asked it.
        _ = caller.next::<Returned>() => return,
    };
    let Lent { end, file, offset, back } = match lent {
        Ok(lent) => lent,
        Err(refusal) => return drop(caller.answer(&refused(&refusal), None).await),
    };
    let told =
        caller.answer(&KeeperAnswer::Transport(LentTransport { file, offset }), Some(&end)).await;
    drop(end);
    // Dropped, it says that nobody knows what was read.
    if told.is_ok()
        && let Ok(Some(returned)) = caller.next::<Returned>().await
    {
        let _ = back.send(returned.read);
    }
}

async fn write(mut caller: Caller, kept: &KeptHandle, by: String, take: bool) {
    let mut pen = match kept.pen(by, take).await {
        Ok(pen) => pen,
        Err(refusal) => return drop(caller.answer(&refused(&refusal), None).await),
    };
    if caller.answer(&KeeperAnswer::Done, None).await.is_err() {
        return;
    }
    loop {
        let order = tokio::select! {
            by = pen.taken() => return drop(caller.tell(&PenNews::Taken(by)).await),
            order = caller.next::<PenOrder>() => order,
        };
        let done = match order {
            Ok(Some(order)) => carry_out(&mut pen, &mut caller, order).await,
            Ok(None) => return,
            Err(error) => Some(PenNews::Failed(jig_model::chain(&error))),
        };
        let Some(event) = done else { return };
        let last = matches!(event, PenNews::Taken(_));
        if caller.tell(&event).await.is_err() || last {
            return;
        }
    }
}

/// Does what the pen is told to; nothing where the caller has gone meanwhile.
async fn carry_out(pen: &mut Pen, caller: &mut Caller, order: PenOrder) -> Option<PenNews> {
    let done = match order {
        PenOrder::Send(bytes) if bytes.len() > MOST_INPUT => {
            return Some(PenNews::Failed(format!("more than {MOST_INPUT} bytes at once")));
        }
        PenOrder::Send(bytes) => pen.send(bytes),
        PenOrder::Line(what) => pen.control(what),
    };
    tokio::select! {
        done = done => Some(match done {
            Ok(()) => PenNews::Done,
            Err(refusal) => PenNews::Failed(refusal.to_string()),
        }),
        by = pen.taken() => Some(PenNews::Taken(by)),
        // The next order comes after this one's answer, so this is its end.
        _ = caller.next::<PenOrder>() => None,
    }
}
