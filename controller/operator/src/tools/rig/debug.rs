//! Arguments of the tools that look into a core.

use std::num::NonZeroU64;

use jig_model::PlaceName;
use jig_model::command::{CodeLocation, Command, DebugAction, DebugCommand};
use jig_model::debug::MemoryWidth;
use schemars::JsonSchema;
use serde::Deserialize;

use super::run::{command, probe};
use super::{Named, RigArguments};
use crate::error::{OperatorCode, OperatorError};
use crate::tools::{RigCalls, RigRequest};

fn debug(place: PlaceName, action: DebugAction) -> RigRequest {
    command(Command::Debug(DebugCommand { place, probe: probe(), action }))
}

fn refused(why: impl Into<String>) -> OperatorError {
    OperatorError::new(OperatorCode::InvalidArgs, why).next("jig mcp tools").untouched()
}

/// Reads an address: JSON has no numbers of 64 bits that every client keeps.
fn address(text: &str, argument: &str) -> Result<u64, OperatorError> {
    let read = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(&hex.replace('_', ""), 16),
        None => text.parse(),
    };
    read.map_err(|_| {
        refused(format!("at /{argument}: {text:?} is no address; write such as \"0x20000000\""))
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Halt {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
}

impl RigArguments for Halt {
    fn request(self, _: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
        Ok(debug(self.place, DebugAction::Halt))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Resume {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
}

impl RigArguments for Resume {
    fn request(self, _: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
        Ok(debug(self.place, DebugAction::Resume))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Registers {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
    /// Their names; all if left out.
    #[serde(default)]
    #[schemars(length(max = 64), inner(length(max = 32)))]
    names: Vec<String>,
}

impl RigArguments for Registers {
    fn request(self, _: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
        let action = DebugAction::Registers { set: Vec::new(), read: self.names };
        Ok(debug(self.place, action))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryRead {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
    /// The first address, such as "0x20000000".
    #[schemars(length(min = 1, max = 24))]
    address: String,
    /// How many bytes.
    #[schemars(range(min = 1, max = 4096))]
    length: NonZeroU64,
}

impl RigArguments for MemoryRead {
    fn request(self, _: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
        let action = DebugAction::ReadMemory {
            address: address(&self.address, "address")?,
            length: self.length,
            width: MemoryWidth::Any,
            output: None,
        };
        Ok(debug(self.place, action))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryWrite {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
    /// The first address, such as "0x20000000".
    #[schemars(length(min = 1, max = 24))]
    address: String,
    /// The bytes, as hexadecimal digits, two for each.
    #[schemars(length(min = 2, max = 8192))]
    bytes: String,
}

impl RigArguments for MemoryWrite {
    fn request(self, _: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
        let digits: Option<Vec<u8>> = self
            .bytes
            .chars()
            .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
            .collect();
        let digits = digits.filter(|digits| digits.len() % 2 == 0).ok_or_else(|| {
            refused("at /bytes: bytes are pairs of hexadecimal digits, such as \"00ff\"")
        })?;
        let bytes = digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, n| byte << 4 | n));
        let action = DebugAction::WriteMemory {
            address: address(&self.address, "address")?,
            bytes: bytes.collect(),
            width: MemoryWidth::Any,
        };
        Ok(debug(self.place, action))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Backtrace {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
    /// ELF file with names and lines, under the working folder.
    #[schemars(length(min = 1, max = 1024))]
    image: Option<String>,
}

impl RigArguments for Backtrace {
    fn request(self, at: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
        let image = self.image.as_deref().map(|image| at.image(image)).transpose()?;
        Ok(debug(self.place, DebugAction::Backtrace { image }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Breakpoint {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
    /// The address, such as "0x1000". Either this or `function`.
    #[schemars(length(min = 1, max = 24))]
    address: Option<String>,
    /// The name of a function of `image`.
    #[schemars(length(min = 1, max = 256))]
    function: Option<String>,
    /// ELF file that has the function, under the working folder.
    #[schemars(length(min = 1, max = 1024))]
    image: Option<String>,
    /// Resets first.
    #[serde(default)]
    reset: bool,
    /// How long it is waited for, in milliseconds; 5000 if left out.
    #[schemars(range(min = 10, max = 100_000))]
    timeout_ms: Option<u64>,
}

impl RigArguments for Breakpoint {
    fn request(self, at: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
        let location = match (self.address, self.function, self.image) {
            (Some(text), None, _) => CodeLocation::Address(address(&text, "address")?),
            (None, Some(name), Some(image)) => {
                CodeLocation::Function { name, image: at.image(&image)? }
            }
            (None, Some(_), None) => return Err(refused("at /function: name its `image`, too")),
            (Some(_), Some(_), _) | (None, None, _) => {
                return Err(refused("give either `address` or `function`"));
            }
        };
        let timeout_ms = self.timeout_ms.unwrap_or(5000);
        Ok(debug(
            self.place,
            DebugAction::Breakpoint { at: location, reset: self.reset, timeout_ms },
        ))
    }
}
