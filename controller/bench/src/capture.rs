//! Consoles: how fast one is captured, and what many and long ones cost.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::BenchOptions;
use super::program::{memory, processor_time};
use super::rounds::in_turns;
use super::sample::{BenchRow, Goal, Samples};
use super::setting::BenchSetting;
use xtask::failure::TaskFailure;
use xtask::process;

/// Rounds of the capture: each moves a gibibyte.
const ROUNDS: usize = 3;
/// Consoles at once, as many as a rig of boards with two each has.
const CONSOLES: usize = 16;
/// Readers of each that read once and never again, beside one that reads all.
const STUCK: usize = 9;
/// Bytes a second of each: a serial line at 3 Mbaud, ten bits a byte.
const RATE: u64 = 300_000;
/// Bytes of each: five seconds of printing.
const EACH: u64 = 5 * RATE;
/// How often a figure is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long a file is watched for its last byte between two looks.
const GLANCE: Duration = Duration::from_micros(500);

/// A terminal drained by `cat` beside one captured with index and ten patterns.
pub(super) fn throughput(
    setting: &BenchSetting,
    options: &BenchOptions,
) -> Result<Vec<BenchRow>, TaskFailure> {
    let bytes = options.mib << 20;
    let rate = |seconds: f64| (bytes as f64) / 1e6 / seconds;
    let mut lost = Vec::new();
    let (floor, ours) = in_turns(
        ROUNDS.min(options.rounds),
        || Ok(rate(cat(setting, bytes)?)),
        || {
            let captured = capture(setting, &["--count", "1"], bytes, 1, &[])?;
            lost.push(captured.lost);
            Ok(rate(captured.seconds))
        },
    )?;
    let mut all = vec![BenchRow {
        what: format!("console capture, {} MiB, index and 10 patterns", options.mib),
        unit: "MB/s",
        floor_is: "cat PTY > file".to_owned(),
        floor: Samples(floor),
        ours: Samples(ours),
        goal: Goal::Share { least: 0.8 },
    }];
    all.push(BenchRow::alone("bytes and gaps lost in it", "", lost, 1.0));
    Ok(all)
}

/// Sixteen terminals at 3 Mbaud, captured by one process; then the same while each has ten
/// readers of which nine are stuck.
pub(super) fn sixteen(
    setting: &BenchSetting,
    _: &BenchOptions,
) -> Result<Vec<BenchRow>, TaskFailure> {
    let (count, rate) = (CONSOLES.to_string(), RATE.to_string());
    let feed = ["--count", &count, "--rate", &rate];
    let mut rows = Vec::new();
    let stuck = format!("{} readers each, {STUCK} of them stuck", STUCK + 1);
    let cases = [
        ("in one process", vec![]),
        (stuck.as_str(), vec!["--stuck".to_owned(), STUCK.to_string()]),
    ];
    for (how, options) in cases {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let captured = capture(setting, &feed, EACH, CONSOLES, &options)?;
        let what = |what: &str| format!("{what}, {CONSOLES} consoles at 3 Mbaud, {how}");
        let core = captured.processor / captured.seconds * 100.0;
        rows.extend([
            BenchRow::alone(&what("peak memory"), "MB", vec![captured.peak], 60.0),
            BenchRow::alone(&what("share of one core"), "%", vec![core], 60.0),
            BenchRow::alone(&what("bytes and gaps lost"), "", vec![captured.lost], 1.0),
        ]);
    }
    Ok(rows)
}

/// One terminal for many gibibytes. The log's disk space is given back as it is passed, so
/// that the disk need not hold it; its offsets and index are those of the whole.
pub(super) fn flat_memory(
    setting: &BenchSetting,
    options: &BenchOptions,
) -> Result<Vec<BenchRow>, TaskFailure> {
    let bytes = options.gib << 30;
    let captured = capture(setting, &["--count", "1"], bytes, 1, &["--punch"])?;
    let gib = options.gib;
    let quarter = captured.resident.len() / 4;
    let middle = |part: &[f64]| Samples(part.to_vec()).median();
    let early = middle(captured.resident.get(..quarter).unwrap_or_default());
    let late = middle(captured.resident.get(3 * quarter..).unwrap_or_default());
    let growth = (late - early).max(0.0);
    Ok(vec![
        BenchRow::alone(
            &format!("peak memory of a capture of {gib} GiB"),
            "MB",
            vec![captured.peak],
            60.0,
        ),
        // Buffers that grow to their bound in the first seconds are no leak.
        BenchRow::alone("memory it grew by, first to last quarter", "MB", vec![growth], 4.0),
        BenchRow::alone("bytes and gaps lost in it", "", vec![captured.lost], 1.0),
    ])
}

/// What a capture came to.
struct Captured {
    seconds: f64,
    /// Bytes that are missing or wrong, and gaps.
    lost: f64,
    /// Most memory, in megabytes.
    peak: f64,
    /// Memory over time, in megabytes.
    resident: Vec<f64>,
    /// Processor time, in seconds.
    processor: f64,
}

