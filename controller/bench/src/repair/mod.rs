//! `cargo xtask bench repair`: what the repair loop makes of firmware with one bug.
//!
//! Runs `jig repair` as a user would, on projects of this repository and on libraries of others, out of
//! which a fix of their authors is taken, or which a mutator puts bugs into. The agents need no model: one knows the right repair, one wants any success,
//! and the templates of the loop. Whether a success is one is found out again here, with a plan that no
//! run is given. Refuses to say anything of models.

mod agent;
mod fix;
mod library;
mod mutate;
mod project;
mod rig_fault;
mod shop;
mod table;
mod trial;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::report;
use super::setting::build;
use agent::BenchAgent;
use project::BenchProject;
use rig_fault::RigFaults;
use shop::RepairShop;
use table::{goals, markdown, misses};
use trial::RepairTrial;
use xtask::failure::TaskFailure;
use xtask::process;

/// What `cargo xtask bench repair` can be told.
#[derive(clap::Args)]
pub(crate) struct RepairOptions {
    /// Only this agent; may be said more than once.
    #[arg(long, value_enum)]
    agent: Vec<BenchAgent>,
    /// Only projects whose name contains this.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Seconds after which a run ends without a repair.
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    wall: u64,
    /// Where the random choice of bugs comes from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Makes each run a second time, with a random fault of the rig in it.
    #[arg(long)]
    inject: bool,
    /// Tries this program instead of building one.
    #[arg(long, value_name = "FILE")]
    jig: Option<PathBuf>,
    /// Leaves out runs whose result is known from an earlier bench.
    #[arg(long)]
    resume: bool,
}

/// Runs every project with every agent, prints the table and keeps the numbers: each as it comes in
/// `<target>/bench/repair.jsonl`, and all in a JSON file beside it.
///
/// # Errors
/// Something could not be tried, or a goal was missed.
pub(crate) fn run(options: &RepairOptions) -> Result<(), TaskFailure> {
    let target = process::target_dir();
    let jig = match &options.jig {
        Some(jig) => std::path::absolute(jig).map_err(TaskFailure::io("find", jig))?,
        None => {
            println!("repair: building");
            build(&["--bin", "jig"])?;
            target.join("release/jig")
        }
    };
    let folder = target.join("bench/repair");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(TaskFailure::io("remove", &folder))?;
    }
    fs::create_dir_all(&folder).map_err(TaskFailure::io("create", &folder))?;
    let known_path = target.join("bench/repair.jsonl");
    let before = report::load();
    println!("repair: load average {before}, {} processors", report::processors());
    let shop = RepairShop::new(jig, folder);
    let mut projects = project::written(&shop)?;
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(only));
    projects.extend(project::of_libraries(&shop, options.seed, wanted)?);
    projects.retain(|one| wanted(&one.name));
    let mut trials = if options.resume { known(&known_path)? } else { Vec::new() };
    if !options.resume && known_path.exists() {
        fs::remove_file(&known_path).map_err(TaskFailure::io("remove", &known_path))?;
    }
    tried(&shop, options, &projects, &known_path, &mut trials)?;
    let numbers = target.join(format!("bench/repair-{}.json", report::seconds()));
    let goals = goals(&trials);
    let document = json!({
        "format": "jig-bench-repair",
        "version": 1,
        "unix_time": report::seconds(),
        "seed": options.seed,
        "wall_s": options.wall,
        "processors": report::processors(),
        "load_before": before,
        "load_after": report::load(),
        "trials": trials,
        "goals": goals,
    });
    fs::write(&numbers, format!("{document:#}\n")).map_err(TaskFailure::io("write", &numbers))?;
    print!("\n{}\n{}", markdown(&trials), misses(&trials));
    println!(
        "\nload average {before} before, {} after; numbers: {}",
        report::load(),
        numbers.display()
    );
    let missed: Vec<_> =
        goals.iter().filter(|goal| !goal.met).map(|goal| goal.words.as_str()).collect();
    if missed.is_empty() {
        return Ok(());
    }
    Err(TaskFailure::Because(format!("goals were missed: {}", missed.join("; "))))
}

fn tried(
    shop: &RepairShop,
    options: &RepairOptions,
    projects: &[BenchProject],
    path: &Path,
    trials: &mut Vec<RepairTrial>,
) -> Result<(), TaskFailure> {
    let agents = BenchAgent::ALL
        .into_iter()
        .filter(|agent| options.agent.is_empty() || options.agent.contains(agent));
    let faults = if options.inject { RigFaults::of(shop, projects)? } else { RigFaults::default() };
    for agent in agents {
        for (project, fails) in projects.iter().flat_map(|one| [(one, false), (one, true)]) {
            let is_known = |one: &RepairTrial| {
                (one.agent, &one.project, one.fault.is_some()) == (agent, &project.name, fails)
            };
            if fails && !options.inject || trials.iter().any(is_known) {
                continue;
            }
            let name = format!("{} {}", project.name, agent.name());
            let fault =
                if fails { faults.at_random(options.seed, &project.board, &name) } else { None };
            let with = fault.as_ref().map(|one| format!(" and {one}")).unwrap_or_default();
            let trial = trial::run(shop, project, agent, options.wall, fault)?;
            println!(
                "repair: {} on {} with {}{with}: {:?} in {:.1} s: {}",
                project.name,
                project.board,
                agent.name(),
                trial.worth,
                trial.seconds,
                trial.why.lines().next().unwrap_or_default()
            );
            let mut line = serde_json::to_vec(&trial)
                .map_err(|error| TaskFailure::Because(error.to_string()))?;
            line.push(b'\n');
            let file = OpenOptions::new().create(true).append(true).open(path);
            file.and_then(|mut file| file.write_all(&line))
                .map_err(TaskFailure::io("write", path))?;
            trials.push(trial);
        }
    }
    Ok(())
}

/// Reads what an earlier bench found.
fn known(path: &Path) -> Result<Vec<RepairTrial>, TaskFailure> {
    let text = fs::read_to_string(path).map_err(TaskFailure::io("read", path))?;
    // The last line may be in pieces.
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}
