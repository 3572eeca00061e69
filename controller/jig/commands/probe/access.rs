//! How to get at a board's chip, from arguments and environment.

use std::sync::Arc;

use jig_model::PlaceName;
use jig_model::command::{Command, DebugAction, DebugCommand, EventSink, ProbeAccess, Reply};
use jig_model::debug::WireProtocol;
use jig_probe::{AttachMode, options_from_env};

use crate::args::{self, Common, ProbeTarget, ms};
use crate::commands::execute::execute;
use crate::commands::rig::OpenRig;
use crate::failure::Failure;
use crate::render::Screen;

/// A board that a verb is about.
pub(super) struct ProbedBoard {
    pub(super) rig: OpenRig,
    pub(super) place: PlaceName,
    pub(super) probe: ProbeAccess,
}

impl ProbedBoard {
    /// Opens the rig, and reads how to get at the board: by arguments, else by the environment.
    /// The environment means the probe on the desk: never an emulated board, and no place that the
    /// rig file describes without a probe.
    pub(super) fn of(common: &Common, at: &ProbeTarget) -> Result<Self, Failure> {
        let rig = OpenRig::open(common)?;
        let real = match rig.catalogue() {
            // The desk is here, and the rig is not.
            None => false,
            Some(catalogue) => {
                let (place, _) = catalogue.place(&at.target.board)?;
                let described =
                    place.flasher.is_some() || place.reset.is_some() || place.power.is_some();
                !place.is_emulated() && (place.has_probe() || !described)
            }
        };
        let lookup = |name: &str| std::env::var(name).ok().filter(|_| real);
        let (selector, named) =
            options_from_env(lookup).map_err(|error| Failure::of(error.fault(), &error))?;
        let said = &at.probe;
        let of_arguments = said.protocol.map(|protocol| match protocol {
            args::ProtocolArg::Swd => WireProtocol::Swd,
            args::ProtocolArg::Jtag => WireProtocol::Jtag,
        });
        let probe = ProbeAccess {
            selector: said.probe.clone().or(selector),
            chip: said.chip.clone().or(named.chip),
            speed_khz: said.speed.or(named.speed_khz),
            protocol: of_arguments.or(named.protocol),
            under_reset: said.under_reset || named.mode == AttachMode::UnderReset,
            allow_unlock: said.allow_unlock || named.allow_unlock,
            wait_ms: ms(said.wait),
        };
        Ok(Self { rig, place: at.target.board.clone(), probe })
    }

    /// Tells whether anything is said of a debug probe.
    pub(super) fn names_probe(&self) -> bool {
        self.probe != ProbeAccess { wait_ms: self.probe.wait_ms, ..ProbeAccess::default() }
    }

    /// Makes the command of an action.
    pub(super) fn command(&self, action: DebugAction) -> Command {
        let (place, probe) = (self.place.clone(), self.probe.clone());
        Command::Debug(DebugCommand { place, probe, action })
    }
}

/// Carries out an action; what happens meanwhile goes to `events`.
pub(super) fn debug(
    common: &Common,
    at: &ProbeTarget,
    action: DebugAction,
    events: Arc<dyn EventSink>,
) -> Result<Reply, Failure> {
    let board = ProbedBoard::of(common, at)?;
    execute(&board.rig, board.command(action), events)
}

/// What only the common events of a command are shown of.
pub(super) fn quiet(screen: &Screen) -> Arc<dyn EventSink> {
    Arc::new(screen.clone())
}
