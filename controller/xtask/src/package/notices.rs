//! Names, licences and notices of the libraries that are part of the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use xtask::failure::TaskFailure;
use xtask::process;
use xtask::project::listed;

/// Beginnings of the names of files that hold licences and notices.
const NOTICES: &[&str] = &["license", "licence", "copying", "copyright", "notice", "unlicense"];

/// What cargo says of all packages, as far as it matters here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Crate>,
}

/// A library.
#[derive(Deserialize)]
struct Crate {
    name: String,
    version: String,
    license: Option<String>,
    repository: Option<String>,
    source: Option<String>,
    manifest_path: PathBuf,
}

/// Lists the libraries of the program, then each notice once, with the libraries that it is of.
pub(super) fn text() -> Result<String, TaskFailure> {
    let linked = linked()?;
    let about = process::capture(&mut process::cargo(&["metadata", "--format-version", "1"]))?;
    let about: Metadata = serde_json::from_slice(&about).map_err(|error| {
        TaskFailure::Because(format!("cargo metadata is not understood: {error}"))
    })?;
    let is_part = |library: &&Crate| {
        library.source.is_some()
            && linked.contains(&format!("{} v{}", library.name, library.version))
    };
    let mut libraries: Vec<&Crate> = about.packages.iter().filter(is_part).collect();
    libraries.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    if libraries.len() < 50 {
        let words = format!("only {} libraries were found in the program", libraries.len());
        return Err(TaskFailure::Because(words));
    }
    let mut text = String::from("Libraries that are part of jig\n\n");
    let mut notices: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for library in libraries {
        let name = format!("{} {}", library.name, library.version);
        let licence = library.license.as_deref().unwrap_or("see its notice");
        let from = library.repository.as_deref().unwrap_or("crates.io");
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name}: {licence}; {from}");
        for notice in notices_of(&library.manifest_path)? {
            notices.entry(notice).or_default().push(name.clone());
        }
    }
    for (notice, names) in notices {
        let _ = write!(text, "\n\n---- {}\n\n{}\n", names.join(", "), notice.trim());
    }
    Ok(text)
}

/// Returns name and version of each package that the program is linked from.
fn linked() -> Result<BTreeSet<String>, TaskFailure> {
    let args =
        ["tree", "--package", "jig", "--edges", "normal", "--prefix", "none", "--format", "{p}"];
    let tree = process::capture(&mut process::cargo(&args))?;
    let name = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    Ok(String::from_utf8_lossy(&tree).lines().map(name).collect())
}

/// Reads the notices beside a manifest.
fn notices_of(manifest: &Path) -> Result<Vec<String>, TaskFailure> {
    let folder = manifest.parent().unwrap_or(Path::new("."));
    let is_notice = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        path.is_file() && NOTICES.iter().any(|start| name.starts_with(start))
    };
    let read = |path: PathBuf| fs::read(&path).map_err(TaskFailure::io("read", &path));
    let notices = listed(folder)?.into_iter().filter(is_notice).map(read);
    notices.map(|notice| Ok(String::from_utf8_lossy(&notice?).into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_the_program_are_listed_with_their_notices() {
        let text = text().unwrap();
        let line = text.lines().find(|line| line.starts_with("tokio 1.")).unwrap();
        assert!(line.contains(": MIT; https://"), "{line}");
        let (list, notices) = text.split_once("\n---- ").unwrap();
        assert!(notices.contains("Permission is hereby granted"));
        // For tests alone, and our own.
        assert!(!list.contains("\nproptest ") && !list.contains("\njig"), "{list}");
    }
}
