//! `jig supervise`: runs one program for another Jig, and ends all that it starts.
//!
//! Standard input is a socket to that Jig; nothing is printed beside what the program prints.

use std::process::ExitCode;

use jig_model::exit;

/// Carries out the order on standard input.
pub(crate) fn supervise() -> ExitCode {
    match jig_drivers::program::serve_order() {
        Ok(()) => ExitCode::from(exit::PASS),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(exit::USAGE)
        }
    }
}
