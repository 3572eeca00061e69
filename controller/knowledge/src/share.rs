//! Units that travel between labs: lines of JSON with hashes.
//!
//! # Format, version 1
//! Each line is `{"version":1,"sha256":HASH,"unit":TEXT}`; `unit` is the unit as JSON in a text, and the
//! hash is that of the text. A hash finds damage; it proves no origin. What comes from another lab is
//! data of a stranger: it is checked and cleaned like a capture, and it is not proven here.

use std::io::{BufRead, Read as _, Write};

use serde::{Deserialize, Serialize};

use crate::error::KnowledgeError;
use crate::knowledge::Knowledge;
use crate::store::Inserted;
use crate::text::digest_of;
use crate::unit::{
    Draft, KnowledgeUnit, MAX_UNIT, Standing, StandingEvent, UnitId, VerificationStatus,
};

/// Longest line in bytes: a unit, quoted twice.
pub const MOST_SHARED_LINE: usize = MAX_UNIT * 8;

const LINE: u64 = MOST_SHARED_LINE as u64;

/// Units that are exported at once.
const BATCH: usize = 512;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SharedLine {
    version: u32,
    sha256: String,
    unit: String,
}

/// Says why a line was not imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum LineProblem {
    /// It is too long.
    #[error("longer than {LINE} bytes")]
    TooLong,
    /// It is not of the form.
    #[error("not a line of an export: {why}")]
    Unreadable {
        /// Why.
        why: String,
    },
    /// A newer Jig wrote it.
    #[error("has version {version}, this jig knows 1")]
    Newer {
        /// Its version.
        version: u32,
    },
    /// Its hash is another one.
    #[error("damaged: its hash is another one")]
    Damaged,
    /// It cannot be a unit.
    #[error("cannot be a unit: {why}")]
    Refused {
        /// Why.
        why: String,
    },
    /// A unit of the same name says something else here.
    #[error(
        "conflict: {id} has version {ours} here and says something else in version {theirs}; ours stays; \
         `jig kb show {id}` shows it"
    )]
    Conflict {
        /// The unit.
        id: UnitId,
        /// Our version.
        ours: u32,
        /// Their version.
        theirs: u32,
    },
}

/// What came of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportReport {
    /// Units that are new.
    pub new: usize,
    /// Units that repeat one that says the same under another name.
    pub repeats: usize,
    /// Units that are here already.
    pub known: usize,
    /// Numbers of lines that were not imported, and why.
    pub problems: Vec<(usize, LineProblem)>,
}

/// Says why an export or import ended.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] KnowledgeError),
    /// The lines cannot be read or written.
    #[error("could not read or write the lines")]
    Stream(#[source] std::io::Error),
}

/// Writes all units, archived ones on demand. Returns how many.
///
/// # Errors
/// The store cannot be read, or the writer failed.
pub fn export(
    knowledge: &Knowledge,
    archived: bool,
    out: &mut dyn Write,
) -> Result<usize, ShareError> {
    let (mut seq, mut count) = (0, 0);
    loop {
        let (changed, last) = knowledge.store().changed_behind(seq, BATCH)?;
        let Some(last) = last else { return Ok(count) };
        for changed in changed.iter().filter(|changed| archived || !changed.unit.standing.archived)
        {
            let line = shared_line(&changed.unit)?;
            writeln!(out, "{line}").map_err(ShareError::Stream)?;
            count += 1;
        }
        seq = last;
    }
}

/// A part of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportPage {
    /// Its lines.
    pub lines: String,
    /// How many there are.
    pub count: usize,
    /// The change behind which the next part begins; nothing behind the last one.
    pub next: Option<u64>,
}

/// Writes units behind a change as lines, until they have so many bytes; archived ones on demand.
///
/// # Errors
/// The store cannot be read.
pub fn export_page(
    knowledge: &Knowledge,
    archived: bool,
    behind: u64,
    bytes: usize,
) -> Result<ExportPage, ShareError> {
    let mut page = ExportPage { next: Some(behind), ..ExportPage::default() };
    while let Some(seq) = page.next.filter(|_| page.lines.len() < bytes) {
        // One at a time: a unit may be as large as a page.
        let (changed, last) = knowledge.store().changed_behind(seq, 1)?;
        for changed in changed.iter().filter(|changed| archived || !changed.unit.standing.archived)
        {
            page.lines.push_str(&shared_line(&changed.unit)?);
            page.lines.push('\n');
            page.count += 1;
        }
        page.next = last;
    }
    Ok(page)
}

