//! What is attached to this machine: serial ports and USB hubs.
//!
//! Owns reading `/sys` and `/dev`, wherever they are. Opens no device. What devices say of
//! themselves is cut to one short line; anything that cannot be read is left out.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Longest text of a device that is read, in bytes: a USB string has 126 characters.
const MAX_TEXT: u64 = 512;

/// Most ports and hubs that are listed.
const MAX_LISTED: usize = 1024;

/// Where the kernel shows devices, and where their nodes are.
#[derive(Debug, Clone)]
pub struct Roots {
    /// `/sys`.
    pub sysfs: PathBuf,
    /// `/dev`.
    pub dev: PathBuf,
}

/// What a USB device says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsbIdentity {
    /// Vendor, four hex digits.
    pub vendor: String,
    /// Product, four hex digits.
    pub product: String,
    /// Serial number.
    pub serial: Option<String>,
    /// The names of its manufacturer and its product.
    pub title: String,
    /// Where it is attached, as the kernel names it: `1-1.4`.
    pub port: String,
}

/// A serial port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TtyFound {
    /// Its node, which another port may have after the next start: `/dev/ttyACM0`.
    pub node: String,
    /// Its name by what it is.
    pub by_id: Option<String>,
    /// Its name by where it is attached.
    pub by_path: Option<String>,
    /// The kernel's driver.
    pub driver: Option<String>,
    /// The number of its USB interface, in hex, as the kernel says it.
    pub interface: Option<String>,
    /// The USB device it belongs to.
    pub usb: Option<UsbIdentity>,
}

impl TtyFound {
    /// Returns the name that stays the port's, if it has one.
    pub fn lasting(&self) -> Option<&str> {
        self.by_id.as_deref().or(self.by_path.as_deref())
    }
}

/// A USB hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubFound {
    /// Its name, as rig files say it: `1-1.4` or `usb1`.
    pub name: String,
    /// What it is called.
    pub title: String,
    /// Its ports, in the order of their numbers.
    pub ports: Vec<HubPort>,
}

/// One port of a hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubPort {
    /// Its number.
    pub number: u32,
    /// Whether the kernel can switch it. Whether that cuts the supply is a fact of the hub.
    pub switches: bool,
    /// The device that is attached: `1-1.4.2`.
    pub device: Option<String>,
}

/// Lists the serial ports, in the order of their nodes.
pub fn ttys(roots: &Roots) -> Vec<TtyFound> {
    let class = roots.sysfs.join("class/tty");
    let mut found: Vec<TtyFound> =
        names(&class).iter().filter_map(|name| tty(roots, &class.join(name), name)).collect();
    found.sort_by_key(|tty| natural(&tty.node));
    found
}

fn tty(roots: &Roots, at: &Path, name: &str) -> Option<TtyFound> {
    // A terminal without a device behind it is a virtual one.
    let device = fs::canonicalize(at.join("device")).ok()?;
    // A place for a port that the machine does not have: serial_core's PORT_UNKNOWN.
    if text(&at.join("type")).is_some_and(|kind| kind == "0") {
        return None;
    }
    let links = |folder: &str| {
        let folder = roots.dev.join("serial").join(folder);
        let to_it = |link: &&String| {
            let target = fs::read_link(folder.join(link));
            target.is_ok_and(|target| target.file_name().is_some_and(|to| to == name))
        };
        let names = names(&folder);
        names.iter().find(to_it).map(|link| folder.join(link).display().to_string())
    };
    let driver = fs::read_link(device.join("driver")).ok();
    let sysfs = fs::canonicalize(&roots.sysfs).ok()?;
    let above = || device.ancestors().take_while(|at| at.starts_with(&sysfs));
    Some(TtyFound {
        node: roots.dev.join(name).display().to_string(),
        by_id: links("by-id"),
        by_path: links("by-path"),
        driver: driver.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())),
        interface: above().find_map(|at| text(&at.join("bInterfaceNumber"))),
        usb: above().find_map(usb),
    })
}

/// Reads the identity of a USB device; nothing if the folder is not that of a USB device.
fn usb(at: &Path) -> Option<UsbIdentity> {
    Some(UsbIdentity {
        vendor: text(&at.join("idVendor"))?,
        product: text(&at.join("idProduct"))?,
        serial: text(&at.join("serial")),
        title: title(at),
        port: at.file_name()?.to_str()?.to_owned(),
    })
}

