//! A device that speaks SNMP.

use serde::Serialize;

use super::fields::{check_address, joined, secret, text};
use crate::document::{Findings, Located};
use crate::power::kind::{PowerKind, PowerTable, PowerTimes};
use crate::power::{OutletRule, SecretSource, host_and_port};
use crate::toml_table;

/// Versions of SNMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum SnmpVersion {
    /// The first.
    #[serde(rename = "1")]
    V1,
    /// The second, with communities.
    #[serde(rename = "2c")]
    V2c,
    /// The third, with users.
    #[serde(rename = "3")]
    V3,
}
choices!(SnmpVersion, "version of SNMP": "1" = V1, "2c" = V2c, "3" = V3);

/// Hash functions that sign SNMP version 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnmpAuth {
    /// MD5.
    Md5,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}
choices!(SnmpAuth, "authentication algorithm": "md5" = Md5, "sha1" = Sha1, "sha256" = Sha256, "sha512" = Sha512);

/// Ciphers of SNMP version 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnmpPrivacy {
    /// DES.
    Des,
    /// AES with 128 bits.
    Aes,
    /// AES with 256 bits, as most devices derive its key.
    Aes256,
}
choices!(SnmpPrivacy, "cipher": "des" = Des, "aes" = Aes, "aes256" = Aes256);

/// Credentials for an SNMP device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnmpSecurity {
    /// A community string (SNMP 1 and 2c).
    Community {
        /// Version 1 instead of 2c.
        first: bool,
        /// The community; `private`, which devices are delivered with, without one.
        community: Option<SecretSource>,
    },
    /// A user.
    User {
        /// The name.
        name: String,
        /// How messages are signed, and with which password.
        auth: Option<(SnmpAuth, SecretSource)>,
        /// How messages are encrypted, and with which password.
        privacy: Option<(SnmpPrivacy, SecretSource)>,
    },
}

/// A device that speaks SNMP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnmpPower {
    /// Where it listens: `HOST:PORT`.
    pub address: String,
    /// Credentials for it.
    pub security: SnmpSecurity,
    /// Object that switches an outlet, with `{outlet}`.
    pub set: String,
    /// The numbers that mean on and off there.
    pub set_values: (i64, i64),
    /// Object that tells the state of an outlet, with `{outlet}`.
    pub read: String,
    /// The numbers that mean on and off there.
    pub read_values: (i64, i64),
}

impl PowerKind for SnmpPower {
    /// Small controllers answer one thing at a time and drop the next.
    fn times(&self) -> PowerTimes {
        PowerTimes::new(200, 10, 5)
    }

    fn outlets(&self) -> OutletRule {
        OutletRule::Dotted
    }
}

toml_table! {
    /// A device that speaks SNMP.
    pub(crate) struct RawSnmp {
        /// Where it listens: "HOST" or "HOST:PORT".
        address: String = required,
        /// Version; 2c if missing, 3 if there is a `user`.
        version: SnmpVersion = optional,
        /// The community that may write; "private" if missing.
        community: SecretSource = optional,
        /// The user's name (version 3).
        user: String = optional,
        /// How messages are signed (version 3); sha256 if there is an `auth_password`.
        auth: SnmpAuth = optional,
        /// The password they are signed with.
        auth_password: SecretSource = optional,
        /// How messages are encrypted (version 3); aes if there is a `privacy_password`.
        privacy: SnmpPrivacy = optional,
        /// The password they are encrypted with.
        privacy_password: SecretSource = optional,
        /// A device that is known; other keys change what is known about it.
        preset: SnmpPreset = optional,
        /// Object that switches an outlet, such as "1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.{outlet}".
        set: String = optional,
        /// The number that means on there; 1 if missing.
        on: i32 = optional,
        /// The number that means off there; 2 if missing.
        off: i32 = optional,
        /// Object that tells the state of an outlet; the same as `set` if missing.
        read: String = optional,
        /// The number that means on there; as `on` if missing.
        read_on: i32 = optional,
        /// The number that means off there; as `off` if missing.
        read_off: i32 = optional,
    }
}

impl PowerTable for RawSnmp {
    type Kind = SnmpPower;

