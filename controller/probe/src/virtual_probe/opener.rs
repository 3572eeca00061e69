//! A virtual board as a source of probes for the worker.

use probe_rs::config::TargetSelector;
use probe_rs::probe::{DebugProbeError, Probe};

use super::{VirtualBoard, VirtualBoardError};
use crate::ProbeSource;
use crate::worker::{OpenProbe, Opener};

impl VirtualBoard {
    /// Returns this board as what a session can be attached to, in this process.
    ///
    /// # Errors
    /// probe-rs refuses the description of the board's chip.
    pub fn source(&self) -> Result<ProbeSource, VirtualBoardError> {
        let opener = BoardOpener { board: self.clone(), target: self.target()? };
        Ok(ProbeSource::Opener(Opener(Box::new(opener))))
    }
}

struct BoardOpener {
    board: VirtualBoard,
    target: TargetSelector,
}

impl OpenProbe for BoardOpener {
    fn name(&self) -> String {
        format!("virtual probe of {}", self.board.about.name)
    }

    fn open(&mut self) -> Result<Probe, DebugProbeError> {
        Ok(self.board.open_probe())
    }

    fn target(&self) -> TargetSelector {
        self.target.clone()
    }
}
