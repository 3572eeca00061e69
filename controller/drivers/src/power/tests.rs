//! Tests of the owner of a device and of an outlet as power, with a device of memory.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jig_model::Cause;
use jig_model::power::{Confirmation, ManualPower, PlacePower, PowerDevice, PowerDriver};
use jig_model::protocol::{BoxFuture, DriverError, NoLedger, Power, PowerSense, PowerState};
use tokio::time::Instant;

use super::*;

/// How a device of memory behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Good,
    /// Shows the new state only after this many questions.
    Slow(u32),
    /// Takes every command and carries out none.
    Lies,
    /// Cannot be asked.
    Blind,
    /// Never answers.
    Deaf,
    /// Takes this long for each answer, and carries nothing out.
    Late(Duration),
}

#[derive(Debug)]
struct Memory {
    mood: Mood,
    state: PowerState,
    pending: Option<(PowerState, u32)>,
    /// When each command came, and which.
    log: Vec<(Instant, &'static str)>,
}

#[derive(Clone)]
struct Fake(Arc<Mutex<Memory>>);

impl Outlets for Fake {
    fn what(&self) -> String {
        "a device of memory".to_owned()
    }

    fn set<'a>(&'a self, _: &'a str, to: PowerState) -> BoxFuture<'a, Result<(), PowerError>> {
        let mood = {
            let mut memory = self.0.lock().unwrap();
            memory.log.push((Instant::now(), error::word(to)));
            match memory.mood {
                Mood::Good | Mood::Blind => memory.state = to,
                Mood::Slow(asks) => memory.pending = Some((to, asks)),
                Mood::Lies | Mood::Deaf | Mood::Late(_) => {}
            }
            memory.mood
        };
        Box::pin(async move {
            match mood {
                Mood::Deaf => std::future::pending::<()>().await,
                Mood::Late(time) => tokio::time::sleep(time).await,
                Mood::Good | Mood::Slow(_) | Mood::Lies | Mood::Blind => {}
            }
            Ok(())
        })
    }

    fn read<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<PowerState>, PowerError>> {
        let mut memory = self.0.lock().unwrap();
        memory.log.push((Instant::now(), "read"));
        if let Some((to, asks)) = memory.pending {
            memory.pending = asks.checked_sub(1).map(|asks| (to, asks));
            if memory.pending.is_none() {
                memory.state = to;
            }
        }
        let seen = (memory.mood != Mood::Blind).then_some(memory.state);
        let mood = memory.mood;
        Box::pin(async move {
            if let Mood::Late(time) = mood {
                tokio::time::sleep(time).await;
            }
            Ok(seen)
        })
    }
}

fn about(driver: PowerDriver) -> PowerDevice {
    PowerDevice {
        name: "pdu".parse().unwrap(),
        driver,
        min_interval: Duration::ZERO,
        off_time: Duration::from_secs(7),
        timeout: Duration::from_secs(3),
        settle: Duration::from_secs(5),
        origin: "rig.toml".to_owned(),
    }
}

fn place(off_time: Option<Duration>) -> PlacePower {
    PlacePower { device: "pdu".parse().unwrap(), outlet: "3".to_owned(), off_time, sense: None }
}

fn board(mood: Mood, locks: &Path) -> (OutletPower, Fake) {
    let memory = Memory { mood, state: PowerState::On, pending: None, log: Vec::new() };
    let fake = Fake(Arc::new(Mutex::new(memory)));
    let about = about(PowerDriver::Manual(ManualPower { hint: None }));
    let device = OpenDevice::start(&about, Box::new(fake.clone()), locks);
    (OutletPower::new(device, &about, &place(None)), fake)
}

#[tokio::test(start_paused = true)]
async fn what_was_switched_is_read_back() {
    let locks = tempfile::tempdir().unwrap();
    let (mut power, fake) = board(Mood::Good, locks.path());
    assert_eq!(power.switch(PowerState::Off).await.unwrap(), Confirmation::ReadBack);
    assert_eq!(power.status().await.unwrap(), PowerState::Off);
    fake.0.lock().unwrap().mood = Mood::Slow(12);
    assert_eq!(power.switch(PowerState::On).await.unwrap(), Confirmation::ReadBack);
    assert_eq!(fake.0.lock().unwrap().state, PowerState::On);
    fake.0.lock().unwrap().mood = Mood::Blind;
    assert_eq!(power.switch(PowerState::Off).await.unwrap(), Confirmation::Accepted);
    // Of a device that cannot be asked, the last command is what is known.
    assert_eq!(power.status().await.unwrap(), PowerState::Off);
}

#[tokio::test(start_paused = true)]
async fn a_device_that_lies_or_is_silent_is_the_labs_fault() {
    let locks = tempfile::tempdir().unwrap();
    let (mut power, _) = board(Mood::Lies, locks.path());
    let began = Instant::now();
    let error = power.off().await.unwrap_err();
    assert_eq!(error.cause, Cause::PowerMismatch);
    assert_eq!(
        error.to_string(),
        "outlet 3 of pdu was switched off, but still says the contrary after 5s"
    );
    assert!((5..7).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());

    let (mut power, _) = board(Mood::Deaf, locks.path());
    let error = power.off().await.unwrap_err();
    assert_eq!(error.cause, Cause::PowerUnreachable);
    assert_eq!(error.to_string(), "pdu (a device of memory) did not answer within 3s");
}

#[tokio::test(start_paused = true)]
async fn a_device_gives_up_before_those_who_wait_for_it() {
    let locks = tempfile::tempdir().unwrap();
    // As slow as its timeout allows, and never in the wanted state.
    let (mut power, _) = board(Mood::Late(Duration::from_millis(2_999)), locks.path());
    let began = Instant::now();
    assert_eq!(power.off().await.unwrap_err().cause, Cause::PowerMismatch);
    let took = began.elapsed();
    // The command, two reads within the five seconds, and one after them.
    assert!(took > Duration::from_secs(11) && took < power.off_timeout(), "{took:?}");

    // The device switches, but a slow power sense does not see it.
    let (sensed, _) = board(Mood::Good, locks.path());
    let mut sensed = sensed.with_sense(Box::new(Tardy(Duration::from_secs(2))));
    let began = Instant::now();
    assert_eq!(sensed.off().await.unwrap_err().cause, Cause::PowerMismatch);
    let took = began.elapsed();
    assert!(took > Duration::from_secs(7) && took < sensed.off_timeout(), "{took:?}");
    assert!(sensed.off_timeout() > power.off_timeout());

    // Another process has the device, and does not let go of it.
    let path = locks.path().join("pdu.power");
    let file = std::fs::File::open(&path).unwrap();
    let lock = nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusive).unwrap();
    let began = Instant::now();
    let error = power.off().await.unwrap_err();
    assert_eq!((error.cause, began.elapsed().as_secs()), (Cause::PowerUnreachable, 24));
    assert!(began.elapsed() < power.off_timeout());
    drop(lock);
}

