//! A session: what its journal amounts to, and the driver that carries it on.
//!
//! The fold uses the same tables of transitions as the driver, so a journal that the machines could not
//! have written is refused and not repaired.

mod calls;
mod drive;
mod fold;
mod recover;
mod thinking;
mod undo;
mod work;

pub use drive::{DriveSessionError, SessionBinding, SessionFiles, SessionWatcher, drive};
pub use fold::{CallRecord, GivenConfirmation, Session, SessionFoldError};
pub use undo::{NoUndo, SessionUndo};
pub(crate) use work::exit_code;

#[cfg(test)]
mod clock_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod undo_tests;
