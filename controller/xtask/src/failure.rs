//! Failures of tasks, with their wording and exit code. What to do next is part of the message,
//! written where the failure is raised.

use std::path::{Path, PathBuf};

/// Exit code for everything but a command's own failure.
const FAILED: u8 = 1;

/// The way a chore failed.
#[derive(Debug, thiserror::Error)]
pub enum TaskFailure {
    /// The system refused something.
    #[error("cannot {doing}")]
    Io {
        /// What was tried, as "read FILE".
        doing: String,
        /// What the system answered.
        #[source]
        source: std::io::Error,
    },
    /// A program could not be started.
    #[error("cannot start {program}")]
    Start {
        /// Its name.
        program: String,
        /// What the system answered.
        #[source]
        source: std::io::Error,
    },
    /// A program ran and said no.
    #[error("`{command}` ended with {ending}{}", tail(.stderr))]
    Command {
        /// The command line, for people.
        command: String,
        /// Its exit code; none when a signal ended it.
        code: Option<i32>,
        /// The exit code or signal, for people.
        ending: String,
        /// What it wrote to its standard error, if that was captured.
        stderr: String,
    },
    /// A recipe does not parse.
    #[error("{} is not valid", .path.display())]
    Recipe {
        /// The file.
        path: PathBuf,
        /// Where and why; boxed, for it is large.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// Anything that needs a sentence of its own.
    #[error("{0}")]
    Because(String),
}

impl TaskFailure {
    /// Makes the adapter from an I/O error, for `map_err`.
    pub fn io(verb: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let doing = format!("{verb} {}", path.display());
        move |source| Self::Io { doing, source }
    }

    /// Spells the failure and what lies below it, each once.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut below = std::error::Error::source(self);
        while let Some(source) = below {
            text.push_str(": ");
            text.push_str(&source.to_string());
            below = source.source();
        }
        text
    }

    /// Returns the exit code of the whole chore: that of the failed command, if one failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Command { code: Some(code), .. } => u8::try_from(*code).unwrap_or(FAILED),
            Self::Command { code: None, .. }
            | Self::Io { .. }
            | Self::Start { .. }
            | Self::Recipe { .. }
            | Self::Because(_) => FAILED,
        }
    }
}

fn tail(stderr: &str) -> String {
    // apt and cargo print the reason last; the progress before it does not help.
    const LINES: usize = 8;
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
    last.iter().fold(String::new(), |text, line| text + "\n  " + line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(code: Option<i32>, stderr: &str) -> TaskFailure {
        TaskFailure::Command {
            command: "apt-get update".into(),
            code,
            ending: "exit code 100".into(),
            stderr: stderr.into(),
        }
    }

    #[test]
    fn a_failed_command_lends_its_exit_code() {
        assert_eq!(command(Some(100), "").exit_code(), 100);
        assert_eq!(command(Some(-7), "").exit_code(), 1);
        assert_eq!(command(None, "").exit_code(), 1);
    }

    #[test]
    fn only_the_end_of_a_long_complaint_is_shown() {
        let noise: String = (0..50).map(|n| format!("line {n}\n\n")).collect();
        let shown = command(Some(100), &noise).chain();
        assert!(shown.contains("line 49") && !shown.contains("line 41\n"), "{shown}");
    }

    #[test]
    fn a_cause_is_printed_once() {
        let cause = std::io::Error::other("disk on fire");
        let shown = TaskFailure::io("read", Path::new("x"))(cause).chain();
        assert_eq!(shown, "cannot read x: disk on fire");
    }
}
