//! Secrets: read from where they are kept, and never shown.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use jig_model::power::SecretSource;

use crate::regular_file::open_regular;

/// Longest secret, in bytes: no device takes more.
const MAX_SECRET: u64 = 1024;

/// A password or the like. It prints as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Says why a secret cannot be had. Never quotes it.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The variable is not set, or is not text.
    #[error("the variable {name} is not set, or holds no text: export it before you start jig")]
    NoVariable {
        /// Its name.
        name: String,
    },
    /// The file cannot be read.
    #[error("read the secret in {}", path.display())]
    Unread {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Others can read the file.
    #[error(
        "{} may be read by others (mode {mode:o}): run chmod 600 {0}",
        path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// What is there is no secret.
    #[error("{place} holds no secret: it wants one line of text, 1 to {MAX_SECRET} bytes long")]
    Empty {
        /// Where it is kept.
        place: String,
    },
}

impl Secret {
    /// Reads a secret from where it is kept.
    ///
    /// # Errors
    /// It is not there, is none, or could be read by others.
    pub fn read(source: &SecretSource) -> Result<Self, SecretError> {
        Self::read_with(source, |name| std::env::var_os(name))
    }

    fn read_with(
        source: &SecretSource,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, SecretError> {
        let text = match source {
            SecretSource::Env(name) => variable(name)
                .and_then(|value| value.into_string().ok())
                .ok_or_else(|| SecretError::NoVariable { name: name.clone() })?,
            SecretSource::File(path) => {
                let path = match (path.strip_prefix("~"), variable("HOME")) {
                    (Ok(rest), Some(home)) => Path::new(&home).join(rest),
                    _ => path.clone(),
                };
                from_file(&path)?
            }
        };
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let fits = !text.is_empty()
            && text.len() as u64 <= MAX_SECRET
            && !text.chars().any(char::is_control);
        match fits {
            true => Ok(Self(text.to_owned())),
            false => Err(SecretError::Empty { place: source.to_string() }),
        }
    }

    /// Returns the secret, for the code that sends it to the device.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    #[cfg(test)]
    pub(super) fn of(text: &str) -> Self {
        Self(text.to_owned())
    }
}

fn from_file(path: &Path) -> Result<String, SecretError> {
    let unread = |source| SecretError::Unread { path: path.to_owned(), source };
    let file = open_regular(path).map_err(unread)?;
    let about = file.metadata().map_err(unread)?;
    let mode = about.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(SecretError::Open { path: path.to_owned(), mode });
    }
    let mut text = String::new();
    file.take(MAX_SECRET + 3).read_to_string(&mut text).map_err(unread)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_secret_comes_from_a_variable_and_is_not_shown() {
        let read = |name: &str| {
            Secret::read_with(&SecretSource::Env(name.to_owned()), |name| match name {
                "GOOD" => Some("hunter2".into()),
                "EMPTY" => Some("".into()),
                _ => None,
            })
        };
        let secret = read("GOOD").unwrap();
        assert_eq!(secret.reveal(), "hunter2");
        assert_eq!(format!("{secret} {secret:?}"), "*** ***");
        assert!(matches!(read("EMPTY"), Err(SecretError::Empty { .. })));
        assert!(read("GONE").unwrap_err().to_string().contains("GONE"));
    }

    #[test]
    fn a_file_is_for_its_owner_only() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("pdu");
        std::fs::write(&path, "hunter2\n").unwrap();
        let read = |path: &str| {
            let home = home.path().as_os_str().to_owned();
            Secret::read_with(&SecretSource::File(path.into()), |_| Some(home.clone()))
        };
        let mode = |mode| std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        mode(0o600);
        assert_eq!(read("~/pdu").unwrap().reveal(), "hunter2");
        for open in [0o640, 0o604, 0o660] {
            mode(open);
            let error = read("~/pdu").unwrap_err().to_string();
            assert!(error.contains("chmod 600") && !error.contains("hunter2"), "{error}");
        }
        mode(0o600);
        for bad in ["", "\n", "two\nlines\n", &"x".repeat(1025)] {
            std::fs::write(&path, bad).unwrap();
            assert!(matches!(read("~/pdu"), Err(SecretError::Empty { .. })), "{bad:?}");
        }
        assert!(matches!(read("~/gone"), Err(SecretError::Unread { .. })));
        assert!(matches!(read("/"), Err(SecretError::Unread { .. })));
    }
}
