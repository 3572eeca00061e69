//! `jig flash` and `jig erase`.

use std::sync::Arc;

use jig_model::command::{
    Command, CommandEvent, DeployReply, EraseCommand, EventSink, FlashBy, FlashImageCommand,
    FlashReply, ProbeFlash, Reply,
};
use jig_model::{byte_size, exit};
use serde_json::json;

use super::access::ProbedBoard;
use crate::args::{Common, EraseArgs, FlashArgs};
use crate::commands::execute::{execute, unexpected};
use crate::failure::Failure;
use crate::render::{FlashView, ProgressView, Screen, flash_line, one_line};

/// Puts an image on a board. With --verify a program that does not report a comparison ends with
/// the code of missing evidence.
///
/// JSON: `{"place","chip","method","attempts","report"}`; where a program flashed the board, the
/// method is its name, the report that of a deployment, and what a probe would tell is null.
pub(crate) fn flash(common: &Common, screen: &Screen, args: FlashArgs) -> Result<u8, Failure> {
    let FlashArgs { at, image, verify, no_verify, no_reset, preserve, all } = args;
    let board = ProbedBoard::of(common, &at)?;
    let how = ProbeFlash { verify: !no_verify, start: !no_reset, preserve, skip_equal: !all };
    // What only a probe can do chooses the probe.
    let by = match board.names_probe() || how != ProbeFlash::default() {
        true => FlashBy::Probe(how),
        false => FlashBy::Usual,
    };
    let ProbedBoard { rig, place, probe } = board;
    let command = Command::Flash(FlashImageCommand { place, probe, image, by });
    let view = Arc::new(FlashEvents { screen: screen.clone(), view: FlashView::new(screen) });
    let events = Arc::clone(&view);
    let reply = execute(&rig, command, events);
    view.view.clear();
    let FlashReply { place, chip, attempts, report } = match reply? {
        Reply::Flashed(reply) => reply,
        Reply::Deployed(reply) => {
            deployed(screen, &reply);
            if verify && !reply.report.verified {
                screen.insist(&format!(
                    "not verified: {} does not say that it read the image back, and --verify asks \
                     for that",
                    one_line(&reply.report.method)
                ));
                return Ok(exit::INCONCLUSIVE);
            }
            return Ok(exit::PASS);
        }
        _ => return Err(unexpected()),
    };
    if screen.json() {
        screen.out_json(&json!({
            "place": place,
            "chip": chip,
            "method": "probe",
            "attempts": attempts,
            "report": report,
        }));
    } else {
        screen.out(&format!("flashed {place}: {}", flash_line(&report)));
    }
    Ok(exit::PASS)
}

fn deployed(screen: &Screen, DeployReply { place, report }: &DeployReply) {
    if screen.json() {
        screen.out_json(&json!({
            "place": place,
            "chip": null,
            "method": report.method,
            "attempts": null,
            "report": report,
        }));
    } else {
        let method = one_line(&report.method);
        let verified = if report.verified { ", verified" } else { "" };
        let seconds = std::time::Duration::from_millis(report.duration_ms).as_secs_f64();
        let size = byte_size(report.bytes);
        screen.out(&format!("flashed {place}: by {method}, {size}{verified}, {seconds:.2} s"));
    }
}

/// Shows how far a flash operation is.
struct FlashEvents {
    screen: Screen,
    view: FlashView,
}

impl EventSink for FlashEvents {
    fn event(&self, event: CommandEvent) {
        match event {
            CommandEvent::Flashing { progress } => self.view.show(progress),
            CommandEvent::Deploying { program, percent } => self.view.deploying(&program, percent),
            other => self.screen.event(other),
        }
    }
}

/// Erases a board's flash.
///
/// JSON: `{"place","chip","report":{"bytes","took"}}`; no report where the program was in RAM.
pub(crate) fn erase(common: &Common, screen: &Screen, args: EraseArgs) -> Result<u8, Failure> {
    let ProbedBoard { rig, place, probe } = ProbedBoard::of(common, &args.at)?;
    let command = Command::Erase(EraseCommand { place, probe, range: args.range });
    let view = Arc::new(EraseEvents { screen: screen.clone(), progress: screen.progress() });
    let events = Arc::clone(&view);
    let reply = execute(&rig, command, events);
    view.progress.clear();
    let Reply::Erased(reply) = reply? else { return Err(unexpected()) };
    match &reply.report {
        _ if screen.json() => screen.out_json(&reply),
        Some(report) => {
            let seconds = report.took.as_secs_f64();
            let size = byte_size(report.bytes);
            screen.out(&format!("erased {size} of {} in {seconds:.2} s", reply.place));
        }
        None => screen.out(&format!("{} has no program any more", reply.place)),
    }
    Ok(exit::PASS)
}

/// Shows that a board is being erased.
struct EraseEvents {
    screen: Screen,
    progress: ProgressView,
}

impl EventSink for EraseEvents {
    fn event(&self, event: CommandEvent) {
        let attached = matches!(event, CommandEvent::Attached { .. });
        self.screen.event(event);
        if attached {
            self.progress.set("erasing");
        }
    }
}
