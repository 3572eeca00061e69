//! The order in which files are looked up.

use std::fs;

use jig_model::Fault;

use super::*;

const RIG: &str = "version = 1\n[[place]]\nname = \"NAME\"\nboard = \"microbit\"\nemulator = {}\n";

/// A machine of its own: a home, an /etc and a project.
struct Machine {
    root: tempfile::TempDir,
    around: Surroundings,
}

fn machine() -> Machine {
    let root = tempfile::tempdir().unwrap();
    let path = |below: &str| root.path().join(below);
    let around = Surroundings {
        cwd: path("project/sub"),
        etc: path("etc"),
        variables: vec![("HOME", path("home").into())],
    };
    fs::create_dir_all(&around.cwd).unwrap();
    fs::create_dir(path("project/.git")).unwrap();
    Machine { root, around }
}

impl Machine {
    fn write(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn rig(&self, path: &str, name: &str) {
        self.write(path, &RIG.replace("NAME", name));
    }

    fn set(&mut self, name: &'static str, path: &str) {
        self.around.variables.push((name, self.root.path().join(path).into()));
    }

    fn load(&self, args: &[&str]) -> Result<Catalogue, CatalogueError> {
        Catalogue::load_in(&config(args), self.around.clone())
    }

    fn places(&self, args: &[&str]) -> Vec<String> {
        let places = self.load(args).unwrap().rig.places;
        places.iter().map(|place| place.name.to_string()).collect()
    }
}

/// Reads options as they are typed.
fn config(args: &[&str]) -> LabConfig {
    let value = |name| {
        let at = args.iter().position(|arg| *arg == name)?;
        args.get(at + 1).map(PathBuf::from)
    };
    LabConfig {
        rig: value("--rig"),
        boards: value("--boards"),
        runs: value("--runs"),
        ..LabConfig::default()
    }
}

fn built_in(board: &str) -> &'static str {
    super::built_in::BOARDS.iter().find(|(name, _)| *name == board).unwrap().1
}

#[test]
fn the_nearest_rig_file_wins() {
    let mut machine = machine();
    assert!(machine.places(&[]).contains(&"microbit".to_owned()), "every board is a place");
    machine.rig("etc/jig/rig.toml", "etc");
    assert_eq!(machine.places(&[]), ["etc"]);
    machine.rig("home/.config/jig/rig.toml", "home");
    assert_eq!(machine.places(&[]), ["home"]);
    machine.rig("config/jig/rig.toml", "xdg");
    machine.set("XDG_CONFIG_HOME", "config");
    assert_eq!(machine.places(&[]), ["xdg"]);
    machine.rig("rig.toml", "above-the-repository");
    assert_eq!(machine.places(&[]), ["xdg"]);
    machine.rig("project/rig.toml", "project");
    machine.rig("project/rig.toml.d/b.toml", "b");
    machine.rig("project/rig.toml.d/a.toml", "a");
    machine.write("project/rig.toml.d/.hidden.toml", "no rig file");
    assert_eq!(machine.places(&[]), ["project", "a", "b"]);
    machine.rig("flag.toml", "flag");
    assert_eq!(machine.places(&["--rig", "../../flag.toml"]), ["flag"]);
    let error = machine.load(&["--rig", "none.toml"]).unwrap_err();
    assert_eq!(error.fault(), Fault::Usage);
    assert!(error.to_string().contains("none.toml"), "{error}");
}

#[test]
fn the_most_specific_profile_wins() {
    let machine = machine();
    let write = |folder: &str, title: &str| {
        let line = format!("title = \"{title}\"");
        let text = built_in("microbit")
            .lines()
            .map(|old| if old.starts_with("title =") { line.clone() } else { old.to_owned() });
        machine.write(&format!("{folder}/microbit.toml"), &text.collect::<Vec<_>>().join("\n"));
    };
    let title = |args: &[&str]| {
        machine
            .load(args)
            .unwrap()
            .profiles
            .get(&"microbit".parse().unwrap())
            .unwrap()
            .title
            .clone()
    };
    assert!(title(&[]).contains("BBC"));
    for (folder, args) in [
        ("etc/jig/boards", &[][..]),
        ("home/.config/jig/boards", &[]),
        ("project/sub/board-profiles", &[]),
        ("flag", &["--boards", "../../flag"]),
    ] {
        write(folder, folder);
        assert_eq!(title(args), folder);
    }
    // Beside the rig file counts more than the current directory; broken ones that are
    // replaced do no harm.
    machine.rig("project/rig.toml", "a");
    machine.write("etc/jig/boards/microbit.toml", "broken");
    write("project/board-profiles", "beside");
    assert_eq!(title(&[]), "beside");
    assert_eq!(machine.load(&["--boards", "none"]).unwrap_err().fault(), Fault::Usage);
}

#[test]
fn all_problems_of_all_files_are_told_at_once() {
    let machine = machine();
    machine.write("etc/jig/boards/faults/common.toml", "version = 1\nfualt = 1\n");
    machine.write("etc/jig/boards/new.toml", "version = 2\n");
    machine.write("etc/jig/boards/binary.toml", "\u{fffd}");
    fs::write(machine.root.path().join("etc/jig/boards/binary.toml"), b"\xff\xfe").unwrap();
    machine
        .write("project/rig.toml", "version = 1\n[[place]]\nname = \"a\"\nboard = \"microbit\"\n");
    let CatalogueError::Problems(problems) = machine.load(&[]).unwrap_err() else {
        panic!("the files are broken");
    };
    let mut files: Vec<_> = problems.iter().map(|p| p.origin.rsplit('/').next().unwrap()).collect();
    files.sort_unstable();
    assert_eq!(files, ["binary.toml", "common.toml", "new.toml", "rig.toml"]);
}

