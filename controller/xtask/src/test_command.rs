//! `cargo xtask test`: everything the gate checks, in the order that fails fastest for least work.
//!
//! Owns the list of phases and stops at the first that fails, with that phase's exit code. It
//! refuses to hide what a phase prints: cargo's own result lines are the evidence.

use std::time::Instant;

use xtask::failure::Failure;
use xtask::{fixtures, process};

use crate::{images, setup_for_tests};

/// What `cargo xtask test` can be told.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Skips building the Linux images; tests that boot them need an earlier build.
    #[arg(long)]
    fast: bool,
}

type Phase = (&'static str, fn() -> Result<(), Failure>);

/// In order; `images` is skipped by `--fast`.
const PHASES: &[Phase] = &[
    ("setup", setup_for_tests),
    ("fmt", || process::run(&mut process::cargo(&["fmt", "--all", "--check"]))),
    ("fixtures", || fixtures::run(&fixtures::Choice::default())),
    ("images", || images::run(&images::Options::default())),
    ("clippy", || {
        let args = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        process::run(&mut process::cargo(&args))
    }),
    ("test", || process::run(&mut process::cargo(&["test", "--workspace"]))),
];

/// Runs all phases.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let mut times = Vec::new();
    for (name, phase) in PHASES {
        if options.fast && *name == "images" {
            continue;
        }
        println!("==> {name}");
        let start = Instant::now();
        let outcome = phase();
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
