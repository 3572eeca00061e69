//! The line of a console that another process captures, as a reset.
//!
//! # Design
//! The capture service sets the line itself: the port is not lent for it, so that a user who
//! reads the console and sends on it is not disturbed.

use jig_model::Cause;
use jig_model::protocol::{DriverError, LineControl};
use jig_model::rig_file::{Place, ResetLine, ResetPart};
use tokio::time::sleep;

use super::PULSE;
use crate::serial::capture_service::set_line;

/// Resets a board by a line of its console, if a capture service captures that; returns whether it
/// did. The other line is released: the usual circuit takes both together for neither.
///
/// # Errors
/// The line was not set or not released.
pub async fn reset_by_captured_line(place: &Place) -> Result<bool, DriverError> {
    let Some(ResetPart::Line { console, line }) = place.reset_part() else { return Ok(false) };
    let client = place.console(&console).and_then(|transport| transport.capture.clone());
    let Some(client) = client else { return Ok(false) };
    let (other, assert, release) = match line {
        ResetLine::Rts => {
            (LineControl::Dtr(false), LineControl::Rts(true), LineControl::Rts(false))
        }
        ResetLine::Dtr => {
            (LineControl::Rts(false), LineControl::Dtr(true), LineControl::Dtr(false))
        }
    };
    let set = async |what| {
        set_line(&client, &console, what).await.map_err(|error| {
            let message = format!("set a line of console {console}");
            DriverError::new(Cause::PowerFailed, message).with_source(error)
        })
    };
    if !set(other).await? {
        return Ok(false);
    }
    let asserted = set(assert).await;
    sleep(PULSE).await;
    // Also where it may not have been asserted: a board must not stay in reset.
    let released = set(release).await;
    Ok(asserted? && released?)
}
