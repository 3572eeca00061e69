//! `cargo xtask test`: every check of a release, the cheapest first.
//!
//! Owns the list of phases and stops at the first that fails, with that phase's exit code. It
//! refuses to hide what a phase prints: cargo's own result lines are the evidence.

use std::time::Instant;

use xtask::failure::TaskFailure;
use xtask::{fixtures, process};

use crate::apt::Conflicts;
use crate::{images, setup_for_tests};

/// What `cargo xtask test` can be told.
#[derive(clap::Args)]
pub(crate) struct TestOptions {
    /// Skips building the Linux images; tests that boot them need an earlier build.
    #[arg(long)]
    fast: bool,
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
    ("test", |_| process::run(&mut process::cargo(&["test", "--workspace"]))),
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
