//! `jig inject`: the faults there are; and those of one run.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use jig_drivers::inject::{
    Argument, CATALOGUE, FaultSpec, InjectedFactory, Injection, Injector, Moments, Staller, Thief,
    default_argument, moment, primary_end, stall_parent, steal_tty,
};
use jig_drivers::power::Between;
use jig_model::profile::BoardProfile;
use jig_model::protocol::DriverFactory;
use jig_model::rig_file::{Place, WireEnd};
use jig_model::{Fault, exit};
use jig_rig::store::{Clock, SystemClock};
use serde_json::json;

use crate::args::InjectArgs;
use crate::failure::Failure;
use crate::render::{Screen, Style, Table};

/// Lists the faults.
///
/// JSON: `{"faults":[{"name","meaning","seam","boards","wire","argument","default","when",
/// "moments","traced"}]}`; `when` is the default, `wire` the key of the only wire in a rig file
/// that it strikes, and what a fault does not take is null.
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
    let mut table = Table::new(&["FAULT", "SEAM", "WHEN", "BOARDS", "WHAT HAPPENS"]);
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
        "wire": fault.wire(),
        "argument": (!fault.argument.is_empty()).then_some(fault.argument),
        "default": default_argument(fault.takes),
        "when": moment(fault.when),
        "moments": moments,
        "traced": fault.traced,
    })
}

/// The faults of one run.
pub(crate) struct Faults(Injector);

impl Faults {
    /// Prepares them, if there are any.
    ///
    /// # Errors
    /// A file that a fault takes cannot be read, or the place has not the wire that it strikes.
    pub(crate) fn of(
        inject: Vec<Injection>,
        place: &Place,
        profile: &BoardProfile,
    ) -> Result<Option<Self>, Failure> {
        for injection in &inject {
            has_wire(injection, place, profile)?;
            let Argument::File(path) = &injection.argument else { continue };
            // What else may be wrong with it is found when it is deployed.
            File::open(path).map_err(|error| {
                let message = format!("--inject {injection}: cannot read the file: {error}");
                Failure::new(Fault::Usage, message)
            })?;
        }
        if inject.is_empty() {
            return Ok(None);
        }
        let staller = Staller {
            // Without a path of its own this program cannot be stopped, and says so then.
            program: std::env::current_exe().unwrap_or_default().into_os_string(),
            args: ["inject", "--stall-parent"].map(Into::into).to_vec(),
        };
        let thief = Thief {
            program: staller.program.clone(),
            args: ["inject", "--steal-tty"].map(Into::into).to_vec(),
        };
        Ok(Some(Self(Injector::new(inject, staller).with_thief(thief))))
    }

    /// Puts them round a board.
    /// `by_device` says that the power is switched by a device, which is faulty itself.
    pub(crate) fn round<'a>(
        &self,
        board: &'a dyn DriverFactory,
        by_device: bool,
    ) -> InjectedFactory<'a> {
        InjectedFactory { board, injector: self.0.clone(), by_device }
    }

    /// Returns what stands between the device that switches the place and its driver.
    pub(crate) fn between_devices(&self) -> Between {
        self.0.between_devices()
    }

    /// Returns a clock that jumps when it is told to.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(JumpingClock { clock: SystemClock::new(), injector: self.0.clone() })
    }

    /// Strikes while a run is under way.
    pub(crate) async fn beside<T>(&self, run: impl Future<Output = T>) -> T {
        let ended = tokio::select! {
            // First, so that the times count from before the run begins.
            biased;
            never = self.0.run() => match never {},
            ended = run => ended,
        };
        self.0.put_right();
        ended
    }

    /// Returns those that have not struck, as they were written.
    pub(crate) fn left(&self) -> Vec<String> {
        self.0.left()
    }
}

/// Checks that a fault which strikes only one kind of wire has it at a place.
fn has_wire(injection: &Injection, place: &Place, profile: &BoardProfile) -> Result<(), Failure> {
    let end = primary_end(profile, place);
    let Some(wanted) =
        injection.fault.spec().wire().filter(|key| end.map(WireEnd::key) != Some(key))
    else {
        return Ok(());
    };
    let is = match end {
        Some(end) => format!("a `{}`", end.key()),
        None => "no wire of its own".to_owned(),
    };
    let (console, place) = (profile.primary_console(), &place.name);
    let message = format!("--inject {injection}: console {console} of place {place} is {is}");
    let help = format!("it strikes consoles that the rig file gives a `{wanted}`");
    Err(Failure::new(Fault::Usage, message).help(help))
}

/// The machine's clock, until it jumps. Only the wall's time does: what a run measures are
/// spans, which no jump touches.
struct JumpingClock {
    clock: SystemClock,
    injector: Injector,
}

impl Clock for JumpingClock {
    fn mono(&self) -> Duration {
        self.clock.mono()
    }

    fn wall(&self) -> Timestamp {
        let jump = SignedDuration::from_millis(self.injector.clock_jump());
        self.clock.wall().saturating_add(jump).unwrap_or(Timestamp::MAX)
    }
}