fn shared_line(unit: &KnowledgeUnit) -> Result<String, KnowledgeError> {
    let unit = serde_json::to_string(unit).map_err(KnowledgeError::Encode)?;
    let line = SharedLine { version: 1, sha256: digest_of(&unit), unit };
    serde_json::to_string(&line).map_err(KnowledgeError::Encode)
}

/// Reads lines and stores their units. A line with a problem is reported, and the others are imported.
/// With `trusted`, what was proven there counts as proven here.
///
/// # Errors
/// The store or the reader failed; lines before that are imported.
pub fn import(
    knowledge: &Knowledge,
    lines: &mut dyn BufRead,
    trusted: bool,
) -> Result<ImportReport, ShareError> {
    let mut report = ImportReport::default();
    for number in 1.. {
        let mut line = Vec::new();
        let read = (&mut *lines).take(LINE + 1).read_until(b'\n', &mut line);
        if read.map_err(ShareError::Stream)? == 0 {
            break;
        }
        if line.len() as u64 > LINE {
            skip_line(lines).map_err(ShareError::Stream)?;
            report.problems.push((number, LineProblem::TooLong));
            continue;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match unit_of(&line) {
            Ok(unit) => merge(knowledge, unit, trusted, number, &mut report)?,
            Err(problem) => report.problems.push((number, problem)),
        }
    }
    Ok(report)
}

fn skip_line(lines: &mut dyn BufRead) -> std::io::Result<()> {
    loop {
        let part = lines.fill_buf()?;
        let (length, ends) = match part.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (part.len(), part.is_empty()),
        };
        lines.consume(length);
        if ends {
            return Ok(());
        }
    }
}

fn unit_of(line: &[u8]) -> Result<KnowledgeUnit, LineProblem> {
    let unreadable = |error: serde_json::Error| LineProblem::Unreadable { why: error.to_string() };
    let line: SharedLine = serde_json::from_slice(line).map_err(unreadable)?;
    if line.version != 1 {
        return Err(LineProblem::Newer { version: line.version });
    }
    if line.sha256 != digest_of(&line.unit) {
        return Err(LineProblem::Damaged);
    }
    serde_json::from_str(&line.unit).map_err(unreadable)
}

fn merge(
    knowledge: &Knowledge,
    unit: KnowledgeUnit,
    trusted: bool,
    number: usize,
    report: &mut ImportReport,
) -> Result<(), ShareError> {
    let KnowledgeUnit { id, content, metadata, standing, audit } = unit;
    match knowledge.store().unit(&id) {
        Ok(ours) if ours.content == content && ours.metadata == metadata => {
            report.known += 1;
            return Ok(());
        }
        Ok(ours) => {
            let problem =
                LineProblem::Conflict { id, ours: ours.audit.version, theirs: audit.version };
            report.problems.push((number, problem));
            return Ok(());
        }
        Err(KnowledgeError::Unknown(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let draft = Draft {
        id,
        content,
        metadata,
        at: audit.created_at,
        by: audit.created_by,
        trigger: audit.trigger,
    };
    match knowledge.store_foreign(draft, adopted(standing, trusted)) {
        Ok(Inserted::New { .. }) => report.new += 1,
        Ok(Inserted::Repeat { .. }) => report.repeats += 1,
        Ok(Inserted::Known { .. }) => report.known += 1,
        Err(KnowledgeError::Limit(error)) => {
            let problem = LineProblem::Refused { why: error.to_string() };
            report.problems.push((number, problem));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Returns how far a unit of another lab is believed: one that was proven there is as good as one that
/// was proven in the run that it comes from. What was refuted there stays refuted.
fn adopted(theirs: Standing, trusted: bool) -> Standing {
    let event = match theirs.status {
        VerificationStatus::Verified if trusted => StandingEvent::Confirmed,
        VerificationStatus::Verified => StandingEvent::ProvenAtOrigin,
        VerificationStatus::Rejected => StandingEvent::Rejected,
        VerificationStatus::Pending | VerificationStatus::Expired => return Standing::NEW,
    };
    Standing::NEW.next(event).unwrap_or(Standing::NEW)
}
