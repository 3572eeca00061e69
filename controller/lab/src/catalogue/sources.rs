//! Texts of documents, from files and from the binary itself.
//!
//! Owns how a file becomes a text: bounded, regular files only, UTF-8. Refuses to know what
//! the text means.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use jig_model::{Problem, Problems};
use jig_rig::store::open_regular;

use super::CatalogueError;

/// Texts of this program.
pub(crate) mod built_in {
    include!(concat!(env!("OUT_DIR"), "/builtin.rs"));
}

/// Most bytes that are read of a document. A little more than the model accepts, so that
/// it is the model which refuses a long one, with its own words.
const MAX_READ: u64 = (1 << 18) + 1;

/// A document's text and where it came from.
#[derive(Debug, Clone)]
pub struct Source {
    /// A path, or `built-in NAME`.
    pub origin: String,
    /// The text.
    pub text: String,
}

/// Says why a text could not be had.
#[derive(Debug)]
pub enum Unreadable {
    /// The system says no.
    Io(io::Error),
    /// It is there, but it is no text.
    NoText(Box<Problems>),
}

/// Reads a document.
///
/// # Errors
/// It cannot be read, or is no text.
pub fn read(path: &Path) -> Result<Source, Unreadable> {
    let mut bytes = Vec::new();
    let file = open_regular(path).map_err(Unreadable::Io)?;
    file.take(MAX_READ).read_to_end(&mut bytes).map_err(Unreadable::Io)?;
    let origin = path.display().to_string();
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source { origin, text }),
        // Cut in the middle of a character: it is too long anyway, and the model says so.
        Err(error) if error.as_bytes().len() as u64 == MAX_READ => {
            Ok(Source { origin, text: String::from_utf8_lossy(error.as_bytes()).into_owned() })
        }
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let problem = Problem {
                check: "document::utf8",
                message: format!("byte {at} is not UTF-8 text"),
                span: None,
                help: "save the file as UTF-8; is it the right file?".to_owned(),
            };
            let (source, list) = (String::new(), vec![problem]);
            Err(Unreadable::NoText(Box::new(Problems { kind: "document", origin, source, list })))
        }
    }
}

/// Lists the `*.toml` files of a folder, sorted by name; none if the folder is missing.
pub(crate) fn toml_files(folder: &Path) -> Result<Vec<PathBuf>, CatalogueError> {
    let fail = |source| CatalogueError::Unreadable { path: folder.to_owned(), source };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(Vec::new());
        }
        Err(error) => return Err(fail(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(fail)?.path();
        // Editors leave hidden files behind; anything but a file cannot be a document, and
        // reading a pipe would never end.
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.extension().is_some_and(|end| end == "toml") && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The texts that hold, by name: of a name that comes twice, the later one.
#[derive(Default)]
pub(crate) struct Layers {
    texts: BTreeMap<String, Layer>,
    built_in: BTreeMap<&'static str, &'static str>,
}

enum Layer {
    BuiltIn(&'static str),
    File(PathBuf),
}

/// A text that holds.
pub(crate) enum FoundText {
    /// That of this program, wherever it was found.
    BuiltIn {
        /// A path, or `built-in NAME`.
        origin: String,
        /// The text.
        text: &'static str,
    },
    /// Another one.
    Read(Source),
}

impl FoundText {
    /// Returns the text if it is that of this program.
    pub(crate) fn built_in(&self) -> Option<&'static str> {
        match self {
            Self::BuiltIn { text, .. } => Some(text),
            Self::Read(_) => None,
        }
    }

    /// Returns where it was found.
    pub(crate) fn origin(&self) -> String {
        match self {
            Self::BuiltIn { origin, .. } | Self::Read(Source { origin, .. }) => origin.clone(),
        }
    }

    /// Returns the text with its origin.
    pub(crate) fn source(&self) -> Source {
        match self {
            Self::BuiltIn { origin, text } => {
                Source { origin: origin.clone(), text: (*text).to_owned() }
            }
            Self::Read(source) => source.clone(),
        }
    }
}

impl Layers {
    /// Begins with what the binary brings.
    pub(crate) fn of_built_in(table: &[(&'static str, &'static str)]) -> Self {
        let texts = table.iter().map(|&(name, text)| (name.to_owned(), Layer::BuiltIn(text)));
        Self { texts: texts.collect(), built_in: table.iter().copied().collect() }
    }

    /// Adds a folder; its files win over what is there.
    pub(crate) fn add(&mut self, folder: &Path) -> Result<(), CatalogueError> {
        for path in toml_files(folder)? {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            self.texts.insert(name, Layer::File(path));
        }
        Ok(())
    }

    /// Reads what holds; only that, so a broken file that another replaces is no trouble.
    pub(crate) fn read(
        self,
        bad: &mut Vec<Problems>,
    ) -> Result<Vec<(String, FoundText)>, CatalogueError> {
        let mut found = Vec::new();
        for (name, layer) in self.texts {
            let text = match layer {
                Layer::BuiltIn(text) => {
                    FoundText::BuiltIn { origin: format!("built-in {name}"), text }
                }
                Layer::File(path) => match must_read(&path, bad)? {
                    Some(Source { origin, text }) => match self.built_in.get(name.as_str()) {
                        Some(same) if **same == text => FoundText::BuiltIn { origin, text: same },
                        _ => FoundText::Read(Source { origin, text }),
                    },
                    None => continue,
                },
            };
            found.push((name, text));
        }
        Ok(found)
    }
}

/// Reads a file that was found by looking; one that is no text is noted among the bad.
pub(crate) fn must_read(
    path: &Path,
    bad: &mut Vec<Problems>,
) -> Result<Option<Source>, CatalogueError> {
    match read(path) {
        Ok(source) => Ok(Some(source)),
        Err(Unreadable::NoText(problems)) => {
            bad.push(*problems);
            Ok(None)
        }
        Err(Unreadable::Io(source)) => {
            Err(CatalogueError::Unreadable { path: path.to_owned(), source })
        }
    }
}

/// Leaves out the problems of a check that only echo problems of another file.
pub(crate) fn without(mut problems: Problems, echo: Option<&str>) -> Option<Problems> {
    problems.list.retain(|problem| Some(problem.check) != echo);
    (!problems.list.is_empty()).then_some(problems)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_document_is_a_regular_file() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("rig.toml"), "version = 1\n").unwrap();
        symlink(at("rig.toml"), at("link.toml")).unwrap();
        assert_eq!(read(&at("link.toml")).unwrap().text, "version = 1\n");
        let fifo = at("fifo.toml");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        for refused in [fifo.as_path(), Path::new("/dev/zero"), folder.path()] {
            assert!(matches!(read(refused), Err(Unreadable::Io(_))), "{refused:?}");
        }
    }
}
