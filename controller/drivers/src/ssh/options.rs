//! What a connection needs to know, and how the SSH configuration completes it.
//!
//! Nothing is read from the environment here: the caller says whose account it is.

use std::path::PathBuf;
use std::time::Duration;

use super::account::{SshAccount, SshConfigFile};
use super::config::{AgentChoice, HostConfig, StrictChecking, UserConfig};
use super::error::SshError;
use super::known_hosts::name_of;
use super::target::SshTarget;

/// The standard port.
const PORT: u16 = 22;

/// How long a host has to accept a connection and to agree on keys. OpenSSH waits for the system's
/// limit, which is two minutes; a rig is near.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a far side may say nothing before it is asked for an answer, and how many times. A rig
/// that has lost its power is noticed within a minute.
const ALIVE_INTERVAL: Duration = Duration::from_secs(15);
const ALIVE_COUNT: u32 = 3;

/// Shortest such time: libssh2 asks every two seconds at most.
const LEAST_INTERVAL: Duration = Duration::from_secs(2);

/// Most hosts on the way. Only a configuration that refers to itself has more.
const MOST_JUMPS: usize = 8;

/// Key files that are tried if none is named, in this order (ssh_config(5)). Keys in hardware are
/// used by the agent only.
const KEY_FILES: [&str; 3] = [".ssh/id_ed25519", ".ssh/id_ecdsa", ".ssh/id_rsa"];

/// What to connect to and what to run there.
#[derive(Debug, Clone)]
pub struct SshOptions {
    /// Where to.
    pub target: SshTarget,
    /// Program and arguments that the far side runs, one each; never a shell line.
    pub command: Vec<String>,
    /// The account on this host.
    pub account: SshAccount,
    /// The SSH configuration, for all that is not said here.
    pub config: SshConfigFile,
    /// Files of known hosts. Empty: those of the configuration, or OpenSSH's own.
    pub known_hosts: Vec<PathBuf>,
    /// Key files, tried first.
    pub identities: Vec<PathBuf>,
    /// Whether an agent is asked for keys.
    pub use_agent: bool,
    /// Whether the key of a host that is not known is accepted and written down.
    pub accept_new: bool,
    /// Whether any host key is accepted, and none is written down. For a host that makes a new key at
    /// each boot, where no other host can take its address.
    pub any_host_key: bool,
    /// How long a host may take to connect.
    pub connect_timeout: Option<Duration>,
    /// How long a far side may say nothing before it is asked for an answer, two seconds at least.
    /// Zero: it may be silent for ever.
    pub keepalive: Option<Duration>,
}

impl SshOptions {
    /// Returns the options that say nothing which the SSH configuration can say.
    pub fn new(target: SshTarget, command: Vec<String>, account: SshAccount) -> Self {
        Self {
            target,
            command,
            account,
            config: SshConfigFile::default(),
            known_hosts: Vec::new(),
            identities: Vec::new(),
            use_agent: true,
            accept_new: false,
            any_host_key: false,
            connect_timeout: None,
            keepalive: None,
        }
    }

    /// Returns the hosts to connect to, one through the other; the target is the last.
    ///
    /// # Errors
    /// The SSH configuration cannot be read or followed.
    pub(super) fn route(&self) -> Result<Vec<Hop>, SshError> {
        let config = UserConfig::read(&self.config, &self.account)?;
        self.route_by(&config)
    }

    fn route_by(&self, config: &UserConfig) -> Result<Vec<Hop>, SshError> {
        let mut route = Vec::new();
        // Each target is reached through what stands behind it.
        let mut ahead = vec![(self.target.clone(), true)];
        while let Some((target, may_jump)) = ahead.pop() {
            if route.len() > MOST_JUMPS {
                return Err(SshError::JumpLoop { host: self.target.host().to_owned() });
            }
            let of_host = config.of(target.host(), &self.account)?;
            // As in OpenSSH: of several jumps the nearest follows its own configuration.
            if may_jump {
                let jumps = of_host.jumps.iter().cloned().enumerate();
                ahead.extend(jumps.map(|(index, jump)| (jump, index == 0)));
            }
            route.push(self.hop(&target, of_host));
        }
        route.reverse();
        Ok(route)
    }

    fn hop(&self, target: &SshTarget, config: HostConfig) -> Hop {
        let home = &self.account.home;
        let port = target.port().or(config.port).unwrap_or(PORT);
        let user = target.user().map(str::to_owned).or(config.user);
        let mut identities = self.identities.clone();
        identities.extend(config.identities);
        let is_named = !identities.is_empty();
        if !is_named {
            identities = KEY_FILES.iter().map(|name| home.join(name)).collect();
        }
        let known_hosts = match (self.known_hosts.is_empty(), config.known_hosts.is_empty()) {
            (false, _) => self.known_hosts.clone(),
            (true, false) => config.known_hosts,
            (true, true) => vec![
                home.join(".ssh/known_hosts"),
                home.join(".ssh/known_hosts2"),
                "/etc/ssh/ssh_known_hosts".into(),
            ],
        };
        let agent = match config.agent {
            _ if !self.use_agent => None,
            AgentChoice::None => None,
            AgentChoice::Default => self.account.agent.clone(),
            AgentChoice::Path(path) => Some(path),
        };
        let interval = self.keepalive.or(config.alive_interval).unwrap_or(ALIVE_INTERVAL);
        let count = config.alive_count.unwrap_or(ALIVE_COUNT);
        Hop {
            user: user.unwrap_or_else(|| self.account.user.clone()),
            // A host key that is known by an alias is known at every port.
            known_as: match config.key_alias {
                Some(alias) => (alias, PORT),
                None => (config.host.clone(), port),
            },
            host: config.host,
            port,
            known_hosts,
            accept_new: self.accept_new || config.strict == StrictChecking::AcceptNew,
            any_host_key: self.any_host_key,
            identities,
            prefers_identities: is_named,
            identities_only: config.identities_only,
            agent,
            connect_timeout: self
                .connect_timeout
                .or(config.connect_timeout)
                .unwrap_or(CONNECT_TIMEOUT),
            keepalive: (!interval.is_zero())
                .then(|| Keepalive { interval: interval.max(LEAST_INTERVAL), count }),
        }
    }
}

