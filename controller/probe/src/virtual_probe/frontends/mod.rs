//! The two frontends of a virtual probe: towards probe-rs in this process, and towards any.

mod glasgow;
mod in_process;
mod server;

pub(super) use in_process::open_probe;
pub(super) use server::serve;
pub use server::{ServeAt, ServerHandle};
