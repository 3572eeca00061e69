//! The rules of the house, as far as a machine can read them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::manifest::repository;

/// Longest file. A longer one cannot be read in one go.
const MAX_LINES: usize = 800;

/// What decides, keeps and drives a repair run, and its most lines without comments and tests. What
/// else is to be done belongs into a step, the setup or the rig.
const LOOP: &[&str] = &["machine/", "journal/", "run.rs", "drive.rs"];
const LOOP_LINES: usize = 1000;

/// Longest README. It leads to the pages that have the rest.
const README_LINES: usize = 200;

/// The crates that each crate may import; tests of a crate obey the same rule.
const EDGES: &[(&str, &[&str])] = &[
    (
        "jig",
        &[
            "jig-agents",
            "jig-drivers",
            "jig-knowledge",
            "jig-lab",
            "jig-model",
            "jig-operator",
            "jig-probe",
            "jig-repair",
            "jig-rig",
            "jig-service",
        ],
    ),
    ("jig-agents", &["jig-model"]),
    ("jig-bench", &["jig-drivers", "jig-model", "jig-probe", "jig-repair", "jig-rig", "xtask"]),
    ("jig-drivers", &["jig-model"]),
    ("jig-knowledge", &["jig-model"]),
    ("jig-lab", &["jig-drivers", "jig-knowledge", "jig-model", "jig-probe", "jig-rig"]),
    ("jig-model", &[]),
    ("jig-operator", &["jig-agents", "jig-model"]),
    ("jig-probe", &["jig-drivers", "jig-model"]),
    ("jig-repair", &["jig-agents", "jig-model"]),
    ("jig-rig", &["jig-model"]),
    ("jig-service", &["jig-drivers", "jig-lab", "jig-model", "jig-rig"]),
    ("xtask", &["jig-model"]),
];

/// Crates that the model must not see: it has no I/O, no clock and no environment.
const NOT_IN_THE_MODEL: &[&str] = &["nix", "tempfile", "tokio", "tracing"];

/// What would bring them in by the standard library.
const IMPURE: &[&str] =
    &["std::env", "std::fs", "std::net", "std::process", "std::thread", "Instant", "::now("];

/// The top of the repository, beside dot-files and licences.
const TOP: &[&str] = &[
    "Cargo.lock",
    "Cargo.toml",
    "README.md",
    "board-profiles",
    "controller",
    "firmware-fixtures",
    "qemu-images",
    "tests",
];

/// Lists what git keeps and what it does not know yet, as paths from the top.
fn files() -> Vec<PathBuf> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = git.current_dir(repository()).output();
    if let Ok(output) = output
        && output.status.success()
    {
        let text = String::from_utf8(output.stdout).unwrap();
        let all = text.split_terminator('\0').map(PathBuf::from);
        // A file that was removed and not yet committed is still listed.
        return all.filter(|path| repository().join(path).exists()).collect();
    }
    // An unpacked archive has no history; then everything but what is built counts.
    let mut found = Vec::new();
    walk(Path::new(""), &mut found);
    found
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(repository().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = folder.join(entry.file_name());
        let ours = !["target", ".git", ".jig", ".build"].iter().any(|name| path.ends_with(name));
        match entry.file_type().unwrap().is_dir() {
            true if ours => walk(&path, found),
            true => {}
            false => found.push(path),
        }
    }
}

fn sources() -> Vec<(PathBuf, String)> {
    let rust = files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs"));
    let all: Vec<_> = rust.map(|path| (path.clone(), read(&path))).collect();
    assert!(all.len() > 100, "only {} source files were found", all.len());
    all
}

