//! Files that calls name: images and plans, under one folder.

use std::path::{Component, Path, PathBuf};

use jig_lab::{Unreadable, read};
use jig_model::command::PlanText;
use jig_operator::error::{OperatorCode, OperatorError};

/// The folder under which files have to lie.
pub(super) struct WorkingFolder(PathBuf);

impl WorkingFolder {
    /// Takes a folder that exists.
    pub(super) fn new(folder: &Path) -> std::io::Result<Self> {
        folder.canonicalize().map(Self)
    }

    /// Finds an image, as `FILE` or `FILE.bin@ADDRESS`.
    pub(super) fn image(&self, named: &str) -> Result<PathBuf, OperatorError> {
        // A name may hold the sign; then the file itself is meant.
        match (self.file(named), named.rsplit_once('@')) {
            (Err(_), Some((file, address))) => {
                let mut image = self.file(file)?.into_os_string();
                image.push("@");
                image.push(address);
                Ok(image.into())
            }
            (found, _) => found,
        }
    }

    /// Reads a plan.
    pub(super) fn plan(&self, named: &str) -> Result<PlanText, OperatorError> {
        let path = self.file(named)?;
        let read = read(&path).map_err(|why| match why {
            Unreadable::Io(error) => self.refused(named, &error.to_string()),
            Unreadable::NoText(_) => self.refused(named, "it is no text"),
        })?;
        Ok(PlanText { origin: named.to_owned(), text: read.text })
    }

    /// Finds a file. What a symbolic link leads to may lie anywhere, so where it lies decides.
    ///
    /// A name that leads outside is refused alike whether there is such a file or not.
    fn file(&self, named: &str) -> Result<PathBuf, OperatorError> {
        let written = self.0.join(named);
        let found = written.canonicalize();
        if !found.as_deref().unwrap_or(&without_dots(&written)).starts_with(&self.0) {
            let words = format!("{named:?} lies outside of {}", self.0.display());
            return Err(OperatorError::new(OperatorCode::PolicyDenied, words)
                .next("name a file in that folder or below it; jig mcp serve --root DIR names another one")
                .untouched());
        }
        let path = found.map_err(|error| self.refused(named, &error.to_string()))?;
        if !path.is_file() {
            return Err(self.refused(named, "it is no file"));
        }
        Ok(path)
    }

    fn refused(&self, named: &str, why: &str) -> OperatorError {
        let words = format!("cannot read {named:?} under {}: {why}", self.0.display());
        OperatorError::new(OperatorCode::InvalidArgs, words)
            .next("name a file in that folder or below it; jig mcp serve --root DIR names another one")
            .untouched()
    }
}

/// Resolves `.` and `..` by the name alone.
fn without_dots(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(resolved.pop()),
            named => resolved.push(named),
        }
    }
    resolved
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_outside_of_the_folder_are_refused_however_they_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("build")).unwrap();
        fs::write(folder.path().join("outside"), "x").unwrap();
        fs::write(root.join("build/app.bin"), "x").unwrap();
        fs::write(root.join("p.toml"), "version = 1").unwrap();
        symlink(folder.path().join("outside"), root.join("link")).unwrap();
        symlink(root.join("build"), root.join("inside")).unwrap();
        let files = WorkingFolder::new(&root).unwrap();
        let inside = root.canonicalize().unwrap().join("build/app.bin");
        for named in ["build/app.bin", "./build/../build/app.bin", "inside/app.bin"] {
            assert_eq!(files.image(named).unwrap(), inside);
        }
        let at = files.image("build/app.bin@0x8000").unwrap();
        assert_eq!(at, PathBuf::from(format!("{}@0x8000", inside.display())));
        let outside = folder.path().join("outside");
        let outside = outside.to_str().unwrap();
        let absent = ["../nowhere", "build/../../nowhere", "/nowhere/at/all"];
        for named in [&["../outside", "link", outside, "/etc/passwd"][..], &absent].concat() {
            assert_eq!(files.image(named).unwrap_err().code, OperatorCode::PolicyDenied, "{named}");
            let at = format!("{named}@0");
            assert_eq!(files.image(&at).unwrap_err().code, OperatorCode::PolicyDenied, "{at}");
            assert!(files.plan(named).is_err(), "{named}");
        }
        for named in ["build", "", "nowhere", "nowhere@0", "a\0b"] {
            assert!(files.image(named).is_err(), "{named}");
        }
        assert_eq!(files.plan("p.toml").unwrap().text, "version = 1");
    }
}
