//! The post-mortem: what a debug port finds of a failed target before it is switched off.
//!
//! Its finding is part of the observation that the judge sees. A debug port that fails, hangs or
//! finds nothing leaves a note, and the run ends as without it.
//!
//! # Design
//! A core that is halted in a fault has failed, whether a console reports it or not. The finding
//! decides (`core_fault`, `lockup`) where the consoles prove nothing, and explains the failure
//! where they do. A fault that the firmware has left, with its status registers cleared, proves
//! nothing.
//!
//! *A green end is looked at, too.* What was printed does not show a fault that came after it, or
//! a handler that prints what the plan waits for. So the exception that the core executes is read
//! last; whether it took a fault before does not count, because a test may provoke one. Two reads
//! have to agree. Where these show only that the core may be in a fault, the post-mortem has to find
//! that it is in one for good. A handler that ends its target while the post-mortem looks leaves it
//! nothing to find, so the fault is read once more then. Where a read or the post-mortem cannot be carried out, the run is
//! inconclusive, or the rig's failure if a health check fails, too; a debug port that tells nothing of
//! this kind of core leaves the verdict as it is.
//!
//! *So is a board that had too little time*, on a busy host. A fault for good is proof in spite of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jig_model::image::{DeployReport, Image, ImageFormat};
use jig_model::post_mortem::{FaultProof, FaultSighting, PostMortem, StackFrame};
use jig_model::protocol::{DebugPort, DriverError, PostMortemRequest, RunControl};
use jig_model::{Cause, Fault, RunEvent, chain};
use tokio::time::{sleep, timeout};

use super::board::AttemptBoard;
use crate::judge::{ByteRange, CoreFinding, Incident, IncidentKind};
use crate::store::{POST_MORTEM_FILE, RunDir};
use crate::workflow::{ActionFailure, CancelToken};

/// How long a debug port may take. Registers and stack are read within milliseconds; what
/// takes time is the core dump: 1 MiB of RAM at the 100 KiB/s of a slow probe are ten
/// seconds.
///
/// Shorter in unit tests, whose scripted debug port answers at once or never.
const TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 20_000 });

/// How often the state of a core is read, or a post-mortem is tried, where a pass depends on it. A
/// transfer of a debug probe that fails now and then succeeds the next time.
const TRIES: usize = 3;

/// How long a core stays in the handler of a fault that the firmware does not get over.
const AGAIN: Duration = Duration::from_millis(20);

/// Longest summary, sentence and name in characters, and most frames, sentences and
/// registers: more than people read, and all of it comes from the image, which is not trusted.
const MAX_SUMMARY: usize = 512;
const MAX_NAME: usize = 256;
const MAX_FRAMES: usize = 128;
const MAX_THREAD_FRAMES: usize = 32;
const MAX_LINES: usize = 64;
const MAX_REGISTERS: usize = 256;

/// Returns the cause that makes a post-mortem worthwhile, if there is one: the target has faulted,
/// was reset or hangs, and neither the rig nor a cancellation is the reason.
fn why(incidents: &[Incident], failure: Option<&ActionFailure>) -> Option<Cause> {
    let lost = incidents.iter().any(|incident| matches!(incident.kind, IncidentKind::Lost(_)));
    let failed = failure.map(|failure| failure.cause);
    if lost || failed.is_some_and(|cause| cause.fault() != Some(Fault::Target)) {
        return None;
    }
    // A fault says more than the lock-up or reset it led to.
    let recognised = incidents.iter().find_map(|incident| match incident.kind {
        IncidentKind::Recognised(cause) => Some(cause),
        _ => None,
    });
    let seen = incidents.iter().find_map(|incident| match incident.kind {
        IncidentKind::Lockup => Some(Cause::Lockup),
        IncidentKind::Aborted => Some(Cause::TargetAborted),
        IncidentKind::GuestPanic => Some(Cause::GuestPanic),
        IncidentKind::Watchdog => Some(Cause::WatchdogReset),
        IncidentKind::Reset => Some(Cause::UnexpectedReset),
        IncidentKind::Exit(code) if code != 0 => Some(Cause::GuestExit),
        IncidentKind::Exit(_) | IncidentKind::Lost(_) | IncidentKind::Recognised(_) => None,
    });
    // A wait that ran out may mean that the target hangs. A failed assertion or host command says
    // nothing of the state of the target.
    let silent = failed.filter(|cause| {
        matches!(
            cause,
            Cause::Hang | Cause::ExpectMissed | Cause::NoOutput | Cause::ReportIncomplete
        )
    });
    recognised.or(seen).or(silent)
}

/// Finds the image that a deployment put on the board.
pub(super) fn image_of<'i>(
    images: &'i BTreeMap<Option<PathBuf>, Image>,
    deployed: Option<&DeployReport>,
) -> Option<&'i Image> {
    let deployed = deployed?;
    images.values().find(|image| image.sha256 == deployed.sha256)
}

