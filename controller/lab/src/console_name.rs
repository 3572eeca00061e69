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

/// As [`console_of`], but none where it is the primary one: what a plan without a name means.
pub(crate) fn beside_primary(
    board: &BoardProfile,
    wanted: Option<ConsoleName>,
) -> Result<Option<ConsoleName>, NoConsole> {
    let console = console_of(board, wanted)?;
    Ok(Some(console).filter(|console| console != board.primary_console()))
}

#[cfg(test)]
mod tests {
    use jig_model::profile::{FaultSetText, FaultSets};

    use super::*;
    use crate::catalogue::built_in::{BOARDS, FAULT_SETS};

    #[test]
    fn a_console_beside_the_primary_one_is_named_and_an_unknown_one_is_refused() {
        let (name, text) = BOARDS.iter().find(|(name, _)| *name == "mps2-an385").unwrap();
        let sets = FAULT_SETS.iter().map(|&(name, text)| FaultSetText { name, origin: name, text });
        let sets = FaultSets::parse(sets).unwrap();
        let origin = format!("built-in {name}");
        let mut board = BoardProfile::parse(&origin, text, &sets).unwrap();
        let primary = board.primary_console().clone();
        let second: ConsoleName = "second".parse().unwrap();
        let mut console = board.consoles[0].clone();
        console.name = second.clone();
        board.consoles.push(console);
        assert_eq!(beside_primary(&board, None).unwrap(), None);
        assert_eq!(beside_primary(&board, Some(primary.clone())).unwrap(), None);
        assert_eq!(beside_primary(&board, Some(second.clone())).unwrap(), Some(second.clone()));
        let refused = beside_primary(&board, Some("none".parse().unwrap())).unwrap_err();
        assert!(refused.known.contains(&primary) && refused.known.contains(&second));
    }
}
