//! A board emulated by QEMU: power, reset, deployment and health of one instance at a time.
//!
//! Owns the emulator's process, its monitor and the near ends of its consoles. Refuses to
//! know any machine: everything particular is data in the profile.
//!
//! # Design
//! *No byte before the consoles are captured.* The monitor is a socket pair the child inherits, the
//! consoles are FIFOs that lose their names once the emulator has opened them: there is no path to
//! clean up or to be too long for a socket, no connect race, and the emulator's exit is an
//! end-of-file. The machine starts halted (`-S`) and is let go when the transports are captured.
//!
//! *Power off is a power cut*: the process is killed, so RAM is gone. A reset is not a
//! power cycle, RAM survives it (measured), therefore both verbs exist.

mod command_line;
mod console_pipe;
mod control_lock;
pub mod debug;
#[cfg(test)]
mod debug_tests;
mod emulator;
mod ending;
mod exceptions;
mod guest_stderr;
mod identity;
mod instance;
mod machine;
mod monitor;
mod order;
mod pauses;
mod read_back;
mod run_control;
#[cfg(test)]
mod tests;
mod trial;

pub use control_lock::{ControlHeld, ControlLock};
pub use emulator::QemuFactory;
pub use exceptions::{
    CodeCollector, CollectedCode, ExceptionLog, Exceptions, ExecutedCode, OpenException, TraceSpan,
    TrapTaken,
};
pub use machine::Machine;
pub use order::{AtLaunch, Launched, Ready, Watcher};
