//! What is seen in the folder of a run that has ended: record, events, evidence.
//!
//! Everything in it may be hostile: files have limits, and what cannot be read is left out.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Component, Path};

use jiff::Timestamp;
use jig_knowledge::observed::{
    ObservedEnd, ObservedFailure, ObservedImage, ObservedRecovery, ObservedRun, bounded_signature,
    rig_signature,
};
use jig_knowledge::text::{EntityKind, entities};
use jig_knowledge::unit::EvidenceSource;
use jig_model::recovery::{RecoveryEvent, RecoveryStep};
use jig_model::result::CaseStatus;
use jig_model::signature::{first_bad_line, verdict_signature};
use jig_model::{Evidence, RunEvent, StampedEvent, Verdict, VerdictKind};
use jig_rig::store::{EventItem, RunDir, RunRecord, open_regular};

use super::commit::commit_of;

/// Most ranges of evidence that are hashed, and most of them that are quoted.
const RANGES: usize = 4;
const QUOTED: usize = 2;

/// Most bytes of a range that are hashed and of one that are quoted.
const HASHED: u64 = 1 << 20;
const QUOTE: usize = 2048;

/// Most events that are looked through.
const EVENTS: usize = 100_000;

/// Returns the signature of the failure of a run, by which it is seen again; none for a pass, or where
/// nothing is proven.
pub fn signature_of(record: &RunRecord) -> Option<String> {
    let verdict = record.verdict.as_ref()?;
    match (verdict.kind, &record.place) {
        (VerdictKind::Fail, _) => Some(bounded_signature(&verdict_signature(verdict)?)),
        // The same cause at another place is another failure of the rig.
        (VerdictKind::EnvError, Some(place)) => {
            Some(rig_signature(verdict.cause.as_str(), place.as_str()))
        }
        (VerdictKind::EnvError, None)
        | (
            VerdictKind::Pass
            | VerdictKind::Flaky
            | VerdictKind::Inconclusive
            | VerdictKind::Cancelled,
            _,
        ) => None,
    }
}

/// Returns what is seen in a run. `repairs` is the folder of the repair loop, whose runs fail and pass on
/// purpose.
pub fn observed_run(
    dir: &RunDir,
    record: &RunRecord,
    chip: Option<&String>,
    repairs: &Path,
) -> ObservedRun {
    let verdict = record.verdict.as_ref();
    let (recoveries, drill) = recoveries_of(dir);
    let plan = record.plan.as_ref();
    let names = |status: CaseStatus| {
        let cases = verdict.into_iter().flat_map(|verdict| &verdict.tests.cases);
        cases.filter(move |case| case.status == status).map(|case| case.name.clone())
    };
    ObservedRun {
        run: record.id.to_string(),
        at: record.ended.or(record.started).unwrap_or_else(Timestamp::now),
        by: record.identity.as_ref().map_or_else(|| "jig".to_owned(), ToString::to_string),
        place: record.place.as_ref().map(ToString::to_string),
        board: record.board.as_ref().map(ToString::to_string),
        chip: chip.cloned(),
        plan: plan.map(|plan| plan.name.clone()),
        image: record.images.first().map(|image| {
            let path = Path::new(&image.path);
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            ObservedImage {
                name,
                sha256: image.sha256.clone(),
                build_id: image.build_id.clone(),
                commit: commit_of(path),
            }
        }),
        end: verdict.map_or(ObservedEnd::Unclear, |verdict| match verdict.kind {
            VerdictKind::Pass => ObservedEnd::Passed,
            VerdictKind::Fail => ObservedEnd::Failed,
            VerdictKind::EnvError => ObservedEnd::RigFailed,
            VerdictKind::Flaky | VerdictKind::Inconclusive | VerdictKind::Cancelled => {
                ObservedEnd::Unclear
            }
        }),
        failure: signature_of(record).zip(verdict).map(|(signature, verdict)| {
            let failed = names(CaseStatus::Fail).chain(names(CaseStatus::Unfinished)).collect();
            failure_of(dir, verdict, signature, failed)
        }),
        passed: names(CaseStatus::Pass).collect(),
        recoveries,
        drill,
        in_repair: plan.is_some_and(|plan| Path::new(&plan.origin).starts_with(repairs)),
    }
}

fn failure_of(
    dir: &RunDir,
    verdict: &Verdict,
    signature: String,
    failed: Vec<String>,
) -> ObservedFailure {
    let line = first_bad_line(verdict).map(str::to_owned);
    let (mut quotes, mut evidence) = (Vec::new(), Vec::new());
    for range in verdict.evidence.iter().take(RANGES) {
        let Some(bytes) = bytes_of(dir, range) else { continue };
        let (run, file) = (dir.id().as_str(), range.file.as_str());
        evidence.push(EvidenceSource::of(run, file, range.start, &bytes));
        if quotes.len() < QUOTED && file.ends_with(".raw") {
            quotes.push(String::from_utf8_lossy(&bytes[..bytes.len().min(QUOTE)]).into_owned());
        }
    }
    let named = line.iter().map(String::as_str).chain([verdict.summary.as_str()]);
    let named = named.flat_map(entities).filter(|entity| entity.kind == EntityKind::File);
    let files = named.map(|entity| entity.name).collect();
    ObservedFailure {
        class: verdict.cause.as_str().to_owned(),
        signature,
        summary: verdict.summary.clone(),
        failed,
        line,
        quotes,
        evidence,
        files,
    }
}

/// Reads a range of evidence; none where it leads out of the run, or is longer than what is hashed.
fn bytes_of(dir: &RunDir, range: &Evidence) -> Option<Vec<u8>> {
    let inner = Path::new(&range.file);
    let plain = |part| matches!(part, Component::Normal(_));
    let length = range.end.checked_sub(range.start).filter(|length| *length <= HASHED)?;
    if !inner.components().all(plain) {
        return None;
    }
    let mut file: File = open_regular(&dir.path().join(inner)).ok()?;
    file.seek(SeekFrom::Start(range.start)).ok()?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the steps of recovery that were taken, and whether a fault was injected.
fn recoveries_of(dir: &RunDir) -> (Vec<ObservedRecovery>, bool) {
    let (mut steps, mut drill) = (Vec::new(), false);
    let mut cause = String::new();
    let events = dir.events().into_iter().flatten().take(EVENTS).map_while(Result::ok);
    for item in events {
        let EventItem::Event(event) = item else { continue };
        let StampedEvent { event, .. } = *event;
        match event {
            RunEvent::Injected { .. } => drill = true,
            RunEvent::Recovery(RecoveryEvent::Began { cause: why, .. }) => {
                cause = why.as_str().to_owned();
            }
            // Taking a place out of service recovers nothing.
            RunEvent::Recovery(RecoveryEvent::Proof { step, ok, .. })
                if step != RecoveryStep::OutOfService =>
            {
                let step = step.as_str().to_owned();
                steps.push(ObservedRecovery { cause: cause.clone(), step, ok });
            }
            _ => {}
        }
    }
    (steps, drill)
}
