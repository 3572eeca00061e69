//! How the service of a rig runs, where its command line does not say otherwise.

// The addresses of `core`: this crate has no sockets.
use core::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;

use super::raw::RawServe;
use crate::document::{Findings, Located};

/// Settings of `jig serve`; what is missing is as its command line says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ServeSettings {
    /// How often the health of idle real boards is checked; zero for never.
    pub check_every: Option<Duration>,
    /// How long a stop waits for commands under way.
    pub drain: Option<Duration>,
    /// Where Prometheus is answered.
    pub metrics: Option<MetricsAddress>,
    /// Permissions of the socket of the rig.
    pub socket_mode: Option<SocketMode>,
    /// Group of the socket of the rig, by name or number.
    pub socket_group: Option<String>,
}

/// Where metrics are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricsAddress {
    /// A socket of this host.
    Unix(PathBuf),
    /// A port that only this host reaches.
    Loopback(SocketAddr),
}

/// Says that a text is no address for metrics.
#[derive(Debug, Clone, thiserror::Error)]
#[error("unix:PATH or 127.0.0.1:PORT is wanted; other hosts are served by a proxy in front of it")]
pub struct NotMetricsAddress;

impl std::fmt::Display for MetricsAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Loopback(address) => write!(f, "{address}"),
        }
    }
}

impl FromStr for MetricsAddress {
    type Err = NotMetricsAddress;

    fn from_str(text: &str) -> Result<Self, NotMetricsAddress> {
        match text.strip_prefix("unix:") {
            Some("") => Err(NotMetricsAddress),
            Some(path) => Ok(Self::Unix(path.into())),
            None => match text.parse::<SocketAddr>() {
                Ok(address) if address.ip().is_loopback() => Ok(Self::Loopback(address)),
                Ok(_) | Err(_) => Err(NotMetricsAddress),
            },
        }
    }
}

/// Permissions of a socket. Its own user can use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SocketMode(pub u32);

/// Says that a text is no set of permissions of a socket.
#[derive(Debug, Clone, thiserror::Error)]
#[error("three octal digits are wanted, the first of them 6 or 7, such as 660")]
pub struct NotSocketMode;

impl FromStr for SocketMode {
    type Err = NotSocketMode;

    fn from_str(text: &str) -> Result<Self, NotSocketMode> {
        let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3).unwrap_or(text);
        let mode = u32::from_str_radix(digits, 8).map_err(|_| NotSocketMode)?;
        match digits.len() == 3 && mode & 0o600 == 0o600 {
            true => Ok(Self(mode)),
            false => Err(NotSocketMode),
        }
    }
}

/// Lowers the table.
pub(super) fn lower(raw: RawServe, findings: &Findings) -> ServeSettings {
    let group = raw.socket_group.filter(|group| {
        let named = !group.value.is_empty();
        if !named {
            let help = "write the name or the number of a group, such as \"lab\"";
            findings.add("rig::serve-group", group.at(), "no group has an empty name", help);
        }
        named
    });
    ServeSettings {
        check_every: raw.check_every.map(|time| time.value),
        drain: raw.drain.map(|time| time.value),
        metrics: parsed(raw.metrics, "rig::serve-metrics", findings),
        socket_mode: parsed(raw.socket_mode, "rig::serve-mode", findings),
        socket_group: group.map(|group| group.value),
    }
}

fn parsed<T: FromStr<Err: std::fmt::Display>>(
    text: Option<Located<String>>,
    check: &'static str,
    findings: &Findings,
) -> Option<T> {
    let text = text?;
    match text.value.parse() {
        Ok(value) => Some(value),
        Err(error) => {
            let message = format!("{:?} is not understood", text.value);
            findings.add(check, text.at(), message, error.to_string());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_octal_and_let_their_own_user_in() {
        let mode = |text: &str| text.parse::<SocketMode>();
        assert_eq!(mode("660").unwrap(), SocketMode(0o660));
        assert_eq!(mode("0600").unwrap(), SocketMode(0o600));
        for bad in ["", "0", "66", "060", "888", "-60", "1777", "4660", "rw-"] {
            assert!(mode(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn metrics_do_not_leave_the_host() {
        assert!("unix:/run/jig/metrics.sock".parse::<MetricsAddress>().is_ok());
        assert!("127.0.0.1:9464".parse::<MetricsAddress>().is_ok());
        assert!("[::1]:9464".parse::<MetricsAddress>().is_ok());
        for bad in ["unix:", "0.0.0.0:9464", "9464", "localhost", "192.168.1.2:9464", ""] {
            assert!(bad.parse::<MetricsAddress>().is_err(), "{bad:?}");
        }
    }
}
