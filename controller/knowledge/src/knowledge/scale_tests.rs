//! A store of many units: nothing is lost, each is found, and a reader that comes later finds it, too.
//! `JIG_TEST_UNITS=100000` makes it as large as the benchmark does; the file of the store then has some
//! hundred megabytes.

use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::retrieve::{KnowledgeCaller, RetrievalContext};
use crate::unit::{
    CaptureTrigger, Draft, StandingEvent, UnitContent, UnitId, UnitMetadata, VerificationStatus,
};

/// Units of a usual run of the tests.
const USUAL: u64 = 3000;

/// Units beside those looked at, one of so many is searched for.
const LOOKED_AT: u64 = 97;

/// Words that units share, as those of a lab do.
const WORDS: [&str; 16] = [
    "uart", "loses", "byte", "behind", "sleep", "dma", "ends", "before", "fifo", "watchdog",
    "resets", "probe", "missing", "clock", "stops", "ring",
];

/// Returns a word that only one unit has.
fn own_word(number: u64) -> String {
    format!("q{:x}z", number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20)
}

fn draft(number: u64) -> Draft {
    let word = |n: u64| WORDS[((number >> (n * 2)).wrapping_mul(n + 3) % 16) as usize];
    let title = (0..6).map(word).collect::<Vec<_>>().join(" ");
    Draft {
        id: UnitId::derived(&["scale", &number.to_string()]),
        content: UnitContent {
            title: format!("{title} {}", own_word(number)),
            symptom: (6..24).map(word).collect::<Vec<_>>().join(" "),
            resolution: format!("step {number} helps"),
            ..UnitContent::default()
        },
        metadata: UnitMetadata {
            files: vec![format!("src/part{}.c", number % 211)],
            ..UnitMetadata::default()
        },
        at: Timestamp::from_second(1_700_000_000 + number.cast_signed()).unwrap(),
        by: "test".to_owned(),
        trigger: CaptureTrigger::Marked,
    }
}

/// Asks without a limit that a debug build on a busy host could pass.
fn asked(words: String) -> RetrievalContext {
    RetrievalContext {
        timeout: Duration::from_secs(60),
        caller: KnowledgeCaller::Analysis,
        ..RetrievalContext::new(words)
    }
}

fn first(knowledge: &Knowledge, words: String) -> UnitId {
    let answer = knowledge.search(&asked(words.clone())).unwrap();
    assert_eq!(answer.warnings, [], "{words}");
    answer.hits.first().unwrap_or_else(|| panic!("{words}: nothing")).unit.id.clone()
}

#[test]
fn a_store_of_many_units_loses_none_and_finds_each() {
    let units = std::env::var("JIG_TEST_UNITS").map_or(USUAL, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let knowledge = Knowledge::open(folder.path(), KnowledgeOptions::default()).unwrap();
    for part in (0..units).collect::<Vec<_>>().chunks(1000) {
        knowledge.store_distinct(part.iter().map(|number| draft(*number)).collect()).unwrap();
    }
    knowledge.store().check().unwrap();
    assert_eq!(knowledge.store().counts().unwrap().units, units);
    assert_eq!(u64::from(knowledge.rebuild().unwrap()), units);
    for number in (0..units).step_by(LOOKED_AT as usize) {
        let id = first(&knowledge, format!("why does {} go wrong", own_word(number)));
        assert_eq!(id, draft(number).id, "{number}");
    }
    // Another process reads the index of this one, and follows what comes behind it.
    let other = Knowledge::open(folder.path(), KnowledgeOptions::default()).unwrap();
    let (last, new) = (units - 1, units);
    assert_eq!(first(&other, own_word(last)), draft(last).id);
    let Captured::Stored(_) = knowledge.capture(draft(new)).unwrap() else { panic!("queued") };
    knowledge.tell(&draft(7).id, StandingEvent::Confirmed, "ann").unwrap();
    assert_eq!(first(&other, own_word(new)), draft(new).id);
    let seven = other.read(&draft(7).id).unwrap();
    assert_eq!(seven.standing.status, VerificationStatus::Verified);
    assert_eq!(other.stats().unwrap().indexed, u32::try_from(units + 1).unwrap());
    // What says the same is found among all of them, and stored no second time.
    let again = Draft { id: UnitId::random(), ..draft(7) };
    let Captured::Stored(inserted) = other.capture(again).unwrap() else { panic!("queued") };
    let (counts, seven) = (other.store().counts().unwrap(), other.read(&draft(7).id).unwrap());
    assert_eq!((counts.units, seven.audit.count), (units + 1, 2), "{inserted:?}");
}
