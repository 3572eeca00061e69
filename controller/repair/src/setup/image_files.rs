//! Finds the images in a work tree where the task does not name one.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Most entries of a work tree that are looked at.
const MAX_ENTRIES: usize = 200_000;

/// Bytes of an ELF file up to its type.
const HEAD: usize = 18;

/// Lists the executable ELF files of a work tree that are not in `known`, as paths below it, sorted.
/// Objects and archives are none; links are not followed.
pub(super) fn image_files(tree: &Path, known: &BTreeSet<PathBuf>) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![tree.to_owned()];
    let mut entries = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            entries += 1;
            if entries > MAX_ENTRIES {
                let why = format!("it has more than {MAX_ENTRIES} files");
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() && entry.file_name() != ".git" {
                folders.push(path);
            } else if kind.is_file() && is_executable(&path)? {
                let below = path.strip_prefix(tree).unwrap_or(&path).to_owned();
                found.extend((!known.contains(&below)).then_some(below));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Tells whether a file is an ELF file that can be executed, by its header.
fn is_executable(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD as u64).read_to_end(&mut head)?;
    let [0x7f, b'E', b'L', b'F', _, order, .., first, second] = head.as_slice() else {
        return Ok(false);
    };
    let kind = match order {
        2 => u16::from_be_bytes([*first, *second]),
        _ => u16::from_le_bytes([*first, *second]),
    };
    // ET_EXEC, or ET_DYN as of a position-independent program.
    Ok(head.len() == HEAD && matches!(kind, 2 | 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_found_and_objects_links_and_known_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, kind: &[u8]| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let head = [&b"\x7fELF\x01"[..], &[1], &[0; 10], kind, &[0; 40]].concat();
            fs::write(path, head).unwrap();
        };
        write("out/app.elf", &[2, 0]);
        write("out/app.o", &[1, 0]);
        write("boot.elf", &[2, 0]);
        write(".git/x.elf", &[2, 0]);
        fs::write(folder.path().join("short"), "\x7fELF").unwrap();
        std::os::unix::fs::symlink("out/app.elf", folder.path().join("link.elf")).unwrap();
        let known = BTreeSet::from([PathBuf::from("boot.elf")]);
        assert_eq!(image_files(folder.path(), &known).unwrap(), [Path::new("out/app.elf")]);
        let all = image_files(folder.path(), &BTreeSet::new()).unwrap();
        assert_eq!(all, [Path::new("boot.elf"), Path::new("out/app.elf")]);
    }
}
