//! What Jig and the supervisor of a program tell each other: one line of JSON each way.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

/// What the supervisor is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum SupervisorOrder {
    /// Run a program to its end.
    Run(ProgramOrder),
    /// Find out what a sandbox on this host cannot do.
    Probe,
}

/// Which program to run. Paths may hold any bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ProgramOrder {
    pub(super) program: OsString,
    pub(super) name: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) cwd: OsString,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) confinement: Option<Confinement>,
}

/// What the program may touch.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Confinement {
    pub(super) writable: Vec<OsString>,
    pub(super) network: bool,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SupervisorReply {
    /// The program ended by itself with this code.
    Exited { code: i32, all_ended: bool },
    /// The signal of this number ended it.
    Signalled { signal: i32, all_ended: bool },
    /// The system refused to start it, with the number of this error.
    NotStarted { errno: Option<i32>, message: String },
    /// It was not started, because it cannot be confined.
    NotConfined(String),
    /// What a sandbox on this host cannot do.
    Probed(Option<String>),
}
