//! The weights of the reranker, and their file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::features::{FEATURES, Features};
use crate::error::KnowledgeError;

/// Largest file.
const MOST: u64 = 64 << 10;

/// Largest weight.
const BOUND: f32 = 100.0;

/// One weight for each feature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RerankWeights(pub Features);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightFile {
    version: u32,
    weights: BTreeMap<String, f32>,
}

impl Default for RerankWeights {
    /// Weights of words, titles, files and folder were learnt on the older half of a boot loader's
    /// fixes (696 questions). The others cannot be learnt there: an equal signature outweighs all
    /// words, and the rest decides between units that fit alike. The age has no weight: in such
    /// data a change is mostly fixed soon, which says nothing about failures of a lab.
    fn default() -> Self {
        Self([3.9, 2.4, 1.0, 2.4, 0.2, 1.6, 2.0, 8.0, 0.5, 0.5, -2.0, 0.5, 0.0])
    }
}

impl RerankWeights {
    /// Returns the score of features.
    pub fn score(&self, features: &Features) -> f32 {
        self.0.iter().zip(features).map(|(weight, value)| weight * value).sum()
    }

    /// Reads a file; the default where there is none. A feature that it leaves out has its default.
    ///
    /// # Errors
    /// It cannot be read, or does not hold weights.
    pub fn read(path: &Path) -> Result<Self, KnowledgeError> {
        let bad = |reason: String| KnowledgeError::Weights { path: path.to_owned(), reason };
        let about = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            other => other.map_err(|error| KnowledgeError::file(path, error))?,
        };
        if !about.is_file() || about.len() > MOST {
            return Err(bad(format!("it is no file of up to {MOST} bytes")));
        }
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(MOST).read_to_string(&mut text));
        read.map_err(|error| KnowledgeError::file(path, error))?;
        let file: WeightFile =
            serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
        if file.version != 1 {
            return Err(bad(format!("it has version {}, this jig knows 1", file.version)));
        }
        let mut weights = Self::default();
        for (name, value) in file.weights {
            let Some(at) = FEATURES.iter().position(|feature| *feature == name) else {
                return Err(bad(format!("there is no feature {name:?}; {}", FEATURES.join(", "))));
            };
            if !(-BOUND..=BOUND).contains(&value) {
                return Err(bad(format!(
                    "{name} is {value}; weights lie between -{BOUND} and {BOUND}"
                )));
            }
            weights.0[at] = value;
        }
        Ok(weights)
    }

    /// Replaces a file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), KnowledgeError> {
        let weights = FEATURES.iter().zip(self.0).map(|(name, value)| ((*name).to_owned(), value));
        let file = WeightFile { version: 1, weights: weights.collect() };
        let text = serde_json::to_string_pretty(&file).map_err(KnowledgeError::Encode)?;
        let new = path.with_extension("new");
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&new, path)
        };
        write().map_err(|error| KnowledgeError::file(path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read_back_and_wrong_ones_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.json");
        assert_eq!(RerankWeights::read(&path).unwrap(), RerankWeights::default());
        let mut weights = RerankWeights::default();
        weights.0[3] = -1.5;
        weights.write(&path).unwrap();
        assert_eq!(RerankWeights::read(&path).unwrap(), weights);
        for (text, words) in [
            ("{}", "missing field"),
            (r#"{"version":2,"weights":{}}"#, "version 2"),
            (r#"{"version":1,"weights":{"luck":1}}"#, "no feature \"luck\""),
            (r#"{"version":1,"weights":{"words":1e9}}"#, "between -100"),
        ] {
            fs::write(&path, text).unwrap();
            let error = RerankWeights::read(&path).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        assert!(RerankWeights::read(folder.path()).is_err());
    }
}
