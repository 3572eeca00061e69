//! The images that may become the known-good image of a place: how often each has passed in a row.
//!
//! # Format, version 1
//! `<place>.known-good.candidates.json` lists the last images that ran there, the newest first. A
//! file that cannot be read counts as empty: each image begins anew then.

use std::path::PathBuf;

use jig_model::BoardId;
use serde::{Deserialize, Serialize};

use super::StoreError;
use super::disk::{Durability, read_bounded, replace};

/// Passes in a row, each in a start of its own, that make an image known to be good. One that
/// passes half of its runs gets there once in eight, and is then doubted as it runs.
pub(super) const PASSES: u32 = 3;

/// Images that are remembered: several firmwares that take turns, and their rebuilds of a day.
const MOST: usize = 32;
const MAX_FILE: u64 = 64 << 10;
const VERSION: u32 = 1;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Candidates {
    version: u32,
    images: Vec<Candidate>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Candidate {
    board: BoardId,
    sha256: String,
    /// The text it prints when it works; its test report otherwise.
    until: Option<String>,
    /// Passes in a row.
    passes: u32,
    /// It has failed: it does not become the known-good image.
    failed: bool,
}

/// The list of one place.
pub(super) struct CandidateFile {
    path: PathBuf,
}

impl CandidateFile {
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Counts a pass; tells whether the image is known to be good now.
    pub(super) fn passed(
        &self,
        board: &BoardId,
        sha256: &str,
        until: Option<&str>,
    ) -> Result<bool, StoreError> {
        let mut images = self.read();
        let of_file = |one: &Candidate| one.board == *board && one.sha256 == sha256;
        let failed_before = images.iter().any(|one| of_file(one) && one.failed);
        let known = images.iter().position(|one| of_file(one) && one.until.as_deref() == until);
        let mut image = known.map_or_else(
            || Candidate {
                board: board.clone(),
                sha256: sha256.to_owned(),
                until: until.map(str::to_owned),
                passes: 0,
                failed: false,
            },
            |at| images.remove(at),
        );
        image.passes = image.passes.saturating_add(1);
        let good = image.passes >= PASSES && !failed_before;
        images.insert(0, image);
        self.write(images)?;
        Ok(good)
    }

    /// Notes a failure, under whatever text the image was waited for.
    pub(super) fn failed(&self, board: &BoardId, sha256: &str) -> Result<(), StoreError> {
        let mut images = self.read();
        images.retain(|one| one.board != *board || one.sha256 != sha256);
        let (board, sha256) = (board.clone(), sha256.to_owned());
        images.insert(0, Candidate { board, sha256, until: None, passes: 0, failed: true });
        self.write(images)
    }

    fn read(&self) -> Vec<Candidate> {
        let text = read_bounded(&self.path, MAX_FILE).unwrap_or_default();
        let list: Candidates = serde_json::from_slice(&text).unwrap_or_default();
        if list.version == VERSION { list.images } else { Vec::new() }
    }

    fn write(&self, mut images: Vec<Candidate>) -> Result<(), StoreError> {
        while images.len() > MOST {
            // An image that is forgotten begins anew, so one that has failed is remembered longest.
            let oldest = images.iter().rposition(|one| !one.failed).filter(|&at| at > 0);
            images.remove(oldest.unwrap_or(images.len() - 1));
        }
        let list = Candidates { version: VERSION, images };
        let text = serde_json::to_vec(&list).map_err(|e| StoreError::encoding(&self.path, e))?;
        replace(&self.path, &text, Durability::Kill)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_has_failed_is_remembered_longest() {
        let folder = tempfile::tempdir().unwrap();
        let file = CandidateFile::at(folder.path().join("candidates.json"));
        let board: BoardId = "fake".parse().unwrap();
        file.failed(&board, "bad").unwrap();
        for n in 0..2 * MOST {
            file.passed(&board, &n.to_string(), None).unwrap();
        }
        assert_eq!(file.read().len(), MOST);
        for _ in 0..2 * PASSES {
            assert!(!file.passed(&board, "bad", None).unwrap());
        }
        // The newest is always kept, and the list stays bounded where all have failed.
        for n in 0..2 * MOST {
            file.failed(&board, &format!("bad {n}")).unwrap();
        }
        let pass = |_| file.passed(&board, "good", None).unwrap();
        let good: Vec<bool> = (0..PASSES).map(pass).collect();
        assert_eq!(good, [false, false, true]);
        assert_eq!(file.read().len(), MOST);
    }
}
