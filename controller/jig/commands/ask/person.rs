//! The person at the terminal: questions are put, dangerous actions shown, answers read.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

use jig_operator::journal::SessionRequest;
use jig_operator::machine::OperatorState;
use jig_operator::session::Session;

use super::show::waiting_lines;
use crate::render::{Screen, one_line};

/// Most of an answer that is read.
const MAX_ANSWER: u64 = 4096;

/// Asks the person what the session waits for. Nothing where there is no person, or no answer.
pub(super) fn answered(screen: &Screen, name: &str, session: &Session) -> Option<SessionRequest> {
    if screen.json() || !io::stdin().is_terminal() {
        return None;
    }
    match session.state {
        OperatorState::Clarifying => {
            let mut answers = Vec::new();
            for question in &session.questions {
                let choices = match question.choices.as_slice() {
                    [] => String::new(),
                    choices => format!(" ({})", one_line(&choices.join(", "))),
                };
                answers.push(line(&format!("{}{choices} ", one_line(&question.text)))?);
            }
            Some(SessionRequest::Answer { answers })
        }
        OperatorState::AwaitingConfirmation => {
            let digest = session.waits.as_ref()?.digest.clone();
            waiting_lines(name, session).iter().for_each(|line| screen.insist(line));
            let yes = line("carry it out? [y/N] ")?;
            let yes = matches!(yes.to_ascii_lowercase().as_str(), "y" | "yes");
            Some(SessionRequest::Confirm { yes, digest })
        }
        _ => None,
    }
}

/// Reads a line; nothing at the end of input.
fn line(prompt: &str) -> Option<String> {
    {
        let mut err = io::stderr().lock();
        err.write_all(prompt.as_bytes()).and_then(|()| err.flush()).ok()?;
    }
    let mut line = String::new();
    io::stdin().lock().take(MAX_ANSWER).read_line(&mut line).ok()?;
    (!line.is_empty()).then(|| line.trim().to_owned())
}
