//! The image that is known to work on a place: what tells a broken rig from broken firmware.
//!
//! # Format, version 2
//! `<place>.known-good.json` says what `<place>.known-good.image` is, with its SHA-256: the two
//! are replaced one after the other, and are believed only where they fit together. If they do not
//! fit together, there is no known-good image, and the next run that passes leaves one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jig_model::image::ImageFormat;
use jig_model::{BoardId, PlaceName};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::candidates::CandidateFile;
use super::disk::{Durability, read_bounded, replace};
use super::{Places, StoreError};

const FORMAT: &str = "jig-known-good";
/// Version 1 held images that had passed once.
const VERSION: u32 = 2;

/// Largest image that is kept: firmware with its debug information takes a few megabytes, and
/// what is kept is copied once into each run that asks for it.
const MAX_IMAGE: u64 = 64 << 20;
const MAX_RECORD: u64 = 16 << 10;

/// What is known of a place's known-good image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownGood {
    format: String,
    version: u32,
    /// The board it passed on.
    pub board: BoardId,
    /// What kind of file it is: one that says itself where it goes.
    pub image: KnownFormat,
    /// SHA-256 of the file, in lower-case hex.
    pub sha256: String,
    /// The text it prints when it works; its test report otherwise.
    pub until: Option<String>,
    /// How long it took to pass, in milliseconds.
    pub took_ms: u64,
    /// When it passed.
    pub passed: Timestamp,
    /// How many recoveries in a row it has spoken against, although everything else at the place
    /// worked. The next image that passes takes its place then.
    #[serde(default)]
    pub doubts: u32,
}

/// Recoveries in a row that a known-good image may contradict before it is used no longer: the rig
/// may be broken in a way that only shows when something runs.
const MAX_DOUBTS: u32 = 3;

/// Formats that a known-good image is kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnownFormat {
    /// ELF.
    Elf,
    /// Intel HEX.
    IntelHex,
}

impl KnownFormat {
    /// Returns the format to keep an image in, if it says itself where it goes.
    pub fn of(format: ImageFormat) -> Option<Self> {
        match format {
            ImageFormat::Elf => Some(Self::Elf),
            ImageFormat::IntelHex => Some(Self::IntelHex),
            ImageFormat::Binary { .. } => None,
        }
    }

    /// Returns the ending of such files' names.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Elf => "elf",
            Self::IntelHex => "hex",
        }
    }
}

/// What has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed<'a> {
    /// The board it passed on.
    pub board: &'a BoardId,
    /// What kind of file it is.
    pub format: KnownFormat,
    /// SHA-256 of the file, in lower-case hex.
    pub sha256: &'a str,
    /// The text it prints when it works; its test report otherwise.
    pub until: Option<String>,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

impl Places {
    fn known_good_paths(&self, place: &PlaceName) -> (PathBuf, PathBuf) {
        let at = |ending: &str| self.root().join(format!("{place}.known-good.{ending}"));
        (at("json"), at("image"))
    }

    /// Returns a place's known-good image for a board, and its bytes; nothing where there is
    /// none that can be trusted.
    pub fn known_good(&self, place: &PlaceName, board: &BoardId) -> Option<(KnownGood, Vec<u8>)> {
        let (record, image) = self.known_good_paths(place);
        let known = read_record(&record)?;
        if known.board != *board || known.doubts >= MAX_DOUBTS {
            return None;
        }
        let bytes = read_bounded(&image, MAX_IMAGE).ok()?;
        (hash(&bytes) == known.sha256).then_some((known, bytes))
    }

    /// Notes that an image has passed. With the last of `PASSES` in a row it becomes the place's
    /// known-good image, unless there is one already that is as good: an image that works is not
    /// replaced by each next one. `read` returns the file.
    ///
    /// # Errors
    /// The folder cannot be written, or the file not be read.
    pub fn note_pass(
        &self,
        place: &PlaceName,
        passed: &Passed<'_>,
        now: Timestamp,
        read: impl FnOnce() -> io::Result<Vec<u8>>,
    ) -> Result<(), StoreError> {
        let (record, image) = self.known_good_paths(place);
        let good_enough = |known: KnownGood| {
            known.board == *passed.board && known.doubts == 0 && known.took_ms / 2 <= passed.took_ms
        };
        if read_record(&record).is_some_and(good_enough) {
            return Ok(());
        }
        let Some(_lock) = self.lock_known_good(place)? else { return Ok(()) };
        if !self.candidates(place).passed(passed.board, passed.sha256, passed.until.as_deref())? {
            return Ok(());
        }
        let bytes = read().map_err(|error| StoreError::reading(&image, error))?;
        if bytes.len() as u64 > MAX_IMAGE || hash(&bytes) != passed.sha256 {
            return Ok(());
        }
        replace(&image, &bytes, Durability::Kill)?;
        let known = KnownGood {
            format: FORMAT.to_owned(),
            version: VERSION,
            board: passed.board.clone(),
            image: passed.format,
            sha256: passed.sha256.to_owned(),
            until: passed.until.clone(),
            took_ms: passed.took_ms,
            passed: now,
            doubts: 0,
        };
        write_record(&record, &known)
    }

