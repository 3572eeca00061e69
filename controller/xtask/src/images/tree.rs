//! The first file system of an image: a folder, packed by cpio and gzip.
//!
//! Owns reproducibility: the same entries give the same bytes on every host at any time.
//! Entries are sorted, owned by root and dated 1970. Refuses device nodes: the kernel's devtmpfs
//! makes them.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use xtask::failure::TaskFailure;
use xtask::process;

/// Whether a file is a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Readable by all.
    Plain,
    /// Readable and executable by all.
    Executable,
}

impl Mode {
    fn bits(self) -> u32 {
        match self {
            Self::Plain => 0o644,
            Self::Executable => 0o755,
        }
    }
}

/// A tree of files in a folder. Paths are relative to its root.
#[derive(Debug)]
pub(crate) struct Tree(PathBuf);

impl Tree {
    /// Creates an empty tree.
    pub(crate) fn create(root: &Path) -> Result<Self, TaskFailure> {
        fs::create_dir_all(root).map_err(TaskFailure::io("create", root))?;
        Ok(Self(root.to_owned()))
    }

    /// Makes a folder and those above it.
    pub(crate) fn directory(&self, path: &str) -> Result<(), TaskFailure> {
        let folder = self.0.join(path);
        fs::create_dir_all(&folder).map_err(TaskFailure::io("create", &folder))
    }

    /// Copies a file of the host.
    pub(crate) fn copy(&self, from: &Path, path: &str, mode: Mode) -> Result<(), TaskFailure> {
        let bytes = fs::read(from).map_err(TaskFailure::io("read", from))?;
        self.write(path, &bytes, mode)
    }

    /// Writes a file.
    pub(crate) fn write(&self, path: &str, bytes: &[u8], mode: Mode) -> Result<(), TaskFailure> {
        self.above(path)?;
        let file = self.0.join(path);
        let written = fs::write(&file, bytes)
            .and_then(|()| fs::set_permissions(&file, Permissions::from_mode(mode.bits())));
        written.map_err(TaskFailure::io("write", &file))
    }

    /// Makes a symbolic link.
    pub(crate) fn link(&self, path: &str, target: &str) -> Result<(), TaskFailure> {
        self.above(path)?;
        let link = self.0.join(path);
        symlink(target, &link).map_err(TaskFailure::io("create", &link))
    }

    fn above(&self, path: &str) -> Result<(), TaskFailure> {
        path.rsplit_once('/').map_or(Ok(()), |(folder, _)| self.directory(folder))
    }

    /// Packs the tree into a gzip-compressed cpio archive.
    pub(crate) fn pack(&self, archive: &Path) -> Result<(), TaskFailure> {
        let mut paths = Vec::new();
        collect(&self.0, Path::new(""), &mut paths)?;
        // A folder is shorter than what it holds, so it comes first.
        paths.sort();
        let mut touch = Command::new("touch");
        touch.current_dir(&self.0).args(["--no-dereference", "--date=@0", "--"]).args(&paths);
        process::capture(&mut touch)?;
        let list = archive.with_extension("list");
        let names: String = paths.iter().map(|path| format!("{}\n", path.display())).collect();
        fs::write(&list, names).map_err(TaskFailure::io("write", &list))?;
        let plain = archive.with_extension("cpio");
        let mut cpio = Command::new("cpio");
        cpio.current_dir(&self.0).args(["--create", "--format=newc", "--quiet"]);
        cpio.args(["--reproducible", "--owner=0:0"]);
        filter(&mut cpio, &list, &plain)?;
        let mut gzip = Command::new("gzip");
        filter(gzip.args(["--best", "--no-name"]), &plain, archive)?;
        for file in [list, plain] {
            fs::remove_file(&file).map_err(TaskFailure::io("remove", &file))?;
        }
        Ok(())
    }
}

/// Collects what is in a folder, and gives folders the mode that a umask may have changed.
fn collect(root: &Path, below: &Path, paths: &mut Vec<PathBuf>) -> Result<(), TaskFailure> {
    let folder = root.join(below);
    for entry in fs::read_dir(&folder).map_err(TaskFailure::io("list", &folder))?.flatten() {
        let (full, path) = (entry.path(), below.join(entry.file_name()));
        if full.is_dir() && !full.is_symlink() {
            let mode = Permissions::from_mode(Mode::Executable.bits());
            fs::set_permissions(&full, mode).map_err(TaskFailure::io("change", &full))?;
            collect(root, &path, paths)?;
        }
        paths.push(path);
    }
    Ok(())
}

/// Runs a program from one file to another.
fn filter(command: &mut Command, from: &Path, to: &Path) -> Result<(), TaskFailure> {
    let input = File::open(from).map_err(TaskFailure::io("read", from))?;
    let output = File::create(to).map_err(TaskFailure::io("write", to))?;
    command.stdin(input).stdout(output).stderr(Stdio::piped());
    let child = command.spawn().map_err(process::start_failure(command))?;
    let output = child.wait_with_output().map_err(process::start_failure(command))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(process::ended(command, output.status, stderr))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(folder: &Path, order: [usize; 3]) -> Vec<u8> {
        let tree = Tree::create(&folder.join("root")).unwrap();
        for index in order {
            match index {
                0 => tree.write("sbin/dropbear", b"elf", Mode::Executable).unwrap(),
                1 => tree.write("sbin.conf", b"", Mode::Plain).unwrap(),
                _ => tree.link("bin/sh", "busybox").unwrap(),
            }
        }
        let archive = folder.join("initrd");
        tree.pack(&archive).unwrap();
        fs::read(archive).unwrap()
    }

    #[test]
    fn the_order_of_building_leaves_no_trace() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let packed = sample(one.path(), [0, 1, 2]);
        assert_eq!(packed, sample(two.path(), [2, 1, 0]));
        assert_eq!(&packed[4..8], &[0; 4], "no date in the header");
        let left = fs::read_dir(one.path()).unwrap().count();
        assert_eq!(left, 2, "the folder and the archive");
    }

    #[test]
    fn an_archive_lists_folders_before_what_they_hold() {
        let dir = tempfile::tempdir().unwrap();
        sample(dir.path(), [0, 1, 2]);
        let plain = dir.path().join("plain");
        filter(
            Command::new("gzip").args(["--decompress", "--stdout"]),
            &dir.path().join("initrd"),
            &plain,
        )
        .unwrap();
        let listed = dir.path().join("listed");
        let mut list = Command::new("cpio");
        list.args(["--list", "--quiet", "--verbose", "--numeric-uid-gid"]).env("TZ", "UTC");
        filter(list.env("LC_ALL", "C"), &plain, &listed).unwrap();
        let listed = fs::read_to_string(listed).unwrap();
        let lines: Vec<Vec<&str>> =
            listed.lines().map(|line| line.split_whitespace().collect()).collect();
        let names: Vec<&str> = lines.iter().map(|words| words[8]).collect();
        assert_eq!(names, ["bin", "bin/sh", "sbin", "sbin/dropbear", "sbin.conf"]);
        let modes: Vec<&str> = lines.iter().map(|words| words[0]).collect();
        assert_eq!(modes, ["drwxr-xr-x", "lrwxrwxrwx", "drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--"]);
        for words in &lines {
            assert_eq!((words[2], words[3], words[7]), ("0", "0", "1970"), "{words:?}");
        }
    }
}
