//! Firmware with one bug, as a git repository with its plans, its right and its wrong repair.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::library::{SourceLibrary, board_of_projects, boards, libraries, made};
use super::mutate::{LineMutant, in_random_order, mutants};
use super::shop::RepairShop;
use crate::dice::TrialDice;
use xtask::failure::TaskFailure;
use xtask::process;
use xtask::project::{self, committed, copied, fixtures, git, listed, put_on_board};

/// Bugs of each library: fixes that are taken out, then mutants.
const BUGS: usize = 10;

/// Where a project comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BugOrigin {
    /// A project of this repository, with one bug.
    Written,
    /// A library of others, without a fix that its authors made.
    Reverted,
    /// A library of others, with one change.
    Mutant,
    /// A project of this repository that must stay as it is.
    Untouchable,
}

impl BugOrigin {
    pub(super) const ALL: [Self; 4] =
        [Self::Written, Self::Reverted, Self::Mutant, Self::Untouchable];
}

/// A project.
#[derive(Debug, Clone)]
pub(super) struct BenchProject {
    pub(super) name: String,
    pub(super) origin: BugOrigin,
    pub(super) board: String,
    /// The git repository.
    pub(super) repository: PathBuf,
    /// Folder of the plans.
    plans: PathBuf,
    /// Its right repair, where it has one.
    pub(super) fix: Option<PathBuf>,
    /// A repair that makes the tests pass and is wrong.
    pub(super) wrong: Option<PathBuf>,
    /// The build command.
    pub(super) build: Vec<String>,
}

impl BenchProject {
    /// Returns a plan: `plan`, `held-out`, or `check`, which only libraries have.
    pub(super) fn plan(&self, name: &str) -> Option<PathBuf> {
        Some(self.plans.join(format!("{name}.toml"))).filter(|path| path.is_file())
    }

    /// Builds a commit; returns the image, or none where it does not build.
    pub(super) fn built(
        &self,
        shop: &RepairShop,
        commit: &str,
    ) -> Result<Option<PathBuf>, TaskFailure> {
        shop.built(&self.repository, &self.build, commit)
    }

    /// Tells whether its tests fail.
    fn fails(&self, shop: &RepairShop) -> Result<bool, TaskFailure> {
        let (Some(image), Some(plan)) = (self.built(shop, "HEAD")?, self.plan("plan")) else {
            return Ok(false);
        };
        Ok(shop.verdict(&self.board, &plan, &image)? == "fail")
    }

    /// Runs all its plans, those included that no run is given; names the first that does not pass.
    pub(super) fn missed_plan(
        &self,
        shop: &RepairShop,
        image: &Path,
    ) -> Result<Option<&'static str>, TaskFailure> {
        for name in ["plan", "held-out", "check"] {
            let Some(plan) = self.plan(name) else { continue };
            if shop.verdict(&self.board, &plan, image)? != "pass" {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }
}

#[derive(Deserialize)]
struct About {
    kind: String,
}

/// Makes repositories of all projects that are written for this.
pub(super) fn written(shop: &RepairShop) -> Result<Vec<BenchProject>, TaskFailure> {
    let root = fixtures("repair");
    let board = board_of_projects()?;
    let mut found = Vec::new();
    for path in listed(&root)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == "support" {
            continue;
        }
        let about = path.join("about.toml");
        let text = fs::read_to_string(&about).map_err(TaskFailure::io("read", &about))?;
        let about: About = toml::from_str(&text)
            .map_err(|source| TaskFailure::Recipe { path: about, source: Box::new(source) })?;
        let repository = shop.folder.join("projects").join(&name).join("firmware");
        project::made(&name, &repository)?;
        let beside = |file: &str| Some(path.join(file)).filter(|file| file.is_file());
        let is_bug = about.kind == "repair";
        found.push(BenchProject {
            name,
            origin: if is_bug { BugOrigin::Written } else { BugOrigin::Untouchable },
            board: board.clone(),
            repository,
            plans: path.clone(),
            fix: beside("fix.diff"),
            wrong: beside("wrong.diff"),
            build: vec!["make".to_owned(), "--silent".to_owned()],
        });
    }
    Ok(found)
}

/// Puts bugs into libraries, one each, that their tests find: first fixes are taken out, then a mutator
/// changes a line. The boards take turns. A library none of whose projects is wanted is left out.
pub(super) fn of_libraries(
    shop: &RepairShop,
    seed: u64,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<BenchProject>, TaskFailure> {
    let cache = process::target_dir().join("bench/libraries");
    made(&cache)?;
    let boards = boards()?;
    let mut found = Vec::new();
    for library in libraries()? {
        let numbers = (1..=BUGS).filter(|bug| wanted(&format!("{}-{bug}", library.name)));
        let Some(last) = numbers.max() else { continue };
        let source = LibrarySource { shop, unpacked: library.unpacked(&cache)?, library };
        for board in &boards {
            source.is_sound(board)?;
        }
        let mut places = boards
            .iter()
            .cycle()
            .zip(1..=last)
            .map(|(board, bug)| BugPlace { board, name: format!("{}-{bug}", source.library.name) });
        found.extend(source.reverted(&mut places, &wanted)?);
        found.extend(source.mutated(seed, &mut places)?);
    }
    Ok(found)
}

/// What a bug is called, and the board that it is built for.
#[derive(Clone)]
struct BugPlace<'b> {
    board: &'b str,
    name: String,
}

