//! The commands that need no board.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::manifest::{elf, repository};
use crate::workshop::{Slot, Workshop, name_of};

#[test]
fn boards_are_listed() {
    let workshop = Workshop::new();
    let text = workshop.run(["boards"]);
    text.says(0, &[]);
    let json = workshop.run(["boards", "--json"]).json().unwrap();
    let names = |list: &str, key: &str| -> BTreeSet<String> {
        let list = json[list].as_array().unwrap().iter();
        list.map(|board| board[key].as_str().unwrap().to_owned()).collect()
    };
    let profiles = fs::read_dir(repository().join("board-profiles")).unwrap();
    let profiles = profiles.map(|entry| entry.unwrap().path());
    let profiles = profiles.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    let profiles: Vec<_> = profiles.collect();
    let is_emulated =
        |path: &&PathBuf| fs::read_to_string(path).unwrap().contains("\n[emulation]\n");
    let emulated: Vec<_> = profiles.iter().filter(is_emulated).cloned().collect();
    let ids = |paths: &[PathBuf]| -> BTreeSet<String> {
        paths.iter().map(|path| name_of(path).trim_end_matches(".toml").to_owned()).collect()
    };
    assert_eq!(names("places", "name"), ids(&emulated), "every emulated board is a place");
    assert_eq!(names("profiles", "id"), ids(&profiles), "every board is known");
    assert!(ids(&profiles).iter().all(|id| text.out().contains(id)), "{text}");
}

#[test]
fn profiles_are_checked_and_shown() {
    let workshop = Workshop::new();
    let folder = repository().join("board-profiles");
    let profiles: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    let args = ["profile".into(), "check".into()].into_iter();
    workshop.run(args.chain(profiles.iter().cloned())).says(0, &[]);
    let good = fs::read_to_string(folder.join("microbit.toml")).unwrap();
    let bad = good.replace("arch = \"arm\"", "arhc = \"arm\"");
    assert_ne!(good, bad);
    workshop.write("microbit.toml", bad);
    let ran = workshop.run(["profile", "check", "microbit.toml"]);
    ran.says(
        3,
        &["unknown key `arhc`", "microbit.toml:", "did you mean `arch`?", "`arch` is missing"],
    );
    workshop.run(["profile", "check", "missing.toml"]).says(2, &["missing.toml"]);
    let shown = workshop.run(["profile", "show", "microbit"]);
    assert!(shown.out().contains("BBC micro:bit"), "{shown}");
}

#[test]
fn plans_are_checked() {
    let workshop = Workshop::new();
    let fixtures = fs::read_dir(repository().join("firmware-fixtures")).unwrap();
    let plans: Vec<_> = fixtures
        .map(|entry| entry.unwrap().path().join("plan.toml"))
        .filter(|path| path.is_file())
        .collect();
    assert!(!plans.is_empty());
    let args = ["plan".into(), "check".into()].into_iter();
    let ran = workshop.run(args.chain(plans.iter().cloned()));
    ran.says(0, &[]);
    assert_eq!(ran.out().lines().count(), plans.len(), "{ran}");
}

