//! What the rules for the end of a run cost behind a green report: halt and look behind the quiet
//! period, and the look for functions by which systems halt after a fatal error.
//!
//! # Design
//! *The floor lasts as long.* It is a run that ends by itself when the quiet period would be over. One that
//! ends at once, with the period added, is too low: what a program does behind 50 ms in which its
//! processor slept takes longer, 2 ms of a cycle.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::BenchOptions;
use super::cycle::pass;
use super::rounds::{in_turns, milliseconds};
use super::sample::{BenchRow, Goal, Samples};
use super::setting::{BenchSetting, settle};
use xtask::failure::TaskFailure;
use xtask::process;

/// Most that the rules may cost a cycle, in milliseconds.
const GOAL: Goal = Goal::Within { factor: 1.0, plus: 5.0 };

/// A function of the fixtures that is in no call at the end, and the name that it gets: that of a
/// function in which vendors' systems halt.
const RENAMED: &str = "print_hex=Error_Handler";

/// How long behind its report the firmware of the floor ends: as long as the boards' quiet period.
const WINDOW: Duration = Duration::from_millis(50);

/// A quiet period that such a firmware always ends.
const LONG: Duration = Duration::from_secs(1);

/// Measures each board that has a firmware that goes on and one that ends late.
pub(super) fn measure(
    setting: &BenchSetting,
    options: &BenchOptions,
) -> Result<Vec<BenchRow>, TaskFailure> {
    let mut rows = Vec::new();
    let long = setting.plan_that_settles(LONG)?;
    for goes_on in &setting.cycles {
        let (board, Some(late)) = (&goes_on.board, &goes_on.late) else { continue };
        let quiet = settle(&setting.profile(board)?);
        if quiet != WINDOW {
            let why = format!("{late} ends after {WINDOW:?}, and {board} settles for {quiet:?}");
            return Err(TaskFailure::Because(why));
        }
        let with = |plan: &Path, image: &Path| {
            milliseconds(|| pass(setting.jig_test_of(plan, board, image, 1)))
        };
        let run = |image: &Path| with(&setting.plan, image);
        let (late, plain) = (setting.firmware(board, late), setting.image(goes_on));
        let (floor, ours) = in_turns(options.rounds, || with(&long, &late), || run(&plain))?;
        let what = format!("end of a run that goes on, {board}");
        let floor_is = format!("`jig test` of one that exits {WINDOW:?} behind its report");
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
