//! Programs that flash real boards: OpenOCD, esptool, avrdude, dfu-util and the like.
//!
//! Owns one run of such a program: its arguments ([`arguments`]), the files it takes instead of the
//! image ([`made`]), its output and what that means ([`output`]), its end. What the program is
//! called and how it is judged is in the board's profile or in a preset. A boot loader that the firmware
//! starts is started before ([`touch`]). Refuses shells, and to
//! believe an exit code alone: some flashers end with 0 although nothing was written.

mod arguments;
mod command;
mod error;
mod made;
mod output;
#[cfg(test)]
mod tests;
mod touch;
mod volume;

pub use arguments::Unfilled;
pub use command::{CommandFlasher, CommandFlasherFactory};
pub use error::{FlasherError, LastWords};
pub use made::NotMade;
pub use output::BadPattern;
pub use touch::TouchError;
pub use volume::{VolumeError, mount_command, volume_mounts};
