//! A root file system as a new machine has it: `/run`, `/tmp` and the home folder are empty.
//!
//! A test may lean on a folder that another test, a service or the developer has left there. In a
//! mount namespace of its own the integration tests find none of them. The repository, the build
//! folder and the image sets stay where they are, also if they lie below one of these folders.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Arguments: home folder, folder that stands in for `/tmp`, number of folders to keep, these folders,
/// then the command.
///
/// Each kept folder is bound to a place outside, the three folders are covered, and what is hidden
/// by that is bound to its own name again.
const SCRIPT: &str = r#"
set -eu
home=$1; tmp=$2; count=$3; shift 3
stage=$(mktemp -d /var/tmp/jig-bare-root.XXXXXX)
for kept in $(seq "$count"); do
    mkdir "$stage/$kept"
    eval "mount --rbind \"\${$kept}\" \"$stage/$kept\""
done
mkdir "$stage/tmp"
mount --bind "$tmp" "$stage/tmp"
mount -t tmpfs -o mode=755 tmpfs /run
mount --bind "$stage/tmp" /tmp
umount -l "$stage/tmp"
rmdir "$stage/tmp"
mount -t tmpfs -o mode=755 tmpfs "$home"
for kept in $(seq "$count"); do
    eval "path=\${$kept}"
    case $path/ in /run/*|/tmp/*|"$home"/*)
        mkdir -p "$path"
        mount --rbind "$stage/$kept" "$path";;
    esac
    umount -l "$stage/$kept"
    rmdir "$stage/$kept"
done
rmdir "$stage"
# What mount(8) has just noted of itself.
rm -rf /run/mount
shift "$count"
cd "$1"; shift
exec "$@"
"#;

/// Settings of the user's that name folders.
const FOREIGN: &[&str] = &[
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// How a mount namespace of its own can be had here: as root, else by a user namespace.
const WAYS: &[&[&str]] = &[&["--mount"], &["--mount", "--map-root-user"]];

/// Returns the arguments of `unshare` that work here; none if the kernel or a container forbids it.
fn permitted() -> Option<&'static [&'static str]> {
    let works = |way: &&&[&str]| {
        let mut probe = Command::new("unshare");
        probe.args(**way).args(["sh", "-c", "mount -t tmpfs tmpfs /tmp"]);
        let quiet = probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    };
    WAYS.iter().find(works).copied()
}

/// Wraps a command so that it runs in a bare root; none if that is not permitted here.
///
/// `/tmp` is the empty folder `tmp`: tests look at the room on a disk, and fill it.
pub(crate) fn wrap(command: &Command, keep: &[PathBuf], tmp: &Path) -> Option<Command> {
    let way = permitted()?;
    let home = std::env::var_os("HOME").filter(|home| Path::new(home).is_dir())?;
    let mut wrapped = Command::new("unshare");
    wrapped.args(way).args(["sh", "-c", SCRIPT, "bare-root"]).arg(home).arg(tmp);
    let kept = keep.iter().filter(|folder| folder.is_dir());
    let kept: Vec<&PathBuf> = kept.collect();
    wrapped.arg(kept.len().to_string()).args(kept);
    let folder = command.get_current_dir().map_or_else(|| PathBuf::from("/"), Path::to_owned);
    wrapped.arg(folder).arg(command.get_program()).args(command.get_args());
    for name in FOREIGN {
        wrapped.env_remove(name);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    Some(wrapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_left_is_hidden_and_what_is_kept_stays() {
        let left = tempfile::tempdir_in("/tmp").unwrap();
        let kept = tempfile::tempdir_in("/tmp").unwrap();
        std::fs::write(kept.path().join("file"), "here").unwrap();
        let mut look = Command::new("sh");
        look.args(["-c", "ls -A /run /tmp \"$HOME\"; cat file"]).current_dir(kept.path());
        // Without the right to it there is nothing to look at: the caller says so loudly.
        let tmp = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let keep = [kept.path().to_owned()];
        let Some(mut bare) = wrap(&look, &keep, tmp.path()) else { return };
        let output = bare.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let name = kept.path().file_name().unwrap().to_string_lossy().into_owned();
        let home = std::env::var("HOME").unwrap();
        assert_eq!(text, format!("{home}:\n\n/run:\n\n/tmp:\n{name}\nhere"));
        assert!(left.path().is_dir());
    }
}
