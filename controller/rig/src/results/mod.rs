//! Reads test results out of a console's bytes, while they come.
//!
//! Owns one grammar for each format of `formats.rs` and for a plan's own markers. Refuses to judge: it reports what the target said and what
//! is wrong with how it said it; whether that is a pass is decided elsewhere.
//!
//! # Design
//! - **Lines.** CR and LF end a line. Colours and one to three known log prefixes (time
//!   stamp, level, Zephyr and ESP-IDF tags) are removed; any other text in front of a
//!   result makes it prose. Lines over 4 KiB are never results; one that would have been is
//!   a remark.
//! - **Candidates.** A line that only one format can have printed opens a report of that
//!   format. A log may hold such a line by accident, so every family of formats that was opened
//!   is read side by side, each by itself; KTAP outranks TAP while no result has been read. A line
//!   that a plan's markers know is read by them alone. Where the plan names a format, the
//!   others are not looked for.
//! - **The report that counts.** One with a failure, else a complete one, else the one with the most
//!   results (`choice.rs`). Cases of several reports are not merged: results of another one
//!   are a remark, and so is another one that was begun: two of its lines belong together, or no log
//!   has such a line. A single line that resembles the opening of a format and is followed by no
//!   result is part of the log, unless it stands behind the end of the report.
//! - **Events** are those of the report that counts as far as is known. Those of the others are
//!   kept until it is their turn.
//! - **Never greener.** Of two outcomes of a case the worse stays, with a remark. Summaries
//!   can add failures, never remove them. Every remark means that the report cannot be
//!   trusted as it stands: a report with remarks must not be judged a pass.
//! - **Failing assertions.** Each format declares the lines that a failing assertion prints in front
//!   of a result (`AssertionSigns`). One above a pass or a skip is a remark, and so is one in a
//!   report without a failure. A format that marks a failure as expected excuses it.
//! - **Counts.** Every count that a summary gives is compared with the cases that were seen.
//! - **One report per parser.** Start a new parser for every boot. Results after the end
//!   marker clear `ended` again and leave a remark, as does a head that comes twice.
//! - **Interrupted.** A line that a fault banner, reset or gap cuts is no result, and a
//!   report with such a cut in it carries a remark.
//! - **What no grammar can see.** Bytes lost without notice that held exactly one whole TAP
//!   sub-test (its point then looks like a plain case), or a whole ztest suite together
//!   with its line in the summary; a whole test of Go, a cmocka group or a round of ESP-IDF's
//!   menu, which nothing announces. Known gaps must therefore be told to the parser.
//! - **Cases without a name.** A quiet runner prints marks and a summary, or only a summary. Its
//!   cases are then called `case 1` and so on. A summary that contradicts itself, the marks or
//!   the failures seen is a remark. One that stands alone (Check, Catch2, ArduinoUnit) proves as
//!   many passes without names as it counts.
//! - **An opening alone** (`1..5`, `running 2 tests`) that a log may hold, too, is no report before a
//!   case has begun.
//! - **Marks alone** (`....`) and other words that prose may hold open a report as a guess: it is
//!   none unless a line follows that only the format can have printed.
//! - **Unfinished last line.** At the end of the stream, and for a wait once nothing follows for a
//!   tenth of a second, it counts only where no further
//!   byte could change its meaning: Unity's `OK`/`FAIL` below the summary, ztest's
//!   `PROJECT EXECUTION ...`, GoogleTest's counts (they end in `.` or a keyword), libtest's
//!   `test result` with its time, a summary that ends in a bracket or a keyword, a marker of the end whose expression is not open-ended.
//!   TAP and case lines of every format never count unfinished.
//! - **End.** TAP has no end marker: a report ends when the outermost plan is fulfilled, or
//!   with `Bail out!`, which also counts as one claimed failure.

mod aunit;
mod catch2;
mod check;
mod choice;
mod cmocka;
mod cpputest;
mod defmt_test;
mod doctest;
mod embunit;
mod formats;
mod golang;
mod grammar;
mod greentea;
mod gtest;
mod libtest;
mod marked_counts;
mod markers;
mod nuttx;
mod parser;
mod power_on;
mod pytest;
mod read_lines;
mod reading;
mod record;
mod scan;
mod tally;
mod tap;
mod teamcity;
mod unity;
mod ztest;

#[cfg(test)]
mod tests;

pub use markers::MarkerError;
pub use parser::ResultParser;
pub use read_lines::ReadLines;
pub use record::ResultEvent;
