//! What to type next when the rig refused a command.

use jig_drivers::serial::capture_service::CaptureServiceError;
use jig_lab::{
    AttachError, BindError, CatalogueError, CheckError, ChecksError, CommandError, HoldError,
    InjectError, NoConsole, PowerCommandError, PruneError, RigViewError, RunError, SwitchError,
};
use jig_model::document::did_you_mean;
use jig_model::{BoardId, ConsoleName, DeviceName, Fault, PlaceName};
use jig_rig::console::escape;
use jig_rig::database::DatabaseError;
use jig_rig::session::{ImagesError, SessionError};
use jig_rig::store::{PlaceLockError, StoreError};

use super::{Failure, chain};

impl From<CatalogueError> for Failure {
    fn from(error: CatalogueError) -> Self {
        let failure = Self::of(error.fault(), &error);
        match error {
            CatalogueError::Problems(problems) => Self::problems(problems),
            CatalogueError::RigFile { .. } => {
                failure.help("give the right file to --rig or in JIG_RIG, or leave both out")
            }
            CatalogueError::NoFolder { .. } => {
                failure.help("give a folder of board profiles to --boards or in JIG_BOARDS")
            }
            CatalogueError::Unreadable { path, .. } => {
                let what = if path.is_dir() { "folder" } else { "file" };
                failure.help(format!("make the {what} readable for this user, or remove it"))
            }
            CatalogueError::SharedPort(_) => {
                failure.help("give each console a port of its own in the rig file")
            }
            CatalogueError::UnknownPlace { unknown, is_board: true, rig_file: Some(file) } => {
                failure.help(format!(
                    "the board {} is known, but no place has that name: add a [[place]] to {}, or \
                     see `jig boards`",
                    unknown.name,
                    escape(file.display().to_string().as_bytes())
                ))
            }
            // A board that can be emulated is a place where there is no rig file.
            CatalogueError::UnknownPlace { unknown, is_board: true, rig_file: None } => failure
                .help(format!(
                    "the board {} is known and is not emulated, so it needs a place in a rig file: \
                     `jig discover -o rig.toml` writes one of what is attached",
                    unknown.name
                )),
            CatalogueError::UnknownPlace { unknown, is_board: false, rig_file } => {
                let help = with_list(&unknown.help);
                failure.help(match rig_file {
                    Some(_) => help,
                    None => format!(
                        "{help}; there is no rig file yet (`jig discover -o rig.toml` writes one)"
                    ),
                })
            }
            CatalogueError::UnknownChip(unknown) => failure.help(unknown.help()),
            CatalogueError::NoProbe => failure.help("attach one, then see: jig probes, jig doctor"),
            CatalogueError::Probes(selectors) => {
                let unique = |one: &&String| selectors.iter().filter(|s| s == one).count() == 1;
                match selectors.iter().find(unique) {
                    Some(one) => failure.help(format!("name one: --probe {one}")),
                    None => failure.help(
                        "no serial number tells them apart: unplug all but one (jig probes shows ports)",
                    ),
                }
            }
            CatalogueError::ProbeOfPlace { place, .. } => {
                failure.help(format!("use the place: -b {place}"))
            }
            CatalogueError::Listing(_) => failure,
            CatalogueError::UnknownBoard { board, known } => {
                let known = known.iter().map(BoardId::as_str);
                failure.help(with_list(&did_you_mean(board.as_str(), known)))
            }
        }
    }
}

/// Adds where all names are found to a suggestion, which may be a question.
pub(super) fn with_list(help: &str) -> String {
    let joint = if help.ends_with('?') { "" } else { ";" };
    format!("{help}{joint} `jig boards` lists them")
}

impl From<RigViewError> for Failure {
    fn from(error: RigViewError) -> Self {
        let failure = Self::of(error.fault(), &error);
        match error {
            RigViewError::Catalogue(error) => error.into(),
            RigViewError::Health(error) => error.into(),
            RigViewError::NoRuns { .. } => failure
                .help("begin with `jig run -b BOARD app.elf`, or name another folder with --runs"),
            RigViewError::Store(StoreError::NotFound { .. }) => {
                failure.help("--runs names another folder")
            }
            RigViewError::Store(_) | RigViewError::Probe(_) | RigViewError::Audit(_) => failure,
        }
    }
}

