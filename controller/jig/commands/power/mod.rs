//! `jig power`: an outlet of the lab, or the emulator of an emulated board.

mod emulated;
mod explain;
mod human;

use std::sync::Arc;
use std::time::Duration;

use jig_lab::confirmation_words;
use jig_model::command::{PowerAction, PowerReply, Reply};
use jig_model::protocol::PowerState;
use jig_model::{DeviceName, Fault, exit};

pub(crate) use self::human::Terminal;
use super::execute::{execute, unexpected};
use super::rig::OpenRig;
use crate::args::{Common, PowerArgs};
use crate::failure::Failure;
use crate::render::{Screen, one_line};

/// Switches a board's power, asks for it, or says how it would be done.
///
/// JSON of an action: `{"place","device","driver","outlet","action","state","confirmation",
/// "sense","shared_with","off_ms","duration_ms"}`; an unknown state is null, and so is an absent
/// power sense.
pub(crate) fn power(common: &Common, screen: &Screen, args: PowerArgs) -> Result<u8, Failure> {
    let Some(place) = args.place().cloned() else {
        return Err(Failure::new(Fault::Usage, "which board?").help("name it: --explain NAME"));
    };
    let command = args.command(place);
    let rig = OpenRig::open(common)?;
    match execute(&rig, command, Arc::new(screen.clone()))? {
        Reply::Power(reply) => show(screen, &reply),
        Reply::EmulatedPower(reply) => emulated::show(screen, &reply),
        Reply::PowerExplained(reply) => explain::show(rig.catalogue(), screen, &reply)?,
        _ => return Err(unexpected()),
    }
    Ok(exit::PASS)
}

fn show(screen: &Screen, reply: &PowerReply) {
    if screen.json() {
        return screen.out_json(reply);
    }
    let word = match reply.state {
        Some(PowerState::On) => "on",
        Some(PowerState::Off) => "off",
        None => "unknown",
    };
    let mut about = vec![outlet(&reply.device, &reply.outlet)];
    let sense = || reply.sense.clone();
    about.extend(match (reply.state, reply.confirmation) {
        (None, _) => {
            let mute = sense().filter(|_| reply.action == PowerAction::Verify);
            let mute = mute.map(|mute| format!(", {mute} cannot tell")).unwrap_or_default();
            Some(format!("it cannot be asked{mute}"))
        }
        (_, Some(how)) => Some(confirmation_words(how, sense())),
        (_, None) => None,
    });
    about.extend(reply.off_ms.map(|ms| format!("off for {:?}", Duration::from_millis(ms))));
    screen.out(&one_line(&format!("{}: {word} ({})", reply.place, about.join(", "))));
}

/// Names an outlet: `outlet 3 of bench-pdu`.
fn outlet(device: &DeviceName, outlet: &str) -> String {
    match outlet {
        "" => device.to_string(),
        outlet => format!("outlet {outlet} of {device}"),
    }
}
