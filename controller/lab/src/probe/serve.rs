//! Serving the debug port of an emulated board to any probe-rs tool.

use std::path::PathBuf;
use std::sync::Arc;

use jig_model::chain;
use jig_model::command::{
    CommandEvent, EndedReply, EventSink, ListenAt, ProbeAccess, Reply, ServeProbeCommand,
};
use jig_probe::{
    AttachOptions, Cancel, ChipDescription, FlashRequest, Leave, ProbeError, ProbeHandle,
    ResetInto, ServeAt, ServerHandle,
};
use jig_rig::workflow::CancelToken;

use super::ProbeCommandError;
use super::held::HeldPlace;
use super::local::LocalBoard;
use super::port::image_of;
use super::sink::ConsoleSink;
use super::target::CommandTarget;
use crate::Lab;

impl Lab {
    /// Runs an emulated board and serves its debug port until the caller cancels.
    pub(crate) async fn serve_probe(
        &self,
        command: ServeProbeCommand,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, ProbeCommandError> {
        let ServeProbeCommand { place, listen, image, wait_ms } = command;
        let access = ProbeAccess { wait_ms, ..ProbeAccess::default() };
        let target = CommandTarget::of(&self.catalogue, &place, access)?;
        if !target.place.is_emulated() {
            let selector = target.place.probe.map(|probe| probe.selector);
            return Err(ProbeCommandError::NotEmulated { place, selector });
        }
        if let Some(held) = self.held_place(&target) {
            return serve_held(held, &target, (listen, image), &*events, &cancel).await;
        }
        let lock = target.lock(&*events, &cancel).await?;
        let sink = ConsoleSink::new(Some(Arc::clone(&events)));
        let lost = sink.lost();
        let mut board = Box::new(LocalBoard::start(&target, lock, Arc::new(sink)).await?);
        let (mut server, handle) = match start(&target, &board, listen, image).await {
            Ok(both) => both,
            Err(error) => {
                drop(board.release().await);
                return Err(error);
            }
        };
        board.lock.serves(Some(server.selector()));
        events.event(told_of(&target, &server));
        // The caller knows the selector before the board prints its first byte.
        let runs = async {
            handle.reset(ResetInto::Run).await?;
            handle.close(Leave::Running).await
        };
        if let Err(error) = runs.await {
            tracing::warn!(error = chain(&error), "the board was served, but does not run");
        }
        let lost = tokio::select! {
            () = cancel.cancelled() => None,
            words = lost => Some(words),
        };
        server.stop();
        // A board whose program ended it keeps what was flashed before.
        if let Err(error) = board.keep().await {
            tracing::warn!(error = chain(&error), "what the flash holds now was not kept");
        }
        let lock = board.release().await;
        // The socket goes last, and still under the lock: the next to serve makes its own.
        drop(server);
        drop(lock);
        match lost {
            None => Ok(Reply::Ended(EndedReply { place })),
            Some(words) => Err(ProbeCommandError::BoardLost { place, words }),
        }
    }
}

/// Serves a board that this process holds, until the caller cancels or its power is gone.
async fn serve_held(
    held: &HeldPlace,
    target: &CommandTarget<'_>,
    (listen, image): (Option<ListenAt>, Option<PathBuf>),
    events: &dyn EventSink,
    cancel: &CancelToken,
) -> Result<Reply, ProbeCommandError> {
    let place = target.place.name.clone();
    if image.is_some() {
        return Err(ProbeCommandError::ImageOfHeld(place));
    }
    // A board without power has no debug port.
    held.session(target).await?;
    let mut server = held.serve(|| serve_at(target, listen)).await?;
    events.event(told_of(target, &server));
    let lost = tokio::select! {
        () = cancel.cancelled() => None,
        words = held.lost_power() => Some(words),
    };
    server.stop();
    drop(server);
    held.served_no_more().await;
    match lost {
        None => Ok(Reply::Ended(EndedReply { place })),
        Some(words) => Err(ProbeCommandError::BoardLost { place, words }),
    }
}

fn told_of(target: &CommandTarget<'_>, server: &ServerHandle) -> CommandEvent {
    let described = ChipDescription::of(&target.profile);
    let (chip, description) = described.map(|about| (about.chip, about.text)).unzip();
    CommandEvent::ProbeServed {
        place: target.place.name.clone(),
        selector: server.selector().to_owned(),
        chip: chip.or_else(|| target.profile.chip.clone()),
        description,
    }
}

/// Returns where a board is served. The place's own socket may have been left by a process that is
/// gone: the lock proves it.
fn serve_at(
    target: &CommandTarget<'_>,
    listen: Option<ListenAt>,
) -> Result<ServeAt, ProbeCommandError> {
    Ok(match listen {
        None => {
            let path =
                target.catalogue.places().root().join(format!("{}.probe", target.place.name));
            let _ = std::fs::remove_file(&path);
            ServeAt::Unix(path)
        }
        Some(ListenAt::Unix(path)) => ServeAt::Unix(path),
        Some(ListenAt::Tcp(address)) if address.ip().is_loopback() => {
            ServeAt::Loopback(address.port())
        }
        Some(ListenAt::Tcp(_)) => return Err(ProbeCommandError::NotLoopback),
    })
}

/// Flashes the board, leaves it before its first instruction, and listens.
async fn start(
    target: &CommandTarget<'_>,
    board: &LocalBoard,
    listen: Option<ListenAt>,
    image: Option<PathBuf>,
) -> Result<(ServerHandle, ProbeHandle), ProbeCommandError> {
    let payload = image.map(|image| image_of(&image, &target.profile)).transpose()?;
    let told =
        |error: ProbeError| ProbeCommandError::Probe { place: target.place.name.clone(), error };
    let session = ProbeHandle::attach(board.source()?, AttachOptions::default()).await;
    let (handle, _) = session.map_err(told)?;
    if let Some((_, payload)) = payload {
        let request =
            FlashRequest { payload, verify: true, preserve: Vec::new(), skip_equal: true };
        handle.flash(request, |_| {}, Cancel::default()).await.map_err(told)?;
        board.keep().await?;
    }
    handle.reset(ResetInto::Halt).await.map_err(told)?;
    let at = serve_at(target, listen)?;
    Ok((board.board.serve(at)?, handle))
}
