//! Flashing by a copy to a mass-storage volume.
//!
//! # Design
//! Such a volume is no disk: what is written goes into flash, and the only answers are that the volume
//! goes away, that the file is gone when it comes back, and a `FAIL.TXT`. So a copy without a
//! write error proves nothing: a boot loader with UF2 has taken the image when its volume or the
//! file has gone, a probe when it is back without the file and without `FAIL.TXT`. The volume is
//! looked at until then, because nothing reports a remount to a process without rights.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jig_model::Cause;
use jig_model::event::BoardEvent;
use jig_model::flasher::{VolumeCopy, VolumeFormat};
use jig_model::image::{
    DeployReport, Image, ImageKind, Payload, intel_hex_text, raw_binary, uf2_blocks,
};
use jig_model::protocol::{BindContext, BoxFuture, DriverError, Flasher, SharedSink};
use jig_model::rig_file::CaptureClient;
use nix::fcntl::OFlag;

use super::made::{NotMade, read_image};
use super::touch::{TouchError, kept_port, touch};
use crate::serial::capture_service::{CaptureServiceError, release_port};

/// Where a probe says why it has refused an image.
const FAIL: &str = "FAIL.TXT";

/// What is mounted, and links by the labels of volumes.
const MOUNTS: &str = "/proc/self/mountinfo";
const LABELS: &str = "/dev/disk/by-label";

/// How often the volume is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How long a `FAIL.TXT` that says nothing may be one that is still being written.
const EMPTY_FAIL: Duration = Duration::from_secs(1);

/// Most bytes that are read of a text on the volume.
const MAX_TEXT: u64 = 4096;

/// How many bytes are written between two reports of progress.
const CHUNK: usize = 16 << 10;

/// Says why an image was not flashed by a copy.
#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// The file was not made.
    #[error(transparent)]
    NotMade(#[from] NotMade),
    /// The volume is not mounted.
    #[error(
        "volume {volume} is not mounted after {timeout:?} (start the boot loader, or plug the probe in; \
         without a desktop, mount it: {})",
        mount_command(volume)
    )]
    NotThere {
        /// The volume.
        volume: String,
        /// How long it was waited for.
        timeout: Duration,
    },
    /// More than one volume has the label.
    #[error(
        "more than one volume {volume} is mounted: {} (give the folder of the one that is meant as \
         `volume`, or unplug the others)",
        shown(points)
    )]
    Ambiguous {
        /// The label.
        volume: String,
        /// Where they are mounted.
        points: Vec<PathBuf>,
    },
    /// The probe or the boot loader has refused the image.
    #[error("volume {volume} has refused the image: {text:?} (in its {FAIL})")]
    Refused {
        /// The volume.
        volume: String,
        /// What it says.
        text: String,
    },
    /// The file cannot be written.
    #[error("copy the image to {}{}", path.display(), unwritable_hint(source))]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The volume took the file and did nothing with it.
    #[error(
        "volume {volume} still holds {file} after {timeout:?}, so it was not flashed (is the format \
         that of the board, and the `family` that of its chip?)"
    )]
    Ignored {
        /// The volume.
        volume: String,
        /// The file.
        file: &'static str,
        /// How long it was waited for.
        timeout: Duration,
    },
    /// The volume went away and did not come back.
    #[error(
        "volume {volume} took the image and did not come back within {timeout:?} (is it mounted by \
         itself? try: {})",
        mount_command(volume)
    )]
    Away {
        /// The volume.
        volume: String,
        /// How long it was waited for.
        timeout: Duration,
    },
    /// The boot loader was not started.
    #[error(transparent)]
    Touch(#[from] TouchError),
    /// The process that keeps the port does not give it.
    #[error("get {port} to start the boot loader")]
    Port {
        /// The port.
        port: String,
        /// Why.
        #[source]
        source: CaptureServiceError,
    },
    /// Looking at it takes too long: the device has hung.
    #[error("volume {volume} does not answer (plug it in again)")]
    Hung {
        /// The volume.
        volume: String,
    },
}

