//! What a driver reports of its board.

use serde::{Deserialize, Serialize};

use crate::{Cause, ConsoleName};

/// Says whether a board has power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerState {
    /// Powered.
    On,
    /// Not powered.
    Off,
}

/// Exit code of a target that ended with a multiple of 256 other than 0: a parent process is told
/// the low byte alone, which is that of success. A target that calls its host for a program
/// (semihosting `SYS_SYSTEM`) has it, too: filters of system calls end the emulator in both cases,
/// by the same signal.
pub const HIDDEN_EXIT_CODE: i32 = 256;

/// What a driver sees happen to a board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum BoardEvent {
    /// Power was switched.
    Power {
        /// The state it has now.
        state: PowerState,
    },
    /// A port of the board can be reached from this host.
    Forwarded {
        /// Its name in the profile.
        port: String,
        /// Address and port on this host.
        address: String,
    },
    /// A debug probe found its target, though not at the first attempt.
    Attached {
        /// How often it was tried, the last one included.
        attempts: u32,
        /// The way that worked, in words.
        method: String,
        /// What each attempt that failed said, in order.
        failures: Vec<String>,
    },
    /// A console's transport was taken over from the program that keeps it between runs: what was
    /// printed before stands in that program's log up to here.
    TakenOver {
        /// The console.
        console: ConsoleName,
        /// Which file of the capture service's log, by its number.
        file: u64,
        /// The length of that file then.
        offset: u64,
    },
    /// What the board holds where an image was put was read, before its first instruction.
    ReadBack {
        /// SHA-256 in lower-case hex of the bytes, in address order.
        sha256: String,
    },
    /// The processor was reset.
    Reset {
        /// Whether the target did it itself (also by a watchdog).
        by_target: bool,
        /// The driver's words, such as `guest-reset`.
        reason: String,
    },
    /// A deployment goes on.
    Deploying {
        /// How much of it is done, in percent.
        percent: u8,
    },
    /// The board had no time to run, and that was the rig's doing: what runs it was stopped, or
    /// got no processor. Told while it lasts, in pieces.
    Stood {
        /// For how long, in milliseconds.
        ms: u64,
        /// It was stopped (SIGSTOP); what its target measures by its clock is wrong then.
        stopped: bool,
    },
    /// A watchdog fired.
    Watchdog {
        /// What it does, such as `reset`.
        action: String,
    },
    /// The fault injector made the rig fail, as it was asked to.
    Injected {
        /// What was asked for, written in full: `pause-emulator=3s@2s`.
        fault: String,
        /// What was done.
        detail: String,
    },
    /// The target's operating system reported a panic.
    GuestPanic {
        /// The driver's words.
        detail: String,
    },
    /// The target ended by itself (an emulated board's program exit).
    TargetExit {
        /// Its exit code; [`HIDDEN_EXIT_CODE`] if it is not known exactly.
        code: i32,
    },
    /// The target's processor locked up.
    Lockup {
        /// The driver's words (register dump); may hold hostile bytes.
        detail: String,
    },
    /// The target did what its board cannot execute, and that ended the board.
    Aborted {
        /// The driver's words; may hold hostile bytes.
        detail: String,
    },
    /// The rig lost the board.
    Lost {
        /// The cause that makes.
        cause: Cause,
        /// What was seen.
        detail: String,
    },
}
