//! The user's SSH configuration (`~/.ssh/config`): what it says of one host.
//!
//! # Design
//! `ssh2-config` reads the file. It knows no `Match`, and gives what stands in such a block to the
//! `Host` before it. So a block is cut out before the file is read, with a warning in the log;
//! `Match all` is what `Host *` is. Options that change where a connection goes and that libssh2
//! cannot do are refused by name: a connection that goes elsewhere is worse than none.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ssh2_config::{HostParams, ParseRule, SshConfig, SshParserError};

use super::account::{SshAccount, SshConfigFile};
use super::error::SshError;
use super::files::{read_text, read_text_if_any};
use super::target::SshTarget;

/// Longest configuration that is read.
const MOST: usize = 1 << 20;

/// The keyword of a block that `ssh2-config` does not know.
const MATCH: &str = "match";

/// A configuration that was read, or the empty one.
pub(super) struct UserConfig {
    path: PathBuf,
    config: SshConfig,
}

/// Whether the key of an unknown host is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StrictChecking {
    /// It is refused. There is no terminal to ask at.
    Yes,
    /// It is accepted and written down; a changed one is refused.
    AcceptNew,
}

/// Which agent the configuration chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AgentChoice {
    None,
    /// The one of the environment.
    Default,
    Path(PathBuf),
}

/// What a configuration says of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostConfig {
    pub(super) host: String,
    pub(super) user: Option<String>,
    pub(super) port: Option<u16>,
    /// The name in the known hosts.
    pub(super) key_alias: Option<String>,
    pub(super) identities: Vec<PathBuf>,
    pub(super) identities_only: bool,
    pub(super) agent: AgentChoice,
    pub(super) known_hosts: Vec<PathBuf>,
    pub(super) strict: StrictChecking,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) alive_interval: Option<Duration>,
    pub(super) alive_count: Option<u32>,
    /// Hosts to go through, the nearest first.
    pub(super) jumps: Vec<SshTarget>,
}

impl UserConfig {
    /// Reads the configuration that the options name.
    ///
    /// # Errors
    /// It cannot be read or holds a mistake; a missing `~/.ssh/config` is no error.
    pub(super) fn read(file: &SshConfigFile, account: &SshAccount) -> Result<Self, SshError> {
        let (path, text) = match file {
            SshConfigFile::None => (PathBuf::new(), Ok(None)),
            SshConfigFile::OfUser => {
                let path = account.home.join(".ssh/config");
                let text = read_text_if_any(&path, MOST);
                (path, text)
            }
            SshConfigFile::Path(path) => (path.clone(), read_text(path, MOST).map(Some)),
        };
        let text = text.map_err(|source| SshError::read(&path, source))?.unwrap_or_default();
        Self::parse(path, &text, &account.home)
    }

    /// Reads the text of a configuration.
    ///
    /// # Errors
    /// It holds a mistake.
    pub(super) fn parse(path: PathBuf, text: &str, home: &Path) -> Result<Self, SshError> {
        let text = without_match(text, &path);
        match parsed(&text, home) {
            Ok(config) => Ok(Self { path, config }),
            Err(error) => Err(SshError::Config {
                line: line_of_mistake(&text, home),
                why: error.to_string(),
                path,
            }),
        }
    }