/// Returns the file of an image that has symbols; other formats name no function and no line.
pub(super) fn symbols_of(image: Option<&Image>) -> Option<PathBuf> {
    let symbols = image.filter(|image| image.format == ImageFormat::Elf);
    symbols.map(|image| image.path.clone())
}

/// Says why a debug port explains nothing.
#[derive(Debug, thiserror::Error)]
enum PostMortemError {
    #[error("a stop was requested")]
    Cancelled,
    #[error("the debug port took longer than {TIMEOUT:?}")]
    Overdue,
    #[error(transparent)]
    Port(DriverError),
    #[error(transparent)]
    Encode(serde_json::Error),
    #[error("write {}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

/// What a post-mortem needs of its attempt, and where it is written.
pub(super) struct Examination<'a> {
    pub(super) dir: &'a RunDir,
    pub(super) attempt: u32,
    /// Folder for what drivers leave as evidence.
    pub(super) evidence: &'a Path,
    pub(super) cancel: &'a CancelToken,
}

impl Examination<'_> {
    /// Lets the debug port, if there is one, explain what went wrong, or tell that something did
    /// though nothing has shown it; the board still has its power and nothing has reset it.
    /// `image` is what was put on the board.
    pub(super) async fn explain(
        &self,
        board: &AttemptBoard,
        (debug, control): (
            Option<&mut (dyn DebugPort + 'static)>,
            Option<&mut (dyn RunControl + 'static)>,
        ),
        image: Option<&Image>,
        failure: Option<&ActionFailure>,
    ) -> Option<CoreFinding> {
        let debug = debug?;
        let symbols = symbols_of(image);
        let why = why(&board.facts().incidents, failure);
        if let Some(why) = why {
            let examined = self.examine(board, debug, symbols, why).await;
            return examined.unwrap_or_else(|error| {
                note_failure(board, &error);
                None
            });
        }
        // Of a target that has ended, its emulator knows whether it was in a fault.
        let ended = board.facts().ended_well();
        // A board that had too little time proves nothing, but for a core that stands in a fault.
        let starved = failure.is_some_and(|failure| failure.cause == Cause::RigUnhealthy);
        let looks = (failure.is_none() || starved) && (ended || board.facts().may_be_looked_at());
        if !looks {
            return None;
        }
        let found = self.last_look(board, (debug, control), symbols).await?;
        let proven = found.proves.is_some_and(|cause| cause != Cause::Unconfirmed);
        (!starved || proven).then_some(found)
    }

    /// Looks at the core of a board on which nothing has failed, before the plan ends its boot.
    pub(super) async fn look(
        &self,
        board: &AttemptBoard,
        ports: (&mut dyn DebugPort, Option<&mut (dyn RunControl + 'static)>),
        image: Option<&Image>,
    ) -> Option<CoreFinding> {
        self.last_look(board, ports, symbols_of(image)).await
    }

    /// Looks at the core of a board on which nothing has failed, before it is switched off.
    async fn last_look(
        &self,
        board: &AttemptBoard,
        (debug, control): (&mut dyn DebugPort, Option<&mut (dyn RunControl + 'static)>),
        image: Option<PathBuf>,
    ) -> Option<CoreFinding> {
        let looked = async {
            if self.current_fault(debug).await?.is_some() {
                // A test may provoke a fault and step over it just now.
                debug.runs_on();
                run_on(control, AGAIN).await;
                if let Some(fault) = self.current_fault(debug).await? {
                    return Ok(Some(fault));
                }
            }
            match &image {
                Some(image) => {
                    let halt =
                        async { debug.fatal_halt(image).await.map_err(PostMortemError::Port) };
                    self.in_time(halt).await
                }
                None => Ok(None),
            }
        };
        let FaultSighting { name, proof, taken } = match looked.await {
            Ok(found) => found?,
            Err(error) => {
                note_failure(board, &error);
                return Some(unknown(chain(&error), None));
            }
        };
        let mut tries = 0;
        let error = loop {
            tries += 1;
            match self.examine(board, debug, image.clone(), Cause::CoreFault).await {
                // The handler may have ended the target meanwhile.
                Ok(None) if proof == FaultProof::Suspected => {
                    match self.current_fault(debug).await {
                        Ok(ended) => {
                            let ended = ended.filter(|now| now.proof != FaultProof::Suspected)?;
                            return Some(without_story(ended));
                        }
                        Err(error) => break Some(error),
                    }
                }
                // The fault is proven, even if nothing explains it.
                Ok(None) => break None,
                Ok(finding) => return finding.map(|finding| CoreFinding { taken, ..finding }),
                Err(PostMortemError::Port(_)) if tries < TRIES => {}
                Err(error) => break Some(error),
            }
        };
        if let Some(error) = &error {
            note_failure(board, error);
        }
        Some(without_story(FaultSighting { name, proof, taken }))
    }

    /// Reads in which fault the core is.
    async fn current_fault(
        &self,
        debug: &mut dyn DebugPort,
    ) -> Result<Option<FaultSighting>, PostMortemError> {
        self.in_time(async {
            let mut tries = 1;
            loop {
                match debug.current_fault().await {
                    Err(_) if tries < TRIES => tries += 1,
                    found => return found.map_err(PostMortemError::Port),
                }
            }
        })
        .await
    }

    /// Waits for an answer of the debug port as long as it may take.
    async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, PostMortemError>>,
    ) -> Result<T, PostMortemError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(PostMortemError::Cancelled),
            found = timeout(TIMEOUT, answer) => found.unwrap_or(Err(PostMortemError::Overdue)),
        }
    }

    /// Asks the debug port and keeps what it tells.
    async fn examine(
        &self,
        board: &AttemptBoard,
        debug: &mut dyn DebugPort,
        image: Option<PathBuf>,
        why: Cause,
    ) -> Result<Option<CoreFinding>, PostMortemError> {
        let core = self.evidence.join("target.core");
        let request = PostMortemRequest { image, core, why };
        let asked = tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(PostMortemError::Cancelled),
            asked = timeout(TIMEOUT, debug.post_mortem(&request)) => match asked {
                Ok(told) => told.map_err(PostMortemError::Port),
                Err(_) => Err(PostMortemError::Overdue),
            },
        };
        match asked? {
            None => Ok(None),
            Some(told) => self.keep(board, self.bounded(told)).map(Some),
        }
    }

    fn keep(
        &self,
        board: &AttemptBoard,
        report: PostMortem,
    ) -> Result<CoreFinding, PostMortemError> {
        let path = self.dir.post_mortem_path(self.attempt);
        let file = self.dir.relative(&path).unwrap_or_else(|| POST_MORTEM_FILE.to_owned());
        let (summary, proves) = (report.summary.clone(), report.proves);
        let json = serde_json::to_vec_pretty(&report).map_err(PostMortemError::Encode)?;
        let written = std::fs::write(&path, &json);
        // The event holds the finding even if the file cannot be written.
        board.emit(RunEvent::PostMortem { artefact: file.clone(), report });
        written.map_err(|source| PostMortemError::Write { path, source })?;
        let range = ByteRange { file, start: 0, end: json.len() as u64, text: summary };
        Ok(CoreFinding { proves, range, taken: None })
    }

    /// Shortens names from the debug information of the image, and makes the path of the core dump
    /// relative to the run.
    fn bounded(&self, mut told: PostMortem) -> PostMortem {
        told.summary = cut(&told.summary, MAX_SUMMARY);
        told.kind = cut(&told.kind, MAX_NAME);
        for list in [&mut told.status, &mut told.limits] {
            list.truncate(MAX_LINES);
            list.iter_mut().for_each(|line| *line = cut(line, MAX_SUMMARY));
        }
        if told.frames.len() > MAX_FRAMES {
            let more = told.frames.len() - MAX_FRAMES;
            told.frames.truncate(MAX_FRAMES);
            told.limits.push(format!("{more} more frames are left out"));
        }
        told.threads.truncate(MAX_LINES);
        for thread in &mut told.threads {
            thread.name = cut(&thread.name, MAX_NAME);
            thread.frames.truncate(MAX_THREAD_FRAMES);
        }
        let threads = told.threads.iter_mut().flat_map(|thread| &mut thread.frames);
        for StackFrame { function, file, .. } in told.frames.iter_mut().chain(threads) {
            for text in [function, file].into_iter().flatten() {
                *text = cut(text, MAX_NAME);
            }
        }
        told.registers.truncate(MAX_REGISTERS);
        told.registers.iter_mut().for_each(|(name, _)| *name = cut(name, MAX_NAME));
        told.core = told.core.filter(|core| core.is_file()).and_then(|core| {
            // A core dump outside of the run directory is not listed.
            self.dir.relative(&core).map(PathBuf::from)
        });
        told
    }
}

/// What is found of a fault that no post-mortem explains.
fn without_story(FaultSighting { name, proof, taken }: FaultSighting) -> CoreFinding {
    let found = unknown(name, taken);
    let proven = (proof == FaultProof::InHandler).then_some(Cause::CoreFault);
    CoreFinding { proves: proven.or(found.proves), ..found }
}

/// What is found of a core that may be in a fault.
fn unknown(text: String, taken: Option<u32>) -> CoreFinding {
    let range = ByteRange { text, ..ByteRange::default() };
    CoreFinding { proves: Some(Cause::Unconfirmed), range, taken }
}

fn note_failure(board: &AttemptBoard, error: &PostMortemError) {
    let error = chain(error);
    let text = format!("why the target failed could not be looked into: {error}");
    board.emit(RunEvent::Note { text });
}

/// Lets a board that is halted run for a moment. What it prints meanwhile is judged, too.
async fn run_on(control: Option<&mut (dyn RunControl + 'static)>, time: Duration) {
    let Some(control) = control else { return sleep(time).await };
    let resumed = control.resume().await;
    sleep(time).await;
    let halted = control.halt().await;
    if let Err(error) = resumed.and(halted) {
        // The monitor that failed is reported by its owner.
        tracing::debug!(error = chain(&error), "the board could not be let run for a moment");
    }
}

fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((at, _)) => format!("{} [...]", &text[..at]),
    }
}
