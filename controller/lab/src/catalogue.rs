//! Which boards and places there are, and where each came from.
//!
//! Owns the order in which files are looked up; what they mean is the model's business.
//!
//! # Design
//! *Profiles and fault sets*, later wins by name: built-in, `/etc/jig/boards`,
//! `$XDG_CONFIG_HOME/jig/boards`, the project's `board-profiles`, `--boards`. Only what
//! wins is read.
//!
//! *The rig file* is the first of `--rig` (or `JIG_RIG`), the project's `rig.toml`,
//! `$XDG_CONFIG_HOME/jig/rig.toml`, `/etc/jig/rig.toml`, and with it its drop-ins
//! `rig.toml.d/*.toml`. A board `chip:NAME` needs no profile: it is made of what is known of the
//! chip. Without a rig file, or with one that names no place, every board that can
//! be emulated is a place of its own name.

mod board_set;
mod chips;
mod described;
mod devices;
mod error;
mod reader;
mod sources;
mod surroundings;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jig_model::lease::RigUser;
use jig_model::profile::{BoardProfile, FaultSets};
use jig_model::rig_file::{Canary, CaptureClient, KnowledgeSettings, Place, Rig, RigText};
use jig_model::{BoardId, PlaceName, Problems};
use jig_probe::DescribedChips;
use jig_rig::health::HealthStore;
use jig_rig::identity::{groups_of, own_identity};
use jig_rig::leases::LeaseStore;
use jig_rig::store::{Places, Retention, command_shown, open_regular};

pub use self::board_set::BoardSet;
use self::board_set::KnownFaultSets;
pub use self::chips::ChipAtProbe;
use self::chips::{chip_board, chip_boards};
pub use self::described::{DescribedRig, DescribingFile};
pub use self::devices::{SharedPort, shared_ports};
pub use self::error::CatalogueError;
pub use self::reader::CatalogueReader;
#[cfg(test)]
pub(crate) use self::sources::built_in;
pub use self::sources::{Source, Unreadable, read};
use self::sources::{must_read, toml_files, without};
pub(crate) use self::surroundings::Surroundings;
use crate::LabConfig;
use crate::open_stores::OpenStores;

/// All boards and places.
#[derive(Debug, Clone)]
pub struct Catalogue {
    /// The boards.
    pub profiles: BoardSet,
    /// The places, and where runs are kept.
    pub rig: Rig,
    /// The rig file and its drop-ins; empty if there is none.
    pub rig_files: Vec<PathBuf>,
    /// Where runs are kept, if not where the rig file says.
    runs: Option<PathBuf>,
    /// Where what outlives a command is kept, if not where this user keeps it.
    state: Option<PathBuf>,
    /// As whom the places are used.
    user: RigUser,
    /// The shared fault signatures.
    fault_sets: KnownFaultSets,
    around: Surroundings,
    /// What all who look at these boards and places keep open.
    stores: Arc<OpenStores>,
}

impl Catalogue {
    /// Reads everything.
    ///
    /// # Errors
    /// A file cannot be read, or does not say what it should; all problems of all files are told.
    pub fn load(config: &LabConfig) -> Result<Self, CatalogueError> {
        Self::load_in(config, Surroundings::of_process())
    }

    /// Reads everything as seen from somewhere.
    pub(crate) fn load_in(
        config: &LabConfig,
        around: Surroundings,
    ) -> Result<Self, CatalogueError> {
        let rig_files = files_of_rig(config.rig.as_deref(), &around)?;
        let folders = board_folders(config.boards.as_deref(), &rig_files, &around)?;
        let mut bad = Vec::new();
        let fault_sets = KnownFaultSets::of(&folders, &mut bad)?;
        let mut profiles = BoardSet::of(&folders, &fault_sets, &mut bad)?;
        let mut texts = Vec::new();
        for path in &rig_files {
            texts.extend(must_read(path, &mut bad)?);
        }
        let texts = texts.iter().map(|Source { origin, text }| RigText { origin, text });
        let rig = Rig::parse_with(texts, &profiles, &DescribedChips).map_err(|more| {
            // Where a board is broken, a place on it seems to be.
            let echo = (!bad.is_empty()).then_some("rig::unknown-board");
            bad.extend(more.into_iter().filter_map(|problems| without(problems, echo)));
        });
        let Some(mut rig) = rig.ok().filter(|_| bad.is_empty()) else {
            return Err(CatalogueError::Problems(bad));
        };
        if rig.places.is_empty() {
            rig.places = Rig::of_profiles(profiles.values().map(|board| &**board)).places;
        }
        if let Some(at_probe) = &config.chip {
            // The name comes first: a slip in it is no reason to look for probes.
            chip_board(&BoardId::of_chip(&at_probe.chip), || fault_sets.get()).transpose()?;
            let place = at_probe.in_rig(&rig)?;
            rig.places.push(place);
        }
        profiles.extend(chip_boards(&rig.places, || fault_sets.get())?);
        Ok(Self {
            profiles,
            rig_files,
            runs: config.runs.clone(),
            state: config.state.clone(),
            user: with_groups(&config.user, &rig),
            rig,
            fault_sets,
            around,
            stores: Arc::default(),
        })
    }

