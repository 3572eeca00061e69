//! A `pdudaemon` that switches a device.

use serde::Serialize;

use super::fields::{check_trust, check_url, text, trust};
use crate::document::{Findings, Located};
use crate::power::kind::{PowerKind, PowerTable, PowerTimes};
use crate::power::{OutletRule, TlsTrust, WebAddress};
use crate::toml_table;

/// A `pdudaemon` that switches a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PduDaemonPower {
    /// Where it listens.
    pub url: WebAddress,
    /// The device, by the name the daemon knows it by.
    pub hostname: String,
    /// Which certificates are believed.
    pub tls: TlsTrust,
}

impl PowerKind for PduDaemonPower {
    /// The daemon has a queue of its own; it retries five times, five seconds apart.
    fn times(&self) -> PowerTimes {
        PowerTimes::new(0, 40, 0)
    }

    fn reads_back(&self) -> bool {
        false
    }
}

toml_table! {
    /// A pdudaemon that switches a device; an outlet is the port there.
    pub(crate) struct RawPduDaemon {
        /// Where it listens: "http://HOST:16421".
        url: String = required,
        /// The device, as the daemon's configuration names it.
        hostname: String = required,
        /// PEM file with the certificates that are believed, or have signed those that are; as
        /// this host believes if missing.
        ca: String = optional,
        /// Whether any certificate is believed; false if missing.
        insecure: bool = optional,
    }
}

impl PowerTable for RawPduDaemon {
    type Kind = PduDaemonPower;

    fn check(table: &Located<Self>, findings: &Findings) {
        let raw = &table.value;
        check_url(raw.url.as_ref(), findings);
        check_trust(raw.ca.as_ref(), raw.insecure.as_ref(), findings);
        let plain = |h: &&Located<String>| !OutletRule::Word.fits(&h.value);
        if let Some(name) = raw.hostname.as_ref().filter(plain) {
            let help = "write the key of the daemon's `pdus`: a host name or an address";
            findings.add("rig::power-hostname", name.at(), "this names no device", help);
        }
    }

    fn lower(&self) -> Option<PduDaemonPower> {
        Some(PduDaemonPower {
            url: self.url.as_ref()?.value.parse().ok()?,
            hostname: text(&self.hostname)?,
            tls: trust(&self.ca, &self.insecure),
        })
    }
}
