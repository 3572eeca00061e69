//! `jig power`: an outlet of the lab, or the emulator of an emulated board.

mod emulated;
mod explain;
mod human;

use std::time::Instant;

use jig_drivers::power::{Confirmation, OutletPower, PowerError, Verified};
use jig_lab::{Lab, Switch, SwitchError, confirmation_words, hold};
use jig_model::protocol::PowerState;
use jig_model::{DeviceName, Fault, exit};
use jig_rig::store::Places;
use serde_json::json;

pub(crate) use self::human::Terminal;
use super::open_lab;
use super::probe::{runtime, stops};
use crate::args::{Common, PowerAction, PowerArgs};
use crate::failure::Failure;
use crate::render::{Screen, one_line};

/// Switches a board's power, asks for it, or says how it would be done.
///
/// JSON of an action: `{"place","device","driver","outlet","action","state","confirmation",
/// "sense","shared_with","off_ms","duration_ms"}`; a state that nobody can tell is null, and so
/// is a power sense where nobody was asked beside the device.
pub(crate) fn power(common: &Common, screen: &Screen, args: PowerArgs) -> Result<u8, Failure> {
    let lab = open_lab(common)?;
    let name = args.explain.iter().flatten().next().or(args.board.as_ref());
    let Some(name) = name else {
        return Err(Failure::new(Fault::Usage, "which board?").help("name it: --explain NAME"));
    };
    let (place, _) = lab.catalogue().place(name)?;
    if place.is_emulated() {
        return emulated::power(lab.catalogue(), screen, &place.name, args.action);
    }
    let switch = lab.switch_of(&place)?;
    match args.action {
        None => explain::explain(&lab, screen, &switch),
        Some(action) => act(&lab, screen, &switch, action, &args),
    }
}

fn act(
    lab: &Lab,
    screen: &Screen,
    switch: &Switch,
    action: PowerAction,
    args: &PowerArgs,
) -> Result<u8, Failure> {
    let runtime = runtime()?;
    let places = lab.catalogue().places();
    let outcome = runtime.block_on(async {
        let mut stops = stops().map_err(|error| Failure::of(Fault::Bug, &error))?;
        let work = async {
            let _held = match action {
                PowerAction::Status => Vec::new(),
                // The power sense may be in use; nobody else is disturbed.
                PowerAction::Verify => {
                    let held = hold(&places, &switch.place, args.wait, screen).await;
                    vec![held.map_err(SwitchError::Held)?]
                }
                PowerAction::On | PowerAction::Off | PowerAction::Cycle => {
                    lab.hold_switched(switch, args.wait, args.force, screen).await?
                }
            };
            let power = match action {
                PowerAction::Status => lab.open_outlet(switch)?,
                _ => lab.open_sensed_outlet(switch)?,
            };
            carry_out(screen, power, switch, action, args).await
        };
        tokio::select! {
            done = work => done,
            _ = stops.wait_for(|stop| *stop) => {
                let words = format!("cancelled: {} may be on or off now", switch.place);
                let help = format!("jig power -b {} status", switch.place);
                Err(Failure::new(Fault::Cancelled, words).help(help))
            }
        }
    });
    // A question to a person may still be open on the terminal.
    runtime.shutdown_background();
    outcome
}

async fn carry_out(
    screen: &Screen,
    mut power: OutletPower,
    switch: &Switch,
    action: PowerAction,
    args: &PowerArgs,
) -> Result<u8, Failure> {
    let began = Instant::now();
    let failed = |error: PowerError| Failure::from(switch.failed(error));
    let off_time = args.off_time.unwrap_or(power.off_time());
    let (state, confirmation) = match action {
        PowerAction::Status => (power.read().await.map_err(failed)?, None),
        PowerAction::Verify => known(&power.verify().await.map_err(failed)?),
        PowerAction::On => {
            let how = power.switch(PowerState::On).await.map_err(failed)?;
            (Some(PowerState::On), Some(how))
        }
        PowerAction::Off => {
            let how = power.switch(PowerState::Off).await.map_err(failed)?;
            (Some(PowerState::Off), Some(how))
        }
        PowerAction::Cycle => {
            let how = power.cycle_for(off_time).await.map_err(failed)?;
            (Some(PowerState::On), Some(how))
        }
    };
    let took = began.elapsed();
    let off = (action == PowerAction::Cycle).then_some(off_time);
    if screen.json() {
        screen.out_json(&json!({
            "place": switch.place,
            "device": switch.device.name,
            "driver": switch.device.driver.kind(),
            "outlet": switch.power.outlet,
            "action": action.as_str(),
            "state": state,
            "confirmation": confirmation,
            "sense": power.sense(),
            "shared_with": switch.shared_with,
            "off_ms": off.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            "duration_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }));
        return Ok(exit::PASS);
    }
    let word = match state {
        Some(PowerState::On) => "on",
        Some(PowerState::Off) => "off",
        None => "unknown",
    };
    let mut about = vec![switch.outlet()];
    about.extend(match (state, confirmation) {
        (None, _) => Some(match power.sense().filter(|_| action == PowerAction::Verify) {
            Some(mute) => format!("it cannot be asked, {mute} cannot tell"),
            None => "it cannot be asked".to_owned(),
        }),
        (_, Some(how)) => Some(confirmation_words(how, power.sense())),
        (_, None) => None,
    });
    about.extend(off.map(|time| format!("off for {time:?}")));
    let line = format!("{}: {word} ({})", switch.place, about.join(", "));
    screen.out(&one_line(&line));
    Ok(exit::PASS)
}

/// Tells the state from what was found, and how it is known.
fn known(found: &Verified) -> (Option<PowerState>, Option<Confirmation>) {
    let how = match (found.read, found.seen) {
        (_, Some(_)) => Some(Confirmation::Sensed),
        (Some(_), None) => Some(Confirmation::ReadBack),
        (None, None) => None,
    };
    (found.read.or(found.seen), how)
}

/// Returns the file in which processes meet that use a device.
fn lock_of(places: &Places, device: &DeviceName) -> std::path::PathBuf {
    places.root().join(format!("{device}.power"))
}
