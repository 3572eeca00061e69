//! The file that names a model.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Largest file.
const MOST: u64 = 64 << 10;

/// Most tokens that a model is given: the positions of BERT.
const TOKENS: usize = 512;

/// Tokens of a text that the model reads, where the file does not say. More cost time in proportion.
fn default_tokens() -> usize {
    128
}

fn default_case() -> bool {
    true
}

/// Says why a file names no model.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingConfigError {
    /// The system refused.
    #[error("could not read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is no file of a likely size.
    #[error("{} is no file of up to 64 KiB", path.display())]
    NoFile {
        /// The file.
        path: PathBuf,
    },
    /// It has another form.
    #[error("{} does not name a model", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: toml::de::Error,
    },
    /// A number is out of its range.
    #[error("{}: max_tokens is {found}; it lies between 8 and 512", path.display())]
    Tokens {
        /// The file.
        path: PathBuf,
        /// The number.
        found: usize,
    },
}

/// A model: its files, and how texts are given to it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingConfig {
    /// The library of ONNX Runtime. It is loaded into the process: name only a file that you trust.
    pub runtime: PathBuf,
    /// The model, as ONNX.
    pub model: PathBuf,
    /// Its vocabulary: the `vocab.txt` of a BERT model.
    pub vocabulary: PathBuf,
    /// SHA-256 that the model must have.
    #[serde(default)]
    pub model_sha256: Option<String>,
    /// Tokens of a text that the model reads; the rest is left out.
    #[serde(default = "default_tokens")]
    pub max_tokens: usize,
    /// Whether the vocabulary is in lower case.
    #[serde(default = "default_case")]
    pub lower_case: bool,
}

impl EmbeddingConfig {
    /// Reads a file; paths are relative to its folder.
    ///
    /// # Errors
    /// It cannot be read, or does not name a model.
    pub fn read(path: &Path) -> Result<Self, EmbeddingConfigError> {
        let failed = |source| EmbeddingConfigError::Io { path: path.to_owned(), source };
        let about = fs::metadata(path).map_err(failed)?;
        if !about.is_file() || about.len() > MOST {
            return Err(EmbeddingConfigError::NoFile { path: path.to_owned() });
        }
        let mut text = String::new();
        File::open(path).and_then(|f| f.take(MOST).read_to_string(&mut text)).map_err(failed)?;
        let mut config: Self = toml::from_str(&text)
            .map_err(|source| EmbeddingConfigError::Form { path: path.to_owned(), source })?;
        if !(8..=TOKENS).contains(&config.max_tokens) {
            let found = config.max_tokens;
            return Err(EmbeddingConfigError::Tokens { path: path.to_owned(), found });
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        for file in [&mut config.runtime, &mut config.model, &mut config.vocabulary] {
            *file = std::path::absolute(folder.join(&*file)).map_err(failed)?;
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_file_and_wrong_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("embedding.toml");
        let files = "runtime = \"/lib/r.so\"\nmodel = \"m.onnx\"\nvocabulary = \"v.txt\"\n";
        fs::write(&path, files).unwrap();
        let config = EmbeddingConfig::read(&path).unwrap();
        assert_eq!(config.runtime, Path::new("/lib/r.so"));
        assert_eq!(config.model, folder.path().join("m.onnx"));
        assert_eq!((config.max_tokens, config.lower_case), (128, true));
        for (more, words) in [
            ("max_tokens = 4", "between 8 and 512"),
            ("max_tokens = 9999", "between 8 and 512"),
            ("speed = 1", "does not name a model"),
        ] {
            fs::write(&path, format!("{files}{more}\n")).unwrap();
            let error = EmbeddingConfig::read(&path).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        assert!(EmbeddingConfig::read(folder.path()).is_err());
    }
}
