//! Programs that are run to their end: builds, git, agents.
//!
//! A program gets the environment, the folder and the rights that its request names, and nothing
//! else. What it prints goes to a file.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::protocol::BoxFuture;

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramRequest {
    /// Program: a name that is looked up in the `PATH` of `env`, or a path.
    pub program: OsString,
    /// Arguments, one each; never a shell line.
    pub args: Vec<OsString>,
    /// Folder to start in.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// File that gets its standard output; replaced where it exists.
    pub stdout: PathBuf,
    /// File that gets its standard error; that of the standard output where none is named, in the
    /// order in which both are written.
    pub stderr: Option<PathBuf>,
    /// Most bytes of each file. A program that prints more is ended.
    pub most_output: u64,
    /// It is known to start nothing that leaves its process group: it runs without a process that
    /// watches over it, and only its group is ended with it. Never so in a sandbox.
    pub trusted: bool,
    /// What it may touch; everything that Jig may where there is none.
    pub sandbox: Option<Sandbox>,
    /// What it is, in words, for messages: `build`.
    pub what: String,
}

/// What a program in a sandbox may touch. It may read and execute every file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sandbox {
    /// Folders below which it may write, besides `/dev/null` and its output.
    pub writable: Vec<PathBuf>,
    /// Whether it may use the network.
    pub network: bool,
}

/// How a program ended. Whatever it had started has ended with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEnd {
    /// It ended by itself with this code.
    Exited(i32),
    /// The signal of this number ended it.
    Signalled(i32),
    /// It printed more than it may, and was ended.
    TooMuchOutput,
}

/// Says why a program was not run.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It does not exist.
    #[error("{program} is not installed: {why}")]
    Missing {
        /// The program.
        program: String,
        /// Where it was looked for.
        why: String,
    },
    /// The sandbox cannot be made on this host.
    #[error("no sandbox for {what}: {why}")]
    NoSandbox {
        /// What was to run.
        what: String,
        /// What is missing.
        why: String,
    },
    /// The system refused.
    #[error("could not run {what}")]
    Refused {
        /// What was to run.
        what: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Runs programs.
pub trait Programs: Send + Sync {
    /// Runs a program to its end. Dropping the future ends the program and what it has started.
    fn run(&self, request: ProgramRequest) -> BoxFuture<'_, Result<ProgramEnd, ProgramError>>;

    /// Says what a sandbox on this host cannot do; `None` where it can do everything.
    fn sandbox_gap(&self) -> BoxFuture<'_, Option<String>>;
}
