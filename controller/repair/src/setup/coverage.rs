//! What a plan executes of the firmware's sources.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use jig_model::VerdictKind;
use jig_model::command::RunOptions;
use jig_model::coverage::{COVERAGE_FILE, CoverageReport};

use super::{RepairSetup, RigFailure};

/// Largest document of a run's coverage.
const MAX_DOCUMENT: u64 = 256 << 20;

impl RepairSetup {
    /// Runs the plan to see what it executes of an image, whatever the verdict; nothing where the rig
    /// cannot measure that. It runs until it passes, at most as often as `most` says: a run that fails
    /// may have ended too early. `files` are those of the repository.
    ///
    /// # Errors
    /// The rig failed.
    pub async fn covered(
        &self,
        image: &str,
        files: &[String],
        most: usize,
    ) -> Result<Option<CoverageReport>, RigFailure> {
        if !self.rig.measures_coverage() {
            return Ok(None);
        }
        let path = self.folder.coverage(image);
        if let Ok(known) = self.folder.read_json(&path) {
            return Ok(Some(known));
        }
        let mut all = CoverageReport::new(Vec::new(), Vec::new());
        for _ in 0..most {
            let options = RunOptions { coverage: true, ..RunOptions::default() };
            let result = self.try_out(&self.plan, image, options).await?;
            let failure = RigFailure::new(result.verdict.summary.clone());
            match result.verdict.kind {
                VerdictKind::EnvError => return Err(failure),
                VerdictKind::Cancelled => return Err(RigFailure { cancelled: true, ..failure }),
                _ => {}
            }
            let file = result.dir.join(COVERAGE_FILE);
            let read = read(&file).map_err(|e| RigFailure::new(format!("{}: {e}", file.display())));
            all.merge(in_repository(read?, &self.folder.tree(), files));
            if result.passed() {
                break;
            }
        }
        let kept = self.folder.write_json(&path, &all);
        kept.map_err(|error| RigFailure::new(format!("{}: {error}", path.display())))?;
        Ok(Some(all))
    }
}

fn read(path: &Path) -> io::Result<CoverageReport> {
    if fs::metadata(path)?.len() > MAX_DOCUMENT {
        return Err(io::Error::other(format!("it has more than {MAX_DOCUMENT} bytes")));
    }
    serde_json::from_slice(&fs::read(path)?).map_err(io::Error::other)
}

/// Names files as the repository does; those that it does not have are left out.
fn in_repository(report: CoverageReport, tree: &Path, files: &[String]) -> CoverageReport {
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in files {
        by_name.entry(last(file)).or_default().push(file);
    }
    let (limits, reports) = (report.limits, report.files);
    let mut named = CoverageReport::new(Vec::new(), limits);
    for mut file in reports {
        let path = Path::new(&file.file);
        let path = path.strip_prefix(tree).unwrap_or(path).to_string_lossy().into_owned();
        let same = |one: &&&str| path == ***one || ends(&path, one) || ends(one, &path);
        let alike: Vec<_> = by_name.get(last(&path)).into_iter().flatten().filter(same).collect();
        let exact = alike.iter().find(|one| path == ***one);
        // Two files that it could be are none.
        let Some(found) = exact.or(alike.first().filter(|_| alike.len() == 1)) else { continue };
        file.file = (***found).to_owned();
        named.merge(CoverageReport::new(vec![file], Vec::new()));
    }
    named
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn ends(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|front| front.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use jig_model::coverage::FileCoverage;

    use super::*;

    #[test]
    fn files_are_named_as_in_the_repository() {
        let files = ["src/a.c", "lib/a.c", "src/main.c", "fw/b.c"].map(str::to_owned);
        for (path, named) in [
            ("src/a.c", Some("src/a.c")),
            ("/run/tree/lib/a.c", Some("lib/a.c")),
            ("/elsewhere/src/main.c", Some("src/main.c")),
            ("b.c", Some("fw/b.c")),
            ("a.c", None),
            ("/usr/lib/start.c", None),
            ("xsrc/main.c", None),
        ] {
            let file = FileCoverage { file: path.to_owned(), ..FileCoverage::default() };
            let report = CoverageReport::new(vec![file], Vec::new());
            let found = in_repository(report, Path::new("/run/tree"), &files);
            let found: Vec<_> = found.files.iter().map(|file| file.file.as_str()).collect();
            assert_eq!(found, named.into_iter().collect::<Vec<_>>(), "{path}");
        }
    }
}
