//! RTT: rings in the target's memory that a debugger empties and fills.

mod defmt;

pub use defmt::{DefmtDecoder, DefmtError, DefmtItem, DefmtTable};
