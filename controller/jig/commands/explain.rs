//! `jig explain`: answers questions about decisions, a line of JSON each.

pub(crate) mod failure;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use jig_model::{Fault, chain, exit};
use jig_repair::explain::{self, ExplainError};

use crate::args::{Common, ExplainCommand};
use crate::failure::Failure;
use crate::render::Screen;

/// Answers one line.
type Answer = fn(&str) -> Result<String, ExplainError>;

/// Longest line in bytes: a run of ten thousand iterations.
const MAX_LINE: u64 = 4 << 20;

/// Explains a run, or prints each line with its answer; the first line that has none ends it.
pub(crate) fn explain(
    common: &Common,
    screen: &Screen,
    command: ExplainCommand,
) -> Result<u8, Failure> {
    let (path, answer): (_, Answer) = match command {
        ExplainCommand::Failure { run } => return failure::explain(common, screen, &run),
        ExplainCommand::Convergence { file } => (file, explain::convergence),
        ExplainCommand::Analysis { file } => (file, explain::analysis),
    };
    let (name, input) = open(&path)?;
    answer_lines(screen, &name, input, answer)?;
    Ok(exit::PASS)
}

fn open(path: &Path) -> Result<(String, Box<dyn BufRead>), Failure> {
    if path == Path::new("-") {
        return Ok(("standard input".to_owned(), Box::new(io::stdin().lock())));
    }
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
    Ok((name, Box::new(BufReader::new(file))))
}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    Failure::new(Fault::Usage, format!("could not read {name}: {error}"))
        .help("give a file with one JSON object per line, or - for standard input")
}

fn answer_lines(
    screen: &Screen,
    name: &str,
    mut input: Box<dyn BufRead>,
    answer: Answer,
) -> Result<(), Failure> {
    let refused = |number: usize, reason: &str| {
        Failure::new(Fault::Usage, format!("{name}:{number}: {reason}"))
            .help("jig explain --help shows the form of a line")
    };
    for number in 1.. {
        let mut line = String::new();
        let read = input.by_ref().take(MAX_LINE).read_line(&mut line);
        let read = read.map_err(|error| unreadable(name, &error))?;
        if read == 0 {
            break;
        }
        if read as u64 == MAX_LINE && !line.ends_with('\n') {
            return Err(refused(number, "the line is longer than 4 MiB"));
        }
        if !line.trim().is_empty() {
            let answered = answer(line.trim()).map_err(|error| refused(number, &chain(&error)))?;
            screen.out(&answered);
        }
    }
    Ok(())
}
