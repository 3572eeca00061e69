//! Chooses the drivers that bind the parts of a place; `rig`, `drivers` and `probe` meet here.

use std::path::PathBuf;
use std::sync::Arc;

use jig_drivers::flasher::CommandFlasherFactory;
use jig_drivers::host::LocalHost;
use jig_drivers::power::{OutletFactory, PowerContext};
use jig_drivers::qemu::CodeCollector;
use jig_drivers::reset::CommandResetFactory;
use jig_drivers::serial::ConsolesFactory;
use jig_drivers::shell::ShellFactory;
use jig_drivers::ssh::SshAccount;
use jig_model::Fault;
use jig_model::profile::BoardProfile;
use jig_model::protocol::{
    BindContext, DriverError, DriverFactory, Host, NoLedger, NoSink, PartFactory, ProcessLedger,
    Protocols,
};
use jig_model::rig_file::Place;
use jig_probe::{EmulatedProbeFactory, ProbeFactory, WatchedEmulator};

use crate::held::HeldParts;
use crate::{Catalogue, Lab};

/// The parts on a board itself behind its emulator, in the order in which a binding joins them: what
/// flashes a board stands before the probe that has to let go of it.
const BOARD_FACTORIES: &[&dyn PartFactory] =
    &[&EmulatedProbeFactory, &CommandFlasherFactory, &ProbeFactory];

/// The parts round it, which stand before its power; joined behind the rig's power devices.
const OUTER_FACTORIES: &[&dyn PartFactory] = &[&CommandResetFactory, &ConsolesFactory];

/// The parts on a board itself.
fn board_parts(emulator: &WatchedEmulator) -> impl Iterator<Item = &dyn PartFactory> {
    let emulator: &dyn PartFactory = emulator;
    [emulator].into_iter().chain(BOARD_FACTORIES.iter().copied())
}

/// Joins the parts of a place, one after the other.
fn join<'p>(
    context: &BindContext,
    parts: impl IntoIterator<Item = &'p dyn PartFactory>,
) -> Result<Protocols, DriverError> {
    parts.into_iter().try_fold(Protocols::default(), |built, part| part.join(context, built))
}

/// Binds a place for a run: all its parts.
pub(crate) struct PlaceParts {
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) context: PowerContext,
    /// Collects the code that emulated boards execute, if that is wanted.
    pub(crate) code: Option<CodeCollector>,
    /// What is used of a board that another process holds; none where the place is the run's own.
    pub(crate) held: Option<HeldParts>,
}

impl DriverFactory for PlaceParts {
    fn bind(&self, context: BindContext) -> Result<Protocols, DriverError> {
        let shell = ShellFactory { account: SshAccount::of_process() };
        if let Some(held) = &self.held {
            return held.bind(&context, &shell);
        }
        let (devices, around) = (&self.catalogue.rig.power, self.context.clone());
        let outlets = OutletFactory { devices, context: around };
        let emulator = WatchedEmulator { code: self.code.clone() };
        let inner = board_parts(&emulator).chain([&outlets as &dyn PartFactory]);
        let outer = OUTER_FACTORIES.iter().copied().chain([&shell as &dyn PartFactory]);
        join(&context, inner.chain(outer))
    }
}

/// Says why a board was not bound to its drivers.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct BindError(#[from] DriverError);

impl BindError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        self.0.cause.fault().unwrap_or(Fault::Lab)
    }
}

/// Makes the host that a run's commands run on: this one, from the current directory.
pub(crate) fn host(ledger: Arc<dyn ProcessLedger>) -> Box<dyn Host> {
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    Box::new(LocalHost { cwd, ledger })
}

impl Lab {
    /// Binds a board that is only asked questions: its power and its consoles are left alone, and
    /// evidence goes to a folder of the caller.
    pub(crate) fn bind_quietly(
        &self,
        place: &Place,
        profile: &Arc<BoardProfile>,
        evidence: PathBuf,
    ) -> Result<Protocols, BindError> {
        let context = BindContext {
            profile: Arc::clone(profile),
            place: Arc::new(place.clone()),
            sink: Arc::new(NoSink),
            evidence,
            images: self.catalogue.images_dir(),
            ledger: Arc::new(NoLedger),
        };
        Ok(join(&context, board_parts(&WatchedEmulator { code: None }))?)
    }

    /// Returns what binds the places of a run.
    pub(crate) fn parts(&self) -> PlaceParts {
        let (catalogue, context) = (Arc::clone(&self.catalogue), self.power_context());
        PlaceParts { catalogue, context, code: None, held: None }
    }
}
