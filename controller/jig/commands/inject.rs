//! `jig inject`: the faults there are.

use jig_drivers::inject::{
    CATALOGUE, FaultSpec, Moments, default_argument, moment, stall_parent, steal_tty,
};
use jig_model::{Fault, exit};
use serde_json::json;

use crate::args::InjectArgs;
use crate::failure::Failure;
use crate::render::{Screen, Style, TextTable};

/// Lists the faults.
///
/// JSON: `{"faults":[{"name","meaning","seam","boards","transport","argument","default","when",
/// "moments","traced"}]}`; `when` is the default, `transport` the key of the only transport in a
/// rig file that it strikes, and what a fault does not take is null.
pub(crate) fn inject(screen: &Screen, args: &InjectArgs) -> Result<u8, Failure> {
    if let Some(time) = args.stall_parent {
        stall_parent(time).map_err(|error| Failure::of(Fault::Lab, &error))?;
        return Ok(exit::PASS);
    }
    if let Some(tty) = &args.steal_tty {
        let Err(error) = steal_tty(tty);
        return Err(Failure::of(Fault::Lab, &error));
    }
    if screen.json() {
        let faults: Vec<_> = CATALOGUE.iter().map(as_json).collect();
        screen.out_json(&json!({ "faults": faults }));
        return Ok(exit::PASS);
    }
    let mut table = TextTable::new(&["FAULT", "SEAM", "WHEN", "BOARDS", "WHAT HAPPENS"]);
    for fault in CATALOGUE {
        table.row([
            (written(fault), Some(Style::Bold)),
            (fault.seam.as_str().to_owned(), None),
            (format!("@{}", moment(fault.when)), None),
            (fault.boards().to_owned(), Some(Style::Dim)),
            (fault.meaning.to_owned(), None),
        ]);
    }
    screen.out(&table.text(screen.out_paint()));
    screen.say(HOW);
    Ok(exit::PASS)
}

const HOW: &str = "
write NAME[=ARG][@WHEN][,every]: what is shown is what holds if you leave it out
WHEN is a time since the board first had power (host and power: since the run began),
or a share of the deployment such as @50%; `,every` strikes in each attempt, not once";

/// Writes a fault with what it takes.
fn written(fault: &FaultSpec) -> String {
    match default_argument(fault.takes) {
        Some(default) => format!("{}={default}", fault.name),
        None if fault.argument.is_empty() => fault.name.to_owned(),
        None => format!("{}[=FILE]", fault.name),
    }
}

fn as_json(fault: &FaultSpec) -> serde_json::Value {
    let moments = match fault.moments {
        Moments::Running => "time-since-power-on or share-of-deployment",
        Moments::Deploying => "share-of-deployment or time-since-power-on",
        Moments::Run => "time-since-run-began or share-of-deployment",
        Moments::Command => "time-since-run-began",
        Moments::BeforeDeploying => "before-deployment",
    };
    json!({
        "name": fault.name,
        "meaning": fault.meaning,
        "seam": fault.seam.as_str(),
        "boards": fault.boards(),
        "transport": fault.transport(),
        "argument": (!fault.argument.is_empty()).then_some(fault.argument),
        "default": default_argument(fault.takes),
        "when": moment(fault.when),
        "moments": moments,
        "traced": fault.traced,
    })
}
