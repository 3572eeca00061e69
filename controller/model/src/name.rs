//! Names that are checked once, where they enter.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::chip_name::{CHIP_PREFIX, ChipName};

/// Says why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a name: use 1 to {max} of a-z, A-Z, 0-9, `.`, `_` and `-`, starting with a letter or digit"
)]
pub struct NameError {
    text: String,
    max: usize,
}

/// Longest accepted name in bytes: names become file names, which are limited to 255.
const MAX_NAME: usize = 64;

fn check(text: &str) -> Result<(), NameError> {
    let mut bytes = text.bytes();
    let head = bytes.next().is_some_and(|b| b.is_ascii_alphanumeric());
    let tail = bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if head && tail && text.len() <= MAX_NAME {
        Ok(())
    } else {
        Err(NameError { text: text.chars().take(MAX_NAME).collect(), max: MAX_NAME })
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// 1 to 64 bytes of `[A-Za-z0-9._-]`, starting with a letter or digit, so it is
        /// always one safe path component.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(#[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"))] String);

        impl $name {
            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                check(text)?;
                Ok(Self(text.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                check(&text)?;
                Ok(Self(text))
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

macro_rules! chip_name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// 1 to 64 bytes of `[A-Za-z0-9._-]`, starting with a letter or digit, or a [`ChipName`]
        /// behind `chip:`, so it is always one safe path component.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(
            #[schemars(regex(
                pattern = r"^([A-Za-z0-9][A-Za-z0-9._-]{0,63}|chip:[A-Za-z0-9][A-Za-z0-9._+-]{0,58})$"
            ))]
            String,
        );

        impl $name {
            /// Makes the name of a chip that is used without a profile.
            pub fn of_chip(chip: &ChipName) -> Self {
                Self(format!("{CHIP_PREFIX}{chip}"))
            }

            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Returns the name of the chip, if this is one without a profile.
            pub fn chip(&self) -> Option<&str> {
                self.0.strip_prefix(CHIP_PREFIX)
            }
        }

        impl FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                match text.strip_prefix(CHIP_PREFIX) {
                    Some(chip) if chip.parse::<ChipName>().is_ok() => {}
                    Some(_) | None => check(text)?,
                }
                Ok(Self(text.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

chip_name! {
    /// Names a kind of board: the file stem of its profile, or a chip that has none.
    BoardId
}
chip_name! {
    /// Names one station of a rig, or a chip on a probe that no rig file has.
    PlaceName
}
name! {
    /// Names a device that places of a rig may share, such as a power strip.
    DeviceName
}
name! {
    /// Names one console of a board, such as `uart0`.
    ConsoleName
}
name! {
    /// Names an action, step, stage or behaviour inside a plan.
    ActionName
}
name! {
    /// Names a run; also the name of its directory.
    RunId
}
name! {
    /// Names something that places of a rig have in common, such as `radio`.
    TagName
}
name! {
    /// Names a class of users, such as `engineer` or `ci`.
    ClassName
}
name! {
    /// Names a lease.
    LeaseId
}

impl ClassName {
    /// Takes a name that this crate makes itself, so a refusal could not be acted on.
    pub(crate) fn made(text: String) -> Self {
        debug_assert!(check(&text).is_ok(), "{text:?} is no name");
        Self(text)
    }
}

impl ActionName {
    /// Takes a name that this crate makes itself, so a refusal could not be acted on.
    pub(crate) fn made(text: String) -> Self {
        debug_assert!(check(&text).is_ok(), "{text:?} is no name");
        Self(text)
    }
}

impl ConsoleName {
    /// Takes a name that this crate makes itself, so a refusal could not be acted on.
    pub(crate) fn made(text: String) -> Self {
        debug_assert!(check(&text).is_ok(), "{text:?} is no name");
        Self(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_single_safe_path_components() {
        for good in ["microbit", "mps2-an385", "0", "a.b_c-D"] {
            assert!(good.parse::<BoardId>().is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "-x", "é", "a b", &"x".repeat(65)] {
            assert!(bad.parse::<BoardId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_chip_name_and_its_board_are_one_path_component() {
        for good in ["STM32F411CEUx", "nRF52840_xxAA", "stm32wlxx_cm0+", "Cortex-M0+", "0"] {
            let name: ChipName = good.parse().unwrap();
            let board = BoardId::of_chip(&name);
            assert_eq!((board.as_str(), board.chip()), (&*format!("chip:{good}"), Some(good)));
            assert_eq!(board.as_str().parse::<BoardId>().unwrap(), board);
        }
        for bad in ["", "+", "a/b", "a:b", "..", "é", &"x".repeat(60)] {
            assert!(bad.parse::<ChipName>().is_err(), "{bad}");
            assert!(format!("chip:{bad}").parse::<BoardId>().is_err(), "{bad}");
        }
        assert_eq!("microbit".parse::<BoardId>().unwrap().chip(), None);
    }
}
