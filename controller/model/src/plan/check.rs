//! Checks that more than one level of a plan needs, each with its name.
//!
//! Owns names that must be unique and waits that must end.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use crate::ActionName;
use crate::document::{Findings, Located};

/// Longest wait a plan may hold: a day is longer than any soak test that one verdict
/// should hang on.
pub const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Names that were given on one level.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: BTreeSet<ActionName>,
}

impl Names {
    /// Takes names that a document cannot use again.
    pub(super) fn of<'n>(names: impl Iterator<Item = &'n ActionName>) -> Self {
        Self { taken: names.cloned().collect() }
    }

    /// Takes a name, or reports that it is taken. `level` is such as `stage of the plan`.
    pub(super) fn take(&mut self, name: &Located<ActionName>, level: &str, findings: &Findings) {
        if !self.taken.insert(name.value.clone()) {
            findings.add(
                "plan::duplicate-name",
                name.at(),
                format!("another {level} is called `{}`", name.value),
                "results are found by their names; give this one another",
            );
        }
    }

    /// Makes the next free name of a kind, such as `expect-2`.
    pub(super) fn make(&mut self, kind: &str, counter: &mut u32) -> ActionName {
        loop {
            *counter = counter.saturating_add(1);
            let name = ActionName::made(format!("{kind}-{counter}"));
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// Reports a wait that is over at once, or never.
pub(super) fn wait_ends(
    key: &str,
    wait: Duration,
    place: Option<Range<usize>>,
    findings: &Findings,
) {
    if wait.is_zero() {
        findings.add(
            "plan::no-time",
            place,
            format!("`{key}` is zero, so nothing can happen in it"),
            "give it some time, such as \"10s\"",
        );
    } else if wait > MAX_WAIT {
        findings.add(
            "plan::endless",
            place,
            format!("`{key}` is over 24 hours: such a plan never ends"),
            "give it at most \"24h\"",
        );
    }
}

/// Reports that a list which must hold something holds nothing.
pub(super) fn nothing_to_do(
    what: &str,
    add: &str,
    place: Option<Range<usize>>,
    findings: &Findings,
) {
    findings.add(
        "plan::nothing-to-do",
        place,
        format!("{what} has nothing to do"),
        format!("add {add}, or remove it"),
    );
}
