//! Firmware with one bug, as a git repository with its plans, its right and its wrong repair.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::library::{SourceLibrary, libraries, made};
use super::mutate::{LineMutant, in_random_order, mutants};
use super::shop::RepairShop;
use crate::dice::TrialDice;
use xtask::failure::TaskFailure;
use xtask::process;
use xtask::project::{self, committed, copied, fixtures, git, listed};

/// Bugs of each library.
const BUGS: usize = 10;

/// Where a project comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BugOrigin {
    /// A project of this repository, with one bug.
    Written,
    /// A library of others, with one change.
    Mutant,
    /// A project of this repository that must stay as it is.
    Untouchable,
}

/// A project.
#[derive(Debug, Clone)]
pub(super) struct BenchProject {
    pub(super) name: String,
    pub(super) origin: BugOrigin,
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
        Ok(shop.verdict(&plan, &image)? == "fail")
    }
}

#[derive(Deserialize)]
struct About {
    kind: String,
}

/// Makes repositories of all projects that are written for this.
pub(super) fn written(shop: &RepairShop) -> Result<Vec<BenchProject>, TaskFailure> {
    let root = fixtures("repair");
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
            repository,
            plans: path.clone(),
            fix: beside("fix.diff"),
            wrong: beside("wrong.diff"),
            build: vec!["make".to_owned(), "--silent".to_owned()],
        });
    }
    Ok(found)
}

/// Puts bugs into libraries, one each, that their tests find. A library none of whose projects is
/// wanted is left out.
pub(super) fn mutated(
    shop: &RepairShop,
    seed: u64,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<BenchProject>, TaskFailure> {
    let cache = process::target_dir().join("bench/libraries");
    made(&cache)?;
    let mut found = Vec::new();
    for library in libraries()? {
        if !(1..=BUGS).any(|bug| wanted(&format!("{}-{bug}", library.name))) {
            continue;
        }
        let unpacked = library.unpacked(&cache)?;
        let mut dice = TrialDice::new(seed, &library.name);
        let mut all = Vec::new();
        for file in &library.mutated {
            let source = original(&library, &unpacked, file)?;
            let order = in_random_order(mutants(&source), &mut dice);
            all.push((file.clone(), source, order));
        }
        let mut kept = 0;
        // Each file in turn, so that a long one does not have all bugs.
        while kept < BUGS {
            let mut tried = false;
            for (file, source, order) in &mut all {
                let Some(mutant) = order.pop().filter(|_| kept < BUGS) else { continue };
                tried = true;
                let name = format!("{}-{}", library.name, kept + 1);
                let changed = with_line(source, &mutant);
                let project = assembled(shop, &library, &unpacked, (name, file), &changed)?;
                if project.fails(shop)? {
                    let line = mutant.line;
                    println!("repair: {}: {file}:{line}: {}", project.name, mutant.text.trim());
                    kept += 1;
                    found.push(project);
                }
            }
            if !tried {
                let why = format!("{} has too few changes that its tests find", library.name);
                return Err(TaskFailure::Because(why));
            }
        }
    }
    Ok(found)
}

fn original(library: &SourceLibrary, unpacked: &Path, file: &str) -> Result<String, TaskFailure> {
    let from = library.files.iter().find(|(_, to)| *to == file).map(|(from, _)| from);
    let path = unpacked.join(from.map_or(file, String::as_str));
    let bytes = fs::read(&path).map_err(TaskFailure::io("read", &path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn with_line(source: &str, mutant: &LineMutant) -> String {
    let numbered = source.split_inclusive('\n').zip(1..);
    let line = |(line, number): (&str, usize)| {
        if number == mutant.line { format!("{}\n", mutant.text) } else { line.to_owned() }
    };
    numbered.map(line).collect()
}

/// Makes the repository of a library with a bug; its right repair is the library.
fn assembled(
    shop: &RepairShop,
    library: &SourceLibrary,
    unpacked: &Path,
    (name, file): (String, &str),
    changed: &str,
) -> Result<BenchProject, TaskFailure> {
    let folder = shop.folder.join("projects").join(&name);
    let repository = folder.join("firmware");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(TaskFailure::io("remove", &folder))?;
    }
    let plans = fixtures("repair-libraries").join(&library.name);
    copied(&fixtures("repair/support"), &repository)?;
    copied(&plans, &repository)?;
    library.copy(unpacked, &repository)?;
    let path = repository.join(file);
    let right = fs::read(&path).map_err(TaskFailure::io("read", &path))?;
    fs::write(&path, changed).map_err(TaskFailure::io("write", &path))?;
    committed(&repository)?;
    fs::write(&path, right).map_err(TaskFailure::io("write", &path))?;
    let fix = folder.join("fix.diff");
    let diff = process::capture(git(&repository).arg("diff"))?;
    fs::write(&fix, diff).map_err(TaskFailure::io("write", &fix))?;
    process::run(git(&repository).args(["checkout", "--quiet", "."]))?;
    let flags = format!("CPPFLAGS={}", library.flags);
    Ok(BenchProject {
        name,
        origin: BugOrigin::Mutant,
        repository,
        plans,
        fix: Some(fix),
        wrong: None,
        build: vec!["make".to_owned(), "--silent".to_owned(), flags],
    })
}
