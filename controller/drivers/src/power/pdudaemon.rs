//! Devices behind a `pdudaemon`: `/power/control/{on,off}?hostname=H&port=P`.
//!
//! The daemon answers when its own queue has done the work, or has given up after some
//! tries, with 200 in either case; it cannot be asked for a state.
//! <https://github.com/pdudaemon/pdudaemon#http-listener-calls>

use jig_model::power::{HttpAuth, PduDaemonPower};
use jig_model::protocol::{BoxFuture, PowerState};

use super::context::{OpenOutlets, PowerContext};
use super::error::word;
use super::template::percent;
use super::web::{Web, WebCall};
use super::{Outlets, PowerError};

/// Switches by a daemon.
struct PduDaemonOutlets {
    hostname: String,
    web: Web,
}

impl OpenOutlets for PduDaemonPower {
    fn open(self, _: &PowerContext) -> Result<Box<dyn Outlets>, PowerError> {
        let web = Web::new(self.url, &self.tls, HttpAuth::None, None, None)?;
        Ok(Box::new(PduDaemonOutlets { hostname: self.hostname, web }))
    }
}

impl Outlets for PduDaemonOutlets {
    fn what(&self) -> String {
        format!("pdudaemon at {}", self.web.what())
    }

    fn set<'a>(
        &'a self,
        outlet: &'a str,
        state: PowerState,
    ) -> BoxFuture<'a, Result<(), PowerError>> {
        let (host, port) = (percent(&self.hostname), percent(outlet));
        let path = format!("/power/control/{}?hostname={host}&port={port}", word(state));
        Box::pin(async move {
            let answer = self.web.call(WebCall::get(path)).await?;
            match answer.status.as_u16() {
                200..=299 => Ok(()),
                // The one answer it has for whatever is wrong with a request.
                500 => {
                    let why = format!("it knows no device {:?}", self.hostname);
                    Err(PowerError::refused(self.what(), why))
                }
                _ => Err(PowerError::refused(self.what(), answer.status.to_string())),
            }
        })
    }

    fn read<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<PowerState>, PowerError>> {
        Box::pin(async { Ok(None) })
    }
}
