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
        let lock = target.lock(&*events, &cancel).await?;
        let sink = ConsoleSink::new(Some(Arc::clone(&events)));
        let lost = sink.lost();
        let mut board = Box::new(LocalBoard::start(&target, lock, sink).await?);
        let (mut server, handle) = match start(&target, &board, listen, image).await {
            Ok(both) => both,
            Err(error) => {
                drop(board.release().await);
                return Err(error);
            }
        };
        board.lock.serves(server.selector());
        let described = ChipDescription::of(&target.profile);
        let (chip, description) = described.map(|about| (about.chip, about.text)).unzip();
        events.event(CommandEvent::ProbeServed {
            place: place.clone(),
            selector: server.selector().to_owned(),
            chip: chip.or_else(|| target.profile.chip.clone()),
            description,
        });
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
    let at = match listen {
        None => {
            let path =
                target.catalogue.places().root().join(format!("{}.probe", target.place.name));
            // The lock proves that the process that made it is gone.
            let _ = std::fs::remove_file(&path);
            ServeAt::Unix(path)
        }
        Some(ListenAt::Unix(path)) => ServeAt::Unix(path),
        Some(ListenAt::Tcp(address)) if address.ip().is_loopback() => {
            ServeAt::Loopback(address.port())
        }
        Some(ListenAt::Tcp(_)) => return Err(ProbeCommandError::NotLoopback),
    };
    Ok((board.board.serve(at)?, handle))
}
