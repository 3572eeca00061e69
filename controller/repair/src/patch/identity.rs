//! The identity of a patch, by which a proposal that was tried already is known.

use sha2::{Digest as _, Sha256};

use super::{LineKind, Patch};

/// Hashes the changed lines without white space. Context and line numbers do not count: the same
/// change against another base is the same proposal.
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
        for line in file.lines().filter(|line| line.kind != LineKind::Context) {
            hash.update([if line.kind == LineKind::Added { b'+' } else { b'-' }]);
            line.text.split_ascii_whitespace().for_each(|word| hash.update(word));
            hash.update([b'\n']);
        }
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
