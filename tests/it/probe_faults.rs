//! Faults are explained: what and where, with the function and the line of the source.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use jig_model::post_mortem::PostMortem;
use serde_json::Value;

use crate::fixtures::{FAILS_LATE, watch_for_long};
use crate::manifest::{Entry, elf, entries, entry, repository};
use crate::workshop::{Slot, Workshop, ran};

const BOARDS: [&str; 3] = ["microbit", "mps2-an385", "netduinoplus2"];

/// What a fixture does wrong: the words for it, the function it happens in, and a text of the
/// line in its source. A function of all fixtures has no marker.
struct Wrong(&'static str, &'static str, &'static str, Option<&'static str>);

const WRONGS: [Wrong; 8] = [
    Wrong(
        "fault-bus",
        "HardFault: bus fault writing 0x60000000 in ",
        "fixture_main",
        Some("*nothing = 1;"),
    ),
    Wrong(
        "fault-null-call",
        "HardFault: call of a null pointer in ",
        "fixture_main",
        Some("callback();"),
    ),
    Wrong("fault-stack", "HardFault: stack overflow: ", "descend", Some("return always")),
    Wrong(
        "fault-unaligned",
        "HardFault: unaligned access reading 0x",
        "fixture_main",
        Some("print_hex(*odd);"),
    ),
    Wrong(
        "fault-banner",
        "HardFault: undefined instruction 0xde00 in ",
        "fixture_main",
        Some("UNDEFINED_INSTRUCTION();"),
    ),
    // Where the handler failed, and the fault that it was called for.
    Wrong(
        "lockup",
        "lock-up in on_fault (main.c:",
        "fixture_main",
        Some("UNDEFINED_INSTRUCTION();"),
    ),
    Wrong("hang-in-test", "running in ", "idle", None),
    Wrong(
        FAILS_LATE,
        "HardFault: undefined instruction 0xde00 in ",
        "fixture_main",
        Some("UNDEFINED_INSTRUCTION();"),
    ),
];

/// Finds the last line with a text in a fixture's source.
fn line_of(fixture: &str, marker: &str) -> usize {
    let path = repository().join("firmware-fixtures").join(fixture).join("src/main.c");
    let text = fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    1 + lines.iter().rposition(|line| line.contains(marker)).unwrap()
}

fn post_mortems(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(post_mortems(&entry.path())),
            false => {
                let name = entry.file_name();
                if name == "post-mortem.json" || name == "target.core" {
                    found.push(entry.path());
                }
            }
        }
    }
    found
}

#[test]
fn faults_without_a_status_register_are_explained() {
    every_fault_of("microbit");
}

#[test]
fn faults_in_ram_are_explained() {
    every_fault_of("mps2-an385");
}

#[test]
fn faults_beside_a_floating_point_unit_are_explained() {
    every_fault_of("netduinoplus2");
}

fn every_fault_of(board: &str) {
    let _slot = Slot::take();
    let built = entries();
    let mut explained = 0;
    for wrong in &WRONGS {
        let fits = |entry: &&Entry| entry.board == board && entry.fixture == wrong.0;
        if let Some(entry) = built.iter().find(fits) {
            check(board, wrong, entry);
            explained += 1;
        }
    }
    // Not every core traps unaligned words, and not every board has a guard below its stack.
    assert!(explained >= WRONGS.len() - 1, "only {explained} are built for {board}");
}

fn check(board: &str, wrong: &Wrong, entry: &Entry) {
    let Wrong(fixture, words, function, marker) = *wrong;
    let workshop = Workshop::new();
    if fixture == FAILS_LATE {
        watch_for_long(&workshop, board);
    }
    let image = entry.elf().display().to_string();
    let timeout = format!("{}s", entry.timeout_s);
    let ran = workshop.run(["--json", "run", "-b", board, &image, "--timeout", &timeout]);
    ran.says(1, &[]);
    let document = ran.json().unwrap();
    assert_eq!(document["verdict"]["cause"], entry.cause.as_str(), "{ran}");

    let dirs = workshop.run_dirs();
    let files = post_mortems(&dirs[0]);
    let named = |name: &str| files.iter().find(|file| file.ends_with(name));
    let report = named("post-mortem.json").unwrap_or_else(|| panic!("no report: {ran}"));
    let report: PostMortem = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    let summary = &report.summary;
    assert!(summary.starts_with(words), "{board} {fixture}: {summary}");
    let place = match marker {
        None => format!("{function} ("),
        Some(marker) => format!("{function} (main.c:{})", line_of(fixture, marker)),
    };
    assert!(summary.contains(&place), "{board} {fixture}: no {place} in {summary}");
    assert!(!report.frames.is_empty() && !report.registers.is_empty(), "{ran}");

    // The verdict says it in one line, with the file as evidence.
    let verdict = &document["verdict"];
    assert!(verdict["summary"].as_str().unwrap().ends_with(summary.as_str()), "{ran}");
    let evidence = verdict["evidence"].as_array().unwrap();
    let explains = |e: &Value| e["file"].as_str().unwrap().ends_with("post-mortem.json");
    let explaining = evidence.iter().find(|e| explains(e));
    assert_eq!(explaining.unwrap()["note"], summary.as_str(), "{ran}");

    // And a core dump, which says the same without a board.
    let core = dirs[0].join(report.core.as_ref().unwrap_or_else(|| panic!("no dump: {ran}")));
    let core = core.display().to_string();
    let offline = workshop.run(["--json", "bt", "--core", &core, "--elf", &image]);
    offline.says(0, &[]);
    let offline = offline.json().unwrap();
    assert!(
        offline["summary"].as_str().unwrap().contains(&place),
        "{board} {fixture}: offline {offline}"
    );
    // Without names there are addresses, and it says why.
    let nameless = workshop.run(["--json", "bt", "--core", &core]).json().unwrap();
    assert!(nameless["summary"].as_str().unwrap().contains("0x"), "{nameless}");
    assert!(!nameless["limits"].as_array().unwrap().is_empty(), "{nameless}");
}

