//! Exit codes: the one place where they are numbers.
//!
//! A script tells a failed firmware from a failed rig by these, so they never change
//! their meaning. 2 is what command-line parsers use; 70, 75 and 130 follow `sysexits.h`
//! (`EX_SOFTWARE`, `EX_TEMPFAIL`) and the shell's 128 + SIGINT.

use crate::{Fault, VerdictKind};

/// The target passed, or the command did what it was asked.
pub const PASS: u8 = 0;
/// The target failed.
pub const FAIL: u8 = 1;
/// The command line was wrong, the image it names included.
pub const USAGE: u8 = 2;
/// A profile, plan or rig file is wrong.
pub const PROFILE: u8 = 3;
/// Evidence is missing; neither good nor bad is proven.
pub const INCONCLUSIVE: u8 = 4;
/// The target passed in some attempts and failed in others.
pub const FLAKY: u8 = 5;
/// Jig itself is wrong.
pub const BUG: u8 = 70;
/// The rig failed and recovery did not fix it; the same call may work later.
pub const LAB: u8 = 75;
/// The caller asked to stop.
pub const CANCELLED: u8 = 130;

/// Lists every code with its meaning, for help texts and the README's table.
pub const ALL: &[(u8, &str)] = &[
    (PASS, "pass"),
    (FAIL, "the target failed"),
    (USAGE, "wrong command line, or an image that does not fit the board"),
    (PROFILE, "wrong configuration: profile, plan or rig file"),
    (INCONCLUSIVE, "inconclusive: evidence is missing"),
    (FLAKY, "flaky: passed in some attempts, failed in others"),
    (BUG, "bug in jig"),
    (LAB, "lab failure that recovery did not fix"),
    (CANCELLED, "cancelled"),
];

/// Returns the code a run with this verdict ends with.
pub fn of_verdict(kind: VerdictKind) -> u8 {
    match kind {
        VerdictKind::Pass => PASS,
        VerdictKind::Fail => FAIL,
        VerdictKind::Flaky => FLAKY,
        VerdictKind::EnvError => LAB,
        VerdictKind::Inconclusive => INCONCLUSIVE,
        VerdictKind::Cancelled => CANCELLED,
    }
}

/// Returns the code a command ends with when an error stopped it before any verdict.
pub fn of_fault(fault: Fault) -> u8 {
    match fault {
        Fault::Usage => USAGE,
        Fault::Profile => PROFILE,
        Fault::Lab => LAB,
        Fault::Target => FAIL,
        Fault::Unknown => INCONCLUSIVE,
        Fault::Cancelled => CANCELLED,
        Fault::Bug => BUG,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;

    #[test]
    fn the_documented_numbers_hold() {
        let numbers: Vec<u8> = ALL.iter().map(|(code, _)| *code).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 70, 75, 130]);
    }

    #[test]
    fn every_verdict_has_its_code() {
        let table = [
            (VerdictKind::Pass, 0),
            (VerdictKind::Fail, 1),
            (VerdictKind::Inconclusive, 4),
            (VerdictKind::Flaky, 5),
            (VerdictKind::EnvError, 75),
            (VerdictKind::Cancelled, 130),
        ];
        for (kind, code) in table {
            assert_eq!(of_verdict(kind), code, "{kind}");
        }
        for &cause in Cause::ALL {
            assert_eq!(of_verdict(cause.verdict()) == PASS, cause.fault().is_none(), "{cause}");
        }
    }

    #[test]
    fn every_fault_has_its_code_and_none_is_green() {
        let table = [
            (Fault::Target, 1),
            (Fault::Unknown, 4),
            (Fault::Usage, 2),
            (Fault::Profile, 3),
            (Fault::Bug, 70),
            (Fault::Lab, 75),
            (Fault::Cancelled, 130),
        ];
        for (fault, code) in table {
            assert_eq!(of_fault(fault), code, "{fault:?}");
        }
    }
}
