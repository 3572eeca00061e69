//! The commit of the work tree that an image lies in, read from its files.
//!
//! Starts no program: what git keeps of a head is a line of a file.

use std::fs;
use std::path::{Path, PathBuf};

use jig_rig::store::read_whole;

/// Folders above an image that are looked through.
const DEPTH: usize = 12;

/// Largest file of git that is read.
const MOST: u64 = 16 << 20;

/// Returns the commit that the head of a work tree around a file names, as of now; none outside a work tree.
/// Changes that are not committed are not seen.
pub(super) fn commit_of(file: &Path) -> Option<String> {
    let path = fs::canonicalize(file).ok()?;
    let folders = path.ancestors().skip(1).take(DEPTH);
    let git = folders.map(|folder| folder.join(".git")).find(|git| git.exists())?;
    let git = if git.is_dir() { git } else { linked(&git)? };
    let head = text(&git.join("HEAD"))?;
    let Some(name) = head.trim().strip_prefix("ref: ") else { return hash(head.trim()) };
    let name = name.trim();
    // A name from a file must not lead out of the folder.
    if !name.starts_with("refs/") || name.split('/').any(|part| part == "..") {
        return None;
    }
    let common = text(&git.join("commondir")).map(|path| git.join(path.trim()));
    let folders = [Some(git), common];
    folders.into_iter().flatten().find_map(|folder| {
        let loose = text(&folder.join(name)).and_then(|line| hash(line.trim()));
        loose.or_else(|| {
            let packed = text(&folder.join("packed-refs"))?;
            let line = packed.lines().find(|line| line.split(' ').nth(1) == Some(name))?;
            hash(line.split(' ').next()?)
        })
    })
}

/// Returns the folder that the file of a linked work tree names.
fn linked(file: &Path) -> Option<PathBuf> {
    let line = text(file)?;
    let folder = file.parent()?.join(line.trim().strip_prefix("gitdir: ")?);
    folder.is_dir().then_some(folder)
}

fn text(path: &Path) -> Option<String> {
    String::from_utf8(read_whole(path, MOST).ok()?).ok()
}

fn hash(text: &str) -> Option<String> {
    let fits = (40..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
    fits.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commit_of_an_image_is_read_from_its_work_tree() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("build/app.elf", "");
        let image = root.join("build/app.elf");
        assert_eq!(commit_of(&image), None);
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        write(".git/HEAD", "ref: refs/heads/main\n");
        assert_eq!(commit_of(&image), None);
        write(".git/packed-refs", &format!("# pack-refs\n{two} refs/heads/main\n"));
        assert_eq!(commit_of(&image), Some(two));
        write(".git/refs/heads/main", &format!("{one}\n"));
        assert_eq!(commit_of(&image).as_deref(), Some(one.as_str()));
        write(".git/HEAD", &format!("{one}\n"));
        assert_eq!(commit_of(&image), Some(one));
        for hostile in ["ref: ../../etc/passwd", "ref: refs/../../x", "nonsense", ""] {
            write(".git/HEAD", hostile);
            assert_eq!(commit_of(&image), None, "{hostile}");
        }
    }
}
