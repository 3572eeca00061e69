//! What a user writes to name a probe: `VID:PID[-INTERFACE][:SERIAL]`, as probe-rs' tools do.
//!
//! A probe behind a socket is one too: `20b7:9db1:unix:PATH` or `20b7:9db1:tcp:HOST:PORT`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use probe_rs::probe::DebugProbeSelector;

use crate::ProbeError;

/// The ids of the Glasgow interface explorer, whose applet is probe-rs' one remote protocol.
const REMOTE: (u16, u16) = (0x20b7, 0x9db1);

/// Where a probe is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selector {
    /// On this machine's bus.
    Local(DebugProbeSelector),
    /// Behind a socket.
    Remote(Address),
}

/// A socket's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// On this machine.
    Unix(PathBuf),
    /// Host and port.
    Tcp(String, u16),
}

impl FromStr for Selector {
    type Err = ProbeError;

    fn from_str(text: &str) -> Result<Self, ProbeError> {
        let selector = DebugProbeSelector::from_str(text)
            .map_err(|_| bad(text, "VID:PID[-INTERFACE][:SERIAL] with hexadecimal ids"))?;
        if (selector.vendor_id, selector.product_id) != REMOTE {
            return Ok(Self::Local(selector));
        }
        let serial = selector.serial_number.as_deref().unwrap_or_default();
        if let Some(path) = serial.strip_prefix("unix:") {
            if path.is_empty() {
                return Err(bad(text, "20b7:9db1:unix:PATH"));
            }
            return Ok(Self::Remote(Address::Unix(PathBuf::from(path))));
        }
        if let Some(address) = serial.strip_prefix("tcp:") {
            let parts = address.rsplit_once(':');
            let parts = parts.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
            return match parts {
                Some((host, port)) if !host.is_empty() && port != 0 => {
                    Ok(Self::Remote(Address::Tcp(host.to_owned(), port)))
                }
                _ => Err(bad(text, "20b7:9db1:tcp:HOST:PORT")),
            };
        }
        Ok(Self::Local(selector))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(host, port) => write!(f, "tcp:{host}:{port}"),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(selector) => selector.fmt(f),
            Self::Remote(address) => write!(f, "{:04x}:{:04x}:{address}", REMOTE.0, REMOTE.1),
        }
    }
}

fn bad(text: &str, wanted: &'static str) -> ProbeError {
    ProbeError::BadOption {
        name: "the probe's selector".to_owned(),
        value: text.to_owned(),
        wanted,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sockets_are_told_from_devices() {
        let unix: Selector = "20b7:9db1:unix:/run/a:b".parse().unwrap();
        assert_eq!(unix, Selector::Remote(Address::Unix("/run/a:b".into())));
        let tcp: Selector = "20B7:9db1:tcp:[::1]:4000".parse().unwrap();
        assert_eq!(tcp, Selector::Remote(Address::Tcp("[::1]".to_owned(), 4000)));
        assert!(matches!("20b7:9db1:C3-1".parse().unwrap(), Selector::Local(_)));
        assert!(matches!("1366:1015-1:000680".parse().unwrap(), Selector::Local(_)));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, wanted) in [
            ("", "VID:PID"),
            ("zz:1", "VID:PID"),
            ("1366", "VID:PID"),
            ("20b7:9db1:unix:", "unix:PATH"),
            ("20b7:9db1:tcp:host", "tcp:HOST:PORT"),
            ("20b7:9db1:tcp::1", "tcp:HOST:PORT"),
            ("20b7:9db1:tcp:host:99999", "tcp:HOST:PORT"),
        ] {
            let error = text.parse::<Selector>().unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(text in "(20b7:9db1:)?(unix:|tcp:)?[a-f0-9:/.-]{0,24}") {
            if let Ok(selector) = text.parse::<Selector>() {
                let printed = selector.to_string();
                prop_assert_eq!(printed.parse::<Selector>().unwrap(), selector, "{}", printed);
            }
        }
    }
}
