//! `jig worker`: carries out one command for another program.
//!
//! The command is one line on standard input; standard output has a line for each event and,
//! as the last one, the reply or the refusal ([`jig_model::command`]). A caller that goes away
//! ends nothing: a line that cannot be written is dropped, and the command is brought to its end.

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::sync::Arc;

use jig_lab::Lab;
use jig_model::command::{
    Command, CommandEvent, EventSink, LineError, MOST_LINE, Refusal, Reply, WorkerLine, to_line,
};
use jig_model::{Fault, Problems, exit};

use super::execute::execute;
use crate::args::Common;
use crate::failure::{Failure, chain};

/// Carries out the command on standard input. Ends with the exit code of its run.
pub(crate) fn worker(common: &Common) -> u8 {
    let (last, code) = match carry_out(common) {
        Ok(reply) => {
            let code = match &reply {
                Reply::Run(ended) => ended.exit_code,
                _ => exit::PASS,
            };
            (WorkerLine::Reply(reply), code)
        }
        Err(failure) => {
            let code = failure.exit_code();
            let Failure { fault, message, help, problems } = failure;
            let problems = problems.iter().flat_map(Problems::located).collect();
            (WorkerLine::Refused(Refusal { fault, message, help, problems }), code)
        }
    };
    match to_line(&last) {
        Ok(line) => put(&line),
        Err(error) => {
            let (refusal, code) = shortened(last, code, &error);
            say(&WorkerLine::Refused(refusal));
            return code;
        }
    }
    code
}

/// Returns what is said in place of a last line that is too long.
fn shortened(last: WorkerLine, code: u8, error: &LineError) -> (Refusal, u8) {
    if let WorkerLine::Refused(refusal) = last {
        return (Refusal { problems: Vec::new(), ..refusal }, code);
    }
    let message = format!("the answer cannot be told: {}", chain(error));
    let help = Some("have the bytes written to a file: `output` of the action".to_owned());
    let refusal = Refusal { fault: Fault::Usage, message, help, problems: Vec::new() };
    (refusal, exit::of_fault(Fault::Usage))
}

fn carry_out(common: &Common) -> Result<Reply, Failure> {
    let most = u64::try_from(MOST_LINE).unwrap_or(u64::MAX).saturating_add(1);
    let mut line = Vec::new();
    let read = io::stdin().lock().take(most).read_until(b'\n', &mut line);
    read.map_err(|error| Failure::of(Fault::Usage, &error))?;
    let command = Command::from_line(line.trim_ascii_end()).map_err(|error| {
        Failure::new(Fault::Usage, format!("this is no command: {}", chain(&error)))
    })?;
    execute(&Lab::open(&common.lab())?, command, Arc::new(Lines))
}

/// Says events on standard output.
struct Lines;

impl EventSink for Lines {
    fn event(&self, event: CommandEvent) {
        say(&WorkerLine::Event(event));
    }
}

/// Writes a line at once; ignores a closed output.
fn say(line: &WorkerLine) {
    match to_line(line) {
        Ok(line) => put(&line),
        Err(error) => tracing::error!(error = chain(&error), "an event cannot be told"),
    }
}

fn put(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
