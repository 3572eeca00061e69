//! Flashers that are real programs: scripts written here, and the published ones where they
//! are installed.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jig_model::event::BoardEvent;
use jig_model::flasher::{FlasherPreset, FlasherPresets};
use jig_model::image::{DeployReport, Image, ImageFormat, ImageKind, Payload};
use jig_model::pattern::Pattern;
use jig_model::profile::{BoardProfile, Deploy, FaultSets, FlashCommand};
use jig_model::protocol::{
    BindContext, BoardSink, BoxFuture, DriverError, Flasher, NoLedger, PartFactory as _, Protocols,
    Transport,
};
use jig_model::rig_file::{EmulatorPart, Place, ProbePart};
use jig_model::{Cause, ConsoleName};

use super::arguments::{FlasherFill, MadeFiles, Unfilled, arguments};
use super::command::FlasherEnd;
use super::output::{FlasherOutput, OutputJudge};
use super::touch::tests::{Machine, touched};
use super::{CommandFlasher, CommandFlasherFactory, FlasherError};
use crate::process::Ending;
use crate::serial::test_pty::TestPty;

#[derive(Default)]
struct Sink(Mutex<Vec<u8>>);

impl BoardSink for Sink {
    fn attach(&self, _console: &ConsoleName, _transport: Box<dyn Transport>) {}
    fn drained(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
    fn event(&self, event: BoardEvent) {
        if let BoardEvent::Deploying { percent } = event {
            self.0.lock().unwrap().push(percent);
        }
    }
}

/// A place with a flasher, and a folder for what it leaves.
struct Bench {
    dir: tempfile::TempDir,
    sink: Arc<Sink>,
    command: FlashCommand,
    image: Image,
}

impl Bench {
    /// Makes a flasher of a shell script; `$1` is the image.
    fn script(script: &str) -> Self {
        Self::of(&["sh", "-c", script, "flasher", "{image}"])
    }

    fn of(argv: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image-1.bin");
        std::fs::write(&path, "firmware").unwrap();
        Self {
            dir,
            sink: Arc::default(),
            command: FlashCommand {
                timeout: Duration::from_secs(120),
                ..FlashCommand::new(
                    // A script holds braces; the profile would write them twice.
                    argv.iter()
                        .enumerate()
                        .map(|(n, arg)| match n {
                            2 if argv[0] == "sh" => arg.replace('{', "{{").replace('}', "}}"),
                            _ => (*arg).to_owned(),
                        })
                        .collect(),
                )
            },
            image: image(&path),
        }
    }

    fn context(&self, place: Place) -> BindContext {
        BindContext {
            profile: Arc::new(profile("")),
            place: Arc::new(place),
            sink: Arc::clone(&self.sink) as _,
            evidence: self.dir.path().to_owned(),
            images: "/".into(),
            ledger: Arc::new(NoLedger),
        }
    }

    async fn deploy(&self) -> Result<DeployReport, DriverError> {
        let context = self.context(place().with_probe(ProbePart::default()));
        CommandFlasher::new(self.command.clone(), &context).deploy(&self.image).await
    }

    /// Deploys and returns why that failed.
    async fn refused(&self) -> String {
        let error = self.deploy().await.unwrap_err();
        assert_eq!(error.cause, Cause::DeployFailed, "{error}");
        jig_model::chain(&error)
    }

    fn log(&self) -> String {
        let bytes = std::fs::read(self.dir.path().join("flasher-1.log")).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn place() -> Place {
    Place::new("p".parse().unwrap(), "b".parse().unwrap())
}

fn image(path: &Path) -> Image {
    Image {
        name: "app.bin@0x8000".to_owned(),
        path: path.to_owned(),
        format: ImageFormat::Elf,
        sha256: "ab".to_owned(),
        payload_sha256: "cd".to_owned(),
        payload_bytes: 8,
        payload_spans: vec![(0x8000, 0x8004)],
        build_id: None,
        announces: false,
    }
}

fn profile(deploy: &str) -> BoardProfile {
    let text = format!(
        "version = 1\nid = \"b\"\ntitle = \"B\"\narch = \"arm\"\n\
         console = [{{ name = \"u\", kind = \"uart\" }}]\n{deploy}\n"
    );
    let sets = FaultSets::parse(std::iter::empty()).unwrap_or_else(|p| panic!("{}", p[0]));
    BoardProfile::parse("b.toml", &text, &sets).unwrap_or_else(|problems| panic!("{problems}"))
}

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).unwrap()
}

fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// Waits for a thing; fails after far longer than it can take.
async fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let look = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), look).await.unwrap_or_else(|_| panic!("{what}"))
}

