//! A device that switches power and lies, is silent, talks nonsense or switches another board.
//!
//! Strikes below the read-back: what the device reports afterwards is what a device with that fault
//! would report, so the driver can detect the fault in the same ways as in a lab.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jig_model::protocol::{BoxFuture, PowerState};
use tokio::time::sleep;

use super::catalogue::FaultKind;
use super::grammar::Argument;
use super::injector::Injector;
use crate::power::{Between, Outlets, PowerError};

impl Injector {
    /// Returns what stands between a place's power device and its driver.
    pub fn between_devices(&self) -> Between {
        let injector = self.clone();
        let elsewhere = Arc::<Mutex<Elsewhere>>::default();
        Arc::new(move |device| {
            let (injector, elsewhere) = (injector.clone(), Arc::clone(&elsewhere));
            Box::new(FaultyOutlets { device, injector, elsewhere })
        })
    }
}

/// What another board's outlet was told, once the outlets are swapped: in which attempt, and
/// what.
#[derive(Default)]
struct Elsewhere(Option<(u64, PowerState)>);

/// Stands before a device.
struct FaultyOutlets {
    device: Box<dyn Outlets>,
    injector: Injector,
    /// A device is opened anew for each attempt and each look, and stays the same.
    elsewhere: Arc<Mutex<Elsewhere>>,
}

impl FaultyOutlets {
    /// Takes the place of the command for as long as another outlet is switched. No other outlet
    /// of the lab really is: a board in use may hang there.
    fn goes_elsewhere(&self, command: Option<PowerState>) -> Option<PowerState> {
        let attempt = self.injector.attempt();
        let mut elsewhere = self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = command
            && let Some((fault, _)) = self.injector.claim(FaultKind::OutletSwapped)
        {
            let what = "the device switches another outlet from here on, and reads it back";
            self.injector.struck(fault, what.to_owned());
            elsewhere.0 = Some((attempt, state));
        }
        let (_, state) = elsewhere.0.as_mut().filter(|(since, _)| *since == attempt)?;
        *state = command.unwrap_or(*state);
        Some(*state)
    }

    async fn set_or_not(&self, outlet: &str, state: PowerState) -> Result<(), PowerError> {
        if let Some((fault, argument)) = self.injector.claim(FaultKind::PowerSilent) {
            let time = match argument {
                Argument::Time(time) => time,
                _ => Duration::ZERO,
            };
            let what =
                format!("the device takes {time:?} for a command that it does not carry out");
            self.injector.struck(fault, what);
            sleep(time).await;
            return Err(PowerError::TimedOut { what: self.device.what(), timeout: time });
        }
        if let Some((fault, _)) = self.injector.claim(FaultKind::PowerBabbles) {
            self.injector.struck(fault, "the device answers nonsense to a command".to_owned());
            return Err(PowerError::garbage(self.device.what(), NONSENSE));
        }
        if self.goes_elsewhere(Some(state)).is_some() {
            return Ok(());
        }
        if self.lies(outlet, state).await {
            return Ok(());
        }
        self.device.set(outlet, state).await
    }

    /// Tells whether a command to switch off is a lie this time. If the outlet is off already, the
    /// answer is true, and the fault has not struck yet.
    async fn lies(&self, outlet: &str, state: PowerState) -> bool {
        if state != PowerState::Off || !self.injector.is_due(FaultKind::PowerMismatch) {
            return false;
        }
        if matches!(self.device.read(outlet).await, Ok(Some(PowerState::Off))) {
            return false;
        }
        let Some((fault, _)) = self.injector.claim(FaultKind::PowerMismatch) else { return false };
        self.injector.struck(fault, "the device takes a command and switches nothing".to_owned());
        true
    }
}

/// An answer of no protocol.
const NONSENSE: &[u8] = b"\x00\xff<injected>\x1b[2J";

impl Outlets for FaultyOutlets {
    fn what(&self) -> String {
        self.device.what()
    }

