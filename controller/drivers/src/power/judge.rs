//! Telling on from off in what a device says.

use jig_model::pattern::Pattern;
use jig_model::protocol::PowerState;
use regex::bytes::{Regex, RegexBuilder};

use super::PowerError;

/// What a device says when an outlet is on, and when it is off.
pub(super) struct StateJudge {
    on: Regex,
    off: Regex,
}

/// Compiles a pattern of the rig file.
pub(super) fn compile(pattern: &Pattern) -> Result<Regex, PowerError> {
    // The dialect of all patterns; see `jig_model::pattern`.
    let mut builder = RegexBuilder::new(pattern.as_str());
    let built = builder.unicode(false).multi_line(true).crlf(true).build();
    built.map_err(|error| PowerError::unusable(format!("the pattern `{pattern}`"), error))
}

impl StateJudge {
    pub(super) fn of(says: &(Pattern, Pattern)) -> Result<Self, PowerError> {
        Ok(Self { on: compile(&says.0)?, off: compile(&says.1)? })
    }

    /// Tells the state from an answer. One that looks like both or neither is nonsense.
    pub(super) fn state(&self, what: &str, said: &[u8]) -> Result<PowerState, PowerError> {
        match (self.on.is_match(said), self.off.is_match(said)) {
            (true, false) => Ok(PowerState::On),
            (false, true) => Ok(PowerState::Off),
            (true, true) | (false, false) => Err(PowerError::garbage(what, said)),
        }
    }
}