    /// Returns what it says of a host by the name that the user has typed.
    ///
    /// # Errors
    /// A value makes no sense, or an option cannot be followed with libssh2.
    pub(super) fn of(&self, name: &str, account: &SshAccount) -> Result<HostConfig, SshError> {
        let params = self.config.query(name);
        let refused = |option: &str| {
            let (path, option) = (self.path.clone(), option.to_owned());
            SshError::Unsupported { path, host: name.to_owned(), option }
        };
        if params.ignored_fields.keys().any(|field| field.eq_ignore_ascii_case(MATCH)) {
            return Err(refused("Match in an included file"));
        }
        let other = |field: &str| other_option(&params, field);
        if other("proxycommand").is_some_and(|words| words != ["none"]) {
            return Err(refused("ProxyCommand"));
        }
        let host = match &params.host_name {
            Some(host) => host.replace("%h", name).replace("%%", "%"),
            None => name.to_owned(),
        };
        let remote_user = params.user.as_deref().unwrap_or(&account.user);
        let expand = |text: &str| {
            let words = [
                ('d', account.home.to_string_lossy().into_owned()),
                ('h', host.clone()),
                ('n', name.to_owned()),
                ('r', remote_user.to_owned()),
                ('u', account.user.clone()),
            ];
            expanded(text, &account.home, &words)
        };
        let identities = params.identity_file.iter().flatten().map(|path| path.to_string_lossy());
        let identities = identities.filter(|path| path != "none").map(|path| expand(&path));
        let known_hosts = other("userknownhostsfile").unwrap_or_default().iter();
        let known_hosts = known_hosts.filter(|path| *path != "none").map(|path| expand(path));
        let first = |field: &str| other(field)?.first().cloned();
        let yes = |field: &str| first(field).is_some_and(|word| word.eq_ignore_ascii_case("yes"));
        let strict = first("stricthostkeychecking").unwrap_or_default().to_ascii_lowercase();
        let agent = match first("identityagent").as_deref() {
            None | Some("SSH_AUTH_SOCK") => AgentChoice::Default,
            Some("none") => AgentChoice::None,
            Some(path) => AgentChoice::Path(expand(path)),
        };
        let mut jumps = Vec::new();
        for jump in params.proxy_jump.iter().flatten().filter(|jump| *jump != "none") {
            let uri = if jump.contains("://") { jump.clone() } else { format!("ssh://{jump}") };
            jumps.push(uri.parse().map_err(|source| SshError::Jump {
                path: self.path.clone(),
                host: name.to_owned(),
                source,
            })?);
        }
        Ok(HostConfig {
            user: params.user.clone(),
            port: params.port,
            key_alias: first("hostkeyalias"),
            identities: identities.collect(),
            identities_only: yes("identitiesonly"),
            agent,
            known_hosts: known_hosts.collect(),
            strict: match strict.as_str() {
                // Keys that have changed are refused with `no`, too.
                "accept-new" | "no" | "off" => StrictChecking::AcceptNew,
                _ => StrictChecking::Yes,
            },
            connect_timeout: params.connect_timeout.filter(|timeout| !timeout.is_zero()),
            alive_interval: params.server_alive_interval,
            alive_count: first("serveralivecountmax").and_then(|count| count.parse().ok()),
            jumps,
            host,
        })
    }
}

fn parsed(text: &str, home: &Path) -> Result<SshConfig, SshParserError> {
    let rules = ParseRule::ALLOW_UNKNOWN_FIELDS | ParseRule::ALLOW_UNSUPPORTED_FIELDS;
    SshConfig::default().home_dir(home).parse(&mut Cursor::new(text), rules)
}

/// Returns the words of an option that `ssh2-config` reads and does not understand.
fn other_option<'a>(params: &'a HostParams, field: &str) -> Option<&'a [String]> {
    let all = params.unsupported_fields.iter().chain(&params.ignored_fields);
    let mut found = all.filter(|(name, _)| name.eq_ignore_ascii_case(field));
    found.next().map(|(_, words)| words.as_slice())
}

/// Finds the line that cannot be read: the last of the shortest beginning that has a mistake.
fn line_of_mistake(text: &str, home: &Path) -> usize {
    let ends = text.match_indices('\n').map(|(at, _)| at + 1).chain([text.len()]);
    let mut ends = ends.enumerate();
    let bad = ends.find(|(_, end)| parsed(&text[..*end], home).is_err());
    bad.map_or(0, |(line, _)| line + 1)
}

/// Cuts out the blocks of `Match`; lines keep their numbers.
fn without_match(text: &str, path: &Path) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut is_cut = false;
    for (number, line) in (1..).zip(text.lines()) {
        let split = |c: char| c.is_whitespace() || c == '=';
        let mut words = line.split(split).filter(|word| !word.is_empty());
        let keyword = words.next().unwrap_or_default().to_ascii_lowercase();
        if keyword == MATCH {
            let is_all = words.next().is_some_and(|word| word.eq_ignore_ascii_case("all"))
                && words.next().is_none_or(|word| word.starts_with('#'));
            is_cut = !is_all;
            if is_all {
                kept.push_str("Host *");
            } else {
                tracing::warn!(file = %path.display(), line = number, "Match is ignored");
            }
        } else {
            is_cut &= keyword != "host";
            if !is_cut {
                kept.push_str(line);
            }
        }
        kept.push('\n');
    }
    kept
}

