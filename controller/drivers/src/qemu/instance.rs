//! One launched emulator, from the fork to the reaping.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jig_model::Cause;
use jig_model::event::BoardEvent;
use jig_model::image::Image;
use jig_model::profile::{ConsoleKind, Emulation};
use jig_model::protocol::{BindContext, DriverError};
use jig_model::rig_file::EmulatorPart;
use tokio::net::UnixStream;
use tokio::sync::Notify;

use super::command_line::{FarEnds, PlaceholderValues, arguments, own_consoles, port_names};
use super::console_pipe::ConsoleEnds;
use super::control_lock::ControlLock;
use super::debug::{ChannelError, ChannelPairs, DebugChannels, NearEnds};
use super::exceptions::{CollectedCode, ExceptionLog};
use super::guest_stderr::{GuestStderr, GuestTextStart};
use super::identity::check_machine;
use super::monitor::{Monitor, MonitorError};
use crate::process::{Ending, ManagedProcess, SpawnRequest};

/// How long an emulator may take to greet. It needs 0.1 s on a calm machine; a loaded CI
/// host has been seen to take a hundred times as long, and waiting costs nothing.
pub(super) const GREETING: Duration = Duration::from_secs(20);

/// How long the monitor may take to answer. It needs under 1 ms; beyond this the emulator
/// is frozen or stopped, not slow.
pub(super) const ANSWER: Duration = Duration::from_secs(5);

/// Most of standard error that is looked at: a lock-up's register dump is 1.5 KiB.
const STDERR_TAIL: u64 = 16 * 1024;

/// A launched emulator. Dropping it kills it.
pub(super) struct Instance {
    pub(super) process: ManagedProcess,
    pub(super) monitor: Monitor,
    /// Rung when console input needs a poke to be noticed.
    pub(super) bell: Arc<Notify>,
    /// Near ends of the debug channels, until a caller takes them.
    pub(super) debug: Option<NearEnds>,
    /// What it reports of its core's exceptions, where it has debug channels.
    pub(super) exceptions: Option<ExceptionLog>,
    /// Held by who stops the machine or lets it run: its owner, or a watcher.
    pub(super) control: ControlLock,
    stderr: File,
    /// Length of standard error when the machine was let go: what came before is start-up talk.
    quiet_from: u64,
}

impl Instance {
    /// Takes the debug channels, unless they were taken.
    pub(super) fn channels(&mut self) -> Option<Result<DebugChannels, ChannelError>> {
        let ends = self.debug.take()?;
        Some(ends.into_channels(self.process.pid()))
    }

    /// Starts an emulator, halted, with its transports handed to their captures.
    ///
    /// # Errors
    /// It cannot be started, refuses its arguments, or does not greet.
    pub(super) async fn launch(
        context: &BindContext,
        (emulation, part): (&Emulation, &EmulatorPart),
        image: Option<&Image>,
        serial: u32,
        debug: Option<ChannelPairs>,
        code: Option<CollectedCode>,
    ) -> Result<Self, DriverError> {
        let failed = |what: &'static str| {
            move |error: io::Error| {
                DriverError::new(Cause::EmulatorRefused, what).with_source(error)
            }
        };
        let ports = free_ports(emulation).map_err(failed("find a free port for the emulator"))?;
        let bell = Arc::new(Notify::new());
        let (near, monitor_far) = pair().map_err(failed("make the monitor's sockets"))?;
        let program = &emulation.program;
        let mut ends = Vec::new();
        let mut stdout = None;
        let mut inherit = vec![monitor_far];
        let mut debug_far = None;
        let debug = debug.map(|pairs| {
            let (near, far) = pairs.split();
            debug_far = Some([far[0].as_raw_fd(), far[1].as_raw_fd(), far[2].as_raw_fd()]);
            inherit.extend(far);
            near
        });
        let exceptions = debug.is_some().then(|| ExceptionLog::make(code)).transpose();
        let exceptions = exceptions.map_err(failed("make the pipe for the core's exceptions"))?;
        let (exceptions, log_far) = exceptions.unzip();
        let (log_far, copies_far) = log_far.map(|far| (far.log, far.copies)).unzip();
        let copies_far = copies_far.flatten();
        let log_fd = log_far.as_ref().map(AsRawFd::as_raw_fd);
        let copies_fd = copies_far.as_ref().map(AsRawFd::as_raw_fd).or(log_fd);
        inherit.extend(log_far.into_iter().chain(copies_far));
        let stderr_path = context.evidence.join(format!("emulator-{serial}.stderr"));
        let stderr = open_log(&stderr_path).map_err(|error| {
            DriverError::new(Cause::StorageFailed, format!("write {}", stderr_path.display()))
                .with_source(error)
        })?;
        let guest_text = GuestTextStart::default();
        for console in own_consoles(&context.profile) {
            let bell = emulation.quirks.poke_after_input.then(|| Arc::clone(&bell));
            // One console gets what a guest writes to the files of its host.
            let first = console.kind == ConsoleKind::Semihosting && stdout.is_none();
            let open = || GuestStderr::open(&stderr_path, Arc::clone(&guest_text), program);
            let guest_stderr =
                first.then(open).transpose().map_err(failed("read the emulator's log"))?;
            let (end, transport) =
                ConsoleEnds::make(&context.evidence, &console.name, bell, guest_stderr)
                    .map_err(failed("make a console's pipes"))?;
            context.sink.attach(&console.name, transport);
            // What a target writes to the host's terminal as a file, as newlib's `printf` does, goes
            // to the emulator's standard output, and other semihosting output to the console.
            if console.kind == ConsoleKind::Semihosting {
                stdout = stdout.or_else(|| end.output());
            }
            ends.push(end);
        }
        let far = FarEnds {
            monitor: inherit[0].as_raw_fd(),
            debug: debug_far,
            log: log_fd,
            copies: copies_fd,
            consoles: ends.iter().map(ConsoleEnds::path).collect(),
        };
        let image_set = image_set_dir(context, emulation)?;
        let places = PlaceholderValues { image, image_set: &image_set, ports: &ports };
        let args = arguments(&context.profile, emulation, part, &far, &places);
        let request = SpawnRequest {
            program: emulation.program.clone().into(),
            args,
            cwd: Some(context.evidence.clone()),
            stdin: None,
            stdout,
            stderr: Some(stderr.try_clone().map_err(failed("share the emulator's log"))?),
            inherit,
            exits_for_target: true,
            env: None,
            ends_itself: false,
            what: emulation.program.clone(),
        };
        tracing::debug!(args = ?request.args, "launching the emulator");
        let process =
            ManagedProcess::spawn(request, Arc::clone(&context.ledger)).await.map_err(|error| {
                let cause = error.cause(Cause::EmulatorMissing, Cause::EmulatorRefused);
                DriverError::of(cause, error)
            })?;
        let mut launched = LaunchedProcess { process, stderr };
        let mut monitor = match Monitor::greet(near, GREETING).await {
            Ok(monitor) => monitor,
            Err(error) => return Err(launched.explain(error).await),
        };
        if let Err(error) = check_machine(&mut monitor, emulation, ANSWER).await {
            launched.process.kill().await;
            return Err(error);
        }
        // The emulator has opened its ends before it greets.
        drop(ends);
        for (port, number) in ports {
            let address = format!("127.0.0.1:{number}");
            context.sink.event(BoardEvent::Forwarded { port, address });
        }
        let LaunchedProcess { process, stderr } = launched;
        let quiet_from = stderr.metadata().map_or(0, |m| m.len());
        // Set once: the machine has not run yet.
        let _ = guest_text.set(quiet_from);
        let control = ControlLock::default();
        Ok(Self { process, monitor, bell, debug, exceptions, control, stderr, quiet_from })
    }

    /// Lets the machine run.
    pub(super) async fn release(&mut self) -> Result<(), MonitorError> {
        self.monitor.call("cont", ANSWER).await.map(drop)
    }

    /// Returns what the emulator said on standard error since it was launched.
    pub(super) fn said(&mut self) -> String {
        tail(&mut self.stderr, self.quiet_from)
    }
}

