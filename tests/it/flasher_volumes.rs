//! Mass-storage volumes that are file systems: images on loop devices, mounted in a mount namespace of the
//! test's own, with a thread in place of the boot loader or the probe behind the volume.
//!
//! Takes root, because only root mounts a loop device. Where the kernel has no FAT, `fusefat` serves it from
//! user space; where that is not installed, and for a full volume, which it does not report as such, ext2 is
//! mounted in its place, and the test says so.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use nix::unistd::geteuid;

use crate::board::KIND;
use crate::flashers::is_installed;
use crate::full_disk::fill;
use crate::manifest::elf;
use crate::workshop::{Ran, Started, Workshop, name_of, ran, tied, until};

/// Label of the volume, and name of the folder that a desktop mounts it at.
const LABEL: &str = "MICROBIT";

/// What a volume is formatted with.
#[derive(Debug, Clone, Copy)]
enum Format {
    Fat,
    /// FAT, by a file system in user space.
    FuseFat,
    Ext2,
}

impl Format {
    /// Writes an empty file system of 4 MiB.
    fn make(self, image: &Path) -> Result<(), String> {
        let _ = fs::remove_file(image);
        let mut make = match self {
            Self::Fat | Self::FuseFat => Command::new("mkfs.vfat"),
            Self::Ext2 => Command::new("mke2fs"),
        };
        match self {
            Self::Fat | Self::FuseFat => make.args(["-n", LABEL, "-C"]).arg(image).arg("4096"),
            Self::Ext2 => {
                make.args(["-q", "-t", "ext2", "-m", "0", "-L", LABEL]).arg(image).arg("4M")
            }
        };
        done(&mut make)
    }

    /// Returns what this host can mount, and says what was not tried for that.
    fn of_this_host() -> Option<Self> {
        static FORMAT: LazyLock<Option<Format>> =
            LazyLock::new(|| Format::first_of(&[Format::Fat, Format::FuseFat, Format::Ext2]));
        *FORMAT
    }

    /// The same, of those that say that they are full: `fusefat` says that the operation is not permitted.
    fn that_tells_when_full() -> Option<Self> {
        Self::first_of(&[Self::Fat, Self::Ext2])
    }

    fn first_of(formats: &[Self]) -> Option<Self> {
        if !geteuid().is_root() {
            eprintln!("no volume was mounted: only root mounts a loop device");
            return None;
        }
        formats.iter().copied().find(|&format| {
            let workshop = Workshop::new();
            let host = Host::new(&workshop);
            let volume = host.volume("trial", format);
            let tried = volume.and_then(|volume| volume.mount().and_then(|()| volume.unmount()));
            if let Err(why) = &tried {
                eprintln!("no {format:?} was mounted: {why}");
            }
            tried.is_ok()
        })
    }

    /// Returns the script that copies the contents of a folder to a volume: image, folder to mount it at,
    /// folder with the contents.
    fn copy(self) -> &'static str {
        match self {
            Self::Fat | Self::Ext2 => {
                r#"mount -o loop "$1" "$2" && cp -r "$3/." "$2" && umount "$2""#
            }
            // It has ended once all of it is in the image.
            Self::FuseFat => {
                r#"fusefat -f -o rw+ "$1" "$2" & until mountpoint -q "$2"; do kill -0 $! || exit 1; done
                cp -r "$3/." "$2" && umount "$2" && wait"#
            }
        }
    }
}

/// Holds a namespace, and serves volumes in it: an image, a folder and a name a line. What it has started
/// ends with it.
const HOLD: &str = r#": > namespace
while read -r image point name; do
    setpriv --pdeathsig KILL -- fusefat -f -o "rw+,fsname=/dev/$name" "$image" "$point" > fusefat.log 2>&1 &
done"#;

/// Runs a command to its end; what it says is the error.
fn done(command: &mut Command) -> Result<(), String> {
    match ran(command) {
        Ok(ran) if ran.status.success() => Ok(()),
        Ok(ran) => Err(ran.to_string()),
        Err(why) => Err(why),
    }
}

