//! Which probes there are, and which processes hold them.
//!
//! Owns what this machine tells about its bus and its processes, through the files of `/sys`
//! and `/proc`. Needs neither to exist. Refuses to open any probe.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use probe_rs::probe::list::{Accessibility, Lister};
use probe_rs::probe::{DebugProbeInfo, DebugProbeSelector};
use serde::{Deserialize, Serialize};

use crate::ProbeError;
use crate::worker::Address;

/// How long the drivers may look for their probes: a hung device answers none of them.
const LISTING: Duration = Duration::from_secs(5);

/// A probe that is attached to this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeInfo {
    /// What it calls itself.
    pub name: String,
    /// What names it: `VID:PID[-INTERFACE][:SERIAL]`.
    pub selector: String,
    /// Which driver serves it.
    pub kind: String,
    /// The bus port it is attached to, which tells probes without serial number apart.
    pub port: Option<String>,
    /// The program that has it open: name and process id.
    pub holder: Option<String>,
    /// Whether this user may open it.
    pub accessible: bool,
}

/// Lists the probes on this machine's bus. Probes behind a socket are not found by looking.
///
/// # Errors
/// [`ProbeError::Hung`] where a device keeps its driver waiting for more than 5 s.
pub async fn list_probes() -> Result<Vec<ProbeInfo>, ProbeError> {
    let (answer, answered) = tokio::sync::oneshot::channel();
    start_listing(move |probes| drop(answer.send(probes)))?;
    match tokio::time::timeout(LISTING, answered).await {
        Ok(Ok(probes)) => Ok(probes),
        Ok(Err(_)) => Err(ProbeError::Gone),
        Err(_) => Err(hung()),
    }
}

/// Lists the probes as [`list_probes`] does, and waits for that without a runtime.
///
/// # Errors
/// As [`list_probes`].
pub fn list_probes_now() -> Result<Vec<ProbeInfo>, ProbeError> {
    let (answer, answered) = std::sync::mpsc::channel();
    start_listing(move |probes| drop(answer.send(probes)))?;
    answered.recv_timeout(LISTING).map_err(|_| hung())
}

fn hung() -> ProbeError {
    ProbeError::Hung { during: "listing".to_owned(), timeout: LISTING }
}

/// Lists on a thread of its own, not one of a runtime's pool: where a device hangs, so does the
/// thread, and a runtime waits for its pool when it ends. The caller may have gone by then.
fn start_listing(answer: impl FnOnce(Vec<ProbeInfo>) + Send + 'static) -> Result<(), ProbeError> {
    let started =
        std::thread::Builder::new().name("probe listing".to_owned()).spawn(move || answer(list()));
    started.map(drop).map_err(|error| ProbeError::Failed {
        what: "a thread could not be started".to_owned(),
        source: Box::new(error),
    })
}

fn list() -> Vec<ProbeInfo> {
    let bus = UsbBus::system();
    let items = Lister::new().list_all_with_access();
    items
        .iter()
        .map(|item| ProbeInfo {
            name: item.info.identifier.clone(),
            selector: selector_of(&item.info),
            kind: item.info.probe_type(),
            port: bus.devices_of(&item.info).first().map(|device| device.port.clone()),
            holder: holder_of(&item.info, &bus),
            accessible: item.accessibility == Accessibility::Accessible,
        })
        .collect()
}

/// Returns a probe's selector.
pub(crate) fn selector_of(info: &DebugProbeInfo) -> String {
    DebugProbeSelector::from(info).to_string()
}

/// Describes probes that one selector means, so that a person can tell which is which.
pub(crate) fn told_apart(infos: &[DebugProbeInfo], bus: &UsbBus) -> Vec<String> {
    let mut seen: Vec<String> = Vec::with_capacity(infos.len());
    let mut described = Vec::with_capacity(infos.len());
    for info in infos {
        let selector = selector_of(info);
        // Probes that look the same are paired with ports in the order of both lists.
        let nth = seen.iter().filter(|earlier| **earlier == selector).count();
        described.push(match bus.devices_of(info).get(nth) {
            Some(device) => format!("{selector} at port {}", device.port),
            None => selector.clone(),
        });
        seen.push(selector);
    }
    described
}

/// Names the process that has a probe open, other than this process.
pub(crate) fn holder_of(info: &DebugProbeInfo, bus: &UsbBus) -> Option<String> {
    let devices = bus.devices_of(info);
    let nodes: Vec<&Path> =
        devices.iter().flat_map(|device| &device.nodes).map(PathBuf::as_path).collect();
    bus.holder(|target| nodes.contains(&target))
}