/// Says what to do where the system does not let a file be written.
fn unwritable_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => " (the volume is read-only: plug the board in again)",
        io::ErrorKind::PermissionDenied => {
            " (it is mounted for another user: unmount it, then as this user udisksctl mount -b DEVICE)"
        }
        io::ErrorKind::StorageFull => {
            " (the image is larger than the volume: is it the right one?)"
        }
        _ => "",
    }
}

fn shown(points: &[PathBuf]) -> String {
    let points: Vec<_> = points.iter().map(|point| format!("{point:?}")).collect();
    points.join(" and ")
}

impl From<VolumeError> for DriverError {
    fn from(error: VolumeError) -> Self {
        let cause = match &error {
            VolumeError::NotThere { .. } => Cause::TargetUnresponsive,
            VolumeError::Touch(error) => error.cause(),
            _ => Cause::DeployFailed,
        };
        Self::of(cause, error)
    }
}

/// Flashes a board by a copy to its volume.
pub(super) struct VolumeFlasher {
    copy: VolumeCopy,
    sink: SharedSink,
    mounts: PathBuf,
    labels: PathBuf,
    /// The port by which the boot loader is started, where it is.
    port: Option<String>,
    /// The capture service that may hold that port.
    kept: Option<(CaptureClient, String)>,
}

impl VolumeFlasher {
    pub(super) fn new(copy: VolumeCopy, context: &BindContext) -> Self {
        Self {
            copy,
            sink: context.sink.clone(),
            mounts: MOUNTS.into(),
            labels: LABELS.into(),
            port: context.place.flasher_port().map(str::to_owned),
            kept: kept_port(&context.place),
        }
    }

