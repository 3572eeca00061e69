//! A board's power that lies, is silent, or is another board's, where no device switches it.

use std::time::Duration;

use jig_model::Cause;
use jig_model::protocol::{BoxFuture, DriverError, Power, PowerState};
use tokio::time::sleep;

use super::catalogue::FaultKind;
use super::grammar::Argument;
use super::injector::Injector;

/// Stands before a board's power.
pub(super) struct InjectedPower {
    pub(super) power: Box<dyn Power>,
    pub(super) injector: Injector,
    /// What the other outlet was told, once the outlets are swapped.
    pub(super) elsewhere: Option<PowerState>,
}

impl InjectedPower {
    /// Strikes the faults that are due before a command; returns whether the command is carried
    /// out.
    async fn before(&mut self, command: PowerState) -> Result<bool, DriverError> {
        if let Some((fault, argument)) = self.injector.claim(FaultKind::PowerSilent) {
            let time = match argument {
                Argument::Time(time) => time,
                _ => Duration::ZERO,
            };
            let word = word(command);
            self.injector.struck(fault, format!("no answer to the command `{word}`"));
            sleep(time).await;
            let message = format!("switch the power {word}: no answer within {time:?}");
            return Err(DriverError::new(Cause::PowerUnreachable, message));
        }
        if let Some((fault, _)) = self.injector.claim(FaultKind::PowerBabbles) {
            let message = format!("switch the power {}: the answer is nonsense", word(command));
            self.injector.struck(fault, "the answer is nonsense".to_owned());
            return Err(DriverError::new(Cause::PowerFailed, message));
        }
        if let Some((fault, _)) = self.injector.claim(FaultKind::OutletSwapped) {
            self.injector.struck(fault, "commands go to another board from here on".to_owned());
            self.elsewhere = Some(self.power.status().await.unwrap_or(PowerState::Off));
        }
        if let Some(state) = &mut self.elsewhere {
            *state = command;
            return Ok(false);
        }
        Ok(true)
    }

    /// Tells whether the command to switch off is a lie this time. If the board is off already, the
    /// answer is true, and the fault has not struck yet.
    async fn lies(&mut self) -> bool {
        if !matches!(self.power.status().await, Ok(PowerState::On)) {
            return false;
        }
        let Some((fault, _)) = self.injector.claim(FaultKind::PowerMismatch) else { return false };
        self.injector.struck(fault, "it says that it is off, and is on".to_owned());
        true
    }
}

fn word(state: PowerState) -> &'static str {
    match state {
        PowerState::On => "on",
        PowerState::Off => "off",
    }
}

impl Power for InjectedPower {
    fn on(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            if self.before(PowerState::On).await? { self.power.on().await } else { Ok(()) }
        })
    }

    fn off(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            if !self.before(PowerState::Off).await? || self.lies().await {
                return Ok(());
            }
            self.power.off().await
        })
    }

    fn status(&mut self) -> BoxFuture<'_, Result<PowerState, DriverError>> {
        Box::pin(async {
            match self.elsewhere {
                Some(state) => Ok(state),
                None => self.power.status().await,
            }
        })
    }

    fn off_timeout(&self) -> Duration {
        // It may be asked first whether there is anything to lie about.
        self.power.off_timeout() * 2
    }

    fn cycle(&mut self, off_time: Option<Duration>) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async move {
            if !self.before(PowerState::Off).await? {
                self.elsewhere = Some(PowerState::On);
                return Ok(());
            }
            // What stays on is on afterwards.
            if self.lies().await { Ok(()) } else { self.power.cycle(off_time).await }
        })
    }
}
