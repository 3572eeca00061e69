//! Flashing by a program, and resetting by a program, a control line, an outlet or the power.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jig_drivers::reset::reset_by_captured_line;
use jig_model::ConsoleName;
use jig_model::command::{
    CommandEvent, DeployReply, EventSink, FlashBy, Reply, ResetBy, ResetMethod, ResetReply,
};
use jig_model::event::BoardEvent;
use jig_model::profile::Deploy;
use jig_model::protocol::{
    BindContext, BoardSink, BoxFuture, DriverFactory as _, Protocols, SharedSink, Transport,
};
use jig_model::rig_file::{MissingPart, Needed, ResetPart};
use jig_rig::store::PlaceCommand;
use jig_rig::workflow::CancelToken;

use super::ProbeCommandError;
use super::port::image_of;
use super::sink::ConsoleSink;
use super::target::{CommandLocks, CommandTarget};
use crate::{BindError, Lab};

/// Tells whether a program puts the image on the board, and not a debug probe.
pub(super) fn flashed_by_program(
    target: &CommandTarget<'_>,
    by: &FlashBy,
) -> Result<bool, MissingPart> {
    let CommandTarget { place, profile, .. } = target;
    match by {
        _ if place.is_emulated() => Ok(false),
        FlashBy::Probe(_) => {
            needs_probe(target, "`flash` with an option of a probe")?;
            Ok(false)
        }
        FlashBy::Usual => {
            place.needs(Needed::Flasher, profile, "`flash`")?;
            let deploy = profile.deploy_at(place);
            Ok(matches!(deploy, Some(Deploy::Command(_) | Deploy::Volume(_))))
        }
    }
}

/// Returns what resets the board, if not a debug probe.
pub(super) fn reset_by_part(
    target: &CommandTarget<'_>,
    by: ResetBy,
) -> Result<Option<ResetMethod>, MissingPart> {
    let CommandTarget { place, profile, .. } = target;
    match by {
        _ if place.is_emulated() => Ok(None),
        ResetBy::Probe { halt } => {
            let what = if halt { "`reset --halt`" } else { "`reset` with an option of a probe" };
            needs_probe(target, what)?;
            Ok(None)
        }
        ResetBy::Usual => {
            place.needs(Needed::Reset, profile, "`reset`")?;
            Ok(place.reset_part().as_ref().and_then(method))
        }
    }
}

/// Checks that there is a probe: that of the place, or one that the caller names.
fn needs_probe(target: &CommandTarget<'_>, what: &str) -> Result<(), MissingPart> {
    match target.access.selector {
        Some(_) => Ok(()),
        None => target.place.needs(Needed::Probe, &target.profile, what),
    }
}

fn method(part: &ResetPart) -> Option<ResetMethod> {
    match part {
        ResetPart::Probe => None,
        ResetPart::Power => Some(ResetMethod::Power),
        ResetPart::Line { .. } => Some(ResetMethod::Line),
        ResetPart::Outlet(_) => Some(ResetMethod::Outlet),
        ResetPart::Command(_) => Some(ResetMethod::Command),
    }
}

/// The parts of a place that this process holds. The drivers end before the place is given up.
struct BoundParts {
    parts: Protocols,
    command: PlaceCommand,
    _held: CommandLocks,
}

/// Tells how far a program that flashes is, and throws away what the consoles print.
#[derive(Clone)]
struct FlasherSink {
    program: String,
    events: Arc<dyn EventSink>,
    consoles: ConsoleSink,
}

impl FlasherSink {
    fn tell(&self, percent: Option<u8>) {
        let program = self.program.clone();
        self.events.event(CommandEvent::Deploying { program, percent });
    }
}

impl BoardSink for FlasherSink {
    fn attach(&self, console: &ConsoleName, transport: Box<dyn Transport>) {
        self.consoles.attach(console, transport);
    }

    fn drained(&self) -> BoxFuture<'_, ()> {
        self.consoles.drained()
    }

    fn event(&self, event: BoardEvent) {
        match event {
            BoardEvent::Deploying { percent } => self.tell(Some(percent)),
            other => self.consoles.event(other),
        }
    }
}

impl Lab {
    /// Flashes a board by its program, and boots the image where the place has a reset.
    pub(super) async fn flash_by_program(
        &self,
        target: &CommandTarget<'_>,
        image: &Path,
        events: Arc<dyn EventSink>,
        cancel: &CancelToken,
    ) -> Result<Reply, ProbeCommandError> {
        let (named, (image, _)) = (image, image_of(image, &target.profile)?);
        let deploy = target.profile.deploy_at(&target.place);
        if let Some(Deploy::Command(command)) = &deploy {
            command.takes(image.format.kind()).map_err(|refused| {
                ProbeCommandError::ImageFormat { image: named.to_owned(), refused }
            })?;
        }
        let by_copy = matches!(deploy, Some(Deploy::Volume(_)));
        let program = match deploy {
            Some(Deploy::Command(command)) => command.program().to_owned(),
            Some(Deploy::Volume(copy)) => format!("copy to {}", copy.volume),
            _ => String::new(),
        };
        let consoles = ConsoleSink::new(None);
        let told = FlasherSink { program, events: Arc::clone(&events), consoles };
        if let Some(held) = self.held_place(target) {
            held.let_go_of_probe().await;
        }
        // The consoles tell which process has to close the port that the program may need.
        let BoundParts { _held, command, mut parts } =
            self.hold_and_bind(target, true, Arc::new(told.clone()), &*events, cancel).await?;
        let place = target.place.name.clone();
        let Some(flasher) = &mut parts.flasher else {
            return Err(ProbeCommandError::NotBound(place));
        };
        told.tell(None);
        let deployed = tokio::select! {
            deployed = flasher.deploy(&image) => deployed,
            () = cancel.cancelled() => {
                let evidence = command.keep();
                return Err(ProbeCommandError::FlashCancelled { place, evidence });
            }
        };
        let report = deployed.map_err(|error| match by_copy {
            true => ProbeCommandError::Driver(error),
            // The output of the program is kept as evidence.
            false => ProbeCommandError::Flasher { error, evidence: command.keep() },
        })?;
        if self.held_place(target).is_some() {
            // As `jig reset` does, which leaves the consoles to their capture.
            drop((parts, _held));
            if let Some(method) = reset_by_part(target, ResetBy::Usual).ok().flatten() {
                self.reset_by(method, target, &*events, cancel).await?;
            }
        } else if let Some(reset) = &mut parts.reset {
            reset.reset().await.map_err(ProbeCommandError::Driver)?;
        }
        Ok(Reply::Deployed(DeployReply { place, report }))
    }

