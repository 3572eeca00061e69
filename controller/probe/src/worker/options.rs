//! How to attach, and what came of it.
//!
//! Owns the options and the report of an attachment, and the one reading of the environment.
//! Refuses to read that environment itself: it is handed a look-up.

use std::time::Duration;

use jig_model::debug::{AttachMethod, WireProtocol};
use serde::{Deserialize, Serialize};

use crate::{CoreKind, ProbeError};

/// Default number of attempts to attach: each rung of the ladder of
/// [`AttachMode::Auto`] once.
const ATTEMPTS: u32 = 4;

/// How long a probe may be silent. The longest thing a chip does without a sign of life is
/// the erasure of one sector; the slowest in the chip descriptions is given 15 s.
const DEADLINE: Duration = Duration::from_secs(20);

/// How to attach to a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachOptions {
    /// The chip's name; without it the chip is asked.
    pub chip: Option<String>,
    /// A description of chips that are not built in: the text of a probe-rs target file.
    pub chip_description: Option<String>,
    /// Speed of the debug wire in kHz; without it the probe's own choice.
    pub speed_khz: Option<u32>,
    /// Protocol of the debug wire; without it the probe's own choice.
    pub protocol: Option<WireProtocol>,
    /// What is done to the running program.
    pub mode: AttachMode,
    /// How often it is tried in all; at least once.
    pub attempts: u32,
    /// Whether a protected chip may be erased to get in.
    pub allow_unlock: bool,
    /// How long the probe may show no sign of progress before it is given up.
    pub deadline: Duration,
    /// How long to wait for another client of a remote probe, which serves one at a time.
    pub wait: Duration,
}

impl Default for AttachOptions {
    fn default() -> Self {
        Self {
            chip: None,
            chip_description: None,
            speed_khz: None,
            protocol: None,
            mode: AttachMode::Auto,
            attempts: ATTEMPTS,
            allow_unlock: false,
            deadline: DEADLINE,
            wait: Duration::ZERO,
        }
    }
}

/// What is done to the running program when attaching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachMode {
    /// It goes on running.
    Running,
    /// It is reset, and the core halted before its first instruction.
    UnderReset,
    /// It goes on running if that works, else it is reset: a target that sleeps or has its
    /// debug pins in other use answers only then.
    Auto,
}

/// Returns the ways that are tried, in order.
pub(crate) fn ladder(mode: AttachMode, attempts: u32) -> impl Iterator<Item = AttachMethod> {
    use AttachMethod::{ResetAfter, Running, UnderReset};
    let rungs: &'static [AttachMethod] = match mode {
        AttachMode::Running => &[Running],
        AttachMode::UnderReset => &[UnderReset, ResetAfter],
        // Twice running: the first attach after power-up often fails where the second works.
        AttachMode::Auto => &[Running, Running, UnderReset, ResetAfter],
    };
    rungs.iter().copied().cycle().take(attempts.max(1) as usize)
}

/// Says what was attached to, and what that took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// The probe's selector, or the name of a virtual one.
    pub probe: String,
    /// The chip's name, as the chip descriptions spell it.
    pub chip: String,
    /// What its first core is, where this crate knows the kind.
    pub core: Option<CoreKind>,
    /// How often it was tried, the last one included.
    pub attempts: u32,
    /// The way that worked.
    pub method: AttachMethod,
    /// What each attempt that failed said, in order.
    pub failures: Vec<String>,
    /// The chip's memory.
    pub memory: Vec<ChipRegion>,
}

/// A part of a chip's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChipRegion {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// First address.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// What it is.
    pub kind: ChipMemoryKind,
}

/// What a part of memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChipMemoryKind {
    /// Non-volatile: needs a flash algorithm to be written.
    Flash,
    /// Volatile.
    Ram,
    /// Anything else: registers, mask ROM.
    Other,
}

