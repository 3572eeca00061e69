//! Fault signatures that boards share.

use std::collections::BTreeMap;

use super::raw::{RawFault, RawFaultSet};
use super::{FaultSignature, FaultText};
use crate::Problems;
use crate::document::{Findings, Located, document_schema, open};

const KIND: &str = "fault set";
const VERSION: u32 = 1;

/// All shared sets of fault signatures, by name.
#[derive(Debug, Clone, Default)]
pub struct FaultSets {
    sets: BTreeMap<String, Vec<FaultSignature>>,
}

/// One set as it was found, before it is read.
#[derive(Debug, Clone, Copy)]
pub struct FaultSetText<'a> {
    /// Its name: the file name without `.toml`.
    pub name: &'a str,
    /// Where it came from: a path, or `built-in NAME`.
    pub origin: &'a str,
    /// The text.
    pub text: &'a str,
}

impl FaultSets {
    /// Reads all sets. Where a name comes twice, the later one holds.
    ///
    /// # Errors
    /// All problems of all sets.
    pub fn parse<'a>(
        texts: impl IntoIterator<Item = FaultSetText<'a>>,
    ) -> Result<Self, Vec<Problems>> {
        let mut sets = BTreeMap::new();
        let mut problems = Vec::new();
        for FaultSetText { name, origin, text } in texts {
            match parse_set(origin, text) {
                Ok(set) => {
                    sets.insert(name.to_owned(), set);
                }
                Err(bad) => problems.push(bad),
            }
        }
        if problems.is_empty() { Ok(Self { sets }) } else { Err(problems) }
    }

    /// Returns the JSON Schema of sets, as committed in `board-profiles/faults.schema.json`.
    pub fn json_schema() -> String {
        document_schema::<RawFaultSet>("Jig fault set")
    }

    /// Returns one set.
    pub fn get(&self, name: &str) -> Option<&[FaultSignature]> {
        self.sets.get(name).map(Vec::as_slice)
    }

    /// Lists the names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.sets.keys().map(String::as_str)
    }
}

fn parse_set(origin: &str, text: &str) -> Result<Vec<FaultSignature>, Problems> {
    let findings = Findings::new();
    let raw = open::<RawFaultSet>(KIND, VERSION, text, &findings);
    let set = raw.and_then(|raw| {
        let faults = raw.value.fault?;
        check_names(&faults.value, &findings);
        check_texts(&faults.value, "profile::fault-text", &findings);
        lower_faults(&faults.value)
    });
    findings.finish(KIND, origin, text, set)
}

/// Reports empty names and names that come twice.
fn check_names(faults: &[Located<RawFault>], findings: &Findings) {
    let names = faults.iter().filter_map(|fault| fault.value.name.as_ref());
    super::checks::unique("profile::fault-name", "fault", names, |name| name, findings);
}

/// Reports signatures that say no text, or two.
pub(super) fn check_texts(faults: &[Located<RawFault>], check: &'static str, findings: &Findings) {
    for fault in faults {
        let RawFault { pattern, line, name, .. } = &fault.value;
        let name = name.as_ref().map_or("", |name| name.value.as_str());
        match (pattern, line) {
            (Some(_), Some(line)) => {
                let message = format!("fault {name:?} has both `pattern` and `line`");
                findings.add(check, line.at(), message, "remove one of them");
            }
            // A text that cannot be read is reported already.
            (None, None) if findings.is_empty() => {
                let message = format!("fault {name:?} has neither `line` nor `pattern`");
                let help = "add `line = 'REGEX'`, what a line begins with, or `pattern = 'REGEX'`";
                findings.add(check, fault.at(), message, help);
            }
            _ => {}
        }
    }
    for fault in faults {
        let RawFault { line, excuse, continues, name, .. } = &fault.value;
        let name = name.as_ref().map_or("", |name| name.value.as_str());
        if let (None, Some(excuse)) = (line, excuse)
            && findings.is_empty()
        {
            let message = format!("fault {name:?} has `excuse` without `line`");
            findings.add(check, excuse.at(), message, "say by `line = 'REGEX'` what it excuses");
        }
        if let (None, Some(continues)) = (excuse, continues)
            && findings.is_empty()
        {
            let message = format!("fault {name:?} has `continues` without `excuse`");
            findings.add(check, continues.at(), message, "add the `excuse` of those signatures");
        }
    }
}

/// Lowers signatures that were read without a problem.
pub(super) fn lower_faults(faults: &[Located<RawFault>]) -> Option<Vec<FaultSignature>> {
    let lower = |fault: &Located<RawFault>| {
        let raw = fault.value.clone();
        let RawFault { name, pattern, line, cause, reason, excuse, continues, .. } = raw;
        let text = match (pattern, line) {
            (Some(pattern), None) => FaultText::Pattern(pattern.value),
            (None, Some(line)) => FaultText::Line(line.value),
            (Some(_), Some(_)) | (None, None) => return None,
        };
        let names = continues.map(|names| names.value).unwrap_or_default();
        Some(FaultSignature {
            name: name?.value,
            text,
            cause: cause?.value.0,
            reason: reason.map(|reason| reason.value),
            excuse: excuse.map(|excuse| excuse.value),
            continues: names.into_iter().map(|name| name.value).collect(),
        })
    };
    faults.iter().map(lower).collect()
}
