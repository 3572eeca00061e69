//! What the rules for the end of a run cost behind a green report: the quiet period beyond its own
//! length, and the look for functions by which systems halt after a fatal error.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::BenchOptions;
use super::cycle::pass;
use super::rounds::{in_turns, milliseconds};
use super::sample::{BenchRow, Goal, Samples};
use super::setting::{BenchSetting, Cycle, settle};
use xtask::failure::TaskFailure;
use xtask::process;

/// Most that the rules may cost a cycle, in milliseconds.
const GOAL: Goal = Goal::Within { factor: 1.0, plus: 5.0 };

/// A function of the fixtures that is in no call at the end, and the name that it gets: that of a
/// function in which vendors' systems halt.
const RENAMED: &str = "print_hex=Error_Handler";

/// Measures each board that has a firmware that ends and one that does not.
pub(super) fn measure(
    setting: &BenchSetting,
    options: &BenchOptions,
) -> Result<Vec<BenchRow>, TaskFailure> {
    let mut rows = Vec::new();
    for goes_on in setting.cycles.iter().filter(|cycle| !cycle.ends) {
        let ends = |one: &&Cycle| one.ends && one.board == goes_on.board;
        let Some(ends) = setting.cycles.iter().find(ends) else { continue };
        let board = &goes_on.board;
        let quiet = settle(&setting.profile(board)?).as_secs_f64() * 1e3;
        let plain = setting.image(goes_on);
        let run = |image: &Path| milliseconds(|| pass(setting.jig_test_of(board, image, 1)));
        let exits = setting.image(ends);
        let (floor, ours) = in_turns(options.rounds, || Ok(run(&exits)? + quiet), || run(&plain))?;
        let what = format!("end of a run that goes on, {board}");
        let floor_is = format!("`jig test` of a firmware that exits + {quiet:.0} settle");
        rows.push(row(what, floor_is, floor, ours));
        let named = with_fatal_function(setting, &plain, board)?;
        let (floor, ours) = in_turns(options.rounds, || run(&plain), || run(&named))?;
        let what = format!("the same with a fatal function, {board}");
        rows.push(row(what, "`jig test` of one without".to_owned(), floor, ours));
    }
    Ok(rows)
}

fn row(what: String, floor_is: String, floor: Vec<f64>, ours: Vec<f64>) -> BenchRow {
    let (floor, ours) = (Samples(floor), Samples(ours));
    BenchRow { what, unit: "ms", floor_is, floor, ours, goal: GOAL }
}

/// Copies a firmware, with another name for one of its functions.
fn with_fatal_function(
    setting: &BenchSetting,
    image: &Path,
    board: &str,
) -> Result<PathBuf, TaskFailure> {
    let named = setting.scratch.join(format!("{board}-fatal-function.elf"));
    let mut objcopy = Command::new("arm-none-eabi-objcopy");
    process::run(objcopy.args(["--redefine-sym", RENAMED]).arg(image).arg(&named))?;
    Ok(named)
}
