//! Asking the person at the terminal to switch something.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use jig_drivers::power::{AskError, AskHuman};
use jig_model::protocol::BoxFuture;
use tokio::task::spawn_blocking;

use crate::render::one_line;

/// Most of an answer that is read: enter, or a word of refusal.
const MAX_ANSWER: u64 = 256;

/// The person at the terminal.
pub(crate) struct Terminal;

impl AskHuman for Terminal {
    fn ask<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Result<(), AskError>> {
        Box::pin(async move {
            if !std::io::stdin().is_terminal() {
                return Err(AskError::NoTerminal);
            }
            let question = format!("{} - press enter when it is done ", one_line(question));
            {
                let mut err = std::io::stderr().lock();
                // A terminal that takes no text cannot be asked on either; the answer tells.
                let _ = err.write_all(question.as_bytes()).and_then(|()| err.flush());
            }
            // Nothing can take back a read of a terminal; the thread ends with the process.
            let answer = spawn_blocking(|| {
                let mut line = String::new();
                std::io::stdin().lock().take(MAX_ANSWER).read_line(&mut line).map(|_| line)
            });
            match answer.await {
                Ok(Ok(line)) if line.is_empty() => Err(AskError::Closed),
                Ok(Ok(line)) if line.trim().is_empty() => Ok(()),
                Ok(Ok(_)) => Err(AskError::Declined),
                Ok(Err(error)) => Err(AskError::Unreadable(error)),
                Err(error) => Err(AskError::Unreadable(io::Error::other(error))),
            }
        })
    }
}
