//! Who asks: the one notion of identity of leases, access rules, records and the audit log.
//!
//! # Design
//! *Two name spaces.* A user of the rig's host is written `unix:alice`; the name that `jig rpc --as`
//! was started with, such as by an authorised SSH key, is written as it is: `ci`. So no key can be
//! taken for a user of the host.
//!
//! *The rig's host vouches.* An identity is made from the user of a process, the peer of a socket or
//! the command line of the server. What a caller says of itself is never part of it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What stands before the name of a user of the rig's host.
const UNIX: &str = "unix:";

/// What stands before the name of a group of users of the rig's host.
const GROUP: &str = "group:";

/// Longest name in bytes: user names of directory services are longer than those of `useradd`.
const MOST_NAME: usize = 128;

/// Who asks, as the rig's host knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// By what name. Rights, leases and jobs belong to names.
    pub name: IdentityName,
    /// The host that vouches for the name.
    pub host: String,
    /// The address that the caller came from, as the SSH server of that host has told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

impl Default for Identity {
    /// The identity of a program that uses the rig of its host without saying as whom.
    fn default() -> Self {
        let name = IdentityName(NameSpace::Unix, "unknown".to_owned());
        Self { name, host: String::new(), from: None }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        if !self.host.is_empty() {
            write!(f, "@{}", self.host)?;
        }
        match &self.from {
            Some(from) => write!(f, " (from {from})"),
            None => Ok(()),
        }
    }
}

/// The name of a user of the rig's host, `unix:alice`, or one that a server was started with, `ci`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IdentityName(NameSpace, String);

/// Where a name comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum NameSpace {
    /// Users of the rig's host.
    Unix,
    /// `jig rpc --as`.
    Given,
}

/// Says why a text names no identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no identity: use letters, digits, `.`, `_`, `-` and `@`, 1 to {MOST_NAME} of them, \
     for the name of a key, or write such as `unix:alice` for a user of the host"
)]
pub struct IdentityError(String);

impl IdentityError {
    /// Refuses a text.
    pub fn of(text: &str) -> Self {
        Self(text.chars().take(64).collect())
    }
}

fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@');
    (1..=MOST_NAME).contains(&text.len()) && text.chars().all(allowed)
}

/// Names of users and groups come from the host's directory, which allows more.
fn is_unix_name(text: &str) -> bool {
    let barred = |c: char| c.is_control() || c.is_whitespace() || matches!(c, ':' | '*');
    (1..=MOST_NAME).contains(&text.len()) && !text.chars().any(barred)
}

impl IdentityName {
    /// Names a user of the rig's host.
    ///
    /// # Errors
    /// No user has such a name.
    pub fn unix(user: &str) -> Result<Self, IdentityError> {
        match is_unix_name(user) {
            true => Ok(Self(NameSpace::Unix, user.to_owned())),
            false => Err(IdentityError::of(user)),
        }
    }

    /// Returns the name of the user of the rig's host, if it is one.
    pub fn unix_user(&self) -> Option<&str> {
        (self.0 == NameSpace::Unix).then_some(self.1.as_str())
    }

    /// Tells whether the identity is that of a user of the rig's host.
    pub fn is_local(&self) -> bool {
        self.0 == NameSpace::Unix
    }
}

impl FromStr for IdentityName {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        match text.strip_prefix(UNIX) {
            Some(user) => Self::unix(user),
            None if is_name(text) => Ok(Self(NameSpace::Given, text.to_owned())),
            None => Err(IdentityError::of(text)),
        }
    }
}

impl fmt::Display for IdentityName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = if self.is_local() { UNIX } else { "" };
        write!(f, "{prefix}{}", self.1)
    }
}

impl TryFrom<String> for IdentityName {
    type Error = IdentityError;

    fn try_from(text: String) -> Result<Self, IdentityError> {
        text.parse()
    }
}

impl From<IdentityName> for String {
    fn from(name: IdentityName) -> Self {
        name.to_string()
    }
}

/// Which identities are meant: `ci`, `ci-*`, `unix:alice`, `unix:*`, `group:lab`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IdentityPattern(PatternKind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternKind {
    /// One name.
    Name(IdentityName),
    /// All names of a name space that begin so.
    Beginning(NameSpace, String),
    /// All users of the rig's host in a group.
    Group(String),
}

