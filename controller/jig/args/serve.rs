//! Arguments of `jig serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use jig_service::server::SocketAccess;
use nix::unistd::{Gid, Group};

use super::common::duration;
use crate::failure::Failure;

/// Arguments of `jig serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Check the health of idle real boards this often, "0s" for never; without it each as its
    /// profile says
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) check_every: Option<Duration>,
    /// Wait this long at a stop for commands under way; they go on beyond it
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = duration)]
    pub(crate) drain: Duration,
    /// Permissions of the socket of the rig, in octal; 660 lets its group use the rig
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = mode, env = "JIG_SOCKET_MODE")]
    pub(crate) socket_mode: u32,
    /// Answer Prometheus here: unix:PATH (permissions as of the socket of the rig) or
    /// 127.0.0.1:PORT
    #[arg(long, value_name = "ADDRESS", env = "JIG_METRICS")]
    pub(crate) metrics: Option<MetricsAddress>,
    /// Group of the socket of the rig, by name or number
    #[arg(long, value_name = "GROUP", env = "JIG_SOCKET_GROUP")]
    pub(crate) socket_group: Option<String>,
}

impl ServeArgs {
    /// Says who may connect to the socket of the rig.
    pub(crate) fn access(&self) -> Result<SocketAccess, Failure> {
        let group = self.socket_group.as_deref().map(group).transpose()?;
        Ok(SocketAccess { mode: self.socket_mode, group })
    }
}

/// Where metrics are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MetricsAddress {
    /// A socket of this host.
    Unix(PathBuf),
    /// A port that only this host reaches.
    Loopback(SocketAddr),
}

/// Says that a text is no address for metrics.
#[derive(Debug, Clone, thiserror::Error)]
#[error("unix:PATH or 127.0.0.1:PORT is wanted; other hosts are served by a proxy in front of it")]
pub(crate) struct NotMetricsAddress;

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

/// Finds a group by name or number.
fn group(name: &str) -> Result<Gid, Failure> {
    if let Ok(number) = name.parse() {
        return Ok(Gid::from_raw(number));
    }
    match Group::from_name(name) {
        Ok(Some(group)) => Ok(group.gid),
        Ok(None) | Err(_) => Err(Failure::new(
            jig_model::Fault::Usage,
            format!("there is no group {name:?} on this host"),
        )
        .help("getent group lists the groups")),
    }
}

/// Says that a text is no set of permissions of a socket.
#[derive(Debug, Clone, thiserror::Error)]
#[error("three octal digits are wanted, the first of them 6 or 7, such as 660")]
struct NotMode;

/// Reads permissions in octal. A socket that its own user could not use is refused.
fn mode(text: &str) -> Result<u32, NotMode> {
    let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3).unwrap_or(text);
    let mode = u32::from_str_radix(digits, 8).map_err(|_| NotMode)?;
    match digits.len() == 3 && mode & 0o600 == 0o600 {
        true => Ok(mode),
        false => Err(NotMode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_octal_and_let_their_own_user_in() {
        assert_eq!(mode("660").unwrap(), 0o660);
        assert_eq!(mode("0600").unwrap(), 0o600);
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

    #[test]
    fn groups_are_found_by_name_or_number() {
        assert_eq!(group("0").unwrap(), Gid::from_raw(0));
        assert_eq!(group("root").unwrap(), Gid::from_raw(0));
        assert_eq!(group("no such group").unwrap_err().exit_code(), jig_model::exit::USAGE);
    }
}
