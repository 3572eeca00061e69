//! Refusals of calls.

use std::error::Error;

use jig_model::{Fault, chain};

use crate::protocol::RequestError;

/// Says that a call was not carried out.
pub(super) fn refused(error: &dyn Error, fault: Fault) -> RequestError {
    RequestError::refused(fault, chain(error), None)
}