    /// Notes that an image has failed on a rig that works: it does not become the known-good image,
    /// and is none any longer. Returns false, and notes nothing, while another process writes.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn note_failure(
        &self,
        place: &PlaceName,
        board: &BoardId,
        sha256: &str,
    ) -> Result<bool, StoreError> {
        let (record, _) = self.known_good_paths(place);
        let Some(_lock) = self.lock_known_good(place)? else { return Ok(false) };
        self.candidates(place).failed(board, sha256)?;
        if let Some(known) = read_record(&record).filter(|known| known.sha256 == sha256) {
            write_record(&record, &KnownGood { doubts: u32::MAX, ..known })?;
        }
        Ok(true)
    }

    fn candidates(&self, place: &PlaceName) -> CandidateFile {
        CandidateFile::at(self.root().join(format!("{place}.known-good.candidates.json")))
    }

    /// Notes that the known-good image spoke against a recovery although everything else at the
    /// place works, by so many doubts more, or with nothing that it passed. Returns `false` if another process keeps
    /// the notes; then nothing is noted.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn doubt_known_good(
        &self,
        place: &PlaceName,
        more: Option<u32>,
    ) -> Result<bool, StoreError> {
        let (record, _) = self.known_good_paths(place);
        let doubts = |known: &KnownGood| more.map_or(0, |more| known.doubts.saturating_add(more));
        if read_record(&record).is_none_or(|known| known.doubts == doubts(&known)) {
            return Ok(true);
        }
        let Some(_lock) = self.lock_known_good(place)? else { return Ok(false) };
        let Some(known) = read_record(&record) else { return Ok(true) };
        write_record(&record, &KnownGood { doubts: doubts(&known), ..known })?;
        Ok(true)
    }

    /// Keeps two processes from writing at once; nothing while another one writes.
    pub(crate) fn lock_known_good(
        &self,
        place: &PlaceName,
    ) -> Result<Option<Flock<File>>, StoreError> {
        fs::create_dir_all(self.root()).map_err(|e| StoreError::writing(self.root(), e))?;
        let path = self.root().join(format!("{place}.known-good.lock"));
        let file = File::create(&path).map_err(|e| StoreError::writing(&path, e))?;
        Ok(Flock::lock(file, FlockArg::LockExclusiveNonblock).ok())
    }
}

fn read_record(path: &Path) -> Option<KnownGood> {
    let text = read_bounded(path, MAX_RECORD).ok()?;
    let known: KnownGood = serde_json::from_slice(&text).ok()?;
    (known.format == FORMAT && known.version == VERSION).then_some(known)
}

