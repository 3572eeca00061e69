//! What an emulator's end means. Pure.
//!
//! # Design
//! The exit of a firmware ends the emulator at once, and may come before the monitor's answer to
//! "continue". The end of the process decides, not the monitor.
//!
//! *A crash of the emulator is the firmware's, if a known-good image does not crash it.* Device models
//! have defects that a firmware reaches. So a signal that the emulator raises itself is told as an
//! abort, which the rig confirms by a run of the known-good image and another one of the firmware.
//! Without such an image it is a failure of the rig.

use jig_model::Cause;
use jig_model::event::BoardEvent;
use jig_model::protocol::HIDDEN_EXIT_CODE;
use nix::sys::signal::Signal;

use super::monitor::MachineEvent;
use crate::process::Ending;

/// What is known when an emulator has ended without being asked to.
pub(super) struct EndFacts<'a> {
    /// How its process ended.
    pub(super) ending: Ending,
    /// Whether SIGSYS ends it where an exit code would look like success. A firmware that calls its
    /// host for a program ends it by SIGSYS, too, through the emulator's own filter.
    pub(super) hidden_exit_kills: bool,
    /// Its standard error since the machine was let go.
    pub(super) stderr: &'a str,
    /// The shutdown it announced, if it did.
    pub(super) shutdown: Option<&'a MachineEvent>,
    /// The emulator's program name: its own errors begin with it.
    pub(super) program: &'a str,
    /// Whether the firmware may end the emulator with an exit code.
    pub(super) semihosting: bool,
    /// Whether a known-good image can tell an emulator that always crashes from one that this firmware
    /// crashes.
    pub(super) known_good: bool,
}

/// QEMU's own words when a Cortex-M core locks up; it aborts then. That is the firmware's
/// doing: the fault handler faulted. (QEMU 7.2, `target/arm`. A guest can write to standard error by
/// semihosting, and cannot abort without a reason of its own.)
const LOCKUP: &str = "Lockup";

/// How QEMU begins the line that says why it aborts over what a guest did, such as an unknown
/// semihosting call; the registers follow. A failed assertion of its own begins with the
/// program's name or `ERROR`, and has none.
pub(super) const ABORT: &str = "qemu: ";
/// How registers begin: of 32-bit Arm, 64-bit Arm, RISC-V. (QEMU 7.2, `cpu_dump_state`.)
const REGISTERS: [&str; 3] = ["R00=", " PC=", " pc "];

/// Names what an unasked-for end was.
pub(super) fn classify(facts: &EndFacts<'_>) -> BoardEvent {
    let lost = |cause, detail: String| BoardEvent::Lost { cause, detail };
    match facts.ending {
        Ending::Signalled(Signal::SIGABRT) if facts.stderr.contains(LOCKUP) => {
            BoardEvent::Lockup { detail: facts.stderr.trim().to_owned() }
        }
        Ending::Signalled(Signal::SIGABRT) if let Some(detail) = aborted(facts.stderr) => {
            BoardEvent::Aborted { detail }
        }
        Ending::Signalled(Signal::SIGSYS) if facts.hidden_exit_kills && !complains(facts) => {
            BoardEvent::TargetExit { code: HIDDEN_EXIT_CODE }
        }
        // Its own instructions raise these. Access to a device that its model cannot execute does that,
        // such as a division by a register that holds 0; a known-good image tells.
        Ending::Signalled(
            signal @ (Signal::SIGFPE | Signal::SIGSEGV | Signal::SIGBUS | Signal::SIGILL),
        ) if facts.known_good => {
            let said = said(facts.stderr);
            let detail = format!("the emulator died by {signal} while it ran this firmware{said}");
            BoardEvent::Aborted { detail }
        }
        Ending::Signalled(signal) => {
            let said = said(facts.stderr);
            lost(Cause::EmulatorKilled, format!("the emulator was ended by {signal}{said}"))
        }
        Ending::Exited(code) => match facts.shutdown {
            Some(MachineEvent::Shutdown { by_guest: true, reason }) if reason == "guest-panic" => {
                BoardEvent::GuestPanic { detail: reason.clone() }
            }
            Some(MachineEvent::Shutdown { by_guest: true, .. }) => BoardEvent::TargetExit { code },
            Some(MachineEvent::Shutdown { reason, .. }) => {
                lost(Cause::EmulatorKilled, format!("somebody else ended the emulator ({reason})"))
            }
            // A semihosting exit ends the emulator on the spot, without an event.
            _ if facts.semihosting && !complains(facts) => BoardEvent::TargetExit { code },
            _ => lost(
                Cause::EmulatorExited,
                format!("the emulator ended with code {code}{}", said(facts.stderr)),
            ),
        },
    }
}

/// Tells whether the emulator reported an error of its own. Device models write remarks
/// there too (`Timer with period zero`), but only errors carry the program's name.
fn complains(facts: &EndFacts<'_>) -> bool {
    let errors = facts.stderr.lines().filter_map(|line| line.strip_prefix(facts.program));
    errors.filter_map(|rest| rest.strip_prefix(": ")).any(|rest| !rest.starts_with("warning:"))
}

