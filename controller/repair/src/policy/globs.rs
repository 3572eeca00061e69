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
        Self::built(texts, |text| glob(text, false))
    }

    fn built<T: AsRef<str>>(
        texts: &[T],
        glob: impl Fn(&str) -> Result<Glob, GlobError>,
    ) -> Result<Self, GlobError> {
        let mut set = GlobSetBuilder::new();
        for text in texts {
            set.add(glob(text.as_ref())?);
        }
        let texts: Vec<_> = texts.iter().map(|text| text.as_ref().to_owned()).collect();
        let set = set.build().map_err(|error| failed(&texts.join(", "), &error))?;
        Ok(Self { texts, set })
    }

    /// Reads built-in patterns: one that is written in small letters matches without regard to case,
    /// as names of files differ in it from project to project.
    ///
    /// # Errors
    /// As [`Globs::new`].
    pub(super) fn of_any_case<T: AsRef<str>>(texts: &[T]) -> Result<Self, GlobError> {
        let glob = |text: &str| glob(text, !text.contains(char::is_uppercase));
        Self::built(texts, glob)
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

fn glob(text: &str, any_case: bool) -> Result<Glob, GlobError> {
    let mut glob = GlobBuilder::new(text);
    let built = glob.literal_separator(true).case_insensitive(any_case).build();
    built.map_err(|error| failed(text, &error))
}

fn failed(text: &str, error: &globset::Error) -> GlobError {
    GlobError { text: text.to_owned(), why: error.kind().to_string() }
}
