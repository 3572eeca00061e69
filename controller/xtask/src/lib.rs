//! What the tasks of this repository share: running programs, failures, fixtures.
//!
//! A library beside the program, because `controller/bench` uses it too. It imports as little of
//! this workspace as it can, because it is built before the first task of a new checkout runs.
#![expect(clippy::print_stdout, reason = "a chore talks to the person who started it")]

pub mod failure;
pub mod fixtures;
pub mod process;
pub mod project;
pub mod python;

use std::fmt::Write as _;

/// Spells bytes in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