/// When a silent far side is asked for an answer, and when it counts as gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Keepalive {
    pub(super) interval: Duration,
    /// Questions without an answer.
    pub(super) count: u32,
}

/// One host on the way, with all that a connection to it needs.
#[derive(Debug, Clone)]
pub(super) struct Hop {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    /// Name and port among the known hosts.
    pub(super) known_as: (String, u16),
    /// The first is where a new key is written.
    pub(super) known_hosts: Vec<PathBuf>,
    pub(super) accept_new: bool,
    pub(super) any_host_key: bool,
    pub(super) identities: Vec<PathBuf>,
    /// Whether the user has named the key files: then the agent's keys of these files come first.
    pub(super) prefers_identities: bool,
    pub(super) identities_only: bool,
    pub(super) agent: Option<PathBuf>,
    pub(super) connect_timeout: Duration,
    pub(super) keepalive: Option<Keepalive>,
}

impl Hop {
    /// Returns host and port, for messages.
    pub(super) fn at(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// Returns the name in files of known hosts.
    pub(super) fn known_name(&self) -> String {
        name_of(&self.known_as.0, self.known_as.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> SshAccount {
        let agent = Some("/run/agent".into());
        SshAccount { home: "/h/ann".into(), user: "ann".to_owned(), agent }
    }

    fn route(target: &str, config: &str, change: impl FnOnce(&mut SshOptions)) -> Vec<Hop> {
        try_route(target, config, change).unwrap()
    }

    fn try_route(
        target: &str,
        config: &str,
        change: impl FnOnce(&mut SshOptions),
    ) -> Result<Vec<Hop>, SshError> {
        let account = account();
        let mut options = SshOptions::new(target.parse().unwrap(), Vec::new(), account.clone());
        change(&mut options);
        let config = UserConfig::parse("config".into(), config, &account.home).unwrap();
        options.route_by(&config)
    }

    #[test]
    fn what_is_not_said_is_as_in_openssh() {
        let [hop] = &route("ssh://rig7", "", |_| {})[..] else { panic!("one hop") };
        assert_eq!((hop.at(), hop.user.as_str()), ("rig7:22".to_owned(), "ann"));
        assert_eq!(hop.identities[0], PathBuf::from("/h/ann/.ssh/id_ed25519"));
        assert_eq!(hop.known_hosts[0], PathBuf::from("/h/ann/.ssh/known_hosts"));
        assert_eq!(hop.agent, Some("/run/agent".into()));
        assert!(!hop.accept_new && !hop.prefers_identities);
        assert_eq!(hop.known_name(), "rig7");
    }

    #[test]
    fn caller_comes_before_configuration() {
        let config = "User bob\nPort 2222\nUserKnownHostsFile /k\nIdentityFile /i\n\
                      ServerAliveInterval 5\n";
        let [hop] = &route("ssh://eve@rig7:22", config, |options| {
            options.known_hosts.push("/mine".into());
            options.identities.push("/key".into());
            options.use_agent = false;
            options.keepalive = Some(Duration::ZERO);
        })[..] else {
            panic!("one hop")
        };
        assert_eq!((hop.at(), hop.user.as_str()), ("rig7:22".to_owned(), "eve"));
        assert_eq!(hop.known_hosts, [PathBuf::from("/mine")]);
        assert_eq!(hop.identities, [PathBuf::from("/key"), PathBuf::from("/i")]);
        assert_eq!((hop.agent.clone(), hop.keepalive), (None, None));
        let [hop] = &route("ssh://rig7", config, |_| {})[..] else { panic!("one hop") };
        assert_eq!((hop.at(), hop.user.as_str()), ("rig7:2222".to_owned(), "bob"));
        assert_eq!(hop.known_name(), "[rig7]:2222");
    }

    #[test]
    fn jumps_come_before_the_target_with_settings_of_their_own() {
        let config = "Host rig7\n ProxyJump far,near\nHost far\n ProxyJump gate\n User f\n\
                      Host near\n ProxyJump ignored\n";
        let hops: Vec<_> = route("ssh://rig7", config, |_| {})
            .iter()
            .map(|hop| format!("{}@{}", hop.user, hop.host))
            .collect();
        assert_eq!(hops, ["ann@gate", "f@far", "ann@near", "ann@rig7"]);
        let looped = try_route("ssh://a", "ProxyJump b\n", |_| {}).err().unwrap();
        assert!(looped.to_string().contains("ProxyJump"), "{looped}");
    }
}
