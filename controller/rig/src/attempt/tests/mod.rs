//! Tests of whole attempts on a board that plays scripts.

mod actions;
mod fake;
mod losses;
mod property;
mod reports;
