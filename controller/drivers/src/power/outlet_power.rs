//! An outlet as the power of a board.

use std::time::Duration;

use jig_model::power::{Confirmation, PlacePower, PowerDevice};
use jig_model::protocol::{BoxFuture, DriverError, Power, PowerSense, PowerState};
use tokio::time::{Instant, sleep};

use super::error::word;
use super::{OpenDevice, PowerError};

/// Pause between two looks at a device that has not settled: ten looks a second cost little,
/// and the device's own minimum interval may make it longer.
const LOOK: Duration = Duration::from_millis(100);

/// How long a power sense may take to see what the device has confirmed: a console falls silent
/// and a hub notices within a second.
const SENSE_TIMEOUT: Duration = Duration::from_secs(5);

/// State of an outlet that was not switched just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// What the device says, if it can.
    pub read: Option<PowerState>,
    /// What the power sense sees, if there is one that can tell.
    pub seen: Option<PowerState>,
}

/// The power of a board that hangs on an outlet.
pub struct OutletPower {
    device: OpenDevice,
    outlet: String,
    settle: Duration,
    off_time: Duration,
    sense: Option<Box<dyn PowerSense>>,
    /// Since when it is off, if it was switched off here and not on again.
    off_since: Option<Instant>,
}

impl OutletPower {
    /// Makes the power of a place from its outlet.
    pub fn new(device: OpenDevice, about: &PowerDevice, place: &PlacePower) -> Self {
        Self {
            device,
            outlet: place.outlet.clone(),
            settle: about.settle,
            off_time: place.off_time.unwrap_or(about.off_time),
            sense: None,
            off_since: None,
        }
    }

    /// Adds a power sense, which sees the board's power by another way than the device.
    pub fn with_sense(mut self, sense: Box<dyn PowerSense>) -> Self {
        self.sense = Some(sense);
        self
    }

    /// Returns how long the board stays off in a cycle.
    pub fn off_time(&self) -> Duration {
        self.off_time
    }

    /// Returns the name of the power sense, if there is one.
    pub fn sense(&self) -> Option<String> {
        self.sense.as_ref().map(|sense| sense.name())
    }

    fn what(&self) -> String {
        named(&self.outlet, &self.device)
    }

    /// Reads the state, if the device can tell.
    ///
    /// # Errors
    /// The device cannot be asked.
    pub async fn read(&mut self) -> Result<Option<PowerState>, PowerError> {
        self.device.read(&self.outlet).await
    }

    /// Switches and makes sure; what is off stays off for its time before it is on again.
    ///
    /// # Errors
    /// The device cannot be reached, refuses, or is seen to lie.
    pub async fn switch(&mut self, state: PowerState) -> Result<Confirmation, PowerError> {
        if state == PowerState::On
            && let Some(since) = self.off_since
        {
            sleep((since + self.off_time).saturating_duration_since(Instant::now())).await;
        }
        self.device.set(&self.outlet, state).await?;
        let mut confirmed = self.confirm(state).await?;
        // The power sense takes its time while the board is off anyway.
        let since = (state == PowerState::Off).then(Instant::now);
        if self.testify(state, format!("was switched {}", word(state))).await? == Some(state) {
            confirmed = Confirmation::Sensed;
        }
        self.off_since = since;
        Ok(confirmed)
    }

    /// Asks the device and the power sense, and switches nothing.
    ///
    /// # Errors
    /// The device cannot be asked, or the power sense contradicts it.
    pub async fn verify(&mut self) -> Result<Verified, PowerError> {
        let read = self.read().await?;
        let seen = match read {
            Some(state) => self.testify(state, format!("says that it is {}", word(state))).await?,
            None => self.look_once().await?,
        };
        Ok(Verified { read, seen })
    }

    /// Switches off, waits, and switches on again.
    ///
    /// # Errors
    /// As [`OutletPower::switch`]. The board may be left without power.
    pub async fn cycle_for(&mut self, off_time: Duration) -> Result<Confirmation, PowerError> {
        self.switch(PowerState::Off).await?;
        if let Some(since) = self.off_since.take() {
            sleep((since + off_time).saturating_duration_since(Instant::now())).await;
        }
        self.switch(PowerState::On).await
    }

