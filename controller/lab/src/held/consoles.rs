//! The consoles of a held board: captured like those of idle places, and served to other processes.
//!
//! # Design
//! *An emulated console is one transport for as long as the board is held.* Each launch of the
//! emulator brings a new one; what the last one still has is read first, and then the next. So a
//! user of the console stays attached while the board has no power, as at a serial port.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use jig_drivers::serial::capture_service::{CaptureServiceError, Door, status};
use jig_model::capture_service::CaptureState;
use jig_model::command::HeldBoardFacts;
use jig_model::event::BoardEvent;
use jig_model::profile::{BoardProfile, ConsoleKind};
use jig_model::protocol::{BoardSink, BoxFuture, Transport};
use jig_model::rig_file::{CaptureClient, ConsoleTransport, Endpoint, Place};
use jig_model::{ConsoleName, PlaceName};
use jig_rig::capture_service::{CaptureService, CaptureSpec, OpenTransport, OpenTransportError};
use jig_rig::console::Stamp;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::probe::BoardEnd;
use crate::{Catalogue, ClientRequests, PortOpener};

/// Most clients at a time; each is a console of this user.
const MOST_CLIENTS: usize = 256;

/// How long the consoles may take to be captured: as long as the transport of a run is waited for by
/// default.
const CONNECTED: Duration = Duration::from_secs(10);

/// The transports of a console, the newest last: those before it have an end to be read.
#[derive(Default)]
struct LaunchedConsole {
    transports: VecDeque<Box<dyn Transport>>,
    reader: Option<Waker>,
}

type SharedConsole = Arc<Mutex<LaunchedConsole>>;

fn lock(console: &SharedConsole) -> MutexGuard<'_, LaunchedConsole> {
    console.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The consoles of an emulated board, and what ended it last.
#[derive(Clone)]
pub(super) struct EmulatedConsoles {
    /// The primary console first.
    consoles: Arc<Vec<(ConsoleName, SharedConsole)>>,
    ended: BoardEnd,
    /// Where the ports are reached that the emulator forwards, since its last launch.
    ports: Arc<Mutex<BTreeMap<String, String>>>,
}

impl EmulatedConsoles {
    /// Names the consoles that the emulator of a board has.
    pub(super) fn of(profile: &BoardProfile) -> Self {
        let own = profile
            .consoles
            .iter()
            .filter(|console| matches!(console.kind, ConsoleKind::Uart | ConsoleKind::Semihosting));
        let consoles = own.map(|console| (console.name.clone(), SharedConsole::default()));
        let mut consoles: Vec<_> = consoles.collect();
        consoles.sort_by_key(|(name, _)| name != profile.primary_console());
        Self { consoles: Arc::new(consoles), ended: BoardEnd::new(None), ports: Arc::default() }
    }

    /// Returns what tells that the board has ended.
    pub(super) fn ended(&self) -> BoardEnd {
        self.ended.clone()
    }

    /// Returns what a client is told of the board.
    pub(super) fn facts(&self) -> HeldBoardFacts {
        let ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner).clone();
        HeldBoardFacts { ports, off: self.ended.borrow().clone() }
    }

    fn find(&self, console: &ConsoleName) -> Option<&SharedConsole> {
        self.consoles.iter().find_map(|(name, shared)| (name == console).then_some(shared))
    }

    /// Returns what is captured of them.
    pub(super) fn captured(
        &self,
        catalogue: &Catalogue,
        place: &Place,
        profile: &BoardProfile,
    ) -> HeldConsoles {
        let program = profile.emulation.as_ref().map_or("", |emulation| &emulation.program);
        let spec = |console: &ConsoleName| CaptureSpec {
            place: place.name.clone(),
            transport: ConsoleTransport {
                console: console.clone(),
                // What is at the other end.
                end: Endpoint::Command(vec![program.to_owned()]),
                baud: None,
                timeout: None,
                ready: None,
                capture: None,
            },
            baud: 0,
            limits: catalogue.rig.capture.clone(),
        };
        let names: Vec<_> = self.consoles.iter().map(|(name, _)| name.clone()).collect();
        let specs = names.iter().map(spec).collect();
        HeldConsoles { names, specs, opener: Arc::new(self.clone()) }
    }
}

/// The consoles of a held board, and what captures them.
pub(super) struct HeldConsoles {
    /// Those that can be attached to, the primary console first.
    pub(super) names: Vec<ConsoleName>,
    /// Those that this process captures.
    specs: Vec<CaptureSpec>,
    opener: Arc<dyn OpenTransport>,
}

impl HeldConsoles {
    /// Names the consoles of a real board. Those that `jig serve` captures are left to it.
    pub(super) async fn of_real(
        catalogue: &Catalogue,
        place: &Place,
        profile: &BoardProfile,
    ) -> Result<Self, CaptureServiceError> {
        let socket = catalogue.places().capture_socket();
        let client = CaptureClient { socket, ..catalogue.capture_client(&place.name) };
        let served = status(&client).await?.unwrap_or_default();
        let is_served = |console: &ConsoleName| {
            served.iter().any(|at| at.place == place.name && at.console == *console)
        };
        let mut transports: Vec<_> = place.consoles.iter().collect();
        transports.sort_by_key(|transport| transport.console != *profile.primary_console());
        let names = transports.iter().map(|transport| transport.console.clone()).collect();
        let own = transports.into_iter().filter(|transport| !is_served(&transport.console));
        let specs = own.filter_map(|transport| {
            let mut consoles = profile.consoles.iter();
            let console = consoles.find(|console| console.name == transport.console)?;
            Some(CaptureSpec {
                place: place.name.clone(),
                transport: transport.clone(),
                baud: console.baud,
                limits: catalogue.rig.capture.clone(),
            })
        });
        Ok(Self { names, specs: specs.collect(), opener: Arc::new(PortOpener) })
    }

