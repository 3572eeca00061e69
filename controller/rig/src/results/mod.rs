//! Reads test results out of a console's bytes, while they come.
//!
//! Owns the grammars of Unity, ztest, TAP 13/14, KTAP, GoogleTest, libtest (embedded-test)
//! and of a plan's own markers. Refuses to judge: it reports what the target said and what
//! is wrong with how it said it; whether that is a pass is decided elsewhere.
//!
//! # Design
//! - **Lines.** CR and LF end a line. Colours and one to three known log prefixes (time
//!   stamp, level, Zephyr and ESP-IDF tags) are removed; any other text in front of a
//!   result makes it prose. Lines over 4 KiB are never results; one that would have been is
//!   a remark.
//! - **One format per report.** The first line that only one format can have printed locks
//!   it in. KTAP outranks TAP while no result has been read. A plan's markers are tried
//!   before the formats. Unmistakable lines of another format later are a remark; their
//!   cases are not merged. Where the plan names a format, the others are not looked for.
//! - **Never greener.** Of two outcomes of a case the worse stays, with a remark. Summaries
//!   can add failures, never remove them. Every remark means that the report cannot be
//!   trusted as it stands: a report with remarks must not be judged a pass.
//! - **One report per parser.** Start a new parser for every boot. Results after the end
//!   marker clear `ended` again and leave a remark, as does a head that comes twice.
//! - **Interrupted.** A line that a fault banner, reset or gap cuts is no result, and a
//!   report with such a cut in it carries a remark.
//! - **What no grammar can see.** Bytes lost without notice that held exactly one whole TAP
//!   sub-test (its point then looks like a plain case), or a whole ztest suite together
//!   with its line in the summary. Known gaps must therefore be told to the parser.
//! - **Unfinished last line.** At the end of the stream, and for a wait once nothing follows for a
//!   tenth of a second, it counts only where no further
//!   byte could change its meaning: Unity's `OK`/`FAIL` below the summary, ztest's
//!   `PROJECT EXECUTION ...`, GoogleTest's counts (they end in `.` or a keyword), libtest's
//!   `test result` with its time, a marker of the end whose expression is not open-ended.
//!   TAP and case lines of every format never count unfinished.
//! - **End.** TAP has no end marker: a report ends when the outermost plan is fulfilled, or
//!   with `Bail out!`, which also counts as one claimed failure.

mod formats;
mod grammar;
mod gtest;
mod libtest;
mod markers;
mod parser;
mod record;
mod scan;
mod tap;
mod unity;
mod ztest;

#[cfg(test)]
mod tests;

pub use markers::MarkerError;
pub use parser::ResultParser;
pub use record::ResultEvent;
