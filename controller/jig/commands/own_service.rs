//! The service of this host, used without being named.
//!
//! # Design
//! *A service is used where it serves the rig that the arguments mean*: one that is described by the same
//! files, and either keeps runs and state in the same folders, or has a rig file and the user has named no
//! folder of state. In the second case the boards are those of the service, whose folder has their locks,
//! so the rig is used as one elsewhere, and its runs are copied to this user.
//!
//! *With the same folders, the service gets what has to come to its end without its caller*: runs, and
//! whatever writes to a board. Sessions end with their caller, and whatever looks reads the same files, so
//! both stay in this process. The command is carried out in the caller's folder and with its `PATH`, so it
//! names and finds the same files and programs.
//!
//! *A service of another version*, such as one that was not restarted behind an upgrade, gets no commands with
//! the same folders: both processes find the same locks. With other folders it is used as far as it understands,
//! because its boards are known to be free by its folder alone.
//!
//! *No socket breaks a command.* One that cannot be used is told of once, and the command is carried out by
//! this process. A service that ends or stops meanwhile is replaced by this process: jobs are folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jig_lab::{Catalogue, DescribedRig, state_folder};
use jig_model::chain;
use jig_model::command::{Command, PowerAction, Refusal};
use jig_model::plan::Plan;
use jig_model::power::PowerDriver;
use jig_model::protocol::BoxFuture;
use jig_rig::identity::own_identity;
use jig_service::client::{Connect, Connected, FoundRig, NoService, find_service};
use jig_service::protocol::OwnCaller;
use tokio::net::UnixStream;

use super::connects::{OwnConnect, caller};
use super::rpc::rig_host;
use crate::args::{Common, FoundService, RigName};
use crate::failure::Failure;
use crate::render::one_line;

/// The socket of the unit of the package.
const UNIT: &str = "/run/jig/rig.sock";

/// A socket at which a service of this host may listen.
struct Candidate {
    socket: PathBuf,
    /// Whether only a rig of the whole machine is served there.
    of_machine: bool,
}

fn candidates(common: &Common) -> Vec<Candidate> {
    let of_user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let of_user = of_user.filter(|folder| folder.is_absolute()).map(|folder| folder.join("jig"));
    let own = [Some(state_folder(&common.own_lab())), of_user].into_iter().flatten();
    let own = own.map(|folder| (folder.join("rig.sock"), false));
    own.chain([(UNIT.into(), true)])
        .filter(|(socket, _)| !matches!(socket.try_exists(), Ok(false)))
        .map(|(socket, of_machine)| Candidate { socket, of_machine })
        .collect()
}

/// Finds the service of this host that serves the rig which the arguments mean; looks once for all that
/// share the arguments. What cannot be read of the rig is told by who opens it.
pub(super) fn found(common: &Common) -> Option<FoundService> {
    // What is asked for names its rig, or is about this process.
    if common.rig.is_some() || common.chip.is_some() || common.identity.is_some() {
        return None;
    }
    common.service.get_or_find(|| look(common))
}

fn look(common: &Common) -> Option<FoundService> {
    let candidates = candidates(common);
    if candidates.is_empty() {
        return None;
    }
    let config = common.own_lab();
    // The same reading serves who opens the rig.
    let own = common.reader.read(&config).ok()?.described(&config).ok()?;
    let names_state = common.state.is_some();
    let mut candidates = candidates.into_iter();
    candidates.find_map(|Candidate { socket, of_machine }| {
        if of_machine && !own.is_of_machine() {
            return None;
        }
        match ask(&socket) {
            Ok(found) => {
                match (serves(&own, names_state, &found, socket.clone()), found.other_version) {
                    (Some(FoundService::SameFolders { .. }), Some(program)) => {
                        tell_unused(&socket, &chain(&NoService::Version { program }));
                        None
                    }
                    (used, _) => used,
                }
            }
            Err(why) => {
                if let Some(why) = why {
                    tell_unused(&socket, &why);
                }
                None
            }
        }
    })
}

/// Tells why a service is not used.
fn tell_unused(socket: &Path, why: &str) {
    let (socket, why) = (socket.display(), one_line(why));
    tracing::warn!(
        "the service of this host at {socket} is not used: {why}; this command is carried out without it; \
         --rig local does so without asking"
    );
}

/// Asks at a socket; where there is no answer, says why if it is worth to be told.
fn ask(socket: &Path) -> Result<FoundRig, Option<String>> {
    // A verb may ask from within its own runtime, which cannot wait for another one.
    let asking = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| Some(error.to_string()))?;
            let found =
                runtime.block_on(find_service(socket, env!("CARGO_PKG_VERSION"), &caller()));
            found.map_err(|error| error.is_worth_telling().then(|| chain(&error)))
        });
        thread.join()
    });
    // A panic has been told by its hook.
    asking.unwrap_or(Err(None))
}

/// Decides whether what was found serves the rig that this process would open, and how.
fn serves(
    own: &DescribedRig,
    names_state: bool,
    found: &FoundRig,
    socket: PathBuf,
) -> Option<FoundService> {
    let FoundRig { rig, same_user, other_version: _ } = found;
    if !own.has_same_files(rig) {
        return None;
    }
    if own.state == rig.state {
        let same = own.runs == rig.runs && own.images == rig.images && *same_user;
        return same.then(|| FoundService::SameFolders { socket, runs: rig.runs.clone() });
    }
    let boards_are_its = !own.rig_files.is_empty() && !names_state;
    boards_are_its.then_some(FoundService::OtherFolders { socket })
}