#[test]
fn past_runs_are_listed_shown_packed_and_removed() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    workshop.run(["runs"]).says(0, &[]);
    workshop.run(["run", "-b", "microbit", &elf("microbit", "unity-fail")]).says(1, &[]);
    let id = name_of(&workshop.run_dirs()[0]).to_owned();

    for args in [&["runs"][..], &["runs", "list"]] {
        let list = workshop.run(args);
        assert!(list.out().contains(&id) && list.out().contains("test_failed"), "{list}");
    }
    let list = workshop.run(["runs", "list", "--json"]).json().unwrap();
    assert_eq!(list["runs"][0]["id"], *id);
    for run in ["last", &id, &id[..17]] {
        let shown = workshop.run(["runs", "show", run]);
        shown.says(0, &[]);
        assert!(shown.out().contains(&id), "{shown}");
    }
    let record = workshop.run(["runs", "show", "--json"]).json().unwrap();
    assert_eq!(record["record"]["exit_code"], 1);
    let log = workshop.run(["runs", "log"]);
    log.says(0, &[]);
    assert!(log.out().contains("test_settles") || log.out().contains("FAIL"), "{log}");

    workshop.run(["runs", "export", "-o", "run.tar.gz"]).says(0, &[]);
    let packed = fs::read(workshop.path("run.tar.gz")).unwrap();
    assert!(packed.starts_with(&[0x1f, 0x8b]), "a gzip file");
    let piped = workshop.run(["runs", "export", "-o", "-"]);
    assert!(piped.stdout.starts_with(&[0x1f, 0x8b]), "{piped}");

    workshop.run(["runs", "prune", "--keep-days", "1"]).says(0, &[]);
    assert_eq!(workshop.run_dirs().len(), 1, "it is younger");
    workshop.run(["runs", "prune", "--keep-size", "1"]).says(0, &[]);
    assert!(workshop.run_dirs().is_empty());
    workshop.run(["runs", "show"]).says(2, &["no runs yet"]);
}

#[test]
fn the_doctor_reports_as_json() {
    let workshop = Workshop::new();
    let ran = workshop.run(["doctor", "--json"]);
    let report = ran.json().unwrap();
    let checks = report["checks"].as_array().unwrap();
    assert!(
        checks.iter().any(|check| check["check"] == "qemu-system-arm" && check["level"] == "ok"),
        "{ran}"
    );
    assert!(checks.iter().all(|check| check["level"].is_string()), "{ran}");
    assert!(workshop.run_dirs().is_empty(), "it only looks");
}

#[test]
fn the_workflow_machine_is_the_conformance_table() {
    let workshop = Workshop::new();
    let table = fs::read(repository().join("tests/conformance/workflow-transitions.csv")).unwrap();
    let csv = workshop.run(["machine", "workflow", "--format", "csv"]);
    assert_eq!(csv.out(), String::from_utf8_lossy(&table));
    let mermaid = workshop.run(["machine", "workflow"]);
    assert!(mermaid.out().starts_with("stateDiagram-v2"), "{mermaid}");
    workshop.run(["machine", "workflow", "--format", "json"]).json().unwrap();
}

#[test]
fn completions_and_manuals_are_made() {
    let workshop = Workshop::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = workshop.run(["completions", shell]);
        ran.says(0, &[]);
        assert!(ran.out().contains("jig"), "{ran}");
    }
    workshop.run(["completions", "cobol"]).says(2, &["cobol"]);
    workshop.run(["man", "manuals"]).says(0, &[]);
    let pages = fs::read_dir(workshop.path("manuals")).unwrap().map(|page| page.unwrap().path());
    let pages: Vec<_> = pages.collect();
    assert!(pages.iter().any(|page| name_of(page) == "jig-run.1"), "{pages:?}");
    for page in pages {
        assert!(fs::read_to_string(&page).unwrap().contains(".TH"), "{}", page.display());
    }
}

#[test]
fn help_tells_the_exit_codes() {
    let workshop = Workshop::new();
    let help = workshop.run(["--help"]);
    help.says(0, &[]);
    for code in ["0", "1", "2", "3", "4", "5", "70", "75", "130"] {
        let told = help.out().split_whitespace().any(|word| word == code);
        assert!(told, "exit code {code} is not in the help: {help}");
    }
    assert!(workshop.run(["--version"]).out().starts_with("jig "));
}

#[test]
fn the_readme_has_the_exit_codes_that_there_are() {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let table = readme.split("## Exit codes").nth(1).expect("the README has a part on exit codes");
    let told: Vec<u8> = table
        .lines()
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" |")?.0.parse().ok())
        .collect();
    let there_are: Vec<u8> = jig_model::exit::ALL.iter().map(|(code, _)| *code).collect();
    assert_eq!(told, there_are);
}
