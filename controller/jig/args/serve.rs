//! Arguments of `jig serve`.

use std::time::Duration;

use clap::Args;
use jig_model::rig_file::{MetricsAddress, ServeSettings, SocketMode};
use jig_service::server::SocketAccess;
use nix::unistd::{Gid, Group};

use super::common::duration;
use crate::failure::Failure;

/// Arguments of `jig serve`. What is missing is as [serve] of the rig file says.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Check the health of idle real boards this often, "0s" for never; without it each as its
    /// profile says
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) check_every: Option<Duration>,
    /// Wait this long at a stop for commands under way, 2m if not said; they go on beyond it
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) drain: Option<Duration>,
    /// Permissions of the socket of the rig, in octal, 600 if not said; 660 lets its group use the rig
    #[arg(long, value_name = "MODE", env = "JIG_SOCKET_MODE")]
    pub(crate) socket_mode: Option<SocketMode>,
    /// Answer Prometheus here: unix:PATH (permissions as of the socket of the rig) or
    /// 127.0.0.1:PORT
    #[arg(long, value_name = "ADDRESS", env = "JIG_METRICS")]
    pub(crate) metrics: Option<MetricsAddress>,
    /// Group of the socket of the rig, by name or number
    #[arg(long, value_name = "GROUP", env = "JIG_SOCKET_GROUP")]
    pub(crate) socket_group: Option<String>,
}

impl ServeArgs {
    /// Returns what the command line says, and for the rest what the rig file says.
    pub(crate) fn over(self, file: &ServeSettings) -> ServeSettings {
        let file = file.clone();
        ServeSettings {
            check_every: self.check_every.or(file.check_every),
            drain: self.drain.or(file.drain),
            metrics: self.metrics.or(file.metrics),
            socket_mode: self.socket_mode.or(file.socket_mode),
            socket_group: self.socket_group.or(file.socket_group),
        }
    }
}

/// Says who may connect to the socket of the rig.
pub(crate) fn socket_access(settings: &ServeSettings) -> Result<SocketAccess, Failure> {
    let group = settings.socket_group.as_deref().map(group).transpose()?;
    let mode = settings.socket_mode.map_or(SocketAccess::OWN.mode, |mode| mode.0);
    Ok(SocketAccess { mode, group })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_by_name_or_number() {
        assert_eq!(group("0").unwrap(), Gid::from_raw(0));
        assert_eq!(group("root").unwrap(), Gid::from_raw(0));
        assert_eq!(group("no such group").unwrap_err().exit_code(), jig_model::exit::USAGE);
    }

    #[test]
    fn the_command_line_comes_before_the_rig_file() {
        let args = ServeArgs {
            check_every: None,
            drain: Some(Duration::ZERO),
            socket_mode: None,
            metrics: "127.0.0.1:1".parse().ok(),
            socket_group: None,
        };
        let file = ServeSettings {
            check_every: Some(Duration::from_secs(60)),
            drain: Some(Duration::from_secs(30)),
            metrics: "unix:/run/m".parse().ok(),
            socket_mode: "660".parse().ok(),
            socket_group: Some("0".to_owned()),
        };
        let settings = args.over(&file);
        let wanted = ServeSettings {
            drain: Some(Duration::ZERO),
            metrics: "127.0.0.1:1".parse().ok(),
            ..file
        };
        assert_eq!(settings, wanted);
        let access = socket_access(&settings).unwrap();
        assert_eq!((access.mode, access.group), (0o660, Some(Gid::from_raw(0))));
        assert_eq!(socket_access(&ServeSettings::default()).unwrap(), SocketAccess::OWN);
    }
}