fn write_record(path: &Path, known: &KnownGood) -> Result<(), StoreError> {
    let mut text = serde_json::to_vec_pretty(known).map_err(|e| StoreError::encoding(path, e))?;
    text.push(b'\n');
    replace(path, &text, Durability::Kill)
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::session::canary_plan;
    use crate::store::candidates::PASSES;

    /// Notes that a file has passed this often.
    fn passes(places: &Places, board: &BoardId, bytes: &[u8], took_ms: u64, times: u32) {
        let (place, sha256) = ("bench".parse().unwrap(), hash(bytes));
        let format = KnownFormat::Elf;
        for _ in 0..times {
            let passed = Passed { board, format, sha256: &sha256, until: None, took_ms };
            let read = || Ok(bytes.to_vec());
            places.note_pass(&place, &passed, Timestamp::UNIX_EPOCH, read).unwrap();
        }
    }

    #[test]
    fn the_first_that_is_proven_stays_until_it_is_doubted_or_much_slower() {
        let state = tempfile::tempdir().unwrap();
        let places = Places::new(state.path());
        let place: PlaceName = "bench".parse().unwrap();
        let (board, other): (BoardId, BoardId) = ("a".parse().unwrap(), "b".parse().unwrap());
        let kept = |board: &BoardId| places.known_good(&place, board).map(|(_, bytes)| bytes);
        assert_eq!(kept(&board), None);
        places.doubt_known_good(&place, Some(1)).unwrap();
        passes(&places, &board, b"one", 100, PASSES);
        passes(&places, &board, b"two", 60, PASSES);
        assert_eq!(kept(&board).unwrap(), b"one");
        assert_eq!(kept(&other), None, "another board's image proves nothing");
        passes(&places, &board, b"three", 49, PASSES);
        assert_eq!(kept(&board).unwrap(), b"three");
        for _ in 0..2 {
            places.doubt_known_good(&place, Some(1)).unwrap();
        }
        assert_eq!(places.known_good(&place, &board).unwrap().0.doubts, 2);
        places.doubt_known_good(&place, None).unwrap();
        assert_eq!(places.known_good(&place, &board).unwrap().0.doubts, 0);
        for _ in 0..MAX_DOUBTS {
            places.doubt_known_good(&place, Some(1)).unwrap();
        }
        assert_eq!(kept(&board), None, "what never works is believed no longer");
        passes(&places, &board, b"four", 900, PASSES);
        assert_eq!(kept(&board).unwrap(), b"four");
        passes(&places, &other, b"five", 900, PASSES);
        assert_eq!((kept(&board), kept(&other).unwrap()), (None, b"five".to_vec()));
    }

    #[test]
    fn an_image_is_known_to_be_good_after_passes_in_a_row_and_no_failure() {
        // p: image a passes, P: image b passes, f: image a fails. Then the image that is kept.
        for (script, wanted) in [
            ("p", None),
            ("pp", None),
            ("ppp", Some("a")),
            ("pPpPp", Some("a")),
            ("pPPpP", Some("b")),
            ("ppf", None),
            ("ppfppp", None),
            ("fppppp", None),
            ("pppf", None),
            ("pppfPPP", Some("b")),
            ("pppfppp", None),
        ] {
            let state = tempfile::tempdir().unwrap();
            let places = Places::new(state.path());
            let (place, board): (PlaceName, BoardId) =
                ("bench".parse().unwrap(), "b".parse().unwrap());
            for step in script.chars() {
                match step {
                    'p' => passes(&places, &board, b"a", 9, 1),
                    'P' => passes(&places, &board, b"b", 9, 1),
                    _ => assert!(places.note_failure(&place, &board, &hash(b"a")).unwrap()),
                }
            }
            let kept = places.known_good(&place, &board).map(|(_, bytes)| bytes);
            assert_eq!(kept.as_deref(), wanted.map(str::as_bytes), "{script}");
        }
    }

    #[test]
    fn what_does_not_fit_together_is_not_trusted() {
        let state = tempfile::tempdir().unwrap();
        let places = Places::new(state.path());
        let (place, board): (PlaceName, BoardId) = ("bench".parse().unwrap(), "b".parse().unwrap());
        passes(&places, &board, b"good", 1, PASSES);
        let (record, image) = places.known_good_paths(&place);
        fs::write(&image, b"gold").unwrap();
        assert!(places.known_good(&place, &board).is_none());
        fs::write(&image, b"good").unwrap();
        assert!(places.known_good(&place, &board).is_some());
        // What an earlier version had kept after one pass.
        let text = fs::read_to_string(&record).unwrap().replace("\"version\": 2", "\"version\": 1");
        fs::write(&record, text).unwrap();
        assert!(places.known_good(&place, &board).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_record_that_somebody_has_changed_is_fit_for_use_or_none(
            at in any::<proptest::sample::Index>(),
            bytes in "[0-9a-z\":,{}\\x00-\\xff]{0,6}",
        ) {
            let state = tempfile::tempdir().unwrap();
            let places = Places::new(state.path());
            let (place, board) = ("bench".parse().unwrap(), "b".parse().unwrap());
            passes(&places, &board, b"image", 7, PASSES);
            let (record, _) = places.known_good_paths(&place);
            let mut text = fs::read(&record).unwrap();
            let at = at.index(text.len());
            text.splice(at..text.len().min(at + 2), bytes.bytes());
            fs::write(&record, text).unwrap();
            if let Some((known, image)) = places.known_good(&place, &board) {
                prop_assert_eq!(image, b"image");
                let _ = canary_plan(&known);
            }
            // Whatever it says now, what passes next can be kept.
            places.doubt_known_good(&place, Some(MAX_DOUBTS)).unwrap();
            passes(&places, &board, b"next", 7, PASSES);
            prop_assert_eq!(places.known_good(&place, &board).unwrap().1, b"next");
        }
    }
}
