//! Where recorded output of a program is from.

use serde::Serialize;

use crate::document::Choice;

/// Where recorded output of a program is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExampleOrigin {
    /// The program was run without a board and printed it.
    Run,
    /// The program was run with a boot loader that a test plays.
    Simulated,
    /// Source text or manual of the program.
    Source,
    /// A log that users of the program have published.
    Log,
}

impl Choice for ExampleOrigin {
    const WHAT: &'static str = "origin of output";
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("run", Self::Run),
        ("simulated", Self::Simulated),
        ("source", Self::Source),
        ("log", Self::Log),
    ];
}

impl ExampleOrigin {
    /// Returns it in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Simulated => "run with a simulated boot loader",
            Self::Source => "its source",
            Self::Log => "published log",
        }
    }
}
