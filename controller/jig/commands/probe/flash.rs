//! `jig flash` and `jig erase`.

use std::sync::Arc;

use jig_model::{Fault, byte_size, exit};
use jig_probe::{Cancel, EraseScope, FlashRequest, Leave, MemoryKind, ResetInto};
use serde_json::json;

use super::help::failed;
use super::port::{Lasting, Port, with_port};
use crate::args::{Common, EraseArgs, FlashArgs};
use crate::failure::Failure;
use crate::render::{FlashView, Screen, flash_line};

/// Puts an image on a board.
///
/// JSON: the flash report, with `place`, `chip`, `method` and `attempts`.
pub(crate) fn flash(common: &Common, screen: &Screen, args: FlashArgs) -> Result<u8, Failure> {
    let FlashArgs { at, image, no_verify, no_reset, preserve, all, .. } = args;
    with_port(common, screen, "flash", &at, Lasting::Flash, async |port: &Port| {
        let payload = port.payload(&image)?;
        let request = FlashRequest { payload, verify: !no_verify, preserve, skip_equal: !all };
        let view = Arc::new(FlashView::new(screen));
        let cancel = Cancel::default();
        port.cancel_on_stop(cancel.clone());
        let shown = Arc::clone(&view);
        let done = port.handle.flash(request, move |at| shown.show(at), cancel).await;
        view.clear();
        let report = done.map_err(|error| failed(&error, &port.place))?;
        port.keep().await?;
        let leave = if no_reset { Leave::Halted } else { Leave::Running };
        let into = if no_reset { ResetInto::Halt } else { ResetInto::Run };
        port.handle.reset(into).await.map_err(|error| failed(&error, &port.place))?;
        if screen.json() {
            screen.out_json(&json!({
                "place": port.place,
                "chip": port.attached.chip,
                "method": "probe",
                "attempts": port.attached.attempts,
                "report": report,
            }));
        } else {
            screen.out(&format!("flashed {}: {}", port.place, flash_line(&report)));
        }
        Ok((exit::PASS, leave))
    })
}

/// Erases a board's flash.
///
/// JSON: `{"place","chip","bytes","took"}`.
pub(crate) fn erase(common: &Common, screen: &Screen, args: EraseArgs) -> Result<u8, Failure> {
    let lasting = if args.range.is_some() { Lasting::Flash } else { Lasting::Nothing };
    with_port(common, screen, "erase", &args.at, lasting, async |port: &Port| {
        let is_flash = |region: &jig_probe::MemoryRegion| region.kind == MemoryKind::Flash;
        if !port.attached.memory.iter().any(is_flash) {
            return no_flash(screen, port, args.range.is_none());
        }
        let scope = args.range.map_or(EraseScope::All, EraseScope::Range);
        let cancel = Cancel::default();
        port.cancel_on_stop(cancel.clone());
        let progress = screen.progress();
        progress.set("erasing");
        let done = port.handle.erase(scope, cancel).await;
        progress.clear();
        let report = done.map_err(|error| failed(&error, &port.place))?;
        port.keep().await?;
        if screen.json() {
            screen.out_json(&json!({
                "place": port.place,
                "chip": port.attached.chip,
                "report": report,
            }));
        } else {
            let seconds = report.took.as_secs_f64();
            let size = byte_size(report.bytes);
            screen.out(&format!("erased {} of {} in {seconds:.2} s", size, port.place));
        }
        Ok((exit::PASS, Leave::Halted))
    })
}

/// An emulated board without a model of its chip's flash keeps its program in plain memory.
fn no_flash(screen: &Screen, port: &Port, all: bool) -> Result<(u8, Leave), Failure> {
    if !all || !port.is_fresh() {
        let words = format!("{} has no flash that could be erased", port.place);
        return Err(Failure::new(Fault::Usage, words)
            .help(format!("its program is in plain memory: jig flash -b {} IMAGE", port.place)));
    }
    if screen.json() {
        screen
            .out_json(&json!({ "place": port.place, "chip": port.attached.chip, "report": null }));
    } else {
        screen.out(&format!("{} has no program any more", port.place));
    }
    Ok((exit::PASS, Leave::Halted))
}