/// A mount namespace, which lasts as long as the process that holds it.
struct Host<'w> {
    workshop: &'w Workshop,
    holder: Started,
}

impl<'w> Host<'w> {
    fn new(workshop: &'w Workshop) -> Self {
        let mut holder = tied("unshare");
        // It is there once it has said so.
        holder.args(["--mount", "--propagation", "private", "sh", "-c", HOLD]);
        let holder =
            holder.current_dir(workshop.path(".")).stdin(Stdio::piped()).stderr(Stdio::null());
        let mut holder = Started::of(holder);
        until("a mount namespace", || {
            let ended = holder.child().try_wait().unwrap();
            assert!(ended.is_none_or(|ended| ended.signal().is_none()), "{ended:?}");
            (ended.is_some() || workshop.path("namespace").exists()).then_some(())
        });
        Self { workshop, holder }
    }

    /// Returns a call of a program that sees what is mounted here.
    fn within(&self, command: &Command) -> Command {
        let mut inside = Command::new("nsenter");
        let holder = self.pid().to_string();
        let folder = self.workshop.path(".");
        inside.args(["--mount", "--target", &holder]).arg(format!("--wdns={}", folder.display()));
        inside.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
        inside
    }

    fn pid(&self) -> u32 {
        self.holder.id()
    }

    /// Tells the holder of the namespace what to serve.
    fn holds(&self, line: &str) {
        let mut stdin =
            fs::OpenOptions::new().write(true).open(format!("/proc/{}/fd/0", self.pid())).unwrap();
        writeln!(stdin, "{line}").unwrap();
    }

    fn runs(&self, line: &[&str]) -> Result<(), String> {
        let mut command = tied(line[0]);
        command.args(&line[1..]);
        done(&mut self.within(&command))
    }

    /// Calls Jig.
    fn jig(&self, args: &[&str]) -> Ran {
        let jig = self.workshop.jig(args);
        let mut inside = self.within(&jig);
        inside.env_clear();
        inside.envs(jig.get_envs().filter_map(|(name, value)| Some((name, value?))));
        ran(&mut inside).unwrap()
    }

    /// Prepares a volume that would be mounted at a folder of this name.
    fn volume(&self, folder: &str, format: Format) -> Result<Volume<'_>, String> {
        let image = self.workshop.path(&format!("{folder}.img"));
        let point = self.workshop.path("media").join(folder);
        fs::create_dir_all(&point).unwrap();
        format.make(&image)?;
        Ok(Volume { host: self, format, image, point })
    }
}

/// What a board or a probe offers as a volume, and what a desktop does with it.
struct Volume<'h> {
    host: &'h Host<'h>,
    format: Format,
    image: PathBuf,
    point: PathBuf,
}

