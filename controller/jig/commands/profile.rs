//! `jig profile check`, `jig profile new` and `jig profile show`.

mod draft;
mod new;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use jig_lab::{Boards, RigQuery, RigView, SharedPort, SheetLine, Source, read, shared_ports};
use jig_model::plan::Plan;
use jig_model::profile::{BoardProfile, FaultSetText, FaultSets};
use jig_model::rig_file::{Rig, RigText};
use jig_model::{BoardId, Problem, Problems, exit};
use jig_probe::DescribedChips;

use super::check::{Checked, check_all};
use super::execute::unexpected;
use super::rig::view;
use crate::args::{Common, ProfileCommand};
use crate::failure::Failure;
use crate::render::{Screen, Style, one_line};

/// Checks or shows profiles.
pub(crate) fn profile(
    common: &Common,
    screen: &Screen,
    command: ProfileCommand,
) -> Result<u8, Failure> {
    match command {
        ProfileCommand::Check { files } => check(common, screen, &files),
        ProfileCommand::New(args) => new::new(screen, &args),
        ProfileCommand::Show { board } => show(common, screen, board),
    }
}

/// Shows the profile of a kind of board of the rig.
///
/// JSON: the profile as Jig has read it.
fn show(common: &Common, screen: &Screen, board: BoardId) -> Result<u8, Failure> {
    let RigView::Profile(sheet) = view(common, RigQuery::Profile { board })? else {
        return Err(unexpected());
    };
    if screen.json() {
        screen.out_json(&sheet.profile);
        return Ok(exit::PASS);
    }
    let mut text = screen.out_paint().paint(Style::Bold, sheet.id.as_str());
    for SheetLine { name, value } in &sheet.lines {
        let _ = write!(text, "\n  {:<10}{}", one_line(name), one_line(value));
    }
    screen.out(&text);
    Ok(exit::PASS)
}

/// What a file seems to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Profile,
    FaultSet,
    RigFile,
    Plan,
}

/// Tells what a file is: by where it lies, else by the tables that only one kind has.
fn kind_of(path: &Path, text: &str) -> Kind {
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
    if folder == "faults" {
        return Kind::FaultSet;
    }
    if folder.as_encoded_bytes().ends_with(b".toml.d")
        || path.file_name().is_some_and(|name| name == "rig.toml")
    {
        return Kind::RigFile;
    }
    let begins = |heads: &[&str]| {
        text.lines().any(|line| {
            let line: String = line.chars().filter(|c| !matches!(c, ' ' | '\t')).collect();
            heads.iter().any(|head| line.starts_with(head))
        })
    };
    const OF_A_RIG: &[&str] =
        &["[[place]]", "[runs]", "[place.", "[[place.", "[[power]]", "[power.", "[[hub]]", "[hub."];
    if begins(OF_A_RIG) {
        Kind::RigFile
    } else if begins(&["[[stage.step"]) {
        Kind::Plan
    } else if begins(&["[[fault]]"]) && !begins(&["id=", "[[console]]", "[emulation]"]) {
        Kind::FaultSet
    } else {
        Kind::Profile
    }
}

/// Checks files of this host, also where a rig elsewhere is named.
fn check(common: &Common, screen: &Screen, files: &[PathBuf]) -> Result<u8, Failure> {
    let Boards { mut profiles, fault_sets, mut bad } = Boards::around(&common.own_lab(), files)?;
    let mut rig_file = false;
    for path in files {
        let Ok(Source { origin, text }) = read(path) else { continue };
        let kind = kind_of(path, &text);
        rig_file |= kind == Kind::RigFile;
        // A rig file may name boards that are checked along with it.
        if kind == Kind::Profile
            && let Ok(profile) = BoardProfile::parse(&origin, &text, &fault_sets)
        {
            profiles.retain(|known| known.id != profile.id);
            profiles.push(profile);
        }
    }
    // Profiles depend on fault sets, and only rig files on profiles.
    bad.retain(|problems| rig_file || problems.kind == "fault set");
    check_all(screen, files, bad, |source| check_one(source, &profiles, &fault_sets))
}

