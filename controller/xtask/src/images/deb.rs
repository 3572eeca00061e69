//! Reads files out of a Debian package without installing it and without unpacking the rest.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::process;

/// The files of interest in one package.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    files: BTreeMap<String, Vec<u8>>,
    links: BTreeMap<String, String>,
}

/// How many symbolic links to follow: a library needs one, a loop would need infinitely many.
const LINK_DEPTH: usize = 4;

impl Contents {
    /// Reads the files whose path `wanted` accepts, and every symbolic link.
    pub(crate) fn read(package: &Path, wanted: impl Fn(&str) -> bool) -> Result<Self, Failure> {
        let mut command = Command::new("dpkg-deb");
        command.arg("--fsys-tarfile").arg(package);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(process::start_failure(&command))?;
        let contents = match child.stdout.take() {
            Some(tar) => Self::from_tar(tar, wanted).map_err(Failure::io("unpack", package)),
            None => Ok(Self::default()),
        };
        let status = child.wait().map_err(Failure::io("unpack", package))?;
        let contents = contents?;
        if status.success() {
            Ok(contents)
        } else {
            Err(process::ended(&command, status, String::new()))
        }
    }

    fn from_tar(
        mut tar: impl std::io::Read,
        wanted: impl Fn(&str) -> bool,
    ) -> std::io::Result<Self> {
        let mut contents = Self::default();
        for entry in tar::Archive::new(&mut tar).entries()? {
            let mut entry = entry?;
            let path = plain(&String::from_utf8_lossy(&entry.path_bytes()));
            let kind = entry.header().entry_type();
            if kind.is_symlink() {
                let target = entry.link_name_bytes().unwrap_or_default();
                let target = String::from_utf8_lossy(&target).into_owned();
                contents.links.insert(path, target);
            } else if kind.is_file() {
                let mut bytes = Vec::new();
                // Followed links decide later what is needed, so link targets of a library
                // folder are kept by the caller's filter, not by this one.
                if wanted(&path) {
                    entry.read_to_end(&mut bytes)?;
                    contents.files.insert(path, bytes);
                }
            }
        }
        // The archive may end before the pipe does; a reader that leaves early would kill
        // dpkg-deb by a broken pipe and make a good package look bad.
        std::io::copy(&mut tar, &mut std::io::sink())?;
        Ok(contents)
    }

    /// Takes the file at a path, through symbolic links.
    pub(crate) fn take(&mut self, path: &str) -> Option<Vec<u8>> {
        let mut path = path.to_owned();
        for _ in 0..LINK_DEPTH {
            match self.links.get(&path) {
                Some(target) if target.starts_with('/') => path = plain(target),
                Some(target) => {
                    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                    path = plain(&format!("{folder}/{target}"));
                }
                None => return self.files.remove(&path),
            }
        }
        None
    }

    /// Takes the one file that a pattern names; a pattern may end in `*`.
    pub(crate) fn take_matching(&mut self, pattern: &str) -> Option<Vec<u8>> {
        let path = match pattern.strip_suffix('*') {
            Some(prefix) => self.files.keys().find(|path| path.starts_with(prefix))?.clone(),
            None => pattern.to_owned(),
        };
        self.take(&path)
    }

    /// Takes the file with this name, in whatever folder.
    pub(crate) fn take_named(&mut self, name: &str) -> Option<Vec<u8>> {
        let ends = |path: &&String| path.rsplit('/').next() == Some(name);
        let path = self.files.keys().find(ends)?.clone();
        self.files.remove(&path)
    }
}

/// Spells a package path the one way recipes do: no leading `./` or `/`, no `.` and `..`.
fn plain(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package() -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut add = |kind, path: &str, link: &str, bytes: &[u8]| {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            if kind == tar::EntryType::Symlink {
                builder.append_link(&mut header, path, link).unwrap();
            } else {
                builder.append_data(&mut header, path, bytes).unwrap();
            }
        };
        add(tar::EntryType::Regular, "./lib/a/libz.so.1.2", "", b"code");
        add(tar::EntryType::Symlink, "./lib/a/libz.so.1", "libz.so.1.2", b"");
        add(tar::EntryType::Symlink, "./usr/libz.so", "../lib/a/libz.so.1", b"");
        add(tar::EntryType::Symlink, "./loop", "loop", b"");
        add(tar::EntryType::Regular, "./boot/vmlinuz-6.1.0-7-x", "", b"kernel");
        add(tar::EntryType::Regular, "./huge", "", b"not asked for");
        builder.into_inner().unwrap()
    }

    fn contents() -> Contents {
        Contents::from_tar(package().as_slice(), |path| path != "huge").unwrap()
    }

    #[test]
    fn links_are_followed_to_the_file() {
        assert_eq!(contents().take("usr/libz.so").unwrap(), b"code");
        assert_eq!(contents().take("lib/a/libz.so.1.2").unwrap(), b"code");
        assert_eq!(contents().take("loop"), None);
        assert_eq!(contents().take("absent"), None);
    }

    #[test]
    fn only_what_is_wanted_is_kept() {
        assert_eq!(contents().take("huge"), None);
    }

    #[test]
    fn files_are_found_by_pattern_and_by_name() {
        assert_eq!(contents().take_matching("boot/vmlinuz-*").unwrap(), b"kernel");
        assert_eq!(contents().take_matching("boot/Image-*"), None);
        assert_eq!(contents().take_named("libz.so.1.2").unwrap(), b"code");
    }

    #[test]
    fn paths_have_one_spelling() {
        assert_eq!(plain("./a//b/./c"), "a/b/c");
        assert_eq!(plain("/a/../../b"), "b");
    }

    #[test]
    fn a_cut_package_is_an_error() {
        let bytes = package();
        assert!(Contents::from_tar(&bytes[..700], |_| true).is_err());
    }
}