impl From<PruneError> for Failure {
    fn from(error: PruneError) -> Self {
        let failure = Self::of(error.fault(), &error);
        match (error.help(), error) {
            (_, PruneError::Access(error)) => error.into(),
            (_, PruneError::Audit(error)) => error.into(),
            (Some(help), _) => failure.help(help),
            (None, _) => failure,
        }
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        Self::of(error.fault(), &error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::of(error.fault(), &error)
    }
}

impl From<PlaceLockError> for Failure {
    fn from(error: PlaceLockError) -> Self {
        match error {
            PlaceLockError::Leased(error) => (*error).into(),
            error => Self::new(error.fault(), escape(chain(&error).as_bytes()).to_string()),
        }
    }
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        let failure = Self::of(error.fault(), &error);
        match error {
            DatabaseError::Damaged { path, .. } => {
                // With its journal: SQLite would bring the old pages back from a journal that
                // stays.
                let (folder, path) = (path.with_extension("damaged"), path.display());
                let folder = folder.display();
                failure.help(format!(
                    "set it aside to begin a new one: mkdir {folder} && mv {path}* {folder}"
                ))
            }
            DatabaseError::Newer { .. } => {
                failure.help("use the jig that wrote it, or a newer one")
            }
            DatabaseError::Full { .. } => failure.help("free some space: jig runs prune"),
            DatabaseError::Busy { path, .. } => {
                failure.help(format!("see who has it: fuser -v {}", path.display()))
            }
            DatabaseError::Folder { .. }
            | DatabaseError::Unwritable { .. }
            | DatabaseError::Sqlite { .. }
            | DatabaseError::Encode { .. } => failure,
        }
    }
}

impl From<ChecksError> for Failure {
    fn from(error: ChecksError) -> Self {
        match error {
            ChecksError::Folder(_) => Self::of(error.fault(), &error)
                .help("free some space in the folder of temporary files, or set TMPDIR"),
            ChecksError::Switch(error) => error.into(),
            ChecksError::Bind(error) => error.into(),
        }
    }
}

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Catalogue(error) => error.into(),
            CheckError::Held(error) => error.into(),
            CheckError::Checks(error) => error.into(),
            CheckError::Health(error) => error.into(),
            CheckError::Cancelled => Self::of(error.fault(), &error),
        }
    }
}

impl From<PowerCommandError> for Failure {
    fn from(error: PowerCommandError) -> Self {
        let failure = Self::of(error.fault(), &error);
        match error {
            PowerCommandError::Catalogue(error) => error.into(),
            PowerCommandError::Switch(error) => error.into(),
            PowerCommandError::Store(error) => error.into(),
            PowerCommandError::Cancelled(place) => {
                failure.help(format!("jig power -b {place} status"))
            }
            PowerCommandError::NoEmulator(place) => {
                failure.help(format!("keep it on: jig hold -b {place}"))
            }
            PowerCommandError::EmulatorInUse { .. } => {
                failure.help("end that command: its board loses the power with it")
            }
            PowerCommandError::Encode(_) => failure,
        }
    }
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        let failure = Self::of(error.fault(), &error);
        match error {
            CommandError::Catalogue(error) => error.into(),
            CommandError::Plan(problems) => Self::problems(vec![*problems]),
            CommandError::NoFault { error, .. } => {
                failure.help(format!("{} (all faults: jig inject --list)", error.help))
            }
            CommandError::NoConsole(error) => error.into(),
            CommandError::NoCoverage(_) => failure.help(
                "run the image on an emulated Arm or RISC-V microcontroller (jig boards lists them), \
                 or leave out --coverage",
            ),
            CommandError::Attach(error) => error.into(),
            CommandError::Run(error) => error.into(),
            CommandError::Power(error) => error.into(),
            CommandError::Check(error) => error.into(),
            CommandError::Probe(error) => error.into(),
            CommandError::Access(error) => error.into(),
            CommandError::Audit(error) => error.into(),
            CommandError::Lease(error) => error.into(),
            CommandError::Hold(error) => error.into(),
        }
    }
}

