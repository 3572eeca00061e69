//! Repairs of other runs that were proven for a failure like one.
//!
//! # Design
//! *The folders of the runs are the knowledge.* A run that succeeded has left its result document with
//! the signature of the failure, and its patch. Nothing else is kept, so nothing can be stale or has to
//! be cleaned up: who removes a run removes what was learnt from it.
//!
//! *Likeness is by signature.* Equal signatures are the same failure. A different set of tests that
//! shows the same line, or the same tests with another line, is a failure that may have the same cause.

use std::fs;
use std::path::Path;

use jig_model::exit;
use serde::{Deserialize, Serialize};

use crate::signature::Likeness;

/// Runs that are looked at, the newest first.
const MOST_RUNS: usize = 500;

/// Repairs that are returned.
const MOST: usize = 3;

/// Bytes of a patch that are returned.
const MOST_PATCH: usize = 8 << 10;

/// Largest result document that is read, in bytes.
const MOST_DOCUMENT: u64 = 1 << 20;

/// A proven repair of another run.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct PastRepair {
    /// The run.
    pub(crate) run: String,
    /// How like its failure is.
    pub(crate) likeness: Likeness,
    /// Signature of its failure.
    pub(crate) signature: String,
    /// What was to be reached.
    pub(crate) goal: String,
    /// The agent that proposed it.
    pub(crate) agent: Option<String>,
    /// How much its proof says.
    pub(crate) confidence: Option<String>,
    /// The beginning of the patch.
    pub(crate) patch: String,
}

/// What is read of a result document.
#[derive(Debug, Deserialize)]
struct PastDocument {
    exit_code: u8,
    goal: String,
    failure: Option<String>,
    agent: Option<String>,
    confidence: Option<String>,
    diff: Option<String>,
}

/// Finds proven repairs of failures like one in the folder of all runs, without the run `own`: the most
/// alike first, then the newest. What cannot be read is passed over.
pub(crate) fn past_repairs(runs: &Path, own: &str, signature: &str) -> Vec<PastRepair> {
    let Ok(entries) = fs::read_dir(runs) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<_> = names.filter(|name| name != own).collect();
    // Names begin with the time.
    names.sort_unstable_by(|a, b| b.cmp(a));
    let found = names.into_iter().take(MOST_RUNS);
    let mut found: Vec<_> =
        found.filter_map(|name| past_repair(&runs.join(&name), name, signature)).collect();
    found.sort_by_key(|repair| repair.likeness);
    found.truncate(MOST);
    found
}

fn past_repair(folder: &Path, run: String, wanted: &str) -> Option<PastRepair> {
    let path = folder.join("result.json");
    let small = fs::metadata(&path).ok()?.len() <= MOST_DOCUMENT;
    let text = small.then(|| fs::read(&path).ok())??;
    let document: PastDocument = serde_json::from_slice(&text).ok()?;
    let signature = document.failure.filter(|_| document.exit_code == exit::PASS)?;
    let likeness = Likeness::of(&signature, wanted)?;
    // The folder may have been moved since.
    let patch = folder.join("patches").join(Path::new(&document.diff?).file_name()?);
    let patch = fs::read_to_string(patch).ok()?;
    let (goal, agent, confidence) = (document.goal, document.agent, document.confidence);
    let patch = patch[..patch.floor_char_boundary(MOST_PATCH)].to_owned();
    Some(PastRepair { run, likeness, signature, goal, agent, confidence, patch })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(runs: &Path, name: &str, exit_code: u8, failure: &str, patch: &str) {
        let folder = runs.join(name);
        fs::create_dir_all(folder.join("patches")).unwrap();
        let document = json!({
            "exit_code": exit_code, "goal": "g", "failure": failure, "agent": "templates",
            "confidence": "plausible", "diff": "/elsewhere/patches/p.diff",
        });
        fs::write(folder.join("result.json"), document.to_string()).unwrap();
        fs::write(folder.join("patches/p.diff"), patch).unwrap();
    }

    #[test]
    fn proven_repairs_of_like_failures_are_found_the_most_alike_first() {
        let runs = tempfile::tempdir().unwrap();
        let wanted = "test_failed | test_full | took a ninth";
        run(runs.path(), "r1", 0, wanted, "+ first\n");
        run(runs.path(), "r2", 0, "test_failed | test_full | lost one", "+ other line\n");
        run(runs.path(), "r3", 0, "test_failed | test_wrap | no end", "+ unlike\n");
        run(runs.path(), "r4", 4, wanted, "+ not proven\n");
        run(runs.path(), "r5", 0, wanted, &"é".repeat(MOST_PATCH));
        run(runs.path(), "own", 0, wanted, "+ own\n");
        fs::create_dir(runs.path().join("r6")).unwrap();
        fs::write(runs.path().join("r6/result.json"), "{").unwrap();
        let found = past_repairs(runs.path(), "own", wanted);
        let names: Vec<_> = found.iter().map(|repair| repair.run.as_str()).collect();
        assert_eq!(names, ["r5", "r1", "r2"]);
        assert_eq!(found[1].patch, "+ first\n");
        assert_eq!(found[2].likeness, Likeness::Tests);
        assert!(found[0].patch.len() <= MOST_PATCH);
        assert_eq!(past_repairs(&runs.path().join("none"), "own", wanted), []);
    }
}
