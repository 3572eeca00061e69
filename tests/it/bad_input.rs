//! What users get wrong: the exit code says which side has to act, the message what to do.

use crate::manifest::elf;
use crate::workshop::{Ran, Slot, Workshop, ran};

/// A plan that is right, to be spoilt.
const PLAN: &str = r#"version = 1
name = "p"
timeout = "10s"

[[stage]]
name = "s"

[[stage.step]]
name = "t"
actions = [{ deploy = true }, { power = "cycle" }, { expect = 'x' }]
"#;

/// Runs a plan that was spoilt in one place, and checks that `jig plan check` says the same.
fn spoilt(old: &str, new: &str) -> Ran {
    assert!(PLAN.contains(old), "{old:?} is not in the plan");
    let workshop = Workshop::new();
    let plan = workshop.write("p.toml", PLAN.replace(old, new));
    let plan = plan.to_str().unwrap();
    let image = elf("microbit", "shell");
    workshop.run(["plan", "check", plan]).says(3, &["problem", "found"]);
    let ran = workshop.run(["test", "-b", "microbit", "--image", &image, plan]);
    assert!(workshop.run_dirs().is_empty(), "no run is made of a bad plan: {ran}");
    ran
}

#[test]
fn images_that_are_none() {
    let workshop = Workshop::new();
    workshop.write("text.elf", "hello\n");
    workshop.write("empty.elf", "");
    workshop.write("broken.elf", b"\x7fELF\x01\x01\x01");
    let cases = [
        ("missing.elf", "No such file"),
        ("text.elf", "neither an ELF file nor Intel HEX"),
        ("empty.elf", "it is empty"),
        ("broken.elf", "broken"),
        (".", "."),
    ];
    for (image, words) in cases {
        workshop.run(["run", "-b", "microbit", image]).says(2, &[image, words]);
    }
    assert!(workshop.run_dirs().is_empty());
}

#[test]
fn files_without_an_end_are_refused_before_they_are_read() {
    let workshop = Workshop::new();
    let fifo = workshop.path("image.elf");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let fifo = fifo.to_str().unwrap();
    for (image, words) in [("/dev/zero", "a device"), (fifo, "a FIFO")] {
        workshop.run(["run", "-b", "microbit", image]).says(2, &[image, words]);
        workshop.run(["flash", "-b", "microbit", image]).says(2, &[image, words]);
        workshop.run(["test", "-b", "microbit", image]).says(2, &[image, words]);
    }
    assert!(workshop.run_dirs().is_empty());
}

#[test]
fn images_for_other_boards() {
    let workshop = Workshop::new();
    let image = elf("riscv32-virt", "unity-pass");
    let words = ["does not fit", "built for riscv32", "board microbit is arm"];
    workshop.run(["run", "-b", "microbit", &image]).says(2, &words);
    let words = ["boots its own image set", "leave it out"];
    workshop.run(["run", "-b", "arm64-virt", &image]).says(2, &words);
    workshop.run(["run", "-b", "microbit"]).says(2, &["nothing to boot without an image"]);
    assert!(workshop.run_dirs().is_empty());
}

/// Builds the smallest ELF file that asks for memory from address 0 on.
fn elf_of(memory: u32) -> Vec<u8> {
    elf_with(&[(0, memory)])
}

/// Builds an ELF file whose segments ask for memory at addresses: first four bytes each, then
/// blank.
fn elf_with(segments: &[(u32, u32)]) -> Vec<u8> {
    let (header, program, code) = (52_u16, 32_u16, [0_u8; 4]);
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let half = |file: &mut Vec<u8>, value: u16| file.extend(value.to_le_bytes());
    let word = |file: &mut Vec<u8>, value: u32| file.extend(value.to_le_bytes());
    half(&mut file, 2); // executable
    half(&mut file, 40); // Arm
    word(&mut file, 1); // version
    word(&mut file, 1); // entry
    word(&mut file, header.into()); // program headers follow at once
    word(&mut file, 0); // no section headers
    word(&mut file, 0x0500_0000); // EABI 5
    for value in [header, program, segments.len() as u16, 40, 0, 0] {
        half(&mut file, value);
    }
    let behind = u32::from(header) + segments.len() as u32 * u32::from(program);
    for (nth, &(address, memory)) in segments.iter().enumerate() {
        let offset = behind + nth as u32 * code.len() as u32;
        for value in [1, offset, address, address, code.len() as u32, memory, 7, 4] {
            word(&mut file, value);
        }
    }
    segments.iter().for_each(|_| file.extend(code));
    file
}

