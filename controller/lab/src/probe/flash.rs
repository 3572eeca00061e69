//! Flashing and erasing through a debug probe.

use std::sync::Arc;

use jig_model::command::{
    CommandEvent, DeployReply, EraseCommand, EraseReply, EventSink, FlashBy, FlashImageCommand,
    FlashReply, ProbeFlash, Reply,
};
use jig_probe::{Cancel, ChipMemoryKind, ChipRegion, EraseScope, FlashRequest, Leave, ResetInto};
use jig_rig::workflow::CancelToken;

use super::ProbeCommandError;
use super::board::Lasting;
use super::parts::flashed_by_program;
use super::port::{Port, PortDone, PortWish, image_of};
use super::target::CommandTarget;
use crate::Lab;

impl Lab {
    /// Puts an image on a board.
    pub(crate) async fn flash(
        &self,
        command: FlashImageCommand,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, ProbeCommandError> {
        let FlashImageCommand { place, probe, image, by } = command;
        let target = CommandTarget::of(&self.catalogue, &place, probe)?;
        if let Some(held) = self.held_place(&target)
            && let Some(image) = held.take_image(&target, &image).await?
        {
            let report = held.flash(&image).await?;
            return Ok(Reply::Deployed(DeployReply { place, report }));
        }
        if flashed_by_program(&target, &by)? {
            return self.flash_by_program(&target, &image, events, &cancel).await;
        }
        let ProbeFlash { verify, start, preserve, skip_equal } = match by {
            FlashBy::Usual => ProbeFlash::default(),
            FlashBy::Probe(how) => how,
        };
        let (_, payload) = image_of(&image, &target.profile)?;
        target.check_flashable(&payload)?;
        let wish = PortWish { verb: "flash", lasting: Lasting::Flash, starts: true, stays: false };
        let port = self.open_port(&target, wish, events, cancel).await?;
        let done = async {
            port.ready().await?;
            flash(&port, FlashRequest { payload, verify, preserve, skip_equal }, start).await
        };
        let done = done.await;
        port.close(done).await
    }

    /// Erases a board's flash.
    pub(crate) async fn erase(
        &self,
        command: EraseCommand,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, ProbeCommandError> {
        let EraseCommand { place, probe, range } = command;
        let target = CommandTarget::of(&self.catalogue, &place, probe)?;
        let lasting = if range.is_some() { Lasting::Flash } else { Lasting::Nothing };
        let wish = PortWish { verb: "erase", lasting, starts: true, stays: false };
        let port = self.open_port(&target, wish, events, cancel).await?;
        let done = async {
            port.ready().await?;
            erase(&port, range.map_or(EraseScope::All, EraseScope::Range)).await
        };
        let done = done.await;
        port.close(done).await
    }
}

async fn flash(port: &Port, request: FlashRequest, start: bool) -> PortDone {
    let events = Arc::clone(&port.events);
    let told = move |progress| events.event(CommandEvent::Flashing { progress });
    let cancel = Cancel::default();
    let work = port.handle.flash(request, told, cancel.clone());
    let report = port.flashing(work, &cancel).await?;
    port.held.keep().await?;
    let (into, leave) = match start {
        true => (ResetInto::Run, Leave::Running),
        false => (ResetInto::Halt, Leave::Halted),
    };
    match port.done(port.handle.reset(into).await) {
        // The image is on the board, and has ended it already.
        Err(ProbeCommandError::BoardOff { .. }) if start => {}
        reset => reset?,
    }
    let reply = FlashReply {
        place: port.place.clone(),
        chip: port.attached.chip.clone(),
        attempts: port.attached.attempts,
        report,
    };
    Ok((Reply::Flashed(reply), leave))
}

async fn erase(port: &Port, scope: EraseScope) -> PortDone {
    let is_flash = |region: &ChipRegion| region.kind == ChipMemoryKind::Flash;
    let report = if port.attached.memory.iter().any(is_flash) {
        let cancel = Cancel::default();
        let report = port.flashing(port.handle.erase(scope, cancel.clone()), &cancel).await?;
        port.held.keep().await?;
        Some(report)
    } else if scope == EraseScope::All && port.held.is_fresh() {
        // An emulated board without a model of its chip's flash keeps its program in plain
        // memory, which has lost it with its power.
        None
    } else {
        return Err(ProbeCommandError::NoFlash(port.place.clone()));
    };
    let (place, chip) = (port.place.clone(), port.attached.chip.clone());
    Ok((Reply::Erased(EraseReply { place, chip, report }), Leave::Halted))
}