    /// Returns the same as another user sees it. Reads no file.
    #[must_use]
    pub fn seen_by(&self, user: &RigUser) -> Self {
        Self { user: with_groups(user, &self.rig), ..self.clone() }
    }

    /// Finds a place and its board, with the consoles that it has there.
    pub fn place(&self, name: &PlaceName) -> Result<(Place, Arc<BoardProfile>), CatalogueError> {
        let place = self.visible_place(name).map_err(|mut unknown| {
            if name.chip().is_some() {
                unknown.help =
                    "verbs with --chip make a place of a chip by themselves; for others add \
                                one to the rig file, `board = \"chip:NAME\"`: jig discover"
                        .to_owned();
            }
            let is_board = self.profiles.keys().any(|board| board.as_str() == name.as_str());
            let rig_file = self.rig_files.first().cloned();
            CatalogueError::UnknownPlace { unknown, is_board, rig_file }
        })?;
        let resolve = |path: &Path| std::fs::canonicalize(path).ok();
        devices::unshared(place, self.rig.places.iter(), &resolve)
            .map_err(|shared| Box::new(shared.located(self.rig_texts())))?;
        let board = self.profile(&place.board)?;
        let mut place = place.clone();
        for console in &mut place.consoles {
            console.capture = Some(self.capture_client(&place.name));
        }
        let board = board.at(&place);
        Ok((place, Arc::new(board)))
    }

    /// Lists the consoles that end at the port of an earlier one, with the lines of the rig file.
    pub fn shared_ports(&self) -> Vec<SharedPort> {
        let found = devices::shared_ports(&self.rig).into_iter();
        found.map(|shared| shared.located(self.rig_texts())).collect()
    }

    /// Reads the rig files, each with its origin.
    fn rig_texts(&self) -> impl Iterator<Item = (String, String)> {
        let sources = self.rig_files.iter().filter_map(|file| read(file).ok());
        sources.map(|Source { origin, text }| (origin, text))
    }

    /// Returns where to ask for what is captured of a place: its holder, else `jig serve`.
    pub fn capture_client(&self, place: &PlaceName) -> CaptureClient {
        let places = self.places();
        let own = places.held_consoles_socket(place);
        // A holder that was killed has left its socket, but not the lock.
        let held = own.exists() && places.holder(place).is_ok_and(|holder| holder.is_some());
        let socket = if held { own } else { places.capture_socket() };
        CaptureClient { socket, place: place.clone(), by: self.caller() }
    }

    /// Says who uses a console, for others to read: what this process was called for, and by whom if that is another
    /// one than its user.
    fn caller(&self) -> String {
        let name = &self.user.identity.name;
        match *name == own_identity().name {
            true => command_line(),
            false => format!("{name}: {}", command_line()),
        }
    }

    /// Finds the place that a real probe belongs to, and the chip there.
    pub fn place_of_probe(&self, selector: &str) -> Option<(&PlaceName, Option<&str>)> {
        self.rig.places.iter().find_map(|place| {
            let bound = place.probe.as_ref()?;
            bound.selector.eq_ignore_ascii_case(selector).then(|| {
                let profile = self.profiles.get(&place.board);
                let chip = profile.and_then(|profile| profile.chip.as_deref());
                (&place.name, bound.chip.as_deref().or(chip))
            })
        })
    }

