//! Patches: unified diffs as agents propose them. Pure.
//!
//! Owns the reading of a diff, the facts about it that a policy asks for, its identity, and the one form
//! in which git is given it. The text of a diff is hostile: every count is checked, and nothing is
//! guessed. What git applies is written from what was read, so it is what was reviewed.

mod error;
mod identity;
mod names;
mod near;
mod read;
mod write;

pub use error::PatchError;

/// What stands in front of a line of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// In both files.
    Context,
    /// In the new file alone.
    Added,
    /// In the old file alone.
    Removed,
}

/// One line of a hunk, without its line end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HunkLine {
    /// Where it belongs.
    pub kind: LineKind,
    /// Its text; a carriage return in front of the line end belongs to it.
    pub text: String,
    /// Whether the file ends with this line, without a line end.
    pub ends_file: bool,
}

/// One place of a file that changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// First line in the old file, from 1; 0 for a new file.
    pub old_start: u32,
    /// First line in the new file, from 1; 0 for a deleted file.
    pub new_start: u32,
    /// The lines, in order.
    pub lines: Vec<HunkLine>,
}

/// What happens to a file besides changes of its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// It becomes, was or stays something other than a file: a symbolic link or a submodule.
    NotAFile,
    /// Its permissions change.
    Mode,
    /// It is not text.
    Binary,
    /// It gets another name or is copied.
    Renamed,
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Path before, relative to the repository; `None` for a new file.
    pub old: Option<String>,
    /// Path after; `None` for a deleted file.
    pub new: Option<String>,
    /// What else happens to it.
    pub special: Option<Special>,
    /// The hunks, in order of lines.
    pub hunks: Vec<Hunk>,
}

impl FileChange {
    /// Returns the path by which the change is known: the new one, if there is one.
    pub fn path(&self) -> &str {
        self.new.as_deref().or(self.old.as_deref()).unwrap_or_default()
    }

    /// Counts the lines that are added and removed.
    pub fn changed_lines(&self) -> usize {
        self.lines().filter(|line| line.kind != LineKind::Context).count()
    }

    /// Lists the lines of all hunks.
    pub fn lines(&self) -> impl Iterator<Item = &HunkLine> {
        self.hunks.iter().flat_map(|hunk| &hunk.lines)
    }
}

/// A unified diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// One change per file; a file occurs once.
    pub files: Vec<FileChange>,
}

impl Patch {
    /// Reads a diff in the form of `git diff`, also of one with other prefixes than `a/` and `b/`, or
    /// with none. Text in front of the first file is skipped. [`ToString::to_string`] writes it in the
    /// form that git is given.
    ///
    /// # Errors
    /// The text holds no change, or is not what its headers announce.
    pub fn read(text: &str) -> Result<Self, PatchError> {
        read::read(text)
    }

    /// Returns the identity of the change as lower-case hex: the same for the same added and removed
    /// lines between the same lines of the same files, whatever their numbers, and however they are
    /// indented.
    pub fn id(&self) -> String {
        identity::of(self)
    }

    /// Says which files it changes that are not among these, with those that may be meant.
    pub fn missing_files(&self, files: &[String]) -> Vec<String> {
        near::missing(self, files)
    }

    /// Counts the lines that are added and removed.
    pub fn changed_lines(&self) -> usize {
        self.files.iter().map(FileChange::changed_lines).sum()
    }
}
