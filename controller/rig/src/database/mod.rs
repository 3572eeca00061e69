//! SQLite files that many processes use at once: how they are opened, waited for and refused.
//!
//! Owns neither tables nor what they mean.

mod busy_timeout;
mod error;
mod open;

pub use error::DatabaseError;
pub(crate) use open::{Database, DatabaseFormat};