/// Reads the `PROBE_RS_*` variables that probe-rs' own tools honour. Returns the selector, if
/// one is given, and options that are the defaults but for what is given.
///
/// # Errors
/// [`ProbeError::BadOption`] names the variable whose value means nothing.
pub fn options_from_env(
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<(Option<String>, AttachOptions), ProbeError> {
    let given = |name: &str| lookup(name).filter(|value| !value.is_empty());
    let mut options = AttachOptions { chip: given("PROBE_RS_CHIP"), ..AttachOptions::default() };
    if let Some(text) = given("PROBE_RS_SPEED") {
        let speed = text.parse().ok().filter(|speed| *speed > 0);
        let speed = speed.ok_or_else(|| bad("PROBE_RS_SPEED", &text, "a number of kHz"))?;
        options.speed_khz = Some(speed);
    }
    if let Some(text) = given("PROBE_RS_PROTOCOL") {
        options.protocol = Some(match text.to_ascii_lowercase().as_str() {
            "swd" => WireProtocol::Swd,
            "jtag" => WireProtocol::Jtag,
            _ => return Err(bad("PROBE_RS_PROTOCOL", &text, "swd or jtag")),
        });
    }
    if let Some(text) = given("PROBE_RS_CONNECT_UNDER_RESET")
        && truth("PROBE_RS_CONNECT_UNDER_RESET", &text)?
    {
        options.mode = AttachMode::UnderReset;
    }
    if let Some(text) = given("PROBE_RS_ALLOW_ERASE_ALL") {
        options.allow_unlock = truth("PROBE_RS_ALLOW_ERASE_ALL", &text)?;
    }
    Ok((given("PROBE_RS_PROBE"), options))
}

/// The words clap takes for a flag in the environment, which is what the original does.
fn truth(name: &'static str, text: &str) -> Result<bool, ProbeError> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "t" | "yes" | "y" | "on" => Ok(true),
        "0" | "false" | "f" | "no" | "n" | "off" => Ok(false),
        _ => Err(bad(name, text, "true or false")),
    }
}

fn bad(name: &'static str, value: &str, wanted: &'static str) -> ProbeError {
    ProbeError::BadOption { name: name.to_owned(), value: value.to_owned(), wanted }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn read(vars: &[(&str, &str)]) -> Result<(Option<String>, AttachOptions), ProbeError> {
        let vars: HashMap<String, String> =
            vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        options_from_env(|name| vars.get(name).cloned())
    }

    #[test]
    fn an_empty_environment_says_nothing() {
        let (selector, options) = read(&[("PROBE_RS_CHIP", "")]).unwrap();
        assert_eq!((selector, options), (None, AttachOptions::default()));
    }

    #[test]
    fn every_variable_is_honoured() {
        let (selector, options) = read(&[
            ("PROBE_RS_PROBE", "20b7:9db1:unix:/tmp/a"),
            ("PROBE_RS_CHIP", "nRF51822_xxAA"),
            ("PROBE_RS_SPEED", "4000"),
            ("PROBE_RS_PROTOCOL", "SWD"),
            ("PROBE_RS_CONNECT_UNDER_RESET", "true"),
            ("PROBE_RS_ALLOW_ERASE_ALL", "1"),
        ])
        .unwrap();
        assert_eq!(selector.as_deref(), Some("20b7:9db1:unix:/tmp/a"));
        assert_eq!(options.chip.as_deref(), Some("nRF51822_xxAA"));
        assert_eq!(options.speed_khz, Some(4000));
        assert_eq!(options.protocol, Some(WireProtocol::Swd));
        assert_eq!(options.mode, AttachMode::UnderReset);
        assert!(options.allow_unlock);
        let (_, off) = read(&[("PROBE_RS_CONNECT_UNDER_RESET", "0")]).unwrap();
        assert_eq!(off.mode, AttachMode::Auto);
    }

    #[test]
    fn a_value_that_means_nothing_is_named() {
        for (name, value, text) in [
            ("PROBE_RS_SPEED", "fast", "PROBE_RS_SPEED is \"fast\", not a number of kHz"),
            ("PROBE_RS_SPEED", "0", "PROBE_RS_SPEED is \"0\", not a number of kHz"),
            ("PROBE_RS_PROTOCOL", "i2c", "PROBE_RS_PROTOCOL is \"i2c\", not swd or jtag"),
            (
                "PROBE_RS_ALLOW_ERASE_ALL",
                "maybe",
                "PROBE_RS_ALLOW_ERASE_ALL is \"maybe\", not true or false",
            ),
        ] {
            assert_eq!(read(&[(name, value)]).unwrap_err().to_string(), text);
        }
    }

    #[test]
    fn the_ladder_ends_after_as_many_rungs_as_asked_for() {
        use AttachMethod::{ResetAfter, Running, UnderReset};
        let auto: Vec<_> = ladder(AttachMode::Auto, 5).collect();
        assert_eq!(auto, [Running, Running, UnderReset, ResetAfter, Running]);
        assert_eq!(ladder(AttachMode::Running, 0).collect::<Vec<_>>(), [Running]);
        let reset: Vec<_> = ladder(AttachMode::UnderReset, 3).collect();
        assert_eq!(reset, [UnderReset, ResetAfter, UnderReset]);
    }

    #[test]
    fn options_survive_json() {
        let options = AttachOptions { chip: Some("x".to_owned()), ..AttachOptions::default() };
        let text = serde_json::to_string(&options).unwrap();
        assert_eq!(serde_json::from_str::<AttachOptions>(&text).unwrap(), options);
    }
}