fn read(path: &Path) -> String {
    fs::read_to_string(repository().join(path))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn nothing_wrong(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} against the rule:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn crates_import_only_what_they_may() {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for path in files().iter().filter(|path| path.ends_with("Cargo.toml")) {
        let manifest: toml::Table = read(path).parse().unwrap();
        let name = manifest["package"]["name"].as_str().unwrap().to_owned();
        let allowed = EDGES.iter().find(|(krate, _)| *krate == name).map(|(_, allowed)| *allowed);
        let Some(allowed) = allowed else {
            wrong.push(format!("{}: {name} has no rule in {}", path.display(), file!()));
            continue;
        };
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let dependencies = manifest.get(kind).and_then(|table| table.as_table());
            for (dependency, how) in dependencies.into_iter().flatten() {
                let ours = dependency.starts_with("jig") || dependency == "xtask";
                if ours && !allowed.contains(&dependency.as_str()) {
                    wrong.push(format!("{name} may not import {dependency}"));
                }
                if name == "jig-model" && NOT_IN_THE_MODEL.contains(&dependency.as_str()) {
                    wrong.push(format!("{name} is pure and may not import {dependency}"));
                }
                if how.get("workspace").and_then(toml::Value::as_bool) != Some(true) {
                    wrong.push(format!("{name}: say `{dependency}.workspace = true`"));
                }
            }
        }
        seen.insert(name);
    }
    let ruled: BTreeSet<_> = EDGES.iter().map(|(krate, _)| (*krate).to_owned()).collect();
    assert_eq!(seen, ruled, "crates that there are, and crates that have a rule");
    nothing_wrong(&wrong);
}

#[test]
fn the_model_is_pure() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        if !path.starts_with("controller/model") || is_test(&path) {
            continue;
        }
        for (number, line) in (1..).zip(without_tests(&text).lines()) {
            for word in IMPURE.iter().filter(|word| line.contains(**word)) {
                wrong.push(format!("{}:{number}: {word}: {line}", path.display()));
            }
        }
    }
    nothing_wrong(&wrong);
}

#[test]
fn no_code_knows_a_board() {
    let profiles = fs::read_dir(repository().join("board-profiles")).unwrap();
    let boards: Vec<String> = profiles
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert!(boards.len() >= 10, "{boards:?}");
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        if is_test(&path) {
            continue;
        }
        for (number, line) in (1..).zip(without_tests(&text).lines()) {
            for board in boards.iter().filter(|board| names(line, board)) {
                wrong.push(format!("{}:{number}: {board}: {line}", path.display()));
            }
        }
    }
    nothing_wrong(&wrong);
}

/// Profiles describe boards for any firmware: a pattern that only the fixtures of this repository
/// print would make their tests pass and do nothing for a user.
#[test]
fn profiles_hold_no_text_of_fixtures() {
    let fixtures = fs::read_dir(repository().join("firmware-fixtures")).unwrap();
    let names: Vec<String> = fixtures
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("fixture.toml").exists())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name.contains('-'))
        .collect();
    assert!(names.len() >= 40, "{names:?}");
    let mut wrong = Vec::new();
    for path in files().iter().filter(|path| path.starts_with("board-profiles")) {
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        for (number, line) in (1..).zip(read(path).lines()) {
            // Features have names of fixtures, too; patterns are the strings in single quotes.
            let pattern = line.split_once('\'').map_or("", |(_, pattern)| pattern);
            if line.contains("fixture") || names.iter().any(|name| pattern.contains(name)) {
                wrong.push(format!("{}:{number}: {line}", path.display()));
            }
        }
    }
    nothing_wrong(&wrong);
}

/// Tells whether a file holds nothing but tests.
fn is_test(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
    path.iter().any(|part| part == "tests") || stem == "tests" || stem.ends_with("_tests")
}

/// Cuts off a file's tests, which stand at its end.
fn without_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests {").map_or(text, |at| &text[..at])
}

/// Tells whether a line names a board, and not only a longer word that holds the name.
fn names(line: &str, board: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    line.match_indices(board).any(|(at, _)| {
        !line[..at].ends_with(inside) && !line[at + board.len()..].starts_with(inside)
    })
}

/// Returns the type that a line of a module declares for other modules.
fn declared_type(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) "))?;
    let kinds = ["struct ", "enum ", "trait ", "type "];
    let name = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

#[test]
fn a_type_name_is_declared_once() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in sources() {
        let tests = is_test(&path) || path.iter().any(|part| part == "examples");
        if tests || !path.starts_with("controller") {
            continue;
        }
        for (number, line) in (1..).zip(without_tests(&text).lines()) {
            if let Some(name) = declared_type(line) {
                let place = format!("{}:{number}", path.display());
                found.entry(name.to_owned()).or_default().push(place);
            }
        }
    }
    assert!(found.len() > 500, "only {} types were found", found.len());
    found.retain(|_, places| places.len() > 1);
    let wrong: Vec<_> =
        found.iter().map(|(name, at)| format!("{name}: {}", at.join(", "))).collect();
    nothing_wrong(&wrong);
}

