//! From the instructions that were executed to the lines and functions of their sources.
//!
//! Reads line tables and names of functions only; images are hostile data, so each walk has a bound.

use std::collections::{BTreeMap, BTreeSet};

use jig_drivers::qemu::ExecutedCode;
use jig_model::coverage::{CoverageReport, FileCoverage, FunctionCoverage};
use object::{Object as _, ObjectSymbol as _};

use crate::debug_info::LineRow;
use crate::test_coverage::test_lines;
use crate::{Symbols, SymbolsError};

/// What is known of a function while instructions are gone through.
struct SeenFunction {
    line: u32,
    executed: bool,
    own_code: bool,
    after_fault: bool,
}

#[derive(Default)]
struct SeenFile {
    lines: BTreeMap<u32, bool>,
    functions: BTreeMap<String, SeenFunction>,
}

/// Finds out which lines of an image's sources were executed, and by which tests, where that was
/// traced.
///
/// # Errors
/// The image cannot be read.
pub fn line_coverage(
    elf: &[u8],
    executed: &ExecutedCode,
    tests: &[&str],
) -> Result<CoverageReport, SymbolsError> {
    let symbols = Symbols::load(elf)?;
    let instructions = executed.instructions();
    let mut files: BTreeMap<String, SeenFile> = BTreeMap::new();
    let (rows, cut) = symbols.line_rows();
    let of_code = rows.into_iter().filter(|row| symbols.is_code(row.start));
    let named = of_code.map(|row| LineRow { file: plain_path(&row.file), ..row });
    let rows: Vec<_> = named.collect();
    for row in &rows {
        let from = instructions.partition_point(|(at, _)| at.end <= row.start);
        let here = instructions[from..].iter().take_while(|(at, _)| at.start < row.end);
        let here: Vec<_> = here.collect();
        let ran = !here.is_empty();
        let after_fault = here.iter().all(|(_, after_fault)| *after_fault);
        let at = here.first().map_or(row.start, |(at, _)| at.start.max(row.start));
        let file = files.entry(row.file.clone()).or_default();
        *file.lines.entry(row.line).or_default() |= ran;
        let places = symbols.places(at);
        let outermost = places.len() - 1;
        for (depth, place) in places.into_iter().enumerate() {
            let (Some(name), Some(path), Some(line)) = (place.function, place.file, place.line)
            else {
                continue;
            };
            let file = files.entry(plain_path(&path)).or_default();
            let seen = file.functions.entry(name).or_insert(SeenFunction {
                line,
                executed: false,
                own_code: false,
                after_fault: true,
            });
            seen.line = seen.line.min(line);
            seen.own_code |= depth == outermost;
            seen.executed |= ran;
            seen.after_fault &= !ran || after_fault;
        }
    }
    let files = files.into_iter().map(|(file, seen)| report_of(file, seen)).collect();
    let mut report = CoverageReport::new(files, limits(elf, &symbols, executed, cut));
    report.tests = test_lines(&symbols, &rows, executed.spans(), tests);
    Ok(report)
}

fn report_of(file: String, seen: SeenFile) -> FileCoverage {
    let executed = seen.lines.iter().filter(|(_, ran)| **ran).map(|(line, _)| *line).collect();
    let mut functions: Vec<_> = seen
        .functions
        .into_iter()
        .map(|(name, one)| FunctionCoverage {
            name,
            line: one.line,
            executed: one.executed,
            own_code: one.own_code,
            after_fault: one.executed && one.after_fault,
        })
        .collect();
    functions.sort_by_key(|function| function.line);
    FileCoverage { file, lines: seen.lines.into_keys().collect(), executed, functions }
}

/// Says why a line that is not told as executed may have been, or the other way round.
fn limits(elf: &[u8], symbols: &Symbols, executed: &ExecutedCode, cut: bool) -> Vec<String> {
    let mut limits: BTreeSet<String> = symbols.limits().iter().cloned().collect();
    if executed.is_truncated() {
        limits.insert("more instructions were executed than are kept".to_owned());
    }
    if cut {
        limits.insert("the image has more lines than are read".to_owned());
    }
    // The emulator puts the names of functions into its list.
    let file = object::File::parse(elf);
    let breaks = |name: &[u8]| name.iter().any(|byte| byte.is_ascii_control());
    let forged =
        file.is_ok_and(|file| file.symbols().any(|symbol| symbol.name_bytes().is_ok_and(breaks)));
    if forged {
        limits.insert("names of the image's functions hold control characters".to_owned());
    }
    limits.into_iter().collect()
}

/// Removes `.` and `..` from the inside of a path.
fn plain_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            "" if !parts.is_empty() => {}
            ".." if parts.last().is_some_and(|last| !matches!(*last, ".." | "")) => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_a_file_in_one_way() {
        for (path, plain) in [
            ("./src/a.c", "src/a.c"),
            ("/srv/fw/./src/../lib/a.c", "/srv/fw/lib/a.c"),
            ("../lib/a.c", "../lib/a.c"),
            ("../../a.c", "../../a.c"),
            ("/../a.c", "/../a.c"),
            ("a//b.c", "a/b.c"),
            ("a.c", "a.c"),
        ] {
            assert_eq!(plain_path(path), plain, "{path}");
        }
    }
}