/// Replaces a leading `~` and the tokens of ssh_config(5) in a path.
fn expanded(text: &str, home: &Path, tokens: &[(char, String)]) -> PathBuf {
    let mut path = String::new();
    let mut chars = text.trim_matches('"').chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            path.push(c);
            continue;
        }
        let name = chars.next();
        match tokens.iter().find(|(token, _)| Some(*token) == name) {
            Some((_, value)) => path.push_str(value),
            // `%%` is a percent sign; an unknown token stays as it is.
            None if name == Some('%') => path.push('%'),
            None => path.extend(['%'].into_iter().chain(name)),
        }
    }
    match path.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> SshAccount {
        SshAccount { home: "/h/ann".into(), user: "ann".to_owned(), agent: None }
    }

    fn config(text: &str) -> Result<UserConfig, SshError> {
        UserConfig::parse("config".into(), text, &account().home)
    }

    fn of(text: &str, host: &str) -> HostConfig {
        config(text).unwrap().of(host, &account()).unwrap()
    }

    #[test]
    fn options_of_a_host_are_found() {
        let text = "\
            Host rig7 rig8\n HostName %h.lab\n User bob\n Port 2222\n\
            IdentityFile ~/.ssh/%r_%h\n IdentitiesOnly yes\n ConnectTimeout 4\n\
            UserKnownHostsFile ~/known %d/known2\n StrictHostKeyChecking accept-new\n\
            ServerAliveInterval 7\n ServerAliveCountMax 2\n HostKeyAlias rig\n\
            ProxyJump ann@gate:2200,[::1]:22\n IdentityAgent ~/agent\n\
            Host *\n User nobody\n";
        let path = |text: &str| PathBuf::from(text);
        let expected = HostConfig {
            host: "rig7.lab".to_owned(),
            user: Some("bob".to_owned()),
            port: Some(2222),
            key_alias: Some("rig".to_owned()),
            identities: vec![path("/h/ann/.ssh/bob_rig7.lab")],
            identities_only: true,
            agent: AgentChoice::Path(path("/h/ann/agent")),
            known_hosts: vec![path("/h/ann/known"), path("/h/ann/known2")],
            strict: StrictChecking::AcceptNew,
            connect_timeout: Some(Duration::from_secs(4)),
            alive_interval: Some(Duration::from_secs(7)),
            alive_count: Some(2),
            jumps: vec!["ssh://ann@gate:2200".parse().unwrap(), "ssh://[::1]:22".parse().unwrap()],
        };
        assert_eq!(of(text, "rig7"), expected);
        assert_eq!(of(text, "rig9").user.as_deref(), Some("nobody"));
    }

    #[test]
    fn an_empty_configuration_leaves_all_to_others() {
        let of = of("", "rig7");
        assert_eq!((of.host.as_str(), of.user, of.port), ("rig7", None, None));
        assert_eq!((of.strict, of.agent), (StrictChecking::Yes, AgentChoice::Default));
        assert!(of.identities.is_empty() && of.known_hosts.is_empty() && of.jumps.is_empty());
    }

    #[test]
    fn a_match_block_does_not_leak_into_the_host_before_it() {
        let text =
            "Host rig7\n Port 2222\nMatch exec true\n User eve\n Port 1\nHost *\n User ann\n";
        assert_eq!(of(text, "rig7").user.as_deref(), Some("ann"));
        assert_eq!(of(text, "rig7").port, Some(2222));
        assert_eq!(of("Match all\n User ann\n", "rig7").user.as_deref(), Some("ann"));
    }

    #[test]
    fn a_mistake_has_a_line() {
        let said = |text: &str| config(text).err().unwrap().to_string();
        assert_eq!(said("Host a\n\n Port many\n"), "config:3: expected port number");
        assert_eq!(said("Host a\n User \"x\n"), "config:2: invalid quotes");
    }

    #[test]
    fn what_libssh2_cannot_follow_is_refused_by_name() {
        let refused = |text: &str| config(text).unwrap().of("a", &account()).err();
        let said = refused("Host a\n ProxyCommand nc %h %p\n").unwrap();
        assert!(said.to_string().contains("ProxyCommand"), "{said}");
        assert!(said.help().unwrap().contains("--ssh-command ssh"));
        assert!(refused("Host a\n ProxyCommand none\n").is_none());
        assert!(refused("Host b\n ProxyCommand nc %h %p\n").is_none());
        assert!(refused("ProxyJump -oX=1\n").is_some());
    }
}