    /// Tells whether this process captures any.
    pub(super) fn any(&self) -> bool {
        !self.specs.is_empty()
    }
}

impl BoardSink for EmulatedConsoles {
    fn attach(&self, console: &ConsoleName, transport: Box<dyn Transport>) {
        let Some(console) = self.find(console) else { return };
        let mut console = lock(console);
        console.transports.push_back(transport);
        if let Some(reader) = console.reader.take() {
            reader.wake();
        }
    }

    fn drained(&self) -> BoxFuture<'_, ()> {
        // What is left in a transport is read before that of the next launch.
        Box::pin(std::future::ready(()))
    }

    fn event(&self, event: BoardEvent) {
        let why = match event {
            BoardEvent::TargetExit { code } => format!("its firmware has ended with code {code}"),
            BoardEvent::Aborted { detail } | BoardEvent::GuestPanic { detail } => detail,
            BoardEvent::Lost { detail, .. } => detail,
            BoardEvent::Forwarded { port, address } => {
                let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
                ports.insert(port, address);
                return;
            }
            other => return tracing::debug!(?other, "the held board"),
        };
        self.ended.send_replace(Some(why));
    }
}

impl OpenTransport for EmulatedConsoles {
    fn open(
        &self,
        spec: &CaptureSpec,
    ) -> BoxFuture<'static, Result<Box<dyn Transport>, OpenTransportError>> {
        let console = self.find(&spec.transport.console).cloned();
        Box::pin(async {
            match console {
                Some(console) => Ok(Box::new(EmulatedTransport(console)) as _),
                None => Err(OpenTransportError("the emulator has no such console".into())),
            }
        })
    }

    fn prints_uncaptured(&self) -> bool {
        false
    }
}

/// A console of an emulated board, whatever launches of its emulator there are.
struct EmulatedTransport(SharedConsole);

impl Transport for EmulatedTransport {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut console = lock(&self.0);
        while let Some(transport) = console.transports.front_mut() {
            match transport.poll_read(cx, buf) {
                // The emulator has ended.
                Poll::Ready(Ok(0) | Err(_)) => drop(console.transports.pop_front()),
                Poll::Ready(Ok(count)) => return Poll::Ready(Ok(count)),
                Poll::Pending => break,
            }
        }
        console.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match lock(&self.0).transports.back_mut() {
            Some(transport) => transport.poll_write(cx, bytes),
            None => {
                let words = "the board has no power";
                Poll::Ready(Err(io::Error::new(io::ErrorKind::NotConnected, words)))
            }
        }
    }
}

/// Consoles that are captured and served.
pub(super) struct ServedConsoles {
    service: CaptureService,
    /// Ends the service to users when dropped.
    serving: JoinSet<()>,
}

impl ServedConsoles {
    /// Captures consoles and serves their users. The lock of the place is held.
    pub(super) async fn open(
        catalogue: &Catalogue,
        place: &PlaceName,
        HeldConsoles { specs, opener, .. }: HeldConsoles,
    ) -> Result<Self, CaptureServiceError> {
        let places = catalogue.places();
        let began = Instant::now();
        let clock = Arc::new(move || Stamp {
            mono_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
            wall_ns: i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX),
        });
        let door = Door::open(&places.held_consoles_socket(place))?;
        let mut service = CaptureService::new(places, opener, clock, Arc::new(|_| {}));
        service.apply(specs).await;
        let requests = Arc::<ClientRequests>::default();
        requests.set(&service);
        let mut serving = JoinSet::new();
        serving.spawn(serve(door, requests));
        Ok(Self { service, serving })
    }

    /// Waits until all of them are captured, or long enough to know that one is not there: it is
    /// waited for beside the commands then.
    pub(super) async fn connected(&self) {
        let all = async {
            for (_, handle) in self.service.all() {
                let mut status = handle.status();
                // An actor that has ended is waited for no longer.
                let _ = status.wait_for(|now| now.state == CaptureState::Captured).await;
            }
        };
        if timeout(CONNECTED, all).await.is_err() {
            tracing::warn!("not all consoles of the held board are there");
        }
    }

    /// Lets the users go, and writes what has been received.
    pub(super) async fn close(self) {
        let Self { service, mut serving } = self;
        serving.shutdown().await;
        service.close().await;
    }
}

/// Serves users of consoles, until dropped.
async fn serve(door: Door, requests: Arc<ClientRequests>) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = clients.join_next() => {}
            client = door.accept() => {
                if clients.len() < MOST_CLIENTS {
                    clients.spawn(Arc::clone(&requests).serve(client));
                }
            }
        }
    }
}