/// A process that has not greeted yet.
struct LaunchedProcess {
    process: ManagedProcess,
    stderr: File,
}

impl LaunchedProcess {
    /// Says why there was no greeting.
    async fn explain(&mut self, error: MonitorError) -> DriverError {
        if let MonitorError::TimedOut { .. } = error {
            self.process.kill().await;
            return DriverError::new(Cause::EmulatorStuck, "start the emulator").with_source(error);
        }
        let ending = match tokio::time::timeout(ANSWER, self.process.ended()).await {
            Ok(ending) => ending,
            Err(_) => self.process.kill().await,
        };
        let said = tail(&mut self.stderr, 0);
        let words = match said.trim() {
            "" => "it said nothing".to_owned(),
            said => format!("it said: {said}"),
        };
        match ending {
            Ending::Exited(code) => DriverError::new(
                Cause::EmulatorRefused,
                format!("the emulator refused to start (code {code}); {words}"),
            ),
            Ending::Signalled(signal) => DriverError::new(
                Cause::EmulatorKilled,
                format!("the emulator was ended by {signal} while it started; {words}"),
            ),
        }
    }
}

/// Makes a pair: the near end for tokio, the far end for the child.
fn pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (near, far) = std::os::unix::net::UnixStream::pair()?;
    near.set_nonblocking(true)?;
    Ok((UnixStream::from_std(near)?, far.into()))
}

/// Finds a free loopback port per placeholder.
///
/// The number is free when it is looked up and may be taken a moment later; then the
/// emulator refuses by name, which is an error of the lab and not of the target.
fn free_ports(emulation: &Emulation) -> io::Result<BTreeMap<String, u16>> {
    let mut held = Vec::new();
    let mut ports = BTreeMap::new();
    for name in port_names(emulation) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        ports.insert(name, listener.local_addr()?.port());
        // Held until all are known, so that two names cannot get one number.
        held.push(listener);
    }
    Ok(ports)
}

fn image_set_dir(
    context: &BindContext,
    emulation: &Emulation,
) -> Result<std::path::PathBuf, DriverError> {
    let Some(set) = &emulation.image_set else { return Ok(context.images.clone()) };
    let dir = context.images.join(set);
    if dir.is_dir() {
        return Ok(dir);
    }
    Err(DriverError::new(
        Cause::DeployFailed,
        format!(
            "there is no image set {set} in {} (build it: cargo xtask images)",
            context.images.display()
        ),
    ))
}

fn open_log(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).open(path)
}

/// Reads the end of a log, from an offset on.
fn tail(file: &mut File, from: u64) -> String {
    let len = file.metadata().map_or(0, |m| m.len());
    let start = from.max(len.saturating_sub(STDERR_TAIL));
    let mut bytes = Vec::new();
    if file.seek(SeekFrom::Start(start)).is_ok() {
        let _ = file.take(STDERR_TAIL).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
