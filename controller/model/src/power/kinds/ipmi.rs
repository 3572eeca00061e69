//! A management controller that speaks IPMI.

use serde::Serialize;

use super::fields::{check_address, secret, text, unclean};
use crate::document::{Findings, Located};
use crate::power::kind::{PowerKind, PowerTable, PowerTimes};
use crate::power::{OutletRule, SecretSource, host_and_port};
use crate::toml_table;

/// A management controller that speaks IPMI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IpmiPower {
    /// The host.
    pub host: String,
    /// Its UDP port.
    pub port: u16,
    /// The user's name.
    pub user: String,
    /// The password.
    pub password: SecretSource,
    /// Cipher suite.
    pub cipher_suite: u8,
}

impl PowerKind for IpmiPower {
    /// A controller takes its time to switch off: seconds are usual, half a minute is seen.
    fn times(&self) -> PowerTimes {
        PowerTimes::new(100, 20, 60)
    }

    fn outlets(&self) -> OutletRule {
        OutletRule::One
    }

    fn programs(&self) -> Vec<&str> {
        vec!["ipmitool"]
    }
}

toml_table! {
    /// A management controller that speaks IPMI.
    pub(crate) struct RawIpmi {
        /// The host, maybe with a port.
        address: String = required,
        /// The user's name.
        user: String = required,
        /// The password.
        password: SecretSource = required,
        /// Cipher suite; 3 if missing, which all controllers have. Many newer ones want 17.
        cipher_suite: u8 = optional,
    }
}

impl PowerTable for RawIpmi {
    type Kind = IpmiPower;

    fn check(table: &Located<Self>, findings: &Findings) {
        check_address(table.value.address.as_ref(), findings);
        let bad = |user: &&Located<String>| {
            user.value.is_empty() || user.value.starts_with('-') || unclean(&user.value)
        };
        if let Some(user) = table.value.user.as_ref().filter(bad) {
            findings.add("rig::power-user", user.at(), "this is no user's name", "write one");
        }
    }

    fn lower(&self) -> Option<IpmiPower> {
        // IANA has given 623 to it.
        let (host, port) = host_and_port(&self.address.as_ref()?.value, 623)?;
        Some(IpmiPower {
            host,
            port,
            user: text(&self.user)?,
            password: secret(&self.password)?,
            cipher_suite: self.cipher_suite.as_ref().map_or(3, |suite| suite.value),
        })
    }
}