fn title(at: &Path) -> String {
    let words = ["manufacturer", "product"].map(|name| text(&at.join(name)));
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Lists the USB hubs, in the order of their names.
pub fn hubs(roots: &Roots) -> Vec<HubFound> {
    let devices = roots.sysfs.join("bus/usb/devices");
    let mut found: Vec<HubFound> =
        names(&devices).iter().filter_map(|name| hub(&devices, name)).collect();
    found.sort_by_key(|hub| natural(&hub.name));
    found
}

fn hub(devices: &Path, name: &str) -> Option<HubFound> {
    let at = devices.join(name);
    if text(&at.join("bDeviceClass")).as_deref() != Some("09") {
        return None;
    }
    let interface = devices.join(hub_interface(name));
    let begin = format!("{name}-port");
    let port = |folder: &String| {
        let number = folder.strip_prefix(&begin)?.parse().ok()?;
        let at = interface.join(folder);
        let device = fs::read_link(at.join("device")).ok();
        let device = device.and_then(|to| Some(to.file_name()?.to_string_lossy().into_owned()));
        Some(HubPort { number, switches: at.join("disable").exists(), device })
    };
    let mut ports: Vec<HubPort> = names(&interface).iter().filter_map(port).collect();
    ports.sort_by_key(|port| port.number);
    Some(HubFound { name: name.to_owned(), title: title(&at), ports })
}

/// Names the interface of a hub, below which its ports are. A root hub's has a name of its own.
pub(crate) fn hub_interface(hub: &str) -> String {
    match hub.strip_prefix("usb") {
        Some(bus) => format!("{bus}-0:1.0"),
        None => format!("{hub}:1.0"),
    }
}

/// Returns the hub that a USB device is attached to, and the number of the port: `1-1.4.2` is
/// at port 2 of `1-1.4`, and `1-3` at port 3 of `usb1`.
pub fn hub_of(device: &str) -> Option<(String, u32)> {
    if let Some((hub, port)) = device.rsplit_once('.') {
        return Some((hub.to_owned(), port.parse().ok()?));
    }
    let (bus, port) = device.split_once('-')?;
    Some((format!("usb{bus}"), port.parse().ok()?))
}

/// Lists the names in a folder, as far as they are text.
fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.take(MAX_LISTED).collect();
    names.sort();
    names
}

