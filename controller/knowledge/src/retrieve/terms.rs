//! What of a unit is indexed.

use std::collections::BTreeMap;

use crate::index::{DocFacts, IndexedUnit};
use crate::store::ChangedUnit;
use crate::text::each_token;
use crate::unit::VerificationStatus;

/// How often the title counts: measured, twice is best.
const TITLE: u32 = 2;

/// Most different terms of a unit. A unit of a megabyte would otherwise be found by everything.
const TERMS: usize = 4000;

/// Returns the folder of a file; nothing for a file without one.
pub(crate) fn folder_of(file: &str) -> Option<&str> {
    file.rsplit_once('/').map(|(folder, _)| folder).filter(|folder| !folder.is_empty())
}

/// Returns what the index holds of a unit.
pub(crate) fn indexed(changed: &ChangedUnit) -> IndexedUnit {
    let ChangedUnit { doc, unit } = changed;
    let (content, metadata) = (&unit.content, &unit.metadata);
    let mut terms: BTreeMap<String, u32> = BTreeMap::new();
    let mut length = 0u32;
    let mut add = |text: &str, times: u32| {
        each_token(text, |token| {
            let has_room = terms.len() < TERMS;
            match terms.get_mut(token) {
                Some(count) => *count = count.saturating_add(times),
                None if has_room => drop(terms.insert(token.to_owned(), times)),
                None => return,
            }
            length = length.saturating_add(times);
        });
    };
    add(&content.title, TITLE);
    for text in [&content.summary, &content.symptom, &content.root_cause, &content.resolution] {
        add(text, 1);
    }
    content.steps.iter().for_each(|step| add(step, 1));
    let names = [&metadata.component, &metadata.chip, &metadata.class, &metadata.signature];
    names.into_iter().flatten().for_each(|name| add(name, 1));
    metadata.tags.iter().for_each(|tag| add(tag, 1));
    // Of a change only what is added and removed says something.
    let changed_line = |line: &&str| {
        (line.starts_with('+') || line.starts_with('-'))
            && !line.starts_with("+++")
            && !line.starts_with("---")
    };
    content.diff.lines().filter(changed_line).for_each(|line| add(&line[1..], 1));
    let mut keys = vec![];
    keys.extend(metadata.tags.iter().map(|tag| format!("=tag:{tag}")));
    keys.extend(metadata.product_line.iter().map(|line| format!("=line:{line}")));
    keys.push(format!("=board:{}", metadata.board.as_deref().unwrap_or_default()));
    keys.extend(metadata.files.iter().map(|file| format!("=file:{file}")));
    terms.extend(keys.into_iter().map(|key| (key, 1)));
    IndexedUnit { doc: *doc, terms, facts: DocFacts { length, ..facts_of(changed) } }
}

/// Returns what a search filters a unit by; its length is not counted.
pub(crate) fn facts_of(changed: &ChangedUnit) -> DocFacts {
    let ChangedUnit { doc, unit } = changed;
    let status = VerificationStatus::ALL.iter().position(|status| *status == unit.standing.status);
    DocFacts {
        doc: *doc,
        length: 0,
        created: unit.audit.created_at.as_second(),
        confidence: (unit.metadata.confidence * 1000.0).round() as u16,
        status: status.unwrap_or_default() as u8,
        maturity: unit.standing.maturity,
        archived: unit.standing.archived,
    }
}
