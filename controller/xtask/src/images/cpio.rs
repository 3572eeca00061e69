//! Writes the archive Linux unpacks as its first file system: cpio, "newc" format.
//!
//! Owns reproducibility: the same entries give the same bytes, whoever builds, wherever, whenever.
//! Entries are sorted, owned by root, dated 1970 and numbered from one. Refuses device nodes:
//! the kernel's devtmpfs makes them.

use std::collections::BTreeMap;

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A folder, open to all for reading.
    Directory,
    /// A file; executable or not is all there is to its mode.
    File { bytes: Vec<u8>, executable: bool },
    /// A symbolic link.
    Link { target: String },
}

/// A tree of entries by path relative to the root.
#[derive(Debug, Default)]
pub(crate) struct Tree(BTreeMap<String, Entry>);

const MAGIC: &str = "070701";
/// The name that ends an archive.
const TRAILER: &str = "TRAILER!!!";

impl Tree {
    /// Places an entry, and the folders above it; a later entry replaces an earlier one.
    pub(crate) fn insert(&mut self, path: &str, entry: Entry) {
        for (slash, _) in path.match_indices('/') {
            // Sorted order puts a folder before what it holds: the prefix is shorter.
            self.0.entry(path[..slash].to_owned()).or_insert(Entry::Directory);
        }
        self.0.insert(path.to_owned(), entry);
    }

    /// Answers the archive.
    pub(crate) fn to_cpio(&self) -> Vec<u8> {
        let mut archive = Vec::new();
        for (number, (path, entry)) in (1_u32..).zip(&self.0) {
            let (mode, content): (u32, &[u8]) = match entry {
                Entry::Directory => (0o040_755, &[]),
                Entry::File { bytes, executable: true } => (0o100_755, bytes),
                Entry::File { bytes, executable: false } => (0o100_644, bytes),
                Entry::Link { target } => (0o120_777, target.as_bytes()),
            };
            member(&mut archive, number, mode, path, content);
        }
        member(&mut archive, 0, 0, TRAILER, &[]);
        archive
    }
}

fn member(archive: &mut Vec<u8>, inode: u32, mode: u32, name: &str, content: &[u8]) {
    let links = 1 + u32::from(mode & 0o170_000 == 0o040_000);
    // Inode, mode, owner, group, links, time, size, device (2), device of a node (2), name
    // length with its NUL, checksum: eight hex digits each.
    let fields = [
        inode,
        mode,
        0,
        0,
        links,
        0,
        saturated(content.len()),
        0,
        0,
        0,
        0,
        saturated(name.len() + 1),
        0,
    ];
    archive.extend_from_slice(MAGIC.as_bytes());
    for field in fields {
        archive.extend_from_slice(format!("{field:08x}").as_bytes());
    }
    archive.extend_from_slice(name.as_bytes());
    archive.push(0);
    pad(archive);
    archive.extend_from_slice(content);
    pad(archive);
}

/// The format cannot say more than 4 GiB, and an image that large would not boot anyway.
fn saturated(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn pad(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> Entry {
        Entry::File { bytes: bytes.to_vec(), executable: true }
    }

    fn sample(order: [usize; 3]) -> Vec<u8> {
        let entries = [
            ("sbin/dropbear", file(b"elf")),
            ("init", file(b"#!/bin/sh\n")),
            ("bin/sh", Entry::Link { target: "busybox".into() }),
        ];
        let mut tree = Tree::default();
        for index in order {
            let (path, entry) = entries[index].clone();
            tree.insert(path, entry);
        }
        tree.to_cpio()
    }

    /// Reads an archive back the way the format's definition says, apart from the writer.
    fn list(mut archive: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut members = Vec::new();
        loop {
            let (header, rest) = archive.split_at(110);
            assert_eq!(&header[..6], b"070701");
            let field = |n: usize| {
                let digits = std::str::from_utf8(&header[6 + 8 * n..14 + 8 * n]).unwrap();
                u32::from_str_radix(digits, 16).unwrap()
            };
            assert_eq!((field(2), field(3), field(5)), (0, 0, 0), "owner, group and time");
            let (name_size, size) = (field(11) as usize, field(6) as usize);
            let name = String::from_utf8(rest[..name_size - 1].to_vec()).unwrap();
            assert_eq!(rest[name_size - 1], 0);
            let content = (110 + name_size).next_multiple_of(4);
            let next = (content + size).next_multiple_of(4);
            if name == TRAILER {
                assert_eq!(archive.len(), next);
                return members;
            }
            members.push((name, field(1), archive[content..content + size].to_vec()));
            archive = &archive[next..];
        }
    }

    #[test]
    fn the_order_of_building_leaves_no_trace() {
        assert_eq!(sample([0, 1, 2]), sample([2, 0, 1]));
    }

    #[test]
    fn an_archive_reads_back_with_folders_first() {
        let expected = [
            ("bin", 0o040_755, &b""[..]),
            ("bin/sh", 0o120_777, b"busybox"),
            ("init", 0o100_755, b"#!/bin/sh\n"),
            ("sbin", 0o040_755, b""),
            ("sbin/dropbear", 0o100_755, b"elf"),
        ]
        .map(|(name, mode, bytes)| (name.to_owned(), mode, bytes.to_vec()));
        assert_eq!(list(&sample([0, 1, 2])), expected);
    }

    #[test]
    fn a_folder_precedes_its_content_even_beside_awkward_names() {
        let mut tree = Tree::default();
        tree.insert("a.b", file(b""));
        tree.insert("a/z", file(b""));
        tree.insert("a!", file(b""));
        let names: Vec<_> = list(&tree.to_cpio()).into_iter().map(|(name, ..)| name).collect();
        let at = |name| names.iter().position(|one| one == name).unwrap();
        assert!(at("a") < at("a/z"), "{names:?}");
    }
}
