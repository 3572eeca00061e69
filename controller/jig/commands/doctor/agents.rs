//! What `jig ask` needs of models: `agents.toml` and the keys that it names. Nothing is asked of an endpoint.

use super::{DoctorFinding, DoctorLevel};
use crate::args::Common;
use crate::commands::ask::{KeyProblem, agents_file, model_keys};

/// Looks at it; nothing where there is no such file, or no model in it.
pub(super) fn look(common: &Common) -> Vec<DoctorFinding> {
    let warning = |check: &str, found: String, fix: String| {
        DoctorFinding::bad(check, DoctorLevel::Warning, found, fix)
    };
    let file = match agents_file(common) {
        Ok(file) => file,
        Err(failure) => {
            let problems = failure.problems.iter().flat_map(|problems| &problems.list);
            let words: Vec<_> = problems.map(|problem| problem.message.clone()).collect();
            let found = if words.is_empty() { failure.message } else { words.join("; ") };
            let fix = "jig ask \"which boards are free\"   # shows each problem with its line";
            return vec![warning("agents.toml", found, fix.to_owned())];
        }
    };
    let finding = |(name, key): (String, Result<(), KeyProblem>)| match key {
        Ok(()) => DoctorFinding::ok(format!("model {name}"), "its key is there, or it needs none"),
        Err(KeyProblem { why, next }) => warning(&format!("model {name}"), why, next),
    };
    model_keys(common, &file).into_iter().map(finding).collect()
}
