//! USB hubs whose ports switch, by the kernel's own attribute `disable` (Linux 6.0).
//!
//! `/sys/bus/usb/devices/1-1.4:1.0/1-1.4-port2/disable` takes `1` for off and `0` for on, and
//! reads the same (Documentation/ABI/testing/sysfs-bus-usb). Whether a hub really cuts the
//! supply is a fact of the hub; many only stop the data.

use std::io;
use std::path::PathBuf;

use jig_model::power::UsbHubPower;
use jig_model::protocol::{BoxFuture, PowerState};
use tokio::fs;

use super::context::{OpenOutlets, PowerContext};
use super::{Outlets, PowerError};
use crate::discover::hub_interface;

/// Switches ports.
struct UsbHubOutlets {
    hub: String,
    sysfs: PathBuf,
}

impl OpenOutlets for UsbHubPower {
    fn open(self, context: &PowerContext) -> Result<Box<dyn Outlets>, PowerError> {
        Ok(Box::new(UsbHubOutlets { hub: self.hub, sysfs: context.sysfs.clone() }))
    }
}

impl UsbHubOutlets {
    /// Returns the attribute of a port.
    fn attribute(&self, port: &str) -> PathBuf {
        let devices = self.sysfs.join("bus/usb/devices");
        devices
            .join(hub_interface(&self.hub))
            .join(format!("{}-port{port}", self.hub))
            .join("disable")
    }

    /// Says what an error means: which of hub, port and attribute is missing.
    fn failed(&self, port: &str, error: io::Error) -> PowerError {
        let path = self.attribute(port);
        let folder = |levels: usize| path.ancestors().nth(levels).is_some_and(|p| p.is_dir());
        if error.kind() != io::ErrorKind::NotFound {
            return PowerError::unusable(path.display().to_string(), error);
        }
        let why = match (folder(2), folder(1)) {
            (false, _) => "it is not there (see: lsusb -t, or ls /sys/bus/usb/devices)".to_owned(),
            (true, false) => format!("it has no port {port}"),
            (true, true) => "the kernel is too old to switch its ports (6.0 can)".to_owned(),
        };
        PowerError::refused(self.what(), why)
    }
}

impl Outlets for UsbHubOutlets {
    fn what(&self) -> String {
        format!("USB hub {}", self.hub)
    }

    fn set<'a>(
        &'a self,
        outlet: &'a str,
        state: PowerState,
    ) -> BoxFuture<'a, Result<(), PowerError>> {
        let word = if state == PowerState::Off { "1" } else { "0" };
        Box::pin(async move {
            // Not created where it is missing: the kernel's attribute or nothing.
            let mut open = fs::OpenOptions::new();
            let done = async {
                use tokio::io::AsyncWriteExt as _;
                let mut file = open.write(true).open(self.attribute(outlet)).await?;
                file.write_all(word.as_bytes()).await?;
                file.flush().await
            };
            done.await.map_err(|error| self.failed(outlet, error))
        })
    }

    fn read<'a>(
        &'a self,
        outlet: &'a str,
    ) -> BoxFuture<'a, Result<Option<PowerState>, PowerError>> {
        Box::pin(async move {
            let text = fs::read(self.attribute(outlet)).await;
            match text.map_err(|error| self.failed(outlet, error))?.trim_ascii() {
                b"0" => Ok(Some(PowerState::On)),
                b"1" => Ok(Some(PowerState::Off)),
                other => Err(PowerError::garbage(self.what(), other)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(sysfs: &std::path::Path, hub: &str) -> UsbHubOutlets {
        UsbHubOutlets { hub: hub.to_owned(), sysfs: sysfs.to_owned() }
    }

    #[tokio::test]
    async fn ports_switch_where_the_kernel_shows_them() {
        let sysfs = tempfile::tempdir().unwrap();
        for (name, port) in [("1-1.4", "1-1.4:1.0/1-1.4-port2"), ("usb1", "1-0:1.0/usb1-port2")] {
            let folder = sysfs.path().join("bus/usb/devices").join(port);
            std::fs::create_dir_all(&folder).unwrap();
            let hub = hub(sysfs.path(), name);
            let why = hub.set("2", PowerState::Off).await.unwrap_err().to_string();
            assert!(why.contains("too old"), "{why}");
            assert!(!folder.join("disable").exists());
            std::fs::write(folder.join("disable"), "0\n").unwrap();
            assert_eq!(hub.read("2").await.unwrap(), Some(PowerState::On));
            hub.set("2", PowerState::Off).await.unwrap();
            assert_eq!(std::fs::read(folder.join("disable")).unwrap()[..1], *b"1");
            std::fs::write(folder.join("disable"), "1\n").unwrap();
            assert_eq!(hub.read("2").await.unwrap(), Some(PowerState::Off));
            std::fs::write(folder.join("disable"), "x\n").unwrap();
            assert!(matches!(hub.read("2").await, Err(PowerError::Garbage { .. })));
            let why = hub.read("3").await.unwrap_err().to_string();
            assert!(why.contains("no port 3"), "{why}");
        }
        let why = hub(sysfs.path(), "9-9").read("1").await.unwrap_err().to_string();
        assert!(why.contains("not there"), "{why}");
    }
}
