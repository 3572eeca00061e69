//! `jig regs`.

use jig_model::command::{DebugAction, Reply};
use jig_model::{Fault, PlaceName, exit};
use serde::Serialize;

use super::access::{debug, quiet};
use crate::args::{Common, RegsArgs, number};
use crate::commands::execute::unexpected;
use crate::failure::Failure;
use crate::render::{Screen, register_table};

/// The document of `--json`; values are numbers.
#[derive(Serialize)]
struct RegistersShown<'r> {
    place: &'r PlaceName,
    registers: Vec<ShownRegister<'r>>,
}

#[derive(Serialize)]
struct ShownRegister<'r> {
    name: &'r str,
    bits: u16,
    value: u128,
}

/// Shows and sets registers. A running core is stopped for the moment it takes.
///
/// JSON: `{"place","registers":[{"name","bits","value"}]}`.
pub(crate) fn registers(common: &Common, screen: &Screen, args: RegsArgs) -> Result<u8, Failure> {
    let mut read = Vec::new();
    let mut set = Vec::new();
    for argument in &args.registers {
        match argument.split_once('=') {
            Some((name, value)) => {
                let value = number(value).map_err(|words| Failure::new(Fault::Usage, words))?;
                set.push((name.to_ascii_lowercase(), value));
                read.push(name.to_ascii_lowercase());
            }
            None => read.push(argument.to_ascii_lowercase()),
        }
    }
    let action = DebugAction::Registers { set, read };
    let Reply::Registers(reply) = debug(common, &args.at, action, quiet(screen))? else {
        return Err(unexpected());
    };
    let registers = reply.registers.iter();
    if screen.json() {
        let shown =
            registers.map(|r| ShownRegister { name: &r.name, bits: r.bits, value: r.value });
        screen.out_json(&RegistersShown { place: &reply.place, registers: shown.collect() });
    } else {
        let rows: Vec<_> = registers.map(|r| (r.name.clone(), r.bits, r.value)).collect();
        screen.out(&register_table(&rows));
    }
    Ok(exit::PASS)
}
