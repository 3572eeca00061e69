//! House chores: what builds, checks and shows the project, beyond what cargo does itself.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints")]

use std::process::ExitCode;

mod fixtures;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args.split_first() {
        Some((chore, rest)) if chore == "fixtures" => fixtures::run(rest),
        _ => Err("usage: cargo xtask fixtures [--list] [--board ID] [--fixture NAME]".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
