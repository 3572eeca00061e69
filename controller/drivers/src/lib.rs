//! One module per kind of real-world thing.
//!
//! **Invariant: no policy.** A driver does one thing to one thing and says truthfully
//! whether it worked. It knows no store, no plan and no verdict, and no board's name.
//! [`process`] is the only place in the house that starts a child process.

pub mod checks;
mod descriptor;
pub mod discover;
mod file_watch;
pub mod flasher;
pub mod host;
pub mod inject;
mod own_timeout;
pub mod power;
pub mod process;
pub mod program;
pub mod qemu;
mod regular_file;
pub mod reset;
pub mod serial;
pub mod shell;
pub mod ssh;

pub use own_timeout::OwnTimeout;
