//! What can go wrong with a probe, and whose fault that is.

use std::time::Duration;

use jig_model::{Cause, Fault};

use crate::FlashLeft;

/// Says why a probe could not do as asked.
///
/// Every text fits "failed to ...: {error}" lines; what lies below is the source.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// No probe answers to the selector.
    #[error("there is no probe {selector}{}", or_among(.present))]
    NotFound {
        /// What was asked for.
        selector: String,
        /// Selectors of the probes that there are.
        present: Vec<String>,
    },
    /// Several probes answer to the selector.
    #[error("{selector} means more than one probe: {}", .matching.join(", "))]
    Ambiguous {
        /// What was asked for.
        selector: String,
        /// Which there are, told apart by port path where they have no serial number.
        matching: Vec<String>,
    },
    /// Another process holds the probe.
    #[error("probe {selector} is held by {holder}")]
    Held {
        /// The probe.
        selector: String,
        /// The process, as far as this machine tells: program and process id.
        holder: String,
    },
    /// The chip's name is not known.
    #[error("chip {name:?} is not known{}", or_nearest(.nearest))]
    UnknownChip {
        /// The name.
        name: String,
        /// Names like it.
        nearest: Vec<String>,
    },
    /// The chip found is not the chip expected.
    #[error("the board holds {found}, not {expected}")]
    WrongChip {
        /// What the profile says.
        expected: String,
        /// What the debug port says.
        found: String,
    },
    /// The chip refuses debug access until it is erased.
    #[error("the chip is protected: unlocking erases {erases}")]
    Protected {
        /// What would be lost.
        erases: String,
    },
    /// The target does not answer through a working probe.
    #[error("the target does not answer after {attempts} attempts")]
    NoTarget {
        /// How often it was tried.
        attempts: u32,
        /// The last answer.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The probe itself stopped answering.
    #[error("the probe was lost during {during}")]
    ProbeLost {
        /// The operation.
        during: String,
        /// What was seen.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The probe did not answer in time; its thread is given up.
    #[error("the probe did not answer to {during} within {} s", .timeout.as_secs())]
    Hung {
        /// The operation.
        during: String,
        /// How long it was waited for.
        timeout: Duration,
    },
    /// The payload lies where the chip has no memory that can be written.
    #[error("{start:#x}..{end:#x} does not fit {chip}, whose memory is {memory}")]
    DoesNotFit {
        /// First address.
        start: u64,
        /// One past the last.
        end: u64,
        /// The chip.
        chip: String,
        /// Its memory, for people.
        memory: String,
    },
    /// The chip's description has no algorithm for a flash.
    #[error("{chip} has no flash algorithm for {start:#x}..{end:#x}")]
    NoFlashAlgorithm {
        /// The chip.
        chip: String,
        /// First address of the flash.
        start: u64,
        /// One past the last.
        end: u64,
    },
    /// What was read back differs.
    #[error("the flash holds {found:#04x} at {address:#x} where {expected:#04x} was written")]
    VerifyFailed {
        /// The first address that differs.
        address: u64,
        /// What was written.
        expected: u8,
        /// What was read.
        found: u8,
    },
    /// The chip's flash algorithm or controller failed.
    #[error("the flash could not be {what}")]
    FlashFailed {
        /// `erased at 0x...`, `programmed at 0x...`.
        what: String,
        /// What was seen.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The target's bus refused an access; the session goes on.
    #[error("the target refused to {access} {address:#x}")]
    BusFault {
        /// `read` or `write`.
        access: &'static str,
        /// The address.
        address: u64,
    },
    /// The operation needs a core that stands still.
    #[error("the core is running: halt it first")]
    NotHalted,
    /// The core did not do as asked in time.
    #[error("the core did not {what} within {} ms", .timeout.as_millis())]
    CoreTimeout {
        /// `halt`, `step`, ...
        what: &'static str,
        /// The limit.
        timeout: Duration,
    },
    /// There is no such register.
    #[error("the core has no register {name:?}{}", or_nearest(.nearest))]
    UnknownRegister {
        /// The name.
        name: String,
        /// Names like it.
        nearest: Vec<String>,
    },
    /// All hardware breakpoints are in use.
    #[error("all {count} hardware breakpoints are in use")]
    NoBreakpointLeft {
        /// How many there are.
        count: u32,
    },
    /// The core can have no hardware breakpoint at the address.
    #[error("the core can have no hardware breakpoint at {address:#x}")]
    NoBreakpointAt {
        /// The address.
        address: u64,
    },
    /// An option, a variable or a selector has a value that means nothing.
    #[error("{name} is {value:?}, not {wanted}")]
    BadOption {
        /// What it is called.
        name: String,
        /// What it says.
        value: String,
        /// What it should say.
        wanted: &'static str,
    },
    /// The request contradicts itself: bytes are to be written and to be kept.
    #[error("{start:#x}..{end:#x} is part of the image and to be preserved")]
    PreserveOverlaps {
        /// First address of what both claim.
        start: u64,
        /// One past the last.
        end: u64,
    },
    /// A flash operation was asked to stop.
    #[error("cancelled: {}", .left.words())]
    Cancelled {
        /// What the memory holds now.
        left: FlashLeft,
    },
    /// The probe's thread has ended.
    #[error("the probe's owner has ended")]
    Gone,
    /// Anything else probe-rs says.
    #[error("{what}")]
    Failed {
        /// What was tried.
        what: String,
        /// What was seen.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

fn or_among(present: &[String]) -> String {
    match present {
        [] => "; none is attached".to_owned(),
        some => format!("; there are {}", some.join(", ")),
    }
}

fn or_nearest(names: &[String]) -> String {
    match names {
        [] => String::new(),
        some => format!("; did you mean {}?", some.join(", ")),
    }
}

impl ProbeError {
    /// Returns the cause a run ends with if no recovery helps, for a deployment.
    pub fn cause(&self) -> Cause {
        self.cause_during(Cause::DeployFailed)
    }

    /// Returns the cause a run ends with if no recovery helps: that of the error itself, or
    /// of what was tried where the error has none.
    pub fn cause_during(&self, tried: Cause) -> Cause {
        match self {
            Self::Cancelled { .. } => Cause::Cancelled,
            Self::NotFound { .. } | Self::Ambiguous { .. } => Cause::ProbeMissing,
            Self::Held { .. } => Cause::ProbeBusy,
            Self::ProbeLost { .. } | Self::Hung { .. } | Self::Gone => Cause::ProbeLost,
            Self::NoTarget { .. } => Cause::TargetUnresponsive,
            Self::Protected { .. } => Cause::ChipProtected,
            Self::WrongChip { .. } | Self::UnknownChip { .. } => Cause::WrongChip,
            Self::DoesNotFit { .. }
            | Self::NoFlashAlgorithm { .. }
            | Self::VerifyFailed { .. }
            | Self::FlashFailed { .. }
            | Self::BusFault { .. }
            | Self::NotHalted
            | Self::CoreTimeout { .. }
            | Self::UnknownRegister { .. }
            | Self::NoBreakpointLeft { .. }
            | Self::NoBreakpointAt { .. }
            | Self::BadOption { .. }
            | Self::PreserveOverlaps { .. }
            | Self::Failed { .. } => tried,
        }
    }

    /// Returns whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::UnknownChip { .. } | Self::NoFlashAlgorithm { .. } => Fault::Profile,
            Self::DoesNotFit { .. }
            | Self::BadOption { .. }
            | Self::PreserveOverlaps { .. }
            | Self::UnknownRegister { .. }
            | Self::NotHalted
            | Self::NoBreakpointLeft { .. }
            | Self::NoBreakpointAt { .. } => Fault::Usage,
            Self::BusFault { .. } => Fault::Target,
            Self::Cancelled { .. } => Fault::Cancelled,
            Self::NotFound { .. }
            | Self::Ambiguous { .. }
            | Self::Held { .. }
            | Self::WrongChip { .. }
            | Self::Protected { .. }
            | Self::NoTarget { .. }
            | Self::ProbeLost { .. }
            | Self::Hung { .. }
            | Self::VerifyFailed { .. }
            | Self::FlashFailed { .. }
            | Self::CoreTimeout { .. }
            | Self::Gone
            | Self::Failed { .. } => Fault::Lab,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_rig_names_its_own_cause_and_any_other_what_was_tried() {
        let name = || "20b7:9db1".to_owned();
        let source = || "x".into();
        for (error, cause) in [
            (ProbeError::NotFound { selector: name(), present: vec![] }, Cause::ProbeMissing),
            (ProbeError::Ambiguous { selector: name(), matching: vec![] }, Cause::ProbeMissing),
            (ProbeError::Held { selector: name(), holder: name() }, Cause::ProbeBusy),
            (ProbeError::ProbeLost { during: name(), source: source() }, Cause::ProbeLost),
            (ProbeError::Hung { during: name(), timeout: Duration::ZERO }, Cause::ProbeLost),
            (ProbeError::Gone, Cause::ProbeLost),
            (ProbeError::NoTarget { attempts: 4, source: source() }, Cause::TargetUnresponsive),
            (ProbeError::Protected { erases: name() }, Cause::ChipProtected),
            (ProbeError::WrongChip { expected: name(), found: name() }, Cause::WrongChip),
            (ProbeError::UnknownChip { name: name(), nearest: vec![] }, Cause::WrongChip),
            (ProbeError::Cancelled { left: FlashLeft::Partial }, Cause::Cancelled),
            (ProbeError::NotHalted, Cause::PowerFailed),
            (ProbeError::Failed { what: name(), source: source() }, Cause::PowerFailed),
        ] {
            assert_eq!(error.cause_during(Cause::PowerFailed), cause, "{error}");
        }
        assert_eq!(ProbeError::NotHalted.cause(), Cause::DeployFailed);
    }
}