/// Finds why the emulator aborted over what the guest did, and the registers behind it.
fn aborted(stderr: &str) -> Option<String> {
    let start = stderr.find(ABORT).filter(|at| *at == 0 || stderr[..*at].ends_with('\n'))?;
    let (_, said) = stderr.split_at(start);
    let registers = said.lines().skip(1).any(|line| REGISTERS.iter().any(|r| line.starts_with(r)));
    registers.then(|| said.trim().trim_start_matches(ABORT).to_owned())
}

/// Quotes the last line of standard error, if there is one.
fn said(stderr: &str) -> String {
    match stderr.trim().lines().next_back() {
        Some(line) => format!(", saying: {line}"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(ending: Ending) -> EndFacts<'static> {
        EndFacts {
            ending,
            hidden_exit_kills: true,
            stderr: "",
            shutdown: None,
            program: "qemu-system-arm",
            semihosting: true,
            known_good: true,
        }
    }

    #[test]
    fn ends_are_blamed_on_who_did_them() {
        let lockup = EndFacts {
            stderr: "qemu: fatal: Lockup: can't escalate 3 to HardFault\nR00=0",
            ..facts(Ending::Signalled(Signal::SIGABRT))
        };
        assert!(matches!(classify(&lockup), BoardEvent::Lockup { .. }));

        let call = EndFacts {
            stderr: "Timer with period zero\nqemu: Unsupported SemiHosting SWI 0x99\nR00=0",
            ..facts(Ending::Signalled(Signal::SIGABRT))
        };
        let BoardEvent::Aborted { detail } = classify(&call) else { panic!("the rig's") };
        assert_eq!(detail, "Unsupported SemiHosting SWI 0x99\nR00=0");
        let own = EndFacts {
            stderr: "qemu-system-arm: hw/sd/sd.c:297: Assertion `x' failed.",
            ..facts(Ending::Signalled(Signal::SIGABRT))
        };
        let own = classify(&own);
        assert!(matches!(own, BoardEvent::Lost { cause: Cause::EmulatorKilled, .. }));

        let crashed = EndFacts { stderr: "", ..facts(Ending::Signalled(Signal::SIGFPE)) };
        let BoardEvent::Aborted { detail } = classify(&crashed) else { panic!("the rig's") };
        assert_eq!(detail, "the emulator died by SIGFPE while it ran this firmware");
        // Without a known-good image nothing shows that the emulator runs another firmware.
        let crashed = classify(&EndFacts { known_good: false, ..crashed });
        assert!(matches!(crashed, BoardEvent::Lost { cause: Cause::EmulatorKilled, .. }));

        let killed = classify(&facts(Ending::Signalled(Signal::SIGKILL)));
        assert!(matches!(killed, BoardEvent::Lost { cause: Cause::EmulatorKilled, .. }));

        assert_eq!(classify(&facts(Ending::Exited(3))), BoardEvent::TargetExit { code: 3 });
        let hidden = classify(&facts(Ending::Signalled(Signal::SIGSYS)));
        assert_eq!(hidden, BoardEvent::TargetExit { code: HIDDEN_EXIT_CODE });
        let unfiltered =
            EndFacts { hidden_exit_kills: false, ..facts(Ending::Signalled(Signal::SIGSYS)) };
        let killed = classify(&unfiltered);
        assert!(matches!(killed, BoardEvent::Lost { cause: Cause::EmulatorKilled, .. }));

        let remark = "Timer with period zero, disabling\nqemu-system-arm: warning: x\n";
        let with_remark = EndFacts { stderr: remark, ..facts(Ending::Exited(0)) };
        assert_eq!(classify(&with_remark), BoardEvent::TargetExit { code: 0 });

        let mute = EndFacts { semihosting: false, ..facts(Ending::Exited(0)) };
        let vanished = classify(&mute);
        assert!(matches!(vanished, BoardEvent::Lost { cause: Cause::EmulatorExited, .. }));

        let host = MachineEvent::Shutdown { by_guest: false, reason: "host-signal".to_owned() };
        let told = classify(&EndFacts { shutdown: Some(&host), ..facts(Ending::Exited(0)) });
        assert!(matches!(told, BoardEvent::Lost { cause: Cause::EmulatorKilled, .. }));

        let guest = MachineEvent::Shutdown { by_guest: true, reason: "guest-shutdown".to_owned() };
        let off = classify(&EndFacts { shutdown: Some(&guest), ..facts(Ending::Exited(0)) });
        assert_eq!(off, BoardEvent::TargetExit { code: 0 });

        // A finisher that is told to fail, of emulators that announce it; its code may be 0.
        let failed = MachineEvent::Shutdown { by_guest: true, reason: "guest-panic".to_owned() };
        let failed = classify(&EndFacts { shutdown: Some(&failed), ..facts(Ending::Exited(0)) });
        assert!(matches!(failed, BoardEvent::GuestPanic { .. }));
    }

    #[test]
    fn an_emulator_that_complains_did_not_exit_for_the_guest() {
        let broken =
            EndFacts { stderr: "qemu-system-arm: disk I/O error\n", ..facts(Ending::Exited(1)) };
        assert!(matches!(classify(&broken), BoardEvent::Lost { cause: Cause::EmulatorExited, .. }));
    }
}