/// Tells whether a command is one for a service that keeps its runs and state in the same folders.
pub(super) fn takes(catalogue: &Catalogue, command: &Command) -> bool {
    let ends_by_itself = match command {
        Command::Test(test) => {
            // What is wrong with a plan is shown with its lines, which are here.
            Plan::parse(&test.plan.origin, &test.plan.text).is_ok()
        }
        Command::Power(power) => match power.action {
            PowerAction::On | PowerAction::Off | PowerAction::Cycle | PowerAction::Verify => true,
            PowerAction::Status | PowerAction::Explain => false,
        },
        Command::Run(_)
        | Command::Shell(_)
        | Command::Recover(_)
        | Command::Check(_)
        | Command::Flash(_)
        | Command::Erase(_)
        | Command::Reset(_) => true,
        Command::Console(_)
        | Command::Attach(_)
        | Command::LineControl(_)
        | Command::RecoverySteps(_)
        | Command::Debug(_)
        | Command::ServeProbe(_)
        | Command::Hold(_) => false,
    };
    ends_by_itself && !asks_person(catalogue, command)
}

/// Tells whether a person at the terminal switches the power of the place.
fn asks_person(catalogue: &Catalogue, command: &Command) -> bool {
    let Ok(place) = catalogue.rig.place(command.place().as_str()) else { return false };
    let device = place.power.as_ref().and_then(|power| catalogue.rig.power_device(&power.device));
    device.is_some_and(|device| matches!(device.driver, PowerDriver::Manual(_)))
}

/// Returns what a command has of this process.
pub(super) fn own_caller() -> Option<OwnCaller> {
    let folder = std::env::current_dir().ok()?;
    // Paths travel as text.
    folder.to_str()?;
    let value = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
    let variables = OwnCaller::VARIABLES.into_iter().filter_map(value).collect();
    Some(OwnCaller { folder, variables })
}

/// Connects to the service of this host; to this process itself, where that is gone or stops.
pub(super) struct ServiceConnect {
    socket: PathBuf,
    common: Common,
    is_gone: AtomicBool,
}

impl ServiceConnect {
    pub(super) fn new(common: &Common, socket: PathBuf) -> Self {
        let common = Common { rig: Some(RigName::Local), ..common.clone() };
        Self { socket, common, is_gone: AtomicBool::new(false) }
    }

    fn here(&self) -> Result<OwnConnect, Failure> {
        Ok(OwnConnect { host: Arc::new(rig_host(&self.common)?), identity: own_identity() })
    }
}

impl Connect for ServiceConnect {
    fn host(&self) -> String {
        format!("unix:{}", self.socket.display())
    }

    fn connect(&self) -> BoxFuture<'_, Result<Connected, Refusal>> {
        Box::pin(async {
            if !self.is_gone.load(Ordering::Relaxed)
                && let Ok(stream) = UnixStream::connect(&self.socket).await
            {
                let (from, to) = stream.into_split();
                return Ok(Connected { from: Box::new(from), to: Box::new(to) });
            }
            self.is_gone.store(true, Ordering::Relaxed);
            self.here().map_err(Refusal::from)?.connect().await
        })
    }

    fn turns_away(&self) -> bool {
        !self.is_gone.swap(true, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use jig_lab::DescribingFile;

    use super::*;

    fn described(file: Option<&str>, state: &str) -> DescribedRig {
        let stamp = Some((1, 2, 3, 4, 5));
        let files = file.map(|path| DescribingFile { path: path.into(), stamp });
        DescribedRig {
            rig_files: files.into_iter().collect(),
            board_files: Vec::new(),
            state: state.into(),
            runs: format!("{state}/runs").into(),
            images: "/images".into(),
        }
    }

    #[test]
    fn a_service_is_used_for_the_rig_that_it_serves_and_for_no_other_one() {
        let decide = |own: (Option<&str>, &str), there: (Option<&str>, &str), named, same_user| {
            let found =
                FoundRig { rig: described(there.0, there.1), same_user, other_version: None };
            match serves(&described(own.0, own.1), named, &found, "/s".into()) {
                None => "none",
                Some(FoundService::SameFolders { .. }) => "same",
                Some(FoundService::OtherFolders { .. }) => "other",
            }
        };
        let (rig, other) = (Some("/etc/jig/rig.toml"), Some("/srv/rig.toml"));
        for (own, there, named, same_user, used) in [
            // Boards that need no rig file are the service's only with its folders.
            ((None, "/a"), (None, "/a"), false, true, "same"),
            ((None, "/a"), (None, "/a"), true, true, "same"),
            ((None, "/a"), (None, "/b"), false, true, "none"),
            ((rig, "/a"), (rig, "/a"), true, true, "same"),
            ((rig, "/a"), (rig, "/a"), false, false, "none"),
            ((rig, "/a"), (rig, "/b"), false, false, "other"),
            ((rig, "/a"), (rig, "/b"), false, true, "other"),
            ((rig, "/a"), (rig, "/b"), true, false, "none"),
            ((rig, "/a"), (other, "/a"), false, true, "none"),
            ((rig, "/a"), (None, "/a"), false, true, "none"),
        ] {
            assert_eq!(decide(own, there, named, same_user), used, "{own:?} {there:?} {named}");
        }
        let mut moved = described(rig, "/a");
        moved.runs = "/elsewhere".into();
        let found = FoundRig { rig: described(rig, "/a"), same_user: true, other_version: None };
        assert!(serves(&moved, true, &found, "/s".into()).is_none());
    }
}
