//! `jig worker`: carries out one command for another program.
//!
//! The command is one line on standard input, or that of a job's folder; standard output has a line for each event and,
//! as the last one, the reply or the refusal ([`jig_model::command`]). A line that cannot be
//! written is dropped, and the command is brought to its end. If the reader has gone, the exit code
//! stays that of the command; if the output was lost otherwise (a full disk), it is never that of a
//! pass.

use std::convert::Infallible;
use std::io::{self, BufRead as _, Read as _};
use std::path::Path;
use std::sync::Arc;

use jig_lab::{Lab, LabConfig, ProbeCommandError};
use jig_model::command::{
    Command, CommandEvent, EventSink, LineError, MOST_LINE, Refusal, Reply, WorkerLine, to_line,
};
use jig_model::lease::RigUser;
use jig_model::{Fault, exit};
use jig_service::jobs::{Job, JobCancellation, JobOrder, JobOrders, JobSpec};
use tokio::sync::mpsc;

use super::runtime::until_signalled;
use crate::args::{Common, WorkerArgs};
use crate::failure::{Failure, chain};
use crate::render::Screen;

/// Pieces of input that may wait for the command.
const WAITING_INPUT: usize = 16;

/// Carries out the command on standard input, or a job. Ends with the exit code of its run.
pub(crate) fn worker(common: &Common, screen: &Screen, args: WorkerArgs) -> u8 {
    let carried_out = match &args.job {
        None => carry_out(common, screen),
        Some(folder) => carry_out_job(common, screen, folder),
    };
    let mut made = None;
    let (last, code) = match carried_out {
        Ok((reply, lab)) => {
            let code = match &reply {
                Reply::Run(ended) => {
                    made = Some((lab, ended.run.clone()));
                    ended.exit_code
                }
                _ => exit::PASS,
            };
            (WorkerLine::Reply(reply), code)
        }
        Err(failure) => {
            let code = failure.exit_code();
            (WorkerLine::Refused(failure.into()), code)
        }
    };
    match to_line(&last) {
        Ok(line) => screen.out(&line),
        Err(error) => {
            let (refusal, code) = shortened(last, code, &error);
            say(screen, &WorkerLine::Refused(refusal));
            return code;
        }
    }
    // The caller has the answer.
    if let Some((lab, run)) = made {
        lab.catalogue().knowledge().capture(&run);
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

fn carry_out(common: &Common, screen: &Screen) -> Result<(Reply, Lab), Failure> {
    let most = u64::try_from(MOST_LINE).unwrap_or(u64::MAX).saturating_add(1);
    let mut line = Vec::new();
    let read = io::stdin().lock().take(most).read_until(b'\n', &mut line);
    read.map_err(|error| Failure::of(Fault::Usage, &error))?;
    let command = Command::from_line(line.trim_ascii_end()).map_err(|error| {
        Failure::new(Fault::Usage, format!("this is no command: {}", chain(&error)))
    })?;
    let lab = Lab::open(&common.lab()?)?;
    let events = Arc::new(EventLines(screen.clone()));
    let reply = until_signalled(async |cancel| Ok(lab.execute(command, events, cancel).await?))?;
    Ok((reply, lab))
}

/// Carries out a job: its folder has the command, and the FIFOs by which it gets input and is cancelled.
fn carry_out_job(common: &Common, screen: &Screen, folder: &Path) -> Result<(Reply, Lab), Failure> {
    let job = Job::in_folder(folder).ok_or_else(|| {
        Failure::new(Fault::Usage, format!("{} is no folder of a job", folder.display()))
    })?;
    let spec = job.spec().map_err(|error| Failure::of(error.fault(), &error))?;
    let JobSpec { command, by, lease, attached: _ } = spec;
    let user = RigUser { identity: by, lease, ..RigUser::default() };
    let refusal = |error: ProbeCommandError| Failure::from(error).into();
    // Some injected faults are processes of this program.
    let program = std::env::current_exe().ok();
    let lab = Lab::open(&LabConfig { user, program, ..common.lab()? })?.refusing(refusal);
    let events = Arc::new(EventLines(screen.clone()));
    let reply = until_signalled(async |cancel| {
        let deaf = |error: io::Error| Failure::of(Fault::Lab, &error);
        let mut cancellation = JobCancellation::listen(folder).map_err(deaf)?;
        let mut orders = JobOrders::listen(folder).map_err(deaf)?;
        let (sender, input) = mpsc::channel(WAITING_INPUT);
        let mut sender = Some(sender);
        let asked = cancel.clone();
        let listen = async {
            loop {
                match orders.next().await {
                    Ok(JobOrder::Input(bytes)) => {
                        if let Some(sender) = &sender {
                            // A command that takes no input any more has said so.
                            let _ = sender.send(bytes).await;
                        }
                    }
                    Ok(JobOrder::End) => sender = None,
                    Err(error) => {
                        tracing::warn!(error = chain(&error), "the job takes no more orders");
                        return std::future::pending::<Infallible>().await;
                    }
                }
            }
        };
        let obey = async {
            cancellation.asked().await;
            asked.cancel();
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            biased;
            ended = lab.execute_with_input(command, input, events, cancel) => Ok(ended?),
            never = obey => match never {},
            never = listen => match never {},
        }
    })?;
    Ok((reply, lab))
}

/// Writes events on standard output.
struct EventLines(Screen);

impl EventSink for EventLines {
    fn event(&self, event: CommandEvent) {
        say(&self.0, &WorkerLine::Event(event));
    }
}

fn say(screen: &Screen, line: &WorkerLine) {
    match to_line(line) {
        Ok(line) => screen.out(&line),
        Err(error) => tracing::error!(error = chain(&error), "a line cannot be written"),
    }
}
