//! The coverage of a run, as a table and as a part of the verdict document.

use std::fs;
use std::path::Path;

use jig_model::Fault;
use jig_model::coverage::{COVERAGE_FILE, CoverageReport, LCOV_FILE};
use jig_rig::console::escape;
use jig_rig::report::{RunReport, VerdictDocument};
use jig_rig::store::RunDir;
use serde::Serialize;

use crate::failure::Failure;
use crate::render::{Screen, TextTable};

/// The verdict document of a run whose coverage was measured.
#[derive(Serialize)]
struct CoveredDocument<'c> {
    #[serde(flatten)]
    document: VerdictDocument,
    coverage: CoverageSummary<'c>,
}

#[derive(Serialize)]
struct CoverageSummary<'c> {
    /// Lines with code, and those of them that were executed.
    lines: usize,
    executed: usize,
    complete: bool,
    limits: &'c [String],
    files: Vec<FileSummary<'c>>,
}

#[derive(Serialize)]
struct FileSummary<'c> {
    file: &'c str,
    lines: usize,
    executed: usize,
}

/// Reads the coverage of a run.
///
/// # Errors
/// It was not kept.
pub(super) fn of_run(dir: &RunDir) -> Result<CoverageReport, Failure> {
    let path = dir.path().join(COVERAGE_FILE);
    let read = fs::read(&path).map_err(|error| error.to_string());
    let read = read.and_then(|text| serde_json::from_slice(&text).map_err(|e| e.to_string()));
    read.map_err(|why| {
        let words = format!("the run ended, but its coverage {} is missing: {why}", path.display());
        Failure::new(Fault::Lab, words)
    })
}

/// Writes the verdict document with the coverage in it.
///
/// # Errors
/// Only a bug can make it fail.
pub(super) fn document(
    report: &RunReport,
    covered: &CoverageReport,
) -> Result<String, serde_json::Error> {
    let (executed, lines) = covered.counts();
    let files = covered.files.iter().map(|file| {
        let (executed, lines) = file.counts();
        FileSummary { file: &file.file, lines, executed }
    });
    let (complete, limits, files) = (covered.complete, &covered.limits, files.collect());
    let coverage = CoverageSummary { lines, executed, complete, limits, files };
    let document = VerdictDocument::of(report);
    serde_json::to_string_pretty(&CoveredDocument { document, coverage })
}

/// Shows the share of lines of each file.
pub(super) fn show(screen: &Screen, dir: &RunDir, covered: &CoverageReport) {
    let here = std::env::current_dir().unwrap_or_default();
    let mut table = TextTable::new(&["file", "lines", "executed", "share"]);
    let mut row = |name: &str, (executed, lines): (usize, usize)| {
        let share = if lines == 0 { 0.0 } else { 100.0 * executed as f64 / lines as f64 };
        let cells =
            [name.to_owned(), lines.to_string(), executed.to_string(), format!("{share:.1} %")];
        table.row(cells.map(|cell| (cell, None)));
    };
    for file in &covered.files {
        let name = Path::new(&file.file);
        let name = name.strip_prefix(&here).unwrap_or(name).to_string_lossy();
        row(&escape(name.as_bytes()), file.counts());
    }
    row("all", covered.counts());
    screen.say("");
    screen.say(&table.text(screen.err_paint()));
    for limit in &covered.limits {
        screen.say(&format!("  {}", escape(limit.as_bytes())));
    }
    screen.say(&format!("  lcov: {}", dir.path().join(LCOV_FILE).display()));
}
