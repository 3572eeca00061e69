//! An agent that is a program: it edits files in a throw-away work tree, and the diff is taken from
//! there. What it prints is a log.
//!
//! Owns the work tree, the environment and the deadline of the program. The work tree belongs to a
//! repository of its own that borrows the objects of the real one: branches, stashes and settings
//! that the program makes are thrown away with it. The diff is taken by a second such repository that
//! the program has never seen, so its commits and its changes of `.git` have no effect on the diff.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jig_model::chain;
use jig_model::program::{ProgramEnd, ProgramRequest, Programs};
use jig_model::protocol::BoxFuture;
use serde::Deserialize;

use super::hypothesis::hypothesis;
use super::{AgentError, Answer, PatchProposal, ProposalRequest, RepairAgent};
use crate::excerpt::last_lines;
use crate::git::{Git, GitError, remove_now};
use crate::journal::Usage;
use crate::redact::Redactor;
use crate::task::AgentCommand;

/// Most bytes that a program may print.
const MAX_OUTPUT: u64 = 16 << 20;

/// Largest diff. A policy allows far less.
const MAX_DIFF: u64 = 1 << 20;

/// How long the work tree may be made, and read afterwards. A tree of 50,000 files takes seconds.
const GIT_TIME: Duration = Duration::from_secs(120);

/// Largest file with what an answer has used.
const MAX_USAGE: u64 = 64 << 10;

/// What stands in a command for the file into which the program may write its usage.
const USAGE: &str = "{usage}";

/// Name of the log in the scratch folder.
const LOG: &str = "agent.log";

/// A program as an agent.
pub struct CommandAgent {
    settings: AgentCommand,
    programs: Arc<dyn Programs>,
    git: Git,
    /// The variables that are passed on, where they are set.
    env: Vec<(OsString, OsString)>,
    unset: Vec<String>,
    redactor: Redactor,
    most_output: u64,
}

impl CommandAgent {
    /// Makes an agent for the repository of `git`. `variable` looks up the environment of Jig.
    pub fn new(
        settings: AgentCommand,
        programs: Arc<dyn Programs>,
        git: Git,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let found = |name: &str| Some((OsString::from(name), variable(name)?));
        let listed: Vec<_> = settings.env.iter().filter_map(|name| found(name)).collect();
        let unset = settings.env.iter().filter(|name| variable(name).is_none()).cloned().collect();
        let text = |value: &OsStr| value.to_string_lossy().into_owned();
        let secrets = listed.iter().map(|(name, value)| (text(name), text(value)));
        let redactor = Redactor::new(secrets);
        let usual = ["PATH", "LANG"].into_iter().filter_map(found);
        let usual = usual.filter(|(name, _)| !listed.iter().any(|(other, _)| other == name));
        let env = usual.chain(listed.iter().cloned()).collect();
        Self { settings, programs, git, env, unset, redactor, most_output: MAX_OUTPUT }
    }

    /// Asks; says in `usage` and `note` what the answer has used, whether there is one or not.
    async fn answer(
        &self,
        request: &ProposalRequest,
        usage: &mut Usage,
        note: &mut Option<String>,
    ) -> Result<Answer, CommandFailure> {
        let left = request.budget.left.micro_usd;
        if let Some(price) = self.settings.micro_usd_per_call.filter(|price| *price > left) {
            return Err(CommandFailure::Budget { price, left });
        }
        let folders = Folders::of(&request.scratch).map_err(CommandFailure::Folder)?;
        let result = self.answer_in(&folders, request).await;
        // Also where it has no answer: it was paid for.
        (*usage, *note) = self.used(&folders.usage);
        let removed = tokio::task::spawn_blocking(move || folders.remove()).await;
        let answer = result?;
        removed.unwrap_or_else(|end| Err(io::Error::other(end))).map_err(CommandFailure::Folder)?;
        Ok(answer)
    }

    async fn answer_in(
        &self,
        folders: &Folders,
        request: &ProposalRequest,
    ) -> Result<Answer, CommandFailure> {
        let made = async {
            let own = self.git.borrow(&folders.repository).await?;
            own.work_tree_add(&folders.tree, &request.base).await
        };
        in_time(made).await?;
        self.run(folders, request).await?;
        let printed = self.log(folders).await.map_err(CommandFailure::Folder)?;
        let diff = in_time(async {
            let judge = self.git.borrow(&folders.judge).await?;
            judge.with_files_of(&folders.tree).diff(&request.base, MAX_DIFF).await
        });
        // A link in its place would show files that are not below it.
        if !std::fs::symlink_metadata(&folders.tree).is_ok_and(|tree| tree.is_dir()) {
            return Err(CommandFailure::NoTree);
        }
        let diff = String::from_utf8(diff.await?).map_err(|_| CommandFailure::NotUtf8)?;
        if diff.is_empty() {
            return Err(CommandFailure::Nothing(last_lines(printed.as_bytes())));
        }
        if let Some(name) = self.redactor.variable_in(&diff) {
            return Err(CommandFailure::Secret(name.to_owned()));
        }
        let proposal = PatchProposal { diff, hypothesis: hypothesis(&printed) };
        Ok(Answer { proposals: vec![proposal], ..Answer::default() })
    }

