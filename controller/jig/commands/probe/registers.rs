//! `jig regs`.

use jig_model::{Fault, exit};
use jig_probe::{CoreState, Leave, RegisterValue};
use serde_json::json;

use super::help::failed;
use super::port::{Lasting, Port, with_port};
use crate::args::{Common, RegsArgs, number};
use crate::failure::Failure;
use crate::render::{Screen, register_table};

/// Shows and sets registers. A running core is stopped for the moment it takes.
///
/// JSON: `{"place","registers":[{"name","bits","value"}]}`.
pub(crate) fn registers(common: &Common, screen: &Screen, args: RegsArgs) -> Result<u8, Failure> {
    let mut wanted = Vec::new();
    let mut changes = Vec::new();
    for argument in &args.registers {
        match argument.split_once('=') {
            Some((name, value)) => {
                let value = number(value).map_err(|words| Failure::new(Fault::Usage, words))?;
                changes.push((name.to_ascii_lowercase(), u128::from(value)));
                wanted.push(name.to_ascii_lowercase());
            }
            None => wanted.push(argument.to_ascii_lowercase()),
        }
    }
    with_port(common, screen, "regs", &args.at, Lasting::Board, async |port: &Port| {
        let told = |error| failed(&error, &port.place);
        let was = port.handle.state().await.map_err(told)?;
        let runs = matches!(was, CoreState::Running | CoreState::Sleeping);
        if runs {
            port.handle.halt().await.map_err(told)?;
        }
        let done = async {
            for (name, value) in changes {
                port.handle.write_register(&name, value).await?;
            }
            port.handle.registers().await
        };
        let done = done.await;
        if runs {
            port.handle.run().await.map_err(told)?;
        }
        let all = done.map_err(told)?;
        let shown = chosen(&all, &wanted, port)?;
        if screen.json() {
            screen.out_json(&json!({ "place": port.place, "registers": shown }));
        } else {
            let rows: Vec<_> = shown.iter().map(|r| (r.name.clone(), r.bits, r.value)).collect();
            screen.out(&register_table(&rows));
        }
        Ok((exit::PASS, if runs { Leave::Running } else { Leave::Halted }))
    })
}

fn chosen(
    all: &[RegisterValue],
    wanted: &[String],
    port: &Port,
) -> Result<Vec<RegisterValue>, Failure> {
    if wanted.is_empty() {
        return Ok(all.to_vec());
    }
    let find = |name: &String| {
        let known = match name.as_str() {
            "r13" => "sp",
            "r14" => "lr",
            "r15" => "pc",
            name => name,
        };
        all.iter().find(|register| register.name == known).cloned().ok_or_else(|| {
            let names: Vec<_> = all.iter().map(|register| register.name.as_str()).collect();
            Failure::new(Fault::Usage, format!("{} has no register {name:?}", port.attached.chip))
                .help(format!("it has: {}", names.join(", ")))
        })
    };
    wanted.iter().map(find).collect()
}