impl From<HoldError> for Failure {
    fn from(error: HoldError) -> Self {
        let failure = Self::of(error.fault(), &error);
        match error {
            HoldError::Catalogue(error) => error.into(),
            HoldError::Board(error) => error.into(),
            HoldError::Switch(error) => error.into(),
            HoldError::Refused(refusal) => (*refusal).into(),
            HoldError::Line { place, .. } => failure.help(format!(
                "is it another version of jig? end it, and hold the board with this one: jig hold -b \
                 {place}"
            )),
            HoldError::ConsoleTaken { place, .. } => failure.help(format!(
                "end that terminal, or command the board over SSH if it has it: jig exec -b {place} \
                 --via ssh -- COMMAND"
            )),
            HoldError::Gone(place) => {
                failure.help(format!("hold the board again: jig hold -b {place}"))
            }
            HoldError::Socket(_) => failure,
        }
    }
}

impl From<NoConsole> for Failure {
    fn from(error: NoConsole) -> Self {
        let known: Vec<_> = error.known.iter().map(ConsoleName::as_str).collect();
        Self::of(Fault::Usage, &error).help(format!("it has: {}", known.join(", ")))
    }
}

impl From<AttachError> for Failure {
    fn from(error: AttachError) -> Self {
        let failure = Self::of(error.fault(), &error);
        match error {
            AttachError::Catalogue(error) => error.into(),
            AttachError::NoConsole(error) => error.into(),
            AttachError::NotCaptured { place, held: true, .. } => failure.help(format!(
                "the process that holds the board captures its serial ports and semihosting; RTT is \
                 shown by: jig rtt -b {place}"
            )),
            AttachError::NotCaptured { place, emulated: true, .. } => failure.help(format!(
                "an emulated board prints only while something runs it: jig hold -b {place} --image \
                 APP.elf; `--listen-only --since 1h` shows what its runs printed, and \
                 `--listen-only --follow` waits for the next one"
            )),
            AttachError::NotCaptured { .. } => failure.help(
                "start `jig serve`; `--listen-only --since 1h` shows what was captured before, and \
                 `--listen-only --follow` waits for `jig serve` or a run",
            ),
            AttachError::NoLines { with_lines, .. } => {
                let names: Vec<_> = with_lines.iter().map(ConsoleName::as_str).collect();
                failure.help(match names.as_slice() {
                    [] => "no console of this place has any: a `tty` or `rfc2217` that is a real \
                           serial port has"
                        .to_owned(),
                    names => format!("this place has a serial port at: {}", names.join(", ")),
                })
            }
            AttachError::Unresponsive => failure.help("is it stopped? start it anew"),
            AttachError::Input(CaptureServiceError::Refused(_)) => {
                failure.help("listen with --listen-only, or take the right to send with --take")
            }
            AttachError::Service(_)
            | AttachError::Input(_)
            | AttachError::ServiceEnded
            | AttachError::Line(_)
            | AttachError::Log(_)
            | AttachError::Task(_)
            | AttachError::Cancelled => failure,
        }
    }
}

impl From<SwitchError> for Failure {
    fn from(error: SwitchError) -> Self {
        use jig_drivers::power::PowerError;
        let failure = Self::of(error.fault(), &error);
        match error {
            SwitchError::NotSwitched { origin, devices, .. } => {
                let how = format!("`power = {{ device = \"...\", outlet = \"...\" }}` in {origin}");
                let known: Vec<_> = devices.iter().map(DeviceName::as_str).collect();
                failure.help(match known.as_slice() {
                    [] => format!("declare a [[power]] device, and add {how}"),
                    known => format!("add {how}; there are the devices {}", known.join(", ")),
                })
            }
            SwitchError::Power { switch, error } => match error {
                // These say it themselves.
                PowerError::Secret(_) | PowerError::Program(_) => failure,
                PowerError::Mismatch { .. } | PowerError::Contradicted { .. } => {
                    failure.help(format!(
                        "look at the device: is {} the right outlet, and does another program switch \
                     it?",
                        switch.outlet()
                    ))
                }
                PowerError::TimedOut { .. }
                | PowerError::Unreachable { .. }
                | PowerError::Refused { .. }
                | PowerError::Garbage { .. }
                | PowerError::Person(_)
                | PowerError::Busy { .. }
                | PowerError::Unusable { .. } => failure.help(format!(
                    "see what is switched how: jig power --explain {}; device {} is declared in {}",
                    switch.place, switch.device.name, switch.device.origin
                )),
            },
            SwitchError::Disturbs { switch, .. } => failure.help(format!(
                "wait for it with --wait 30s, or switch all the same with --force; on this \
                 outlet: {}, {}",
                switch.place,
                names(&switch.shared_with)
            )),
            SwitchError::Held(error @ PlaceLockError::Held { .. }) => {
                Self::from(error).help("wait for it with --wait 30s")
            }
            SwitchError::Held(error) => error.into(),
            SwitchError::Catalogue(error) => error.into(),
            SwitchError::Bind(error) => error.into(),
        }
    }
}