impl Volume<'_> {
    fn mount(&self) -> Result<(), String> {
        let (image, point) = (self.image.to_str().unwrap(), self.point.to_str().unwrap());
        if !matches!(self.format, Format::FuseFat) {
            return self.host.runs(&["mount", "-o", "loop", image, point]);
        }
        if !is_installed("fusefat") {
            return Err("fusefat is not installed".to_owned());
        }
        let log = self.host.workshop.path("fusefat.log");
        let _ = fs::remove_file(&log);
        // The name of the device that a desktop shows for such a volume.
        self.host.holds(&format!("{image} {point} {}", name_of(&self.point)));
        until("a volume or its end", || {
            // Read first: what has spoken and is not there any more has ended.
            let said = fs::read_to_string(&log).unwrap_or_default();
            match (self.serving(), self.is_mounted()) {
                (_, true) => Some(Ok(())),
                (false, false) if !said.is_empty() => Some(Err(said)),
                (_, false) => None,
            }
        })
    }

    fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string(format!("/proc/{}/mountinfo", self.host.pid())).unwrap();
        mounts.contains(&format!(" {} ", self.point.display()))
    }

    /// Tells whether a process serves it.
    fn serving(&self) -> bool {
        let image = self.image.to_str().unwrap();
        let mut all = self.host.workshop.processes().into_iter();
        all.any(|(_, line)| line.starts_with("fusefat ") && line.contains(image))
    }

    /// Unmounts it once no process reads it; its loop device goes with that.
    fn unmount(&self) -> Result<(), String> {
        let point = self.point.to_str().unwrap();
        self.host.runs(&["umount", point])?;
        // What it has not written yet would come into the next volume.
        until("the end of fusefat", || (!self.serving()).then_some(()));
        Ok(())
    }

    /// Goes away, as often as it takes: a look may have a file open.
    fn goes(&self) {
        until("the volume to go", || self.unmount().ok());
    }

    /// Goes away and comes back with these contents alone, as the volume of a probe does.
    fn comes_back(&self, files: &[(&str, &str)]) {
        self.goes();
        self.format.make(&self.image).unwrap();
        let contents = self.host.workshop.path("contents");
        fs::create_dir(&contents).unwrap();
        for (name, text) in files {
            fs::write(contents.join(name), text).unwrap();
        }
        // They are there when it is: they are copied where Jig sees no mount.
        let mut copy = tied("unshare");
        copy.args(["--mount", "--propagation", "private", "sh", "-c", self.format.copy(), "sh"]);
        done(copy.arg(&self.image).arg(&self.point).arg(&contents)).unwrap();
        fs::remove_dir_all(&contents).unwrap();
        self.mount().unwrap();
    }

    fn remount(&self, how: &str) {
        let point = self.point.to_str().unwrap().to_owned();
        let how = format!("remount,{how}");
        // A file that is open for writing keeps it from becoming read-only.
        // By the kernel alone: no helper of a file system is asked.
        until("a remount", || self.host.runs(&["mount", "-i", "-o", &how, &point]).ok());
    }

    /// Returns the path by which this process sees a file of the volume.
    fn file(&self, name: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.host.pid()));
        root.join(self.point.strip_prefix("/").unwrap()).join(name)
    }

    /// Waits for a whole image in Intel HEX and returns it.
    fn taken(&self) -> String {
        until("the image", || {
            let text = fs::read_to_string(self.file("JIG.HEX")).ok()?;
            text.trim_end().ends_with(":00000001FF").then_some(text)
        })
    }
}

/// Writes a rig file of one place that is flashed by a volume.
fn rig(workshop: &Workshop, flasher: &str) {
    let place = format!("[[place]]\nname = \"bare\"\nboard = \"{KIND}\"\nflasher = {flasher}\n");
    workshop.write("rig.toml", format!("version = 1\n{place}"));
}

/// Flashes by the volume while a thread does what is behind it.
fn flash(host: &Host<'_>, device: impl FnOnce() + Send) -> Ran {
    let image = elf(KIND, "unity-pass");
    std::thread::scope(|scope| {
        let device = scope.spawn(device);
        let ran = host.jig(&["flash", "-b", "bare", &image]);
        device.join().unwrap();
        ran
    })
}

