//! Learning: an observation becomes rows of the past, units, and events of their standing, in one change.
//!
//! # Design
//! *One transaction for each observation.* What is learnt and that it was learnt are durable together. A
//! process that is killed leaves neither, and the same run is learnt from again by the next one.
//!
//! *Units that are the only ones for something have its name.* "How often does a power cycle help at bench-3
//! against this" is one unit for ever: its name is derived, and its text is written anew from the counts. What
//! a person has edited keeps its text; only counts and standing go on.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jig_model::redact::Redactor;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::{Deserialize, Serialize};

use super::alternation::{self, image_change};
use super::past::{self, FixRow};
use super::schema::KnowledgeStore;
use super::write::{EVIDENCE, LinkKind, save, sketch_anew};
use crate::error::KnowledgeError;
use crate::lessons::repair::RepairLesson;
use crate::lessons::{Lesson, change, pattern, recovery, repair, repeat};
use crate::observed::{LearningInput, ObservedEnd, ObservedRepair, ObservedRun};
use crate::unit::{
    CaptureTrigger, Draft, KnowledgeUnit, Standing, StandingEvent, UnitId, VerificationStatus,
};

/// When something is captured by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureRules {
    /// A failure that was seen this often becomes a unit.
    pub repeats: u64,
    /// So many fixes of a class on a kind of board become a unit of their own.
    pub threshold: u64,
    /// No unit is made where there are this many.
    pub most_units: u64,
}

impl Default for CaptureRules {
    fn default() -> Self {
        Self { repeats: 3, threshold: 10, most_units: 20_000 }
    }
}

/// What became of an observation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learnt {
    /// It was learnt from before: nothing was counted.
    pub known: bool,
    /// Units that were made, renewed, counted or told something.
    pub units: Vec<LearntUnit>,
    /// Units that were not made because there are too many.
    pub left_out: usize,
}

/// What became of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearntUnit {
    /// The unit.
    pub id: UnitId,
    /// Whether it is new.
    pub new: bool,
    /// What its standing was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<StandingEvent>,
}

/// What happens to a unit is noted under this name: no person has done it.
const BY: &str = "jig";

impl KnowledgeStore {
    /// Learns from an observation, once for each run. The observation is clean.
    ///
    /// # Errors
    /// The store cannot be read or written; nothing is learnt then.
    pub(crate) fn learn(
        &self,
        observation: &LearningInput,
        rules: &CaptureRules,
    ) -> Result<Learnt, KnowledgeError> {
        let body = match observation {
            LearningInput::Run(run) => serde_json::to_string(run),
            LearningInput::Repair(repair) => serde_json::to_string(repair),
        };
        let body = body.map_err(KnowledgeError::Encode)?;
        self.change(|change| {
            if past::is_known(change, observation.run())? {
                return Ok(Ok(Learnt { known: true, ..Learnt::default() }));
            }
            let mut learning = Learning { store: self, change, rules, learnt: Learnt::default() };
            let done = match observation {
                LearningInput::Run(run) => {
                    past::note_run(change, run, &body)?;
                    learning.learn_run(run)?
                }
                LearningInput::Repair(repair) => {
                    past::note_repair(change, repair, &body)?;
                    learning.learn_repair(repair)?
                }
            };
            past::forget_oldest(change)?;
            Ok(done.map(|()| learning.learnt))
        })
    }

    /// Counts the runs of a signature but for one, and names the last one.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn seen_runs(
        &self,
        signature: &str,
        without: &str,
    ) -> Result<(u64, Option<(String, i64)>), KnowledgeError> {
        let seen = self.with(|connection| past::seen_runs(connection, signature, without))?;
        Ok((seen.count, seen.last))
    }

    /// Returns the units in use of a signature; those that are damaged are left out.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn units_of_signature(
        &self,
        signature: &str,
    ) -> Result<Vec<KnowledgeUnit>, KnowledgeError> {
        let docs = self.of_signature(signature)?;
        let units = self.units(&docs)?.into_iter().map(|changed| changed.unit);
        Ok(units.filter(|unit| !unit.standing.archived).collect())
    }

    /// Returns which of some runs were not learnt from.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn unknown_of(&self, runs: &[String]) -> Result<Vec<String>, KnowledgeError> {
        self.with(|connection| {
            let mut unknown = Vec::new();
            for run in runs {
                if !past::is_known(connection, run)? {
                    unknown.push(run.clone());
                }
            }
            Ok(unknown)
        })
    }

    /// Tells whether something that is done once a day is due, and notes that it is done.
    ///
    /// # Errors
    /// The store cannot be written.
    pub(crate) fn is_due_today(&self, name: &str, now: Timestamp) -> Result<bool, KnowledgeError> {
        let day = 86_400_000_000;
        self.change(|change| Ok(Ok(past::is_due(change, name, now, day)?)))
    }
}

