//! The key that a host shows: asked for by kind, checked, and written down if it is new.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use sha2::{Digest as _, Sha256};
use ssh2::{MethodType, Session};

use super::error::{ShownKey, SshError};
use super::known_hosts::{KeyJudgement, KnownHosts, KnownPlace, key_kind};
use super::options::Hop;

/// Returns a key's fingerprint in OpenSSH's form.
pub(super) fn fingerprint(key: &[u8]) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(key)))
}

/// Asks first for keys of the kinds that are known: a host with several keys would else show one
/// that nothing is known of.
///
/// # Errors
/// libssh2 refuses its own list, which does not happen.
pub(super) fn prefer_known(
    session: &Session,
    known: &KnownHosts,
    hop: &Hop,
) -> Result<(), ssh2::Error> {
    let all = session.supported_algs(MethodType::HostKey)?;
    let kinds = known.kinds(&hop.known_as.0, hop.known_as.1);
    if kinds.is_empty() {
        return Ok(());
    }
    session.method_pref(MethodType::HostKey, &preferred(&kinds, &all).join(","))
}

/// Orders algorithms: those for the known kinds of key first.
fn preferred<'a>(kinds: &[&str], all: &[&'a str]) -> Vec<&'a str> {
    let is_known = |algorithm: &str| match algorithm {
        // RFC 8332: other signatures with the same key.
        "rsa-sha2-256" | "rsa-sha2-512" => kinds.contains(&"ssh-rsa"),
        other => kinds.contains(&other),
    };
    let (mut first, rest): (Vec<_>, Vec<_>) = all.iter().partition(|name| is_known(name));
    first.extend(rest);
    first
}

/// Checks the key that the host has shown.
///
/// # Errors
/// The host is not known, or its key is not the known one.
pub(super) fn check(session: &Session, known: &KnownHosts, hop: &Hop) -> Result<(), SshError> {
    if hop.any_host_key {
        return Ok(());
    }
    let key = session.host_key().map(|(key, _)| key.to_vec()).unwrap_or_default();
    let (at, kind, name) = (hop.at(), key_kind(&key), hop.known_name());
    let line = format!("{name} {kind} {}", STANDARD.encode(&key));
    let shown = Box::new(ShownKey { kind, fingerprint: fingerprint(&key), name, line });
    match known.judge(&hop.known_as.0, hop.known_as.1, &key) {
        KeyJudgement::Known => Ok(()),
        KeyJudgement::Changed(KnownPlace { path: file, line }, known_kind) => {
            Err(SshError::HostKeyChanged { at, key: shown, known_kind, file, line })
        }
        KeyJudgement::Revoked(KnownPlace { path: file, line }) => {
            Err(SshError::HostKeyRevoked { at, key: shown, file, line })
        }
        KeyJudgement::Unknown => {
            let file = hop.known_hosts.first().cloned().unwrap_or_default();
            if !hop.accept_new {
                return Err(SshError::HostKeyUnknown { at, key: shown, file });
            }
            let ShownKey { kind, fingerprint, line, .. } = *shown;
            tracing::warn!(host = %at, %kind, %fingerprint, file = %file.display(),
                "the key of a new host is accepted");
            add_line(&file, &line).map_err(|source| {
                let source = Arc::new(source);
                SshError::HostKeyNotAdded { at, file, source }
            })
        }
    }
}

/// Adds a line to a file in one write, so that it is not mixed with what others add.
fn add_line(path: &Path, line: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut options = File::options();
    let mut file = options.read(true).append(true).create(true).mode(0o600).open(path)?;
    // The last line may have no end.
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let begin = if last == [b'\n'] { "" } else { "\n" };
    file.write_all(format!("{begin}{line}\n").as_bytes())?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn algorithms_of_known_kinds_come_first() {
        let all = ["ecdsa-sha2-nistp256", "ssh-ed25519", "rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"];
        let order = preferred(&["ssh-ed25519"], &all);
        assert_eq!(order[..2], ["ssh-ed25519", "ecdsa-sha2-nistp256"]);
        assert_eq!(order.len(), all.len());
        let order = preferred(&["ssh-rsa"], &all);
        assert_eq!(order[..3], ["rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"]);
    }

    #[test]
    fn a_line_is_added_to_a_file_of_the_user_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".ssh/known_hosts");
        add_line(&path, "one").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        fs::write(&path, "one\ntwo").unwrap();
        add_line(&path, "three").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
    }
}
