//! Checks of how the rig is recovered.

use super::Subject;
use super::board::{in_range, show_duration};
use crate::document::Located;
use crate::profile::limits::{LONG_OFF_RANGE, MAX_RECOVERIES_RANGE, WAIT_RANGE};
use crate::profile::raw::RawRecovery;

fn recovery<'a>(subject: &'a Subject<'_>) -> Option<&'a RawRecovery> {
    subject.raw.recovery.as_ref().map(|recovery| &recovery.value)
}

pub(super) fn steps_come_once(subject: &Subject<'_>, check: &'static str) {
    let ladder = recovery(subject).and_then(|recovery| recovery.ladder.as_ref());
    let steps = ladder.map_or(&[][..], |ladder| &ladder.value);
    for (number, step) in steps.iter().enumerate() {
        if steps[..number].iter().any(|earlier| earlier.value == step.value) {
            let message = format!("the ladder has the step {} twice", step.value);
            subject.findings.add(check, step.at(), message, "remove one of the two");
        }
    }
}

pub(super) fn numbers_are_sane(subject: &Subject<'_>, check: &'static str) {
    let Some(recovery) = recovery(subject) else { return };
    in_range(
        subject,
        check,
        recovery.max_recoveries.as_ref(),
        &MAX_RECOVERIES_RANGE,
        u32::to_string,
    );
    let times: [(Option<&Located<_>>, _); 2] =
        [(recovery.timeout.as_ref(), &WAIT_RANGE), (recovery.long_off.as_ref(), &LONG_OFF_RANGE)];
    for (time, range) in times {
        in_range(subject, check, time, range, show_duration);
    }
}
