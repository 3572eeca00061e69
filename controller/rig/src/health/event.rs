//! What can happen to the health of a place, and what each of it means.

use jig_model::protocol::CheckReport;
use jig_model::{Cause, Fault, RunId, VerdictKind};
use serde::{Deserialize, Serialize};

use super::{HealthPolicy, Proof};

/// Longest reason that is kept, in characters: a line for people.
const MAX_WHY: usize = 400;

/// Something that was seen at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "what", rename_all = "snake_case")]
pub enum HealthEvent {
    /// Its checks were run.
    Checked(Vec<CheckReport>),
    /// A run ended there.
    RunEnded {
        /// The run.
        run: RunId,
        /// What it came to.
        kind: VerdictKind,
        /// Why.
        cause: Cause,
        /// How long it took, in milliseconds.
        duration_ms: u64,
        /// How long putting the image on the board took, in milliseconds, if that was done.
        flash_ms: Option<u64>,
        /// How many times console output was lost.
        gaps: u32,
        /// How many of these were overruns of a port.
        #[serde(default)]
        overruns: u32,
        /// How many bytes of console output are known to be lost.
        #[serde(default)]
        lost_bytes: u64,
        /// How many characters came with a wrong stop or parity bit.
        #[serde(default)]
        garbled: u64,
    },
    /// The rig had failed, and recovery has done what it could.
    RecoveryEnded {
        /// The run that needed it.
        run: RunId,
        /// What had failed.
        cause: Cause,
        /// The step that recovered it; nothing if none did.
        step: Option<String>,
        /// How long recovery took, in milliseconds.
        took_ms: u64,
        /// What was seen, in one line.
        detail: String,
    },
    /// A known-good image was booted to tell the rig from the firmware.
    Canary {
        /// The run it belongs to.
        run: RunId,
        /// Whether it ran as it must.
        passed: bool,
        /// What was seen, in one line.
        detail: String,
    },
    /// No step of recovery could prove anything about the place.
    Quarantined {
        /// What was tried and seen, in one line.
        why: String,
    },
    /// A user or a command declares it healthy again.
    Cleared {
        /// Who: a person, or a command.
        by: String,
    },
}

/// What an event means for the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// The rig was seen to work.
    Sound,
    /// The rig was seen to work by what leads out of quarantine.
    Proof,
    /// The rig failed.
    Failed,
    /// The rig failed and was recovered.
    Recovered,
    /// The rig failed and could not be recovered.
    NotRecovered,
    /// Nothing is known of the place any more.
    Quarantined,
    /// A user or a command declares it healthy.
    Cleared,
}

impl Signal {
    /// Lists all of them.
    pub const ALL: &'static [Self] = &[
        Self::Sound,
        Self::Proof,
        Self::Failed,
        Self::Recovered,
        Self::NotRecovered,
        Self::Quarantined,
        Self::Cleared,
    ];

    /// Returns the stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::Proof => "proof",
            Self::Failed => "failed",
            Self::Recovered => "recovered",
            Self::NotRecovered => "not_recovered",
            Self::Quarantined => "quarantined",
            Self::Cleared => "cleared",
        }
    }
}

impl std::fmt::Display for Signal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl HealthEvent {
    /// Returns the stable name of the kind of event, as in its JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Checked(_) => "checked",
            Self::RunEnded { .. } => "run_ended",
            Self::RecoveryEnded { .. } => "recovery_ended",
            Self::Canary { .. } => "canary",
            Self::Quarantined { .. } => "quarantined",
            Self::Cleared { .. } => "cleared",
        }
    }

    /// Returns what it means for the state of the place; nothing if nothing.
    pub fn signal(&self, policy: &HealthPolicy) -> Option<Signal> {
        match self {
            // No check at all shows nothing.
            Self::Checked(reports) if reports.is_empty() => None,
            Self::Checked(reports) if reports.iter().all(|report| report.ok) => {
                Some(match policy.proof {
                    Proof::Checks => Signal::Proof,
                    Proof::Canary => Signal::Sound,
                })
            }
            Self::Checked(_) => Some(Signal::Failed),
            Self::RunEnded { kind, cause, .. } => of_run(*kind, *cause),
            Self::RecoveryEnded { step: Some(_), .. } => Some(Signal::Recovered),
            Self::RecoveryEnded { step: None, .. } => Some(Signal::NotRecovered),
            Self::Canary { passed: true, .. } => Some(Signal::Proof),
            Self::Canary { passed: false, .. } => Some(Signal::Failed),
            Self::Quarantined { .. } => Some(Signal::Quarantined),
            Self::Cleared { .. } => Some(Signal::Cleared),
        }
    }

    /// Says the event in one line, without line breaks. May quote anything else: escape it
    /// before printing.
    pub fn words(&self) -> String {
        let text = match self {
            Self::Checked(reports) => of_reports(reports),
            Self::RunEnded { run, kind, cause, .. } => match kind {
                VerdictKind::Pass => format!("run {run} passed"),
                VerdictKind::Fail
                | VerdictKind::Flaky
                | VerdictKind::EnvError
                | VerdictKind::Inconclusive
                | VerdictKind::Cancelled => format!("run {run} ended with {cause}"),
            },
            Self::RecoveryEnded { cause, step: Some(step), detail, .. } => {
                joined(&format!("{cause} recovered by {step}"), detail)
            }
            Self::RecoveryEnded { cause, step: None, detail, .. } => {
                joined(&format!("{cause} could not be recovered"), detail)
            }
            Self::Canary { passed, detail, .. } => {
                joined(if *passed { "canary passed" } else { "canary failed" }, detail)
            }
            Self::Quarantined { why } => why.clone(),
            Self::Cleared { by } => format!("cleared by {by}"),
        };
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        line.chars().take(MAX_WHY).collect()
    }
}

fn joined(what: &str, detail: &str) -> String {
    if detail.is_empty() { what.to_owned() } else { format!("{what}: {detail}") }
}

fn of_reports(reports: &[CheckReport]) -> String {
    let failed: Vec<_> = reports.iter().filter(|report| !report.ok).collect();
    if failed.is_empty() {
        return match reports.len() {
            0 => "no checks".to_owned(),
            1 => "1 check passed".to_owned(),
            n => format!("{n} checks passed"),
        };
    }
    let words: Vec<_> = failed.iter().map(|r| joined(&r.check, &r.detail)).collect();
    words.join("; ")
}

/// Returns what the end of a run says about the place it ran on.
fn of_run(kind: VerdictKind, cause: Cause) -> Option<Signal> {
    match kind {
        VerdictKind::Pass => Some(Signal::Sound),
        // The firmware failed, or the run was cancelled: nothing about the rig.
        VerdictKind::Fail | VerdictKind::Flaky | VerdictKind::Cancelled => None,
        VerdictKind::EnvError | VerdictKind::Inconclusive => match cause.fault() {
            Some(Fault::Lab) if of_the_place(cause) => Some(Signal::Failed),
            Some(Fault::Lab | Fault::Unknown | Fault::Usage | Fault::Profile | Fault::Target) => {
                None
            }
            Some(Fault::Cancelled | Fault::Bug) | None => None,
        },
    }
}

/// Tells whether a failure of the rig is one of the place. A program that is not installed on
/// the host, and a planner, would fail the same on every other place.
fn of_the_place(cause: Cause) -> bool {
    !matches!(
        cause,
        Cause::EmulatorMissing
            | Cause::HostCommandMissing
            | Cause::HostCommandRefused
            | Cause::PlannerFailed
    )
}