#[test]
fn images_whose_parts_overlap() {
    let workshop = Workshop::new();
    workshop.write("over.elf", elf_with(&[(0x100, 4), (0x200, 4), (0x102, 4)]));
    // The sum of a record's bytes is zero. The second one begins in the middle of the first.
    workshop.write("over.hex", ":0400000001020304F2\n:0400020001020304F0\n:00000001FF\n");
    let overlap = "two of its parts overlap";
    for verb in ["flash", "run"] {
        let hex = workshop.run([verb, "-b", "microbit", "over.hex"]);
        hex.says(2, &["over.hex", overlap, "line 1 (0x0..0x4) and line 2 (0x2..0x6)"]);
        let elf = workshop.run([verb, "-b", "microbit", "over.elf"]);
        elf.says(2, &["over.elf", overlap, "(0x100..0x104) and segment 2 (0x102..0x106)"]);
    }
    assert!(workshop.run_dirs().is_empty());
}

#[test]
fn an_image_larger_than_its_memory() {
    let workshop = Workshop::new();
    workshop.write("large.elf", elf_of(1 << 20));
    let words = ["0x0..0x100000", "does not fit board microbit", "flash 0x0..0x40000"];
    workshop.run(["run", "-b", "microbit", "large.elf"]).says(2, &words);
    // The same file with less of it is an image; it only never says anything.
    let _slot = Slot::take();
    workshop.write("small.elf", elf_of(1 << 10));
    let ran = workshop.run(["run", "-b", "microbit", "small.elf", "--timeout", "1s"]);
    assert_ne!(ran.code(), 2, "{ran}");
}

#[test]
fn boards_that_nobody_knows() {
    let workshop = Workshop::new();
    let image = elf("microbit", "unity-pass");
    let words = ["no place \"microbitt\"", "did you mean `microbit`? `jig boards`"];
    workshop.run(["run", "-b", "microbitt", &image]).says(2, &words);
    workshop.run(["run", "-b", "no/place", &image]).says(2, &["no/place"]);
    workshop.run(["run", &image]).says(2, &["--board"]);
    workshop
        .run(["profile", "show", "microbot"])
        .says(2, &["did you mean `microbit`? `jig boards`"]);
    let console = ["console", "-b", "microbit", "--image", &image, "--console", "uart7"];
    workshop.run(console).says(2, &["no console uart7", "uart0"]);
}

#[test]
fn plans_that_are_no_toml() {
    spoilt("name = \"p\"", "name = \"p").says(3, &["not valid TOML", "p.toml:2:"]);
    let workshop = Workshop::new();
    workshop.run(["test", "-b", "microbit", "missing.toml"]).says(2, &["missing.toml"]);
}

#[test]
fn keys_that_nobody_knows() {
    let ran = spoilt("actions", "actoins");
    ran.says(3, &["unknown key `actoins`", "p.toml:10:1", "did you mean `actions`?"]);
    // The line itself is shown, and a mark under the word.
    let said = ran.err();
    let mut lines = said.lines().skip_while(|line| !line.contains("actoins = ["));
    let (line, mark) = (lines.next().unwrap(), lines.next().unwrap());
    let at = |text: &str, word: char| text.chars().position(|c| c == word);
    let below = at(mark, '^').or_else(|| at(mark, '─'));
    let word = line.find("actoins").map(|byte| line[..byte].chars().count());
    assert_eq!(below, word, "{line}\n{mark}");
}

#[test]
fn patterns_that_are_none() {
    spoilt("'x'", "'(['").says(3, &["bad regular expression", "p.toml:10:"]);
    let workshop = Workshop::new();
    let image = elf("microbit", "unity-pass");
    let ran = workshop.run(["run", "-b", "microbit", &image, "--until", "(["]);
    ran.says(2, &["--until", "unclosed"]);
}