impl IdentityPattern {
    /// Tells whether an identity is meant; `groups` are those of the user of the rig's host.
    pub fn fits(&self, name: &IdentityName, groups: &BTreeSet<String>) -> bool {
        match &self.0 {
            PatternKind::Name(wanted) => wanted == name,
            PatternKind::Beginning(space, start) => {
                name.0 == *space && name.1.starts_with(start.as_str())
            }
            PatternKind::Group(group) => name.is_local() && groups.contains(group),
        }
    }

    /// Returns the group that is meant, if one is.
    pub fn group(&self) -> Option<&str> {
        match &self.0 {
            PatternKind::Group(group) => Some(group),
            PatternKind::Name(_) | PatternKind::Beginning(..) => None,
        }
    }
}

impl FromStr for IdentityPattern {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        if let Some(group) = text.strip_prefix(GROUP) {
            return match is_unix_name(group) {
                true => Ok(Self(PatternKind::Group(group.to_owned()))),
                false => Err(IdentityError::of(text)),
            };
        }
        let Some(start) = text.strip_suffix('*') else {
            return Ok(Self(PatternKind::Name(text.parse()?)));
        };
        let (space, start, is_start): (_, _, fn(&str) -> bool) = match start.strip_prefix(UNIX) {
            Some(start) => (NameSpace::Unix, start, is_unix_name),
            None => (NameSpace::Given, start, is_name),
        };
        match start.is_empty() || is_start(start) {
            true => Ok(Self(PatternKind::Beginning(space, start.to_owned()))),
            false => Err(IdentityError::of(text)),
        }
    }
}

impl fmt::Display for IdentityPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            PatternKind::Name(name) => write!(f, "{name}"),
            PatternKind::Beginning(NameSpace::Unix, start) => write!(f, "{UNIX}{start}*"),
            PatternKind::Beginning(NameSpace::Given, start) => write!(f, "{start}*"),
            PatternKind::Group(group) => write!(f, "{GROUP}{group}"),
        }
    }
}

impl TryFrom<String> for IdentityPattern {
    type Error = IdentityError;

    fn try_from(text: String) -> Result<Self, IdentityError> {
        text.parse()
    }
}

impl From<IdentityPattern> for String {
    fn from(pattern: IdentityPattern) -> Self {
        pattern.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fits(pattern: &str, name: &str, groups: &[&str]) -> bool {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        pattern.parse::<IdentityPattern>().unwrap().fits(&name.parse().unwrap(), &groups)
    }

    #[test]
    fn a_pattern_means_the_identities_of_its_own_name_space() {
        for (pattern, name, groups, fit) in [
            ("ci", "ci", &[][..], true),
            ("ci", "unix:ci", &[], false),
            ("ci", "ci-2", &[], false),
            ("ci-*", "ci-2", &[], true),
            ("ci-*", "ci", &[], false),
            ("*", "anna@desk.lab", &[], true),
            ("*", "unix:anna", &[], false),
            ("unix:anna", "unix:anna", &[], true),
            ("unix:anna", "anna", &[], false),
            ("unix:*", "unix:anna", &[], true),
            ("unix:a*", "unix:bert", &[], false),
            ("group:lab", "unix:anna", &["lab"], true),
            ("group:lab", "unix:anna", &["labs"], false),
            // Groups are those of the host's users, so a key is in none.
            ("group:lab", "anna", &["lab"], false),
        ] {
            assert_eq!(fits(pattern, name, groups), fit, "{pattern} {name} {groups:?}");
        }
    }

    #[test]
    fn a_text_that_could_be_taken_for_another_name_is_refused() {
        for text in
            ["", "a b", "unix:", "unix:a:b", "unix:a*", "group:lab", "a*", "a\n", "a:b", "ä"]
        {
            assert!(text.parse::<IdentityName>().is_err(), "{text:?}");
        }
        for text in ["", "a**", "*a", "unix:a**", "group:", "group:*", "a b*"] {
            assert!(text.parse::<IdentityPattern>().is_err(), "{text:?}");
        }
        assert!("x".repeat(MOST_NAME + 1).parse::<IdentityName>().is_err());
    }

    proptest! {
        #[test]
        fn names_and_patterns_are_read_back_as_they_were(text in "(unix:|group:)?[a-z*:. @-]{0,6}") {
            if let Ok(name) = text.parse::<IdentityName>() {
                prop_assert_eq!(name.to_string(), text.clone());
                let pattern: IdentityPattern = text.parse().unwrap();
                prop_assert!(pattern.fits(&name, &BTreeSet::new()));
            }
            if let Ok(pattern) = text.parse::<IdentityPattern>() {
                prop_assert_eq!(pattern.to_string(), text);
            }
        }
    }
}