    async fn confirm(&mut self, state: PowerState) -> Result<Confirmation, PowerError> {
        let end = Instant::now() + self.settle;
        loop {
            // Whether the time was over is asked before the device is, so that a slow answer
            // still counts.
            let last = Instant::now() >= end;
            match self.device.read(&self.outlet).await? {
                None => return Ok(Confirmation::Accepted),
                Some(seen) if seen == state => return Ok(Confirmation::ReadBack),
                Some(_) if last => {
                    let (what, asked) = (self.what(), word(state));
                    return Err(PowerError::Mismatch { what, asked, timeout: self.settle });
                }
                Some(_) => sleep(LOOK.min(self.settle)).await,
            }
        }
    }

    /// Returns how long a switch takes at most: the command, reads until it has settled, of
    /// which the last two may begin as late as that, and the same of a power sense.
    fn switch_timeout(&self) -> Duration {
        let settled = |time: Duration, look: Duration| time + LOOK + look * 2;
        let turn = self.device.turn_timeout();
        let sense = self.sense.as_ref().map(|sense| settled(SENSE_TIMEOUT, sense.look_timeout()));
        turn + settled(self.settle, turn) + sense.unwrap_or_default()
    }

    /// Asks the power sense, if there is one, until it sees the state or its time is over; returns
    /// what it sees. `claim` is what the outlet did or says, for the error if the sense contradicts
    /// it.
    async fn testify(
        &mut self,
        state: PowerState,
        claim: String,
    ) -> Result<Option<PowerState>, PowerError> {
        let end = Instant::now() + SENSE_TIMEOUT;
        let seen = loop {
            let last = Instant::now() >= end;
            let seen = self.look().await;
            if last || !matches!(seen, Ok(Some(seen)) if seen != state) {
                break seen;
            }
            sleep(LOOK).await;
        };
        let what = self.what();
        let Some(sense) = &mut self.sense else { return Ok(None) };
        sense.rest();
        match seen? {
            Some(seen) if seen != state && sense.is_sure_of(seen) => {
                let sense = sense.name();
                Err(PowerError::Contradicted { what, claim, sense, timeout: SENSE_TIMEOUT })
            }
            // Silence of a board that should be on has other reasons, too.
            seen => Ok(seen.filter(|seen| *seen == state)),
        }
    }

    /// Asks the power sense of a device that says nothing itself.
    async fn look_once(&mut self) -> Result<Option<PowerState>, PowerError> {
        let seen = self.look().await;
        let Some(sense) = &mut self.sense else { return Ok(None) };
        sense.rest();
        Ok(seen?.filter(|seen| sense.is_sure_of(*seen)))
    }

    async fn look(&mut self) -> Result<Option<PowerState>, PowerError> {
        let Some(sense) = &mut self.sense else { return Ok(None) };
        let name = sense.name();
        let looked = sense.look().await;
        looked.map_err(|error| PowerError::unusable(format!("the sense {name}"), error))
    }
}

/// Names an outlet for people.
pub(super) fn named(outlet: &str, device: &OpenDevice) -> String {
    match outlet {
        "" => device.name().to_string(),
        outlet => format!("outlet {outlet} of {}", device.name()),
    }
}

impl Power for OutletPower {
    fn on(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async { self.switch(PowerState::On).await.map(drop).map_err(Into::into) })
    }

    fn off(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async { self.switch(PowerState::Off).await.map(drop).map_err(Into::into) })
    }

    fn status(&mut self) -> BoxFuture<'_, Result<PowerState, DriverError>> {
        Box::pin(async {
            let known = self.read().await?;
            // Of a device that cannot tell, the last command is what is known.
            let told = if self.off_since.is_some() { PowerState::Off } else { PowerState::On };
            Ok(known.unwrap_or(told))
        })
    }

    fn off_timeout(&self) -> Duration {
        self.switch_timeout()
    }

    fn cycle(&mut self, off_time: Option<Duration>) -> BoxFuture<'_, Result<(), DriverError>> {
        let off_time = off_time.unwrap_or(self.off_time);
        Box::pin(async move { self.cycle_for(off_time).await.map(drop).map_err(Into::into) })
    }
}
