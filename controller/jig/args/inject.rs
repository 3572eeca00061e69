//! What users type to make a rig fail. Parsing only.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use jig_drivers::inject::Injection;

use super::common::duration;

/// Faults of a run.
#[derive(Debug, Args)]
pub(crate) struct FaultArgs {
    /// Make the rig fail: NAME[=ARG][@WHEN][,every] (jig inject --list)
    #[arg(long, value_name = "FAULT", value_parser = injection)]
    pub(crate) inject: Vec<Injection>,
}

const INJECT_HELP: &str = "\
This only lists them. To make a rig fail: jig run -b NAME app.elf --inject kill-emulator@2s

Exit codes: 0. A run in which a fault strikes ends as any other: 0 if it was recovered and passed,
75 if not; 1 only where the firmware failed.";

/// Arguments of `jig inject`.
#[derive(Debug, Args)]
#[command(after_long_help = INJECT_HELP)]
pub(crate) struct InjectArgs {
    /// List the faults there are, what they take and when they strike
    #[arg(long, required_unless_present_any = ["stall_parent", "steal_tty"])]
    pub(crate) list: bool,
    /// Stop the jig that has started this one for so long; for itself alone
    #[arg(long, value_name = "TIME", value_parser = duration, hide = true)]
    pub(crate) stall_parent: Option<Duration>,
    /// Read a tty until killed, and throw away what comes; for itself alone
    #[arg(long, value_name = "TTY", hide = true)]
    pub(crate) steal_tty: Option<PathBuf>,
}

/// Reads a fault; points at what is wrong.
fn injection(text: &str) -> Result<Injection, String> {
    text.parse().map_err(|error: jig_drivers::inject::GrammarError| {
        let width = |bytes: &str| bytes.chars().count();
        // The error's range lies within the text; should it ever not, all of it is meant.
        let before = text.get(..error.at.start).map_or(0, width);
        let marked = text.get(error.at.clone()).map_or(1, width).max(1);
        let (space, carets) = (" ".repeat(before), "^".repeat(marked));
        format!(
            "{}\n    {}\n    {space}{carets}\n  {} (all faults: jig inject --list)",
            error.message,
            text.replace(char::is_control, " "),
            error.help
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_pointed_at() {
        let said = injection("kill-emulator@2").unwrap_err();
        let wanted = "\"2\" is not a time\n    kill-emulator@2\n                  ^\n  write a \
                      number and a unit, such as `250ms`, `2s` or `1m` (all faults: jig inject --list)";
        assert_eq!(said, wanted);
        assert!(injection("kill-emulator@2s,every").is_ok());
    }
}
