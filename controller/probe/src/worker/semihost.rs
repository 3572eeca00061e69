//! Serves a program that calls its host by semihosting: it stands at `BKPT 0xab` until the
//! call is answered.

use std::time::{Duration, Instant};

use probe_rs::semihosting::SemihostingCommand;
use probe_rs::{
    BreakpointCause, Core, CoreStatus, HaltReason, MemoryInterface as _, RegisterId,
    RegisterValue as Value,
};

use super::core::STEP;
use super::open_session::{OpenSession, WorkerPulse};
use super::target_memory::SessionMemory;
use super::translate;
use crate::ProbeError;
use crate::semihosting::{HostAnswer, SYS_CLOSE, SYS_OPEN, SYS_READ, SYS_WRITE, answer};

/// How long the next call is waited for behind one that was answered: programs print in
/// several calls.
const NEXT: Duration = Duration::from_micros(500);

/// How long a program that goes on calling is served in one turn; others wait for the probe.
const TURN: Duration = Duration::from_millis(5);

/// Text that is taken in one turn, beyond the last call of it.
const MOST_TEXT: usize = 256 << 10;

/// The instruction that calls, as memory holds it.
const CALL: [u8; 2] = [0xab, 0xbe];

/// An operation that no host offers: probe-rs has overwritten the real one with its answer.
const NOT_OFFERED: u32 = 0;

/// What a program asked of its host in one turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Semihosted {
    /// How many calls were answered.
    pub(crate) calls: u32,
    /// What they printed.
    pub(crate) text: Vec<u8>,
    /// The code that the program ended with; its core stands from then on.
    pub(crate) exit: Option<i32>,
}

impl OpenSession {
    /// Answers the calls that a core stands at, if it does; else nothing happens. The core
    /// runs on behind each but the last one of a program.
    pub(crate) fn semihost(&mut self, pulse: &WorkerPulse) -> Result<Semihosted, ProbeError> {
        let mut done = Semihosted::default();
        let began = Instant::now();
        let mut last = began;
        while done.exit.is_none() && done.text.len() < MOST_TEXT && began.elapsed() < TURN {
            pulse.beat();
            let (operation, parameter) = match call_of(&mut self.core()?)? {
                Stands::AtCall(operation, parameter) => (operation, parameter),
                Stands::Runs if done.calls > 0 && last.elapsed() < NEXT => continue,
                Stands::Runs | Stands::Elsewhere => break,
            };
            let memory = &mut SessionMemory { open_session: self, pulse };
            match answer(operation, parameter, memory, &mut done.text)? {
                HostAnswer::Exit(code) => done.exit = Some(code),
                HostAnswer::Value(value) => {
                    let mut core = self.core()?;
                    let result = argument(&core, 0)?;
                    core.write_core_reg(result, Value::U32(value))
                        .map_err(|error| translate::failed("answering the program", error))?;
                    // It steps over the instruction it stands at.
                    core.run().map_err(|error| translate::core("run", STEP, error))?;
                }
            }
            done.calls += 1;
            last = Instant::now();
        }
        Ok(done)
    }
}

enum Stands {
    Runs,
    /// At a call: operation and parameter.
    AtCall(u32, u32),
    Elsewhere,
}

/// Looks whether a core stands at a call, and which one.
fn call_of(core: &mut Core<'_>) -> Result<Stands, ProbeError> {
    let failed = |error| translate::failed("reading a call of the program", error);
    let status = match core.status() {
        Ok(status) => status,
        // It fails where a call's parameter points nowhere. Then it has noticed the halt all
        // the same, and does not look into the call again.
        Err(_) => core.status().map_err(failed)?,
    };
    let command = match status {
        CoreStatus::Halted(HaltReason::Breakpoint(BreakpointCause::Semihosting(command))) => {
            Some(command)
        }
        CoreStatus::Halted(HaltReason::Breakpoint(_) | HaltReason::Multiple) => {
            let counter = core.program_counter().id();
            let pc: u64 = core.read_core_reg(counter).map_err(failed)?;
            let mut code = [0; 2];
            match core.read_8(pc, &mut code) {
                Ok(()) if code == CALL => None,
                _ => return Ok(Stands::Elsewhere),
            }
        }
        CoreStatus::Halted(_) | CoreStatus::LockedUp => return Ok(Stands::Elsewhere),
        CoreStatus::Running | CoreStatus::Sleeping | CoreStatus::Unknown => {
            return Ok(Stands::Runs);
        }
    };
    let (first, second) = (argument(core, 0)?, argument(core, 1)?);
    let parameter: u32 = core.read_core_reg(second).map_err(failed)?;
    let operation = match command {
        // For calls with a result it has written a failure over the operation already.
        Some(SemihostingCommand::Write(_)) => SYS_WRITE,
        Some(SemihostingCommand::Read(_)) => SYS_READ,
        Some(SemihostingCommand::Unknown(details)) => details.operation,
        Some(SemihostingCommand::Open(_)) => SYS_OPEN,
        Some(SemihostingCommand::Close(_)) => SYS_CLOSE,
        None
        | Some(
            SemihostingCommand::ExitSuccess
            | SemihostingCommand::ExitError(_)
            | SemihostingCommand::WriteConsole(_),
        ) => core.read_core_reg(first).map_err(failed)?,
        Some(_) => NOT_OFFERED,
    };
    Ok(Stands::AtCall(operation, parameter))
}

fn argument(core: &Core<'_>, index: usize) -> Result<RegisterId, ProbeError> {
    let register = core.registers().get_argument_register(index);
    register.map(|register| register.id()).ok_or_else(|| ProbeError::Failed {
        what: "the core has no semihosting".to_owned(),
        source: format!("no register for argument {index}").into(),
    })
}
