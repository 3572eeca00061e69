//! RTT: rings in the target's memory that a debugger empties and fills.

mod block;
mod defmt;

pub use block::{RttBlock, RttChannel, RttError, TargetMemory};
pub use defmt::{DefmtDecoder, DefmtError, DefmtItem, DefmtTable};
