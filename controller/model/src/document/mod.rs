//! Reading TOML documents that people write: profiles, rig files, plans.
//!
//! Owns the vocabulary those documents share: every problem at once with its place,
//! unknown keys with the nearest known one, times such as `250ms`, sizes such as `256K`.
//! A document's tables are declared with [`toml_table!`](crate::toml_table), from which
//! both the reader and the JSON Schema come, so the two cannot drift apart.
//!
//! Refuses to know what any document means: that is for the module that lowers it.

mod findings;
mod named;
mod nearest;
mod open;
mod quantity;
mod scalar;
mod schema;
mod table;
mod value;

pub use findings::Findings;
pub use nearest::{did_you_mean, nearest};
pub use open::open;
pub use quantity::{ByteSize, QuantityError, parse_duration, parse_size};
pub use scalar::Choice;
pub use schema::{TableField, document_schema, table_schema};
pub use table::TableReader;
pub use value::{FromToml, Located, Node};

#[cfg(test)]
mod tests;
