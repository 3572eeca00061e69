//! Tests of whole attempts on a board that plays scripts.

mod actions;
mod after_end;
mod corpus;
mod ending;
mod excused;
mod expected;
mod expected_reset;
mod explained;
pub(crate) mod fake;
mod losses;
mod property;
mod reports;
