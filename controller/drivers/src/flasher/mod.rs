//! Programs that flash real boards: OpenOCD, esptool, avrdude, dfu-util and the like.
//!
//! Owns one run of such a program: its arguments ([`arguments`]), its output and what that
//! means ([`output`]), its end. What the program is called and how it is judged is in the
//! board's profile. Refuses shells, and to believe an exit code alone: some flashers end
//! with 0 although nothing was written.

mod arguments;
mod command;
mod error;
mod output;
#[cfg(test)]
mod tests;

pub use arguments::Unfilled;
pub use command::{CommandFlasher, CommandFlasherFactory};
pub use error::{FlasherError, LastWords};
pub use output::BadPattern;
