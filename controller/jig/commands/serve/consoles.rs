//! The captured consoles: which there are, and how their states are told.

use jig_lab::Catalogue;
use jig_model::capture_service::{CaptureState, CaptureStatus};
use jig_model::rig_file::Endpoint;
use jig_model::{ConsoleName, PlaceName};
use jig_rig::capture_service::{CaptureService, CaptureSpec};
use jig_rig::console::escape;
use serde_json::json;

use crate::render::Screen;

/// Lists the consoles of the rig that have transports of their own. Of two that end at one device under
/// two names, the second is told of and left out.
pub(super) fn specs(screen: &Screen, catalogue: &Catalogue) -> Vec<CaptureSpec> {
    let mut specs = Vec::new();
    let shared = catalogue.shared_ports();
    for port in &shared {
        let text = escape(port.to_string().as_bytes());
        if screen.json() {
            let at = jiff::Timestamp::now();
            screen.out_json(&json!({"event": "shared_port", "at": at, "error": text}));
        } else {
            screen.insist(&format!("{text}; the first of them is not captured"));
        }
    }
    let is_shared = |place: &PlaceName, console: &ConsoleName| {
        shared.iter().any(|port| port.console() == (place, console))
    };
    for place in &catalogue.rig.places {
        let Some(profile) = catalogue.profiles.get(&place.board) else { continue };
        for transport in &place.consoles {
            let console = profile.consoles.iter().find(|console| console.name == transport.console);
            let Some(console) = console else { continue };
            if is_shared(&place.name, &console.name) {
                continue;
            }
            specs.push(CaptureSpec {
                place: place.name.clone(),
                transport: transport.clone(),
                baud: console.baud,
                limits: catalogue.rig.capture.clone(),
            });
        }
    }
    specs
}

/// Prints the status of a console.
pub(super) fn show(screen: &Screen, status: &CaptureStatus) {
    if screen.json() {
        let mut event = serde_json::to_value(status).unwrap_or_default();
        if let Some(fields) = event.as_object_mut() {
            fields.insert("event".to_owned(), "console".into());
            fields.insert("at".to_owned(), jiff::Timestamp::now().to_string().into());
        }
        return screen.out_json(&event);
    }
    let words = state_words(&status.state);
    let words = format!("{} {}: {words} ({})", status.place, status.console, status.end);
    screen.out(&escape(words.as_bytes()));
}

/// Describes the state of a console; may contain any text.
fn state_words(state: &CaptureState) -> String {
    match state {
        CaptureState::Waiting { why } => format!("not there yet: {why}"),
        CaptureState::Captured => "captured".to_owned(),
        CaptureState::Away { why } => format!("gone for now: {why}"),
        CaptureState::Lent { by } => format!("lent to {by}"),
        CaptureState::Released { by } => format!("closed for {by}"),
        CaptureState::Gone { why } => format!("gone until the next SIGHUP: {why}"),
        CaptureState::Unwritten { why } => {
            format!("not captured, its log cannot be written: {why}")
        }
    }
}

/// Describes all consoles in one line.
pub(super) fn summary(service: &CaptureService) -> String {
    let (mut all, mut held) = (0, 0);
    for (_, handle) in service.all() {
        all += 1;
        let status = handle.status();
        let state = &status.borrow().state;
        held += u32::from(matches!(state, CaptureState::Captured | CaptureState::Lent { .. }));
    }
    match all {
        0 => "serving; no console to capture".to_owned(),
        _ => format!("serving; {held} of {all} consoles captured or lent"),
    }
}

/// Counts the consoles whose bytes this process passes on to a run: those would be cut off with it.
/// A run has a descriptor of its own for any other transport.
pub(super) fn passed_on(service: &CaptureService) -> usize {
    let through_us = service.all().filter(|(spec, handle)| {
        let lent = matches!(handle.status().borrow().state, CaptureState::Lent { .. });
        lent && matches!(spec.transport.end, Endpoint::Rfc2217(_) | Endpoint::Command(_))
    });
    through_us.count()
}
