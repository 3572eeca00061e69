//! The boards of a catalogue by name, with the fault signatures that they share.
//!
//! # Design
//! *What this program brings is read when it is asked for.* A built-in text is known to be right, and most
//! commands need one board of fifty. A file with the same text, as in a copy of the repository, is treated
//! alike. All other files are read at once, so that a mistake in one is told by each command, whatever board it
//! is about.
//!
//! *A built-in profile is right beside the built-in fault sets only*: it names them. Where a file changes or adds
//! one, all profiles are read at once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, OnceLock};

use jig_model::profile::{BoardProfile, FaultSetText, FaultSets, ProfileSource};
use jig_model::{BoardId, Problems};

use super::CatalogueError;
use super::sources::{FoundText, Layers, Source, built_in, without};

/// The fault sets that are built in.
static BUILT_IN_SETS: LazyLock<FaultSets> = LazyLock::new(|| {
    let texts = built_in::FAULT_SETS.iter();
    FaultSets::parse(texts.map(|(name, text)| FaultSetText { name, origin: "built-in", text }))
        .unwrap_or_default()
});

/// The fault signatures that boards share.
#[derive(Debug, Clone)]
pub(crate) enum KnownFaultSets {
    /// The built-in ones and no others.
    BuiltIn,
    /// Those that were read.
    Read(Arc<FaultSets>),
}

impl KnownFaultSets {
    /// Reads the sets of some folders; those that are broken are left out.
    pub(super) fn of(folders: &[PathBuf], bad: &mut Vec<Problems>) -> Result<Self, CatalogueError> {
        let mut layers = Layers::of_built_in(built_in::FAULT_SETS);
        for folder in folders {
            layers.add(&folder.join("faults"))?;
        }
        let mut found = layers.read(bad)?;
        if found.iter().all(|(_, found)| found.built_in().is_some()) {
            return Ok(Self::BuiltIn);
        }
        let text = |(name, found): &(String, FoundText)| {
            let Source { origin, text } = found.source();
            (name.clone(), origin, text)
        };
        let read = |found: &[(String, FoundText)]| {
            let texts: Vec<_> = found.iter().map(text).collect();
            FaultSets::parse(texts.iter().map(|(name, origin, text)| FaultSetText {
                name,
                origin,
                text,
            }))
        };
        if let Ok(sets) = read(&found) {
            return Ok(Self::Read(Arc::new(sets)));
        }
        found
            .retain(|one| read(std::slice::from_ref(one)).map_err(|more| bad.extend(more)).is_ok());
        Ok(Self::Read(Arc::new(read(&found).unwrap_or_default())))
    }

    /// Returns the sets.
    pub(super) fn get(&self) -> &FaultSets {
        match self {
            Self::BuiltIn => &BUILT_IN_SETS,
            Self::Read(sets) => sets,
        }
    }
}

/// Boards by name.
#[derive(Debug, Clone, Default)]
pub struct BoardSet {
    boards: Arc<BTreeMap<BoardId, SetBoard>>,
}

/// A board of the set.
#[derive(Debug, Clone)]
enum SetBoard {
    Read(Arc<BoardProfile>),
    BuiltIn {
        /// A path, or `built-in NAME`.
        origin: String,
        text: &'static str,
        read: OnceLock<Option<Arc<BoardProfile>>>,
    },
}

impl SetBoard {
    fn get(&self) -> Option<&Arc<BoardProfile>> {
        match self {
            Self::Read(board) => Some(board),
            Self::BuiltIn { origin, text, read } => {
                let lower = || match BoardProfile::parse(origin, text, &BUILT_IN_SETS) {
                    Ok(board) => Some(Arc::new(board)),
                    Err(problems) => {
                        tracing::error!(origin, error = %problems, "a built-in profile cannot be read");
                        None
                    }
                };
                read.get_or_init(lower).as_ref()
            }
        }
    }
}

impl BoardSet {
    /// Reads the boards of some folders, and notes what is wrong with the rest.
    pub(super) fn of(
        folders: &[PathBuf],
        faults: &KnownFaultSets,
        bad: &mut Vec<Problems>,
    ) -> Result<Self, CatalogueError> {
        let mut layers = Layers::of_built_in(built_in::BOARDS);
        for folder in folders {
            layers.add(folder)?;
        }
        // A broken fault set would make every profile that uses it look broken.
        let echo = (!bad.is_empty()).then_some("profile::fault-set");
        let mut boards = BTreeMap::new();
        for (name, found) in layers.read(bad)? {
            if let (KnownFaultSets::BuiltIn, Some(text), Ok(id)) =
                (faults, found.built_in(), name.parse::<BoardId>())
            {
                let (origin, read) = (found.origin(), OnceLock::new());
                boards.insert(id, SetBoard::BuiltIn { origin, text, read });
                continue;
            }
            let Source { origin, text } = found.source();
            match BoardProfile::parse(&origin, &text, faults.get()) {
                Ok(board) => {
                    boards.insert(board.id.clone(), SetBoard::Read(Arc::new(board)));
                }
                Err(problems) => bad.extend(without(problems, echo)),
            }
        }
        Ok(Self { boards: Arc::new(boards) })
    }