    /// Resets a board by what the place has for it.
    pub(super) async fn reset_by(
        &self,
        method: ResetMethod,
        target: &CommandTarget<'_>,
        events: &dyn EventSink,
        cancel: &CancelToken,
    ) -> Result<Reply, ProbeCommandError> {
        let sink = Arc::new(ConsoleSink::new(None));
        if let Some(held) = self.held_place(target).filter(|_| method == ResetMethod::Power) {
            held.let_go_of_probe().await;
        }
        // Of a board that is held, another part of this process captures the consoles.
        let consoles = self.held_place(target).is_none() || method == ResetMethod::Line;
        let mut bound = self.hold_and_bind(target, consoles, sink, events, cancel).await?;
        let reply = ResetReply { place: target.place.name.clone(), method };
        if method == ResetMethod::Line
            && reset_by_captured_line(&target.place).await.map_err(ProbeCommandError::Driver)?
        {
            return Ok(Reply::Reset(reply));
        }
        match &mut bound.parts.reset {
            Some(reset) => tokio::select! {
                biased;
                done = reset.reset() => done.map_err(ProbeCommandError::Driver)?,
                // A line or an outlet is not left half-way.
                () = cancel.cancelled(), if method == ResetMethod::Command => {
                    return Err(ProbeCommandError::Cancelled(target.place.name.clone()));
                }
            },
            None => return Err(ProbeCommandError::NotBound(target.place.name.clone())),
        }
        Ok(Reply::Reset(reply))
    }

    /// Takes the place and binds its parts; what its consoles print is thrown away, unless they are
    /// left out.
    async fn hold_and_bind(
        &self,
        target: &CommandTarget<'_>,
        consoles: bool,
        sink: SharedSink,
        events: &dyn EventSink,
        cancel: &CancelToken,
    ) -> Result<BoundParts, ProbeCommandError> {
        let held = self.hold_parts(target, events, cancel).await?;
        let place = &target.place.name;
        let lock = held.iter().find(|lock| lock.place() == place);
        let lock = lock.ok_or_else(|| ProbeCommandError::NotBound(place.clone()))?;
        let command = lock.begin_command()?;
        let mut parts_of = target.place.clone();
        if !consoles {
            parts_of.consoles.clear();
        }
        let context = BindContext {
            profile: Arc::clone(&target.profile),
            place: Arc::new(parts_of),
            sink,
            evidence: command.folder().to_owned(),
            images: target.catalogue.images_dir(),
            ledger: command.children(),
        };
        let parts = self.parts().bind(context).map_err(BindError::from)?;
        Ok(BoundParts { parts, command, _held: held })
    }

    /// Takes the place, and those that may lose their power with it if its power is switched.
    async fn hold_parts(
        &self,
        target: &CommandTarget<'_>,
        events: &dyn EventSink,
        cancel: &CancelToken,
    ) -> Result<CommandLocks, ProbeCommandError> {
        if let Some(held) = self.held_place(target) {
            return Ok(held.locks().await);
        }
        if target.place.reset_part() != Some(ResetPart::Power) {
            return Ok(CommandLocks::Own(vec![target.lock(events, cancel).await?]));
        }
        let switch = self.switch_of(&target.place)?;
        let wait = Duration::from_millis(target.access.wait_ms);
        tokio::select! {
            biased;
            held = self.hold_switched(&switch, wait, false, events) => Ok(CommandLocks::Own(held?)),
            () = cancel.cancelled() => Err(ProbeCommandError::Waiting(target.place.name.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Told(Mutex<Vec<CommandEvent>>);

    impl EventSink for Told {
        fn event(&self, event: CommandEvent) {
            self.0.lock().unwrap().push(event);
        }
    }

    #[test]
    fn the_caller_is_told_how_far_a_program_is() {
        let told = Arc::new(Told::default());
        let events = Arc::clone(&told) as Arc<dyn EventSink>;
        let program = "esptool".to_owned();
        let sink =
            FlasherSink { program: program.clone(), events, consoles: ConsoleSink::new(None) };
        sink.event(BoardEvent::Deploying { percent: 40 });
        sink.event(BoardEvent::TargetExit { code: 0 });
        let wanted = [CommandEvent::Deploying { program, percent: Some(40) }];
        assert_eq!(*told.0.lock().unwrap(), wanted);
    }
}
