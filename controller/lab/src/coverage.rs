//! The coverage of a run: what its emulators have listed, told as lines of its images' sources.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jig_drivers::qemu::{CodeCollector, CollectedCode};
use jig_model::PlaceName;
use jig_model::coverage::{COVERAGE_FILE, CoverageReport, LCOV_FILE};
use jig_probe::{WatchedEmulator, line_coverage};
use jig_rig::store::{RunDir, RunRecord};

use crate::beside::BoundPlace;

/// Says why coverage is not measured at a place.
#[derive(Debug, thiserror::Error)]
pub enum NoCoverage {
    /// It is a real board.
    #[error("coverage is not measured on a real board, and {0} is one")]
    RealBoard(PlaceName),
    /// Its emulator does not tell.
    #[error(
        "coverage is not measured at {0}: its emulator does not tell what it executes, as it does \
         of a 32-bit Arm or RISC-V core that it loads the image for"
    )]
    Untold(PlaceName),
}

/// Has the emulators of a place list what they execute.
///
/// # Errors
/// They do not.
pub(crate) fn measured(
    mut here: BoundPlace,
    what: CollectedCode,
) -> Result<BoundPlace, NoCoverage> {
    let place = &here.place;
    if !place.is_emulated() {
        return Err(NoCoverage::RealBoard(place.name.clone()));
    }
    if !WatchedEmulator::collects_code(&here.profile, place) {
        return Err(NoCoverage::Untold(place.name.clone()));
    }
    here.parts.code = Some(CodeCollector::new(what));
    Ok(here)
}

/// Says why the coverage of a run was not written.
#[derive(Debug, thiserror::Error)]
#[error("write {}", path.display())]
pub(crate) struct CoverageError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Leaves the coverage in the folder of a run. What cannot be told is said in the document.
///
/// # Errors
/// It cannot be written.
pub(crate) fn keep(
    dir: &RunDir,
    record: &RunRecord,
    code: &CodeCollector,
) -> Result<(), CoverageError> {
    let mut all = CoverageReport::new(Vec::new(), Vec::new());
    if record.images.is_empty() {
        all.merge(unknown("the run had no image".to_owned()));
    }
    let cases = record.verdict.iter().flat_map(|verdict| &verdict.tests.cases);
    let tests: Vec<_> = cases.map(|case| case.name.as_str()).collect();
    for (number, image) in record.images.iter().enumerate() {
        // An image that was never launched was not executed.
        let executed = code.of(&image.sha256).unwrap_or_default();
        let told = |elf: Vec<u8>| {
            let told = line_coverage(&elf, &executed, &tests);
            told.map_err(|error| jig_model::chain(&error))
        };
        let read = image_path(dir, number).and_then(fs::read).map_err(|error| error.to_string());
        let why = |why| unknown(format!("{}: {why}", image.path));
        all.merge(read.and_then(told).unwrap_or_else(why));
    }
    let document = serde_json::to_string_pretty(&all).map_err(io::Error::other);
    write(&dir.path().join(COVERAGE_FILE), document)?;
    write(&dir.path().join(LCOV_FILE), Ok(all.lcov()))
}

fn unknown(why: String) -> CoverageReport {
    CoverageReport::new(Vec::new(), vec![why])
}

/// Returns where a run keeps one of its images, counted from 0.
fn image_path(dir: &RunDir, number: usize) -> io::Result<PathBuf> {
    let name = format!("image-{}.elf", number + 1);
    let path = dir.artefact_path(&name);
    if path.is_file() {
        return Ok(path);
    }
    Err(io::Error::other("it is no ELF file, so its source lines are not known"))
}

fn write(path: &Path, text: io::Result<String>) -> Result<(), CoverageError> {
    let written = text.and_then(|text| fs::write(path, text));
    written.map_err(|source| CoverageError { path: path.to_owned(), source })
}