#[tokio::test]
async fn a_flasher_that_works_is_reported_with_its_progress() {
    let mut bench = Bench::script(
        "cat \"$1\"; printf '\\nErase 100%%\\n'; for n in 0 7 7.5 50 100 101 x; do \
         printf \"\\rWrite at 0x0: $n%%\" >&2; done; printf '\\nflash verified'",
    );
    bench.command.progress_pattern = Some(pattern(r"([0-9.]+)%"));
    bench.command.verified_pattern = Some(pattern("verified$"));
    bench.command.failure_patterns = vec![pattern("(?i)error")];
    let report = bench.deploy().await.unwrap();
    assert!(report.verified);
    assert_eq!((report.method.as_str(), report.bytes), ("sh", 8));
    assert_eq!((report.image.as_str(), report.sha256.as_str()), ("app.bin@0x8000", "ab"));
    assert_eq!(report.read_back_sha256, None);
    assert_eq!(*bench.sink.0.lock().unwrap(), [100, 0, 7, 50, 100]);
    assert!(bench.log().starts_with("firmware\nErase 100%"), "{}", bench.log());
    assert!(bench.log().ends_with("verified"), "{}", bench.log());
    // Nothing proves a read-back where nothing was said of one.
    bench.command.verified_pattern = Some(pattern("^verified"));
    assert!(!bench.deploy().await.unwrap().verified);
}

#[tokio::test]
async fn exit_code_and_output_are_both_judged() {
    let mut bench =
        Bench::script("echo one; echo two; echo; echo three; echo 'no device' >&2; exit 3");
    let error = bench.refused().await;
    assert_eq!(
        error,
        "sh ended with code 3; its last words: two | three | no device; all of it is in flasher-1.log"
    );
    bench.command.success_codes = vec![0, 3];
    bench.deploy().await.unwrap();
    bench.command.failure_patterns = vec![pattern("^never"), pattern("^no dev")];
    let error = bench.refused().await;
    assert!(error.contains("code 3, but said \"no device\""), "{error}");
    assert!(error.contains("`^no dev`"), "{error}");
    let error = Bench::script("kill -9 $$").refused().await;
    assert!(error.contains("ended by SIGKILL; it said nothing"), "{error}");
    let error = Bench::of(&["no-such-flasher-x", "{image}"]).deploy().await.unwrap_err();
    assert!(error.to_string().contains("there is no such program"), "{error}");
    assert_eq!(error.cause, Cause::HostCommandMissing, "no recovery installs it");
}

#[tokio::test]
async fn a_flasher_that_hangs_is_ended_with_its_children() {
    let mut bench = Bench::script("sleep 600 & echo $! > pid.new; mv pid.new pid; echo busy; wait");
    let pid_file = bench.dir.path().join("pid");
    // At first it never ends, and the caller drops the future: no process of it may stay.
    {
        let mut deploy = Box::pin(bench.deploy());
        let pid = wait_for("pid", || std::fs::read_to_string(&pid_file).ok());
        let pid: i32 = tokio::select! {
            ended = &mut deploy => panic!("{ended:?}"),
            pid = pid => pid.trim().parse().unwrap(),
        };
        assert!(alive(pid));
        drop(deploy);
        wait_for("death", || (!alive(pid)).then_some(())).await;
    }
    std::fs::remove_file(&pid_file).unwrap();
    // Long enough for the pid to be written on any host, and then it is over.
    bench.command.timeout = Duration::from_secs(3);
    let error = bench.refused().await;
    assert!(error.contains("sh took longer than 3s; its last words: busy"), "{error}");
    let pid: i32 = std::fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
    wait_for("death", || (!alive(pid)).then_some(())).await;
}

#[tokio::test]
async fn output_without_end_and_without_lines_stays_bounded() {
    let mut bench = Bench::script(
        "head -c 3000000 /dev/zero | tr '\\0' x; echo; for n in 1 2 3 4; do echo \"last $n\"; done",
    );
    bench.command.verified_pattern = Some(pattern("^last 4$"));
    assert!(bench.deploy().await.unwrap().verified);
    let log = bench.log();
    assert!(log.len() < (1 << 20) + 1000, "{}", log.len());
    assert!(log.contains(" bytes left out; the last lines:]\nlast 2\nlast 3\nlast 4"));
    // A flood of percentages is passed on only so often.
    let mut bench = Bench::script(
        "for a in 1 2 3 4 5 6 7 8 9 10 11 12; do for n in $(seq 0 99); do echo $n%; done; done",
    );
    bench.command.progress_pattern = Some(pattern("([0-9]+)%"));
    bench.deploy().await.unwrap();
    assert_eq!(bench.sink.0.lock().unwrap().len(), 1000);
}

