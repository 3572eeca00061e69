//! Tests of the states, the store and the running of checks.

mod examine;
mod states;
mod store;

use jig_model::protocol::CheckReport;
use jig_model::{Cause, VerdictKind};

use super::HealthEvent;

fn report(ok: bool) -> CheckReport {
    CheckReport { check: "disk".to_owned(), ok, detail: "3 bytes left".to_owned() }
}

fn checked(ok: bool) -> HealthEvent {
    HealthEvent::Checked(vec![report(true), report(ok)])
}

fn ended(kind: VerdictKind, cause: Cause) -> HealthEvent {
    HealthEvent::RunEnded {
        run: "20261121-221530-7f3a".parse().unwrap(),
        kind,
        cause,
        duration_ms: 100,
        flash_ms: None,
        gaps: 0,
        overruns: 0,
        lost_bytes: 0,
        garbled: 0,
    }
}

fn run(cause: Cause) -> HealthEvent {
    ended(cause.verdict(), cause)
}

fn recovery(step: Option<&str>) -> HealthEvent {
    HealthEvent::RecoveryEnded {
        run: "20261121-221530-7f3a".parse().unwrap(),
        cause: Cause::EmulatorKilled,
        step: step.map(str::to_owned),
        took_ms: 12,
        detail: String::new(),
    }
}

fn canary(passed: bool) -> HealthEvent {
    let run = "20261121-221530-7f3a".parse().unwrap();
    HealthEvent::Canary { run, passed, detail: String::new() }
}

fn quarantined() -> HealthEvent {
    HealthEvent::Quarantined { why: "no step proved anything".to_owned() }
}

fn cleared() -> HealthEvent {
    HealthEvent::Cleared { by: "anna".to_owned() }
}
