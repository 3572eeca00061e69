//! A child that outlives this process, and whose output goes into a file that other processes read.
//!
//! # Design
//! Its standard input is a file that this process has locked (`flock`). The lock belongs to the open
//! file and goes with it to the child, so it is held from before the child exists until its last
//! moment, and a free lock proves that it has ended. No pid is ever looked up.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::SpawnError;

/// What to start.
pub struct UnattendedRequest {
    /// Program: a name looked up in `PATH`, or a path.
    pub program: OsString,
    /// Arguments, one each; never a shell line.
    pub args: Vec<OsString>,
    /// Its current folder, if not that of this process.
    pub folder: Option<PathBuf>,
    /// Variables of its environment that are not those of this process.
    pub variables: Vec<(OsString, OsString)>,
    /// The locked file that proves that it lives.
    pub lock: File,
    /// Gets its standard output.
    pub output: File,
    /// Gets its standard error.
    pub errors: File,
}

/// Starts a child that leads its own process group and gets no parent-death signal.
///
/// # Errors
/// There is no such program, or the system refuses.
pub fn start_unattended(request: UnattendedRequest) -> Result<(), SpawnError> {
    let UnattendedRequest { program, args, folder, variables, lock, output, errors } = request;
    let refused = |source| SpawnError::of(&program, folder.as_deref(), source);
    let mut command = Command::new(&program);
    if let Some(folder) = &folder {
        command.current_dir(folder);
    }
    command.envs(variables);
    command.args(&args).process_group(0).stdin(lock).stdout(output).stderr(Stdio::from(errors));
    let mut child = command.spawn().map_err(refused)?;
    // While this process lives, the end of the child is taken note of.
    std::thread::Builder::new()
        .name("jig-reaper".to_owned())
        .spawn(move || drop(child.wait()))
        .map_err(refused)?;
    Ok(())
}