/// Reads a terminal with `cat`; returns the seconds from its first byte to its last.
fn cat(setting: &BenchSetting, bytes: u64) -> Result<f64, TaskFailure> {
    let mut feeder = Feeder::start(setting, &["--count", "1"], bytes)?;
    let path = setting.scratch.join("cat.raw");
    let file = File::create(&path).map_err(TaskFailure::io("create", &path))?;
    let mut command = Command::new("cat");
    command.args(&feeder.ttys).stdin(Stdio::null()).stdout(file);
    let mut cat = command.spawn().map_err(process::start_failure(&command))?;
    // It has to have opened the terminal, as ours says that it has.
    std::thread::sleep(LOOK);
    let began = Instant::now();
    feeder.go()?;
    while fs::metadata(&path).map_err(TaskFailure::io("read", &path))?.len() < bytes {
        if let Some(status) = cat.try_wait().map_err(process::start_failure(&command))? {
            return Err(process::ended(&command, status, "it ended early".to_owned()));
        }
        std::thread::sleep(GLANCE);
    }
    let seconds = began.elapsed().as_secs_f64();
    let _ = cat.kill();
    let _ = cat.wait();
    fs::remove_file(&path).map_err(TaskFailure::io("remove", &path))?;
    Ok(seconds)
}

/// Captures terminals; the clock runs from the first byte until all is logged and searched.
fn capture(
    setting: &BenchSetting,
    feed: &[&str],
    bytes: u64,
    consoles: usize,
    options: &[&str],
) -> Result<Captured, TaskFailure> {
    let mut feeder = Feeder::start(setting, feed, bytes)?;
    let folder = setting.scratch.join("capture");
    fs::create_dir_all(&folder).map_err(TaskFailure::io("create", &folder))?;
    let mut command = Command::new(setting.program("examples/capture"));
    command.arg("read").args(options).arg(&folder).arg(bytes.to_string()).args(&feeder.ttys);
    let mut reader = Talker::start(command)?;
    reader.expect("ready")?;
    let pid = reader.child.id();
    let before = processor_time(pid).unwrap_or(0.0);
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let mut resident = Vec::new();
        while stopped
            .recv_timeout(LOOK)
            .is_err_and(|e| e == std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            resident.extend(memory(pid, "VmRSS:"));
        }
        resident
    });
    let began = Instant::now();
    feeder.go()?;
    reader.expect("caught")?;
    let seconds = began.elapsed().as_secs_f64();
    let processor = processor_time(pid).unwrap_or(0.0) - before;
    let peak = memory(pid, "VmHWM:").unwrap_or(f64::NAN);
    drop(stop);
    let resident = watch.join().unwrap_or_default();
    let said = reader.line()?;
    let outcome: Value = serde_json::from_str(&said)
        .map_err(|_| TaskFailure::Because(format!("the capture said {said:?}")))?;
    let number = |name: &str| outcome.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN);
    if number("found") < consoles as f64 {
        return Err(TaskFailure::Because("the patterns found nothing".to_owned()));
    }
    fs::remove_dir_all(&folder).map_err(TaskFailure::io("remove", &folder))?;
    Ok(Captured { seconds, lost: number("lost"), peak, resident, processor })
}

/// The program that plays the targets.
struct Feeder {
    talker: Talker,
    ttys: Vec<PathBuf>,
}

impl Feeder {
    fn start(setting: &BenchSetting, options: &[&str], bytes: u64) -> Result<Self, TaskFailure> {
        let mut command = Command::new(setting.program("examples/capture"));
        command.arg("feed").args(options).arg(bytes.to_string());
        let count = options.get(1).and_then(|count| count.parse().ok()).unwrap_or(1);
        let mut talker = Talker::start(command)?;
        let ttys = (0..count).map(|_| talker.line().map(PathBuf::from));
        let ttys: Vec<PathBuf> = ttys.collect::<Result<_, _>>()?;
        if ttys.iter().all(|tty| Path::new(tty).exists()) {
            return Ok(Self { talker, ttys });
        }
        Err(TaskFailure::Because("the pseudo-terminals cannot be reached".to_owned()))
    }

    fn go(&mut self) -> Result<(), TaskFailure> {
        let Some(stdin) = &mut self.talker.child.stdin else { return Ok(()) };
        stdin.write_all(b"go\n").map_err(TaskFailure::io("write to", Path::new("the feeder")))
    }
}

/// A child that is talked to by lines; it ends with the handle.
struct Talker {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Talker {
    fn start(mut command: Command) -> Result<Self, TaskFailure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(process::start_failure(&command))?;
        let Some(out) = child.stdout.take() else {
            return Err(TaskFailure::Because("a child without standard output".to_owned()));
        };
        Ok(Self { child, lines: BufReader::new(out) })
    }

    fn line(&mut self) -> Result<String, TaskFailure> {
        let mut line = String::new();
        let read = self.lines.read_line(&mut line);
        match read.map_err(TaskFailure::io("read from", Path::new("the bench program")))? {
            0 => Err(TaskFailure::Because("the bench program ended early".to_owned())),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    fn expect(&mut self, wanted: &str) -> Result<(), TaskFailure> {
        let line = self.line()?;
        if line == wanted {
            Ok(())
        } else {
            Err(TaskFailure::Because(format!("{line:?} was said")))
        }
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        // Without its standard input the feeder ends by itself; the reader has ended.
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
