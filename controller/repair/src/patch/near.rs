//! Files that a patch changes and that are not there.

use super::Patch;

/// Most missing files that are named, and most files near each.
const MOST: usize = 3;
const MOST_NEAR: usize = 5;

/// Says which files a patch changes that are not among these, with those that may be meant.
pub(super) fn missing(patch: &Patch, files: &[String]) -> Vec<String> {
    let changed = patch.files.iter().filter_map(|file| file.old.as_ref());
    let missing = changed.filter(|path| !files.contains(path)).map(|path| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let same = files.iter().filter(|file| file.rsplit('/').next() == Some(name));
        let same: Vec<_> = same.take(MOST_NEAR).map(String::as_str).collect();
        if !same.is_empty() {
            return format!("there is no {path}, but {}", same.join(", "));
        }
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let beside = files.iter().filter(|file| file.starts_with(folder));
        let beside: Vec<_> = beside.take(MOST_NEAR).map(String::as_str).collect();
        format!("there is no {path}; near it: {}", beside.join(", "))
    });
    missing.take(MOST).collect()
}
