//! Other test runners on the same firmware, side by side.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::BenchOptions;
use super::cycle::pass;
use super::rounds::{in_turns, milliseconds};
use super::sample::{BenchRow, Goal, Samples};
use super::setting::{BenchSetting, emulation};
use xtask::failure::TaskFailure;
use xtask::python;

/// Versions are fixed, so that two runs of this bench compare the same things.
const PACKAGES: &[&str] = &[
    "pytest==9.2.0",
    "labgrid==26.0.1",
    "pytest-embedded==2.9.3",
    "pytest-embedded-qemu==2.9.3",
    "pytest-embedded-serial==2.9.3",
];

/// Rounds: each takes seconds.
const ROUNDS: usize = 7;

/// Measures whole commands: from the prompt to the exit code.
pub(super) fn measure(
    setting: &BenchSetting,
    options: &BenchOptions,
) -> Result<Vec<BenchRow>, TaskFailure> {
    let python = install(&setting.numbers().join("peers"))?;
    let folder = setting.scratch.join("peers");
    fs::create_dir_all(&folder).map_err(TaskFailure::io("create", &folder))?;
    // A firmware that goes on running: the runners take an emulator that ends for broken.
    let cycle = setting.cycles.iter().find(|cycle| !cycle.ends).unwrap_or(&setting.repeat);
    let emulation = emulation(&setting.profile(&cycle.board)?)?;
    let image = setting.image(cycle);
    write(&folder.join("env.yaml"), &labgrid_env(&emulation.program, &emulation.machine, &image))?;
    write(&folder.join("test_labgrid.py"), LABGRID)?;
    let peer = |file: &str, args: &[String]| {
        let mut command = Command::new(&python);
        command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).args(args).arg(file);
        command.current_dir(&folder);
        command
    };
    let labgrid = ["--lg-env=env.yaml", "-p", "no:embedded"].map(str::to_owned);
    // It insists on a flash drive, which this machine has not, so a wrapper turns that into
    // the firmware; the rest is as it comes.
    let wrapper = folder.join("emulator.sh");
    let text = wrapper_text(&emulation.program, &emulation.machine, &image);
    write(&wrapper, &text)?;
    pass(shell(&["chmod", "+x"], &wrapper))?;
    write(&folder.join("test_embedded.py"), EMBEDDED)?;
    let embedded = [
        "--embedded-services=qemu".to_owned(),
        format!("--qemu-prog-path={}", wrapper.display()),
        format!("--qemu-image-path={}", image.display()),
    ];
    let rounds = ROUNDS.min(options.rounds);
    let mut rows = Vec::new();
    for (name, file, args) in [
        ("labgrid", "test_labgrid.py", &labgrid[..]),
        ("pytest-embedded", "test_embedded.py", &embedded[..]),
    ] {
        let (floor, ours) = in_turns(
            rounds,
            || milliseconds(|| pass(peer(file, args))),
            || milliseconds(|| pass(setting.jig_test(cycle, 1))),
        )?;
        rows.push(BenchRow {
            what: format!("one test, whole command, beside {name}"),
            unit: "ms",
            floor_is: name.to_owned(),
            floor: Samples(floor),
            ours: Samples(ours),
            goal: Goal::None,
        });
    }
    Ok(rows)
}

/// Makes a Python of its own with the runners in it; returns its interpreter.
fn install(folder: &Path) -> Result<PathBuf, TaskFailure> {
    println!("bench: the other runners are {}", PACKAGES.join(", "));
    python::environment(folder, PACKAGES, &PACKAGES.join("\n")).map_err(|failure| {
        let why = failure.chain();
        TaskFailure::Because(format!(
            "the other runners cannot be installed (is there a way to PyPI?); leave --peers out to measure the rest: {why}"
        ))
    })
}

fn write(path: &Path, text: &str) -> Result<(), TaskFailure> {
    fs::write(path, text).map_err(TaskFailure::io("write", path))
}

fn shell(words: &[&str], path: &Path) -> Command {
    let mut command = Command::new(words.first().copied().unwrap_or_default());
    command.args(words.iter().skip(1)).arg(path);
    command
}

fn labgrid_env(program: &str, machine: &str, image: &Path) -> String {
    let image = image.display();
    format!(
        "targets:
  main:
    drivers:
      QEMUDriver:
        qemu_bin: qemu
        machine: {machine}
        cpu: cortex-m3
        memory: 16M
        kernel: firmware
        extra_args: -semihosting-config enable=on,target=native
tools:
  qemu: {program}
images:
  firmware: {image}
"
    )
}

const LABGRID: &str = "def test_passes(target):
    qemu = target.get_driver('QEMUDriver')
    qemu.on()
    qemu.expect('0 Failures', timeout=10)
    qemu.off()
";

const EMBEDDED: &str = "def test_passes(dut):
    dut.expect('0 Failures', timeout=10)
";

fn wrapper_text(program: &str, machine: &str, image: &Path) -> String {
    let image = image.display();
    format!(
        "#!/bin/sh
exec {program} -machine {machine} -nographic -semihosting-config enable=on,target=native -kernel {image}
"
    )
}
