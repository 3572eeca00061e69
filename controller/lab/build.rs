//! Embeds the reviewed board data, so that an installed `jig` needs no files beside it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let boards = root.join("../../board-profiles");
    let mut code = String::new();
    table(&mut code, "BOARDS", &boards)?;
    table(&mut code, "FAULT_SETS", &boards.join("faults"))?;
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("builtin.rs"), code)
}

/// Writes a table of (file stem, text) of the TOML files in a folder, sorted by name.
fn table(code: &mut String, name: &str, folder: &Path) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| entry.map(|e| e.path())).collect::<io::Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let _ = writeln!(code, "pub(crate) const {name}: &[(&str, &str)] = &[");
    for path in files {
        println!("cargo::rerun-if-changed={}", path.display());
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let _ = writeln!(code, "    ({stem:?}, include_str!({:?})),", path.display().to_string());
    }
    code.push_str("];\n");
    Ok(())
}
