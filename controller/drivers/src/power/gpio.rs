//! Lines of a GPIO chip, by the kernel's character device.
//!
//! # Design
//! The kernel promises a line's level only while a process holds the line, so lines that were set
//! here stay held as long as the device is open; after that, most chips leave the level as it is,
//! and a chip that does not cannot switch power from one command to the next. A line that is only
//! read is asked for as it is, so that reading switches nothing.
//!
//! The chip itself stands behind a seam ([`Chip`]), because few machines that run tests have
//! one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use gpiocdev::Request;
use gpiocdev::line::Value;
use jig_model::power::GpioPower;
use jig_model::protocol::{BoxFuture, PowerState};
use tokio::task::spawn_blocking;

use super::context::{OpenOutlets, PowerContext};
use super::{Outlets, PowerError};

/// Errors of a chip, whatever made them.
type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// Lines of a chip. The level is the logical one: `true` is active.
trait Chip: Send + Sync {
    /// Finds a line by its number or its name; nothing if there is none.
    fn find(&self, line: &str) -> Result<Option<u32>, Trouble>;
    /// Makes a line an output of this level, and holds it.
    fn set(&self, line: u32, active: bool) -> Result<(), Trouble>;
    /// Reads a line and leaves it as it is.
    fn get(&self, line: u32) -> Result<bool, Trouble>;
}

/// Switches lines.
struct GpioOutlets {
    what: String,
    chip: Arc<dyn Chip>,
}

impl OpenOutlets for GpioPower {
    fn open(self, _: &PowerContext) -> Result<Box<dyn Outlets>, PowerError> {
        Ok(Box::new(GpioOutlets::new(self)))
    }
}

impl GpioOutlets {
    fn new(GpioPower { chip: path, active_low }: GpioPower) -> Self {
        let what = format!("GPIO chip {}", path.display());
        let chip = KernelChip { path, active_low, held: Mutex::new(BTreeMap::new()) };
        Self { what, chip: Arc::new(chip) }
    }

    #[cfg(test)]
    fn on(chip: Arc<dyn Chip>) -> Self {
        Self { what: "GPIO chip".to_owned(), chip }
    }

    /// Does something with a line on a thread that may block.
    async fn with<T: Send + 'static>(
        &self,
        line: &str,
        act: impl FnOnce(&dyn Chip, u32) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, PowerError> {
        let (chip, name) = (Arc::clone(&self.chip), line.to_owned());
        let done = spawn_blocking(move || {
            let found = chip.find(&name)?;
            found.map(|number| act(chip.as_ref(), number)).transpose()
        });
        match done.await {
            Ok(Ok(Some(done))) => Ok(done),
            Ok(Ok(None)) => {
                let why = format!("it has no line {line:?} (see: gpioinfo)");
                Err(PowerError::refused(&self.what, why))
            }
            Ok(Err(trouble)) => Err(PowerError::unusable(&self.what, trouble)),
            Err(error) => Err(PowerError::unusable(&self.what, error)),
        }
    }
}

impl Outlets for GpioOutlets {
    fn what(&self) -> String {
        self.what.clone()
    }

    fn set<'a>(
        &'a self,
        outlet: &'a str,
        state: PowerState,
    ) -> BoxFuture<'a, Result<(), PowerError>> {
        let active = state == PowerState::On;
        Box::pin(self.with(outlet, move |chip, line| chip.set(line, active)))
    }

    fn read<'a>(
        &'a self,
        outlet: &'a str,
    ) -> BoxFuture<'a, Result<Option<PowerState>, PowerError>> {
        Box::pin(async move {
            let active = self.with(outlet, |chip, line| chip.get(line)).await?;
            Ok(Some(if active { PowerState::On } else { PowerState::Off }))
        })
    }
}

/// A chip of the kernel.
struct KernelChip {
    path: PathBuf,
    active_low: bool,
    held: Mutex<BTreeMap<u32, Request>>,
}

impl KernelChip {
    fn builder(&self, line: u32) -> gpiocdev::request::Builder {
        let mut builder = Request::builder();
        builder.on_chip(&self.path).with_consumer("jig").with_line(line);
        match self.active_low {
            true => builder.as_active_low(),
            false => builder.as_active_high(),
        };
        builder
    }
}

impl Chip for KernelChip {
    fn find(&self, line: &str) -> Result<Option<u32>, Trouble> {
        let chip = gpiocdev::chip::Chip::from_path(&self.path)?;
        match line.parse::<u32>() {
            Ok(number) => Ok((number < chip.info()?.num_lines).then_some(number)),
            Err(_) => Ok(chip.find_line_info(line).map(|info| info.offset)),
        }
    }

    fn set(&self, line: u32, active: bool) -> Result<(), Trouble> {
        let value = if active { Value::Active } else { Value::Inactive };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(request) = held.get(&line) {
            return Ok(request.set_lone_value(value)?);
        }
        let request = self.builder(line).as_output(value).request()?;
        held.insert(line, request);
        Ok(())
    }

    fn get(&self, line: u32) -> Result<bool, Trouble> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let value = match held.get(&line) {
            Some(request) => request.lone_value()?,
            None => self.builder(line).as_is().request()?.lone_value()?,
        };
        Ok(value == Value::Active)
    }
}

#[cfg(test)]
mod tests {
    use jig_model::ConsoleName;
    use jig_model::event::BoardEvent;
    use jig_model::profile::{BoardProfile, FaultSets};
    use jig_model::protocol::{
        BindContext, BoardSink, NoLedger, PartFactory as _, Protocols, Transport,
    };
    use jig_model::rig_file::{Rig, RigText};

