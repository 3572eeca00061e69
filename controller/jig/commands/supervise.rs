//! `jig supervise`: runs one program for another Jig, and ends all that it starts.
//!
//! Standard input is a socket to that Jig; nothing is printed beside what the program prints.

use jig_model::{Fault, exit};

use crate::failure::Failure;

/// Carries out the order on standard input.
pub(crate) fn supervise() -> Result<u8, Failure> {
    let served = jig_drivers::program::serve_order();
    served.map(|()| exit::PASS).map_err(|error| Failure::of(Fault::Usage, &error))
}
