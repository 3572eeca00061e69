//! The address of a web interface, taken apart once.

use std::fmt;

use serde::{Serialize, Serializer};

/// Where a web interface is: never with a name or a password in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebAddress {
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// Host name or address; an IPv6 address without its brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// What comes before every path; empty, or begins with `/` and does not end with one.
    pub base: String,
}

/// Says why a text is no address of a web interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebAddressError {
    /// It begins otherwise.
    #[error("an address begins with http:// or https://")]
    Scheme,
    /// It holds a name or a password.
    #[error("a name or a password does not belong into an address")]
    Credentials,
    /// It has no host, or a port that is none.
    #[error("this has no host, or its port is no number from 1 to 65535")]
    Host,
    /// It has more than host, port and path.
    #[error("an address ends with its path, and has only plain characters")]
    More,
}

/// Splits `HOST`, `HOST:PORT` or `[IPV6]:PORT`.
pub fn host_and_port(text: &str, default: u16) -> Option<(String, u16)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => text.find(':').map_or((text, ""), |at| text.split_at(at)),
    };
    let port = match rest.strip_prefix(':') {
        Some(port) => port.parse().ok().filter(|port| *port != 0)?,
        None if rest.is_empty() => default,
        None => return None,
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b".-_:%".contains(&b);
    let fits =
        !host.is_empty() && host.len() <= 253 && !host.starts_with('-') && host.bytes().all(plain);
    fits.then(|| (host.to_owned(), port))
}

impl std::str::FromStr for WebAddress {
    type Err = WebAddressError;

    fn from_str(text: &str) -> Result<Self, WebAddressError> {
        let (tls, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            (None, None) => return Err(WebAddressError::Scheme),
        };
        let (authority, base) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        if authority.contains('@') {
            return Err(WebAddressError::Credentials);
        }
        let default = if tls { 443 } else { 80 };
        let (host, port) = host_and_port(authority, default).ok_or(WebAddressError::Host)?;
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._~%-".contains(&b);
        if !base.bytes().all(plain) {
            return Err(WebAddressError::More);
        }
        Ok(Self { tls, host, port, base: base.trim_end_matches('/').to_owned() })
    }
}

impl fmt::Display for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{scheme}://{open}{}{close}:{}{}", self.host, self.port, self.base)
    }
}

impl Serialize for WebAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