/// Names places for people.
pub(crate) fn names(names: &[PlaceName]) -> String {
    names.iter().map(PlaceName::as_str).collect::<Vec<_>>().join(", ")
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let fault = error.fault();
        match error {
            RunError::Catalogue(error) => error.into(),
            RunError::Bind(error) => error.into(),
            RunError::Inject(error) => {
                let failure = Self::new(Fault::Usage, format!("--inject {}", chain(&error)));
                match error {
                    InjectError::Unreadable { .. } => failure,
                    InjectError::NoTransport { wanted, .. } => failure
                        .help(format!("it strikes consoles that the rig file gives a `{wanted}`")),
                }
            }
            RunError::OutOfService { ref place, .. } => {
                let help = format!("prove or recover it: jig recover -b {place}");
                Self::new(fault, escape(chain(&error).as_bytes()).to_string()).help(help)
            }
            RunError::Held(error) => error.into(),
            RunError::Cancelled(_) => Self::of(fault, &error),
            RunError::Session(SessionError::Missing(missing)) => Self::missing(missing),
            RunError::Session(error) => {
                let failure = Self::of(fault, &error);
                match error {
                    SessionError::Images(ImagesError::NotTakenByFlasher { refused, .. }) => {
                        failure.help(refused.help)
                    }
                    SessionError::ResetsUnpowered { .. } => failure.help(
                        "put `{ power = \"on\" }` or `{ power = \"cycle\" }` before the reset",
                    ),
                    _ => failure,
                }
            }
            RunError::Store(error) => error.into(),
            RunError::NoVerdict(_) => Self::of(fault, &error),
        }
    }
}

#[cfg(test)]
mod tests {
    use jig_model::rig_file::UnknownPlace;

    use super::*;

    #[test]
    fn an_unknown_place_tells_where_all_are_listed() {
        let unknown =
            UnknownPlace { name: "microbit".to_owned(), help: "did you mean `x`?".into() };
        let told = |is_board, rig_file: Option<&str>| {
            let (unknown, rig_file) = (unknown.clone(), rig_file.map(Into::into));
            Failure::from(CatalogueError::UnknownPlace { unknown, is_board, rig_file })
        };
        let failure = told(false, Some("rig.toml"));
        assert_eq!(failure.exit_code(), 2);
        assert_eq!(failure.help.unwrap(), "did you mean `x`? `jig boards` lists them");
        for is_board in [false, true] {
            let help = told(is_board, None).help.unwrap();
            assert!(help.contains("jig discover -o rig.toml"), "{help}");
        }
        let help = told(true, Some("rig.toml")).help.unwrap();
        assert!(help.contains("no place has that name: add a [[place]] to rig.toml"), "{help}");
    }

    #[test]
    fn a_probe_is_named_only_where_the_name_means_one() {
        let help = |selectors: &[&str]| {
            let selectors = selectors.iter().map(|&one| one.to_owned()).collect();
            Failure::from(CatalogueError::Probes(selectors)).help.unwrap()
        };
        assert_eq!(
            help(&["0483:3748", "0483:3748", "1366:1015:7"]),
            "name one: --probe 1366:1015:7"
        );
        assert!(help(&["0483:3748", "0483:3748"]).contains("unplug all but one"));
    }
}