#[test]
fn files_are_short_and_say_what_they_own() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let lines = text.lines().count();
        if lines > MAX_LINES {
            wrong.push(format!("{}: {lines} lines, {MAX_LINES} at most", path.display()));
        }
        if !text.starts_with("//!") {
            wrong.push(format!("{}: begin with `//!` and what the module owns", path.display()));
        }
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim() == concat!("#[", "ignore]") {
                wrong.push(format!("{}:{number}: ignored without a reason", path.display()));
            }
        }
    }
    nothing_wrong(&wrong);
}

#[test]
fn the_repair_loop_stays_thin() {
    let mut found = BTreeMap::new();
    for (path, text) in sources() {
        let Ok(inner) = path.strip_prefix("controller/repair/src") else { continue };
        let inner = inner.to_string_lossy();
        if is_test(&path) || !LOOP.iter().any(|part| inner.starts_with(part)) {
            continue;
        }
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        found.insert(inner.into_owned(), without_tests(&text).lines().filter(is_code).count());
    }
    assert!(found.len() > 8, "only {} files were found", found.len());
    let all: usize = found.values().sum();
    assert!(all < LOOP_LINES, "{all} lines, fewer than {LOOP_LINES} wanted: {found:#?}");
}

#[test]
fn the_readme_is_short_and_links_between_documents_resolve() {
    let mut wrong = Vec::new();
    let lines = read(Path::new("README.md")).lines().count();
    if lines > README_LINES {
        wrong.push(format!("README.md: {lines} lines, {README_LINES} at most"));
    }
    for path in files().iter().filter(|path| path.extension().is_some_and(|e| e == "md")) {
        let folder = repository().join(path.parent().unwrap());
        for (number, line) in (1..).zip(read(path).lines()) {
            let links = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            for (link, _) in links.filter(|(link, _)| !link.contains("://")) {
                let file = link.split('#').next().unwrap_or_default();
                if !file.is_empty() && !folder.join(file).exists() {
                    wrong.push(format!("{}:{number}: there is no {link}", path.display()));
                }
            }
        }
    }
    nothing_wrong(&wrong);
}

#[test]
fn the_top_holds_only_what_was_agreed() {
    let tops: BTreeSet<String> = files()
        .iter()
        .filter_map(|path| Some(path.iter().next()?.to_str()?.to_owned()))
        .filter(|name| !name.starts_with('.') && !name.starts_with("LICENSE"))
        .collect();
    let agreed: BTreeSet<String> = TOP.iter().map(|&name| name.to_owned()).collect();
    let others: Vec<_> = tops.difference(&agreed).collect();
    assert!(others.is_empty(), "nobody agreed on {others:?} at the top");
}

#[test]
fn no_file_knows_where_it_was_written() {
    // Put together here, so that this file does not find itself.
    let mut marks: Vec<String> =
        ["home", "root", "Users", "work"].iter().map(|name| format!("/{name}/")).collect();
    marks.push(format!("{}/", repository().display()));
    let mut wrong = Vec::new();
    for path in files() {
        // Binaries are no text.
        let Ok(text) = fs::read_to_string(repository().join(&path)) else { continue };
        for (number, line) in (1..).zip(text.lines()) {
            let absolute = |mark: &String| {
                line.match_indices(mark.as_str()).any(|(at, _)| {
                    // Part of a longer path or of an address is another thing.
                    !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-/}".contains(c))
                })
            };
            if marks.iter().any(absolute) {
                wrong.push(format!("{}:{number}: {line}", path.display()));
            }
        }
    }
    nothing_wrong(&wrong);
}

#[test]
fn every_integration_test_is_part_of_the_binary() {
    let main = read(Path::new("tests/it/main.rs"));
    let mut missing: BTreeMap<PathBuf, String> = BTreeMap::new();
    for path in files() {
        let inside = path.starts_with("tests/it") && path.extension().is_some_and(|e| e == "rs");
        let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default().to_owned();
        if inside && stem != "main" && !main.contains(&format!("mod {stem};")) {
            missing.insert(path, stem);
        }
    }
    assert!(missing.is_empty(), "not named in tests/it/main.rs: {missing:?}");
}
