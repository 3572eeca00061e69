//! Text as it is searched: tokens, names of things, synonyms, near-duplicates, instructions. Pure.

mod entities;
mod instructions;
mod similarity;
mod synonyms;
mod tokens;

pub use entities::{Entity, EntityKind, entities};
pub use instructions::instruction_in;
pub use similarity::{BANDS, MinHash, likeness};
pub use synonyms::{SynonymError, Synonyms};
pub use tokens::{MAX_TOKEN, each_token, tokens};

/// Returns the SHA-256 of a text, in lower-case hex.
pub(crate) fn digest_of(text: &str) -> String {
    use sha2::{Digest as _, Sha256};
    jig_model::image::hex(&Sha256::digest(text.as_bytes()))
}
