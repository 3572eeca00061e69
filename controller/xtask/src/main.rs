//! `cargo xtask`: the tasks of this repository.
//!
//! This binary owns setting up a machine, building what is never committed (images) and running
//! the whole test set. It refuses to contain anything `jig` needs at run time.
#![expect(clippy::print_stdout, reason = "a chore talks to the person who started it")]
#![expect(clippy::print_stderr, reason = "a chore talks to the person who started it")]

mod apt;
mod bare_root;
mod demo;
mod dist;
mod images;
mod integration;
mod package;
mod packages;
mod services;
mod setup;
mod simulators;
mod test_command;

use std::process::ExitCode;

use apt::Conflicts;
use clap::{Parser, Subcommand};
use packages::Task;
use xtask::failure::TaskFailure;
use xtask::{fixtures, process};

/// Sets up, builds, demonstrates and tests Jig.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Installs the Debian packages and the simulators that building and testing need.
    Setup(Conflicts),
    /// Shows Jig against emulated boards, good firmware and bad; installs and builds only what
    /// that takes.
    Demo(Conflicts),
    /// Builds the program to hand on, with its line tables in a file apart.
    Dist,
    /// Builds the Debian package, which starts and enables nothing, and checks it with lintian.
    Package(package::PackageOptions),
    /// Measures what Jig costs beside the least that the same job could cost.
    #[command(disable_help_flag = true)]
    Bench {
        /// Options of the bench; `cargo xtask bench --help` lists them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Sets up, builds fixtures and images, checks style, and runs every test.
    Test(test_command::TestOptions),
    /// Builds the small firmwares for every board they fit.
    Fixtures(fixtures::FixtureChoice),
    /// Builds the Linux images that emulated machines boot.
    Images(images::ImageOptions),
}

fn main() -> ExitCode {
    let outcome = match Args::parse().chore {
        Chore::Setup(conflicts) => setup_for_tests(conflicts),
        Chore::Demo(conflicts) => demo::run(conflicts),
        Chore::Dist => dist::run(),
        Chore::Package(options) => package::run(&options),
        Chore::Bench { options } => bench(&options),
        Chore::Test(options) => test_command::run(&options),
        Chore::Fixtures(choice) => fixtures::run(&choice),
        Chore::Images(options) => images::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {}", failure.chain());
            ExitCode::from(failure.exit_code())
        }
    }
}

fn setup_for_tests(conflicts: Conflicts) -> Result<(), TaskFailure> {
    setup::run(Task::Test, conflicts)?;
    simulators::install()
}

/// Runs the bench, a program of its own because it needs crates of the house.
fn bench(options: &[String]) -> Result<(), TaskFailure> {
    let mut command = process::cargo(&["run", "--quiet", "--package", "jig-bench", "--"]);
    process::run(command.args(options))
}
