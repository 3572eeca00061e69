//! Starting a boot loader by the serial port of the firmware: the touch at 1200 baud.
//!
//! Owns the touch and the wait for the port that comes. Refuses to know the board: what is waited for is
//! whatever serial port comes at the same USB port.
//!
//! # Design
//! Firmware with a USB port of its own (cores of Arduino for SAMD and 32u4, Pico SDK) leaves for its boot
//! loader when its port was set to 1200 baud and DTR falls. The boot loader is another USB device: another
//! product, another name by id, often another node. It has the place of the firmware alone, which is the
//! USB port of the cable, so of two equal boards none is taken for the other.
//!
//! A board may keep its port: its USB bridge acts on the touch (Due, programming port), or its boot loader
//! runs already and ignores it. Then the program is told the port as it is, and says itself whether a boot
//! loader answers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jig_model::Cause;
use jig_model::protocol::LineControl;
use jig_model::rig_file::{CaptureClient, Place};
use nix::unistd::{AccessFlags, access};
use tokio::task::spawn_blocking;
use tokio_serial::Parity;

use crate::discover::{Roots, TtyFound, ttys};
use crate::serial::{OpenTty, TtyError, control};

/// The speed that no one uses for anything else.
const TOUCH_BAUD: u32 = 1200;

/// How long a board that reacts may take to leave its port: the cores wait 0.25 s (SAMD) and 0.12 s (32u4,
/// its watchdog) after the touch, and a host notices within a second.
const LEAVES: Duration = Duration::from_secs(3);

/// How often the ports are looked at: a USB device takes longer to be there again.
const LOOK: Duration = Duration::from_millis(50);

/// Says why a boot loader was not started by a serial port.
#[derive(Debug, thiserror::Error)]
pub enum TouchError {
    /// There is no such port.
    #[error(
        "{port}, by which the boot loader is started, is not there (jig discover lists the ports; a boot \
         loader that runs already has another one: press RESET once, then try again)"
    )]
    Missing {
        /// The port.
        port: String,
    },
    /// It cannot be opened.
    #[error("start the boot loader by {port}{}", hint(source))]
    Unopened {
        /// The port.
        port: String,
        /// Why.
        #[source]
        source: TtyError,
    },
    /// The board has left its port, and its boot loader has none.
    #[error(
        "{port} went when it was opened at 1200 baud, and no port came at USB port {usb} within \
         {timeout:?} (press RESET twice, then: jig discover)"
    )]
    NoBootLoader {
        /// The port.
        port: String,
        /// The USB port, as the kernel names it.
        usb: String,
        /// How long it was waited for.
        timeout: Duration,
    },
}

impl TouchError {
    pub(super) fn cause(&self) -> Cause {
        match self {
            Self::NoBootLoader { .. } => Cause::TargetUnresponsive,
            Self::Missing { .. } | Self::Unopened { .. } => Cause::DeployFailed,
        }
    }
}

fn hint(error: &TtyError) -> &'static str {
    match error {
        TtyError::Open { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            " (try: sudo usermod -aG dialout $USER, then log in again)"
        }
        _ => "",
    }
}

/// Returns the port that a flasher is told, and the capture service that may hold it as a console
/// of the place.
pub(super) fn kept_port(place: &Place) -> Option<(CaptureClient, String)> {
    let client = place.consoles.iter().find_map(|console| console.capture.clone())?;
    Some((client, place.flasher_port()?.to_owned()))
}

/// Returns where this host shows its devices.
pub(super) fn host_roots() -> Roots {
    Roots { sysfs: "/sys".into(), dev: "/dev".into() }
}

