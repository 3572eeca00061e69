//! The notes of a verdict: what else is to be known of a run, typed, with their texts.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Cause;
use crate::recovery::RecoveryStep;

/// A note of a verdict. It decides nothing; may quote devices and the target (escape before
/// printing).
///
/// Records hold its text alone, so a note that is read back is a [`Note::Text`], and two notes are
/// equal if they say the same.
#[derive(Debug, Clone)]
pub enum Note {
    /// The fault injector struck.
    Injected {
        /// The fault, as it was asked for.
        fault: String,
        /// What was done.
        detail: String,
    },
    /// The probe did not answer at its first attach.
    AttachedLate {
        /// How many attaches it took.
        attempts: u32,
        /// How the last one was made.
        method: String,
    },
    /// A check failed before the test, of something that a run can do without.
    BeforeTest {
        /// The check.
        check: String,
        /// What it said.
        detail: String,
    },
    /// The rig was recovered before the test.
    RecoveredBeforeTest {
        /// The step that helped.
        step: RecoveryStep,
        /// What had been wrong.
        found: String,
    },
    /// The rig was recovered after an attempt, which was then made again.
    Recovered {
        /// The step that helped.
        step: RecoveryStep,
        /// What the attempt had ended with.
        after: Cause,
    },
    /// The rig was not recovered.
    NotRecovered {
        /// What is still wrong.
        detail: String,
    },
    /// What was wrong with a place before it was recovered.
    BeforeRecovery {
        /// What the proof had said.
        found: String,
    },
    /// What the test had shown before the verdict became the rig's or the caller's.
    Shown {
        /// Its cause.
        cause: Cause,
        /// Its summary.
        summary: String,
    },
    /// The known-good image passed.
    KnownGoodPassed {
        /// Its file name.
        image: String,
    },
    /// The known-good image has failed, passed and failed again.
    KnownGoodContradicts {
        /// How it failed.
        failure: String,
    },
    /// An attempt without a result was retried, and the retry did not pass either.
    MissingAgain,
    /// An attempt was made again because nothing showed which image had run.
    NotIdentified,
    /// Garbage came again on a transport that a known-good image had vouched for.
    GarbageAgain,
    /// The image of the test replaced the known-good image on the board.
    PutBack,
    /// The known-good image is still on the board.
    NotPutBack {
        /// Why: the cause of the attempt.
        cause: Cause,
        /// Its summary.
        summary: String,
    },
    /// The target was still printing when the watch behind the end was over.
    StillPrinting {
        /// How long it was watched.
        ms: u64,
    },
    /// A run passed, and behind its report the target printed lines that nothing accounts for.
    OutputBehind {
        /// How many lines.
        lines: u64,
        /// The first of them.
        first: String,
    },
    /// A wait was over only after more time than it was to take: the board could not run meanwhile.
    WaitExtended {
        /// How long it was to take.
        wait_ms: u64,
        /// For how long the board could not run.
        lost_ms: u64,
    },
    /// A note that is known by its text alone.
    Text(String),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Injected { fault, detail } => write!(f, "injected {fault}: {detail}"),
            Self::AttachedLate { attempts, method } => {
                write!(f, "the probe answered at the {} attach ({method})", nth(*attempts))
            }
            Self::BeforeTest { check, detail } => {
                write!(f, "before the test: {check}: {detail}")
            }
            Self::RecoveredBeforeTest { step, found } => {
                write!(f, "the rig was recovered by {step} before the test: {found}")
            }
            Self::Recovered { step, after } => {
                write!(f, "the rig was recovered by {step} after {after}")
            }
            Self::NotRecovered { detail } => write!(f, "the rig was not recovered: {detail}"),
            Self::BeforeRecovery { found } => write!(f, "before: {found}"),
            Self::Shown { cause, summary } => {
                write!(f, "the test had shown: {cause}: {summary}")
            }
            Self::KnownGoodPassed { image } => {
                write!(f, "the known-good image {image} passed on this place right after")
            }
            Self::KnownGoodContradicts { failure } => {
                write!(f, "{failure}; it contradicts itself")
            }
            Self::MissingAgain => f.write_str("a retry did not pass either"),
            Self::NotIdentified => {
                f.write_str("made again, because nothing showed which image had run")
            }
            Self::GarbageAgain => {
                f.write_str("garbage came again after the rig was recovered: the target prints it")
            }
            Self::PutBack => f.write_str("the test's own image was put back on the board"),
            Self::NotPutBack { cause, summary } => {
                write!(f, "the known-good image is still on the board: {cause}: {summary}")
            }
            Self::StillPrinting { ms } => write!(
                f,
                "the target was still printing {ms} ms behind the end, and what it printed later \
                 is not judged (to watch it longer: --settle TIME)"
            ),
            Self::OutputBehind { lines, first } => {
                let what = if *lines == 1 { "a line" } else { "the first of several lines" };
                let count = if *lines == 1 { String::new() } else { format!(" ({lines} lines)") };
                write!(
                    f,
                    "behind the report stands {what} that nothing accounts for{count}: {first} \
                     (with --strict-behind such a run does not pass; if it is harmless: --allow REGEX, or \
                     jig runs allow)"
                )
            }
            Self::WaitExtended { wait_ms, lost_ms } => {
                let seconds = |ms: u64| Duration::from_millis(ms).as_secs_f64();
                let (wait, lost) = (seconds(*wait_ms), seconds(*lost_ms));
                write!(
                    f,
                    "a wait for {wait} s was extended by {lost:.1} s, in which the board could not \
                     run (the host is busy, or the emulator was stopped)"
                )
            }
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Note {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::Text)
    }
}

impl PartialEq for Note {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Note {}

impl PartialEq<&str> for Note {
    fn eq(&self, other: &&str) -> bool {
        let text = self.to_string();
        text == *other
    }
}

/// Writes an ordinal number.
fn nth(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_is_read_back_says_the_same() {
        let notes = [
            Note::AttachedLate { attempts: 22, method: "m".to_owned() },
            Note::Recovered { step: RecoveryStep::FailOver, after: Cause::ProbeLost },
            Note::MissingAgain,
        ];
        let json = serde_json::to_string(&notes).unwrap();
        let text = "[\"the probe answered at the 22nd attach (m)\",\
                    \"the rig was recovered by fail-over after probe_lost\",\
                    \"a retry did not pass either\"]";
        assert_eq!(json, text);
        assert_eq!(serde_json::from_str::<Vec<Note>>(&json).unwrap(), notes);
        assert_ne!(notes[0], notes[1]);
        assert_eq!([1, 2, 3, 4, 11, 112].map(nth), ["1st", "2nd", "3rd", "4th", "11th", "112th"]);
    }
}
