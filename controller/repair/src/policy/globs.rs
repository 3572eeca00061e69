//! Patterns of paths.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// Patterns of paths relative to the repository: `*` and `?` stop at `/`, `**` does not.
#[derive(Debug, Clone, Default)]
pub struct Globs {
    texts: Vec<String>,
    set: GlobSet,
}

/// Says what is wrong with a pattern of paths.
#[derive(Debug, thiserror::Error)]
#[error("bad pattern of paths {text:?}: {why}")]
pub struct GlobError {
    /// The pattern.
    pub text: String,
    /// What is wrong.
    pub why: String,
}

impl Globs {
    /// Reads patterns.
    ///
    /// # Errors
    /// Names the first pattern that is none.
    pub fn new<T: AsRef<str>>(texts: &[T]) -> Result<Self, GlobError> {
        let mut set = GlobSetBuilder::new();
        for text in texts {
            set.add(glob(text.as_ref())?);
        }
        let texts: Vec<_> = texts.iter().map(|text| text.as_ref().to_owned()).collect();
        let set = set.build().map_err(|error| failed(&texts.join(", "), &error))?;
        Ok(Self { texts, set })
    }

    /// Returns the first pattern that matches a path.
    pub fn matching(&self, path: &str) -> Option<&str> {
        self.set.matches(path).first().map(|&at| self.texts[at].as_str())
    }

    /// Lists the patterns as they were written.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }

    /// Tells whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

fn glob(text: &str) -> Result<Glob, GlobError> {
    GlobBuilder::new(text).literal_separator(true).build().map_err(|error| failed(text, &error))
}

fn failed(text: &str, error: &globset::Error) -> GlobError {
    GlobError { text: text.to_owned(), why: error.kind().to_string() }
}
