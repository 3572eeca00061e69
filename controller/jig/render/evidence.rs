//! Quotes what a verdict rests on.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Component, Path};

use jig_model::Evidence;
use jig_rig::console::escape;
use jig_rig::store::RunDir;

/// Most bytes of a range that are quoted: a dozen lines; the log has the rest.
const MAX_QUOTE: usize = 800;

/// Most lines that are quoted.
const MAX_LINES: usize = 12;

/// Returns the range's lines, escaped; none if it cannot be read.
pub(crate) fn quote(dir: &RunDir, evidence: &Evidence) -> Option<Vec<String>> {
    let inside = Path::new(&evidence.file);
    // A record may come from elsewhere; it may name nothing outside its run.
    if !inside.components().all(|part| matches!(part, Component::Normal(_))) {
        return None;
    }
    let path = dir.path().join(inside);
    let real = path.canonicalize().ok()?;
    if !real.starts_with(dir.path().canonicalize().ok()?) || !real.is_file() {
        return None;
    }
    let wanted = evidence.end.saturating_sub(evidence.start);
    let mut bytes = vec![0; usize::try_from(wanted).map_or(MAX_QUOTE, |n| n.min(MAX_QUOTE))];
    let file = File::open(real).ok()?;
    let mut filled = 0;
    while let Some(room) = bytes.get_mut(filled..).filter(|room| !room.is_empty()) {
        match file.read_at(room, evidence.start + filled as u64).ok()? {
            0 => break,
            n => filled += n,
        }
    }
    bytes.truncate(filled);
    let text = escape(&bytes);
    let mut lines: Vec<String> =
        text.trim_matches('\n').lines().take(MAX_LINES).map(str::to_owned).collect();
    if wanted > MAX_QUOTE as u64 || text.lines().count() > MAX_LINES {
        lines.push(format!("[{wanted} bytes; only their beginning is shown]"));
    }
    (!bytes.is_empty()).then_some(lines)
}