#[test]
fn a_volume_of_a_probe_goes_returns_refuses_and_turns_read_only() {
    let Some(format) = Format::of_this_host() else { return };
    let workshop = Workshop::new();
    let host = Host::new(&workshop);
    let volume = host.volume(LABEL, format).unwrap();
    // By its label alone, with the folder that a desktop makes of that.
    rig(&workshop, "{ volume = \"MICROBIT\", format = \"hex\" }");
    volume.mount().unwrap();
    let mut copied = String::new();
    flash(&host, || {
        copied = volume.taken();
        volume.comes_back(&[("DETAILS.TXT", "Remount count: 1\r\n")]);
    })
    .says(0, &[]);
    assert!(copied.starts_with(':') && copied.lines().count() > 10, "{copied}");

    // It comes back, and says why it has not flashed.
    let locked = "error: The target is locked.\r\ntype: target\r\n";
    let refused = flash(&host, || {
        volume.taken();
        volume.comes_back(&[("FAIL.TXT", locked)]);
    });
    refused.says(75, &["has refused the image: \"error: The target is locked. type: target\""]);

    // What is left of that says nothing of the next image, which it takes.
    flash(&host, || {
        volume.taken();
        volume.comes_back(&[]);
    })
    .says(0, &[]);

    // It keeps the file, and turns read-only with a reason.
    let refused = flash(&host, || {
        volume.taken();
        let late = "error: The transfer timed out.\r\ntype: transient, user\r\n";
        fs::write(volume.file("FAIL.TXT"), late).unwrap();
        volume.remount("ro");
    });
    refused.says(75, &["has refused the image: \"error: The transfer timed out. type: transient"]);
    // Read-only already: the reason that stands there is that of the board as it is.
    flash(&host, || ()).says(75, &["has refused the image: \"error: The transfer timed out."]);
    volume.remount("rw");
    for name in ["FAIL.TXT", "JIG.HEX"] {
        fs::remove_file(volume.file(name)).unwrap();
    }
    volume.remount("ro");
    flash(&host, || ()).says(75, &["the volume is read-only: plug the board in again"]);

    // It takes the image and does not come back.
    volume.remount("rw");
    rig(&workshop, "{ volume = \"MICROBIT\", format = \"hex\", timeout = \"4s\" }");
    let gone = flash(&host, || {
        volume.taken();
        volume.goes();
    });
    gone.says(75, &["took the image and did not come back within 4s", "by-label/MICROBIT"]);
    flash(&host, || ()).says(75, &["volume MICROBIT is not mounted after 4s"]);
    // It comes back with the file that it was given: nothing was flashed. `fusefat` overwrites no file.
    format.make(&volume.image).unwrap();
    volume.mount().unwrap();
    let kept = flash(&host, || {
        volume.taken();
        volume.goes();
        volume.mount().unwrap();
    });
    kept.says(75, &["still holds JIG.HEX after 4s"]);
}

#[test]
fn a_volume_of_a_boot_loader_goes_with_its_image() {
    let Some(format) = Format::of_this_host() else { return };
    let workshop = Workshop::new();
    let host = Host::new(&workshop);
    let volume = host.volume("RPI-RP2", format).unwrap();
    rig(&workshop, "{ volume = \"RPI-RP2\", family = 7 }");
    volume.mount().unwrap();
    let image = volume.file("JIG.UF2");
    flash(&host, || {
        until("the last block", || {
            let blocks = fs::read(&image).ok()?;
            let wanted = u32::from_le_bytes(blocks.get(24..28)?.try_into().ok()?);
            (blocks.len() == wanted as usize * 512).then_some(())
        });
        volume.goes();
    })
    .says(0, &[]);
}

#[test]
fn a_full_volume_takes_no_image() {
    let Some(format) = Format::that_tells_when_full() else { return };
    let workshop = Workshop::new();
    let host = Host::new(&workshop);
    let volume = host.volume("RPI-RP2", format).unwrap();
    rig(&workshop, "{ volume = \"RPI-RP2\", family = 7 }");
    volume.mount().unwrap();
    fill(&volume.file(""));
    let full = flash(&host, || ());
    full.says(75, &["JIG.UF2", "the image is larger than the volume"]);
}

#[test]
fn of_two_mounted_volumes_with_one_label_the_one_that_is_named_by_its_folder_is_flashed() {
    let Some(format) = Format::of_this_host() else { return };
    let workshop = Workshop::new();
    let host = Host::new(&workshop);
    // A desktop numbers the folder of the second one.
    let [first, second] = [LABEL, "MICROBIT1"].map(|folder| host.volume(folder, format).unwrap());
    first.mount().unwrap();
    second.mount().unwrap();
    rig(&workshop, "{ volume = \"MICROBIT\", format = \"hex\" }");
    let both = flash(&host, || ());
    both.says(75, &["more than one volume MICROBIT is mounted", "MICROBIT1\" (give the folder"]);
    assert!(!first.file("JIG.HEX").exists() && !second.file("JIG.HEX").exists());
    rig(&workshop, &format!("{{ volume = \"{}\", format = \"hex\" }}", second.point.display()));
    flash(&host, || {
        second.taken();
        second.comes_back(&[]);
    })
    .says(0, &[]);
    assert!(!first.file("JIG.HEX").exists());
}
