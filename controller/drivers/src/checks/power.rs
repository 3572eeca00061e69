//! What switches a place's power, and boards that have none.

use jig_model::Cause;
use jig_model::protocol::{BoxFuture, CheckReport, HealthCheck, PowerState};

use super::report;
use crate::power::{OutletPower, Verified};

const NAME: &str = "power-answers";

/// Checks that the outlet of a place can be asked, and that its power sense agrees. It is not
/// switched.
pub fn outlet(power: OutletPower) -> Box<dyn HealthCheck> {
    Box::new(Answers { power, cause: Cause::PowerUnreachable })
}

/// Runs a check of a board only while its outlet is on: without power nothing answers. Where
/// it cannot be told whether it is on, the check is run.
pub fn while_powered(power: OutletPower, check: Box<dyn HealthCheck>) -> Box<dyn HealthCheck> {
    Box::new(WhilePowered { power, check })
}

/// Has another check decide where one fails while the outlet of its place is off: a board with
/// a USB port of its own takes that port with it.
pub fn excused(
    power: OutletPower,
    check: Box<dyn HealthCheck>,
    while_off: Box<dyn HealthCheck>,
) -> Box<dyn HealthCheck> {
    Box::new(Excused { power, check, while_off })
}

struct Excused {
    power: OutletPower,
    check: Box<dyn HealthCheck>,
    while_off: Box<dyn HealthCheck>,
}

impl HealthCheck for Excused {
    fn name(&self) -> String {
        self.check.name()
    }

    fn cause(&self) -> Cause {
        self.check.cause()
    }

    fn check(&mut self) -> BoxFuture<'_, CheckReport> {
        Box::pin(async {
            let report = self.check.check().await;
            if report.ok || !matches!(self.power.read().await, Ok(Some(PowerState::Off))) {
                return report;
            }
            self.while_off.check().await
        })
    }
}

struct Answers {
    power: OutletPower,
    /// What is wrong, or would be.
    cause: Cause,
}

impl HealthCheck for Answers {
    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn cause(&self) -> Cause {
        self.cause
    }

    fn check(&mut self) -> BoxFuture<'_, CheckReport> {
        Box::pin(async {
            let seen = match self.power.verify().await {
                Ok(found) => Ok(words(&found, self.power.sense())),
                Err(error) => {
                    self.cause = error.cause();
                    Err(error.into())
                }
            };
            report(NAME.to_owned(), seen)
        })
    }
}

/// Says what is known, and which power sense confirms it.
fn words(found: &Verified, sense: Option<String>) -> String {
    let word = |state| match state {
        Some(PowerState::On) => "on",
        Some(PowerState::Off) => "off",
        None => "it has no way to tell",
    };
    let read = word(found.read);
    match (sense, found.seen) {
        (Some(sense), Some(_)) if found.read.is_some() => {
            format!("{read}, and so sees {sense}")
        }
        (Some(sense), Some(_)) => {
            format!("{read}; {sense} sees that it is {}", word(found.seen))
        }
        (Some(sense), None) => format!("{read}; {sense} cannot tell"),
        (None, _) => read.to_owned(),
    }
}

struct WhilePowered {
    power: OutletPower,
    check: Box<dyn HealthCheck>,
}

impl HealthCheck for WhilePowered {
    fn name(&self) -> String {
        self.check.name()
    }

    fn cause(&self) -> Cause {
        self.check.cause()
    }

    fn check(&mut self) -> BoxFuture<'_, CheckReport> {
        Box::pin(async {
            match self.power.read().await {
                Ok(Some(PowerState::Off)) => {
                    report(self.check.name(), Ok("not asked: its outlet is off".to_owned()))
                }
                // An outlet that does not answer is told of by its own check.
                Ok(Some(PowerState::On) | None) | Err(_) => self.check.check().await,
            }
        })
    }
}