/// A library, unpacked.
struct LibrarySource<'s> {
    shop: &'s RepairShop,
    library: SourceLibrary,
    unpacked: PathBuf,
}

impl LibrarySource<'_> {
    /// Checks that the library passes all its plans on a board as it is: else what a bug does to them
    /// says nothing.
    fn is_sound(&self, board: &str) -> Result<(), TaskFailure> {
        let name = format!("{}-{board}", self.library.name);
        let place = BugPlace { board, name };
        let project = self.assembled(place, BugOrigin::Untouchable, None)?;
        let missed = match project.built(self.shop, "HEAD")? {
            Some(image) => project.missed_plan(self.shop, &image)?,
            None => Some("build"),
        };
        let Some(missed) = missed else { return Ok(()) };
        let library = &self.library.name;
        let why = format!("{library} does not pass on {board} without a change: {missed}");
        Err(TaskFailure::Because(why))
    }

    /// Takes out a fix each.
    fn reverted<'b>(
        &self,
        places: &mut impl Iterator<Item = BugPlace<'b>>,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<BenchProject>, TaskFailure> {
        let mut found = Vec::new();
        for (fix, place) in self.library.fix.iter().zip(places) {
            if !wanted(&place.name) {
                continue;
            }
            let source = self.library.source(&self.unpacked, &fix.file)?;
            let changed =
                fix.taken_out(&source).map_err(|unfit| TaskFailure::Because(unfit.to_string()))?;
            let change = Some((fix.file.as_str(), changed.as_str()));
            let project = self.assembled(place, BugOrigin::Reverted, change)?;
            let (name, board) = (&project.name, &project.board);
            println!("repair: {name} on {board}: without {}: {}", fix.fixed_in, fix.what);
            if !project.fails(self.shop)? {
                let why = format!("the tests of {name} do not miss the fix of {}", fix.fixed_in);
                return Err(TaskFailure::Because(why));
            }
            found.push(project);
        }
        Ok(found)
    }

    /// Changes a line each.
    fn mutated<'b>(
        &self,
        seed: u64,
        places: &mut impl Iterator<Item = BugPlace<'b>>,
    ) -> Result<Vec<BenchProject>, TaskFailure> {
        let mut dice = TrialDice::new(seed, &self.library.name);
        let mut all = Vec::new();
        for file in &self.library.mutated {
            let source = self.library.source(&self.unpacked, file)?;
            let order = in_random_order(mutants(&source), &mut dice);
            all.push((file, source, order));
        }
        let mut found = Vec::new();
        let mut place = places.next();
        // Each file in turn, so that a long one does not have all bugs.
        while place.is_some() {
            let mut tried = false;
            for (file, source, order) in &mut all {
                let Some(here) = &place else { break };
                let Some(mutant) = order.pop() else { continue };
                tried = true;
                let changed = with_line(source, &mutant);
                let change = Some((file.as_str(), changed.as_str()));
                let project = self.assembled(here.clone(), BugOrigin::Mutant, change)?;
                if project.fails(self.shop)? {
                    let (name, board, line) = (&project.name, &project.board, mutant.line);
                    println!("repair: {name} on {board}: {file}:{line}: {}", mutant.text.trim());
                    found.push(project);
                    place = places.next();
                }
            }
            if !tried {
                let library = &self.library.name;
                let why = format!("{library} has too few changes that its tests find");
                return Err(TaskFailure::Because(why));
            }
        }
        Ok(found)
    }

    /// Makes the repository of the library with a change of one file; its right repair is the library.
    fn assembled(
        &self,
        place: BugPlace<'_>,
        origin: BugOrigin,
        change: Option<(&str, &str)>,
    ) -> Result<BenchProject, TaskFailure> {
        let BugPlace { board, name } = place;
        let folder = self.shop.folder.join("projects").join(&name);
        let repository = folder.join("firmware");
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(TaskFailure::io("remove", &folder))?;
        }
        let all = fixtures("repair-libraries");
        let plans = all.join(&self.library.name);
        copied(&fixtures("repair/support"), &repository)?;
        copied(&all.join("support"), &repository)?;
        copied(&plans, &repository)?;
        put_on_board(board, &repository)?;
        self.library.write(&self.unpacked, &repository)?;
        let fix = folder.join("fix.diff");
        if let Some((file, changed)) = change {
            let path = repository.join(file);
            let right = fs::read(&path).map_err(TaskFailure::io("read", &path))?;
            fs::write(&path, changed).map_err(TaskFailure::io("write", &path))?;
            committed(&repository)?;
            fs::write(&path, right).map_err(TaskFailure::io("write", &path))?;
            let diff = process::capture(git(&repository).arg("diff"))?;
            fs::write(&fix, diff).map_err(TaskFailure::io("write", &fix))?;
            process::run(git(&repository).args(["checkout", "--quiet", "."]))?;
        } else {
            committed(&repository)?;
        }
        let flags = format!("CPPFLAGS={}", self.library.flags);
        Ok(BenchProject {
            name,
            origin,
            board: board.to_owned(),
            repository,
            plans,
            fix: change.is_some().then_some(fix),
            wrong: None,
            build: vec!["make".to_owned(), "--silent".to_owned(), flags],
        })
    }
}

fn with_line(source: &str, mutant: &LineMutant) -> String {
    let numbered = source.split_inclusive('\n').zip(1..);
    let line = |(line, number): (&str, usize)| {
        if number == mutant.line { format!("{}\n", mutant.text) } else { line.to_owned() }
    };
    numbered.map(line).collect()
}
