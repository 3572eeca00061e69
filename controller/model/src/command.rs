//! The door to a rig: what a caller asks for, and what it is told meanwhile.

mod event;

pub use event::{CommandEvent, EventSink, SweptRun};
