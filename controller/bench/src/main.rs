//! `cargo xtask bench`: what Jig costs beside the least that the same job could cost.
//!
//! Owns the list of measurements and the table they end in. Every number is a ratio to a
//! named floor that was measured in the same run, alternating: floor, ours, floor, ours, so
//! that a busy machine slows both. Refuses to judge by one number: medians over rounds,
//! with the raw numbers kept beside the build.
#![expect(clippy::print_stdout, reason = "a chore talks to the person who started it")]
#![expect(clippy::print_stderr, reason = "a chore talks to the person who started it")]

mod capture;
mod cycle;
mod dice;
mod faults;
mod journal;
mod knowledge;
mod peers;
mod probe;
mod program;
mod recovery;
mod repair;
mod report;
mod rounds;
mod sample;
mod setting;
mod settle;
mod shared_rig;
mod shared_ssh;

use std::process::ExitCode;

use clap::Parser;
use sample::BenchRow;
use setting::BenchSetting;
use xtask::failure::TaskFailure;
use xtask::fixtures;

/// Measures what Jig costs beside the least that the same job could cost.
#[derive(Parser)]
#[command(
    name = "cargo xtask bench",
    bin_name = "cargo xtask bench",
    args_conflicts_with_subcommands = true
)]
pub(crate) struct BenchOptions {
    #[command(subcommand)]
    part: Option<Part>,
    /// Rounds of each short measurement; 20 are the least that a median is worth.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Only measurements whose name contains this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Mebibytes that a console prints in one round.
    #[arg(long, default_value_t = 1024)]
    mib: u64,
    /// Gibibytes of one console's output during which memory must stay flat.
    #[arg(long, default_value_t = 10)]
    gib: u64,
    /// Compares with other test runners as well; installs them from PyPI into a folder of
    /// the build.
    #[arg(long)]
    peers: bool,
}

/// What is measured by itself, because it takes long.
#[derive(clap::Subcommand)]
enum Part {
    /// How a rig that fails is noticed, blamed and recovered: every fault at random moments.
    Recovery(recovery::RecoveryOptions),
    /// What the repair loop makes of firmware with one bug: right, wrong and no repairs.
    Repair(repair::RepairOptions),
    /// How well and how fast knowledge is searched, on documents and questions with known answers.
    Knowledge(knowledge::KnowledgeBenchOptions),
}

/// A measurement; it may take a while and may fill more than one row.
type Measure = fn(&BenchSetting, &BenchOptions) -> Result<Vec<BenchRow>, TaskFailure>;

/// In order; the long ones come last.
const MEASUREMENTS: &[(&str, Measure)] = &[
    ("program", program::measure),
    ("cycle", cycle::single),
    ("settle", settle::measure),
    ("repeat", cycle::repeated),
    ("probe", probe::measure),
    ("journal", journal::measure),
    ("shared", shared_rig::measure),
    ("shared-ssh", shared_ssh::measure),
    ("capture", capture::throughput),
    ("consoles", capture::sixteen),
    ("memory", capture::flat_memory),
];

fn main() -> ExitCode {
    match run(&BenchOptions::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {}", failure.chain());
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Measures, prints the table, and keeps the numbers.
///
/// # Errors
/// Something could not be measured. A goal that was missed is a row, not a failure.
fn run(options: &BenchOptions) -> Result<(), TaskFailure> {
    match &options.part {
        Some(Part::Recovery(options)) => return recovery::run(options),
        Some(Part::Repair(options)) => return repair::run(options),
        Some(Part::Knowledge(options)) => return knowledge::run(options),
        None => {}
    }
    println!("bench: building");
    setting::build(&[
        "--bin",
        "jig",
        "--example",
        "capture",
        "--example",
        "probe",
        "--example",
        "journal",
        "--example",
        "leases",
    ])?;
    fixtures::run(&fixtures::FixtureChoice::default())?;
    let setting = BenchSetting::prepare()?;
    let before = report::load();
    println!("bench: load average {before}, {} processors", report::processors());
    let mut rows = Vec::new();
    let peers = options.peers.then_some(("peers", peers::measure as Measure));
    for &(name, measure) in MEASUREMENTS.iter().chain(&peers) {
        if options.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        println!("bench: {name}");
        rows.extend(measure(&setting, options)?);
    }
    let kept = report::keep(&setting, &rows, &before)?;
    print!("\n{}", report::table(&rows));
    println!(
        "\nload average {before} before, {} after; numbers: {}",
        report::load(),
        kept.display()
    );
    Ok(())
}