    fn set<'a>(
        &'a self,
        outlet: &'a str,
        state: PowerState,
    ) -> BoxFuture<'a, Result<(), PowerError>> {
        Box::pin(self.set_or_not(outlet, state))
    }

    fn read<'a>(
        &'a self,
        outlet: &'a str,
    ) -> BoxFuture<'a, Result<Option<PowerState>, PowerError>> {
        Box::pin(async move {
            let read = self.device.read(outlet).await?;
            // A device that says nothing says nothing of another outlet either.
            Ok(read.map(|seen| self.goes_elsewhere(None).unwrap_or(seen)))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use jig_model::Cause;
    use jig_model::power::{ManualPower, PlacePower, PowerDevice, PowerDriver};
    use jig_model::protocol::{DriverError, NoSink, PowerSense};

    use super::*;
    use crate::inject::Staller;
    use jig_model::power::Confirmation;

    use crate::power::{OpenDevice, OutletPower};

    /// A relay that is read back, and what it really feeds.
    #[derive(Clone)]
    struct Relay(Arc<Mutex<PowerState>>);

    impl Relay {
        fn state(&self) -> PowerState {
            *self.0.lock().unwrap()
        }
    }

    impl Outlets for Relay {
        fn what(&self) -> String {
            "a relay".to_owned()
        }
        fn set<'a>(&'a self, _: &'a str, to: PowerState) -> BoxFuture<'a, Result<(), PowerError>> {
            *self.0.lock().unwrap() = to;
            Box::pin(async { Ok(()) })
        }
        fn read<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<PowerState>, PowerError>> {
            Box::pin(async { Ok(Some(self.state())) })
        }
    }

    /// The board sees what really feeds it.
    impl PowerSense for Relay {
        fn name(&self) -> String {
            "the board".to_owned()
        }
        fn look(&mut self) -> BoxFuture<'_, Result<Option<PowerState>, DriverError>> {
            Box::pin(async { Ok(Some(self.state())) })
        }
    }

    fn faulty(fault: &str, locks: &Path) -> (Injector, Relay, OutletPower) {
        let staller = Staller { program: "true".into(), args: Vec::new() };
        let injector = Injector::new(vec![fault.parse().unwrap()], staller);
        injector.begin_attempt(Arc::new(NoSink));
        let relay = Relay(Arc::new(Mutex::new(PowerState::On)));
        let second = Duration::from_secs(1);
        let about = PowerDevice {
            name: "pdu".parse().unwrap(),
            driver: PowerDriver::Manual(ManualPower { hint: None }),
            min_interval: Duration::ZERO,
            off_time: second,
            timeout: second * 3,
            settle: second,
            origin: String::new(),
        };
        let place = PlacePower {
            device: "pdu".parse().unwrap(),
            outlet: "3".to_owned(),
            off_time: None,
            sense: None,
        };
        let outlets = injector.between_devices()(Box::new(relay.clone()));
        let device = OpenDevice::start(&about, outlets, locks);
        (injector, relay, OutletPower::new(device, &about, &place))
    }

    #[tokio::test(start_paused = true)]
    async fn a_faulty_device_is_caught_by_its_read_back_and_works_the_next_time() {
        for (fault, cause) in [
            ("power-mismatch", Cause::PowerMismatch),
            ("power-silent=1s", Cause::PowerUnreachable),
            // Longer than the device's timeout: the caller does not wait for the end of it.
            ("power-silent=1h", Cause::PowerUnreachable),
            ("power-babbles", Cause::PowerFailed),
        ] {
            let locks = tempfile::tempdir().unwrap();
            let (injector, relay, mut power) = faulty(fault, locks.path());
            let error = power.switch(PowerState::Off).await.unwrap_err();
            assert_eq!((error.cause(), relay.state()), (cause, PowerState::On), "{error}");
            assert!(injector.left().is_empty(), "{fault}");
            assert_eq!(power.switch(PowerState::Off).await.unwrap(), Confirmation::ReadBack);
            assert_eq!(relay.state(), PowerState::Off, "{fault}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_second_sense_sees_that_another_outlet_is_switched() {
        let locks = tempfile::tempdir().unwrap();
        let (injector, relay, mut power) = faulty("outlet-swapped", locks.path());
        // What is read back is the other outlet, too.
        assert_eq!(power.switch(PowerState::Off).await.unwrap(), Confirmation::ReadBack);
        assert_eq!(relay.state(), PowerState::On);
        let mut power = power.with_sense(Box::new(relay.clone()));
        let error = power.switch(PowerState::Off).await.unwrap_err();
        assert!(matches!(error, PowerError::Contradicted { .. }), "{error}");
        // It is over with the attempt.
        injector.begin_attempt(Arc::new(NoSink));
        assert_eq!(power.switch(PowerState::Off).await.unwrap(), Confirmation::Sensed);
        assert_eq!(relay.state(), PowerState::Off);
    }
}
