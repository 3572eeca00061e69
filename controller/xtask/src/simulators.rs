//! Simulators that tests talk to and Debian does not package, in cargo's target folder.
//!
//! A host that cannot reach PyPI goes without, and the tests that would have used them say so.

use std::fs;

use xtask::failure::TaskFailure;
use xtask::{process, python};

/// The list, and their folder in the target folder; the tests know both.
const LIST: &str = "tests/simulators.txt";
const FOLDER: &str = "simulators";

/// Installs what is not there yet.
pub(crate) fn install() -> Result<(), TaskFailure> {
    let (list, folder) = (process::repository().join(LIST), process::target_dir().join(FOLDER));
    let contents = fs::read_to_string(&list).map_err(TaskFailure::io("read", &list))?;
    if python::is_done(&folder, &contents) {
        println!("setup: the simulators of {LIST} are here");
        return Ok(());
    }
    println!("setup: installing {LIST} into {}", folder.display());
    let list = list.to_string_lossy();
    if let Err(failure) = python::environment(&folder, &["-r", &list], &contents) {
        println!(
            "setup: WARNING: {LIST} could not be installed, so tests go without these simulators \
             and say so (is there a way to PyPI?): {}",
            failure.chain()
        );
    }
    Ok(())
}