/// Starts the boot loader and returns its port.
pub(super) async fn boot_loader_port(
    roots: &Roots,
    port: &str,
    timeout: Duration,
) -> Result<String, TouchError> {
    let own = find(roots, port).await;
    touch(port).await?;
    // A port without a USB device goes nowhere.
    let Some(usb) = own.as_ref().and_then(|own| own.usb.as_ref()) else {
        return Ok(port.to_owned());
    };
    let began = Instant::now();
    let mut left = false;
    loop {
        let here = look(roots).await;
        let at_cable =
            || here.iter().filter(|tty| tty.usb.as_ref().is_some_and(|seen| seen.port == usb.port));
        let is_own = |tty: &&TtyFound| {
            own.as_ref().is_some_and(|own| own.node == tty.node && own.usb == tty.usb)
        };
        left |= !at_cable().any(|tty| is_own(&tty));
        let mut comes = at_cable().filter(|tty| left || !is_own(tty));
        let usable = |tty: &&TtyFound| {
            access(tty.node.as_str(), AccessFlags::R_OK | AccessFlags::W_OK).is_ok()
        };
        let waited = began.elapsed();
        // The rights to a node come a moment after it; that they never come is told by the program.
        if let Some(tty) = comes.find(|tty| usable(tty) || waited >= timeout) {
            tracing::debug!(port, boot_loader = tty.node, "the boot loader has a port");
            return Ok(tty.node.clone());
        }
        if !left && waited >= LEAVES.min(timeout) {
            tracing::debug!(port, "the board has kept its port");
            return Ok(port.to_owned());
        }
        if waited >= timeout {
            let (port, usb) = (port.to_owned(), usb.port.clone());
            return Err(TouchError::NoBootLoader { port, usb, timeout });
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Opens a port at 1200 baud and lets DTR fall.
pub(super) async fn touch(port: &str) -> Result<(), TouchError> {
    let path = PathBuf::from(port);
    if fs::metadata(&path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Err(TouchError::Missing { port: port.to_owned() });
    }
    // May take as long as an adapter takes to answer.
    let opened = spawn_blocking(move || OpenTty::open(&path, TOUCH_BAUD, Parity::None)).await;
    let opened = opened.map_err(|_| TouchError::Missing { port: port.to_owned() })?;
    let tty = opened.map_err(|source| TouchError::Unopened { port: port.to_owned(), source })?;
    // A board may have gone by now; and a pseudo-terminal has no lines.
    if let Err(error) = control(tty.copy(), LineControl::Dtr(false)).await {
        tracing::debug!(port, %error, "DTR was not released");
    }
    Ok(())
}

async fn look(roots: &Roots) -> Vec<TtyFound> {
    let roots = roots.clone();
    spawn_blocking(move || ttys(&roots)).await.unwrap_or_default()
}

/// Finds a port among those of this host, by whichever of its names.
async fn find(roots: &Roots, port: &str) -> Option<TtyFound> {
    let node = fs::canonicalize(port).ok()?;
    let is_it = |tty: &TtyFound| fs::canonicalize(Path::new(&tty.node)).is_ok_and(|at| at == node);
    look(roots).await.into_iter().find(is_it)
}

#[cfg(test)]
pub(super) mod tests {
    use std::os::unix::fs::symlink;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use rustix::termios::tcgetattr;

    use super::*;
    use crate::serial::test_pty::TestPty;

    /// A machine whose USB devices are files, and whose serial ports are pseudo-terminals.
    pub(crate) struct Machine(tempfile::TempDir);

    impl Machine {
        pub(crate) fn new() -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            for folder in ["sys/class/tty", "dev/serial/by-id"] {
                fs::create_dir_all(machine.path(folder)).unwrap();
            }
            machine
        }

        pub(crate) fn path(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        pub(crate) fn roots(&self) -> Roots {
            Roots { sysfs: self.path("sys"), dev: self.path("dev") }
        }

        /// Adds a serial port of a USB device; returns the name of the port by what it is.
        pub(crate) fn plug(&self, usb: &str, node: &str, product: &str, pty: &Path) -> String {
            let device = self.path(&format!("sys/devices/usb1/{usb}"));
            let tty = device.join(format!("{usb}:1.0/{node}"));
            fs::create_dir_all(&tty).unwrap();
            fs::write(device.join("idVendor"), "2341\n").unwrap();
            fs::write(device.join("idProduct"), product).unwrap();
            let class = self.path(&format!("sys/class/tty/{node}"));
            fs::create_dir(&class).unwrap();
            symlink(tty, class.join("device")).unwrap();
            symlink(pty, self.path(&format!("dev/{node}"))).unwrap();
            let by_id = self.path(&format!("dev/serial/by-id/usb-{product}-{usb}"));
            symlink(format!("../../{node}"), &by_id).unwrap();
            by_id.display().to_string()
        }

        pub(crate) fn unplug(&self, usb: &str, node: &str, by_id: &str) {
            fs::remove_dir_all(self.path(&format!("sys/devices/usb1/{usb}"))).unwrap();
            fs::remove_dir_all(self.path(&format!("sys/class/tty/{node}"))).unwrap();
            fs::remove_file(self.path(&format!("dev/{node}"))).unwrap();
            fs::remove_file(by_id).unwrap();
        }
    }

    /// Waits until a port was opened at 1200 baud and closed, as the firmware of a board does; the near
    /// end is not held by the test, so the far end hangs up with the last one that closes it.
    pub(crate) fn touched(pty: TestPty) {
        let TestPty { master, slave, .. } = pty;
        drop(slave);
        loop {
            // The speed first: it is set while the port is open, and nothing had it open before.
            let touched = tcgetattr(&master).unwrap().output_speed() == TOUCH_BAUD;
            let mut far = [PollFd::new(std::os::fd::AsFd::as_fd(&master), PollFlags::empty())];
            poll(&mut far, PollTimeout::from(1_u8)).unwrap();
            let hung_up = far[0].revents().is_some_and(|now| now.contains(PollFlags::POLLHUP));
            if touched && hung_up {
                return;
            }
        }
    }

    const TIMEOUT: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn boot_loader_is_found_at_the_cable_of_the_board_that_was_touched() {
        let machine = Machine::new();
        let (app, other, boot) = (TestPty::open(), TestPty::open(), TestPty::open());
        let port = machine.plug("1-3", "ttyACM0", "8036", &app.path);
        machine.plug("1-4", "ttyACM1", "8036", &other.path);
        let roots = machine.roots();
        let (found, ()) = tokio::join!(boot_loader_port(&roots, &port, TIMEOUT), async {
            spawn_blocking(move || touched(app)).await.unwrap();
            machine.unplug("1-3", "ttyACM0", &port);
            // A board of another cable comes meanwhile, and is not the one that was touched.
            machine.plug("1-5", "ttyACM2", "0036", &other.path);
            tokio::time::sleep(LOOK * 3).await;
            machine.plug("1-3", "ttyACM3", "0036", &boot.path);
        });
        assert_eq!(found.unwrap(), machine.path("dev/ttyACM3").display().to_string());
    }

    #[tokio::test]
    async fn boot_loader_may_take_the_node_of_the_firmware() {
        let machine = Machine::new();
        let (app, boot) = (TestPty::open(), TestPty::open());
        let port = machine.plug("1-3", "ttyACM0", "804d", &app.path);
        let roots = machine.roots();
        let (found, ()) = tokio::join!(boot_loader_port(&roots, &port, TIMEOUT), async {
            spawn_blocking(move || touched(app)).await.unwrap();
            machine.unplug("1-3", "ttyACM0", &port);
            machine.plug("1-3", "ttyACM0", "004d", &boot.path);
        });
        assert_eq!(found.unwrap(), machine.path("dev/ttyACM0").display().to_string());
    }

    #[tokio::test]
    async fn board_that_goes_and_does_not_come_back_has_no_boot_loader() {
        let machine = Machine::new();
        let app = TestPty::open();
        let port = machine.plug("1-3", "ttyACM0", "8036", &app.path);
        let roots = machine.roots();
        let limit = Duration::from_millis(500);
        let (found, ()) = tokio::join!(boot_loader_port(&roots, &port, limit), async {
            spawn_blocking(move || touched(app)).await.unwrap();
            machine.unplug("1-3", "ttyACM0", &port);
        });
        let error = found.unwrap_err();
        assert_eq!(error.cause(), Cause::TargetUnresponsive);
        let words = "no port came at USB port 1-3 within 500ms (press RESET twice";
        assert!(error.to_string().contains(words), "{error}");
    }

    #[tokio::test]
    async fn port_that_stays_is_used_as_it_is() {
        let machine = Machine::new();
        let app = TestPty::open();
        let port = machine.plug("1-3", "ttyACM0", "003d", &app.path);
        let limit = Duration::from_millis(200);
        assert_eq!(boot_loader_port(&machine.roots(), &port, limit).await.unwrap(), port);
        // One that is no USB device's goes nowhere.
        let path = app.path.display().to_string();
        let none = Machine::new();
        assert_eq!(boot_loader_port(&none.roots(), &path, TIMEOUT).await.unwrap(), path);
    }

    #[tokio::test]
    async fn port_that_cannot_be_touched_is_told_with_what_to_do() {
        let machine = Machine::new();
        let roots = machine.roots();
        let missing = boot_loader_port(&roots, "/dev/ttyJig9", TIMEOUT).await.unwrap_err();
        assert!(missing.to_string().contains("press RESET once"), "{missing}");
        let app = TestPty::open();
        let port = machine.plug("1-3", "ttyACM0", "8036", &app.path);
        app.slave.lock().unwrap();
        let held = boot_loader_port(&roots, &port, TIMEOUT).await.unwrap_err();
        let held = jig_model::chain(&held);
        assert!(held.contains("is in use by"), "{held}");
        let file = machine.path("no-tty");
        fs::write(&file, "").unwrap();
        let file = touch(file.to_str().unwrap()).await.unwrap_err();
        assert!(jig_model::chain(&file).contains("is no serial port"), "{file}");
    }
}