type Done = rusqlite::Result<Result<(), KnowledgeError>>;

/// Goes on where a call within a change has succeeded.
macro_rules! within {
    ($call:expr) => {
        match $call? {
            Ok(value) => value,
            Err(error) => return Ok(Err(error)),
        }
    };
}

struct Learning<'l> {
    store: &'l KnowledgeStore,
    change: &'l Connection,
    rules: &'l CaptureRules,
    learnt: Learnt,
}

impl Learning<'_> {
    fn learn_run(&mut self, run: &ObservedRun) -> Done {
        if run.drill {
            return Ok(Ok(()));
        }
        within!(self.recoveries(run));
        if run.in_repair {
            return Ok(Ok(()));
        }
        within!(self.contradicted_by(run));
        within!(self.doubted_by(run));
        if let Some(failure) = &run.failure {
            let count = past::count_of(self.change, &failure.signature)?;
            if let Some(lesson) = repeat::lesson(run, count, self.rules.repeats) {
                within!(self.keep(&lesson));
            }
        }
        // The row of this run is there already; the one before it is older or has a smaller name.
        let Some(before) = past::before(self.change, run)? else { return Ok(Ok(())) };
        let known = before.failure.as_ref().map_or(Ok(None), |failure| {
            self.find(&change::unit_of(run.board.as_deref(), &failure.signature))
        })?;
        let fixes = known.as_ref().map_or(0, |(_, unit)| unit.audit.count);
        let Some(mut lesson) = change::lesson(&before, run, fixes) else { return Ok(Ok(())) };
        let is_proven = lesson.draft.trigger == CaptureTrigger::Success
            && alternation::is_repeated(self.change, (&before, run), &lesson.draft.id)?;
        // What is verified names the two images that have proven it, until two others do.
        if let Some((_, unit)) = known
            && unit.standing.status == VerificationStatus::Verified
            && !is_proven
        {
            lesson.draft.content = unit.content;
        }
        let Some(id) = within!(self.keep(&lesson)) else { return Ok(Ok(())) };
        let hash = run.image.as_ref().map(|image| image.sha256.clone()).unwrap_or_default();
        self.note_fix(&image_change(&hash), &run.run, &id, &lesson.draft, true)?;
        if is_proven {
            within!(self.tell(&id, StandingEvent::ProvenElsewhere));
        }
        self.pattern(&lesson.draft)
    }

    /// A pass with the image that had failed speaks against a fix by another one: the failure comes and goes.
    fn doubted_by(&mut self, run: &ObservedRun) -> Done {
        for failure in alternation::failures_that_pass(self.change, run)? {
            let id = change::unit_of(run.board.as_deref(), &failure.signature);
            let believed = self.find(&id)?.filter(|(_, unit)| unit.standing.maturity > 0);
            if believed.is_some() {
                within!(self.tell(&id, StandingEvent::Contradicted));
            }
        }
        Ok(Ok(()))
    }

    fn recoveries(&mut self, run: &ObservedRun) -> Done {
        let Some(place) = &run.place else { return Ok(Ok(())) };
        let mut told = BTreeSet::new();
        for step in &run.recoveries {
            let counts = past::recoveries_of(self.change, place, &step.cause, &step.step)?;
            if !told.insert((&step.cause, &step.step)) {
                continue;
            }
            let lesson = recovery::lesson(run, place, step, counts);
            let Some(id) = within!(self.keep(&lesson)) else { continue };
            let event = match (step.ok, counts) {
                (true, (1, _)) => StandingEvent::ProvenAtOrigin,
                (true, _) => StandingEvent::ProvenElsewhere,
                (false, _) => StandingEvent::Contradicted,
            };
            within!(self.tell(&id, event));
        }
        Ok(Ok(()))
    }

    /// A failure with the very image that had fixed it speaks against the fix.
    fn contradicted_by(&mut self, run: &ObservedRun) -> Done {
        let failed = run.failure.as_ref().filter(|_| run.end == ObservedEnd::Failed);
        let Some((failure, image)) = failed.zip(run.image.as_ref()) else { return Ok(Ok(())) };
        let what = image_change(&image.sha256);
        self.contradicted(&what, &failure.signature, &run.run, run.at)
    }

    fn contradicted(&mut self, what: &str, signature: &str, run: &str, at: Timestamp) -> Done {
        for unit in past::units_fixed_by(self.change, what)? {
            let Ok(id) = unit.parse::<UnitId>() else { continue };
            let Some((_, unit)) = self.find(&id)? else { continue };
            if unit.metadata.signature.as_deref() != Some(signature) {
                continue;
            }
            let (class, board) = (
                unit.metadata.class.as_deref().unwrap_or_default(),
                unit.metadata.board.as_deref().unwrap_or_default(),
            );
            let fix = FixRow { change: what, run, unit: &id, class, board, worked: false, at };
            if !past::note_fix(self.change, &fix)? {
                continue;
            }
            // There is nothing left to lower: what is refuted once more is rejected.
            let event = match unit.standing.maturity {
                0 => StandingEvent::Rejected,
                _ => StandingEvent::Contradicted,
            };
            within!(self.tell(&id, event));
        }
        Ok(Ok(()))
    }

    fn learn_repair(&mut self, run: &ObservedRepair) -> Done {
        let signature = run.failure.signature.as_str();
        let proven = run.patch.as_ref().filter(|_| run.end.is_proven());
        for attempt in &run.attempts {
            let is_proven = proven.is_some_and(|patch| patch.identity == attempt.patch);
            if attempt.signature.as_deref() == Some(signature) && !is_proven {
                within!(self.contradicted(&attempt.patch, signature, &run.run, run.at));
            }
        }
        let lesson = match repair::lesson(run, self.rules.repeats) {
            None => return Ok(Ok(())),
            Some(RepairLesson::Other(lesson)) => {
                within!(self.keep(&lesson));
                return Ok(Ok(()));
            }
            Some(RepairLesson::Proven(lesson)) => lesson,
        };
        let Some(patch) = proven else { return Ok(Ok(())) };
        let Some(id) = within!(self.keep(&lesson)) else { return Ok(Ok(())) };
        let is_new = self.learnt.units.last().is_some_and(|unit| unit.new);
        self.note_fix(&patch.identity, &run.run, &id, &lesson.draft, true)?;
        let event = match is_new {
            true => StandingEvent::ProvenAtOrigin,
            false => StandingEvent::ProvenElsewhere,
        };
        within!(self.tell(&id, event));
        self.pattern(&lesson.draft)
    }

    fn note_fix(
        &self,
        change: &str,
        run: &str,
        unit: &UnitId,
        draft: &Draft,
        worked: bool,
    ) -> rusqlite::Result<bool> {
        let class = draft.metadata.class.as_deref().unwrap_or_default();
        let board = draft.metadata.board.as_deref().unwrap_or_default();
        let fix = FixRow { change, run, unit, class, board, worked, at: draft.at };
        past::note_fix(self.change, &fix)
    }

    /// Sums up the fixes of a class, where there are enough.
    fn pattern(&mut self, newest: &Draft) -> Done {
        let class = newest.metadata.class.as_deref().unwrap_or_default();
        let board = newest.metadata.board.as_deref().unwrap_or_default();
        let ids = past::fixes_of_class(self.change, class, board)?;
        if (ids.len() as u64) < self.rules.threshold {
            return Ok(Ok(()));
        }
        let mut units = Vec::new();
        for id in ids.iter().take(64).filter_map(|id| id.parse::<UnitId>().ok()) {
            units.extend(self.find(&id)?.map(|(_, unit)| unit));
        }
        let Some(lesson) = pattern::lesson(newest, &units, ids.len() as u64) else {
            return Ok(Ok(()));
        };
        let Some(id) = within!(self.keep(&lesson)) else { return Ok(Ok(())) };
        for unit in units.iter().filter(|unit| unit.id != id).take(10) {
            let insert = "INSERT OR IGNORE INTO link VALUES (?1, ?2, ?3)";
            let kind = LinkKind::Related.word();
            self.change.execute(insert, [id.as_str(), kind, unit.id.as_str()])?;
        }
        Ok(Ok(()))
    }

    fn find(&self, id: &UnitId) -> rusqlite::Result<Option<(i64, KnowledgeUnit)>> {
        let select = "SELECT doc FROM unit WHERE id = ?1";
        let doc = self.change.query_row(select, [id.as_str()], |row| row.get(0)).optional()?;
        let Some(doc) = doc else { return Ok(None) };
        // A damaged unit keeps nothing from being learnt.
        Ok(self.store.load(self.change, doc)?.ok().map(|unit| (doc, unit)))
    }

    fn tell(&mut self, id: &UnitId, event: StandingEvent) -> Done {
        let at = self.learnt_at(id)?;
        match self.store.tell_in(self.change, id, event, (BY, at))? {
            Ok(_) => {}
            // It is archived: a person has put it away, or it was rejected twice.
            Err(KnowledgeError::Standing { .. } | KnowledgeError::Unknown(_)) => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        }
        match self.learnt.units.iter_mut().find(|unit| unit.id == *id && unit.told.is_none()) {
            Some(unit) => unit.told = Some(event),
            None => {
                self.learnt.units.push(LearntUnit {
                    id: id.clone(),
                    new: false,
                    told: Some(event),
                });
            }
        }
        Ok(Ok(()))
    }

    /// The time of an event is that of the last sight of its unit.
    fn learnt_at(&self, id: &UnitId) -> rusqlite::Result<Timestamp> {
        Ok(self.find(id)?.map_or(Timestamp::UNIX_EPOCH, |(_, unit)| {
            unit.audit.last_seen.max(unit.audit.updated_at)
        }))
    }

    /// Makes the unit of a lesson, or renews it. Returns nothing where there are too many units.
    fn keep(
        &mut self,
        lesson: &Lesson,
    ) -> rusqlite::Result<Result<Option<UnitId>, KnowledgeError>> {
        let Lesson { draft, count } = lesson;
        // The draft is made of clean texts; this bounds its title and its lists.
        let Ok(draft) = draft.clone().cleaned(&Redactor::default()) else {
            // The same run would fail again each time.
            self.learnt.left_out += 1;
            return Ok(Ok(None));
        };
        let (id, new) = match self.find(&draft.id)? {
            Some((doc, unit)) => {
                within!(self.renew(doc, unit, &draft, *count));
                (draft.id.clone(), false)
            }
            None if self.is_full()? => {
                self.learnt.left_out += 1;
                return Ok(Ok(None));
            }
            None => {
                // Never by likeness: a patch that differs in one character is not the proven one.
                let kept = within!(self.store.insert_into(
                    self.change,
                    &draft,
                    (Standing::NEW, draft.at),
                    false
                ));
                let id = kept.id().clone();
                if let Some((doc, mut unit)) = self.find(&id)?
                    && let Some(count) = *count
                {
                    unit.audit.count = count;
                    within!(save(self.change, doc, &unit));
                }
                (id, true)
            }
        };
        self.learnt.units.push(LearntUnit { id: id.clone(), new, told: None });
        Ok(Ok(Some(id)))
    }

    fn is_full(&self) -> rusqlite::Result<bool> {
        let select = "SELECT count(*) FROM unit";
        let units: u64 = self.change.query_row(select, [], |row| row.get(0))?;
        Ok(units >= self.rules.most_units)
    }

    fn renew(
        &self,
        doc: i64,
        mut unit: KnowledgeUnit,
        draft: &Draft,
        count: Option<u64>,
    ) -> rusqlite::Result<Result<i64, KnowledgeError>> {
        let prose = unit.content.prose();
        let mut evidence = std::mem::take(&mut unit.content.evidence);
        for source in &draft.content.evidence {
            if !evidence.contains(source) && evidence.len() < EVIDENCE {
                evidence.push(source.clone());
            }
        }
        // What a person has written stays.
        if unit.audit.version == 1 && !unit.standing.archived {
            unit.content = draft.content.clone();
            unit.metadata.confidence = draft.metadata.confidence;
            unit.audit.updated_at = unit.audit.updated_at.max(draft.at);
        }
        unit.content.evidence = evidence;
        unit.audit.count = count.unwrap_or(unit.audit.count.saturating_add(1));
        unit.audit.last_seen = unit.audit.last_seen.max(draft.at);
        sketch_anew(self.change, doc, &prose, &unit.content.prose())?;
        let seen = "UPDATE unit SET read_us = max(read_us, ?1) WHERE doc = ?2";
        self.change.execute(seen, params![draft.at.as_microsecond(), doc])?;
        save(self.change, doc, &unit)
    }
}
