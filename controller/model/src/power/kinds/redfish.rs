//! A management controller that speaks Redfish.

use serde::Serialize;

use super::fields::{check_trust, check_url, secret, text, trust};
use crate::document::{Findings, Located};
use crate::power::kind::{PowerKind, PowerTable, PowerTimes};
use crate::power::{SecretSource, TlsTrust, WebAddress};
use crate::toml_table;

/// A management controller that speaks Redfish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RedfishPower {
    /// Where it is.
    pub url: WebAddress,
    /// The user's name.
    pub user: Option<String>,
    /// The password.
    pub password: Option<SecretSource>,
    /// Which certificates are believed.
    pub tls: TlsTrust,
}

impl PowerKind for RedfishPower {
    /// A controller takes its time to switch off: seconds are usual, half a minute is seen.
    fn times(&self) -> PowerTimes {
        PowerTimes::new(0, 20, 60)
    }
}

toml_table! {
    /// A management controller that speaks Redfish.
    pub(crate) struct RawRedfish {
        /// Where it is: "https://HOST".
        url: String = required,
        /// The user's name.
        user: String = optional,
        /// The password.
        password: SecretSource = optional,
        /// PEM file with the certificates that are believed, or have signed those that are; as
        /// this host believes if missing.
        ca: String = optional,
        /// Whether any certificate is believed; false if missing.
        insecure: bool = optional,
    }
}

impl PowerTable for RawRedfish {
    type Kind = RedfishPower;

    fn check(table: &Located<Self>, findings: &Findings) {
        let raw = &table.value;
        check_url(raw.url.as_ref(), findings);
        check_trust(raw.ca.as_ref(), raw.insecure.as_ref(), findings);
        if let (Some(password), None) = (&raw.password, &raw.user) {
            let help = "add `user = \"...\"`";
            findings.add("rig::power-user", password.at(), "whose password is this?", help);
        }
    }

    fn lower(&self) -> Option<RedfishPower> {
        Some(RedfishPower {
            url: self.url.as_ref()?.value.parse().ok()?,
            user: text(&self.user),
            password: secret(&self.password),
            tls: trust(&self.ca, &self.insecure),
        })
    }
}
