//! Where a probe comes from: a selector, or something in this process that makes one.

use std::fmt;
use std::sync::Arc;

use probe_rs::config::TargetSelector;
use probe_rs::probe::list::Lister;
use probe_rs::probe::{DebugProbeError, DebugProbeSelector, Probe, ProbeCreationError};

use super::leash::{Cut, Leash};
use super::remote::{self, OpenError};
use super::selector::{Address, Selector};
use crate::ProbeError;
use crate::listing::{self, UsbBus};

/// Where a probe comes from.
pub enum ProbeSource {
    /// A selector: `VID:PID[-INTERFACE][:SERIAL]`, or one of a probe behind a socket,
    /// `20b7:9db1:unix:PATH` and `20b7:9db1:tcp:HOST:PORT`.
    Selector(String),
    /// A probe of this process.
    Opener(Opener),
}

/// Makes a probe of this process; this crate's virtual probe gives one.
pub struct Opener(pub(crate) Box<dyn OpenProbe>);

impl fmt::Debug for ProbeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Selector(selector) => f.debug_tuple("Selector").field(selector).finish(),
            Self::Opener(opener) => f.debug_tuple("Opener").field(&opener.0.name()).finish(),
        }
    }
}

/// Opens a probe, as often as it is asked to: each attempt to attach uses one up.
pub(crate) trait OpenProbe: Send {
    /// Returns a name for people.
    fn name(&self) -> String;

    /// Opens the probe.
    fn open(&mut self) -> Result<Probe, DebugProbeError>;

    /// Returns the target behind it; a chip that the options name takes precedence.
    fn target(&self) -> TargetSelector {
        TargetSelector::Auto
    }

    /// Returns what cuts off the probe opened last, if anything can.
    fn cutter(&self) -> Option<Arc<dyn Cut>> {
        None
    }
}

/// A source whose selector is understood.
pub(crate) enum Resolved {
    Selector(Selector),
    Opener(Box<dyn OpenProbe>),
}

impl Resolved {
    pub(crate) fn from_source(source: ProbeSource) -> Result<Self, ProbeError> {
        Ok(match source {
            ProbeSource::Selector(text) => Self::Selector(text.parse()?),
            ProbeSource::Opener(opener) => Self::Opener(opener.0),
        })
    }

    /// Returns a name for people.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Selector(selector) => selector.to_string(),
            Self::Opener(opener) => opener.name(),
        }
    }

    /// Returns the target that the source itself knows of.
    pub(crate) fn target(&self) -> TargetSelector {
        match self {
            Self::Selector(_) => TargetSelector::Auto,
            Self::Opener(opener) => opener.target(),
        }
    }

    /// Opens the probe.
    pub(crate) fn open(&mut self, leash: &Leash) -> Result<Probe, ProbeError> {
        match self {
            Self::Selector(Selector::Local(selector)) => {
                open_local(selector, &Lister::new(), &UsbBus::system())
            }
            Self::Selector(Selector::Remote(address)) => open_remote(address, leash),
            Self::Opener(opener) => {
                let name = opener.name();
                let probe = opener.open().map_err(|error| match error {
                    DebugProbeError::ProbeCouldNotBeCreated(ProbeCreationError::NotFound) => {
                        ProbeError::NotFound { selector: name, present: Vec::new() }
                    }
                    other => ProbeError::Failed {
                        what: format!("{name} could not be opened"),
                        source: Box::new(other),
                    },
                })?;
                if let Some(cutter) = opener.cutter() {
                    leash.hold(cutter);
                }
                Ok(probe)
            }
        }
    }
}

fn open_remote(address: &Address, leash: &Leash) -> Result<Probe, ProbeError> {
    remote::open(address, leash).map_err(|error| {
        let selector = Selector::Remote(address.clone()).to_string();
        match error {
            OpenError::Reach(error) if nobody_there(&error) => {
                ProbeError::NotFound { selector, present: Vec::new() }
            }
            error => ProbeError::Failed {
                what: format!("{selector} could not be opened"),
                source: Box::new(error),
            },
        }
    })
}

fn nobody_there(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{AddrNotAvailable, ConnectionRefused, NotFound};
    matches!(error.kind(), NotFound | ConnectionRefused | AddrNotAvailable)
}

