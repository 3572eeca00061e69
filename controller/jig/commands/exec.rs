//! `jig exec` and `jig cp`: commands on a target that runs an operating system.

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jig_model::command::{CommandEvent, EventSink, ShellTask};
use jig_model::protocol::{CopiedFile, TargetCommandEnd};
use jig_model::{ConsoleName, Fault, RunEvent, exit};
use jig_rig::console::escape;
use jig_rig::store::{RunDir, RunRecord};
use serde_json::json;

use super::execute::{ended_run, execute};
use super::rig::OpenRig;
use crate::args::{Common, CopyArgs, CopyEnds, ExecArgs};
use crate::failure::Failure;
use crate::render::{LogPrinter, LogViews, Screen, one_line, show_verdict};

/// Highest exit status that is passed on: a shell has no higher one.
const MOST_STATUS: i32 = 255;

/// Runs a program on a target; its exit status is the program's.
///
/// Its output goes to standard output as it comes. With `--json` there is one object at the end:
/// `{"place","argv","status","signal","output","run"}`, and no other output.
pub(crate) fn exec(common: &Common, screen: &Screen, args: ExecArgs) -> Result<u8, Failure> {
    let rig = OpenRig::open(common)?;
    let view = Arc::new(ShellView::new(screen));
    let reply = execute(&rig, args.command(), view.clone());
    view.finish();
    let (dir, record) = ended_run(&rig, screen, reply?)?;
    let Some(ended) = view.ended() else { return Ok(failed(screen, &record)) };
    let output = read_range(&dir, &record, &ended)?;
    let (status, signal) = match &ended.end {
        TargetCommandEnd::Exited(status) => (Some(*status), None),
        TargetCommandEnd::Signalled(signal) => (None, Some(signal.clone())),
    };
    if screen.json() {
        screen.out_json(&json!({
            "place": args.target.board,
            "argv": args.argv,
            "status": status,
            "signal": signal,
            "output": String::from_utf8_lossy(&output),
            "run": record.id,
        }));
    } else if !view.streamed(&ended.console) {
        print(&output);
    }
    let shown = record.verdict.as_ref().filter(|verdict| !is_good(verdict));
    match (status, shown) {
        (Some(status), shown) => {
            if let (0, Some(verdict)) = (status, shown) {
                screen.say(&format!("in the output: {}", one_line(&verdict.summary)));
            }
            Ok(code_of(status))
        }
        (None, _) => Ok(failed(screen, &record)),
    }
}

/// Copies a file to a target, or from it.
///
/// With `--json` there is one object: `{"place","from","to","bytes","sha256"}`.
pub(crate) fn copy(common: &Common, screen: &Screen, args: CopyArgs) -> Result<u8, Failure> {
    let Some(ends) = args.ends() else {
        let words = "one of the two is on the target: write it as :PATH";
        let help = "such as: jig cp -b BOARD app :/tmp/, or jig cp -b BOARD :/var/log/x .";
        return Err(Failure::new(Fault::Usage, words).help(help));
    };
    let (what, to) = match ends {
        CopyEnds::Upload { from, to } => {
            let meta = fs::metadata(&from).map_err(|error| unread(&from, &error))?;
            let mode = meta.permissions().mode() & 0o777;
            (
                ShellTask::Upload {
                    from,
                    to: if to.is_empty() { ".".to_owned() } else { to },
                    mode,
                },
                None,
            )
        }
        CopyEnds::Download { from, to } => {
            let name = from.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
            if name.is_empty() {
                let words = format!(":{from} names no file of the target");
                return Err(Failure::new(Fault::Usage, words).help("such as :/var/log/messages"));
            }
            let to = if to.is_dir() { to.join(&name) } else { to };
            (ShellTask::Download { from, to: name }, Some(to))
        }
    };
    let rig = OpenRig::open(common)?;
    let view = Arc::new(ShellView::new(screen));
    let reply = execute(&rig, args.command(what), view.clone());
    view.finish();
    let (dir, record) = ended_run(&rig, screen, reply?)?;
    let Some((file, copied)) = view.copied() else { return Ok(failed(screen, &record)) };
    if let Some(to) = &to {
        let kept = dir.path().join(&file);
        fs::copy(&kept, to).map_err(|error| {
            Failure::new(Fault::Usage, format!("write {}: {error}", to.display()))
                .help(format!("the file is kept as {}", kept.display()))
        })?;
    }
    if record.verdict.as_ref().is_none_or(|verdict| !is_good(verdict)) {
        return Ok(failed(screen, &record));
    }
    let CopiedFile { bytes, sha256 } = copied;
    if screen.json() {
        screen.out_json(&json!({
            "place": args.target.board,
            "from": args.from,
            "to": args.to,
            "bytes": bytes,
            "sha256": sha256,
        }));
    } else {
        screen.say(&format!("{bytes} bytes copied, sha256 {sha256}"));
    }
    Ok(exit::PASS)
}