#[test]
fn people_are_told_in_one_line() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = entry("mps2-an385", "fault-bus").elf().display().to_string();
    let line = line_of("fault-bus", "*nothing = 1;");
    let told = format!(
        "HardFault: bus fault writing 0x60000000 in fixture_main (main.c:{line}) <- runtime_start"
    );
    let ran = workshop.run(["run", "-b", "mps2-an385", &image]);
    ran.says(1, &["explained:", &told]);
}

/// What a backtrace says without debug information, and why it says no more.
#[test]
fn images_whose_debug_information_is_unreadable_give_addresses_and_say_why() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("mps2-an385", "fault-bus");
    workshop.run(["run", "-b", "mps2-an385", &image]).says(1, &[]);
    let core = workshop.run_dirs()[0].join("artefacts/attempt-1/target.core");
    let core = core.display().to_string();
    let junk = workshop.write("junk", [0xff; 3000]).display().to_string();
    let spoilt = workshop.path("spoilt.elf").display().to_string();
    let trace = |spoil: &str, section: &str| {
        let mut objcopy = Command::new("arm-none-eabi-objcopy");
        objcopy.args([spoil, section, &image, &spoilt]).stdin(Stdio::null());
        ran(&mut objcopy).unwrap().says(0, &[]);
        let told = workshop.run(["--json", "bt", "--core", &core, "--elf", &spoilt]);
        told.says(0, &[]);
        let told = told.json().unwrap();
        let limits = told["limits"].as_array().unwrap().clone();
        let limits: Vec<String> = limits.iter().map(|l| l.as_str().unwrap().to_owned()).collect();
        (told["frames"].as_array().unwrap().clone(), limits)
    };
    for section in [".debug_info", ".debug_abbrev", ".debug_line"] {
        let (frames, limits) = trace("--update-section", &format!("{section}={junk}"));
        let why = "the image's debug information is unreadable (";
        assert!(limits.iter().any(|limit| limit.starts_with(why)), "{section}: {limits:?}");
        let [fault, caller, ..] = frames.as_slice() else { panic!("{section}: {frames:?}") };
        assert_eq!(fault["function"], "fault_entry", "{section}");
        assert_eq!(caller["function"], "fixture_main", "{section}");
        assert!(caller["pc"].as_u64() > Some(0) && caller["line"].is_null(), "{caller}");
    }
    let (frames, limits) = trace("--update-section", &format!(".debug_frame={junk}"));
    assert!(limits.iter().any(|limit| limit.contains(".debug_frame is unreadable")), "{limits:?}");
    assert!(frames[1]["line"].as_u64() > Some(0), "lines are there: {frames:?}");
    let (_, limits) = trace("--remove-section", ".debug_info");
    assert!(limits.iter().any(|l| l.contains("has no debug information")), "{limits:?}");
    // Whatever is wrong, an image that is none is refused.
    let none = workshop.run(["bt", "--core", &core, "--elf", &junk]);
    none.says(2, &["no names can be read from", "is not a readable ELF file"]);
}

#[test]
fn a_pass_needs_no_explanation() {
    let _slot = Slot::take();
    for board in BOARDS {
        let workshop = Workshop::new();
        let image = entry(board, "unity-pass").elf().display().to_string();
        workshop.run(["run", "-b", board, &image]).says(0, &[]);
        let files = post_mortems(&workshop.run_dirs()[0]);
        assert!(files.is_empty(), "{files:?}");
    }
}