    /// Finds a board.
    pub fn profile(&self, board: &BoardId) -> Result<Arc<BoardProfile>, CatalogueError> {
        if let Some(known) = self.profiles.get(board) {
            return Ok(Arc::clone(known));
        }
        match chip_board(board, || self.fault_sets.get()) {
            Some(made) => Ok(Arc::new(made?)),
            None => Err(CatalogueError::UnknownBoard {
                board: board.clone(),
                known: self.profiles.keys().cloned().collect(),
            }),
        }
    }

    /// Shortens an origin that lies below the current directory, for people.
    pub fn near<'o>(&self, origin: &'o str) -> &'o str {
        let cwd = self.around.cwd.display().to_string();
        let below = origin.strip_prefix(&cwd).and_then(|rest| rest.strip_prefix('/'));
        below.filter(|rest| !rest.is_empty()).unwrap_or(origin)
    }

    /// Returns where runs are kept.
    pub fn runs_dir(&self) -> PathBuf {
        if let Some(dir) = &self.runs {
            return self.around.cwd.join(dir);
        }
        let storage = &self.rig.runs;
        let configured = storage.dir.as_ref().map(|dir| {
            let said_in = |path: &&PathBuf| Some(path.display().to_string()) == storage.origin;
            let folder = self.rig_files.iter().find(said_in).and_then(|path| path.parent());
            self.around.cwd.join(folder.unwrap_or(Path::new(""))).join(dir)
        });
        configured.unwrap_or_else(|| self.state().join("runs"))
    }

    /// Returns a place's known-good image, its path resolved.
    pub fn canary(&self, place: &Place) -> Option<Canary> {
        let canary = place.canary.as_ref()?;
        let folder = Path::new(&place.origin).parent().unwrap_or(Path::new(""));
        let image = self.around.cwd.join(folder).join(&canary.image);
        Some(Canary { image, ..canary.clone() })
    }

    /// Returns where what outlives a command is kept.
    pub fn state(&self) -> PathBuf {
        self.state.as_ref().map_or_else(|| self.around.state(), |dir| self.around.cwd.join(dir))
    }

    /// Returns where places keep their locks and flash. Not beside the runs: two commands
    /// with different runs folders still use one board.
    pub fn places(&self) -> Places {
        Places::new(&self.state())
    }

    /// Returns where the health of places is kept.
    pub fn health_store(&self) -> PathBuf {
        HealthStore::path_in(&self.state())
    }

    /// Returns how much is learnt without being asked.
    pub(crate) fn learning(&self) -> &KnowledgeSettings {
        &self.rig.knowledge
    }

    /// Returns the chip of each kind of board that names one.
    pub(crate) fn chips(&self) -> BTreeMap<BoardId, String> {
        let chip = |profile: &Arc<BoardProfile>| Some((profile.id.clone(), profile.chip.clone()?));
        self.profiles.values().filter_map(chip).collect()
    }

    /// Returns the stores that are open.
    pub(crate) fn stores(&self) -> &OpenStores {
        &self.stores
    }

    /// Returns as whom the places are used.
    pub fn user(&self) -> &RigUser {
        &self.user
    }

    /// Returns where the leases of places are kept.
    pub(crate) fn lease_store(&self) -> PathBuf {
        LeaseStore::path_in(&self.state())
    }

    /// Returns where image sets are, as an absolute path.
    pub fn images_dir(&self) -> PathBuf {
        let images = self.around.images();
        std::path::absolute(&images).unwrap_or(images)
    }

    /// Returns which runs may stay. Evidence is only ever removed where the rig file says so: a
    /// full disk is seen and recovered, a removed log never comes back.
    pub fn retention(&self) -> Retention {
        // A part of a day counts as a day: rather keep too long than too short.
        let days = |keep: std::time::Duration| keep.as_secs().div_ceil(86_400);
        Retention {
            keep_days: self.rig.runs.keep.map(|keep| u32::try_from(days(keep)).unwrap_or(u32::MAX)),
            keep_bytes: self.rig.runs.keep_size,
        }
    }
}

/// Finds out the groups of a user where a rule names one.
fn with_groups(user: &RigUser, rig: &Rig) -> RigUser {
    let names_groups = rig.access.name_groups() || rig.leases.names_groups();
    let groups = if names_groups { groups_of(&user.identity.name) } else { BTreeSet::new() };
    RigUser { groups, ..user.clone() }
}