    /// Adds boards; they win over those of the same name.
    pub(super) fn extend(&mut self, more: impl IntoIterator<Item = BoardProfile>) {
        let more =
            more.into_iter().map(|board| (board.id.clone(), SetBoard::Read(Arc::new(board))));
        let more: Vec<_> = more.collect();
        if !more.is_empty() {
            Arc::make_mut(&mut self.boards).extend(more);
        }
    }

    /// Finds a board.
    pub fn get(&self, board: &BoardId) -> Option<&Arc<BoardProfile>> {
        self.boards.get(board)?.get()
    }

    /// Lists all boards by name; reads those that were not asked for yet.
    pub fn values(&self) -> impl Iterator<Item = &Arc<BoardProfile>> {
        self.boards.values().filter_map(SetBoard::get)
    }

    /// Lists the names.
    pub fn keys(&self) -> impl Iterator<Item = &BoardId> {
        self.boards.keys()
    }

    /// Counts the boards.
    pub fn count(&self) -> usize {
        self.boards.len()
    }

    /// Counts the boards that were read.
    #[cfg(test)]
    pub(super) fn count_read(&self) -> usize {
        let is_read = |board: &&SetBoard| match board {
            SetBoard::Read(_) => true,
            SetBoard::BuiltIn { read, .. } => read.get().is_some(),
        };
        self.boards.values().filter(is_read).count()
    }
}

impl ProfileSource for BoardSet {
    fn profile(&self, board: &BoardId) -> Option<&BoardProfile> {
        self.get(board).map(|board| &**board)
    }

    fn names(&self) -> Vec<&str> {
        self.keys().map(BoardId::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_built_in_can_be_read() {
        let mut bad = Vec::new();
        let faults = KnownFaultSets::of(&[], &mut bad).unwrap();
        assert!(matches!(faults, KnownFaultSets::BuiltIn));
        assert_eq!(faults.get().names().count(), built_in::FAULT_SETS.len());
        let boards = BoardSet::of(&[], &faults, &mut bad).unwrap();
        assert!(bad.is_empty() && boards.count() == built_in::BOARDS.len());
        assert_eq!(boards.count_read(), 0);
        for (name, _) in built_in::BOARDS {
            let id = name.parse().unwrap();
            assert_eq!(boards.get(&id).unwrap().id, id);
        }
        assert_eq!(boards.values().count(), built_in::BOARDS.len());
    }

    #[test]
    fn a_file_is_read_at_once_unless_it_says_what_is_built_in() {
        let folder = tempfile::tempdir().unwrap();
        let (name, text) = built_in::BOARDS[0];
        let path = folder.path().join(format!("{name}.toml"));
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let (folders, mut bad) = ([folder.path().to_owned()], Vec::new());
            let faults = KnownFaultSets::of(&folders, &mut bad).unwrap();
            let boards = BoardSet::of(&folders, &faults, &mut bad).unwrap();
            (boards, bad)
        };
        let id: BoardId = name.parse().unwrap();
        let (boards, bad) = read(text);
        assert!(bad.is_empty() && boards.count_read() == 0);
        assert_eq!(boards.get(&id).unwrap().origin, path.display().to_string());
        let (boards, bad) = read(&text.replacen("title = \"", "title = \"X", 1));
        assert!(bad.is_empty() && boards.count_read() == 1);
        assert!(boards.get(&id).unwrap().title.starts_with('X'));
        let (boards, bad) = read("version = 1\n");
        assert!(bad.len() == 1 && boards.get(&id).is_none());
        // A further fault set: a profile might name it.
        std::fs::create_dir(folder.path().join("faults")).unwrap();
        let set = "version = 1\n[[fault]]\nname = \"oops\"\nline = 'oops'\n\
                   cause = \"guest_panic\"\nexample = \"oops\"\nnear_miss = \"fine\"\n";
        std::fs::write(folder.path().join("faults/mine.toml"), set).unwrap();
        let (boards, bad) = read(text);
        assert!(bad.is_empty(), "{bad:?}");
        assert_eq!(boards.count_read(), boards.count());
    }
}
