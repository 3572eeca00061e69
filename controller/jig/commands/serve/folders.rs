//! The folders that a service manager gives to the service (systemd.exec(5)).

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use jig_lab::Catalogue;

use crate::args::Common;

/// Takes `$STATE_DIRECTORY` for the folder of the state, where no other one is named. It holds for
/// the workers of the service, too; other commands of the user do not see the variable.
pub(super) fn of_service(common: &Common) -> Common {
    let state = common.state.clone().or_else(|| first("STATE_DIRECTORY"));
    Common { state, ..common.clone() }
}

/// Returns the path of the rig's socket: in `$RUNTIME_DIRECTORY`, else beside the state.
pub(super) fn rig_socket(catalogue: &Catalogue) -> PathBuf {
    first("RUNTIME_DIRECTORY").unwrap_or_else(|| catalogue.state()).join("rig.sock")
}

fn first(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).and_then(first_of)
}

/// Takes the first of the folders, which stand between colons; none if it is not absolute.
fn first_of(folders: OsString) -> Option<PathBuf> {
    let first = folders.as_bytes().split(|&byte| byte == b':').next()?;
    let path = PathBuf::from(OsString::from_vec(first.to_vec()));
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_absolute_folder_counts() {
        assert_eq!(first_of("/a/b:/c".into()), Some("/a/b".into()));
        assert_eq!(first_of("/a".into()), Some("/a".into()));
        for none in ["", "a", ":/a"] {
            assert_eq!(first_of(none.into()), None, "{none}");
        }
    }
}
