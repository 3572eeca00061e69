//! The paths of one run.

use std::path::{Path, PathBuf};

use jig_model::{ConsoleName, RunId};

use super::{EventReader, RunRecord, StoreError, UNACCOUNTED_FILE};
use crate::report::ReportFormat;

/// Longest file name made of a hostile text; leaves room for suffixes below the usual 255.
const MAX_NAME: usize = 100;

/// Name of the file with what a debug port told. No console log ends like it.
pub const POST_MORTEM_FILE: &str = "post-mortem.json";

/// The directory of a run, which may be alive, ended or broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    id: RunId,
    path: PathBuf,
}

impl RunDir {
    pub(super) fn new(root: &Path, id: RunId) -> Self {
        Self { path: root.join(id.as_str()), id }
    }

    pub(super) fn at(path: PathBuf, id: RunId) -> Self {
        Self { id, path }
    }

    /// Returns the run's id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Returns the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the record.
    pub fn record_path(&self) -> PathBuf {
        self.path.join("record.json")
    }

    /// Returns the path of the event log.
    pub fn events_path(&self) -> PathBuf {
        self.path.join("events.jsonl")
    }

    pub(super) fn children_path(&self) -> PathBuf {
        self.path.join("children.jsonl")
    }

    pub(crate) fn lock_path(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// Tells whether it is a copy of a run of another host, which has no ledger of processes.
    pub fn is_copy(&self) -> bool {
        !self.children_path().exists()
    }

    /// Returns the path of a console's raw log; its index has the extension `idx`.
    pub fn console_path(&self, attempt: u32, console: &ConsoleName) -> PathBuf {
        self.path.join("consoles").join(attempt.to_string()).join(format!("{console}.raw"))
    }

    /// Lists the attempts that have console logs, in order.
    pub fn attempts(&self) -> Vec<u32> {
        let Ok(entries) = std::fs::read_dir(self.path.join("consoles")) else { return Vec::new() };
        let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        numbers
    }

    /// Returns the path of what the debug port told of an attempt's failure: beside the
    /// attempt's console logs.
    pub fn post_mortem_path(&self, attempt: u32) -> PathBuf {
        self.path.join("consoles").join(attempt.to_string()).join(POST_MORTEM_FILE)
    }

    /// Returns the path of the list of an attempt's lines that nothing accounts for, beside its console
    /// logs.
    pub fn unaccounted_path(&self, attempt: u32) -> PathBuf {
        self.path.join("consoles").join(attempt.to_string()).join(UNACCOUNTED_FILE)
    }

    /// Returns the path of an artefact, always inside `artefacts/`, whatever the name says.
    pub fn artefact_path(&self, name: &str) -> PathBuf {
        self.path.join("artefacts").join(safe_name(name))
    }

    /// Returns the path of a report.
    pub fn report_path(&self, format: ReportFormat) -> PathBuf {
        self.path.join("reports").join(format.file_name())
    }

    /// Returns a path inside the run as the evidence names it: relative, with `/`.
    pub fn relative(&self, path: &Path) -> Option<String> {
        let inside = path.strip_prefix(&self.path).ok()?;
        let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
        Some(parts.join("/"))
    }

    /// Reads the record.
    ///
    /// # Errors
    /// See [`RunRecord::read`].
    pub fn record(&self) -> Result<RunRecord, StoreError> {
        RunRecord::read(&self.record_path())
    }

    /// Reads the events.
    ///
    /// # Errors
    /// See [`EventReader::open`].
    pub fn events(&self) -> Result<EventReader, StoreError> {
        EventReader::open(&self.events_path())
    }
}

/// Makes one harmless path component of any text. A text that has to be changed gets a
/// hash of the original, so that two texts do not meet in one file.
fn safe_name(text: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let plain = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.len() <= MAX_NAME
        && text.chars().all(keep);
    if plain {
        return text.to_owned();
    }
    // FNV-1a: stable between versions of the compiler, unlike the standard hasher.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let shown = text.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let shown: String =
        shown.chars().take(MAX_NAME / 2).map(|c| if keep(c) { c } else { '_' }).collect();
    format!("{}-{hash:016x}", if shown.is_empty() { "file" } else { &shown })
}

#[cfg(test)]
mod tests {
    use std::path::Component;

    use proptest::prelude::*;

    use super::*;

    fn dir() -> RunDir {
        RunDir::new(Path::new("/runs"), "20261121-221530-7f3a".parse().unwrap())
    }

    proptest! {
        #[test]
        fn no_name_leaves_the_artefacts(name in any::<String>()) {
            let path = dir().artefact_path(&name);
            let rest = path.strip_prefix(dir().path().join("artefacts")).unwrap();
            let parts: Vec<_> = rest.components().collect();
            prop_assert!(matches!(parts[..], [Component::Normal(_)]));
            prop_assert!(rest.as_os_str().len() <= MAX_NAME);
        }
    }

    #[test]
    fn names_stay_readable_and_apart() {
        assert_eq!(safe_name("flash.log"), "flash.log");
        assert!(safe_name("../../etc/passwd").starts_with("etc_passwd-"));
        assert_ne!(safe_name("a/b"), safe_name("a:b"));
        for hostile in ["", ".", "..", "/", "\0", "-rf"] {
            assert!(safe_name(hostile).len() > 16, "{hostile:?}");
        }
    }

    #[test]
    fn paths_are_relative_with_slashes() {
        let dir = dir();
        let path = dir.console_path(2, &"uart0".parse().unwrap());
        assert_eq!(dir.relative(&path).unwrap(), "consoles/2/uart0.raw");
        assert_eq!(dir.relative(Path::new("/elsewhere")), None);
    }
}
