//! `jig serve`: captures the consoles of the rig's places between runs.
//!
//! # Design
//! *The rig file is checked each second and on SIGHUP.* inotify would miss drop-ins in a folder
//! that does not exist yet, files that an editor replaces, and network file systems. A few `stat`
//! calls per second cost nothing that can be measured.
//!
//! *A broken rig file changes nothing*: the consoles of the last valid file stay captured, and the
//! error is reported once.
//!
//! *A stop ends no command.* Commands are processes of their own and keep their boards, leases and
//! consoles. A stop waits for them for a while, because their callers watch them by way of this
//! process, and because some transports cannot be handed to another process ([`drain`]).

mod consoles;
mod drain;
mod folders;
mod idle;
mod manager;
mod metrics;
mod rig_watch;
mod vectors;
mod worker;

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jig_drivers::serial::capture_service::Door;
use jig_lab::{Catalogue, ClientRequests, PortOpener};
use jig_model::capture_service::CaptureStatus;
use jig_model::exit::CANCELLED;
use jig_model::rig_file::ServeSettings;
use jig_model::{ConsoleName, Fault, PlaceName, exit};
use jig_rig::capture_service::{Applied, CaptureService};
use jig_rig::console::{Stamp, escape};
use jig_rig::workflow::CancelToken;
use jig_service::server::RpcListener;
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use self::consoles::{show, specs, summary};
use self::drain::{Drain, Drained};
use self::manager::ServiceManager;
use self::metrics::MetricsServer;
pub(crate) use self::rig_watch::RigWatch;
use self::worker::WorkerOrigin;
use super::rpc::rig_host;
use super::runtime::runtime;
use crate::args::{Common, ServeArgs, socket_access};
use crate::failure::{Failure, chain};
use crate::render::Screen;

/// Interval of the checks of the rig file.
const LOOK: Duration = Duration::from_secs(1);

/// How long a stop waits for commands under way: the unit of the package allows a minute more.
const DRAIN: Duration = Duration::from_secs(120);

/// Time limit for a proof under way to end, which includes switching its board off.
const LAST_ROUND: Duration = Duration::from_secs(30);

/// How long a stop may take at most behind the wait for commands: callers fetch the end of theirs, and a proof
/// ends.
const BEHIND_DRAIN: Duration = Duration::from_secs(70);

/// Maximum number of clients; each is a run or a console of this user.
const MOST_CALLERS: usize = 256;

