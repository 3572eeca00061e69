//! `cargo xtask setup`: makes a Debian host able to build and test this repository.
//!
//! The list of packages is data (`packages.toml`). A host that has everything is recognised by
//! looking at files alone; apt is only started when something is missing. This module refuses to
//! remove, upgrade or configure anything, or to start a service.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use crate::failure::Failure;
use crate::process;
use crate::services;

const PACKAGES: &str = include_str!("../packages.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackageList {
    package: Vec<Package>,
}

/// One Debian package and how to see that it is there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Package {
    name: String,
    purpose: String,
    proof: Vec<String>,
}

impl Package {
    fn missing_proof(&self) -> Option<&str> {
        let present = |proof: &str| match proof.starts_with('/') {
            true => Path::new(proof).exists(),
            false => process::find_program(proof).is_some(),
        };
        self.proof.iter().map(String::as_str).find(|proof| !present(proof))
    }
}

/// Installs what is missing.
pub(crate) fn run() -> Result<(), Failure> {
    let packages = packages()?;
    let absent = missing(&packages);
    if absent.is_empty() {
        println!("setup: all {} packages are here", packages.len());
        return Ok(());
    }
    println!("setup: {} of {} packages are missing", absent.len(), packages.len());
    for (package, proof) in &absent {
        println!("  {:<24} {} ({proof} not found)", package.name, package.purpose);
    }
    let names: Vec<&str> = absent.iter().map(|(package, _)| package.name.as_str()).collect();
    install(&names)?;
    match missing(&packages).first() {
        None => Ok(()),
        Some((package, proof)) => Err(Failure::Because(format!(
            "{} is installed but {proof} is still missing; try `apt-get install --reinstall {}`",
            package.name, package.name
        ))),
    }
}

fn packages() -> Result<Vec<Package>, Failure> {
    toml::from_str::<PackageList>(PACKAGES).map(|list| list.package).map_err(|error| {
        Failure::Recipe { path: "controller/xtask/packages.toml".into(), source: Box::new(error) }
    })
}

fn missing(packages: &[Package]) -> Vec<(&Package, &str)> {
    packages.iter().filter_map(|package| Some((package, package.missing_proof()?))).collect()
}

fn install(names: &[&str]) -> Result<(), Failure> {
    let by_hand =
        format!("apt-get update && apt-get install -y --no-install-recommends {}", names.join(" "));
    if process::find_program("apt-get").is_none() {
        return Err(Failure::Because(format!(
            "this host has no apt-get, so it is not Debian or a relative; install these with its \
             own package tool, on Debian it would be\n  {by_hand}"
        )));
    }
    let as_root = is_root();
    if !as_root && process::find_program("sudo").is_none() {
        return Err(Failure::Because(format!(
            "installing needs root, and there is no sudo here; as root, run\n  {by_hand}"
        )));
    }
    // An update may fail on one index of many (a mirror in mid-sync, a third party's repository)
    // and leave lists that are good enough. Whether they are, the installation shows.
    let update = process::run(&mut apt_get(as_root, &["update"]));
    if update.is_err() {
        println!("setup: apt-get update had trouble; trying with the lists that are here");
    }
    let mut args = vec!["install", "-y", "--no-install-recommends"];
    args.extend(names);
    let _denied = services::Denied::while_installing(match as_root {
        true => |program| Command::new(program),
        false => with_sudo,
    })?;
    process::run(&mut apt_get(as_root, &args)).map_err(|failure| {
        let failure = update.err().unwrap_or(failure);
        Failure::Because(format!(
            "{failure}\nthe packages could not be installed (see above; no network, or no right to \
             use sudo?). Once that is recovered, run this again, or as root\n  {by_hand}"
        ))
    })
}

fn apt_get(as_root: bool, args: &[&str]) -> Command {
    let mut command = match as_root {
        true => Command::new("apt-get"),
        // sudo drops the environment, so the variable travels as an argument of env.
        false => {
            let mut sudo = with_sudo("env");
            sudo.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]);
            sudo
        }
    };
    command.arg("-q").args(args).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn with_sudo(program: &str) -> Command {
    let mut sudo = Command::new("sudo");
    sudo.arg(program);
    sudo
}

fn is_root() -> bool {
    // The owner of our own process folder: no unsafe call and no crate for one number.
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_parses_and_every_entry_can_be_checked() {
        let packages = packages().unwrap();
        assert!(!packages.is_empty());
        for package in &packages {
            let debian =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
            assert!(package.name.chars().all(debian), "{}", package.name);
            assert!(!package.purpose.is_empty() && !package.proof.is_empty(), "{}", package.name);
        }
        let mut names: Vec<_> = packages.iter().map(|package| &package.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), packages.len(), "a package is listed twice");
    }

    #[test]
    fn a_package_is_missing_when_any_proof_is() {
        let with = |proof: &[&str]| Package {
            name: "x".into(),
            purpose: "y".into(),
            proof: proof.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(with(&["sh", "/proc/self"]).missing_proof(), None);
        assert_eq!(with(&["sh", "/no/such/file"]).missing_proof(), Some("/no/such/file"));
        assert_eq!(with(&["no-such-program", "sh"]).missing_proof(), Some("no-such-program"));
    }
}
