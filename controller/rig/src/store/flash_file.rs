//! What the flash of an emulated place holds between runs, as the flash of a real board does.
//!
//! # Format, version 1, numbers little-endian
//! `JIGFLASH`, version (u32), length of the board's id (u32), the id, number of regions
//! (u32), start and length (u64 each) of every region, the bytes of every region, and the
//! SHA-256 of everything before. Regions ascend and do not overlap.
//!
//! The file is replaced in one step, so it is either the old or the new one. A file that is
//! damaged, newer or another board's is refused and left alone: what to do with it is the user's
//! decision.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jig_model::image::Segment;
use jig_model::{BoardId, Fault, PlaceName};
use sha2::{Digest, Sha256};

use super::disk::{Durability, read_bounded, replace};
use super::{PlaceLock, Places, StoreError};

const MAGIC: &[u8; 8] = b"JIGFLASH";
const VERSION: u32 = 1;
const HASH: usize = 32;

/// Largest file: the largest flash of a shipped board is 1 MiB; 256 MiB leaves room for
/// external ones.
const MAX_FILE: u64 = 256 << 20;
/// Most regions: chips have a handful.
const MAX_REGIONS: u32 = 256;

/// The file with the persistent flash of one place.
#[derive(Debug, Clone)]
pub struct FlashFile {
    path: PathBuf,
    place: PlaceName,
}

/// Says why a place's flash cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FlashFileError {
    /// A newer Jig wrote it.
    #[error(
        "the flash of place {place} was written by a newer jig (format {found}, this one knows \
         {known}): use that jig, or blank it: jig erase -b {place}"
    )]
    Newer {
        /// The place.
        place: PlaceName,
        /// The file's version.
        found: u32,
        /// The newest version this program knows.
        known: u32,
    },
    /// It does not hold what it should.
    #[error("the flash of place {place} is damaged: {reason}; blank it: jig erase -b {place}")]
    Damaged {
        /// The place.
        place: PlaceName,
        /// What is wrong.
        reason: String,
    },
    /// It belongs to another kind of board.
    #[error(
        "the flash of place {place} was written for board {found}, and the place has board \
         {wanted} now: blank it: jig erase -b {place}"
    )]
    OtherBoard {
        /// The place.
        place: PlaceName,
        /// The board it was written for.
        found: String,
        /// The place's board.
        wanted: BoardId,
    },
    /// More than such a file may hold.
    #[error("the flash of place {place} would take {bytes} bytes, more than {MAX_FILE}")]
    TooLarge {
        /// The place.
        place: PlaceName,
        /// How many.
        bytes: u64,
    },
    /// The regions overlap or are out of order.
    #[error("the regions of the flash of place {place} overlap or are out of order")]
    Disorder {
        /// The place.
        place: PlaceName,
    },
    /// The lock that was shown is another place's.
    #[error("the flash of place {place} needs the lock of {place}, not of {locked}")]
    NotLocked {
        /// The place.
        place: PlaceName,
        /// The place that is locked.
        locked: PlaceName,
    },
    /// The file cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FlashFileError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Newer { .. } | Self::Damaged { .. } | Self::OtherBoard { .. } => Fault::Lab,
            Self::TooLarge { .. } => Fault::Profile,
            Self::Disorder { .. } | Self::NotLocked { .. } => Fault::Bug,
            Self::Store(error) => error.fault(),
        }
    }
}

impl Places {
    /// Returns the file of a place's persistent flash.
    pub fn flash(&self, place: &PlaceName) -> FlashFile {
        FlashFile { path: self.path(place, "flash"), place: place.clone() }
    }
}

