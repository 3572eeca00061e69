//! Addresses of the form `ssh://[user@]host[:port][/path/of/jig]`.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// How every address begins.
const SCHEME: &str = "ssh://";

/// Longest name of a host (RFC 1035) and, by the same measure, of a user.
const MOST_NAME: usize = 255;

/// Longest path of a program (Linux: PATH_MAX).
const MOST_PATH: usize = 4096;

/// A host to connect to, and where Jig is there.
///
/// User and host are safe as arguments of a program: they begin with no `-` and hold neither
/// spaces nor control characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SshTarget {
    user: Option<String>,
    host: String,
    port: Option<u16>,
    program: Option<String>,
}

impl SshTarget {
    /// Returns the user of the far side, if the address names one.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns the host: a name of DNS or of the SSH configuration, or an address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port, if the address names one.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Returns the absolute path of the far side's Jig, if the address names one.
    pub fn program(&self) -> Option<&str> {
        self.program.as_deref()
    }
}

/// Says what is wrong with an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{address}` is no SSH address: {mistake}")]
pub struct SshTargetError {
    /// The address, without control characters.
    address: String,
    mistake: TargetMistake,
}

/// What is wrong with an address, and what is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum TargetMistake {
    #[error("expected ssh://[user@]host[:port][/path/of/jig]")]
    Scheme,
    #[error("the host is missing (expected ssh://[user@]host[:port][/path/of/jig])")]
    NoHost,
    #[error(
        "a host holds letters, digits, `.`, `-` and `_`, and does not begin with `-` (write an \
         IPv6 address in brackets: ssh://[fe80::1%eth0]:22)"
    )]
    Host,
    #[error("expected an IPv6 address in brackets")]
    Ipv6,
    #[error("a user holds no spaces, control characters, quotes or `:/@`, and begins with no `-`")]
    User,
    #[error("passwords are not accepted (use a key: ssh-keygen -t ed25519)")]
    Password,
    #[error("expected a port from 1 to 65535 behind `:`")]
    Port,
    #[error("expected the path of a program, without control characters")]
    Path,
    #[error("it is too long")]
    Long,
}

impl FromStr for SshTarget {
    type Err = SshTargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map_err(|mistake| {
            let address = text.chars().take(MOST_NAME).flat_map(|c| match c.is_control() {
                true => c.escape_default().collect::<Vec<_>>(),
                false => vec![c],
            });
            // A password is not repeated.
            let address = match mistake {
                TargetMistake::Password => "ssh://user:...@host".to_owned(),
                _ => address.collect(),
            };
            SshTargetError { address, mistake }
        })
    }
}

fn parse(text: &str) -> Result<SshTarget, TargetMistake> {
    let rest = text.strip_prefix(SCHEME).ok_or(TargetMistake::Scheme)?;
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (user, place) = match authority.rsplit_once('@') {
        Some((user, place)) => (Some(checked_user(user)?), place),
        None => (None, authority),
    };
    let (host, port) = split_port(place)?;
    Ok(SshTarget { user, host, port, program: checked_path(path)? })
}

fn checked_user(user: &str) -> Result<String, TargetMistake> {
    if user.contains(':') {
        return Err(TargetMistake::Password);
    }
    // What a shell reads as more than a name is refused by OpenSSH, too.
    let bad = |c: char| c.is_control() || c.is_whitespace() || "'`\";&<>|(){}@/".contains(c);
    match user {
        _ if user.len() > MOST_NAME => Err(TargetMistake::Long),
        "" => Err(TargetMistake::User),
        _ if user.starts_with('-') || user.contains(bad) => Err(TargetMistake::User),
        _ => Ok(user.to_owned()),
    }
}

