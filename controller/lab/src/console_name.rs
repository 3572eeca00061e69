//! The console that a command is about.

use jig_model::profile::BoardProfile;
use jig_model::{BoardId, ConsoleName};

/// The board has no such console.
#[derive(Debug, thiserror::Error)]
#[error("board {board} has no console {console}")]
pub struct NoConsole {
    /// The board.
    pub board: BoardId,
    /// The console.
    pub console: ConsoleName,
    /// The consoles that it has.
    pub known: Vec<ConsoleName>,
}

/// Returns the named console of a board, the primary one if none is named.
pub(crate) fn console_of(
    board: &BoardProfile,
    wanted: Option<ConsoleName>,
) -> Result<ConsoleName, NoConsole> {
    let Some(console) = wanted else { return Ok(board.primary_console().clone()) };
    let known: Vec<_> = board.consoles.iter().map(|console| console.name.clone()).collect();
    if known.contains(&console) {
        return Ok(console);
    }
    Err(NoConsole { board: board.id.clone(), console, known })
}
