//! The identity of a patch, by which a proposal that was tried already is known.

use sha2::{Digest as _, Sha256};

use super::{LineKind, Patch};

/// Hashes paths, changed lines and the lines around them, without white space. Line numbers do not
/// count: the same change behind other changes of the file is the same proposal, and the same edit of
/// another function is another one.
///
/// `git patch-id --stable` counts the same, and the order of files just as little. The number is another
/// one: special files count here, and hunks are kept apart.
pub(super) fn of(patch: &Patch) -> String {
    let mut files: Vec<_> = patch.files.iter().collect();
    files.sort_by_key(|file| file.path());
    let mut hash = Sha256::new();
    for file in files {
        for path in [&file.old, &file.new] {
            hash.update(path.as_deref().unwrap_or_default());
            hash.update([0]);
        }
        hash.update([0, file.special.map_or(0, |special| 1 + special as u8)]);
        for hunk in &file.hunks {
            hash.update([b'@']);
            for line in &hunk.lines {
                hash.update([match line.kind {
                    LineKind::Context => b' ',
                    LineKind::Added => b'+',
                    LineKind::Removed => b'-',
                }]);
                line.text.split_ascii_whitespace().for_each(|word| hash.update(word));
                hash.update([b'\n']);
            }
        }
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
