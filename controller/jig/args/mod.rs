//! The command line: parsed here ([`low`]), given meaning in [`crate::commands`].

mod low;

pub(crate) use low::*;
