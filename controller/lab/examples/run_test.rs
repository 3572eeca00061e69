//! Runs a test plan on a place of this host's rig and prints the verdict:
//! `cargo run -p jig-lab --example run_test -- PLACE PLAN [IMAGE]`

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jig_lab::{Lab, LabConfig};
use jig_model::Verdict;
use jig_model::command::{
    Command, CommandEvent, EventSink, PlanText, Reply, RunOptions, TestCommand,
};
use jig_rig::workflow::CancelToken;

struct Print;

impl EventSink for Print {
    fn event(&self, event: CommandEvent) {
        if let CommandEvent::RunBegan { dir, .. } = event {
            println!("recorded in {}", dir.display());
        }
    }
}

/// Runs a test plan; what went wrong on the board is in the verdict.
pub async fn run_test(
    config: &LabConfig,
    place: &str,
    plan: &Path,
    image: Option<PathBuf>,
) -> Result<Verdict, Box<dyn Error>> {
    let (origin, text) = (plan.display().to_string(), std::fs::read_to_string(plan)?);
    let (plan, options) = (PlanText { origin, text }, RunOptions::default());
    let command = Command::Test(TestCommand { place: place.parse()?, plan, image, options });
    let reply = Lab::open(config)?.execute(command, Arc::new(Print), CancelToken::new()).await?;
    let Reply::Run(run) = reply else { return Err("the answer does not fit the command".into()) };
    Ok(run.verdict)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(place), Some(plan)) = (args.next(), args.next()) else {
        return Err("usage: run_test PLACE PLAN [IMAGE]".into());
    };
    let image = args.next().map(PathBuf::from);
    let verdict = run_test(&LabConfig::default(), &place, Path::new(&plan), image).await?;
    println!("{}: {}", verdict.kind, verdict.summary);
    Ok(())
}