    /// Runs the program to its end.
    async fn run(
        &self,
        folders: &Folders,
        request: &ProposalRequest,
    ) -> Result<(), CommandFailure> {
        let bundle = std::path::absolute(&request.bundle).map_err(CommandFailure::Folder)?;
        let filled = |arg: &String| filled_in(arg, &bundle, &folders.usage);
        let mut argv = self.settings.command.iter().map(filled);
        let mut env = self.env.clone();
        // A task that lists them passes on those of Jig.
        for (name, folder) in [("HOME", &folders.home), ("TMPDIR", &folders.tmp)] {
            if !env.iter().any(|(listed, _)| listed == name) {
                env.push((name.into(), folder.into()));
            }
        }
        let asked = ProgramRequest {
            program: argv.next().unwrap_or_default(),
            args: argv.collect(),
            cwd: folders.tree.clone(),
            env,
            stdout: folders.printed.clone(),
            stderr: None,
            most_output: self.most_output,
            trusted: false,
            // Agents bring sandboxes of their own, which do not start inside of another one.
            sandbox: None,
            what: format!("agent {}", self.settings.name),
        };
        let limit = self.settings.timeout.min(request.budget.time);
        let ended = tokio::time::timeout(limit, self.programs.run(asked)).await;
        let why = match ended {
            Ok(Ok(ProgramEnd::Exited(0))) => return Ok(()),
            Ok(Err(error)) => return Err(CommandFailure::Program(chain(&error))),
            Ok(Ok(ProgramEnd::Exited(code))) => format!("ended with code {code}"),
            Ok(Ok(ProgramEnd::Signalled(signal))) => format!("was ended by signal {signal}"),
            Ok(Ok(ProgramEnd::TooMuchOutput)) => {
                format!("printed more than {} bytes and was ended", self.most_output)
            }
            Err(_) => format!("did not end within {limit:?} and was ended"),
        };
        let printed = self.log(folders).await.map_err(CommandFailure::Folder)?;
        Err(CommandFailure::Ended { why, printed: last_lines(printed.as_bytes()) })
    }

    /// Tells whether the program is given a file for what it has used.
    fn tells_usage(&self) -> bool {
        self.settings.command.iter().any(|arg| arg.contains(USAGE))
    }

    /// Returns what an answer has used, by what the program has written, or else by the price of a call;
    /// and a note where the program has written nothing that can be read.
    fn used(&self, file: &Path) -> (Usage, Option<String>) {
        let micro_usd = self.settings.micro_usd_per_call.unwrap_or(0);
        let by_price = Usage { tokens: 0, micro_usd };
        if !self.tells_usage() {
            return (by_price, None);
        }
        match read_usage(file) {
            Ok(WrittenUsage { input_tokens, output_tokens, usd }) => {
                let tokens = input_tokens.saturating_add(output_tokens);
                let micro_usd = usd.map_or(micro_usd, |usd| (usd * 1e6).ceil() as u64);
                (Usage { tokens, micro_usd }, None)
            }
            Err(error) => (by_price, Some(format!("its usage is unknown: {error}"))),
        }
    }

    /// Puts what the program has printed into its log, without secrets.
    async fn log(&self, folders: &Folders) -> io::Result<String> {
        let (from, to) = (folders.printed.clone(), folders.log.clone());
        let redactor = self.redactor.clone();
        let written = tokio::task::spawn_blocking(move || {
            let clean = redactor.text(&String::from_utf8_lossy(&std::fs::read(from)?));
            std::fs::write(to, &clean).map(|()| clean)
        });
        written.await.unwrap_or_else(|end| Err(io::Error::other(end)))
    }
}

impl RepairAgent for CommandAgent {
    fn runs_program(&self) -> bool {
        true
    }

    fn counts_usage(&self) -> bool {
        self.settings.micro_usd_per_call.is_some() || self.tells_usage()
    }

    fn propose<'a>(
        &'a self,
        request: &'a ProposalRequest,
    ) -> BoxFuture<'a, Result<Answer, AgentError>> {
        Box::pin(async move {
            let (mut usage, mut note) = (Usage::default(), None);
            let answer = self.answer(request, &mut usage, &mut note).await;
            let answer = answer.map(|mut answer| {
                answer.notes.extend(note.clone());
                Answer { usage, ..answer }
            });
            answer.map_err(|failure| {
                let mut why = format!("agent {}: {}", self.settings.name, chain(&failure));
                if !self.unset.is_empty() && matches!(failure, CommandFailure::Ended { .. }) {
                    why.push_str(&format!(" (not set: {})", self.unset.join(", ")));
                }
                why.extend(note.map(|note| format!(" ({note})")));
                AgentError { why, usage }
            })
        })
    }
}

