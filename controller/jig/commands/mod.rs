//! What each command does. Every command returns its exit code, or why it could not start.

pub(crate) mod access;
pub(crate) mod ask;
pub(crate) mod audit;
pub(crate) mod boards;
mod check;
pub(crate) mod chips;
pub(crate) mod console;
mod coverage;
pub(crate) mod discover;
pub(crate) mod doctor;
pub(crate) mod exec;
mod execute;
pub(crate) mod explain;
pub(crate) mod flashers;
pub(crate) mod health;
pub(crate) mod hold;
pub(crate) mod inject;
pub(crate) mod knowledge;
pub(crate) mod lease;
pub(crate) mod machine;
pub(crate) mod manual;
pub(crate) mod mcp;
pub(crate) mod plan;
pub(crate) mod power;
pub(crate) mod probe;
pub(crate) mod profile;
pub(crate) mod recover;
pub(crate) mod repair;
mod report_file;
mod rig;
pub(crate) mod rpc;
pub(crate) mod run;
pub(crate) mod runs;
mod runtime;
pub(crate) mod serve;
mod ssh_rig;
mod stop;
pub(crate) mod supervise;
pub(crate) mod top;
pub(crate) mod worker;

use std::sync::Arc;

use jig_lab::{Lab, LabConfig, ProbeCommandError};

use crate::args::Common;
use crate::failure::Failure;

/// Opens the rig of this host; the person at the terminal switches what only a person can.
pub(crate) fn open_lab(common: &Common) -> Result<Lab, Failure> {
    let program = std::env::current_exe().ok();
    let config = LabConfig { program, ..common.lab()? };
    let refusal = |error: ProbeCommandError| Failure::from(error).into();
    let lab = Lab::of(common.reader.read(&config)?, &config);
    Ok(lab.asking(Arc::new(power::Terminal)).refusing(refusal))
}