/// Reads an attribute as one short line; nothing if it is missing or empty.
fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(MAX_TEXT).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Orders names as people do: ttyS2 before ttyS10.
fn natural(name: &str) -> (String, u64) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem.to_owned(), name[stem.len()..].parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A machine whose devices are files of a test.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn roots(&self) -> Roots {
            Roots { sysfs: self.0.path().join("sys"), dev: self.0.path().join("dev") }
        }

        fn write(&self, path: &str, text: &[u8]) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn link(&self, path: &str, to: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(to, path).unwrap();
        }
    }

    const PCI: &str = "sys/devices/pci0000:00/0000:00:14.0/usb1";

    /// As Linux 6.1 shows a DAPLink at port 2 of a hub, and an FTDI adapter at a root hub.
    fn lab() -> Machine {
        let machine = Machine::new();
        let hub = format!("{PCI}/1-1");
        machine.write(&format!("{PCI}/bDeviceClass"), b"09\n");
        machine.write(&format!("{PCI}/1-0:1.0/usb1-port1/disable"), b"0\n");
        machine.link(&format!("{PCI}/1-0:1.0/usb1-port1/device"), "../../1-1");
        machine.write(&format!("{PCI}/1-0:1.0/usb1-port3/over_current_count"), b"0\n");
        machine.write(&format!("{hub}/bDeviceClass"), b"09\n");
        machine.write(&format!("{hub}/product"), b"USB2.1 Hub\n");
        for port in ["1", "2", "10"] {
            machine.write(&format!("{hub}/1-1:1.0/1-1-port{port}/disable"), b"0\n");
        }
        machine.link(&format!("{hub}/1-1:1.0/1-1-port2/device"), "../../1-1.2");
        let probe = format!("{hub}/1-1.2");
        for (name, value) in [
            ("idVendor", "0d28\n"),
            ("idProduct", "0204\n"),
            ("serial", "9900\x1b[31m\n"),
            ("manufacturer", "Arm\n"),
            ("product", "DAPLink\n"),
            ("1-1.2:1.1/bInterfaceNumber", "01\n"),
        ] {
            machine.write(&format!("{probe}/{name}"), value.as_bytes());
        }
        machine.link(&format!("{probe}/1-1.2:1.1/driver"), "../../drivers/cdc_acm");
        machine.link(&format!("{probe}/1-1.2:1.1/tty/ttyACM0/device"), "../../../1-1.2:1.1");
        let ftdi = format!("{PCI}/1-3");
        machine.write(&format!("{ftdi}/idVendor"), b"0403\n");
        machine.write(&format!("{ftdi}/idProduct"), b"6001\n");
        machine.link(&format!("{ftdi}/1-3:1.0/ttyUSB0/driver"), "../../drivers/ftdi_sio");
        machine.link(&format!("{ftdi}/1-3:1.0/ttyUSB0/tty/ttyUSB0/device"), "../../../ttyUSB0");
        let class = "sys/class/tty";
        let to = "../../devices/pci0000:00/0000:00:14.0/usb1";
        machine.link(&format!("{class}/ttyACM0"), &format!("{to}/1-1/1-1.2/1-1.2:1.1/tty/ttyACM0"));
        machine.link(&format!("{class}/ttyUSB0"), &format!("{to}/1-3/1-3:1.0/ttyUSB0/tty/ttyUSB0"));
        // A port of the machine itself, one it does not have, and a virtual terminal.
        for (name, kind) in [("ttyS10", "4"), ("ttyS2", "4"), ("ttyS3", "0")] {
            machine.write(&format!("sys/devices/pnp0/{name}/id"), b"x");
            machine.write(&format!("{class}/{name}/type"), kind.as_bytes());
            machine
                .link(&format!("{class}/{name}/device"), &format!("../../../devices/pnp0/{name}"));
        }
        machine.write(&format!("{class}/tty0/active"), b"tty1\n");
        let link = "dev/serial/by-id/usb-Arm_DAPLink_9900-if01";
        machine.link(link, "../../ttyACM0");
        machine.link("dev/serial/by-path/pci-0000:00:14.0-usb-0:3:1.0-port0", "../../ttyUSB0");
        for (name, to) in [("usb1", ""), ("1-1", "/1-1"), ("1-1.2", "/1-1/1-1.2"), ("1-3", "/1-3")]
        {
            let to = format!("../../../devices/pci0000:00/0000:00:14.0/usb1{to}");
            machine.link(&format!("sys/bus/usb/devices/{name}"), &to);
        }
        for (name, below) in [("1-0:1.0", "1-0:1.0"), ("1-1:1.0", "1-1/1-1:1.0")] {
            let to = format!("../../../devices/pci0000:00/0000:00:14.0/usb1/{below}");
            machine.link(&format!("sys/bus/usb/devices/{name}"), &to);
        }
        machine
    }

    #[test]
    fn serial_ports_are_found_with_what_they_belong_to() {
        let lab = lab();
        let dev = lab.roots().dev.display().to_string();
        let found = ttys(&lab.roots());
        let names: Vec<_> = found.iter().map(|t| t.node.strip_prefix(&dev).unwrap()).collect();
        assert_eq!(names, ["/ttyACM0", "/ttyS2", "/ttyS10", "/ttyUSB0"]);
        let acm = &found[0];
        assert_eq!(acm.by_id, Some(format!("{dev}/serial/by-id/usb-Arm_DAPLink_9900-if01")));
        assert_eq!(acm.lasting(), acm.by_id.as_deref());
        assert_eq!(
            (acm.driver.as_deref(), acm.interface.as_deref()),
            (Some("cdc_acm"), Some("01"))
        );
        let usb = UsbIdentity {
            vendor: "0d28".to_owned(),
            product: "0204".to_owned(),
            serial: Some("9900[31m".to_owned()),
            title: "Arm DAPLink".to_owned(),
            port: "1-1.2".to_owned(),
        };
        assert_eq!(acm.usb, Some(usb));
        let ftdi = &found[3];
        assert_eq!((ftdi.by_id.as_deref(), ftdi.driver.as_deref()), (None, Some("ftdi_sio")));
        assert!(ftdi.lasting().unwrap().contains("by-path"));
        let usb = ftdi.usb.as_ref().unwrap();
        assert_eq!(
            (usb.serial.as_deref(), usb.title.as_str(), usb.port.as_str()),
            (None, "", "1-3")
        );
        assert_eq!(found[1].usb, None);
    }

    #[test]
    fn hubs_tell_which_ports_switch_and_what_is_attached() {
        let found = hubs(&lab().roots());
        let port = |number, switches, device: Option<&str>| HubPort {
            number,
            switches,
            device: device.map(str::to_owned),
        };
        let expected = [
            HubFound {
                name: "1-1".to_owned(),
                title: "USB2.1 Hub".to_owned(),
                ports: vec![
                    port(1, true, None),
                    port(2, true, Some("1-1.2")),
                    port(10, true, None),
                ],
            },
            HubFound {
                name: "usb1".to_owned(),
                title: String::new(),
                ports: vec![port(1, true, Some("1-1")), port(3, false, None)],
            },
        ];
        assert_eq!(found, expected);
        assert_eq!(hub_of("1-1.4.2"), Some(("1-1.4".to_owned(), 2)));
        assert_eq!(hub_of("1-3"), Some(("usb1".to_owned(), 3)));
        assert_eq!(hub_of("usb1"), None);
    }

    #[test]
    fn a_machine_without_any_of_it_has_nothing() {
        let machine = Machine::new();
        assert_eq!((ttys(&machine.roots()), hubs(&machine.roots())), (Vec::new(), Vec::new()));
        machine.write("sys/class/tty/x", b"no folder");
        machine.link("sys/class/tty/loop", "loop");
        machine.write("sys/bus/usb/devices/1-1/bDeviceClass", &[0xff; 4096]);
        assert_eq!((ttys(&machine.roots()), hubs(&machine.roots())), (Vec::new(), Vec::new()));
    }
}
