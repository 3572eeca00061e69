//! `jig probe serve`: an emulated board that any probe-rs tool can use.

use jig_lab::Catalogue;
use jig_model::rig_file::ProbePart;
use jig_model::{Fault, exit};
use jig_probe::{
    AttachOptions, Cancel, ChipDescription, FlashRequest, Leave, ProbeHandle, ResetInto, ServeAt,
};
use serde_json::json;

use super::help::failed;
use super::place::{LocalBoard, lock, socket_of};
use super::port::{payload_of, runtime, stops};
use super::tap::Tap;
use crate::args::{Common, ProbeCommand};
use crate::failure::{Failure, chain};
use crate::render::Screen;

/// Runs an emulated board and serves its debug port until interrupted. Standard output shows
/// the selector, and after it what the board prints; with `--json` one line:
/// `{"place","selector","chip","description"}`.
pub(crate) fn probe(
    common: &Common,
    screen: &Screen,
    command: ProbeCommand,
) -> Result<u8, Failure> {
    let ProbeCommand::Serve { target, listen, image, wait } = command;
    let catalogue = Catalogue::load(&common.lab())?;
    let (place, profile) = catalogue.place(&target.board)?;
    if !place.is_emulated() {
        let behind = |probe: &ProbePart| format!(" behind probe {}", probe.selector);
        let behind = place.probe.as_ref().map(behind).unwrap_or_default();
        let words = format!("{} is a real board{behind}", place.name);
        return Err(Failure::new(Fault::Usage, words)
            .help("any probe-rs tool can use it as it is; `jig probes` lists what there is"));
    }
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let mut stops = stops().map_err(|error| Failure::of(Fault::Bug, &error))?;
        let places = catalogue.places();
        let lock = lock(&places, &place.name, wait, screen).await?;
        let tap = Tap::new(!screen.json() && !screen.quiet());
        let lost = tap.lost();
        let mut board = LocalBoard::start(&catalogue, &place, &profile, lock, tap).await?;
        let served = async {
            let payload = image.map(|image| payload_of(&image, &profile)).transpose()?;
            let told = |error| failed(&error, &place.name);
            let session = ProbeHandle::attach(board.source()?, AttachOptions::default()).await;
            let (handle, _) = session.map_err(told)?;
            if let Some(payload) = payload {
                let request =
                    FlashRequest { payload, verify: true, preserve: Vec::new(), skip_equal: true };
                handle.flash(request, |_| {}, Cancel::default()).await.map_err(told)?;
                board.keep().await?;
            }
            handle.reset(ResetInto::Halt).await.map_err(told)?;
            let at = match &listen {
                None => ServeAt::Unix(socket_of(&places, &place.name)),
                Some(text) => match text.parse::<std::net::SocketAddr>() {
                    Ok(address) if address.ip().is_loopback() => ServeAt::Loopback(address.port()),
                    Ok(_) => {
                        let words = "a debug port is only served to this machine";
                        return Err(Failure::new(Fault::Usage, words)
                            .help("listen on 127.0.0.1:PORT, and forward it with ssh -L"));
                    }
                    Err(_) => ServeAt::Unix(text.into()),
                },
            };
            if let ServeAt::Unix(path) = &at {
                // The lock says that whoever made it is gone.
                if listen.is_none() {
                    let _ = std::fs::remove_file(path);
                }
            }
            let server = board.board.serve(at);
            Ok((server.map_err(|error| Failure::of(Fault::Lab, &error))?, handle))
        };
        let (mut server, handle) = match served.await {
            Ok(both) => both,
            Err(failure) => {
                drop(Box::new(board).release().await);
                return Err(failure);
            }
        };
        board.lock.serves(server.selector());
        let chip = profile.chip.as_deref();
        if screen.json() {
            let described = ChipDescription::of(&profile);
            screen.out_json(&json!({
                "place": place.name,
                "selector": server.selector(),
                "chip": described.as_ref().map(|described| described.chip.as_str()).or(chip),
                "description": described.as_ref().map(|described| described.text.as_str()),
            }));
        } else {
            screen.out(server.selector());
            let chip = chip.unwrap_or("CHIP");
            screen.say(&format!("probe-rs info --probe {} --chip {chip}", server.selector()));
            screen.say("Ctrl-C ends");
        }
        // Whoever reads this knows the selector before the board says its first word.
        let runs = async {
            handle.reset(ResetInto::Run).await?;
            handle.close(Leave::Running).await
        };
        if let Err(error) = runs.await {
            tracing::warn!(error = chain(&error), "the board was served, but does not run");
        }
        let lost = tokio::select! {
            _ = stops.wait_for(|stop| *stop) => None,
            words = lost => Some(words),
        };
        server.stop();
        // A board whose program ended it keeps what was flashed before.
        if let Err(failure) = board.keep().await {
            tracing::warn!(error = failure.message, "what the flash holds now was not kept");
        }
        let lock = Box::new(board).release().await;
        // The socket goes last, and still under the lock: the next to serve makes its own.
        drop(server);
        drop(lock);
        match lost {
            None => Ok(exit::PASS),
            Some(words) => {
                let words = format!("the emulated board {} is gone: {words}", place.name);
                Err(Failure::new(Fault::Lab, words)
                    .help(format!("serve it anew: jig probe serve -b {}", place.name)))
            }
        }
    });
    runtime.shutdown_background();
    outcome
}
