//! `cargo xtask bench recovery`: a rig that fails on purpose, at random moments.
//!
//! Runs the `jig` program as a user would, with each fault of its own list, and reads what it
//! says: the verdict, and the events of the run. The other side is measured too: firmware
//! that is broken, on a rig that is well. Refuses to know a fault: what there is, and when it
//! can strike, is asked of the program.

mod dice;
mod faults;
mod firmware;
mod lab;
mod leaks;
mod table;
mod trial;

use std::path::PathBuf;

use serde_json::json;

use super::report;
use super::setting::{healed, target_dir};
use crate::failure::Failure;
use crate::{fixtures, process};
use dice::Dice;
use faults::Fault;
use lab::Lab;
use table::Line;
use trial::{Outcome, Trial};

/// What `cargo xtask bench recovery` can be told.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Moments at which each fault strikes on each board.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Only faults whose name contains this; `firmware` is the other side.
    #[arg(long, value_name = "FAULT")]
    only: Option<String>,
    /// Where the random moments come from; printed, so that a run can be repeated.
    #[arg(long)]
    seed: Option<u64>,
    /// Tries this program instead of building one.
    #[arg(long, value_name = "FILE")]
    jig: Option<PathBuf>,
}

/// A moment that has not come by the end of the run is no trial; beyond so many for each that
/// counts, the fault cannot strike there.
const MISSES: usize = 3;

/// A fault that is repaired.
const REPAIRED: &str = "kill-emulator@0s";

/// Runs every trial, prints the tables and keeps the numbers.
///
/// # Errors
/// Something could not be tried. A goal that was missed is told, and is no failure.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let target = target_dir();
    let jig = match &options.jig {
        Some(jig) => std::path::absolute(jig).map_err(Failure::io("find", jig))?,
        None => {
            println!("recovery: building");
            let build = ["build", "--quiet", "--release", "--package", "jig", "--bin", "jig"];
            process::run(&mut process::cargo(&build))?;
            target.join("release/jig")
        }
    };
    fixtures::run(&fixtures::Choice::default())?;
    let places = healed()?;
    let lab = Lab::prepare(jig, &target, &places)?;
    let seed = options.seed.unwrap_or_else(Dice::any);
    let before = report::load();
    println!(
        "recovery: seed {seed}, {} rounds, load average {before}, {} processors",
        options.rounds,
        report::processors()
    );
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let mut lines: Vec<Line> = Vec::new();
    // Once before, and repaired once: what a place keeps for good is there from then on.
    lab.natural(&places)?;
    for healed in &places {
        Trial { lab: &lab, place: &healed.place, fault: REPAIRED }.run()?;
    }
    let natural = lab.natural(&places)?;
    let kept = leaks::places(&lab);
    for fault in faults::all(&lab)?.iter().filter(|fault| wanted(&fault.name)) {
        let mut line = Line::new(&fault.name, fault.traced);
        for (place, natural) in places.iter().zip(&natural) {
            // Each fault and place has its own dice: what is left out changes no other moment.
            let mut dice = Dice::new(seed, &format!("{} {}", fault.name, place.place));
            strike(&lab, fault, (&place.place, natural), options.rounds, &mut dice, &mut line)?;
        }
        println!("recovery: {}", line.progress());
        lines.push(line);
    }
    let firmware = if wanted("firmware") { firmware::all(&lab, &places)? } else { Vec::new() };
    // Whoever starts next sweeps what a run that could not write has left.
    let last = lab.natural(&places);
    let left = leaks::left(&lab, &kept);
    let seconds = report::seconds();
    let numbers = target.join("bench").join(format!("recovery-{seconds}.json"));
    let document = json!({
        "format": "jig-bench-recovery",
        "version": 1,
        "unix_time": seconds,
        "seed": seed,
        "rounds": options.rounds,
        "load_before": before,
        "load_after": report::load(),
        "faults": lines,
        "firmware": firmware,
        "left": left,
    });
    std::fs::write(&numbers, format!("{document:#}\n")).map_err(Failure::io("write", &numbers))?;
    print!("\n{}", table::faults(&lines));
    print!("\n{}", table::firmware(&firmware));
    print!("\n{}", table::goals(&lines, &firmware, &left));
    println!(
        "\nseed {seed}, load average {before} before, {} after; numbers: {}",
        report::load(),
        numbers.display()
    );
    last.map(drop)
}

/// Has a fault strike at so many random moments.
fn strike(
    lab: &Lab,
    fault: &Fault,
    (place, natural): (&str, &trial::Natural),
    rounds: usize,
    dice: &mut Dice,
    line: &mut Line,
) -> Result<(), Failure> {
    let (mut struck, (_, old)) = (0, lab.images(place)?);
    for _ in 0..rounds * MISSES {
        if struck == rounds {
            break;
        }
        let written = fault.at_random(natural, old, dice);
        let outcome = Trial { lab, place, fault: &written }.run()?;
        if outcome == Outcome::Missed {
            line.missed += 1;
            continue;
        }
        struck += 1;
        line.add(place, &written, outcome);
        line.leaks += leaks::processes(lab);
    }
    Ok(())
}
