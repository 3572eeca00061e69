//! `cargo xtask test`: every check of a release, the cheapest first.
//!
//! Owns the list of phases and stops at the first that fails, with that phase's exit code. It
//! refuses to hide what a phase prints: cargo's own result lines are the evidence.

use std::time::Instant;

use xtask::failure::TaskFailure;
use xtask::{fixtures, process};

use crate::apt::Conflicts;
use crate::{images, integration, setup_for_tests};

/// What `cargo xtask test` can be told.
#[derive(clap::Args)]
pub(crate) struct TestOptions {
    /// Skips building the Linux images; tests that boot them need an earlier build.
    #[arg(long)]
    fast: bool,
    /// Repeats the order of the integration tests of an earlier run, which printed it.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    conflicts: Conflicts,
}

type TestPhase = (&'static str, fn(&TestOptions) -> Result<(), TaskFailure>);

/// In order; `images` is skipped by `--fast`.
const PHASES: &[TestPhase] = &[
    ("setup", |options| setup_for_tests(options.conflicts)),
    ("fmt", |_| process::run(&mut process::cargo(&["fmt", "--all", "--check"]))),
    ("fixtures", |_| fixtures::run(&fixtures::FixtureChoice::default())),
    ("images", |_| images::run(&images::ImageOptions::default())),
    ("clippy", |_| {
        let args = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        process::run(&mut process::cargo(&args))
    }),
    ("test", |_| {
        let units = ["test", "--workspace", "--lib", "--bins", "--no-fail-fast"];
        process::run(&mut process::cargo(&units))?;
        process::run(&mut process::cargo(&["test", "--workspace", "--doc"]))
    }),
    ("integration", |options| {
        integration::run(options.seed.unwrap_or_else(integration::fresh_seed))
    }),
];

/// Runs all phases.
pub(crate) fn run(options: &TestOptions) -> Result<(), TaskFailure> {
    let mut times = Vec::new();
    for (name, phase) in PHASES {
        if options.fast && *name == "images" {
            continue;
        }
        println!("==> {name}");
        let start = Instant::now();
        let outcome = phase(options);
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => println!("==> {name}: ok in {seconds:.1} s"),
            Err(failure) => {
                // The reason follows when main reports the failure, once.
                println!("==> {name}: FAILED in {seconds:.1} s");
                return Err(failure);
            }
        }
        times.push(format!("{name} {seconds:.1} s"));
    }
    println!("==> all phases passed: {}", times.join(", "));
    Ok(())
}
