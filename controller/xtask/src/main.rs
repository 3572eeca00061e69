//! `cargo xtask`: the chores of this repository, so that nobody needs a wiki page.
//!
//! This binary owns setting up a machine, building what is never committed (images) and running
//! the whole test set. It refuses to contain anything `jig` needs at run time.
#![expect(clippy::print_stdout, reason = "a chore talks to the person who started it")]
#![expect(clippy::print_stderr, reason = "a chore talks to the person who started it")]

mod bench;
mod counterparts;
mod demo;
mod failure;
mod fixtures;
mod images;
mod process;
mod python;
mod services;
mod setup;
mod test_command;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Sets up, builds, demonstrates and tests Jig.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Installs the Debian packages this repository needs, and the tests' counterparts, if any
    /// is missing.
    Setup,
    /// Sets up, builds, and runs Jig against emulated boards, good firmware and bad.
    Demo,
    /// Measures what Jig costs beside the least that the same job could cost.
    Bench(bench::Options),
    /// Sets up, builds fixtures and images, checks style, and runs every test.
    Test(test_command::Options),
    /// Builds the small firmwares for every board they fit.
    Fixtures(fixtures::Choice),
    /// Builds the Linux images that emulated machines boot.
    Images(images::Options),
}

fn main() -> ExitCode {
    let outcome = match Args::parse().chore {
        Chore::Setup => setup::run().and_then(|()| counterparts::install()),
        Chore::Demo => demo::run(),
        Chore::Bench(options) => bench::run(&options),
        Chore::Test(options) => test_command::run(&options),
        Chore::Fixtures(choice) => fixtures::run(&choice),
        Chore::Images(options) => images::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {}", jig_model::chain(&failure));
            ExitCode::from(failure.exit_code())
        }
    }
}
