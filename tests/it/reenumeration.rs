//! Boards whose serial port goes while they are flashed: their boot loader has a port of its own, and that
//! of their firmware comes back as another device.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::board::{Board, KIND, device, outlets};
use crate::manifest::elf;
use crate::power_lab::Web;
use crate::serial::terminal;
use crate::workshop::{Ran, Slot, Workshop, until};

/// Has the board start its boot loader, waits for the port of that, and flashes by it. `late` ends before
/// the firmware's port is back, as programs do that reset a board and are done.
const FLASH: &str = r#"#!/bin/sh
work=$(dirname "$0")
echo $$ > "$work/new"; mv "$work/new" "$work/leaves"
until [ -c "$2" ]; do sleep 0.02; done
echo "$3" > "$work/one.flash"
: > "$work/written"
[ "$1" = late ] || until [ -e "$work/back" ]; do sleep 0.02; done
echo flashed
"#;

/// A board at place `bare` whose ports are pseudo-terminals behind names by id.
struct Usb {
    workshop: Workshop,
    board: Board,
    web: Web,
    _slot: Slot,
}

impl Usb {
    fn new() -> Self {
        let (slot, workshop) = (Slot::take(), Workshop::new());
        let board = Board::new(&workshop, "one");
        let web = outlets(&[&board]);
        let program = workshop.write("flash", FLASH);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(workshop.path("by-id")).unwrap();
        Self { workshop, board, web, _slot: slot }
    }

    fn port(&self, name: &str) -> PathBuf {
        self.workshop.path("by-id").join(name)
    }

    fn describe(&self, how: &str, console: &Path) {
        let (program, boot) = (self.workshop.path("flash"), self.port("boot-loader"));
        let place = format!(
            "[[place]]\nname = \"bare\"\nboard = \"{KIND}\"\npower = {{ device = \"pdu\", outlet = \"0\" }}\nflasher = {{ command = [\
             \"{}\", \"{how}\", \"{{port}}\", \"{{image}}\"], port = \"{}\", \
             success_pattern = '^flashed$' }}\n[[place.console]]\nname = \"uart0\"\ntty = \"{}\"\n",
            program.display(),
            boot.display(),
            console.display()
        );
        self.workshop.write("rig.toml", format!("version = 1\n{}{place}", device(&self.web)));
    }

    /// Plugs the firmware's port in, under its name by id.
    fn appears(&self) -> PathBuf {
        let path = self.board.on_a_tty();
        symlink(&path, self.port("firmware")).unwrap();
        path
    }

    /// Does what the board does while it is flashed.
    fn is_flashed(&self, before: &Path, late: bool) {
        let path = self.workshop.path("leaves");
        let pid = until("the flasher", || fs::read_to_string(&path).ok());
        fs::remove_file(self.port("firmware")).unwrap();
        self.board.off();
        self.board.replug();
        // Its number is given to another device meanwhile.
        until("the old device to go", || (!before.exists()).then_some(()));
        let mut others = Vec::new();
        while !before.exists() {
            others.push(terminal());
        }
        let (_far, _near, boot) = terminal();
        symlink(boot, self.port("boot-loader")).unwrap();
        until("a written flash", || self.workshop.path("written").exists().then_some(()));
        fs::remove_file(self.port("boot-loader")).unwrap();
        if late {
            let process = PathBuf::from(format!("/proc/{}", pid.trim()));
            until("the end of the flasher", || (!process.exists()).then_some(()));
        }
        self.appears();
        self.workshop.write("back", "");
    }

    /// Runs an image while another thread is the board.
    fn run(&self, before: &Path, late: bool) -> Ran {
        let image = elf(KIND, "unity-pass");
        std::thread::scope(|scope| {
            scope.spawn(|| self.is_flashed(before, late));
            let args = ["--json", "run", "-b", "bare", &image, "--max-recoveries", "0"];
            self.workshop.run(args)
        })
    }
}

fn cause(ran: &Ran) -> Value {
    ran.json().unwrap()["verdict"]["cause"].clone()
}

/// Returns what the console has shown.
fn log(workshop: &Workshop) -> String {
    let log = workshop.run_dirs().pop().unwrap().join("consoles/1/uart0.raw");
    String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned()
}

#[test]
fn a_board_whose_port_goes_with_its_firmware_and_returns_as_another_device_passes() {
    for late in [false, true] {
        let usb = Usb::new();
        let before = usb.appears();
        usb.board.flash(&elf(KIND, "unity-fail"));
        usb.board.on();
        let console = usb.port("firmware");
        usb.describe(if late { "late" } else { "there" }, &console);
        let ran = usb.run(&before, late);
        ran.says(0, &[]);
        assert_eq!(cause(&ran), "passed", "{ran}");
        // The console is that of the new device, from the first byte of the new firmware.
        assert_ne!(fs::read_link(&console).unwrap(), before);
        assert!(log(&usb.workshop).starts_with("jig-fixture unity-pass"), "{}", log(&usb.workshop));
    }
}
