//! Which machine an emulator runs: a wrapper of its program may have started another one.
//!
//! Firmware for one machine prints nothing on another, or faults at once; without this check the
//! firmware would be blamed.

use std::time::Duration;

use jig_model::Cause;
use jig_model::profile::Emulation;
use jig_model::protocol::DriverError;
use serde_json::{Value, json};

use super::monitor::{Monitor, MonitorError};

/// Says that an emulator is not what the profile asks for.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "the emulator runs the machine {found}, but the profile asks for {wanted} (see what \
     {program} starts: it may be a script that passes another -machine)"
)]
struct OtherMachine {
    wanted: String,
    found: String,
    program: String,
}

/// Asks a new emulator for its machine and compares that with the profile.
///
/// # Errors
/// It is another one. An emulator that cannot say which machine it runs is taken as it is.
pub(super) async fn check_machine(
    monitor: &mut Monitor,
    emulation: &Emulation,
    timeout: Duration,
) -> Result<(), DriverError> {
    let wanted = machine_name(&emulation.machine);
    let found = match found_machine(monitor, timeout).await {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(()),
        Err(error) => {
            tracing::debug!(%error, "the emulator does not say which machine it runs");
            return Ok(());
        }
    };
    if found == wanted || is_version_of(&found, wanted) {
        return Ok(());
    }
    let aliases = monitor.call("query-machines", timeout).await.unwrap_or(Value::Null);
    if is_alias(&aliases, wanted, &found) {
        return Ok(());
    }
    let (wanted, program) = (wanted.to_owned(), emulation.program.clone());
    Err(DriverError::of(Cause::EmulatorRefused, OtherMachine { wanted, found, program }))
}

async fn found_machine(
    monitor: &mut Monitor,
    timeout: Duration,
) -> Result<Option<String>, MonitorError> {
    let property = json!({ "path": "/machine", "property": "type" });
    let answer = monitor.call_with("qom-get", &property, timeout).await?;
    Ok(answer.as_str().and_then(|class| class.strip_suffix("-machine")).map(str::to_owned))
}

/// Returns the machine of an argument such as `virt,secure=on` or `type=virt`.
fn machine_name(argument: &str) -> &str {
    let first = argument.split(',').next().unwrap_or(argument);
    first.strip_prefix("type=").unwrap_or(first)
}

/// Tells whether a machine is the wanted one with a version, as `virt-7.2` is of `virt`.
fn is_version_of(found: &str, wanted: &str) -> bool {
    let version = found.strip_prefix(wanted).and_then(|rest| rest.strip_prefix('-'));
    version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

fn is_alias(machines: &Value, wanted: &str, found: &str) -> bool {
    let machines = machines.as_array().into_iter().flatten();
    machines.into_iter().any(|machine| machine["alias"] == wanted && machine["name"] == found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_known_by_its_name_version_and_alias() {
        assert_eq!(machine_name("virt,secure=on"), "virt");
        assert_eq!(machine_name("type=mps2-an385"), "mps2-an385");
        for (found, wanted, same) in [
            ("virt-7.2", "virt", true),
            ("virt-2.6", "virt", true),
            ("mps2-an386", "mps2-an385", false),
            ("mps2-an385", "mps2", false),
            ("virtual", "virt", false),
        ] {
            assert_eq!(is_version_of(found, wanted), same, "{found} {wanted}");
        }
        let machines = json!([{ "name": "pc-q35-7.2", "alias": "q35" }, { "name": "none" }]);
        assert!(is_alias(&machines, "q35", "pc-q35-7.2"));
        assert!(!is_alias(&machines, "q35", "none"));
        assert!(!is_alias(&Value::Null, "q35", "none"));
    }
}