    async fn flash(&self, image: &Image) -> Result<DeployReport, VolumeError> {
        let timeout = self.copy.timeout;
        let bytes = self.converted(image)?;
        let volume = self.copy.volume.clone();
        let _closed = match &self.kept {
            Some((client, port)) if self.copy.touch.is_some() => {
                let refused = |source| VolumeError::Port { port: port.clone(), source };
                Some(release_port(client, port).await.map_err(refused)?)
            }
            _ => None,
        };
        let comes = self.start_boot_loader().await?;
        let began = Instant::now();
        let (root, mounted) = loop {
            match self.look(false).await? {
                VolumeLook { root: Some(root), mounted, .. } => break (root, mounted),
                VolumeLook { .. } if began.elapsed() < comes => tokio::time::sleep(LOOK).await,
                VolumeLook { .. } => return Err(VolumeError::NotThere { volume, timeout: comes }),
            }
        };
        // An old one says nothing of this image until the probe has taken the file: one that is there
        // then is of this image, though it may say the same.
        let before = self.look(mounted).await?.fail;
        let path = root.join(self.copy.format.file_name());
        let sink = self.sink.clone();
        let to = path.clone();
        let written = self.blocking(move || write(&to, &bytes, &sink)).await?;
        let unflushed = written.map_err(|source| self.unwritten(&path, source, &root))?;
        let mut was_away = false;
        let mut refusal: Option<(String, Instant)> = None;
        loop {
            let seen = self.look(mounted).await?;
            let taken = was_away || !seen.holds_file;
            let fail = seen.fail.filter(|text| taken || Some(text) != before.as_ref());
            refusal = match (fail, refusal) {
                // It may be seen while it is written: its text is whole once two looks found the same.
                (Some(text), Some((last, since))) if text == last => {
                    if !text.is_empty() || since.elapsed() >= EMPTY_FAIL {
                        return Err(VolumeError::Refused { volume, text });
                    }
                    Some((last, since))
                }
                (Some(text), _) => Some((text, Instant::now())),
                (None, _) => None,
            };
            match (&seen.root, self.copy.format) {
                _ if refusal.is_some() => {}
                (None, VolumeFormat::Uf2) => break,
                (None, VolumeFormat::Hex | VolumeFormat::Bin) => was_away = true,
                (Some(_), _) if !seen.holds_file => break,
                (Some(_), _) => {}
            }
            if began.elapsed() >= timeout {
                if let Some((text, _)) = refusal {
                    return Err(VolumeError::Refused { volume, text });
                }
                return Err(match (was_away && seen.root.is_none(), unflushed) {
                    (true, _) => VolumeError::Away { volume, timeout },
                    (false, Some(source)) => VolumeError::Unwritable { path, source },
                    (false, None) => {
                        let file = self.copy.format.file_name();
                        VolumeError::Ignored { volume, file, timeout }
                    }
                });
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(DeployReport {
            method: "volume".to_owned(),
            image: image.name.clone(),
            sha256: image.sha256.clone(),
            build_id: image.build_id.clone(),
            bytes: image.payload_bytes,
            duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..DeployReport::default()
        })
    }

    /// Starts the boot loader by the port of the firmware, where that is how it is done and its volume is
    /// not there; returns how long the volume may take to come. A board without its port may be in its
    /// boot loader already, and only its volume tells.
    async fn start_boot_loader(&self) -> Result<Duration, VolumeError> {
        let comes = self.copy.timeout;
        let (Some(limit), Some(port)) = (self.copy.touch, &self.port) else { return Ok(comes) };
        if self.look(false).await?.root.is_some() {
            return Ok(comes);
        }
        match touch(port).await {
            Ok(()) => Ok(limit),
            Err(TouchError::Missing { .. }) => Ok(comes),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the bytes of the file.
    fn converted(&self, image: &Image) -> Result<Vec<u8>, VolumeError> {
        let payload: Payload = read_image(image)?;
        let kind = image.format.kind();
        let as_it_is = || {
            fs::read(&image.path)
                .map_err(|source| NotMade::Unreadable { path: image.path.clone(), source })
        };
        Ok(match self.copy.format {
            VolumeFormat::Hex if kind == ImageKind::Hex => as_it_is()?,
            VolumeFormat::Bin if kind == ImageKind::Bin => as_it_is()?,
            VolumeFormat::Hex => intel_hex_text(&payload).ok_or(NotMade::Wide)?.into_bytes(),
            VolumeFormat::Bin => raw_binary(&payload).map_err(NotMade::Sparse)?,
            VolumeFormat::Uf2 => uf2_blocks(&payload, self.copy.family).ok_or(NotMade::Wide)?,
        })
    }

    /// Says why the file could not be written: a volume that a probe has made read-only says it in a
    /// file of its own.
    fn unwritten(&self, path: &Path, source: io::Error, root: &Path) -> VolumeError {
        let volume = self.copy.volume.clone();
        match short_text(&root.join(FAIL)) {
            Some(text) if source.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                VolumeError::Refused { volume, text }
            }
            _ => VolumeError::Unwritable { path: path.to_owned(), source },
        }
    }

    /// Looks at the volume. With `mounted`, a folder that a file system was mounted at is no volume
    /// while none is: it is empty, and stays where it is between two mounts.
    async fn look(&self, mounted: bool) -> Result<VolumeLook, VolumeError> {
        let (copy, mounts, labels) = (self.copy.clone(), self.mounts.clone(), self.labels.clone());
        self.blocking(move || {
            let mut roots = mount_points(&copy.volume, &mounts, &labels);
            if roots.len() > 1 {
                return Err(VolumeError::Ambiguous { volume: copy.volume, points: roots });
            }
            let is_mounted = roots.first().is_some_and(|root| is_mount_point(root));
            let root = roots.pop().filter(|_| is_mounted || !mounted);
            let at = |name: &str| root.as_ref().map(|root| root.join(name));
            let holds_file = at(copy.format.file_name()).is_some_and(|file| file.exists());
            let fail = at(FAIL).and_then(|file| short_text(&file));
            Ok(VolumeLook { root, mounted: is_mounted, holds_file, fail })
        })
        .await?
    }

    /// Does what may hang with the device on a thread of its own.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, VolumeError> {
        let hung = || VolumeError::Hung { volume: self.copy.volume.clone() };
        let work = tokio::task::spawn_blocking(work);
        tokio::time::timeout(self.copy.timeout, work).await.map_err(|_| hung())?.map_err(|_| hung())
    }
}

impl Flasher for VolumeFlasher {
    fn deploy<'a>(
        &'a mut self,
        image: &'a Image,
    ) -> BoxFuture<'a, Result<DeployReport, DriverError>> {
        Box::pin(async { Ok(self.flash(image).await?) })
    }
}