fn is_good(verdict: &jig_model::Verdict) -> bool {
    verdict.kind == jig_model::VerdictKind::Pass
}

/// Shows why there is no end of a command, and returns the exit code.
fn failed(screen: &Screen, record: &RunRecord) -> u8 {
    show_verdict(screen, record);
    let kind = record.verdict.as_ref().map(|verdict| verdict.kind);
    kind.map_or(exit::BUG, exit::of_verdict)
}

/// Returns a status as an exit code of this program.
fn code_of(status: i32) -> u8 {
    u8::try_from(status.clamp(0, MOST_STATUS)).unwrap_or(u8::MAX)
}

fn unread(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Fault::Usage, format!("cannot read {}: {error}", path.display()))
}

/// Reads the output of a command.
fn read_range(dir: &RunDir, record: &RunRecord, ended: &EndedCommand) -> Result<Vec<u8>, Failure> {
    let attempt = record.attempts.last().map_or(1, |attempt| attempt.attempt);
    let path: PathBuf = dir.console_path(attempt, &ended.console);
    let read = || {
        let mut file = File::open(&path)?;
        file.seek(SeekFrom::Start(ended.from))?;
        let mut output = Vec::new();
        file.take(ended.to.saturating_sub(ended.from)).read_to_end(&mut output)?;
        Ok(output)
    };
    read().map_err(|error: io::Error| {
        Failure::new(Fault::Lab, format!("cannot read {}: {error}", path.display()))
    })
}

/// Prints output: as it is where a program reads it, and harmless where a person does.
fn print(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    let written = match out.is_terminal() {
        true => out.write_all(escape(bytes).as_bytes()),
        false => out.write_all(bytes),
    };
    // A reader that has gone wants no more.
    let _ = written.and_then(|()| out.flush());
}

/// How a command ended, and where its output is.
#[derive(Debug, Clone)]
struct EndedCommand {
    end: TargetCommandEnd,
    console: ConsoleName,
    from: u64,
    to: u64,
}

/// Shows the output of commands as it comes, and remembers how they ended.
struct ShellView {
    screen: Screen,
    logs: LogViews,
    state: Mutex<ShellState>,
}

#[derive(Default)]
struct ShellState {
    streamed: Vec<ConsoleName>,
    ended: Option<EndedCommand>,
    copied: Option<(String, CopiedFile)>,
}

impl ShellView {
    fn new(screen: &Screen) -> Self {
        Self { screen: screen.clone(), logs: LogViews::default(), state: Mutex::default() }
    }

    fn finish(&self) {
        self.logs.finish();
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ShellState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self) -> Option<EndedCommand> {
        self.state().ended.clone()
    }

    fn copied(&self) -> Option<(String, CopiedFile)> {
        self.state().copied.clone()
    }

    fn streamed(&self, console: &ConsoleName) -> bool {
        self.state().streamed.contains(console)
    }
}

impl EventSink for ShellView {
    fn event(&self, event: CommandEvent) {
        match event {
            // Other consoles show what the target prints beside.
            CommandEvent::Console { console, log }
                if console.as_str().starts_with(jig_model::shell::SHELL_CONSOLE)
                    && !self.screen.json() =>
            {
                self.logs.show(&console, &log, RawPrinter);
                self.state().streamed.push(console);
            }
            CommandEvent::Console { .. } => {}
            CommandEvent::Run { event: RunEvent::TargetCommand { end, console, from, to, .. } } => {
                self.state().ended = Some(EndedCommand { end, console, from, to });
            }
            CommandEvent::Run { event: RunEvent::FileCopied { file, copied, .. } } => {
                self.state().copied = Some((file, copied));
            }
            CommandEvent::Run { .. } => {}
            other => self.screen.event(other),
        }
    }
}

/// Prints a log as it grows.
struct RawPrinter;

impl LogPrinter for RawPrinter {
    fn print(&mut self, bytes: &[u8]) -> io::Result<()> {
        print(bytes);
        Ok(())
    }
}
