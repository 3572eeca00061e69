//! What all measurements share: programs, folders, boards and how each is started bare.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use jig_model::profile::{BoardProfile, Emulation, FaultSetText, FaultSets};
use serde::Deserialize;

use xtask::failure::TaskFailure;
use xtask::process;

/// What is measured with which board.
const CHOSEN: &str = include_str!("../bench.toml");

/// The plan of a cycle: what `jig run` does, written down.
const PLAN: &str = r#"version = 1
name = "bench"
goal = "the report is complete"
timeout = "20s"

[[stage]]
name = "test"
goal = "every case passes"

[[stage.step]]
name = "run"
goal = "the report is complete"
actions = [{ deploy = true }, { power = "cycle" }, { wait_for_results = true, timeout = "10s" }]
"#;

/// The last line of a Unity report without failures.
const PASSED: &[u8] = b"OK";

/// A firmware on a board.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cycle {
    pub(super) board: String,
    pub(super) fixture: String,
    /// Whether the firmware ends by itself; else a run waits out the settle window.
    #[serde(default)]
    pub(super) ends: bool,
    /// A firmware that prints the same, and ends as long behind it as the settle window takes.
    pub(super) late: Option<String>,
}

/// A place whose rig is made to fail, and the firmware that is tested meanwhile.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecoveryTarget {
    pub(super) place: String,
    pub(super) board: String,
    pub(super) fixture: String,
    /// A firmware that an earlier test may have left there.
    pub(super) old: String,
    /// Whether its emulator is deployed by the virtual probe, and not by its loader.
    #[serde(default)]
    pub(super) by_probe: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Chosen {
    cycle: Vec<Cycle>,
    repeat: Cycle,
    probe: Cycle,
    recovery: Vec<RecoveryTarget>,
}

/// Where and with what is measured.
pub(super) struct BenchSetting {
    pub(super) cycles: Vec<Cycle>,
    pub(super) repeat: Cycle,
    /// What is flashed, and echoes.
    pub(super) probe: Cycle,
    /// The release build's folder.
    target: PathBuf,
    /// Scratch, emptied at each start.
    pub(super) scratch: PathBuf,
    pub(super) plan: PathBuf,
    fault_sets: FaultSets,
}

impl BenchSetting {
    /// Reads what is to be measured and makes the scratch folder.
    pub(super) fn prepare() -> Result<Self, TaskFailure> {
        let Chosen { cycle, repeat, probe, .. } = chosen()?;
        let target = process::target_dir();
        let scratch = emptied(&target, "bench/scratch")?;
        let plan = scratch.join("plan.toml");
        fs::write(&plan, PLAN).map_err(TaskFailure::io("write", &plan))?;
        let fault_sets = fault_sets()?;
        Ok(Self { cycles: cycle, repeat, probe, target, scratch, plan, fault_sets })
    }

    /// Returns the folder that keeps the numbers.
    pub(super) fn numbers(&self) -> PathBuf {
        self.target.join("bench")
    }

