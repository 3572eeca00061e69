//! Finds a program as the system would, and says where it looked.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

/// Says why there is no program to start.
#[derive(Debug)]
pub(super) enum NoProgram {
    /// It does not exist; the text says where it was looked for.
    Missing(String),
    /// It exists and may not be started.
    NotExecutable,
}

/// Returns the path of a program: a path is taken from `cwd`, and a name is looked up in the
/// `PATH` of `env`.
pub(super) fn find(
    program: &OsStr,
    cwd: &Path,
    env: &[(OsString, OsString)],
) -> Result<PathBuf, NoProgram> {
    let is_path = program.as_bytes().contains(&b'/');
    // The last one counts, as for the program itself.
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value);
    let folders = match path {
        _ if is_path => vec![PathBuf::new()],
        Some(path) => std::env::split_paths(path).collect(),
        None => return Err(NoProgram::Missing("its environment has no PATH".to_owned())),
    };
    let found = folders.iter().map(|folder| cwd.join(folder).join(program));
    let files: Vec<PathBuf> = found.filter(|path| path.is_file()).collect();
    let may_run = |path: &&PathBuf| access(*path, AccessFlags::X_OK).is_ok();
    match (files.iter().find(may_run), path) {
        (Some(path), _) => Ok(path.clone()),
        (None, _) if !files.is_empty() => Err(NoProgram::NotExecutable),
        (None, Some(path)) if !is_path => {
            Err(NoProgram::Missing(format!("not in PATH ({})", path.display())))
        }
        (None, _) => Err(NoProgram::Missing("there is no such file".to_owned())),
    }
}

/// Says why a program that was found did not start.
pub(super) fn not_started(error: io::Error) -> Result<NoProgram, io::Error> {
    match error.kind() {
        io::ErrorKind::NotFound => {
            let why = "what runs it is missing (see its first line, or: file PROGRAM)";
            Ok(NoProgram::Missing(why.to_owned()))
        }
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn make(path: &Path, mode: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_name_is_looked_up_in_the_given_path_alone_and_a_path_from_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path();
        make(&cwd.join("a/tool"), 0o644);
        make(&cwd.join("b/tool"), 0o755);
        make(&cwd.join("a/text"), 0o644);
        fs::create_dir(cwd.join("a/folder")).unwrap();
        let env =
            |path: &str| vec![("PATH".into(), "/nowhere".into()), ("PATH".into(), path.into())];
        let path = format!("a:{}", cwd.join("b").display());
        let find = |program: &str, env: &[_]| find(program.as_ref(), cwd, env);
        assert_eq!(find("tool", &env(&path)).unwrap(), cwd.join("b/tool"));
        assert_eq!(find("./b/tool", &[]).unwrap(), cwd.join("./b/tool"));
        assert!(matches!(find("text", &env(&path)), Err(NoProgram::NotExecutable)));
        let missing = |program: &str, env: &[_]| match find(program, env) {
            Err(NoProgram::Missing(why)) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(missing("sh", &env(&path)), format!("not in PATH ({path})"));
        assert_eq!(missing("folder", &env("a")), "not in PATH (a)");
        assert_eq!(missing("sh", &[]), "its environment has no PATH");
        assert_eq!(missing("a/none", &env("/bin")), "there is no such file");
        assert_eq!(missing("", &env("a")), "not in PATH (a)");
    }
}
