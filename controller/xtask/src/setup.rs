//! `cargo xtask setup`: makes a Debian host able to build and test this repository.
//!
//! A host that has everything is recognised by looking at files alone; apt is only started when
//! something is missing. This module removes nothing unless the user said so, and it never starts a
//! service or lets one start at boot.

use xtask::failure::TaskFailure;
use xtask::process;

use crate::apt::{self, Conflicts, Root};
use crate::packages::{self, Package, Task};
use crate::services;

/// Installs what a task needs and this host lacks.
pub(crate) fn run(task: Task, conflicts: Conflicts) -> Result<(), TaskFailure> {
    let packages = packages::needed_for(task)?;
    let absent = missing(&packages);
    if absent.is_empty() {
        finish_interrupted()?;
        println!("setup: all {} packages are here", packages.len());
        return Ok(());
    }
    println!("setup: {} of {} packages are missing", absent.len(), packages.len());
    for (package, proof) in &absent {
        println!("  {:<24} {} ({proof} not found)", package.name, package.purpose);
    }
    let names: Vec<&str> = absent.iter().map(|(package, _)| package.name.as_str()).collect();
    install(&names, conflicts)?;
    match missing(&packages).first() {
        None => Ok(()),
        Some((package, proof)) => Err(TaskFailure::Because(format!(
            "{} is installed but {proof} is still missing; try `apt-get install --reinstall {}`",
            package.name, package.name
        ))),
    }
}

fn missing(packages: &[Package]) -> Vec<(&Package, &str)> {
    packages.iter().filter_map(|package| Some((package, package.missing_proof()?))).collect()
}

/// Disables the services that a set-up had installed when it was killed.
fn finish_interrupted() -> Result<(), TaskFailure> {
    match (services::left_behind().is_empty(), Root::find()) {
        (true, _) | (false, None) => Ok(()),
        (false, Some(root)) => services::Quiet::begin(root, &[])?.end(),
    }
}

fn install(names: &[&str], conflicts: Conflicts) -> Result<(), TaskFailure> {
    let by_hand = apt::by_hand(names);
    if process::find_program("apt-get").is_none() {
        return Err(TaskFailure::Because(format!(
            "this host has no apt-get, so it is not Debian or a relative; install these with its \
             own package tool, on Debian it would be\n  {by_hand}"
        )));
    }
    let Some(root) = Root::find() else {
        return Err(TaskFailure::Because(format!(
            "installing needs root, and there is no sudo here; as root, run\n  {by_hand}"
        )));
    };
    let update = apt::update(root);
    if update.is_err() {
        println!("setup: apt-get update had trouble; trying with the lists that are here");
    }
    let explain = |failure: TaskFailure, update: Result<(), TaskFailure>| {
        let failure = update.err().unwrap_or(failure);
        TaskFailure::Because(format!(
            "{failure}\nthe packages could not be installed (see above; no network, or no right to \
             use sudo?). Run this again when that is solved, or as root\n  {by_hand}\nIf a newer \
             package is in the way, add -t SUITE, where SUITE is what it came from: apt-cache \
             policy PACKAGE"
        ))
    };
    let plan = match apt::plan(root, names) {
        Ok(plan) => plan,
        Err(failure) => {
            // Apt finds no way, and prints which package is in the way of which.
            let refused = apt::install(root, names, conflicts).err().unwrap_or(failure);
            return Err(explain(refused, update));
        }
    };
    if !plan.removed.is_empty() {
        if !conflicts.remove_conflicting {
            return Err(apt::conflict(&plan.removed, names));
        }
        println!("setup: removing, because they conflict: {}", plan.removed.join(" "));
    }
    println!("setup: installing {} packages: {}", plan.new.len(), plan.new.join(" "));
    if !plan.upgraded.is_empty() {
        println!("setup: upgrading, because these need it: {}", plan.upgraded.join(" "));
    }
    // What comes only as a dependency keeps Debian's own choice: a library's helper is not ours.
    let ours: Vec<&str> =
        names.iter().copied().filter(|name| plan.new.iter().any(|new| new == name)).collect();
    let quiet = services::Quiet::begin(root, &ours)?;
    let installed = apt::install(root, names, conflicts);
    quiet.end()?;
    installed.map_err(|failure| explain(failure, update))
}