/// Names the client that is served at a remote probe's address while this process waits there.
pub(crate) fn other_client(address: &Address) -> Option<String> {
    let bus = UsbBus::system();
    match address {
        Address::Unix(path) => {
            let table = fs::read_to_string(bus.proc.join("net/unix")).ok()?;
            let server = bus.holder_of_sockets(&served_elsewhere(&table, path)?)?;
            Some(format!("another client of {server}"))
        }
        Address::Tcp(_, port) => {
            let mut table = fs::read_to_string(bus.proc.join("net/tcp")).unwrap_or_default();
            table.push_str(&fs::read_to_string(bus.proc.join("net/tcp6")).unwrap_or_default());
            bus.holder_of_sockets(&established_to(&table, *port))
        }
    }
}

/// Finds the accepted sockets at a path, if a connection waits there that is not accepted: in
/// the kernel's table the former are in state 3, the latter in state 2.
fn served_elsewhere(table: &str, path: &Path) -> Option<Vec<u64>> {
    let mut waiting = false;
    let mut accepted = Vec::new();
    for line in table.lines() {
        let mut fields = line.split_ascii_whitespace().skip(5);
        let (Some(state), Some(inode)) = (fields.next(), fields.next()) else { continue };
        if fields.next().is_none_or(|bound| Path::new(bound) != path) {
            continue;
        }
        match (state, inode.parse::<u64>()) {
            ("02", _) => waiting = true,
            ("03", Ok(inode)) if inode != 0 => accepted.push(inode),
            _ => {}
        }
    }
    (waiting && !accepted.is_empty()).then_some(accepted)
}

/// Finds established connections to a port, by their inodes.
fn established_to(table: &str, port: u16) -> Vec<u64> {
    let suffix = format!(":{port:04X}");
    table
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let to = fields.get(2)?.ends_with(&suffix) && *fields.get(3)? == "01";
            to.then(|| fields.get(9)?.parse().ok()).flatten()
        })
        .collect()
}

/// The files in which a machine tells about its bus and its processes.
#[derive(Debug, Clone)]
pub(crate) struct UsbBus {
    devices: PathBuf,
    proc: PathBuf,
}

/// A device on the bus.
#[derive(Debug)]
pub(crate) struct UsbDevice {
    /// Where it is attached: bus and chain of ports.
    pub(crate) port: String,
    /// What is opened to talk to it.
    pub(crate) nodes: Vec<PathBuf>,
}

impl UsbBus {
    /// This machine's.
    pub(crate) fn system() -> Self {
        Self { devices: "/sys/bus/usb/devices".into(), proc: "/proc".into() }
    }

    /// Another machine's, for tests.
    #[cfg(test)]
    pub(crate) fn at(devices: PathBuf, proc: PathBuf) -> Self {
        Self { devices, proc }
    }

    /// Finds the devices that look like a probe, in the order of their ports.
    pub(crate) fn devices_of(&self, info: &DebugProbeInfo) -> Vec<UsbDevice> {
        let Ok(entries) = fs::read_dir(&self.devices) else { return Vec::new() };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let folder = entry.path();
            let word = |name: &str| {
                fs::read_to_string(folder.join(name)).ok().map(|text| text.trim().to_owned())
            };
            let id = |name: &str| u16::from_str_radix(&word(name)?, 16).ok();
            if id("idVendor") != Some(info.vendor_id) || id("idProduct") != Some(info.product_id) {
                continue;
            }
            let serial = word("serial").filter(|serial| !serial.is_empty());
            if info.serial_number.as_deref().filter(|s| !s.is_empty()) != serial.as_deref() {
                continue;
            }
            let mut nodes = Vec::new();
            let number = |name: &str| word(name)?.parse::<u32>().ok();
            if let (Some(bus), Some(device)) = (number("busnum"), number("devnum")) {
                nodes.push(PathBuf::from(format!("/dev/bus/usb/{bus:03}/{device:03}")));
            }
            nodes.extend(hid_nodes(&folder));
            found.push(UsbDevice { port: entry.file_name().to_string_lossy().into_owned(), nodes });
        }
        found.sort_by(|one, other| one.port.cmp(&other.port));
        found
    }

    /// Finds another process that has something open, and says its name and id.
    fn holder(&self, is_it: impl Fn(&Path) -> bool) -> Option<String> {
        let own = std::process::id();
        for entry in fs::read_dir(&self.proc).ok()?.flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            // Other users' processes do not show what they have open.
            let Ok(open) = fs::read_dir(entry.path().join("fd")) else { continue };
            let holds = |fd: fs::DirEntry| fs::read_link(fd.path()).is_ok_and(|to| is_it(&to));
            if pid != own && open.flatten().any(holds) {
                let program = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
                let program = program.trim();
                let program = if program.is_empty() { "a program" } else { program };
                return Some(format!("{program} (pid {pid})"));
            }
        }
        None
    }

    fn holder_of_sockets(&self, inodes: &[u64]) -> Option<String> {
        let names: Vec<PathBuf> =
            inodes.iter().map(|inode| PathBuf::from(format!("socket:[{inode}]"))).collect();
        self.holder(|target| names.iter().any(|name| name == target))
    }
}

