//! The image that is known to work on a place: what tells a broken rig from broken firmware.
//!
//! # Format, version 1
//! `<place>.known-good.json` says what `<place>.known-good.image` is, with its SHA-256: the two
//! are replaced one after the other, and are believed only where they fit together. Whoever
//! finds something else finds no known-good image, and the next run that passes leaves one.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jig_model::image::ImageFormat;
use jig_model::{BoardId, PlaceName};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::disk::{Durability, read_bounded, replace};
use super::{Places, StoreError};

const FORMAT: &str = "jig-known-good";
const VERSION: u32 = 1;

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

/// Recovers in a row that a known-good image may speak against before it is believed no longer:
/// the rig may well be broken in a way that only shows when something runs.
const MOST_DOUBTS: u32 = 3;

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
    /// The file.
    pub bytes: &'a [u8],
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
        if known.board != *board || known.doubts >= MOST_DOUBTS {
            return None;
        }
        let bytes = read_bounded(&image, MAX_IMAGE).ok()?;
        (hash(&bytes) == known.sha256).then_some((known, bytes))
    }

    /// Keeps what has passed as the place's known-good image, unless there is one already that
    /// is as good: an image that works is not replaced by each next one.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn keep_known_good(
        &self,
        place: &PlaceName,
        passed: &Passed<'_>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (record, image) = self.known_good_paths(place);
        let good_enough = |known: KnownGood| {
            known.board == *passed.board && known.doubts == 0 && known.took_ms / 2 <= passed.took_ms
        };
        if passed.bytes.len() as u64 > MAX_IMAGE || read_record(&record).is_some_and(good_enough) {
            return Ok(());
        }
        let Some(_lock) = self.lock_known_good(place)? else { return Ok(()) };
        replace(&image, passed.bytes, Durability::Kill)?;
        let known = KnownGood {
            format: FORMAT.to_owned(),
            version: VERSION,
            board: passed.board.clone(),
            image: passed.format,
            sha256: hash(passed.bytes),
            until: passed.until.clone(),
            took_ms: passed.took_ms,
            passed: now,
            doubts: 0,
        };
        write_record(&record, &known)
    }

    /// Notes that the known-good image spoke against a recovery although everything else at the
    /// place works, by so many doubts more, or with nothing that it passed.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn doubt_known_good(&self, place: &PlaceName, more: Option<u32>) -> Result<(), StoreError> {
        let (record, _) = self.known_good_paths(place);
        let doubts = |known: &KnownGood| more.map_or(0, |more| known.doubts.saturating_add(more));
        if read_record(&record).is_none_or(|known| known.doubts == doubts(&known)) {
            return Ok(());
        }
        let Some(_lock) = self.lock_known_good(place)? else { return Ok(()) };
        let Some(known) = read_record(&record) else { return Ok(()) };
        write_record(&record, &KnownGood { doubts: doubts(&known), ..known })
    }

    /// Keeps two processes from writing at once; who comes second has nothing to add.
    fn lock_known_good(&self, place: &PlaceName) -> Result<Option<Flock<File>>, StoreError> {
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

    fn passed<'a>(board: &'a BoardId, bytes: &'a [u8], took_ms: u64) -> Passed<'a> {
        Passed { board, format: KnownFormat::Elf, bytes, until: None, took_ms }
    }

    #[test]
    fn the_first_that_passes_stays_until_it_is_doubted_or_much_slower() {
        let state = tempfile::tempdir().unwrap();
        let places = Places::new(state.path());
        let place: PlaceName = "bench".parse().unwrap();
        let (board, other): (BoardId, BoardId) = ("a".parse().unwrap(), "b".parse().unwrap());
        let now = Timestamp::UNIX_EPOCH;
        let kept = |board: &BoardId| places.known_good(&place, board).map(|(_, bytes)| bytes);
        assert_eq!(kept(&board), None);
        places.doubt_known_good(&place, Some(1)).unwrap();
        places.keep_known_good(&place, &passed(&board, b"one", 100), now).unwrap();
        places.keep_known_good(&place, &passed(&board, b"two", 60), now).unwrap();
        assert_eq!(kept(&board).unwrap(), b"one");
        assert_eq!(kept(&other), None, "another board's image proves nothing");
        places.keep_known_good(&place, &passed(&board, b"three", 49), now).unwrap();
        assert_eq!(kept(&board).unwrap(), b"three");
        for _ in 0..2 {
            places.doubt_known_good(&place, Some(1)).unwrap();
        }
        assert_eq!(places.known_good(&place, &board).unwrap().0.doubts, 2);
        places.doubt_known_good(&place, None).unwrap();
        assert_eq!(places.known_good(&place, &board).unwrap().0.doubts, 0);
        for _ in 0..MOST_DOUBTS {
            places.doubt_known_good(&place, Some(1)).unwrap();
        }
        assert_eq!(kept(&board), None, "what never works is believed no longer");
        places.keep_known_good(&place, &passed(&board, b"four", 900), now).unwrap();
        assert_eq!(kept(&board).unwrap(), b"four");
        places.keep_known_good(&place, &passed(&other, b"five", 900), now).unwrap();
        assert_eq!((kept(&board), kept(&other).unwrap()), (None, b"five".to_vec()));
    }

    #[test]
    fn what_does_not_fit_together_is_not_trusted() {
        let state = tempfile::tempdir().unwrap();
        let places = Places::new(state.path());
        let (place, board): (PlaceName, BoardId) = ("p".parse().unwrap(), "b".parse().unwrap());
        places.keep_known_good(&place, &passed(&board, b"good", 1), Timestamp::UNIX_EPOCH).unwrap();
        let (record, image) = places.known_good_paths(&place);
        fs::write(&image, b"gold").unwrap();
        assert!(places.known_good(&place, &board).is_none());
        fs::write(&image, b"good").unwrap();
        assert!(places.known_good(&place, &board).is_some());
        let text = fs::read_to_string(&record).unwrap().replace("\"version\": 1", "\"version\": 2");
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
            let (place, board) = ("desk".parse().unwrap(), "b".parse().unwrap());
            let now = Timestamp::UNIX_EPOCH;
            places.keep_known_good(&place, &passed(&board, b"image", 7), now).unwrap();
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
            places.doubt_known_good(&place, Some(MOST_DOUBTS)).unwrap();
            places.keep_known_good(&place, &passed(&board, b"next", 7), now).unwrap();
            prop_assert_eq!(places.known_good(&place, &board).unwrap().1, b"next");
        }
    }
}
