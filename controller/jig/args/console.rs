//! What users type after `jig console`. Parsing only.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use jig_model::ConsoleName;

use super::common::duration;
use super::target::TargetArgs;

/// Arguments of `jig console`.
#[derive(Debug, Args)]
pub(crate) struct ConsoleArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Image to boot: ELF, Intel HEX, or FILE.bin@ADDRESS; not needed where the board boots an
    /// image set
    #[arg(long, value_hint = ValueHint::FilePath)]
    pub(crate) image: Option<PathBuf>,
    /// Which console, if not the primary one
    #[arg(long, value_name = "NAME")]
    pub(crate) console: Option<ConsoleName>,
    /// Pass bytes through untouched on standard input and output. On a terminal, --raw also sets it
    /// to raw mode (Ctrl-] ends); --raw=bytes leaves its settings alone (Ctrl-D ends), as pexpect
    /// scripts want it
    #[arg(
        long,
        value_enum,
        value_name = "MODE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "terminal"
    )]
    pub(crate) raw: Option<RawMode>,
    /// What the enter key sends: lf if not said; with --raw=bytes as it is if not said
    #[arg(long, value_enum)]
    pub(crate) line_end: Option<LineEnd>,
    #[command(flatten)]
    pub(crate) attach: AttachArgs,
}

/// How to attach to a console that `jig serve` captures, or that a run uses.
#[derive(Debug, Args)]
#[command(next_help_heading = "A console that jig serve captures")]
pub(crate) struct AttachArgs {
    /// Only show what is printed; also while a run has the board
    #[arg(long, conflicts_with = "image")]
    pub(crate) listen_only: bool,
    /// Show what was printed in this time first (5m, 1h; 0s for nothing); with --listen-only
    /// nothing else. If not said: 60s on a terminal; 0s with --raw and where standard input or
    /// output is no terminal
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "image")]
    pub(crate) since: Option<Duration>,
    /// Go on after --since --listen-only with what is printed from now on; with --listen-only also
    /// wait for a jig serve or a run that captures the console
    #[arg(long, conflicts_with = "image")]
    pub(crate) follow: bool,
    /// Take the right to send from another user; never from a run
    #[arg(long, conflicts_with_all = ["image", "listen_only"])]
    pub(crate) take: bool,
    /// Send a break, and end
    #[arg(long, conflicts_with_all = ["image", "listen_only"])]
    pub(crate) send_break: bool,
    /// Set the line DTR of the port, and end
    #[arg(long, value_name = "STATE", conflicts_with_all = ["image", "listen_only"])]
    pub(crate) dtr: Option<LineSwitch>,
    /// Set the line RTS of the port, and end
    #[arg(long, value_name = "STATE", conflicts_with_all = ["image", "listen_only"])]
    pub(crate) rts: Option<LineSwitch>,
}

/// How bytes pass untouched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RawMode {
    /// A terminal is set to raw mode for the session: no echo, no line editing
    Terminal,
    /// A terminal keeps its settings
    Bytes,
}

/// A line's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LineSwitch {
    /// Active
    On,
    /// Inactive
    Off,
}

/// Line ends that targets wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LineEnd {
    /// Line feed
    Lf,
    /// Carriage return
    Cr,
    /// Carriage return and line feed
    Crlf,
}

impl LineEnd {
    /// Returns the bytes.
    pub(crate) fn bytes(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::Cr => b"\r",
            Self::Crlf => b"\r\n",
        }
    }
}

impl ConsoleArgs {
    /// Tells whether an older part of the output is shown first: to a person, who wants to see
    /// where the board stands, and never to a program, which would take it for an answer.
    pub(crate) fn shows_older(&self, stdin_is_terminal: bool, stdout_is_terminal: bool) -> bool {
        let reads_stdin = !self.attach.listen_only;
        self.raw.is_none() && stdout_is_terminal && (stdin_is_terminal || !reads_stdin)
    }
}

impl AttachArgs {
    /// Tells whether an option is given that a console of a board booted for it does not have.
    pub(crate) fn wants_a_live_one(&self) -> bool {
        self.listen_only || self.since.is_some() || self.follow || self.take
    }
}