/// Captures consoles until interrupted. Standard output has one line per event; with `--json` one
/// object: `{"event":"console","at","place","console","end","state",...}`,
/// `{"event":"ready","at","socket","consoles","rig"}`, `{"event":"reloaded","at","began","changed",
/// "ended"}`, `{"event":"rig_refused","at","error"}`, `{"event":"shared_port","at","error"}`,
/// `{"event":"draining","at","commands","consoles"}` or `{"event":"drained","at","left"}`.
pub(crate) fn serve(common: &Common, args: ServeArgs) -> Result<u8, Failure> {
    let common = &folders::of_service(common);
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
    let settings = args.over(&catalogue.rig.serve);
    let access = socket_access(&settings)?;
    let bug = |error: std::io::Error| Failure::of(Fault::Bug, &error);
    let mut stops = StopSignals::listen().map_err(bug)?;
    let mut hang_ups = signal(SignalKind::hangup()).map_err(bug)?;
    let places = catalogue.places();
    let socket = places.capture_socket();
    let door = Door::open(&socket).map_err(|error| Failure::of(Fault::Lab, &error))?;
    let rpc_socket = folders::rig_socket(&catalogue);
    let callers_of_rig = RpcListener::open(&rpc_socket, access).map_err(|error| {
        let words = format!("make the socket {}: {}", rpc_socket.display(), chain(&error));
        no_socket(words, &error, &settings)
    })?;
    let metrics = settings.metrics.as_ref().map(|address| {
        MetricsServer::open(address, access, common.own_lab()).map_err(|error| {
            let words = format!("metrics cannot be offered at {address}: {error}");
            no_socket(words, &error, &settings)
        })
    });
    let metrics = metrics.transpose()?;
    let mut metrics = pin!(async {
        match &metrics {
            Some(metrics) => metrics.run().await,
            None => std::future::pending().await,
        }
    });
    let host = Arc::new(rig_host(common)?);
    let (jobs, watchers) = (host.jobs.clone(), host.watchers.clone());
    let stop = CancelToken::new();
    let mut vectors = pin!(async {
        vectors::embed_new(&host, &stop).await;
        std::future::pending::<()>().await;
    });
    let mut rig_calls = pin!(callers_of_rig.run(Arc::clone(&host)));
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
        if count == 0 {
            screen.say("no place of the rig file has a transport of its own");
        }
        if screen.is_watched() {
            screen.say("Ctrl-C ends");
        }
    }
    let mut manager = ServiceManager::of_environment();
    manager.ready();
    manager.status(&summary(&service));
    let mut rounds = pin!(async {
        if settings.check_every != Some(Duration::ZERO) {
            let origin = WorkerOrigin { common, program: &host.worker.program };
            idle::rounds(origin, &requests, settings.check_every, &stop).await;
        }
        stop.cancelled().await;
    });
    let mut callers = JoinSet::new();
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut refused = None;
    loop {
        tokio::select! {
            biased;
            () = stops.next() => break,
            () = manager.beat() => {}
            _ = hang_ups.recv() => {
                watch.forget();
                manager.reloading();
                refused = reload(common, &screen, &mut watch, &mut service, &requests).await;
                service.again().await;
                manager.status(&words(&service, refused.as_deref()));
                manager.ready();
            }
            _ = looks.tick() => {
                if watch.has_changed(common) {
                    refused = reload(common, &screen, &mut watch, &mut service, &requests).await;
                }
                manager.status(&words(&service, refused.as_deref()));
            }
            Some(_) = callers.join_next() => {}
            () = &mut rounds => {}
            () = &mut vectors => {}
            () = &mut rig_calls => {}
            () = &mut metrics => {}
            caller = door.accept() => match callers.len() < MOST_CALLERS {
                true => drop(callers.spawn(Arc::clone(&requests).serve(caller))),
                false => tracing::warn!("too many callers: one was hung up on"),
            },
        }
    }
    let limit = settings.drain.unwrap_or(DRAIN);
    manager.stopping(limit.saturating_add(BEHIND_DRAIN));
    stop.cancel();
    // Callers that are connected see the end of their commands; others find no socket.
    let _ = std::fs::remove_file(&rpc_socket);
    let mut drain = Drain::begin(&jobs, watchers, &service, limit);
    drain.tell(&screen);
    loop {
        manager.status(&drain.words());
        tokio::select! {
            biased;
            () = stops.next() => return Ok(CANCELLED),
            () = manager.beat() => {}
            drained = drain.look(&service) => match drained {
                Drained::Over => break,
                Drained::Goes => {}
            },
            Some(_) = callers.join_next() => {}
            () = &mut rig_calls => {}
            () = &mut metrics => {}
            caller = door.accept() => drop(callers.spawn(Arc::clone(&requests).serve(caller))),
        }
    }
    drain.tell_end(&screen);
    // From here on runs open the ports themselves.
    drop(door);
    let mut ended = pin!(async {
        // A proof under way ends in order; the signal has reached its worker.
        let _ = timeout(LAST_ROUND, rounds).await;
        service.close().await;
    });
    loop {
        tokio::select! {
            () = &mut ended => return Ok(exit::PASS),
            () = stops.next() => return Ok(CANCELLED),
            () = manager.beat() => {}
        }
    }
}

/// Tells that a socket cannot be made. A user gives files to own groups only, so a group of which the user is no
/// member is the likely reason where one is set.
fn no_socket(words: String, error: &std::io::Error, settings: &ServeSettings) -> Failure {
    let failure = Failure::new(Fault::Lab, words);
    match &settings.socket_group {
        Some(group) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            let group = escape(group.as_bytes());
            failure.help(format!(
                "this process has to be in group {group} to give the socket to it; under systemd: systemctl \
                 edit jig, and below [Service]: SupplementaryGroups={group}"
            ))
        }
        Some(_) | None => failure,
    }
}

/// The signals that ask this process to end.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn listen() -> std::io::Result<Self> {
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        Ok(Self { terminate: signal(terminate)?, interrupt: signal(interrupt)? })
    }

    /// Waits for one of them. Cancel-safe.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Describes the service for its manager, in one line.
fn words(service: &CaptureService, refused: Option<&str>) -> String {
    match refused {
        Some(why) => format!("rig file refused, the earlier one holds: {why}"),
        None => summary(service),
    }
}

/// Reads the rig file anew and applies its changes; returns why it is refused, if it is.
async fn reload(
    common: &Common,
    screen: &Screen,
    watch: &mut RigWatch,
    service: &mut CaptureService,
    requests: &ClientRequests,
) -> Option<String> {
    // What is read now is what later checks compare with.
    watch.has_changed(common);
    let catalogue = match Catalogue::load(&common.own_lab()) {
        Ok(catalogue) => catalogue,
        Err(error) => {
            let failure = Failure::from(error);
            if screen.json() {
                let (at, error) = (jiff::Timestamp::now(), &failure.message);
                screen.out_json(&json!({"event": "rig_refused", "at": at, "error": error}));
            } else {
                screen.complain("the rig file is refused; all stays as it was:");
                screen.failure(&failure);
            }
            return Some(failure.message);
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
        return None;
    }
    let told = [("new", began), ("changed", changed), ("gone", ended)];
    let told = told.iter().filter(|(_, list)| !list.is_empty());
    let told: Vec<String> = told.map(|(how, list)| format!("{how}: {}", list.join(", "))).collect();
    let told = if told.is_empty() { "no console has changed".to_owned() } else { told.join("; ") };
    screen.out(&format!("the rig file was read anew; {told}"));
    None
}
