//! A virtual probe: an emulated board that looks like a chip behind a debug port.
//!
//! Unmodified probe-rs drives it, through one of two frontends: in this process by probe-rs'
//! own traits, or from any process by the transport protocol of a remote probe that published
//! probe-rs knows. Behind both are the same debug port and the same board, which know
//! nothing of probe-rs.
//!
//! Everything here blocks and belongs on a plain thread; every wait has a limit.

mod adi;
mod board;
mod bus;
mod error;
mod frontends;
mod opener;
mod stats;
mod target;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::Rig;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jig_drivers::qemu::Machine;
use jig_model::profile::{BoardProfile, DebugSpec, MemoryRegion};
use probe_rs::config::TargetSelector;
use probe_rs::probe::Probe;

use crate::MemoryRange;
use adi::AdiPort;
use board::EmulatedBoard;
use bus::{Access, Bus, BusError};
pub use error::VirtualBoardError;
use error::failed;
pub use frontends::{ServeAt, ServerHandle};
pub use stats::VirtualStats;
pub use target::ChipDescription;

/// An emulated board behind a virtual probe. Clones are the same board; the machine loses
/// its power with the last of them.
#[derive(Clone)]
pub struct VirtualBoard {
    shared: SharedBoard,
    about: Arc<About>,
}

/// What the profile says, as far as a description for probe-rs needs it.
struct About {
    name: String,
    chip: Option<String>,
    memory: Vec<MemoryRegion>,
    spec: DebugSpec,
}

impl About {
    fn of(profile: &BoardProfile, spec: &DebugSpec) -> Self {
        Self {
            name: profile.id.to_string(),
            chip: profile.chip.clone(),
            memory: profile.memory.clone(),
            spec: spec.clone(),
        }
    }
}

impl VirtualBoard {
    /// Launches a machine and puts a probe before it. The core stands before its first
    /// instruction; flash is blank.
    ///
    /// # Errors
    /// The profile has no `[emulation.debug]`, or the machine cannot be launched.
    pub fn start(machine: Machine, profile: &BoardProfile) -> Result<Self, VirtualBoardError> {
        let emulation = profile.emulation.as_ref();
        let Some((emulation, spec)) = emulation.and_then(|e| Some((e, e.debug.as_ref()?))) else {
            return Err(VirtualBoardError::NotDescribed { board: profile.id.to_string() });
        };
        let board = EmulatedBoard::start(machine, spec, emulation.semihosting)?;
        let about = About::of(profile, spec);
        let shared = SharedBoard(Arc::new(Mutex::new(board)));
        Ok(Self { shared, about: Arc::new(about) })
    }

    /// Returns what the memory that keeps its content without power holds.
    ///
    /// # Errors
    /// The board is lost.
    pub fn flash_image(&self) -> Result<Vec<MemoryRange>, VirtualBoardError> {
        self.shared.lock().program_image().map_err(failed)
    }

    /// Sets what that memory holds; what is not given stays. The core takes new vectors at
    /// its next reset, such as that of [`Self::run_free`].
    ///
    /// # Errors
    /// A range lies elsewhere, or the board is lost.
    pub fn set_flash_image(&self, image: &[MemoryRange]) -> Result<(), VirtualBoardError> {
        self.shared.lock().set_program_image(image).map_err(failed)
    }

    /// Resets the board and lets it run without a debugger attached: what a board
    /// does that is powered on.
    ///
    /// # Errors
    /// The board is lost.
    pub fn run_free(&self) -> Result<(), VirtualBoardError> {
        self.shared.lock().run_free().map_err(failed)
    }

    /// Serves the probe to other programs, or to probe-rs in this one, until the handle is
    /// dropped. One client at a time; a second waits its turn.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn serve(&self, at: ServeAt) -> Result<ServerHandle, VirtualBoardError> {
        frontends::serve(self.debug_port(), at)
    }

    /// Returns what was done so far.
    pub fn stats(&self) -> VirtualStats {
        self.shared.lock().stats()
    }

    /// Takes the board's power; everything fails from now on.
    pub fn power_off(&self) {
        self.shared.lock().power_off();
    }

    /// Returns a probe for probe-rs. Several may exist; they share the board.
    pub(crate) fn open_probe(&self) -> Probe {
        frontends::open_probe(self.debug_port(), &self.about.name)
    }

    /// Returns what probe-rs is to take the board for.
    ///
    /// # Errors
    /// probe-rs refuses the description.
    pub(crate) fn target(&self) -> Result<TargetSelector, VirtualBoardError> {
        target::selector(&self.about)
    }

    fn debug_port(&self) -> AdiPort<SharedBoard> {
        let identity = self.shared.lock().port_identity();
        AdiPort::new(self.shared.clone(), identity)
    }
}

/// A board that several ports share.
#[derive(Clone)]
struct SharedBoard(Arc<Mutex<EmulatedBoard>>);

impl SharedBoard {
    fn lock(&self) -> MutexGuard<'_, EmulatedBoard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bus for SharedBoard {
    fn read(&mut self, address: u32, access: Access, out: &mut [u8]) -> Result<(), BusError> {
        self.lock().read(address, access, out)
    }

    fn write(&mut self, address: u32, access: Access, bytes: &[u8]) -> Result<(), BusError> {
        self.lock().write(address, access, bytes)
    }

    fn drive_reset(&mut self, level: bool) -> Result<(), BusError> {
        self.lock().drive_reset(level)
    }

    fn reset_level(&self) -> bool {
        self.lock().reset_level()
    }
}
