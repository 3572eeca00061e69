//! Where a secret is kept.

use std::path::PathBuf;

use serde::Serialize;

/// Where a secret is kept. Rig files are shared and committed, so none stands in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretSource {
    /// In an environment variable of this name.
    Env(String),
    /// In a file that only its owner may read; `~/` is the user's home.
    File(PathBuf),
}

impl std::fmt::Display for SecretSource {
    /// Names the place; the secret itself is not known here.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Env(name) => write!(f, "the variable {name}"),
            Self::File(path) => write!(f, "the file {}", path.display()),
        }
    }
}