fn split_port(place: &str) -> Result<(String, Option<u16>), TargetMistake> {
    if let Some(inner) = place.strip_prefix('[') {
        let (host, port) = inner.split_once(']').ok_or(TargetMistake::Ipv6)?;
        let (address, zone) = host.split_once('%').unwrap_or((host, "eth0"));
        let is_zone = !zone.is_empty() && zone.chars().all(|c| is_name(c) || c == '.');
        if address.parse::<Ipv6Addr>().is_err() || !is_zone || zone.starts_with('-') {
            return Err(TargetMistake::Ipv6);
        }
        let port = match port {
            "" => None,
            port => Some(checked_port(port.strip_prefix(':').ok_or(TargetMistake::Port)?)?),
        };
        return if host.len() > MOST_NAME {
            Err(TargetMistake::Long)
        } else {
            Ok((host.to_owned(), port))
        };
    }
    let (host, port) = match place.split_once(':') {
        // More than one colon is an IPv6 address without brackets.
        Some((_, port)) if port.contains(':') => return Err(TargetMistake::Host),
        Some((host, port)) => (host, Some(checked_port(port)?)),
        None => (place, None),
    };
    match host {
        "" => Err(TargetMistake::NoHost),
        _ if host.len() > MOST_NAME => Err(TargetMistake::Long),
        _ if host.starts_with('-') || !host.chars().all(|c| is_name(c) || c == '.') => {
            Err(TargetMistake::Host)
        }
        _ => Ok((host.to_owned(), port)),
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

fn checked_port(port: &str) -> Result<u16, TargetMistake> {
    let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    match port.parse() {
        Ok(number @ 1..) if digits => Ok(number),
        _ => Err(TargetMistake::Port),
    }
}

fn checked_path(path: &str) -> Result<Option<String>, TargetMistake> {
    match path {
        "" | "/" => Ok(None),
        _ if path.len() > MOST_PATH => Err(TargetMistake::Long),
        _ if path.ends_with('/') || path.contains(char::is_control) => Err(TargetMistake::Path),
        _ => Ok(Some(path.to_owned())),
    }
}

impl fmt::Display for SshTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match self.host.contains(':') {
            true => write!(f, "[{}]", self.host)?,
            false => f.write_str(&self.host)?,
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        f.write_str(self.program.as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mistake(text: &str) -> String {
        text.parse::<SshTarget>().unwrap_err().to_string()
    }

    #[test]
    fn parts_of_an_address_are_told_apart() {
        let target: SshTarget = "ssh://lab@rig7:2222/opt/jig/bin/jig".parse().unwrap();
        let parts = (target.user(), target.host(), target.port(), target.program());
        assert_eq!(parts, (Some("lab"), "rig7", Some(2222), Some("/opt/jig/bin/jig")));
        let target: SshTarget = "ssh://[fe80::1%eth0]:22".parse().unwrap();
        assert_eq!((target.host(), target.port()), ("fe80::1%eth0", Some(22)));
        assert_eq!(target.to_string(), "ssh://[fe80::1%eth0]:22");
        let target: SshTarget = "ssh://rig7/".parse().unwrap();
        assert_eq!(target.to_string(), "ssh://rig7");
    }

    #[test]
    fn a_mistake_is_named_with_what_is_expected() {
        for (text, words) in [
            ("rig7", "expected ssh://[user@]host"),
            ("http://rig7", "expected ssh://[user@]host"),
            ("ssh://", "the host is missing"),
            ("ssh://lab@", "the host is missing"),
            ("ssh://lab@:22", "the host is missing"),
            ("ssh://-oProxyCommand=x", "a host holds letters"),
            ("ssh://rig 7", "a host holds letters"),
            ("ssh://fe80::1", "in brackets"),
            ("ssh://[rig7]", "expected an IPv6 address"),
            ("ssh://[::1", "expected an IPv6 address"),
            ("ssh://[::1]22", "expected a port"),
            ("ssh://-l@rig7", "begins with no `-`"),
            ("ssh://a b@rig7", "a user holds no spaces"),
            ("ssh://@rig7", "a user holds no spaces"),
            ("ssh://a:secret@rig7", "passwords are not accepted"),
            ("ssh://rig7:", "expected a port"),
            ("ssh://rig7:0", "expected a port"),
            ("ssh://rig7:+22", "expected a port"),
            ("ssh://rig7:65536", "expected a port"),
            ("ssh://rig7/opt/", "the path of a program"),
            ("ssh://rig7/opt\n/jig", "the path of a program"),
        ] {
            let said = mistake(text);
            assert!(said.contains(words), "{text}: {said}");
            assert!(!said.contains('\n') && !said.contains("secret"), "{said}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_printed_as_it_was_read(text in any::<String>()) {
            for text in [text.clone(), format!("ssh://{text}")] {
                if let Ok(target) = text.parse::<SshTarget>() {
                    prop_assert_eq!(target.to_string().parse(), Ok(target));
                }
            }
        }

        #[test]
        fn no_part_is_an_option_or_two_words(text in "[-a-z0-9@:/ .%\\[\\]\n'$]{0,24}") {
            if let Ok(target) = format!("ssh://{text}").parse::<SshTarget>() {
                for part in [target.user().unwrap_or("x"), target.host()] {
                    let bad = |c: char| c.is_whitespace() || c.is_control();
                    prop_assert!(!part.starts_with('-') && !part.contains(bad) && !part.is_empty());
                }
                prop_assert!(target.program().is_none_or(|path| path.starts_with('/')));
            }
        }

        #[test]
        fn good_parts_make_a_good_address(
            user in proptest::option::of("[a-z_][a-z0-9_.-]{0,30}"),
            host in "[a-z0-9][a-z0-9.-]{0,60}",
            port in proptest::option::of(1u16..),
            program in proptest::option::of("(/[ -.0-~]{1,9}){1,4}"),
        ) {
            let (user, port) = (user.map(|u| format!("{u}@")), port.map(|p| format!(":{p}")));
            let (user, port) = (user.unwrap_or_default(), port.unwrap_or_default());
            let text = format!("ssh://{user}{host}{port}{}", program.unwrap_or_default());
            prop_assert_eq!(text.parse::<SshTarget>().unwrap().to_string(), text);
        }
    }
}