/// Finds the nodes of a device's HID interfaces: `INTERFACE/HID/hidraw/hidrawN`.
fn hid_nodes(device: &Path) -> Vec<PathBuf> {
    let inside = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    let mut nodes = Vec::new();
    for interface in inside(device.to_owned()) {
        // An interface's folder is named CONFIGURATION.INTERFACE behind a colon.
        if !interface.file_name().to_string_lossy().contains(':') {
            continue;
        }
        for hid in inside(interface.path()) {
            for node in inside(hid.path().join("hidraw")) {
                nodes.push(Path::new("/dev").join(node.file_name()));
            }
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use probe_rs::probe::cmsisdap::CmsisDapFactory;

    use super::*;

    fn info(serial: Option<&str>) -> DebugProbeInfo {
        let serial = serial.map(str::to_owned);
        DebugProbeInfo::new("a probe", 0x0d28, 0x0204, serial, &CmsisDapFactory, None, true)
    }

    /// Builds the folders of a machine with two probes without serial numbers, the second of
    /// which another process holds by its HID node.
    fn machine(folder: &Path) -> UsbBus {
        let bus = UsbBus::at(folder.join("usb"), folder.join("proc"));
        for (port, number) in [("1-4.2", "7"), ("1-4.1", "12")] {
            let device = bus.devices.join(port);
            let hid = device.join(format!("{port}:1.3/0003:0D28:0204/hidraw/hidraw{number}"));
            fs::create_dir_all(hid).unwrap();
            for (name, text) in [
                ("idVendor", "0d28\n"),
                ("idProduct", "0204\n"),
                ("busnum", "1\n"),
                ("devnum", number),
            ] {
                fs::write(device.join(name), text).unwrap();
            }
        }
        let other = bus.proc.join("4711");
        fs::create_dir_all(other.join("fd")).unwrap();
        fs::write(other.join("comm"), "openocd\n").unwrap();
        symlink("/dev/hidraw7", other.join("fd/9")).unwrap();
        fs::create_dir_all(bus.proc.join("irq")).unwrap();
        bus
    }

    #[test]
    fn probes_without_serial_number_are_told_apart_by_port() {
        let folder = tempfile::tempdir().unwrap();
        let bus = machine(folder.path());
        let described = told_apart(&[info(None), info(None)], &bus);
        assert_eq!(described, ["0d28:0204 at port 1-4.1", "0d28:0204 at port 1-4.2"]);
        assert_eq!(told_apart(&[info(Some("A1"))], &bus), ["0d28:0204:A1"]);
    }

    #[test]
    fn the_holder_is_named_with_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let bus = machine(folder.path());
        assert_eq!(holder_of(&info(None), &bus).as_deref(), Some("openocd (pid 4711)"));
        assert_eq!(holder_of(&info(Some("A1")), &bus), None);
        fs::remove_file(bus.proc.join("4711/fd/9")).unwrap();
        symlink("/dev/bus/usb/001/012", bus.proc.join("4711/fd/9")).unwrap();
        assert_eq!(holder_of(&info(None), &bus).as_deref(), Some("openocd (pid 4711)"));
    }

    #[test]
    fn a_machine_without_a_bus_has_no_probes() {
        let bus = UsbBus::at("/nowhere/usb".into(), "/nowhere/proc".into());
        assert!(bus.devices_of(&info(None)).is_empty());
        assert_eq!(holder_of(&info(None), &bus), None);
    }

    #[test]
    fn only_a_connection_that_waits_behind_another_is_held_up() {
        let head = "Num RefCount Protocol Flags Type St Inode Path\n";
        let listening = "0: 00000002 00000000 00010000 0001 01 100 /run/p\n";
        let accepted = "0: 00000003 00000000 00000000 0001 03 101 /run/p\n";
        let waiting = "0: 00000002 00000000 00000000 0001 02 0 /run/p\n";
        let elsewhere = "0: 00000003 00000000 00000000 0001 03 102 /run/q\n";
        let table = |lines: &[&str]| format!("{head}{}", lines.concat());
        let served = |lines: &[&str]| served_elsewhere(&table(lines), Path::new("/run/p"));
        assert_eq!(served(&[listening, accepted, elsewhere, waiting]), Some(vec![101]));
        assert_eq!(served(&[listening, accepted]), None);
        assert_eq!(served(&[listening, waiting, elsewhere]), None);
    }

    #[test]
    fn clients_of_a_port_are_found() {
        let table = "sl local rem st tx rx tr tm uid to inode\n\
            0: 0100007F:1F40 00000000:0000 0A 0:0 0:0 0 0 0 555 1\n\
            1: 0100007F:A001 0100007F:1F40 01 0:0 0:0 0 0 0 556 1\n\
            2: 0100007F:A002 0100007F:1F40 06 0:0 0:0 0 0 0 557 1\n";
        assert_eq!(established_to(table, 8000), [556]);
    }

    #[tokio::test]
    async fn listing_ends_on_any_machine() {
        for probe in list_probes().await.unwrap() {
            assert!(probe.selector.contains(':'), "{probe:?}");
        }
    }
}
