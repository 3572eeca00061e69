//! `cargo xtask dist`: the program as it is handed on, with its line tables in a file apart.
//!
//! A backtrace has names and lines where `jig.debug` lies beside `jig`, or in `.debug/` beside it:
//! the program names the file (`.gnu_debuglink`). Refuses to install anything.

use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::failure::TaskFailure;
use xtask::process;

/// The program, and the file of its line tables.
pub(crate) const PROGRAM: &str = "jig";
const TABLES: &str = "jig.debug";

/// Builds the program and takes the line tables out of it.
pub(crate) fn run() -> Result<(), TaskFailure> {
    let program = build()?;
    let folder = process::target_dir().join("dist/stripped");
    split(&program, &folder)?;
    for name in [PROGRAM, TABLES] {
        let path = folder.join(name);
        let size = std::fs::metadata(&path).map_err(TaskFailure::io("read", &path))?.len();
        println!("dist: {} ({:.1} MB)", path.display(), size as f64 / 1e6);
    }
    Ok(())
}

/// Builds the program with its line tables and returns its path.
pub(crate) fn build() -> Result<PathBuf, TaskFailure> {
    process::build(&["build", "--profile", "dist", "--bin", PROGRAM])?;
    Ok(process::target_dir().join("dist").join(PROGRAM))
}

/// Splits a program into one without line tables and a file with them, in a folder.
pub(crate) fn split(program: &Path, folder: &Path) -> Result<(), TaskFailure> {
    std::fs::create_dir_all(folder).map_err(TaskFailure::io("create", folder))?;
    // The link to the tables has a checksum, so they come first.
    let mut objcopy = Command::new("objcopy");
    process::capture(
        objcopy.current_dir(folder).arg("--only-keep-debug").arg(program).arg(TABLES),
    )?;
    let mut objcopy = Command::new("objcopy");
    objcopy.current_dir(folder).args(["--strip-all", "--add-gnu-debuglink", TABLES]);
    process::capture(objcopy.arg(program).arg(PROGRAM)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_names_its_line_tables_and_holds_none() {
        let dir = tempfile::tempdir().unwrap();
        split(&std::env::current_exe().unwrap(), dir.path()).unwrap();
        let sections = |name: &str| {
            let mut objdump = Command::new("objdump");
            objdump.arg("--section-headers").arg(dir.path().join(name));
            String::from_utf8(process::capture(&mut objdump).unwrap()).unwrap()
        };
        let (program, tables) = (sections(PROGRAM), sections(TABLES));
        assert!(
            program.contains(".gnu_debuglink") && !program.contains(".debug_line"),
            "{program}"
        );
        assert!(tables.contains(".debug_line"), "{tables}");
        let ran = Command::new(dir.path().join(PROGRAM)).arg("--list").output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
    }
}
