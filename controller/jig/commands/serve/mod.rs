//! `jig serve`: captures the consoles of the rig's places between runs.
//!
//! # Design
//! *The rig file is checked each second and on SIGHUP.* inotify would miss drop-ins in a folder
//! that does not exist yet, files that an editor replaces, and network file systems. A few `stat`
//! calls per second cost nothing that can be measured.
//!
//! *A broken rig file changes nothing*: the consoles of the last valid file stay captured, and the
//! error is reported once.

mod idle;
mod notify;
mod rig_watch;
mod worker;

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jig_drivers::serial::capture_service::Door;
use jig_lab::{Catalogue, ClientRequests, PortOpener};
use jig_model::capture_service::{CaptureState, CaptureStatus};
use jig_model::exit::CANCELLED;
use jig_model::{ConsoleName, Fault, PlaceName, exit};
use jig_rig::capture_service::{Applied, CaptureService, CaptureSpec};
use jig_rig::console::{Stamp, escape};
use jig_rig::workflow::CancelToken;
use jig_service::server::RpcListener;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use self::rig_watch::RigWatch;
use super::rpc::rig_host;
use super::runtime::runtime;
use crate::args::{Common, ServeArgs};
use crate::failure::{Failure, chain};
use crate::render::Screen;

/// Interval of the checks of the rig file.
const LOOK: Duration = Duration::from_secs(1);

/// Time limit for a proof under way to end, which includes switching its board off.
const LAST_ROUND: Duration = Duration::from_secs(30);

/// Maximum number of clients; each is a run or a console of this user.
const MOST_CALLERS: usize = 256;

/// Captures consoles until interrupted. Standard output has one line per event; with `--json` one
/// object: `{"event":"console","at","place","console","end","state",...}`,
/// `{"event":"ready","at","socket","consoles","rig"}`, `{"event":"reloaded","at","began","changed",
/// "ended"}`, `{"event":"rig_refused","at","error"}` or `{"event":"shared_port","at","error"}`.
pub(crate) fn serve(common: &Common, args: ServeArgs) -> Result<u8, Failure> {
    let catalogue = Catalogue::load(&common.lab()?)?;
    let places = catalogue.places();
    let _lock = places.try_capture_lock().map_err(|error| {
        let words = escape(chain(&error).as_bytes());
        Failure::new(error.fault(), words).help("one is enough: it takes up changes by itself")
    })?;
    // The captured consoles share it.
    let screen = Arc::new(Screen::new(common));
    let runtime = runtime()?;
    let outcome = runtime.block_on(keep(common, args, catalogue, Arc::clone(&screen)));
    runtime.shutdown_background();
    outcome
}

async fn keep(
    common: &Common,
    args: ServeArgs,
    catalogue: Catalogue,
    screen: Arc<Screen>,
) -> Result<u8, Failure> {
    let bug = |error: std::io::Error| Failure::of(Fault::Bug, &error);
    let mut stops = [
        signal(SignalKind::terminate()).map_err(bug)?,
        signal(SignalKind::interrupt()).map_err(bug)?,
    ];
    let mut hang_ups = signal(SignalKind::hangup()).map_err(bug)?;
    let places = catalogue.places();
    let socket = places.capture_socket();
    let door = Door::open(&socket).map_err(|error| Failure::of(Fault::Lab, &error))?;
    let rpc_socket = catalogue.state().join("rig.sock");
    let callers_of_rig = RpcListener::open(&rpc_socket).map_err(|error| {
        let words = format!("make the socket {}: {}", rpc_socket.display(), chain(&error));
        Failure::new(Fault::Lab, words)
    })?;
    let host = Arc::new(rig_host(common)?);
    let mut rig_calls = pin!(callers_of_rig.run(host));
    let began = Instant::now();
    let clock = Arc::new(move || Stamp {
        mono_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        wall_ns: i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX),
    });
    let tell = {
        let screen = Arc::clone(&screen);
        Arc::new(move |status: &CaptureStatus| show(&screen, status))
    };
    let mut service = CaptureService::new(places.clone(), Arc::new(PortOpener), clock, tell);
    let requests = Arc::<ClientRequests>::default();
    let mut watch = RigWatch::of(common);
    service.apply(specs(&screen, &catalogue)).await;
    requests.set(&service);
    let count = service.all().count();
    if screen.json() {
        let (at, socket) = (jiff::Timestamp::now(), socket.display().to_string());
        screen.out_json(&json!({
            "event": "ready", "at": at, "socket": socket, "consoles": count, "rig": rpc_socket,
        }));
    } else {
        let logs = escape(places.root().display().to_string().as_bytes());
        screen.out(&format!("capturing {count} consoles; their logs are in {logs}"));
        screen.say(match count {
            0 => "no place of the rig file has a transport of its own; Ctrl-C ends",
            _ => "Ctrl-C ends",
        });
    }
    notify::tell("READY=1");
    let stop = CancelToken::new();
    let mut rounds = pin!(async {
        if args.check_every != Some(Duration::ZERO) {
            idle::rounds(common, &requests, args.check_every, &stop).await;
        }
        stop.cancelled().await;
    });
    let mut callers = JoinSet::new();
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let [terminate, interrupt] = &mut stops;
    loop {
        tokio::select! {
            biased;
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hang_ups.recv() => {
                watch.forget();
                reload(common, &screen, &mut watch, &mut service, &requests).await;
                service.again().await;
            }
            _ = looks.tick() => reload(common, &screen, &mut watch, &mut service, &requests).await,
            Some(_) = callers.join_next() => {}
            () = &mut rounds => {}
            () = &mut rig_calls => {}
            caller = door.accept() => match callers.len() < MOST_CALLERS {
                true => drop(callers.spawn(Arc::clone(&requests).serve(caller))),
                false => tracing::warn!("too many callers: one was hung up on"),
            },
        }
    }
    notify::tell("STOPPING=1");
    // From here on runs open the ports themselves.
    drop(door);
    stop.cancel();
    let ended = async {
        // A proof under way ends in order; the signal has reached its worker.
        let _ = timeout(LAST_ROUND, rounds).await;
        service.close().await;
    };
    tokio::select! {
        () = ended => Ok(exit::PASS),
        _ = terminate.recv() => Ok(CANCELLED),
        _ = interrupt.recv() => Ok(CANCELLED),
    }
}

