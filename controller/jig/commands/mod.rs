//! What each command does. Every command returns its exit code, or why it could not start.

pub(crate) mod boards;
mod check;
pub(crate) mod console;
pub(crate) mod discover;
pub(crate) mod doctor;
pub(crate) mod health;
pub(crate) mod inject;
mod lab;
pub(crate) mod machine;
pub(crate) mod manual;
pub(crate) mod plan;
pub(crate) mod power;
pub(crate) mod probe;
pub(crate) mod profile;
pub(crate) mod recover;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod serve;
mod session;
mod turn;
