//! What every driver of a power device can do.

use jig_model::protocol::{BoxFuture, PowerState};

use super::PowerError;

/// One power device, as its driver knows it. Knows nothing of boards.
///
/// Each call opens what it needs and lets go of it, so that a dropped future leaves nothing
/// behind; the caller bounds the time.
pub trait Outlets: Send + Sync {
    /// Says what it talks to, for messages: `http://plug.lab:80`.
    fn what(&self) -> String;

    /// Says what it asks for a state, for messages, if that is something else.
    fn what_is_asked(&self) -> String {
        self.what()
    }

    /// Switches an outlet. Returns when the device has taken the command, which may be before
    /// it has carried it out.
    fn set<'a>(
        &'a self,
        outlet: &'a str,
        state: PowerState,
    ) -> BoxFuture<'a, Result<(), PowerError>>;

    /// Reads an outlet's state; nothing where the device has no way to tell.
    fn read<'a>(&'a self, outlet: &'a str)
    -> BoxFuture<'a, Result<Option<PowerState>, PowerError>>;
}