#[tokio::test]
async fn a_child_that_left_the_group_does_not_keep_the_flasher_waiting() {
    let bench = Bench::script(
        "setsid sh -c 'echo $$ > pid.new; mv pid.new pid; sleep 600' & while [ ! -e pid ]; do :; done; echo done",
    );
    let deployed = bench.deploy().await;
    let pid = std::fs::read_to_string(bench.dir.path().join("pid")).unwrap();
    let pid = nix::unistd::Pid::from_raw(pid.trim().parse().unwrap());
    nix::sys::signal::killpg(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    deployed.unwrap();
    assert_eq!(bench.log(), "done\n");
}

#[test]
fn placeholders_are_filled_by_place_and_image() {
    let argv: Vec<String> =
        ["esptool", "--port={port}", "-s", "{serial}", "{address}", "program {{{image}}}"]
            .map(str::to_owned)
            .to_vec();
    let image = image(Path::new("/runs/a b/image-1.bin"));
    let probe = ProbePart {
        selector: "1:2:S:3".to_owned(),
        port: Some("/dev/ttyX".to_owned()),
        ..ProbePart::default()
    };
    let fill = FlasherFill::of(&place().with_probe(probe), &profile(""));
    let made = MadeFiles::default();
    let wanted =
        ["esptool", "--port=/dev/ttyX", "-s", "S:3", "0x8000", "program {/runs/a b/image-1.bin}"];
    assert_eq!(arguments(&argv, &image, &fill, &made).unwrap(), wanted);
    let none = FlasherFill::of(&place().with_emulator(EmulatorPart::default()), &profile(""));
    assert_eq!(arguments(&argv, &image, &none, &made), Err(Unfilled::Port));
    assert_eq!(arguments(&argv[2..], &image, &none, &made), Err(Unfilled::Serial));
    let empty = Image { payload_spans: Vec::new(), ..image };
    assert_eq!(arguments(&argv, &empty, &fill, &made), Err(Unfilled::Address));
    assert_eq!(
        Unfilled::Serial.to_string(),
        "the flasher needs {serial}, but the place's selector names no serial number"
    );
}

#[test]
fn a_board_gets_the_flasher_that_its_profile_names() {
    let bench = Bench::script("");
    let command = "deploy = { method = \"command\", argv = [\"f\", \"{image}\"] }";
    let probe = || place().with_probe(ProbePart::default());
    for (deploy, place, wanted) in [
        (command, probe(), true),
        (command, place(), true),
        (command, place().with_emulator(EmulatorPart::default()), false),
        ("", probe(), false),
        ("", place(), false),
    ] {
        let context = BindContext { profile: Arc::new(profile(deploy)), ..bench.context(place) };
        let protocols = CommandFlasherFactory.join(&context, Protocols::default()).unwrap();
        assert_eq!(protocols.flasher.is_some(), wanted, "{deploy}");
    }
}

/// The published flashers, each asked to flash hardware that is not there: it refuses, with
/// an exit code and words of its own.
#[tokio::test]
async fn published_flashers_refuse_without_hardware_in_their_own_words() {
    for (argv, words) in [
        (
            &[
                "openocd",
                "-f",
                "interface/cmsis-dap.cfg",
                "-f",
                "target/nrf51.cfg",
                "-c",
                "program {{{image}}} verify reset exit",
            ][..],
            "cmsis-dap",
        ),
        (&["avrdude", "-p", "m328p", "-c", "usbasp", "-U", "flash:w:{image}:r"][..], "usb"),
        (&["dfu-util", "-d", "ffff:fffe", "-a", "0", "-D", "{image}"][..], "dfu"),
    ] {
        let bench = Bench::of(argv);
        let error = jig_model::chain(&bench.deploy().await.unwrap_err());
        if error.contains("there is no such program") {
            eprintln!("skipped: {} is not installed", argv[0]);
            continue;
        }
        assert!(error.starts_with(&format!("{} ended with code ", argv[0])), "{error}");
        assert!(error.contains("its last words: "), "{error}");
        assert!(bench.log().to_lowercase().contains(words), "{}", bench.log());
    }
}

/// Judges recorded output of a preset as that of a run that has ended so.
fn judged(
    preset: &FlasherPreset,
    text: &str,
    code: Option<i32>,
) -> (Result<(), FlasherError>, bool) {
    let bench = Bench::script("");
    let context = bench.context(place());
    let flasher = CommandFlasher::new(command_of(preset), &context);
    let log = tempfile::tempfile().unwrap();
    let judge = OutputJudge::of(&command_of(preset)).unwrap();
    let mut output = FlasherOutput::new(judge, log);
    output.take(text.as_bytes(), |_| {}).unwrap();
    let question = output.question();
    output.end(|_| {}).unwrap();
    let end = code.map_or(FlasherEnd::Idle, |code| FlasherEnd::Ended(Ending::Exited(code)));
    (flasher.judge(end, question, &output, "flasher-1.log".to_owned()), output.verified)
}

/// Returns the command of a preset whose options all have a value.
fn command_of(preset: &FlasherPreset) -> FlashCommand {
    let needed: Vec<String> = (preset.options.iter().filter(|option| option.required))
        .map(|option| format!("{} = \"x\"", option.name))
        .collect();
    let (name, needed) = (&preset.name, needed.join(", "));
    let profile = profile(&format!(
        "chip = \"X1\"\n[deploy]\nmethod = \"command\"\npreset = \"{name}\"\noptions = {{ {needed} }}"
    ));
    let Some(Deploy::Command(command)) = profile.deploy else { panic!("{name}") };
    command
}

/// The recorded output of each preset leads to the verdict it was recorded for, by the code that
/// judges a run.
#[test]
fn recorded_output_is_judged_as_it_was_meant() {
    let mut failures = 0;
    for preset in FlasherPresets::shipped().iter() {
        let name = &preset.name;
        let (judged_success, verified) = judged(preset, &preset.success_example, Some(0));
        judged_success.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(verified, preset.verified_pattern.is_some(), "{name}");
        // Half of a success is none: the line that says so is missing.
        let cut: String = preset.success_example.lines().take(1).collect();
        if name != "west" && preset.success_example.lines().count() > 1 {
            let error = judged(preset, &cut, Some(0)).0.unwrap_err();
            assert!(matches!(error, FlasherError::NoSuccess { .. }), "{name}: {error}");
        }
        assert!(judged(preset, &preset.success_example, Some(9)).0.is_err(), "{name}");
        for (known, example) in preset.failures.iter().zip(&preset.failure_examples) {
            let error = judged(preset, &example.text, example.code).0.unwrap_err();
            let FlasherError::Known { cause, why, help, .. } = &error else {
                panic!("{name}, {}: {error}", known.why);
            };
            assert_eq!((cause, why), (&known.cause, &known.why), "{name}: {error}");
            let left = ["{port}", "{serial}", "{chip}"];
            assert!(!left.iter().any(|name| help.contains(name)), "{name}: {help}");
            failures += 1;
        }
    }
    assert!(failures > 55, "{failures}");
}

#[tokio::test]
async fn a_flasher_that_says_nothing_or_too_little_has_not_flashed() {
    let mut bench = Bench::script("echo working; exit 0");
    bench.command.success_pattern = Some(pattern("^done$"));
    let error = bench.refused().await;
    assert_eq!(
        error,
        "sh ended with code 0, but no line says that it has flashed (`^done$`); its last words: \
         working; all of it is in flasher-1.log"
    );
    let mut bench = Bench::script("exit 0");
    bench.command.success_pattern = Some(pattern("^done$"));
    assert!(bench.refused().await.contains("it said nothing"));
    let mut bench = Bench::script("echo done; exit 1");
    bench.command.success_pattern = Some(pattern("^done$"));
    assert!(bench.refused().await.contains("ended with code 1"));
    let mut bench = Bench::script("echo done");
    bench.command.success_pattern = Some(pattern("^done$"));
    bench.deploy().await.unwrap();
}

#[tokio::test]
async fn a_flasher_that_asks_or_falls_silent_is_ended() {
    // Nothing answers: its standard input is closed, and it asks a terminal that it does not have.
    let mut bench =
        Bench::script("printf 'Erase the whole chip? [y/N]'; read -r yes; echo \"=$yes=\"; exit 1");
    let error = bench.refused().await;
    assert!(error.contains("ended with code 1"), "{error}");
    bench = Bench::script("printf 'Erase the whole chip? [y/N]'; sleep 600");
    bench.command.idle_timeout = Some(Duration::from_secs(1));
    let error = bench.refused().await;
    assert!(
        error.contains("sh asks \"Erase the whole chip? [y/N]\" and is not answered"),
        "{error}"
    );
    bench = Bench::script("echo connecting; sleep 600");
    bench.command.idle_timeout = Some(Duration::from_secs(1));
    let error = bench.refused().await;
    assert!(error.starts_with("sh printed nothing for 1s; its last words: connecting"), "{error}");
}

#[tokio::test]
async fn a_flasher_gets_the_files_that_it_takes() {
    let script = "cp \"$2\" got.bin; cp \"$3\" got.hex; cp \"$4\" got.txt; echo \"$5\"";
    let mut bench =
        Bench::of(&["sh", "-c", script, "f", "-", "{bin}", "{hex}", "{script}", "{chip}"]);
    bench.command.argv.truncate(9);
    bench.command.argv.extend(["-s", "{serial?}", "--port={port?}"].map(str::to_owned));
    bench.command.script = vec![
        "loadfile \"{hex}\" {address}".to_owned(),
        "select {serial?}".to_owned(),
        "{{exit}}".to_owned(),
    ];
    // The same eight bytes as Intel HEX.
    let path = bench.dir.path().join("image-1.hex");
    std::fs::write(&path, ":088000006669726D776172651B\n:00000001FF\n").unwrap();
    bench.image = Image {
        format: ImageFormat::IntelHex,
        payload_sha256: Payload::parse("a.hex", &std::fs::read(&path).unwrap(), None)
            .unwrap()
            .sha256(),
        path: path.clone(),
        ..bench.image
    };
    let probe = ProbePart { chip: Some("X1".to_owned()), ..ProbePart::default() };
    let context = bench.context(place().with_probe(probe));
    let mut flasher = CommandFlasher::new(bench.command.clone(), &context);
    flasher.deploy(&bench.image).await.unwrap();
    let read = |name: &str| std::fs::read(bench.dir.path().join(name)).unwrap();
    assert_eq!(read("got.bin"), b"firmware");
    assert_eq!(read("got.hex"), read("image-1.hex"), "passed as it is");
    let wanted = format!("loadfile \"{}\" 0x8000\n{{exit}}\n", path.display());
    assert_eq!(String::from_utf8(read("got.txt")).unwrap(), wanted);
    assert_eq!(bench.log(), "X1\n");
    // A file that was changed since it was checked is not flashed.
    std::fs::write(&path, ":018000000A75\n:00000001FF\n").unwrap();
    let error = flasher.deploy(&bench.image).await.unwrap_err();
    assert!(
        jig_model::chain(&error).contains("are others than those that were checked"),
        "{error}"
    );
}

#[tokio::test]
async fn a_flasher_is_told_the_port_of_the_boot_loader_that_a_touch_has_started() {
    let mut bench = Bench::of(&["sh", "-c", "echo \"$1\"; cat \"$2\"", "f", "{port}", "{script}"]);
    bench.command.argv.push("{image}".to_owned());
    bench.command.script = vec!["open {port}".to_owned()];
    bench.command.touch = Some(Duration::from_secs(30));
    let machine = Machine::new();
    let (app, boot) = (TestPty::open(), TestPty::open());
    let port = machine.plug("1-3", "ttyACM0", "8036", &app.path);
    let probe = ProbePart { port: Some(port.clone()), ..ProbePart::default() };
    let context = bench.context(place().with_probe(probe));
    let mut flasher = CommandFlasher::new(bench.command.clone(), &context);
    flasher.roots = machine.roots();
    let (report, ()) = tokio::join!(flasher.deploy(&bench.image), async {
        tokio::task::spawn_blocking(move || touched(app)).await.unwrap();
        machine.unplug("1-3", "ttyACM0", &port);
        machine.plug("1-3", "ttyACM1", "0036", &boot.path);
    });
    report.unwrap();
    let node = machine.path("dev/ttyACM1").display().to_string();
    assert_eq!(bench.log(), format!("{node}\nopen {node}\n"));
    // The firmware's port is not there: nothing is started.
    let error = flasher.deploy(&bench.image).await.unwrap_err();
    assert!(error.to_string().contains("press RESET once"), "{error}");
}

#[tokio::test]
async fn a_flasher_is_not_given_what_it_does_not_take() {
    let mut bench = Bench::script("echo ran > ran");
    bench.command.formats = vec![ImageKind::Hex];
    bench.command.formats_help = Some("make one".to_owned());
    assert_eq!(bench.refused().await, "sh takes Intel HEX, and this is an ELF file (make one)");
    let mut bench = Bench::of(&["no-such-flasher-x", "{image}"]);
    bench.command.install = FlasherPresets::shipped().get("pyocd").map(|p| p.install.clone());
    let error = bench.deploy().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "start no-such-flasher-x: it is not installed (try: pipx install pyocd)"
    );
    assert_eq!(error.cause, Cause::HostCommandMissing);
}
