//! The files of a package, in a folder that is laid out like the root of a host.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use xtask::failure::TaskFailure;
use xtask::process;
use xtask::project::listed;

/// The files of a package.
pub(super) struct PackageTree {
    root: PathBuf,
    /// Paths in the package.
    files: Vec<String>,
    bytes: u64,
}

impl PackageTree {
    /// Begins an empty tree; what an earlier one left is removed.
    pub(super) fn begin(root: &Path) -> Result<Self, TaskFailure> {
        if root.exists() {
            fs::remove_dir_all(root).map_err(TaskFailure::io("remove", root))?;
        }
        make_folder(root)?;
        Ok(Self { root: root.to_owned(), files: Vec::new(), bytes: 0 })
    }

    /// Returns where a file of the package is now.
    pub(super) fn path(&self, inside: &str) -> PathBuf {
        self.root.join(inside)
    }

    /// Copies a file.
    pub(super) fn file(&mut self, from: &Path, to: &str, mode: u32) -> Result<(), TaskFailure> {
        let content = fs::read(from).map_err(TaskFailure::io("read", from))?;
        self.text(to, &content, mode)
    }

    /// Copies the files of a folder that have an extension.
    pub(super) fn folder(&mut self, from: &Path, to: &str, ext: &str) -> Result<(), TaskFailure> {
        for path in listed(from)?.iter().filter(|p| p.extension().is_some_and(|e| e == ext)) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.file(path, &format!("{to}/{name}"), 0o644)?;
        }
        Ok(())
    }

    /// Writes a file.
    pub(super) fn text(&mut self, to: &str, content: &[u8], mode: u32) -> Result<(), TaskFailure> {
        write(&self.path(to), content, mode)?;
        self.files.push(to.to_owned());
        self.bytes += content.len() as u64;
        Ok(())
    }

    /// Writes a file compressed, without the time of day.
    pub(super) fn compressed(&mut self, to: &str, content: &[u8]) -> Result<(), TaskFailure> {
        let packed = gzip(content)?;
        self.text(to, &packed, 0o644)
    }

    /// Writes a file for the package manager.
    pub(super) fn control(&self, name: &str, content: &str, mode: u32) -> Result<(), TaskFailure> {
        write(&self.path("DEBIAN").join(name), content.as_bytes(), mode)
    }

    /// Returns the size of all files.
    pub(super) fn kilobytes(&self) -> u64 {
        self.bytes.div_ceil(1024)
    }

    /// Returns the checksums of all files, as `md5sum` writes them.
    pub(super) fn checksums(&mut self) -> Result<String, TaskFailure> {
        self.files.sort();
        let mut command = Command::new("md5sum");
        command.current_dir(&self.root).args(&self.files);
        Ok(String::from_utf8_lossy(&process::capture(&mut command)?).into_owned())
    }
}

fn write(path: &Path, content: &[u8], mode: u32) -> Result<(), TaskFailure> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    fs::write(path, content).map_err(TaskFailure::io("write", path))?;
    let mode = fs::Permissions::from_mode(mode);
    fs::set_permissions(path, mode).map_err(TaskFailure::io("write", path))
}

/// Makes a folder with the permissions of a package, whatever the mask of this process says.
fn make_folder(path: &Path) -> Result<(), TaskFailure> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        make_folder(above)?;
    }
    let made = fs::DirBuilder::new().mode(0o755).create(path);
    made.map_err(TaskFailure::io("create", path))?;
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(path, mode).map_err(TaskFailure::io("create", path))
}

fn gzip(content: &[u8]) -> Result<Vec<u8>, TaskFailure> {
    let mut command = Command::new("gzip");
    command.args(["-9n"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(process::start_failure(&command))?;
    let input = child.stdin.take();
    let output = std::thread::scope(|scope| {
        // Beside the reader: either pipe may be full.
        scope.spawn(move || input.map(|mut input| input.write_all(content)));
        child.wait_with_output()
    });
    let output = output.map_err(process::start_failure(&command))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(process::ended(&command, output.status, String::new())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_the_permissions_sums_and_sizes_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let mut tree = PackageTree::begin(&folder.path().join("root")).unwrap();
        tree.text("usr/bin/x", b"#!/bin/sh\n", 0o755).unwrap();
        tree.compressed("usr/share/a.gz", &[b'a'; 100_000]).unwrap();
        tree.control("postinst", "", 0o755).unwrap();
        let mode =
            |inside: &str| fs::metadata(tree.path(inside)).unwrap().permissions().mode() & 0o777;
        assert_eq!(["usr", "usr/bin/x", "usr/share/a.gz"].map(mode), [0o755, 0o755, 0o644]);
        assert_eq!(tree.kilobytes(), 1);
        let sums = tree.checksums().unwrap();
        let names: Vec<_> = sums.lines().map(|line| &line[34..]).collect();
        assert_eq!(names, ["usr/bin/x", "usr/share/a.gz"]);
        let unpacked = process::capture(Command::new("zcat").arg(tree.path("usr/share/a.gz")));
        assert_eq!(unpacked.unwrap(), [b'a'; 100_000]);
        // The next package begins with nothing.
        let tree = PackageTree::begin(&folder.path().join("root")).unwrap();
        assert!(!tree.path("usr").exists());
    }
}