/// What a program writes of an answer's usage.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenUsage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    usd: Option<f64>,
}

/// Most that one answer can cost in US dollars; more is a mistake of the program.
const MAX_USD: f64 = 100_000.0;

/// Reads what a program has written of its usage. It is hostile: a device or a pipe is not opened.
fn read_usage(path: &Path) -> io::Result<WrittenUsage> {
    let about = std::fs::symlink_metadata(path)?;
    if !about.is_file() || about.len() > MAX_USAGE {
        let why = format!("it is no file of at most {MAX_USAGE} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let mut text = Vec::new();
    std::fs::File::open(path)?.take(MAX_USAGE).read_to_end(&mut text)?;
    let usage: WrittenUsage = serde_json::from_slice(&text)?;
    if usage.usd.is_some_and(|usd| !(0.0..=MAX_USD).contains(&usd)) {
        let why = format!("`usd` is no number from 0 to {MAX_USD}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(usage)
}

/// Says what a program has printed, behind what else is said.
fn behind(printed: &str) -> String {
    if printed.is_empty() { String::new() } else { format!(": {printed}") }
}

/// Says why a program made no patch.
#[derive(Debug, thiserror::Error)]
enum CommandFailure {
    #[error("{0}")]
    Program(String),
    #[error("it {why}{}", behind(printed))]
    Ended { why: String, printed: String },
    #[error("it changed nothing{}", behind(.0))]
    Nothing(String),
    #[error("it removed its work tree")]
    NoTree,
    #[error("its change holds text that is not UTF-8")]
    NotUtf8,
    #[error("its change holds the value of {0}")]
    Secret(String),
    #[error("its change is larger than {MAX_DIFF} bytes")]
    TooLarge,
    #[error("its work tree was not read or written within {GIT_TIME:?}")]
    Slow,
    #[error(
        "a question costs {price} millionths of a dollar (`usd-per-call`), and {left} are left"
    )]
    Budget { price: u64, left: u64 },
    #[error("its folders cannot be used")]
    Folder(#[source] io::Error),
    #[error("its work tree cannot be used")]
    Git(#[source] GitError),
}

impl From<GitError> for CommandFailure {
    fn from(error: GitError) -> Self {
        match error {
            GitError::TooLarge { most: MAX_DIFF, .. } => Self::TooLarge,
            error => Self::Git(error),
        }
    }
}

async fn in_time<T>(work: impl Future<Output = Result<T, GitError>>) -> Result<T, CommandFailure> {
    let done = tokio::time::timeout(GIT_TIME, work).await;
    Ok(done.map_err(|_| CommandFailure::Slow)??)
}

/// Puts the folder with the evidence in place of `{bundle}`, and the file for what the answer has used in
/// place of [`USAGE`].
fn filled_in(arg: &str, bundle: &Path, usage: &Path) -> OsString {
    let mut filled = OsString::new();
    let with_usage = |filled: &mut OsString, text: &str| {
        for (number, part) in text.split(USAGE).enumerate() {
            if number > 0 {
                filled.push(usage);
            }
            filled.push(part);
        }
    };
    for (number, part) in arg.split("{bundle}").enumerate() {
        if number > 0 {
            filled.push(bundle);
        }
        with_usage(&mut filled, part);
    }
    filled
}

/// What stands in the scratch folder. All but the log is removed when this is dropped.
struct Folders {
    repository: PathBuf,
    tree: PathBuf,
    judge: PathBuf,
    home: PathBuf,
    tmp: PathBuf,
    printed: PathBuf,
    usage: PathBuf,
    log: PathBuf,
}

impl Folders {
    fn of(scratch: &Path) -> io::Result<Self> {
        let scratch = std::path::absolute(scratch)?;
        let at = |name: &str| scratch.join(name);
        let folders = Self {
            repository: at("repository.git"),
            tree: at("tree"),
            judge: at("judge.git"),
            home: at("home"),
            tmp: at("tmp"),
            printed: at("printed"),
            usage: at("usage.json"),
            log: at(LOG),
        };
        std::fs::create_dir_all(&folders.home)?;
        std::fs::create_dir_all(&folders.tmp)?;
        Ok(folders)
    }

    /// Removes all that can be removed, and returns the first error.
    fn remove(&self) -> io::Result<()> {
        let all = [&self.tree, &self.repository, &self.judge, &self.home, &self.tmp];
        let removed = all.map(|folder| remove_now(folder));
        let files = [&self.printed, &self.usage].map(|file| match std::fs::remove_file(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        });
        removed.into_iter().chain(files).collect()
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
