//! The program itself: how quickly it starts and how much memory it takes.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::BenchOptions;
use super::cycle::pass;
use super::rounds::{alone, milliseconds};
use super::sample::BenchRow;
use super::setting::BenchSetting;
use xtask::failure::TaskFailure;
use xtask::process;

/// How often a process is asked for its memory: its peak is kept by the kernel and only
/// vanishes at its end, so one look in the last millisecond is enough.
const LOOK: Duration = Duration::from_micros(500);

/// Measures start-up and memory.
pub(super) fn measure(
    setting: &BenchSetting,
    options: &BenchOptions,
) -> Result<Vec<BenchRow>, TaskFailure> {
    let start = |args: &'static [&'static str]| {
        alone(options.rounds, || {
            let mut command = Command::new(setting.program("jig"));
            command.args(args).stdin(Stdio::null());
            milliseconds(|| pass(command))
        })
    };
    let peak = alone(options.rounds, || peak_of(setting.jig_test(&setting.repeat, 1)))?;
    Ok(vec![
        BenchRow::alone("jig --help", "ms", start(&["--help"])?, 10.0),
        BenchRow::alone("jig boards", "ms", start(&["boards"])?, 30.0),
        BenchRow::alone("peak memory of jig in jig test", "MB", peak, 25.0),
    ])
}

/// Runs a command and returns the most memory it held itself, without its children.
pub(super) fn peak_of(mut command: Command) -> Result<f64, TaskFailure> {
    command.stderr(Stdio::null());
    let mut child = command.spawn().map_err(process::start_failure(&command))?;
    let mut peak = 0.0_f64;
    loop {
        peak = peak.max(memory(child.id(), "VmHWM:").unwrap_or(0.0));
        if let Some(status) = child.try_wait().map_err(process::start_failure(&command))? {
            return match status.success() {
                true => Ok(peak),
                false => Err(process::ended(&command, status, String::new())),
            };
        }
        std::thread::sleep(LOOK);
    }
}

/// Returns a memory figure of a process in megabytes.
pub(super) fn memory(pid: u32, field: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024.0 / 1e6)
}

/// Returns the processor time of a process so far, in seconds.
pub(super) fn processor_time(pid: u32) -> Option<f64> {
    let mut total = 0.0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).unwrap_or_default();
        total += text.split(' ').next()?.parse::<f64>().unwrap_or(0.0) / 1e9;
    }
    Some(total)
}