/// A power sense that takes its time and sees nothing.
struct Tardy(Duration);

impl PowerSense for Tardy {
    fn name(&self) -> String {
        "a slow sense".to_owned()
    }
    fn look(&mut self) -> BoxFuture<'_, Result<Option<PowerState>, DriverError>> {
        let time = self.0;
        Box::pin(async move {
            tokio::time::sleep(time).await;
            Ok(Some(PowerState::On))
        })
    }
    fn look_timeout(&self) -> Duration {
        self.0
    }
}

#[tokio::test(start_paused = true)]
async fn a_board_stays_off_for_its_time() {
    let locks = tempfile::tempdir().unwrap();
    let (mut power, fake) = board(Mood::Good, locks.path());
    let between = |fake: &Fake| {
        let log = std::mem::take(&mut fake.0.lock().unwrap().log);
        let at = |word| log.iter().find(|(_, w)| *w == word).unwrap().0;
        at("on") - at("off")
    };
    power.cycle(None).await.unwrap();
    assert!((7..8).contains(&between(&fake).as_secs()));
    power.cycle(Some(Duration::from_secs(30))).await.unwrap();
    // Longer than the device says, but not both after each other.
    assert!((30..31).contains(&between(&fake).as_secs()));
    // Also where a caller switches off and on by two calls.
    power.off().await.unwrap();
    power.on().await.unwrap();
    assert!((7..8).contains(&between(&fake).as_secs()));
    // On twice waits for nothing.
    let began = Instant::now();
    power.on().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1));
}

struct Seen(Option<PowerState>);

impl PowerSense for Seen {
    fn name(&self) -> String {
        "the hub port".to_owned()
    }
    fn look(&mut self) -> BoxFuture<'_, Result<Option<PowerState>, DriverError>> {
        Box::pin(async { Ok(self.0) })
    }
    fn is_sure_of(&self, seen: PowerState) -> bool {
        seen == PowerState::On
    }
}

#[tokio::test(start_paused = true)]
async fn a_sense_is_believed_more_than_the_device() {
    let locks = tempfile::tempdir().unwrap();
    for (seen, wanted) in [
        (Some(PowerState::Off), Ok(Confirmation::Sensed)),
        (None, Ok(Confirmation::ReadBack)),
        (Some(PowerState::On), Err(Cause::PowerMismatch)),
    ] {
        let (power, _) = board(Mood::Good, locks.path());
        let mut power = power.with_sense(Box::new(Seen(seen)));
        let got = power.switch(PowerState::Off).await;
        assert_eq!(got.map_err(|error| error.cause()), wanted);
    }
}