    use super::super::{NoHuman, OutletFactory};
    use super::*;

    /// A chip of three lines; line 2 is broken and stays low.
    #[derive(Default)]
    struct Fake(Mutex<[bool; 3]>);

    impl Chip for Fake {
        fn find(&self, line: &str) -> Result<Option<u32>, Trouble> {
            match line {
                "gone" => Err("the chip is gone".into()),
                "RELAY" => Ok(Some(1)),
                number => Ok(number.parse().ok().filter(|n| *n < 3)),
            }
        }
        fn set(&self, line: u32, active: bool) -> Result<(), Trouble> {
            self.0.lock().unwrap()[line as usize] = active && line != 2;
            Ok(())
        }
        fn get(&self, line: u32) -> Result<bool, Trouble> {
            Ok(self.0.lock().unwrap()[line as usize])
        }
    }

    #[tokio::test]
    async fn lines_switch_by_number_and_by_name() {
        let chip = Arc::new(Fake::default());
        let gpio = GpioOutlets::on(Arc::clone(&chip) as Arc<dyn Chip>);
        gpio.set("RELAY", PowerState::On).await.unwrap();
        assert_eq!(*chip.0.lock().unwrap(), [false, true, false]);
        assert_eq!(gpio.read("1").await.unwrap(), Some(PowerState::On));
        gpio.set("1", PowerState::Off).await.unwrap();
        assert_eq!(gpio.read("RELAY").await.unwrap(), Some(PowerState::Off));
        let why = gpio.set("3", PowerState::On).await.unwrap_err().to_string();
        assert!(why.contains("no line \"3\""), "{why}");
        assert!(matches!(gpio.read("gone").await, Err(PowerError::Unusable { .. })));
    }

    /// Notes the levels of line 1 when the rig is told of something.
    #[derive(Default)]
    struct Told(Arc<Fake>, Mutex<Vec<String>>);

    impl BoardSink for Told {
        fn attach(&self, _: &ConsoleName, _: Box<dyn Transport>) {}
        fn drained(&self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }
        fn event(&self, event: BoardEvent) {
            let what = match event {
                BoardEvent::Power { state } => format!("{state:?}"),
                BoardEvent::Reset { .. } => "reset".to_owned(),
                other => format!("{other:?}"),
            };
            let level = self.0.0.lock().unwrap()[1];
            self.1.lock().unwrap().push(format!("{what} at {level}"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_at_the_reset_pin_resets_and_boots_the_board_of_a_place() {
        let folder = tempfile::tempdir().unwrap();
        let profile = "version = 1\nid = \"b\"\ntitle = \"B\"\narch = \"arm\"\n\
                       console = [{ name = \"uart0\", kind = \"uart\" }]\n";
        let sets = FaultSets::parse(std::iter::empty()).unwrap_or_else(|p| panic!("{}", p[0]));
        let profile = BoardProfile::parse("b.toml", profile, &sets);
        let profile = profile.unwrap_or_else(|problems| panic!("{problems}"));
        let rig = "version = 1\n[[power]]\nname = \"io\"\n[power.gpio]\n\
                   chip = \"/dev/no-such-gpiochip\"\n[[place]]\nname = \"p\"\nboard = \"b\"\n\
                   reset = { device = \"io\", outlet = \"RELAY\" }\n[[place.console]]\n\
                   name = \"uart0\"\ntty = \"/dev/ttyS0\"\n";
        let text = RigText { origin: "rig.toml", text: rig };
        let rig = Rig::parse([text], std::slice::from_ref(&profile))
            .unwrap_or_else(|p| panic!("{}", p[0]));
        let chip = Arc::new(Fake::default());
        let seam = Arc::clone(&chip);
        let devices = PowerContext {
            locks: folder.path().to_owned(),
            ledger: Arc::new(NoLedger),
            human: Arc::new(NoHuman),
            sysfs: folder.path().to_owned(),
            between: Some(Arc::new(move |opened| {
                assert_eq!(opened.what(), "GPIO chip /dev/no-such-gpiochip");
                Box::new(GpioOutlets::on(Arc::clone(&seam) as Arc<dyn Chip>))
            })),
        };
        let told = Arc::new(Told(Arc::clone(&chip), Mutex::default()));
        let context = BindContext {
            profile: Arc::new(profile),
            place: Arc::new(rig.places[0].clone()),
            sink: Arc::clone(&told) as _,
            evidence: folder.path().to_owned(),
            images: folder.path().to_owned(),
            ledger: Arc::new(NoLedger),
        };
        let factory = OutletFactory { devices: &rig.power, context: devices };
        let parts = factory.join(&context, Protocols::default()).unwrap();
        let (mut power, mut reset) = (parts.power.unwrap(), parts.reset.unwrap());
        let level = || chip.0.lock().unwrap()[1];
        power.on().await.unwrap();
        assert!(level(), "it is let go");
        reset.reset().await.unwrap();
        assert!(level(), "it is let go again");
        power.off().await.unwrap();
        assert!(!level(), "it is held");
        // The rig was told of each boot while the board was held.
        assert_eq!(*told.1.lock().unwrap(), ["On at false", "reset at false", "Off at false"]);
    }

    #[tokio::test]
    async fn a_chip_that_is_not_there_is_named() {
        let about = GpioPower { chip: "/dev/no-such-gpiochip".into(), active_low: false };
        let error = GpioOutlets::new(about).set("1", PowerState::On).await.unwrap_err();
        assert!(error.to_string().contains("no-such-gpiochip"), "{error}");
    }
}
