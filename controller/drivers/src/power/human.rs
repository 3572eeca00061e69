//! The person who switches what no device does.

use std::io;

use jig_model::protocol::BoxFuture;

/// The name of the person in messages.
pub(super) const PERSON: &str = "the person at the terminal";

/// Says why a person did not switch.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No person can be asked: there is no terminal.
    #[error(
        "a person must switch it, and there is no terminal to ask on (run this on one, or give \
         the place another power device)"
    )]
    NoTerminal,
    /// The question has no answer.
    #[error("the terminal was closed instead of an answer")]
    Closed,
    /// The answer was not the enter key alone.
    #[error("the answer was not just the enter key: taken as no")]
    Declined,
    /// There is a terminal, and it cannot be read.
    #[error("the terminal cannot be read")]
    Unreadable(#[source] io::Error),
}

/// Asks a person to do something.
pub trait AskHuman: Send + Sync {
    /// Asks, and returns when they say that it is done. Dropping the future takes the
    /// question back.
    ///
    /// # Errors
    /// Says why no person can be asked, or that the person said no.
    fn ask<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Result<(), AskError>>;
}

/// Stands where no person can be asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHuman;

impl AskHuman for NoHuman {
    fn ask<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), AskError>> {
        Box::pin(std::future::ready(Err(AskError::NoTerminal)))
    }
}
