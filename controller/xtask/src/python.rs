//! Folders with a Python of their own and packages of PyPI in it.
//!
//! Packages are installed into a folder of this repository, in fixed versions: two hosts run the
//! same programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::TaskFailure;
use crate::process;

/// The file of a folder that says what was installed there, to the end.
const DONE: &str = "installed";

/// Makes sure that a folder has these packages, as `pip install` takes them; returns its
/// interpreter. `contents` is what they stand for: other contents are installed anew.
pub fn environment(
    folder: &Path,
    packages: &[&str],
    contents: &str,
) -> Result<PathBuf, TaskFailure> {
    let python = folder.join("bin/python");
    if is_done(folder, contents) {
        return Ok(python);
    }
    process::capture(Command::new("/usr/bin/python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    let mut pip = Command::new(&python);
    // A host without access to PyPI is told within seconds.
    pip.args(["-m", "pip", "--disable-pip-version-check", "--timeout", "5", "--retries", "1"]);
    process::capture(pip.args(["install", "--quiet"]).args(packages))?;
    let done = folder.join(DONE);
    fs::write(&done, contents).map_err(TaskFailure::io("write", &done))?;
    Ok(python)
}

/// Tells whether a folder has these contents already.
pub fn is_done(folder: &Path, contents: &str) -> bool {
    // The interpreter is a link to the host's, which may have gone since.
    folder.join("bin/python").exists()
        && fs::read_to_string(folder.join(DONE)).is_ok_and(|done| done == contents)
}
