//! A test cycle: one by itself, and a hundred in one run.

use std::process::Command;

use super::BenchOptions;
use super::rounds::{in_turns, milliseconds};
use super::sample::{BenchRow, Goal, Samples};
use super::setting::{BenchSetting, Cycle, emulation, settle};
use xtask::failure::TaskFailure;
use xtask::process;

/// Cycles of a repeated run.
const REPEAT: u32 = 100;

/// Rounds of the repeated run: each is a hundred cycles, so few are enough.
const ROUNDS: usize = 5;

/// One `jig test` beside the bare emulator.
pub(super) fn single(
    setting: &BenchSetting,
    options: &BenchOptions,
) -> Result<Vec<BenchRow>, TaskFailure> {
    let rows = setting.cycles.iter().map(|cycle| {
        let profile = setting.profile(&cycle.board)?;
        let (emulation, image) = (emulation(&profile)?, setting.image(cycle));
        let (mut floor, ours) = in_turns(
            options.rounds,
            || milliseconds(|| setting.bare(&emulation, &image)),
            || milliseconds(|| pass(setting.jig_test(cycle, 1))),
        )?;
        let mut floor_is = "bare emulator".to_owned();
        if !cycle.ends {
            // A window that every honest verdict on a running firmware needs is no cost of
            // ours; it is added to the floor, and said so.
            let settle = settle(&profile).as_secs_f64() * 1e3;
            floor.iter_mut().for_each(|round| *round += settle);
            floor_is = format!("bare emulator + {settle:.0} settle");
        }
        let goal = Goal::Within { factor: 1.15, plus: 30.0 };
        Ok(row(format!("test cycle, {}", name(cycle)), floor_is, floor, ours, goal))
    });
    rows.collect()
}

/// A hundred attempts of one run beside as many bare emulators.
pub(super) fn repeated(
    setting: &BenchSetting,
    options: &BenchOptions,
) -> Result<Vec<BenchRow>, TaskFailure> {
    let cycle = &setting.repeat;
    let emulation = emulation(&setting.profile(&cycle.board)?)?;
    let image = setting.image(cycle);
    let (floor, ours) = in_turns(
        ROUNDS.min(options.rounds),
        || milliseconds(|| (0..REPEAT).try_for_each(|_| setting.bare(&emulation, &image))),
        || milliseconds(|| pass(setting.jig_test(cycle, REPEAT))),
    )?;
    let goal = Goal::Within { factor: 1.10, plus: 0.0 };
    let what = format!("{REPEAT} cycles in one run, {}", name(cycle));
    Ok(vec![row(what, format!("{REPEAT} bare emulators"), floor, ours, goal)])
}

fn name(cycle: &Cycle) -> String {
    format!("{} on {}", cycle.fixture, cycle.board)
}

fn row(what: String, floor_is: String, floor: Vec<f64>, ours: Vec<f64>, goal: Goal) -> BenchRow {
    BenchRow { what, unit: "ms", floor_is, floor: Samples(floor), ours: Samples(ours), goal }
}

/// Runs a command that has to succeed: a run that fails early would be very fast.
pub(super) fn pass(mut command: Command) -> Result<(), TaskFailure> {
    let output = command.output().map_err(process::start_failure(&command))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(process::ended(&command, output.status, said))
}