/// What a volume shows at one moment.
struct VolumeLook {
    /// Where it is mounted.
    root: Option<PathBuf>,
    /// Whether that folder has a file system of its own.
    mounted: bool,
    /// Whether the copied file is on it.
    holds_file: bool,
    /// Its `FAIL.TXT`.
    fail: Option<String>,
}

/// Writes the file. Returns the error of handing it to the device, if that failed: a boot loader may
/// be gone by then because it has all of it.
fn write(path: &Path, bytes: &[u8], sink: &SharedSink) -> io::Result<Option<io::Error>> {
    // A volume is whatever someone has plugged in: a link of that name would lead to a file of the user.
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
        .open(path)?;
    let mut told = 0;
    for (number, chunk) in bytes.chunks(CHUNK).enumerate() {
        file.write_all(chunk)?;
        let done = (number * CHUNK + chunk.len()) * 100 / bytes.len();
        let percent = u8::try_from(done).unwrap_or(100);
        if percent > told {
            told = percent;
            sink.event(BoardEvent::Deploying { percent });
        }
    }
    Ok(file.sync_all().err())
}

/// Reads a short text of a volume; hostile, so bounded, on one line, and of no link and no FIFO.
fn short_text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits()).open(path).ok()?;
    file.metadata().ok().filter(fs::Metadata::is_file)?;
    file.take(MAX_TEXT).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(line.chars().take(300).collect())
}

/// Finds where a volume is mounted on this host; more than one place where the label does not decide.
pub fn volume_mounts(volume: &str) -> Vec<PathBuf> {
    mount_points(volume, MOUNTS.as_ref(), LABELS.as_ref())
}

/// Returns the command that mounts a volume; of a folder only the user knows the device.
pub fn mount_command(volume: &str) -> String {
    match volume.starts_with('/') {
        true => format!("lsblk -f shows the device; sudo mount DEVICE {volume}"),
        false => format!("udisksctl mount -b /dev/disk/by-label/{volume}"),
    }
}

/// Finds where a volume is mounted: a path is one place, and a label is that of each mounted device that
/// has it. A desktop names the folder by the label, with a number behind it where the name is taken.
fn mount_points(volume: &str, mounts: &Path, labels: &Path) -> Vec<PathBuf> {
    if volume.starts_with('/') {
        return Vec::from_iter(Some(PathBuf::from(volume)).filter(|path| path.is_dir()));
    }
    let label_of = |name: &str| fs::canonicalize(labels.join(name)).ok();
    let device = label_of(volume);
    let Ok(text) = fs::read_to_string(mounts) else { return Vec::new() };
    let named = |point: &Path, source: &Path| {
        let Some(name) = point.file_name().and_then(|name| name.to_str()) else { return false };
        match name.strip_prefix(volume) {
            Some("") => true,
            // Unless that is the label of this volume.
            Some(rest) if rest.bytes().all(|byte| byte.is_ascii_digit()) => {
                label_of(name).as_deref() != Some(source)
            }
            _ => false,
        }
    };
    let mounted = |line: &str| {
        // Six fields, further ones up to a dash, then type and source: proc_pid_mountinfo(5).
        let (fields, source) = line.split_once(" - ")?;
        let point = PathBuf::from(unescaped(fields.split(' ').nth(4)?));
        let source = PathBuf::from(unescaped(source.split(' ').nth(1)?));
        let by_device = device.as_ref() == Some(&source);
        let by_name = source.starts_with("/dev") && named(&point, &source);
        (by_device || by_name).then_some((source, point))
    };
    // Of one device, what was mounted last covers what was before.
    let by_source: BTreeMap<PathBuf, PathBuf> = text.lines().filter_map(mounted).collect();
    by_source.into_values().collect()
}