/// Applies changes of the rig file, if any.
async fn reload(
    common: &Common,
    screen: &Screen,
    watch: &mut RigWatch,
    service: &mut CaptureService,
    requests: &ClientRequests,
) {
    if !watch.has_changed(common) {
        return;
    }
    let catalogue = match Catalogue::load(&common.own_lab()) {
        Ok(catalogue) => catalogue,
        Err(error) => {
            let failure = Failure::from(error);
            if screen.json() {
                let (at, error) = (jiff::Timestamp::now(), &failure.message);
                screen.out_json(&json!({"event": "rig_refused", "at": at, "error": error}));
            } else {
                screen.insist("the rig file is refused; all stays as it was:");
                screen.failure(&failure);
            }
            return;
        }
    };
    let Applied { began, changed, ended } = service.apply(specs(screen, &catalogue)).await;
    requests.set(service);
    let names = |list: &[(PlaceName, ConsoleName)]| -> Vec<String> {
        list.iter().map(|(place, console)| format!("{place} {console}")).collect()
    };
    let (began, changed, ended) = (names(&began), names(&changed), names(&ended));
    if screen.json() {
        let at = jiff::Timestamp::now();
        screen.out_json(&json!({
            "event": "reloaded", "at": at, "began": began, "changed": changed, "ended": ended,
        }));
        return;
    }
    let told = [("new", began), ("changed", changed), ("gone", ended)];
    let told = told.iter().filter(|(_, list)| !list.is_empty());
    let told: Vec<String> = told.map(|(how, list)| format!("{how}: {}", list.join(", "))).collect();
    let told = if told.is_empty() { "no console has changed".to_owned() } else { told.join("; ") };
    screen.out(&format!("the rig file was read anew; {told}"));
}

/// Lists the consoles of the rig that have transports of their own. Of two that end at one device under
/// two names, the second is told of and left out.
fn specs(screen: &Screen, catalogue: &Catalogue) -> Vec<CaptureSpec> {
    let mut specs = Vec::new();
    let shared = catalogue.shared_ports();
    for port in &shared {
        let text = escape(port.to_string().as_bytes());
        if screen.json() {
            let at = jiff::Timestamp::now();
            screen.out_json(&json!({"event": "shared_port", "at": at, "error": text}));
        } else {
            screen.insist(&format!("{text}; the first of them is not captured"));
        }
    }
    let is_shared = |place: &PlaceName, console: &ConsoleName| {
        shared.iter().any(|port| port.console() == (place, console))
    };
    for place in &catalogue.rig.places {
        let Some(profile) = catalogue.profiles.get(&place.board) else { continue };
        for transport in &place.consoles {
            let console = profile.consoles.iter().find(|console| console.name == transport.console);
            let Some(console) = console else { continue };
            if is_shared(&place.name, &console.name) {
                continue;
            }
            specs.push(CaptureSpec {
                place: place.name.clone(),
                transport: transport.clone(),
                baud: console.baud,
                limits: catalogue.rig.capture.clone(),
            });
        }
    }
    specs
}

/// Prints the status of a console.
fn show(screen: &Screen, status: &CaptureStatus) {
    if screen.json() {
        let mut event = serde_json::to_value(status).unwrap_or_default();
        if let Some(fields) = event.as_object_mut() {
            fields.insert("event".to_owned(), "console".into());
            fields.insert("at".to_owned(), jiff::Timestamp::now().to_string().into());
        }
        return screen.out_json(&event);
    }
    let words = state_words(&status.state);
    let words = format!("{} {}: {words} ({})", status.place, status.console, status.end);
    screen.out(&escape(words.as_bytes()));
}

/// Describes the state of a console; may contain any text.
pub(super) fn state_words(state: &CaptureState) -> String {
    match state {
        CaptureState::Waiting { why } => format!("not there yet: {why}"),
        CaptureState::Captured => "captured".to_owned(),
        CaptureState::Away { why } => format!("gone for now: {why}"),
        CaptureState::Lent { by } => format!("lent to {by}"),
        CaptureState::Released { by } => format!("closed for {by}"),
        CaptureState::Gone { why } => format!("gone until the next SIGHUP: {why}"),
        CaptureState::Unwritten { why } => {
            format!("not captured, its log cannot be written: {why}")
        }
    }
}
