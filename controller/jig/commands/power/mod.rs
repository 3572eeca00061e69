//! `jig power`: an outlet of the lab, or the emulator of an emulated board.
//!
//! Who switches an outlet holds the places on it: the own one, and each other that shares it,
//! so that nobody loses the power under a test.

mod emulated;
mod explain;
mod human;
mod sense;
mod shared;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jig_drivers::power::{
    Between, Confirmation, OutletFactory, OutletPower, PowerContext, PowerError, Verified,
    open_outlet,
};
use jig_model::power::{BlastRadius, PlacePower, PowerDevice};
use jig_model::protocol::{DriverFactory, NoLedger, PowerState};
use jig_model::rig_file::{Hub, Place, Resource};
use jig_model::{DeviceName, Fault, PlaceName, exit};
use jig_rig::store::Places;
use serde_json::json;
use tokio::time::timeout;

use self::human::Terminal;
use super::probe::{lock, runtime, stops};
use crate::args::{Common, PowerAction, PowerArgs};
use crate::catalogue::Catalogue;
use crate::failure::{Failure, chain};
use crate::render::{Screen, one_line};

/// What switches a place.
struct Switch<'c> {
    place: &'c PlaceName,
    power: &'c PlacePower,
    device: &'c PowerDevice,
    devices: &'c [PowerDevice],
    radius: BlastRadius,
}

/// Switches a board's power, asks for it, or says how it would be done.
///
/// JSON of an action: `{"place","device","driver","outlet","action","state","confirmation",
/// "sense","shared_with","off_ms","duration_ms"}`; a state that nobody can tell is null, and so
/// is a power sense where nobody was asked beside the device.
pub(crate) fn power(common: &Common, screen: &Screen, args: PowerArgs) -> Result<u8, Failure> {
    let catalogue = Catalogue::load(common)?;
    let name = args.explain.iter().flatten().next().or(args.board.as_ref());
    let Some(name) = name else {
        return Err(Failure::new(Fault::Usage, "which board?").help("name it: --explain NAME"));
    };
    let (place, _) = catalogue.place(name)?;
    if matches!(place.resource, Resource::Emulator(_)) {
        return emulated::power(&catalogue, screen, &place.name, args.action);
    }
    let switch = switch_of(&catalogue, &place)?;
    match args.action {
        None => explain::explain(&catalogue, screen, &switch),
        Some(action) => act(&catalogue, screen, &switch, action, &args),
    }
}

fn switch_of<'c>(catalogue: &'c Catalogue, place: &'c Place) -> Result<Switch<'c>, Failure> {
    let bare = || {
        let words = format!("nothing says what switches the power of {}", place.name);
        let known: Vec<&str> = catalogue.rig.power.iter().map(|d| d.name.as_str()).collect();
        let how = format!("`power = {{ device = \"...\", outlet = \"...\" }}` in {}", place.origin);
        let help = match known.as_slice() {
            [] => format!("declare a [[power]] device, and add {how}"),
            known => format!("add {how}; there are the devices {}", known.join(", ")),
        };
        Failure::new(Fault::Profile, words).help(help)
    };
    let power = place.power.as_ref().ok_or_else(bare)?;
    let radius = catalogue.rig.blast_radius(place).ok_or_else(bare)?;
    // A rig file whose place names a device that there is not is refused when it is read.
    let device = catalogue.rig.power_device(&power.device).ok_or_else(bare)?;
    let devices = &catalogue.rig.power;
    Ok(Switch { place: &place.name, power, device, devices, radius })
}

impl Switch<'_> {
    /// Names the outlet: `outlet 3 of bench-pdu`.
    fn outlet(&self) -> String {
        match self.power.outlet.as_str() {
            "" => self.device.name.to_string(),
            outlet => format!("outlet {outlet} of {}", self.device.name),
        }
    }

    fn off_time(&self) -> Duration {
        self.power.off_time.unwrap_or(self.device.off_time)
    }
}