impl FlashFile {
    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what the flash holds; nothing if it was never written.
    ///
    /// # Errors
    /// The file is damaged, newer, another board's or cannot be read.
    pub fn load(&self, board: &BoardId) -> Result<Option<Vec<Segment>>, FlashFileError> {
        let bytes = match read_bounded(&self.path, MAX_FILE) {
            Ok(bytes) => bytes,
            Err(StoreError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(StoreError::Damaged { reason, .. }) => return Err(self.damaged(reason)),
            Err(error) => return Err(error.into()),
        };
        self.decode(&bytes, board).map(Some)
    }

    /// Replaces what the flash holds. Regions ascend and do not overlap; the lock is the proof that
    /// no other process writes.
    ///
    /// # Errors
    /// It is too much, or the file cannot be written; the old content is then still there.
    pub fn save(
        &self,
        lock: &PlaceLock,
        board: &BoardId,
        regions: &[Segment],
    ) -> Result<(), FlashFileError> {
        self.locked(lock)?;
        let place = || self.place.clone();
        let end = |region: &Segment| region.start.checked_add(region.bytes.len() as u64);
        let ordered =
            regions.windows(2).all(|pair| end(&pair[0]).is_some_and(|end| end <= pair[1].start));
        if !ordered || regions.iter().any(|region| end(region).is_none()) {
            return Err(FlashFileError::Disorder { place: place() });
        }
        let bytes: u64 = regions.iter().map(|region| region.bytes.len() as u64).sum();
        // Head and hash take far less than the 64 KiB.
        let count = u32::try_from(regions.len()).unwrap_or(u32::MAX);
        if bytes > MAX_FILE - (64 << 10) || count > MAX_REGIONS {
            return Err(FlashFileError::TooLarge { place: place(), bytes });
        }
        Ok(replace(&self.path, &encode(board, count, regions), Durability::Kill)?)
    }

    /// Blanks the flash, whatever the file holds.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn reset(&self, lock: &PlaceLock) -> Result<(), FlashFileError> {
        self.locked(lock)?;
        match fs::remove_file(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::writing(&self.path, e).into())
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn locked(&self, lock: &PlaceLock) -> Result<(), FlashFileError> {
        if *lock.place() == self.place {
            return Ok(());
        }
        let (place, locked) = (self.place.clone(), lock.place().clone());
        Err(FlashFileError::NotLocked { place, locked })
    }

    fn damaged(&self, reason: impl Into<String>) -> FlashFileError {
        FlashFileError::Damaged { place: self.place.clone(), reason: reason.into() }
    }

    fn decode(&self, file: &[u8], board: &BoardId) -> Result<Vec<Segment>, FlashFileError> {
        let mut rest = file;
        let cut = || self.damaged("it ends too early");
        if take(&mut rest, MAGIC.len()).ok_or_else(cut)? != MAGIC {
            return Err(self.damaged("it does not begin like one"));
        }
        // Before the hash, which a newer format may keep elsewhere.
        let found = number(&mut rest).ok_or_else(cut)?;
        if found > VERSION {
            let place = self.place.clone();
            return Err(FlashFileError::Newer { place, found, known: VERSION });
        }
        if found == 0 {
            return Err(self.damaged("there is no format 0"));
        }
        let Some((body, hash)) = file.split_last_chunk::<HASH>() else { return Err(cut()) };
        if Sha256::digest(body).as_slice() != hash {
            return Err(self.damaged("its content does not match its SHA-256"));
        }
        // Sound from here on: what is wrong now was written so.
        rest = rest.get(..rest.len().saturating_sub(HASH)).unwrap_or_default();
        let name = number(&mut rest).and_then(|len| take(&mut rest, usize::try_from(len).ok()?));
        let name = String::from_utf8_lossy(name.ok_or_else(cut)?);
        if name != board.as_str() {
            return Err(FlashFileError::OtherBoard {
                place: self.place.clone(),
                found: name.chars().take(64).collect(),
                wanted: board.clone(),
            });
        }
        let count = number(&mut rest).ok_or_else(cut)?;
        if count > MAX_REGIONS {
            return Err(self.damaged(format!("it has {count} regions")));
        }
        let mut places = Vec::new();
        for _ in 0..count {
            places.push((wide(&mut rest).ok_or_else(cut)?, wide(&mut rest).ok_or_else(cut)?));
        }
        let mut regions: Vec<Segment> = Vec::new();
        let mut reach = 0;
        for (start, len) in places {
            let end = start.checked_add(len).filter(|_| start >= reach);
            reach = end.ok_or_else(|| self.damaged("its regions overlap"))?;
            let bytes = usize::try_from(len).ok().and_then(|len| take(&mut rest, len));
            regions.push(Segment { start, bytes: bytes.ok_or_else(cut)?.to_vec() });
        }
        if rest.is_empty() { Ok(regions) } else { Err(self.damaged("it is longer than it says")) }
    }
}

fn encode(board: &BoardId, count: u32, regions: &[Segment]) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    file.extend(VERSION.to_le_bytes());
    // A board's id is at most 64 bytes long.
    file.extend((board.as_str().len() as u32).to_le_bytes());
    file.extend(board.as_str().bytes());
    file.extend(count.to_le_bytes());
    for region in regions {
        file.extend(region.start.to_le_bytes());
        file.extend((region.bytes.len() as u64).to_le_bytes());
    }
    for region in regions {
        file.extend(&region.bytes);
    }
    let hash = Sha256::digest(&file);
    file.extend(hash);
    file
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(len)?;
    *rest = left;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    take(rest, 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn wide(rest: &mut &[u8]) -> Option<u64> {
    take(rest, 8)?.try_into().ok().map(u64::from_le_bytes)
}