#[test]
fn plans_that_never_end() {
    spoilt("timeout = \"10s\"", "timeout = \"25h\"").says(3, &["never ends", "24h"]);
    spoilt("timeout = \"10s\"\n", "").says(3, &["`timeout` is missing"]);
    spoilt("{ expect = 'x' }", "{ expect = 'x', timeout = \"0s\" }").says(3, &["is zero"]);
}

#[test]
fn plans_for_other_boards() {
    let workshop = Workshop::new();
    let other = PLAN.replace("[[stage]]", "[requires]\nboards = [\"mps2-an385\"]\n\n[[stage]]");
    workshop.write("p.toml", other);
    let image = elf("microbit", "shell");
    let ran = workshop.run(["test", "-b", "microbit", "--image", &image, "p.toml"]);
    ran.says(3, &["board microbit does not fit plan p", "made for mps2-an385"]);
    workshop.write("p.toml", PLAN);
    let ran = workshop.run(["test", "-b", "microbit", "p.toml"]);
    ran.says(2, &["deploys an image, but none was given", "--image"]);
}

#[test]
fn options_that_are_wrong() {
    let workshop = Workshop::new();
    let image = elf("microbit", "unity-pass");
    let fifo = workshop.path("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let cases: [(&[&str], &[&str]); 11] = [
        (&["--frobnicate"], &["--frobnicate"]),
        (&["--report", "junit"], &["FORMAT=FILE"]),
        (
            &["--report", "xml=report.xml"],
            &["unknown format", "junit, json, tap, github or annotations"],
        ),
        (&["--report", "junit="], &["FORMAT=FILE"]),
        (&["--repeat", "0"], &["--repeat"]),
        (&["--repeat", "many"], &["--repeat"]),
        (&["--timeout", "10"], &["--timeout"]),
        (&["--baseline", "missing.json"], &["missing.json", "--report json="]),
        (&["--rig", "missing-rig.toml"], &["missing-rig.toml"]),
        (&["--rig", "fifo"], &["fifo: it is a FIFO", "--rig"]),
        (&["--rig", "."], &["is a directory", "--rig"]),
    ];
    for (options, words) in cases {
        let args =
            ["run", "-b", "microbit", image.as_str()].into_iter().chain(options.iter().copied());
        workshop.run(args).says(2, words);
    }
    workshop.run(["frobnicate"]).says(2, &["frobnicate"]);
    workshop.run(["runs", "show", "nothing"]).says(2, &["jig run"]);
    assert!(workshop.run_dirs().is_empty());
}

#[test]
fn a_report_that_cannot_be_written() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("microbit", "unity-pass");
    let run = ["run", "-b", "microbit", &image, "--report"];
    let report = |path: &str| run.into_iter().map(String::from).chain([format!("junit={path}")]);
    for (path, why) in [("missing/r.xml", "No such file"), (".", "it is a folder")] {
        let ran = workshop.run(report(path));
        ran.says(75, &[path, "cannot be written", why]);
    }
    assert!(workshop.run_dirs().is_empty());
    let fifo = workshop.path("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let ran = workshop.run(report("fifo"));
    ran.says(75, &["PASS", "fifo was not written", "no program reads"]);
}

#[test]
fn an_emulator_that_is_not_installed() {
    let workshop = Workshop::new();
    let mut command = workshop.jig(["run", "-b", "microbit", &elf("microbit", "unity-pass")]);
    let ran = ran(command.env("PATH", "/nonexistent")).unwrap();
    ran.says(75, &["qemu-system-arm", "jig doctor", "emulator_missing"]);
    // No step of the ladder installs a program, so none is taken.
    assert!(!ran.err().contains("restart-emulator"), "{ran}");
    let mut command = workshop.jig(["doctor"]);
    let doctor = crate::workshop::ran(command.env("PATH", "/nonexistent")).unwrap();
    assert_eq!(doctor.code(), 75, "{doctor}");
    assert!(doctor.out().contains("qemu-system-arm"), "{doctor}");
}
