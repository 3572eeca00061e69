//! Failures of a program that are known by what it prints.

use serde::Serialize;

use super::ExampleOrigin;
use crate::Cause;
use crate::pattern::Pattern;

/// A failure that is known by a line of the output. It explains a failure and never makes one: some
/// programs print such a line, try again and succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnownFailure {
    /// What the line matches.
    pub pattern: Pattern,
    /// The cause that a run ends with.
    pub cause: Cause,
    /// What has happened, lower case.
    pub why: String,
    /// What to do next, with `{port}`, `{serial}` and `{chip}` of the place.
    pub help: String,
    /// Where the output is from by which it is known.
    pub origin: ExampleOrigin,
}

impl KnownFailure {
    /// Returns the help with what the place has for its placeholders; a word in capital letters
    /// stands for what it does not have.
    pub fn help_for(&self, port: Option<&str>, serial: Option<&str>, chip: Option<&str>) -> String {
        let help = self.help.replace("{port}", port.unwrap_or("PORT"));
        let help = help.replace("{serial}", serial.unwrap_or("SERIAL"));
        help.replace("{chip}", chip.unwrap_or("CHIP"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_what_the_place_has() {
        let failure = KnownFailure {
            pattern: Pattern::new("x").unwrap(),
            cause: Cause::DeployFailed,
            why: "w".to_owned(),
            help: "fuser -v {port}; {serial} of {chip}".to_owned(),
            origin: ExampleOrigin::Run,
        };
        let help = failure.help_for(Some("/dev/ttyUSB0"), None, Some("X1"));
        assert_eq!(help, "fuser -v /dev/ttyUSB0; SERIAL of X1");
    }
}
