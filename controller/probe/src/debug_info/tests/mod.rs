//! Backtraces and explanations of real firmware on emulated cores, and of nonsense.

pub(crate) mod emulated;
mod fixtures;
mod hostile;
mod nested;
mod variable_parts;
