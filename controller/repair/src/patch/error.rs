//! Why a text is no patch that may be applied.

/// Largest diff in bytes. A policy allows far less; this bounds the memory of the reader.
pub(super) const MAX_BYTES: usize = 4 << 20;

/// Says why a text is no patch. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The text has no change in it.
    #[error("the diff changes nothing")]
    Empty,
    /// The text is too large to be looked at.
    #[error("the diff has {0} bytes, more than the {MAX_BYTES} that are read")]
    TooLarge(usize),
    /// A header does not have the form that it must have.
    #[error("line {line} of the diff is no {wanted}")]
    Form {
        /// Number of the line.
        line: usize,
        /// What it should be.
        wanted: &'static str,
    },
    /// A hunk has another number of lines than its header announces.
    #[error("the hunk at line {line} of the diff has other lines than its header announces")]
    Count {
        /// Number of the hunk's header.
        line: usize,
    },
    /// A file is changed twice.
    #[error("the diff changes {0} twice")]
    Twice(String),
    /// Two names of a file that are not those of one file.
    #[error(
        "the diff changes {old} to {new}: write the same path twice, or with a/ and b/ in front of it"
    )]
    Prefix {
        /// The name behind `---`.
        old: String,
        /// The name behind `+++`.
        new: String,
    },
    /// A path leaves the repository.
    #[error("the diff names {0:?}, which is no path inside the repository")]
    Path(String),
}
