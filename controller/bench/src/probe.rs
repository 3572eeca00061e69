//! The virtual probe: flashing, flashing again, and RTT.

use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Deserialize;
use serde_json::Value;

use super::BenchOptions;
use super::rounds::alone;
use super::sample::{BenchRow, Goal, Samples};
use super::setting::{BenchSetting, boards};
use xtask::failure::TaskFailure;
use xtask::process;

/// What the measuring program tells.
#[derive(Deserialize)]
struct ProbeTimes {
    in_process: Vec<f64>,
    served: Vec<f64>,
    again: Vec<f64>,
    rtt: Vec<f64>,
    rtt_trips: Vec<f64>,
    spent: Value,
}

/// Measures flash throughput, a flash of an unchanged image, and RTT both ways.
pub(super) fn measure(
    setting: &BenchSetting,
    options: &BenchOptions,
) -> Result<Vec<BenchRow>, TaskFailure> {
    let chosen = &setting.probe;
    let mut command = Command::new(setting.program("examples/probe"));
    command.arg(boards().join(format!("{}.toml", chosen.board)));
    command.arg(boards().join("faults")).arg(setting.image(chosen));
    command.args(["--rounds", &options.rounds.min(12).to_string()]);
    let text = process::capture(&mut command)?;
    let found: ProbeTimes = serde_json::from_slice(&text)
        .map_err(|error| TaskFailure::Because(format!("the measuring program said {error}")))?;
    println!("bench: one flash in this process: {}", found.spent);
    let rate = |what: &str, ours: Vec<f64>, least: f64| BenchRow {
        goal: Goal::AtLeast { limit: least },
        ..BenchRow::alone(what, "KiB/s", ours, 0.0)
    };
    let tail = percentile(&found.rtt_trips, 99);
    Ok(vec![
        rate(
            "flash 128 KiB: erase, program, verify; in one process",
            found.in_process.clone(),
            900.0,
        ),
        BenchRow {
            floor_is: "in one process".to_owned(),
            floor: Samples(found.in_process),
            ..rate("the same by a served probe, as any tool reaches it", found.served, 340.0)
        },
        BenchRow::alone("flash of an unchanged image, share of a full one", "x", found.again, 0.2),
        rate("RTT echo, 64 KiB there and back", found.rtt, 0.0),
        BenchRow {
            goal: Goal::None,
            ..BenchRow::alone("RTT echo of one byte, p50", "ms", found.rtt_trips, 0.0)
        },
        BenchRow {
            goal: Goal::None,
            ..BenchRow::alone("RTT echo of one byte, p99", "ms", vec![tail], 0.0)
        },
        first_erase(setting, options)?,
    ])
}

fn percentile(samples: &[f64], percent: usize) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or(0.0)
}

/// From the start of `jig flash` to its first word of erasing. The board's flash is blanked
/// by a state folder of its own each time.
fn first_erase(setting: &BenchSetting, options: &BenchOptions) -> Result<BenchRow, TaskFailure> {
    use std::io::{BufRead as _, BufReader};
    let chosen = &setting.probe;
    let mut round = 0;
    let took = alone(options.rounds.min(10), || {
        round += 1;
        let mut command = Command::new(setting.program("jig"));
        command.args(["flash", "-b", &chosen.board]).arg(setting.image(chosen));
        command.env("XDG_STATE_HOME", setting.scratch.join(format!("state-{round}")));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let began = Instant::now();
        let mut child = command.spawn().map_err(process::start_failure(&command))?;
        let words =
            BufReader::new(child.stderr.take().into_iter().next().ok_or_else(|| {
                TaskFailure::Because("the command has no standard error".to_owned())
            })?);
        let mut erasing = None;
        for line in words.lines().map_while(Result::ok) {
            if line.starts_with("erasing") && erasing.is_none() {
                erasing = Some(began.elapsed().as_secs_f64() * 1e3);
            }
        }
        child.wait().map_err(process::start_failure(&command))?;
        erasing.ok_or_else(|| TaskFailure::Because("nothing was erased".to_owned()))
    })?;
    Ok(BenchRow::alone("jig flash, start to first erase", "ms", took, 300.0))
}