/// Tells whether a folder has another file system than the one that it is in.
fn is_mount_point(folder: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).ok().map(|meta| meta.dev());
    folder.parent().is_some_and(|parent| device(folder) != device(parent))
}

/// Undoes the octal escapes of a mount table: a space is `\040`.
fn unescaped(field: &str) -> String {
    field.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use jig_model::ConsoleName;
    use jig_model::image::{BinAddress, ImageFormat};
    use jig_model::protocol::{BoardSink, Transport};
    use rustix::termios::tcgetattr;

    use super::*;
    use crate::serial::test_pty::TestPty;

    #[derive(Default)]
    struct Told(Mutex<Vec<u8>>);

    impl BoardSink for Told {
        fn attach(&self, _console: &ConsoleName, _transport: Box<dyn Transport>) {}
        fn drained(&self) -> BoxFuture<'_, ()> {
            Box::pin(async {})
        }
        fn event(&self, event: BoardEvent) {
            if let BoardEvent::Deploying { percent } = event {
                self.0.lock().unwrap().push(percent);
            }
        }
    }

    /// A folder as a volume, and an image of 64 KiB.
    fn volume(format: VolumeFormat) -> (tempfile::TempDir, VolumeFlasher, Image, Arc<Told>) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("VOLUME");
        fs::create_dir(&root).unwrap();
        let path = dir.path().join("image.bin");
        fs::write(&path, vec![7; 64 << 10]).unwrap();
        let format_of_image = ImageFormat::Binary { address: BinAddress(0x1000_0000) };
        let payload = Payload::read(format_of_image, &fs::read(&path).unwrap()).unwrap();
        let image = Image {
            name: "image.bin".to_owned(),
            path,
            format: format_of_image,
            sha256: "ab".to_owned(),
            payload_sha256: payload.sha256(),
            payload_bytes: payload.len(),
            payload_spans: payload.spans().collect(),
            build_id: None,
            announces: false,
        };
        let told = Arc::new(Told::default());
        let copy = VolumeCopy {
            volume: root.display().to_string(),
            format,
            family: Some(0xe48b_ff56),
            timeout: Duration::from_secs(60),
            touch: None,
        };
        let sink = Arc::clone(&told) as SharedSink;
        let none = || PathBuf::from("/none");
        let (mounts, labels) = (none(), none());
        let flasher = VolumeFlasher { copy, sink, mounts, labels, port: None, kept: None };
        (dir, flasher, image, told)
    }

    /// Does what a boot loader does once it has the whole file.
    async fn once_it_is_whole(file: PathBuf, size: u64, work: impl FnOnce()) {
        while fs::metadata(&file).map_or(0, |meta| meta.len()) < size {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        work();
    }

    #[tokio::test]
    async fn a_boot_loader_has_taken_the_image_when_its_volume_goes() {
        let (dir, flasher, image, told) = volume(VolumeFormat::Uf2);
        let root = dir.path().join("VOLUME");
        let gone = dir.path().join("GONE");
        let leaves = once_it_is_whole(root.join("JIG.UF2"), 128 << 10, || {
            fs::rename(&root, &gone).unwrap();
        });
        let (report, ()) = tokio::join!(flasher.flash(&image), leaves);
        let report = report.unwrap();
        assert_eq!(
            (report.method.as_str(), report.bytes, report.verified),
            ("volume", 64 << 10, false)
        );
        let blocks = fs::read(gone.join("JIG.UF2")).unwrap();
        assert_eq!((blocks.len(), &blocks[..4]), (128 << 10, &b"UF2\n"[..]));
        assert_eq!(told.0.lock().unwrap().last(), Some(&100));
    }

    #[tokio::test]
    async fn a_probe_has_taken_the_image_when_it_is_back_without_the_file() {
        let (dir, flasher, image, _) = volume(VolumeFormat::Hex);
        let (root, away) = (dir.path().join("VOLUME"), dir.path().join("AWAY"));
        // What an earlier image has left there says nothing of this one.
        fs::write(root.join(FAIL), "error: old\r\ntype: target").unwrap();
        let file = root.join("JIG.HEX");
        let remounts = async {
            once_it_is_whole(file.clone(), 150_000, || fs::rename(&root, &away).unwrap()).await;
            fs::remove_file(away.join("JIG.HEX")).unwrap();
            fs::remove_file(away.join(FAIL)).unwrap();
            fs::rename(&away, &root).unwrap();
        };
        let (report, ()) = tokio::join!(flasher.flash(&image), remounts);
        report.unwrap();
        // This time it refuses the image.
        let refuses = once_it_is_whole(file.clone(), 150_000, || {
            fs::write(root.join(FAIL), "error: The hex file cannot be decoded.\r\ntype: user")
                .unwrap();
            fs::remove_file(&file).unwrap();
        });
        let (refused, ()) = tokio::join!(flasher.flash(&image), refuses);
        let said = "has refused the image: \"error: The hex file cannot be decoded. type";
        let text = refused.unwrap_err().to_string();
        assert!(text.contains(said), "{text}");
        // And once more, for the same reason: the text that was there before is there again.
        let remounts = once_it_is_whole(file.clone(), 150_000, || {
            fs::rename(&root, &away).unwrap();
            fs::remove_file(away.join("JIG.HEX")).unwrap();
            fs::rename(&away, &root).unwrap();
        });
        let (refused, ()) = tokio::join!(flasher.flash(&image), remounts);
        let text = refused.unwrap_err().to_string();
        assert!(text.contains(said), "{text}");
    }

    #[tokio::test]
    async fn a_refusal_is_read_once_it_is_written_whole() {
        let (dir, flasher, image, _) = volume(VolumeFormat::Hex);
        let (file, fail) =
            (dir.path().join("VOLUME/JIG.HEX"), dir.path().join("VOLUME").join(FAIL));
        for (text, said) in [("error: late", "\"error: late\""), ("", "\"\"")] {
            let refuses = async {
                once_it_is_whole(file.clone(), 150_000, || {
                    fs::write(&fail, "").unwrap();
                    fs::remove_file(&file).unwrap();
                })
                .await;
                tokio::time::sleep(LOOK * 3).await;
                fs::write(&fail, text).unwrap();
            };
            let (refused, ()) = tokio::join!(flasher.flash(&image), refuses);
            let told = refused.unwrap_err().to_string();
            assert!(told.contains(&format!("has refused the image: {said}")), "{told}");
        }
    }

    #[tokio::test]
    async fn a_volume_that_comes_by_a_touch_is_waited_for() {
        let (dir, mut flasher, image, _) = volume(VolumeFormat::Uf2);
        let (root, away) = (dir.path().join("VOLUME"), dir.path().join("AWAY"));
        fs::rename(&root, &away).unwrap();
        let pty = TestPty::open();
        flasher.port = Some(pty.path.display().to_string());
        flasher.copy.touch = Some(Duration::from_secs(30));
        let board = async {
            while tcgetattr(&pty.master).unwrap().output_speed() != 1200 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            fs::rename(&away, &root).unwrap();
            let file = root.join("JIG.UF2");
            once_it_is_whole(file, 128 << 10, || fs::rename(&root, &away).unwrap()).await;
        };
        let both = async { tokio::join!(flasher.flash(&image), board) };
        let both = tokio::time::timeout(Duration::from_secs(60), both).await;
        both.expect("a touch and a whole file").0.unwrap();
        // It does not come: the time of the touch is what it had.
        flasher.copy.touch = Some(Duration::from_millis(200));
        let error = flasher.flash(&image).await.unwrap_err();
        assert!(error.to_string().contains("is not mounted after 200ms"), "{error}");
        // Without the port of the firmware there is nothing to touch, and the volume may come.
        flasher.port = Some("/dev/ttyJig9".to_owned());
        flasher.copy.timeout = Duration::from_millis(300);
        let error = flasher.flash(&image).await.unwrap_err();
        assert!(error.to_string().contains("is not mounted after 300ms"), "{error}");
    }

    #[tokio::test]
    async fn a_volume_that_is_not_there_or_does_nothing_has_flashed_nothing() {
        let (dir, mut flasher, image, _) = volume(VolumeFormat::Bin);
        flasher.copy.timeout = Duration::from_millis(200);
        let error = flasher.flash(&image).await.unwrap_err();
        assert!(error.to_string().contains("still holds JIG.BIN after 200ms"), "{error}");
        flasher.copy.volume = "NOSUCH".to_owned();
        let error = DriverError::from(flasher.flash(&image).await.unwrap_err());
        assert!(
            error.to_string().contains("udisksctl mount -b /dev/disk/by-label/NOSUCH"),
            "{error}"
        );
        assert_eq!(error.cause, Cause::TargetUnresponsive);
        flasher.copy.volume = dir.path().join("ABSENT").display().to_string();
        let error = flasher.flash(&image).await.unwrap_err();
        assert!(error.to_string().contains("sudo mount DEVICE /"), "{error}");
        // A file in its place cannot be written to.
        flasher.copy.volume = dir.path().join("VOLUME").display().to_string();
        fs::remove_file(dir.path().join("VOLUME/JIG.BIN")).unwrap();
        fs::create_dir(dir.path().join("VOLUME/JIG.BIN")).unwrap();
        let error = flasher.flash(&image).await.unwrap_err();
        assert!(matches!(error, VolumeError::Unwritable { .. }), "{error}");
    }

    #[test]
    fn a_label_is_found_in_the_mount_table() {
        let dir = tempfile::tempdir().unwrap();
        let (mounts, labels) = (dir.path().join("mountinfo"), dir.path().join("by-label"));
        fs::create_dir(&labels).unwrap();
        let device = dir.path().join("sdb1");
        fs::write(&device, "").unwrap();
        std::os::unix::fs::symlink(&device, labels.join("RPI-RP2")).unwrap();
        let device = fs::canonicalize(&device).unwrap();
        let text = format!(
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
             40 22 8:17 / /media/a\\040b rw,nosuid shared:9 - vfat {} rw\n\
             41 22 8:33 / /media/u/MICROBIT ro - vfat /dev/sdc rw\n\
             42 22 0:5 / /media/u/FAKE rw - tmpfs tmpfs rw\n",
            device.display()
        );
        fs::write(&mounts, text).unwrap();
        let find = |label: &str| {
            let mut found = mount_points(label, &mounts, &labels);
            assert!(found.len() < 2, "{found:?}");
            found.pop()
        };
        assert_eq!(find("RPI-RP2"), Some("/media/a b".into()));
        assert_eq!(find("MICROBIT"), Some("/media/u/MICROBIT".into()));
        assert_eq!(find("FAKE"), None);
        assert_eq!(find("OTHER"), None);
        assert_eq!(find("/"), Some("/".into()));
        assert_eq!(find("/no/such/folder"), None);
        // A volume whose own label ends with a digit is no second one of another label.
        std::os::unix::fs::symlink(&device, labels.join("A2")).unwrap();
        fs::write(&mounts, format!("40 22 8:17 / /media/A2 rw - vfat {} rw\n", device.display()))
            .unwrap();
        assert_eq!((find("A"), find("A2")), (None, Some("/media/A2".into())));
    }

    #[tokio::test]
    async fn of_two_volumes_with_one_label_none_is_written_to() {
        let (dir, mut flasher, image, _) = volume(VolumeFormat::Uf2);
        let (first, second) = (dir.path().join("RPI-RP2"), dir.path().join("RPI-RP21"));
        fs::create_dir(&first).unwrap();
        fs::create_dir(&second).unwrap();
        let line = |n: u32, point: &Path, device: &str| {
            format!("{n} 22 8:17 / {} rw - vfat {device} rw\n", point.display())
        };
        let mounts = dir.path().join("mountinfo");
        let both = line(40, &first, "/dev/sdb1") + &line(41, &second, "/dev/sdc1");
        fs::write(&mounts, both).unwrap();
        flasher.mounts = mounts.clone();
        flasher.copy.volume = "RPI-RP2".to_owned();
        flasher.copy.timeout = Duration::from_millis(200);
        let error = flasher.flash(&image).await.unwrap_err();
        assert!(matches!(&error, VolumeError::Ambiguous { points, .. } if points.len() == 2));
        assert!(error.to_string().contains("RPI-RP21\" (give the folder"), "{error}");
        assert!(!first.join("JIG.UF2").exists() && !second.join("JIG.UF2").exists());
        // One device at two folders is one volume.
        fs::write(&mounts, line(40, &first, "/dev/sdb1") + &line(41, &second, "/dev/sdb1"))
            .unwrap();
        let error = flasher.flash(&image).await.unwrap_err();
        assert!(matches!(error, VolumeError::Ignored { .. }), "{error}");
        assert!(second.join("JIG.UF2").exists());
    }

    #[tokio::test]
    async fn links_and_fifos_on_a_volume_are_not_followed() {
        let (dir, mut flasher, image, _) = volume(VolumeFormat::Bin);
        flasher.copy.timeout = Duration::from_secs(5);
        let (root, own) = (dir.path().join("VOLUME"), dir.path().join("of-the-user"));
        fs::write(&own, "precious").unwrap();
        std::os::unix::fs::symlink(&own, root.join("JIG.BIN")).unwrap();
        nix::unistd::mkfifo(&root.join(FAIL), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = flasher.flash(&image).await.unwrap_err();
        assert!(matches!(error, VolumeError::Unwritable { .. }), "{error}");
        assert_eq!(fs::read_to_string(&own).unwrap(), "precious");
        fs::remove_file(root.join(FAIL)).unwrap();
        std::os::unix::fs::symlink(&own, root.join(FAIL)).unwrap();
        let error = flasher.flash(&image).await.unwrap_err();
        assert!(!error.to_string().contains("precious"), "{error}");
    }

    /// A link to another file system stands for a mounted one, and a folder for that where it was.
    #[tokio::test]
    async fn a_folder_without_its_file_system_is_no_volume_that_is_back() {
        let (dir, flasher, image, _) = volume(VolumeFormat::Hex);
        let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
        let (root, other) = (dir.path().join("VOLUME"), elsewhere.path().to_owned());
        let mount = || {
            fs::remove_dir(&root).unwrap();
            std::os::unix::fs::symlink(&other, &root).unwrap();
        };
        mount();
        assert!(is_mount_point(&root));
        let refuses = async {
            once_it_is_whole(root.join("JIG.HEX"), 150_000, || {
                fs::remove_file(&root).unwrap();
                fs::create_dir(&root).unwrap();
            })
            .await;
            // Long enough for the empty folder to be looked at, which must not count.
            tokio::time::sleep(LOOK * 4).await;
            fs::remove_file(other.join("JIG.HEX")).unwrap();
            fs::write(other.join(FAIL), "error: The transfer timed out.").unwrap();
            mount();
        };
        let (refused, ()) = tokio::join!(flasher.flash(&image), refuses);
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("The transfer timed out"), "{text}");
    }
}