fn act(
    catalogue: &Catalogue,
    screen: &Screen,
    switch: &Switch<'_>,
    action: PowerAction,
    args: &PowerArgs,
) -> Result<u8, Failure> {
    let runtime = runtime()?;
    let places = catalogue.places();
    let outcome = runtime.block_on(async {
        let mut stops = stops().map_err(|error| Failure::of(Fault::Bug, &error))?;
        let work = async {
            let _held = match action {
                PowerAction::Status => Vec::new(),
                // The power sense may be in use; nobody else is disturbed.
                PowerAction::Verify => vec![lock(&places, switch.place, args.wait, screen).await?],
                PowerAction::On | PowerAction::Off | PowerAction::Cycle => {
                    shared::hold(&places, screen, switch, args).await?
                }
            };
            let power = match action {
                PowerAction::Status => {
                    let context = context(places.root());
                    open_outlet(switch.power, switch.devices, &context)
                        .map_err(|error| failure(&error, switch))?
                }
                _ => sense::outlet_of(catalogue, switch)?,
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
    switch: &Switch<'_>,
    action: PowerAction,
    args: &PowerArgs,
) -> Result<u8, Failure> {
    let began = Instant::now();
    let failed = |error: PowerError| failure(&error, switch);
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
            "shared_with": switch.radius.also,
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
        (_, Some(how)) => Some(words(how, &power)),
        (_, None) => None,
    });
    about.extend(off.map(|time| format!("off for {time:?}")));
    let line = format!("{}: {word} ({})", switch.place, about.join(", "));
    screen.out(&one_line(&line));
    Ok(exit::PASS)
}

/// Says how it is known that an outlet did as it was told.
fn words(how: Confirmation, power: &OutletPower) -> String {
    let (known, mute) = match (how, power.sense()) {
        (Confirmation::Sensed, sense) => {
            return format!("sensed by {}", sense.unwrap_or_default());
        }
        (Confirmation::Accepted, mute) => ("it cannot be asked whether it did", mute),
        (Confirmation::ReadBack, mute) => ("read back", mute),
    };
    mute.map_or(known.to_owned(), |mute| format!("{known}, {mute} cannot tell"))
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

/// What switches the power of a place in a run.
pub(crate) struct InRun<'c> {
    devices: &'c [PowerDevice],
    outlet: PlacePower,
    context: PowerContext,
    /// How long a power cycle may take.
    pub(crate) takes: Duration,
    /// The other places that lose their power with this one: a run holds them, too.
    pub(crate) also: Vec<PlaceName>,
}

impl<'c> InRun<'c> {
    /// Finds what switches a place, if anything does.
    pub(crate) fn of(catalogue: &'c Catalogue, place: &PlaceName) -> Option<Self> {
        let place = catalogue.rig.place(place.as_str()).ok()?;
        let (outlet, radius) = (place.power.clone()?, catalogue.rig.blast_radius(place)?);
        let context = context(catalogue.places().root());
        let takes = outlet.cycle_within(catalogue.rig.power_device(&outlet.device)?);
        Some(Self { devices: &catalogue.rig.power, outlet, context, takes, also: radius.also })
    }

    /// Lets something stand between the device and its driver.
    pub(crate) fn failing(mut self, between: Option<Between>) -> Self {
        self.context.between = between;
        self
    }

    /// Puts the outlet before a board's own power.
    pub(crate) fn before<'a>(&'a self, board: &'a dyn DriverFactory) -> OutletFactory<'a> {
        let (devices, outlet) = (self.devices, self.outlet.clone());
        OutletFactory { board, devices, outlet, context: self.context.clone() }
    }
}

/// Takes the power of a hub and gives it back; says how that was confirmed.
///
/// # Errors
/// What the device said.
pub(crate) async fn cycle_hub(catalogue: &Catalogue, hub: &Hub) -> Result<String, String> {
    let context = context(catalogue.places().root());
    let power = open_outlet(&hub.power, &catalogue.rig.power, &context);
    let mut power = power.map_err(|e| chain(&e))?;
    let off_time = power.off_time();
    let how = power.cycle_for(off_time).await.map_err(|e| chain(&e))?;
    let how = words(how, &power);
    Ok(format!("the power of hub {} was cycled, off for {off_time:?}, {how}", hub.name))
}

/// How long an outlet is asked about a board that did not answer: who waits for a failure to be
/// told waits no longer for a better word of it.
const SECOND_LOOK: Duration = Duration::from_secs(10);

/// Names the outlet of a place, if it has one that says that it is off.
pub(in crate::commands) async fn outlet_that_is_off(
    catalogue: &Catalogue,
    place: &Place,
) -> Option<String> {
    let switch = switch_of(catalogue, place).ok()?;
    let context = context(catalogue.places().root());
    let mut power = open_outlet(switch.power, switch.devices, &context).ok()?;
    let seen = timeout(SECOND_LOOK, power.read()).await.ok()?.ok()?;
    (seen == Some(PowerState::Off)).then(|| switch.outlet())
}

/// Opens what switches a place and whoever sees its power beside it, if anything switches it.
/// Call within a tokio runtime; whoever asks the power sense holds the place.
pub(in crate::commands) fn sensed_outlet(
    catalogue: &Catalogue,
    place: &Place,
) -> Result<Option<OutletPower>, Failure> {
    if place.power.is_none() {
        return Ok(None);
    }
    sense::outlet_of(catalogue, &switch_of(catalogue, place)?).map(Some)
}

/// Returns what devices need of this host.
pub(in crate::commands) fn context(locks: &Path) -> PowerContext {
    PowerContext {
        locks: locks.to_owned(),
        ledger: Arc::new(NoLedger),
        human: Arc::new(Terminal),
        sysfs: "/sys".into(),
        between: None,
    }
}

/// Says why power was not switched, and what to do next.
fn failure(error: &PowerError, switch: &Switch<'_>) -> Failure {
    let fault = error.cause().fault().unwrap_or(Fault::Lab);
    let failure = Failure::of(fault, error);
    match error {
        // These say it themselves.
        PowerError::Secret(_) | PowerError::Program(_) => failure,
        PowerError::Mismatch { .. } | PowerError::Contradicted { .. } => failure.help(format!(
            "look at the device: is {} the right outlet, and is it switched by nobody else?",
            switch.outlet()
        )),
        PowerError::TimedOut { .. }
        | PowerError::Unreachable { .. }
        | PowerError::Refused { .. }
        | PowerError::Garbage { .. }
        | PowerError::Busy { .. }
        | PowerError::Unusable { .. } => failure.help(format!(
            "see what is switched how: jig power --explain {}; device {} is declared in {}",
            switch.place, switch.device.name, switch.device.origin
        )),
    }
}

/// Names a device's places for people.
fn list(names: &[PlaceName]) -> String {
    names.iter().map(PlaceName::as_str).collect::<Vec<_>>().join(", ")
}

/// Returns the file in which processes meet that use a device.
fn lock_of(places: &Places, device: &DeviceName) -> std::path::PathBuf {
    places.root().join(format!("{device}.power"))
}
