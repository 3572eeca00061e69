//! A rig that others use: from this host and from others.
//!
//! **Invariant: no verdict and no board.** It carries commands, events and files between a caller
//! and the rig's host; what a command does is the business of `lab`.

pub mod client;
mod digest;
mod growing_file;
pub mod jobs;
pub mod protocol;
pub mod server;