/// The boards that can be read, and the problems of those that cannot.
pub struct Boards {
    /// The boards.
    pub profiles: Vec<BoardProfile>,
    /// The shared fault signatures.
    pub fault_sets: FaultSets,
    /// What is wrong with the rest.
    pub bad: Vec<Problems>,
}

impl Boards {
    /// Reads the boards as they are seen from here, and from the folders of the given
    /// files: where files are checked, boards next to them count as well.
    ///
    /// # Errors
    /// A folder or a file cannot be read.
    pub fn around(config: &LabConfig, files: &[PathBuf]) -> Result<Self, CatalogueError> {
        let around = Surroundings::of_process();
        let rig_files = files_of_rig(config.rig.as_deref(), &around)?;
        let mut boards = board_folders(config.boards.as_deref(), &rig_files, &around)?;
        let mut faults = boards.clone();
        for folder in files.iter().filter_map(|file| file.parent()) {
            boards.push(folder.join("board-profiles"));
            faults.push(folder.join("board-profiles"));
            faults.push(folder.to_owned());
        }
        Self::read(&boards, &faults)
    }

    /// Reads the profiles of some folders, and the fault sets of some folders.
    fn read(boards: &[PathBuf], faults: &[PathBuf]) -> Result<Self, CatalogueError> {
        let mut bad = Vec::new();
        let fault_sets = KnownFaultSets::of(faults, &mut bad)?;
        let boards = BoardSet::of(boards, &fault_sets, &mut bad)?;
        let profiles = boards.values().map(|board| (**board).clone()).collect();
        Ok(Self { profiles, fault_sets: fault_sets.get().clone(), bad })
    }
}

/// Returns how this process was called, shortened, for others to read.
fn command_line() -> String {
    let mut words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let program = words.next().unwrap_or_default();
    let name = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let line: Vec<String> = std::iter::once(name).chain(words.take(16)).collect();
    command_shown(&line).chars().take(200).collect()
}

/// Returns where what outlives a command is kept, as it is found from here. Reads no file.
pub fn state_folder(config: &LabConfig) -> PathBuf {
    let around = Surroundings::of_process();
    config.state.as_ref().map_or_else(|| around.state(), |folder| around.cwd.join(folder))
}

/// Returns the files that make the rig, as they are found from here.
///
/// # Errors
/// The rig file that the configuration names is not there, or its drop-ins cannot be listed.
pub fn rig_files(config: &LabConfig) -> Result<Vec<PathBuf>, CatalogueError> {
    files_of_rig(config.rig.as_deref(), &Surroundings::of_process())
}

/// Returns the rig file and its drop-ins, in the order in which they are read.
fn files_of_rig(
    wanted: Option<&Path>,
    around: &Surroundings,
) -> Result<Vec<PathBuf>, CatalogueError> {
    let main = match wanted {
        Some(path) => {
            let path = around.cwd.join(path);
            open_regular(&path)
                .map_err(|source| CatalogueError::RigFile { path: path.clone(), source })?;
            Some(path)
        }
        None => around.project_rig().or_else(|| {
            let user = around.user_config();
            let folders = user.into_iter().chain([around.machine_config()]);
            folders.map(|folder| folder.join("rig.toml")).find(|file| file.is_file())
        }),
    };
    let Some(main) = main else { return Ok(Vec::new()) };
    let mut drop_ins = main.clone().into_os_string();
    drop_ins.push(".d");
    let mut files = vec![main];
    files.extend(toml_files(Path::new(&drop_ins))?);
    Ok(files)
}

/// Returns the folders that may hold profiles, from the least to the most specific.
fn board_folders(
    wanted: Option<&Path>,
    rig_files: &[PathBuf],
    around: &Surroundings,
) -> Result<Vec<PathBuf>, CatalogueError> {
    let mut folders = vec![around.machine_config().join("boards")];
    folders.extend(around.user_config().map(|folder| folder.join("boards")));
    let beside = rig_files.first().and_then(|file| file.parent());
    let project = beside.into_iter().chain([around.cwd.as_path()]);
    folders.extend(project.map(|f| f.join("board-profiles")).find(|folder| folder.is_dir()));
    if let Some(folder) = wanted {
        let folder = around.cwd.join(folder);
        if !folder.is_dir() {
            return Err(CatalogueError::NoFolder { path: folder });
        }
        folders.push(folder);
    }
    Ok(folders)
}