/// Opens a probe of a bus. The lister's own `open` would ask every driver in turn and report
/// what the last of them says, so the probe is looked up first.
pub(crate) fn open_local(
    selector: &DebugProbeSelector,
    lister: &Lister,
    bus: &UsbBus,
) -> Result<Probe, ProbeError> {
    let name = selector.to_string();
    let matching = lister.list(Some(selector));
    let info = match matching.as_slice() {
        [] => {
            let present = lister.list_all();
            return Err(ProbeError::NotFound {
                selector: name,
                present: present.iter().map(listing::selector_of).collect(),
            });
        }
        [one] => one,
        several => {
            let matching = listing::told_apart(several, bus);
            return Err(ProbeError::Ambiguous { selector: name, matching });
        }
    };
    info.open().map_err(|error| match listing::holder_of(info, bus) {
        Some(holder) => ProbeError::Held { selector: name, holder },
        None => ProbeError::Failed {
            what: format!("{name} could not be opened"),
            source: Box::new(error),
        },
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use probe_rs::probe::list::{ProbeListItem, ProbeLister};
    use probe_rs::probe::{DebugProbe, DebugProbeInfo, ProbeFactory};

    use super::*;

    /// A driver of probes that are there but cannot be opened: the fake at probe-rs' seam
    /// for what needs several probes, or another program that holds one.
    #[derive(Debug)]
    struct Taken;

    impl fmt::Display for Taken {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("taken")
        }
    }

    impl ProbeFactory for Taken {
        fn open(&self, _: &DebugProbeSelector) -> Result<Box<dyn DebugProbe>, DebugProbeError> {
            Err(ProbeCreationError::CouldNotOpen.into())
        }

        fn list_probes(&self) -> Vec<ProbeListItem> {
            Vec::new()
        }
    }

    /// Lists probes with these serial numbers.
    #[derive(Debug)]
    struct Listed(Vec<Option<&'static str>>);

    impl ProbeLister for Listed {
        fn open(&self, _: &DebugProbeSelector) -> Result<Probe, DebugProbeError> {
            Err(ProbeCreationError::NotFound.into())
        }

        fn list_with_access(&self, wanted: Option<&DebugProbeSelector>) -> Vec<ProbeListItem> {
            let info = |serial: &Option<&str>| {
                let serial = serial.map(str::to_owned);
                DebugProbeInfo::new("a probe", 0x1366, 0x1015, serial, &Taken, None, false)
            };
            let infos = self.0.iter().map(info);
            let matching = infos.filter(|info| wanted.is_none_or(|one| one.matches_probe(info)));
            matching.map(ProbeListItem::accessible).collect()
        }
    }

    fn opened(probes: &[Option<&'static str>], wanted: &str, bus: &UsbBus) -> String {
        let lister = Lister::with_lister(Box::new(Listed(probes.to_vec())));
        open_local(&wanted.parse().unwrap(), &lister, bus).unwrap_err().to_string()
    }

    /// A machine with two such devices, the second of which another process has open.
    fn machine(folder: &std::path::Path) -> UsbBus {
        for (port, number) in [("3-1", "4"), ("3-2", "5")] {
            let device = folder.join("usb").join(port);
            fs::create_dir_all(&device).unwrap();
            for (name, text) in
                [("idVendor", "1366"), ("idProduct", "1015"), ("busnum", "3"), ("devnum", number)]
            {
                fs::write(device.join(name), text).unwrap();
            }
        }
        fs::create_dir_all(folder.join("proc/99/fd")).unwrap();
        fs::write(folder.join("proc/99/comm"), "JLinkExe\n").unwrap();
        std::os::unix::fs::symlink("/dev/bus/usb/003/005", folder.join("proc/99/fd/7")).unwrap();
        UsbBus::at(folder.join("usb"), folder.join("proc"))
    }

    #[test]
    fn two_probes_without_serial_numbers_are_ambiguous_and_named_by_port() {
        let folder = tempfile::tempdir().unwrap();
        let bus = machine(folder.path());
        assert_eq!(
            opened(&[None, None], "1366:1015", &bus),
            "1366:1015 means more than one probe: 1366:1015 at port 3-1, 1366:1015 at port 3-2"
        );
    }

    #[test]
    fn a_probe_that_is_held_names_its_holder() {
        let folder = tempfile::tempdir().unwrap();
        let bus = machine(folder.path());
        assert_eq!(
            opened(&[None], "1366:1015", &bus),
            "probe 1366:1015 is held by JLinkExe (pid 99)"
        );
        fs::remove_dir_all(folder.path().join("proc")).unwrap();
        assert_eq!(opened(&[None], "1366:1015", &bus), "1366:1015 could not be opened");
    }

    #[test]
    fn a_probe_that_is_not_there_is_named_beside_those_that_are() {
        let bus = UsbBus::system();
        assert_eq!(
            opened(&[Some("A"), Some("B")], "1366:1015:C", &bus),
            "there is no probe 1366:1015:C; there are 1366:1015:A, 1366:1015:B"
        );
    }
}