#[test]
fn an_unknown_place_that_is_a_board_names_the_rig_file() {
    let machine = machine();
    let unknown = |name: &str| match machine.load(&[]).unwrap().place(&name.parse().unwrap()) {
        Err(CatalogueError::UnknownPlace { unknown, is_board, rig_file }) => {
            (unknown, is_board, rig_file)
        }
        other => panic!("{other:?}"),
    };
    let (similar, is_board, rig_file) = unknown("microbat");
    assert!(similar.help.contains("`microbit`") && rig_file.is_none(), "{}", similar.help);
    assert!(!is_board);
    let (_, is_board, rig_file) = unknown("arduino-uno");
    assert_eq!((is_board, rig_file), (true, None));
    machine.rig("project/rig.toml", "bench");
    let (_, is_board, rig_file) = unknown("microbit");
    let path = machine.root.path().join("project/rig.toml");
    assert_eq!((is_board, rig_file), (true, Some(path)));
}

#[test]
fn runs_are_kept_where_the_most_specific_one_says() {
    let mut machine = machine();
    let root = machine.root.path().to_owned();
    let dir = |machine: &Machine, args: &[&str]| machine.load(args).unwrap().runs_dir();
    assert_eq!(dir(&machine, &[]), root.join("home/.local/state/jig/runs"));
    machine.set("XDG_STATE_HOME", "state");
    assert_eq!(dir(&machine, &[]), root.join("state/jig/runs"));
    machine.write("project/rig.toml", "version = 1\n[runs]\ndir = \"kept\"\nkeep = \"36h\"\n");
    assert_eq!(dir(&machine, &[]), root.join("project/kept"));
    assert_eq!(dir(&machine, &["--runs", "flag"]), root.join("project/sub/flag"));
    let catalogue = machine.load(&[]).unwrap();
    let keep = Retention { keep_days: Some(2), keep_bytes: None };
    assert_eq!(catalogue.retention(), keep, "a part of a day counts as a day");
    assert!(!catalogue.rig.places.is_empty(), "a rig file may speak of runs alone");
    machine.around.variables.clear();
    fs::remove_file(root.join("project/rig.toml")).unwrap();
    assert_eq!(dir(&machine, &[]), root.join("project/sub/.jig/runs"));
    assert_eq!(machine.load(&[]).unwrap().retention(), Retention::default());
}

#[test]
fn image_sets_are_where_they_are_built() {
    let mut machine = machine();
    let root = machine.root.path().to_owned();
    assert_eq!(machine.around.images(), root.join("home/.cache/jig/images"));
    machine.set("XDG_CACHE_HOME", "cache");
    assert_eq!(machine.around.images(), root.join("cache/jig/images"));
    machine.set("JIG_IMAGES", "images");
    assert_eq!(machine.around.images(), root.join("images"));
}

#[test]
fn shipped_memory_is_memory_of_the_chip() {
    use jig_model::chip::{ChipName, ChipSource as _};
    use jig_probe::DescribedChips;

    let catalogue = machine().load(&[]).unwrap();
    let mut compared = 0;
    for profile in catalogue.profiles.values().filter(|profile| profile.emulation.is_none()) {
        let Some(chip) = &profile.chip else { continue };
        let facts = DescribedChips.chip(&chip.parse::<ChipName>().unwrap());
        let facts = facts.unwrap_or_else(|unknown| panic!("{}: {unknown}", profile.id));
        assert_eq!((facts.arch, &facts.name), (profile.arch, chip), "{}", profile.id);
        for region in &profile.memory {
            let holds = |described: &jig_model::profile::MemoryRegion| {
                described.kind == region.kind
                    && described.start <= region.start
                    && region.start + region.size <= described.start + described.size
            };
            let mut described = facts.memory.iter().map(|memory| &memory.region);
            assert!(described.any(holds), "{}: {region:?} of {:?}", profile.id, facts.memory);
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn shipped_profiles_say_what_was_proven_and_where_it_is_from() {
    use jig_model::profile::{ConsoleKind, Deploy, ProfileStatus};

    for profile in machine().load(&[]).unwrap().profiles.values() {
        let emulated = profile.emulation.is_some();
        let status = if emulated { ProfileStatus::Emulated } else { ProfileStatus::DataSheet };
        assert_eq!(profile.status, Some(status), "{}", profile.id);
        assert!(!profile.sources.is_empty(), "{}", profile.id);
        let knows_usb = profile.sources.iter().any(|source| source.contains("USB id"));
        assert_eq!(knows_usb, !profile.usb.is_empty(), "{}", profile.id);
        let names = |word: &str| profile.sources.iter().any(|source| source.contains(word));
        if emulated {
            continue;
        }
        let uarts = profile.consoles.iter().filter(|console| console.kind == ConsoleKind::Uart);
        for baud in uarts.map(|console| format!("{} baud", console.baud)) {
            assert!(names(&baud), "{}: no source for {baud}", profile.id);
        }
        if let Some(Deploy::Command(command)) = &profile.deploy {
            assert!(names(command.program()), "{}: {}", profile.id, command.program());
        }
    }
}
