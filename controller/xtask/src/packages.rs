//! The Debian packages that this repository needs, read from `packages.toml`, and which task needs
//! which.

use std::path::Path;

use serde::Deserialize;
use xtask::failure::TaskFailure;
use xtask::process;

const PACKAGES: &str = include_str!("../packages.toml");

/// What packages are needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Task {
    /// The demonstration.
    Demo,
    /// Building everything and running every test.
    Test,
    /// Building the Debian package and checking it.
    Package,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackageList {
    package: Vec<Package>,
}

/// One Debian package and how to see that it is there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) purpose: String,
    #[serde(rename = "for")]
    tasks: Vec<Task>,
    proof: Vec<String>,
}

impl Package {
    /// Returns the first file or program of the package that is not on this host.
    pub(crate) fn missing_proof(&self) -> Option<&str> {
        let present = |proof: &str| match proof.starts_with('/') {
            true => Path::new(proof).exists(),
            false => process::find_program(proof).is_some(),
        };
        self.proof.iter().map(String::as_str).find(|proof| !present(proof))
    }
}

/// Returns the packages that a task needs.
pub(crate) fn needed_for(task: Task) -> Result<Vec<Package>, TaskFailure> {
    let mut packages = all()?;
    packages.retain(|package| package.tasks.contains(&task));
    Ok(packages)
}

fn all() -> Result<Vec<Package>, TaskFailure> {
    toml::from_str::<PackageList>(PACKAGES).map(|list| list.package).map_err(|error| {
        TaskFailure::Recipe {
            path: "controller/xtask/packages.toml".into(),
            source: Box::new(error),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(task: Task) -> Vec<String> {
        needed_for(task).unwrap().into_iter().map(|package| package.name).collect()
    }

    #[test]
    fn the_list_parses_and_every_entry_can_be_checked() {
        let packages = all().unwrap();
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
    fn each_task_needs_its_own_packages() {
        let checks_packages = |package: &Package| package.tasks == [Task::Package];
        let others = all().unwrap().into_iter().filter(|package| !checks_packages(package));
        assert_eq!(names(Task::Test).len(), others.count());
        assert_eq!(names(Task::Package), ["libssl-dev", "pkg-config", "dpkg-dev", "lintian"]);
        assert_eq!(
            names(Task::Demo),
            ["qemu-system-arm", "gcc-arm-none-eabi", "libssl-dev", "pkg-config", "git", "make"]
        );
    }

    #[test]
    fn a_package_is_missing_when_any_proof_is() {
        let with = |proof: &[&str]| Package {
            name: "x".into(),
            purpose: "y".into(),
            tasks: vec![Task::Test],
            proof: proof.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(with(&["sh", "/proc/self"]).missing_proof(), None);
        assert_eq!(with(&["sh", "/no/such/file"]).missing_proof(), Some("/no/such/file"));
        assert_eq!(with(&["no-such-program", "sh"]).missing_proof(), Some("no-such-program"));
    }
}
