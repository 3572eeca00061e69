//! As many fixes of one class of failure on one kind of board as the rules say.

use super::Lesson;
use crate::unit::{CaptureTrigger, Draft, KnowledgeUnit, UnitContent, UnitId, UnitMetadata};

/// Most fixes that are named.
const NAMED: usize = 10;

/// Sums up fixes, the newest first. `draft` is the newest of them.
pub(crate) fn lesson(newest: &Draft, fixes: &[KnowledgeUnit], count: u64) -> Option<Lesson> {
    let class = newest.metadata.class.as_deref()?;
    let board = newest.metadata.board.as_deref();
    let on = board.map(|board| format!(" on {board}")).unwrap_or_default();
    let mut files: Vec<&String> = fixes.iter().flat_map(|unit| &unit.metadata.files).collect();
    files.sort_unstable();
    let mut often: Vec<(usize, &String)> =
        files.chunk_by(|one, other| one == other).map(|same| (same.len(), same[0])).collect();
    often.sort_unstable_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
    let often: Vec<_> = often.into_iter().filter(|(times, _)| *times > 1).take(NAMED).collect();
    let named = often.iter().map(|(times, file)| format!("{file} ({times} fixes)"));
    let named = named.collect::<Vec<_>>().join(", ");
    let content = UnitContent {
        title: format!("{count} fixes of {class}{on}"),
        symptom: format!("{class} was fixed {count} times{on}"),
        root_cause: match named.is_empty() {
            true => String::new(),
            false => format!("files that were changed more than once: {named}"),
        },
        resolution: fixes
            .iter()
            .take(NAMED)
            .map(|unit| format!("{}: {}", unit.id, unit.content.title))
            .collect::<Vec<_>>()
            .join("\n"),
        ..UnitContent::default()
    };
    let metadata = UnitMetadata {
        board: newest.metadata.board.clone(),
        chip: newest.metadata.chip.clone(),
        files: often.into_iter().map(|(_, file)| file.clone()).collect(),
        class: Some(class.to_owned()),
        tags: vec!["pattern".to_owned()],
        ..UnitMetadata::default()
    };
    let id = UnitId::derived(&["pattern", board.unwrap_or_default(), class]);
    let trigger = CaptureTrigger::Threshold;
    let draft = Draft { id, content, metadata, at: newest.at, by: newest.by.clone(), trigger };
    Some(Lesson { draft, count: Some(count) })
}
