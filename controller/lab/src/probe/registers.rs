//! Setting and reading registers. A running core is stopped for the moment it takes.

use jig_model::command::{RegistersReply, Reply};
use jig_model::debug::{CoreState, RegisterValue};
use jig_probe::Leave;

use super::ProbeCommandError;
use super::port::{Port, PortDone};

pub(super) async fn registers(port: &Port, set: Vec<(String, u64)>, read: &[String]) -> PortDone {
    let runs = matches!(port.state().await?, CoreState::Running | CoreState::Sleeping);
    if runs {
        port.done(port.handle.halt().await)?;
    }
    let done = async {
        for (name, value) in set {
            port.handle.write_register(&name, value.into()).await?;
        }
        port.handle.registers().await
    };
    let done = done.await;
    if runs {
        port.done(port.handle.run().await)?;
    }
    let registers = chosen(port.done(done)?, read, &port.attached.chip)?;
    let reply = RegistersReply { place: port.place.clone(), registers };
    Ok((Reply::Registers(reply), if runs { Leave::Running } else { Leave::Halted }))
}

fn chosen(
    all: Vec<RegisterValue>,
    wanted: &[String],
    chip: &str,
) -> Result<Vec<RegisterValue>, ProbeCommandError> {
    if wanted.is_empty() {
        return Ok(all);
    }
    let find = |name: &String| {
        let known = match name.as_str() {
            "r13" => "sp",
            "r14" => "lr",
            "r15" => "pc",
            name => name,
        };
        all.iter().find(|register| register.name == known).cloned().ok_or_else(|| {
            ProbeCommandError::NoRegister {
                chip: chip.to_owned(),
                name: name.clone(),
                known: all.iter().map(|register| register.name.clone()).collect(),
            }
        })
    };
    wanted.iter().map(find).collect()
}
