//! A launch that only shows that the emulator starts and answers.

use std::sync::Arc;

use jig_model::Cause;
use jig_model::image::Image;
use jig_model::profile::Emulation;
use jig_model::protocol::{BindContext, DriverError, NoSink};
use jig_model::rig_file::EmulatorPart;

use super::instance::{ANSWER, Instance};

/// Launches the machine of a board, asks it how it is, and ends it. It stays halted, and the rig is
/// not told: no console is captured and no event sent. Dropping the future ends it, too.
///
/// # Errors
/// It cannot be started, refuses its arguments, or does not answer.
pub(super) async fn trial(
    context: &BindContext,
    what: (&Emulation, &EmulatorPart),
    image: Option<&Image>,
    serial: u32,
) -> Result<String, DriverError> {
    let context = BindContext { sink: Arc::new(NoSink), ..context.clone() };
    let mut instance = Instance::launch(&context, what, image, serial, None, None).await?;
    let answer = instance.monitor.call("query-status", ANSWER).await;
    instance.process.kill().await;
    let answer = answer.map_err(|error| {
        let message = "ask the emulator how it is";
        DriverError::new(Cause::EmulatorStuck, message).with_source(error)
    })?;
    let status = answer.get("status").and_then(|s| s.as_str()).unwrap_or("unknown");
    Ok(format!("off; a trial start answered: machine is {status}"))
}
