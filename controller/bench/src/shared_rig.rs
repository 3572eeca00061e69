//! A rig that many use: hand-overs of a leased place, commands of many users at once, and the daemon
//! that has nothing to do.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::BenchOptions;
use super::cycle::pass;
use super::program::{memory, processor_time};
use super::rounds::{alone, milliseconds};
use super::sample::{BenchRow, Goal, Samples};
use super::setting::BenchSetting;
use xtask::failure::TaskFailure;
use xtask::process;

/// Places of the rig, and users that give a command at once.
const PLACES: usize = 50;
const USERS: usize = 40;

/// Rounds of hand-overs, and the time of each.
const HANDED_ROUNDS: u32 = 5;
const HANDED_MS: u32 = 2000;

/// How long the idle daemon is watched.
const IDLE: Duration = Duration::from_secs(10);

/// What the measuring program tells.
#[derive(Deserialize)]
struct HandedLeases {
    bare: Vec<f64>,
    /// By callers of a service, which has the store open.
    served: Vec<f64>,
    /// By processes that open it for each order.
    handed: Vec<f64>,
    most_holders: u64,
}

/// Measures all of it.
pub(super) fn measure(
    setting: &BenchSetting,
    options: &BenchOptions,
) -> Result<Vec<BenchRow>, TaskFailure> {
    let folder = setting.scratch.join("shared");
    fs::create_dir_all(&folder).map_err(TaskFailure::io("create", &folder))?;
    let mut rows = handed(setting, &folder)?;
    let listeners = (0..PLACES).map(|_| TcpListener::bind("127.0.0.1:0"));
    let listeners: Vec<_> =
        listeners.collect::<Result<_, _>>().map_err(TaskFailure::io("listen in", &folder))?;
    let rig = RigOfPlaces::write(setting, &folder, &listeners)?;
    rows.extend(rig.idle_daemon(|| rig.commands(options))?);
    Ok(rows)
}

fn handed(setting: &BenchSetting, folder: &Path) -> Result<Vec<BenchRow>, TaskFailure> {
    let mut command = Command::new(setting.program("examples/leases"));
    command.arg(folder).args([HANDED_ROUNDS.to_string(), HANDED_MS.to_string()]);
    let text = process::capture(&mut command)?;
    let found: HandedLeases = serde_json::from_slice(&text)
        .map_err(|error| TaskFailure::Because(format!("the measuring program said {error}")))?;
    if found.most_holders != 1 {
        let why = format!("{} users had the same place at once", found.most_holders);
        return Err(TaskFailure::Because(why));
    }
    let row = |whose: &str, ours, goal| BenchRow {
        what: format!("a leased place goes from user to user, 4 {whose} at once"),
        unit: "/s",
        floor_is: "two bare SQLite updates with full sync".to_owned(),
        floor: Samples(found.bare.clone()),
        ours: Samples(ours),
        goal,
    };
    Ok(vec![
        row("callers of a service", found.served, Goal::AtLeast { limit: 200.0 }),
        row("processes", found.handed, Goal::None),
    ])
}

/// A rig file with many places whose consoles are sockets, and its state.
struct RigOfPlaces {
    jig: PathBuf,
    file: PathBuf,
    state: PathBuf,
}

impl RigOfPlaces {
    fn write(
        setting: &BenchSetting,
        folder: &Path,
        listeners: &[TcpListener],
    ) -> Result<Self, TaskFailure> {
        let mut text = "version = 1\n".to_owned();
        for (number, listener) in listeners.iter().enumerate() {
            let address = listener.local_addr().map_err(TaskFailure::io("listen in", folder))?;
            // Writing to a text cannot fail.
            let _ = write!(
                text,
                "[[place]]\nname = \"bench-{number}\"\nboard = \"{}\"\n\
                 console = [{{ name = \"uart0\", tcp = \"{address}\" }}]\n",
                setting.repeat.board,
            );
        }
        let file = folder.join("rig.toml");
        fs::write(&file, text).map_err(TaskFailure::io("write", &file))?;
        Ok(Self { jig: setting.program("jig"), file, state: folder.join("user-state") })
    }

    fn jig(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.jig);
        command.args(args).arg("--rig").arg(&self.file).env("XDG_STATE_HOME", &self.state);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Measures a daemon that captures all consoles while none prints, and `meanwhile`.
    fn idle_daemon(
        &self,
        meanwhile: impl FnOnce() -> Result<Vec<BenchRow>, TaskFailure>,
    ) -> Result<Vec<BenchRow>, TaskFailure> {
        let mut command = self.jig(&["serve"]);
        command.stderr(Stdio::null());
        let child = command.spawn().map_err(process::start_failure(&command))?;
        let daemon = RunningDaemon(child);
        // A warm-up that counts for nothing: the daemon has opened its consoles.
        std::thread::sleep(IDLE / 5);
        let (pid, began) = (daemon.0.id(), Instant::now());
        let before = processor_time(pid);
        std::thread::sleep(IDLE);
        let used = processor_time(pid).zip(before).map(|(after, before)| after - before);
        let missing = || TaskFailure::Because("the daemon has ended".to_owned());
        let share = 100.0 * used.ok_or_else(missing)? / began.elapsed().as_secs_f64();
        let rows = meanwhile()?;
        let peak = memory(pid, "VmHWM:").ok_or_else(missing)?;
        let what = |figure: &str| format!("{figure} of `jig serve`, {PLACES} places");
        let mut all = vec![
            BenchRow::alone(&what("memory"), "MB", vec![peak], 60.0),
            BenchRow::alone(&what("idle processor time"), "% of a core", vec![share], 1.0),
        ];
        all.extend(rows);
        Ok(all)
    }

    /// Measures commands of one user and of many at once.
    fn commands(&self, options: &BenchOptions) -> Result<Vec<BenchRow>, TaskFailure> {
        let list = || pass(self.jig(&["lease", "ls"]));
        let one = alone(options.rounds, || milliseconds(list))?;
        let mut many: Vec<f64> = std::thread::scope(|threads| {
            let each = || {
                let user = || (0..5).map(|_| milliseconds(list)).collect::<Result<Vec<_>, _>>();
                threads.spawn(user)
            };
            let users: Vec<_> = (0..USERS).map(|_| each()).collect();
            let ended = users.into_iter().map(|user| {
                user.join().map_err(|_| TaskFailure::Because("a user has panicked".to_owned()))?
            });
            ended.collect::<Result<Vec<_>, TaskFailure>>()
        })?
        .concat();
        many.sort_by(f64::total_cmp);
        let last = many.get(many.len() * 99 / 100).copied().unwrap_or(0.0);
        let at_once = |figure: &str, values, goal| {
            let what = format!("the same, {USERS} users at once, {figure}");
            BenchRow { goal, ..BenchRow::alone(&what, "ms", values, 0.0) }
        };
        Ok(vec![
            BenchRow::alone("`jig lease ls` beside the daemon", "ms", one, 15.0),
            at_once("median", many, Goal::None),
            at_once("99 of 100 within", vec![last], Goal::None),
        ])
    }
}

/// A daemon that ends with the measurement.
struct RunningDaemon(Child);

impl Drop for RunningDaemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