#[tokio::test(start_paused = true)]
async fn silence_agrees_with_off_and_contradicts_no_on() {
    let locks = tempfile::tempdir().unwrap();
    let (power, fake) = board(Mood::Good, locks.path());
    let mut power = power.with_sense(Box::new(Seen(Some(PowerState::Off))));
    assert_eq!(power.switch(PowerState::On).await.unwrap(), Confirmation::ReadBack);
    let on = Verified { read: Some(PowerState::On), seen: None };
    assert_eq!(power.verify().await.unwrap(), on);
    power.switch(PowerState::Off).await.unwrap();
    let off = Some(PowerState::Off);
    assert_eq!(power.verify().await.unwrap(), Verified { read: off, seen: off });
    // The state is unknown if the device cannot be read back and the board is silent.
    fake.0.lock().unwrap().mood = Mood::Blind;
    assert_eq!(power.verify().await.unwrap(), Verified { read: None, seen: None });

    // What is seen contradicts, also if nothing was switched.
    let (power, fake) = board(Mood::Good, locks.path());
    let mut power = power.with_sense(Box::new(Seen(Some(PowerState::On))));
    fake.0.lock().unwrap().state = PowerState::Off;
    let words = "outlet 3 of pdu says that it is off, but the hub port sees the contrary after 5s";
    assert_eq!(power.verify().await.unwrap_err().to_string(), words);
    fake.0.lock().unwrap().mood = Mood::Blind;
    let seen = Verified { read: None, seen: Some(PowerState::On) };
    assert_eq!(power.verify().await.unwrap(), seen);
}

#[tokio::test]
async fn a_command_that_was_begun_is_carried_to_its_end() {
    let locks = tempfile::tempdir().unwrap();
    let (power, fake) = board(Mood::Good, locks.path());
    let lock = locks.path().join("pdu.power");
    {
        // The lock is held, so that the command waits; then its caller goes away.
        let file = std::fs::File::create(&lock).unwrap();
        file.lock().unwrap();
        let mut power = power;
        let mut switch = Box::pin(power.switch(PowerState::Off));
        let waits = tokio::time::timeout(Duration::from_millis(50), switch.as_mut()).await;
        assert!(waits.is_err());
    }
    while fake.0.lock().unwrap().state == PowerState::On {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Switches at once, or is asleep.
struct Person(bool, Arc<Mutex<Vec<String>>>);

impl AskHuman for Person {
    fn ask<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Result<(), AskError>> {
        self.1.lock().unwrap().push(question.to_owned());
        match self.0 {
            true => Box::pin(std::future::ready(Ok(()))),
            false => Box::pin(std::future::pending()),
        }
    }
}

#[tokio::test]
async fn a_person_is_asked_and_waited_for() {
    let locks = tempfile::tempdir().unwrap();
    let hint = Some("under the desk".to_owned());
    let mut about = about(PowerDriver::Manual(ManualPower { hint }));
    about.timeout = Duration::from_millis(100);
    let off = async |human: Arc<dyn AskHuman>| {
        let context = PowerContext {
            locks: locks.path().to_owned(),
            ledger: Arc::new(NoLedger),
            human,
            sysfs: "/sys".into(),
            between: None,
        };
        let device = open(&about, &context).unwrap();
        OutletPower::new(device, &about, &place(None)).switch(PowerState::Off).await
    };
    let asked = Arc::new(Mutex::new(Vec::new()));
    let good = Arc::new(Person(true, Arc::clone(&asked)));
    assert_eq!(off(good).await.unwrap(), Confirmation::Accepted);
    assert_eq!(*asked.lock().unwrap(), ["switch 3 (under the desk) off"]);
    let asleep = Arc::new(Person(false, asked));
    let why = off(asleep).await.unwrap_err().to_string();
    assert_eq!(why, "pdu (the person at the terminal) did not answer within 100ms");
    let refused = off(Arc::new(NoHuman)).await.unwrap_err();
    assert!(matches!(refused, PowerError::Person(AskError::NoTerminal)), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn the_check_of_an_outlet_tells_what_its_sense_sees() {
    let locks = tempfile::tempdir().unwrap();
    let check = async |device: PowerState, seen: Option<PowerState>| {
        let (power, fake) = board(Mood::Good, locks.path());
        fake.0.lock().unwrap().state = device;
        let mut check = crate::checks::outlet(power.with_sense(Box::new(Seen(seen))));
        assert_eq!(check.cause(), Cause::PowerUnreachable);
        let report = check.check().await;
        (report.ok, report.detail, check.cause())
    };
    let (on, off) = (PowerState::On, PowerState::Off);
    let fine = |words: &str| (true, words.to_owned(), Cause::PowerUnreachable);
    assert_eq!(check(on, Some(on)).await, fine("on, and so sees the hub port"));
    assert_eq!(check(on, Some(off)).await, fine("on; the hub port cannot tell"));
    let (ok, words, cause) = check(off, Some(on)).await;
    assert!(!ok && words.contains("the hub port sees the contrary"), "{words}");
    assert_eq!(cause, Cause::PowerMismatch);
}
