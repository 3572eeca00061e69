//! A program that switches outlets.

use serde::Serialize;

use super::fields::{SAYS_OFF, SAYS_ON, check_template, have, pattern, words};
use crate::document::{Findings, Located};
use crate::pattern::Pattern;
use crate::power::PowerPart;
use crate::power::kind::{PowerKind, PowerTable, PowerTimes};
use crate::toml_table;

/// A program that switches outlets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandPower {
    /// Program and arguments, with `{outlet}` and `{state}`. Never empty. Exit code 0 means
    /// that it was done.
    pub set: Vec<String>,
    /// Program and arguments that print the state, with `{outlet}`.
    pub status: Option<Vec<String>>,
    /// The words that stand for on and off in `{state}`.
    pub words: (String, String),
    /// What the printed state looks like when it is on, and when it is off.
    pub says: (Pattern, Pattern),
}

impl PowerKind for CommandPower {
    fn times(&self) -> PowerTimes {
        PowerTimes::new(0, 30, 5)
    }

    fn reads_back(&self) -> bool {
        self.status.is_some()
    }

    fn programs(&self) -> Vec<&str> {
        let status = self.status.as_ref().and_then(|argv| argv.first());
        self.set.first().into_iter().chain(status).map(String::as_str).collect()
    }
}

toml_table! {
    /// A program that switches outlets. Never a shell line.
    pub(crate) struct RawCommand {
        /// Program and arguments, with `{outlet}` and `{state}`; exit code 0 means done.
        set: Vec<Located<String>> = required,
        /// Program and arguments that print the state of `{outlet}`.
        status: Vec<Located<String>> = optional,
        /// What stands for on in `{state}`; "on" if missing.
        on: String = optional,
        /// What stands for off in `{state}`; "off" if missing.
        off: String = optional,
        /// What `status` prints when it is on.
        status_on: Pattern = optional,
        /// What `status` prints when it is off.
        status_off: Pattern = optional,
    }
}

impl PowerTable for RawCommand {
    type Kind = CommandPower;

    fn check(table: &Located<Self>, findings: &Findings) {
        check_argv(table.value.set.as_ref(), true, findings);
        check_argv(table.value.status.as_ref(), false, findings);
    }

    fn lower(&self) -> Option<CommandPower> {
        let argv = |list: &Located<Vec<Located<String>>>| {
            list.value.iter().map(|arg| arg.value.clone()).collect::<Vec<_>>()
        };
        Some(CommandPower {
            set: self.set.as_ref().map(argv).filter(|argv| !argv.is_empty())?,
            status: self.status.as_ref().map(argv),
            words: words(&self.on, &self.off, ("on", "off")),
            says: (pattern(&self.status_on, SAYS_ON)?, pattern(&self.status_off, SAYS_OFF)?),
        })
    }
}

fn check_argv(argv: Option<&Located<Vec<Located<String>>>>, set: bool, findings: &Findings) {
    const CHECK: &str = "rig::power-command";
    let Some(argv) = argv else { return };
    for arg in &argv.value {
        check_template(arg, set, findings);
        for part in [PowerPart::User, PowerPart::Password] {
            if have(&part, [arg.value.as_str()]) {
                let help = "arguments can be seen by every user; let the program read it from \
                            its environment or from a file";
                findings.add(CHECK, arg.at(), "a program's arguments hold no secret", help);
            }
        }
    }
    let plain = |program: &&Located<String>| {
        !program.value.is_empty() && !program.value.contains(['{', '}', '\0', ' '])
    };
    if argv.value.first().filter(plain).is_none() {
        let help = "write the program and each argument as a text of its own";
        findings.add(CHECK, argv.at(), "this begins with no program", help);
    }
    if set && !have(&PowerPart::State, argv.value.iter().map(|arg| arg.value.as_str())) {
        let help = "put {state} where the program expects on or off";
        findings.add(CHECK, argv.at(), "this does the same for on and off", help);
    }
}
