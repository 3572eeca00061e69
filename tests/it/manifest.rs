//! What was built for the tests: the firmware fixtures, and what is expected of each.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// One fixture on one board.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Entry {
    pub(crate) fixture: String,
    pub(crate) board: String,
    elf: String,
    plan: Option<String>,
    pub(crate) verdict: String,
    pub(crate) cause: String,
    pub(crate) tests: Option<Counts>,
    pub(crate) timeout_s: u32,
    pub(crate) repeat: u32,
}

/// What the report must count.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

impl Entry {
    /// Returns the image.
    pub(crate) fn elf(&self) -> PathBuf {
        folder().join(&self.elf)
    }

    /// Returns the plan, where the built-in one is not enough.
    pub(crate) fn plan(&self) -> Option<PathBuf> {
        self.plan.as_ref().map(|plan| folder().join(plan))
    }
}

/// Returns the repository.
pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns a folder of the target folder, where set-up and `cargo xtask fixtures` put what they make.
pub(crate) fn in_target(name: &str) -> PathBuf {
    // Cargo's folder for temporary files of tests lies in the target folder.
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name(name)
}

fn folder() -> PathBuf {
    in_target("fixtures")
}

/// Reads what was built.
pub(crate) fn entries() -> Vec<Entry> {
    let path = folder().join("manifest.json");
    let text = fs::read(&path).unwrap_or_else(|error| {
        panic!("cannot read {}: {error}\nrun: cargo xtask fixtures", path.display())
    });
    serde_json::from_slice(&text).unwrap()
}

/// Finds a fixture on a board.
pub(crate) fn entry(board: &str, fixture: &str) -> Entry {
    let mut all = entries().into_iter();
    all.find(|entry| entry.board == board && entry.fixture == fixture)
        .unwrap_or_else(|| panic!("{fixture} is not built for {board}\nrun: cargo xtask fixtures"))
}

/// Returns the image of a fixture on a board, as an argument.
pub(crate) fn elf(board: &str, fixture: &str) -> String {
    entry(board, fixture).elf().into_os_string().into_string().unwrap()
}