    fn check(snmp: &Located<Self>, findings: &Findings) {
        const CHECK: &str = "rig::power-snmp";
        let raw = &snmp.value;
        check_address(raw.address.as_ref(), findings);
        for object in [&raw.set, &raw.read].into_iter().flatten() {
            let bare = object.value.replace("{outlet}", "1");
            let bare = bare.strip_prefix('.').unwrap_or(&bare);
            // One object's name has at most 128 numbers (RFC 3416, 4.1).
            let numbers = bare.split('.').map(str::parse::<u32>);
            let fits = bare.starts_with("1.") && bare.split('.').count() <= 128;
            if !fits || numbers.into_iter().any(|number| number.is_err()) {
                let help = "write its numbers: \"1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.{outlet}\"";
                findings.add(CHECK, object.at(), "this names no object", help);
            } else if !object.value.contains("{outlet}") {
                let help = "put {outlet} where the number of the outlet stands";
                findings.add(CHECK, object.at(), "this is the same for every outlet", help);
            }
        }
        if raw.set.is_none() && raw.preset.is_none() {
            let help = "add `preset = \"apc\"`, or `set = \"1.3.6...{outlet}\"` of its MIB";
            findings.add(CHECK, snmp.at(), "nothing says how an outlet is switched", help);
        }
        let third = match &raw.version {
            Some(version) => version.value == SnmpVersion::V3,
            None => raw.user.is_some(),
        };
        let wrong = |key: &str, wants: &str| {
            (format!("`{key}` belongs to version {wants}"), "remove it, or change `version`")
        };
        if let Some(community) = raw.community.as_ref().filter(|_| third) {
            let (message, help) = wrong("community", "1 and 2c");
            findings.add(CHECK, community.at(), message, help);
        }
        if let Some(user) = raw.user.as_ref().filter(|_| !third) {
            let (message, help) = wrong("user", "3");
            findings.add(CHECK, user.at(), message, help);
        }
        if third && raw.user.is_none() {
            findings.add(CHECK, snmp.at(), "version 3 knows users", "add `user = \"...\"`");
        }
        if let Some(privacy) = raw.privacy_password.as_ref().filter(|_| raw.auth_password.is_none())
        {
            let message = "messages are encrypted only if they are signed, too";
            let help = "add `auth_password`";
            findings.add(CHECK, privacy.at(), message, help);
        }
    }

    fn lower(&self) -> Option<SnmpPower> {
        // IANA has given 161 to it.
        let (host, port) = host_and_port(&self.address.as_ref()?.value, 161)?;
        let facts: Option<SnmpFacts> = self.preset.as_ref().map(|preset| preset.value.facts());
        let known = facts.as_ref();
        let set = text(&self.set).or_else(|| known.map(|facts| facts.set.to_owned()))?;
        let number = |said: &Option<Located<i32>>, other: i64| {
            said.as_ref().map_or(other, |number| i64::from(number.value))
        };
        // Numbers and objects of a preset belong together; what is said replaces both.
        let known = known.filter(|_| self.set.is_none());
        let usual = known.map_or((1, 2), |facts| facts.set_values);
        let set_values = (number(&self.on, usual.0), number(&self.off, usual.1));
        let read = match (text(&self.read), known) {
            (Some(read), _) => read,
            (None, Some(facts)) => facts.read.to_owned(),
            (None, None) => set.clone(),
        };
        let usual = match known {
            Some(facts) if self.on.is_none() && self.off.is_none() => facts.read_values,
            Some(_) | None => set_values,
        };
        let read_values = (number(&self.read_on, usual.0), number(&self.read_off, usual.1));
        let version = self.version.as_ref().map(|version| version.value);
        let security = match (&self.user, version) {
            (Some(user), None | Some(SnmpVersion::V3)) => SnmpSecurity::User {
                name: user.value.clone(),
                auth: secret(&self.auth_password)
                    .map(|p| (self.auth.as_ref().map_or(SnmpAuth::Sha256, |auth| auth.value), p)),
                privacy: secret(&self.privacy_password)
                    .map(|p| (self.privacy.as_ref().map_or(SnmpPrivacy::Aes, |how| how.value), p)),
            },
            (None, Some(SnmpVersion::V3)) => return None,
            (_, version) => SnmpSecurity::Community {
                first: version == Some(SnmpVersion::V1),
                community: secret(&self.community),
            },
        };
        Some(SnmpPower {
            address: joined(&host, port),
            security,
            set,
            set_values,
            read,
            read_values,
        })
    }
}

/// SNMP devices that many labs have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SnmpPreset {
    /// Rack units by APC (AP79xx, AP89xx): `rPDUOutletControlOutletCommand` of PowerNet-MIB.
    Apc,
    /// Older units by APC: `sPDUOutletCtl` of PowerNet-MIB.
    ApcMasterswitch,
    /// Rack units by Raritan: `outletSwitchingOperation` of PDU2-MIB.
    Raritan,
}

choices!(SnmpPreset, "known SNMP device":
    "apc" = Apc, "apc-masterswitch" = ApcMasterswitch, "raritan" = Raritan);

/// Objects of an SNMP device.
struct SnmpFacts {
    set: &'static str,
    set_values: (i64, i64),
    read: &'static str,
    read_values: (i64, i64),
}

impl SnmpPreset {
    /// Returns what is known.
    fn facts(self) -> SnmpFacts {
        // One object that is written, and reads as the state.
        let one = |object| SnmpFacts {
            set: object,
            set_values: (1, 2),
            read: object,
            read_values: (1, 2),
        };
        match self {
            // PowerNet-MIB, sPDUOutletCtl: outletOn(1), outletOff(2).
            Self::ApcMasterswitch => one("1.3.6.1.4.1.318.1.1.4.4.2.1.3.{outlet}"),
            // PowerNet-MIB, rPDUOutletControlOutletCommand: immediateOn(1), immediateOff(2).
            Self::Apc => one("1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.{outlet}"),
            // PDU2-MIB, outletSwitchControlTable and outletSwitchingState: on(7), off(8). The
            // outlet is `PDU.OUTLET`, such as `1.3`.
            Self::Raritan => SnmpFacts {
                set: "1.3.6.1.4.1.13742.6.4.1.2.1.2.{outlet}",
                set_values: (1, 0),
                read: "1.3.6.1.4.1.13742.6.4.1.2.1.3.{outlet}",
                read_values: (7, 8),
            },
        }
    }
}
