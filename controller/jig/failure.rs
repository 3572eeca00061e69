//! Why a command could not be carried out, ready to be shown.

mod of_access;
mod of_knowledge;
mod of_lab;
mod of_lease;
mod of_probe;

use std::io;
use std::path::Path;

use clap::error::ErrorKind;
pub(crate) use jig_model::chain;
use jig_model::command::Refusal;
use jig_model::rig_file::MissingPart;
use jig_model::{Fault, Problems};
use jig_rig::console::escape;

pub(crate) use self::of_lab::names;

/// A command's failure: who is to blame, what happened, what to do next.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Decides the exit code.
    pub(crate) fault: Fault,
    /// What happened: lower case, one line; may quote hostile text.
    pub(crate) message: String,
    /// What to do next, preferably a command to paste.
    pub(crate) help: Option<String>,
    /// Documents with problems; each is shown with carets.
    pub(crate) problems: Vec<Problems>,
}

impl Failure {
    /// Builds a failure.
    pub(crate) fn new(fault: Fault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into(), help: None, problems: Vec::new() }
    }

    /// Builds a failure of an error with all that lies below it.
    pub(crate) fn of(fault: Fault, error: &dyn std::error::Error) -> Self {
        Self::new(fault, chain(error))
    }

    /// Builds a failure of documents.
    pub(crate) fn problems(problems: Vec<Problems>) -> Self {
        let count: usize = problems.iter().map(|p| p.list.len()).sum();
        let s = if count == 1 { "" } else { "s" };
        Self { problems, ..Self::new(Fault::Profile, format!("{count} problem{s} found")) }
    }

    /// Builds a failure of arguments that were not understood.
    pub(crate) fn arguments(error: &clap::Error) -> Self {
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            return Self::new(Fault::Usage, "a subcommand is missing").help("jig --help");
        }
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let (message, help) = text.split_once("\n\n").unwrap_or((text, "jig --help"));
        Self::new(Fault::Usage, message).help(help.trim())
    }

    /// Builds a failure of a new file that was not written; `other` says what to do where there is one of
    /// that name.
    pub(crate) fn of_new_file(path: &Path, error: &io::Error, other: &str) -> Self {
        let shown = on_one_line(&path.display().to_string());
        match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Self::new(Fault::Usage, format!("{shown} is there already")).help(other)
            }
            io::ErrorKind::NotFound => {
                let folder = path.parent().unwrap_or(Path::new(".")).display().to_string();
                Self::new(Fault::Usage, format!("there is no folder for {shown}"))
                    .help(format!("create the folder first: mkdir -p {}", shell_word(&folder)))
            }
            _ => Self::new(Fault::Lab, format!("could not write {shown}: {}", chain(error)))
                .help("choose a file in a folder that this user may write to"),
        }
    }

    /// Builds a failure of a part that a place lacks.
    pub(crate) fn missing(missing: MissingPart) -> Self {
        let words = missing.to_string();
        Self::new(Fault::Profile, words).help(missing.help)
    }

    /// Adds what to do next.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Returns the exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        jig_model::exit::of_fault(self.fault)
    }
}

fn on_one_line(text: &str) -> String {
    escape(text.as_bytes()).replace('\n', "\\n")
}

/// Writes a text as one word of a shell's line, for commands to paste.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@%,".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", on_one_line(text).replace('\'', "'\\''")),
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let Failure { fault, message, help, problems } = failure;
        let problems = problems.iter().flat_map(Problems::located).collect();
        Self { fault, message, help, problems }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn wrong_arguments_are_a_message_and_the_usage() {
        let of = |line: &str| {
            let error = Cli::try_parse_from(line.split_whitespace()).unwrap_err();
            Failure::arguments(&error)
        };
        let failure = of("jig regs --sped 9");
        assert_eq!(failure.fault, Fault::Usage);
        assert!(failure.message.starts_with("unexpected argument '--sped'"), "{failure:?}");
        assert!(failure.help.as_ref().unwrap().contains("Usage: jig regs"), "{failure:?}");
        assert_eq!(of("jig").message, "a subcommand is missing");
        assert_eq!(of("jig probe").message, "a subcommand is missing");
    }
}