    /// Returns a program of the release build.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.target.join("release").join(name)
    }

    /// Returns a firmware.
    pub(super) fn image(&self, cycle: &Cycle) -> PathBuf {
        self.firmware(&cycle.board, &cycle.fixture)
    }

    /// Returns the firmware of a fixture for a board.
    pub(super) fn firmware(&self, board: &str, fixture: &str) -> PathBuf {
        self.target.join("fixtures").join(board).join(format!("{fixture}.elf"))
    }

    /// Writes the plan with a settle window of its own.
    pub(super) fn plan_that_settles(&self, window: Duration) -> Result<PathBuf, TaskFailure> {
        let path = self.scratch.join("settles.toml");
        let settle = format!("settle = \"{}ms\"\ntimeout", window.as_millis());
        fs::write(&path, PLAN.replacen("timeout", &settle, 1))
            .map_err(TaskFailure::io("write", &path))?;
        Ok(path)
    }

    /// Reads a board's profile.
    pub(super) fn profile(&self, board: &str) -> Result<BoardProfile, TaskFailure> {
        let path = boards().join(format!("{board}.toml"));
        let text = read(&path)?;
        BoardProfile::parse(&path.display().to_string(), &text, &self.fault_sets)
            .map_err(|_| TaskFailure::Because(format!("{} is not valid", path.display())))
    }

    /// Makes the command `jig test` of a cycle, so many times in one run.
    pub(super) fn jig_test(&self, cycle: &Cycle, repeat: u32) -> Command {
        self.jig_test_of(&self.plan, &cycle.board, &self.image(cycle), repeat)
    }

    /// Makes the command `jig test` of any firmware.
    pub(super) fn jig_test_of(
        &self,
        plan: &Path,
        board: &str,
        image: &Path,
        repeat: u32,
    ) -> Command {
        let mut command = Command::new(self.program("jig"));
        command.args(["test", "--quiet", "-b", board]).arg(plan);
        command.arg("--image").arg(image);
        command.arg("--runs").arg(self.scratch.join("runs"));
        command.args(["--repeat", &repeat.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Runs the bare emulator until the report's last line, as a person without Jig would: the
    /// profile's own arguments and the console on a pipe.
    pub(super) fn bare(&self, emulation: &Emulation, image: &Path) -> Result<(), TaskFailure> {
        let mut command = bare_command(emulation, image);
        let mut child = command.spawn().map_err(process::start_failure(&command))?;
        let seen = child.stdout.take().is_some_and(|out| {
            BufReader::new(out)
                .split(b'\n')
                .map_while(Result::ok)
                .any(|line| line.trim_ascii() == PASSED)
        });
        // It may have ended by itself.
        let _ = child.kill();
        let status = child.wait().map_err(process::start_failure(&command))?;
        if seen { Ok(()) } else { Err(process::ended(&command, status, "no report".into())) }
    }
}

fn bare_command(emulation: &Emulation, image: &Path) -> Command {
    let mut command = Command::new(&emulation.program);
    command.args(["-machine", &emulation.machine, "-display", "none", "-monitor", "none"]);
    command.args(["-serial", "stdio"]);
    if emulation.semihosting {
        command.args(["-semihosting-config", "enable=on,target=native"]);
    }
    let image = image.display().to_string();
    for arg in emulation.args.iter().chain(&emulation.image_args) {
        command.arg(arg.replace("{image}", &image));
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Answers the emulation of a profile, or says that there is none.
pub(super) fn emulation(profile: &BoardProfile) -> Result<Emulation, TaskFailure> {
    let none = || TaskFailure::Because(format!("board {} cannot be emulated", profile.id));
    profile.emulation.clone().ok_or_else(none)
}

/// Answers how long a run of a board waits for late faults.
pub(super) fn settle(profile: &BoardProfile) -> Duration {
    profile.limits.settle
}

/// Builds programs of the release build, named as cargo wants it. With the whole workspace, so
/// that what they share has the same features in each build, and is built once.
pub(super) fn build(which: &[&str]) -> Result<(), TaskFailure> {
    let build = ["build", "--quiet", "--release", "--workspace"];
    process::run(process::cargo(&build).args(which))
}

/// Returns the places whose rig is made to fail.
pub(super) fn recovered() -> Result<Vec<RecoveryTarget>, TaskFailure> {
    Ok(chosen()?.recovery)
}

fn chosen() -> Result<Chosen, TaskFailure> {
    toml::from_str(CHOSEN).map_err(|source| TaskFailure::Recipe {
        path: "controller/bench/bench.toml".into(),
        source: Box::new(source),
    })
}

/// Makes an empty folder in the build's.
pub(super) fn emptied(target: &Path, name: &str) -> Result<PathBuf, TaskFailure> {
    let folder = target.join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(TaskFailure::io("remove", &folder))?;
    }
    fs::create_dir_all(&folder).map_err(TaskFailure::io("create", &folder))?;
    Ok(folder)
}

pub(super) fn boards() -> PathBuf {
    process::repository().join("board-profiles")
}

fn read(path: &Path) -> Result<String, TaskFailure> {
    fs::read_to_string(path).map_err(TaskFailure::io("read", path))
}

fn fault_sets() -> Result<FaultSets, TaskFailure> {
    let folder = boards().join("faults");
    let mut texts = Vec::new();
    for entry in fs::read_dir(&folder).map_err(TaskFailure::io("read", &folder))? {
        let path = entry.map_err(TaskFailure::io("read", &folder))?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        texts.push((name, path.display().to_string(), read(&path)?));
    }
    let texts = texts.iter().map(|(name, origin, text)| FaultSetText { name, origin, text });
    FaultSets::parse(texts)
        .map_err(|_| TaskFailure::Because(format!("{} is not valid", folder.display())))
}