fn check_one(source: &Source, profiles: &[BoardProfile], faults: &FaultSets) -> Checked {
    let Source { origin, text } = source;
    let path = Path::new(origin);
    match kind_of(path, text) {
        Kind::Profile => {
            let result = BoardProfile::parse(origin, text, faults);
            Checked { kind: "board profile", result: result.map(|profile| profile.title) }
        }
        Kind::Plan => {
            let result = Plan::parse(origin, text);
            Checked { kind: "plan", result: result.map(|plan| super::plan::summary(&plan)) }
        }
        Kind::FaultSet => {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let set = FaultSetText { name: &stem, origin, text };
            let count = |sets: FaultSets| sets.get(&stem).map_or(0, <[_]>::len);
            let result = FaultSets::parse([set]).map(|sets| format!("{} signatures", count(sets)));
            Checked { kind: "fault set", result: result.map_err(first) }
        }
        Kind::RigFile => {
            let result = Rig::parse_with([RigText { origin, text }], &profiles, &DescribedChips);
            let result = result.map_err(first).and_then(|rig| match shares_ports(source, &rig) {
                Some(problems) => Err(problems),
                None => Ok(format!("{} places", rig.places.len())),
            });
            Checked { kind: "rig file", result }
        }
    }
}

/// Tells of the consoles of a rig that end at one device under two names.
fn shares_ports(Source { origin, text }: &Source, rig: &Rig) -> Option<Problems> {
    let problem = |shared: &SharedPort| Problem {
        check: "rig::shared-port",
        message: shared.to_string(),
        span: shared.span_in(text),
        help: "give each console a port of its own".to_owned(),
    };
    let list: Vec<Problem> = shared_ports(rig).iter().map(problem).collect();
    let (origin, source) = (origin.clone(), text.clone());
    (!list.is_empty()).then_some(Problems { kind: "rig file", origin, source, list })
}

/// Takes the problems of the only document out of its list.
fn first(mut list: Vec<jig_model::Problems>) -> jig_model::Problems {
    list.pop().unwrap_or_else(|| jig_model::Problems {
        kind: "document",
        origin: String::new(),
        source: String::new(),
        list: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn a_file_is_reported_once_and_strangers_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        let boards = root.path().join("board-profiles");
        std::fs::create_dir_all(boards.join("faults")).unwrap();
        let file = |path: &str, text: &str| {
            std::fs::write(root.path().join(path), text).unwrap();
            root.path().join(path)
        };
        let broken = file("board-profiles/broken.toml", "version = 1\n");
        let plan = file("plan.toml", "version = 1\n[[stage.step]]\n");
        let args = ["jig", "--boards", boards.to_str().unwrap(), "boards"];
        let common = crate::args::Cli::parse_from(args).common;
        let screen = Screen::new(&common);
        let files = |files: &[PathBuf]| match check(&common, &screen, files) {
            Ok(code) => panic!("{code}"),
            Err(failure) => {
                assert_eq!(failure.exit_code(), 3);
                failure.problems.into_iter().map(|p| p.origin).collect::<Vec<_>>()
            }
        };
        assert_eq!(files(std::slice::from_ref(&plan)).len(), 1);
        let indirect = boards.join("../board-profiles/broken.toml");
        assert_eq!(files(std::slice::from_ref(&indirect)), [indirect.display().to_string()]);
        let rig = file("rig.toml", "version = 2\n");
        let both = files(std::slice::from_ref(&rig));
        assert_eq!(both, [rig.display().to_string(), broken.display().to_string()]);
        // A set that the checked profile may need.
        let set = file("board-profiles/faults/mine.toml", "version = 2\n");
        let found = files(&[indirect]);
        let real = |path: &str| std::fs::canonicalize(path).unwrap();
        assert_eq!((found.len(), real(&found[1])), (2, std::fs::canonicalize(set).unwrap()));
        assert_eq!(
            check(&common, &screen, &[root.path().join("none")]).unwrap_err().exit_code(),
            2
        );
    }

    #[test]
    fn files_are_told_apart_by_name_and_content() {
        for (path, text, kind) in [
            ("boards/x.toml", "id = \"x\"\n[[fault]]\n", Kind::Profile),
            ("boards/faults/x.toml", "", Kind::FaultSet),
            ("x.toml", "version = 1\n[[fault]]\n", Kind::FaultSet),
            ("rig.toml", "", Kind::RigFile),
            ("rig.toml.d/a.toml", "", Kind::RigFile),
            ("lab.toml.d/a.toml", "", Kind::RigFile),
            ("lab.toml", "version = 1\n[[ place ]]\n", Kind::RigFile),
            ("hubs.toml", "version = 1\n[[hub]]\n", Kind::RigFile),
            ("pdus.toml", "version = 1\n[[power]]\n[power.manual]\n", Kind::RigFile),
            ("p.toml", "[[stage]]\n[[stage.step]]\n", Kind::Plan),
            ("garbage", "\0", Kind::Profile),
        ] {
            assert_eq!(kind_of(Path::new(path), text), kind, "{path}");
        }
    }
}
