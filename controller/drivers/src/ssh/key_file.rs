//! Private key files: whether libssh2 can use one without a passphrase, and its public half.
//!
//! # Design
//! libssh2 reads a key only to sign with it, and dereferences a null pointer where a key of
//! OpenSSL's form is encrypted and no passphrase is given. So a file is looked at first.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::files::{read_text, read_text_if_any};

/// Longest key file: an RSA key of 16,384 bits has 13 KiB.
const MOST: usize = 64 << 10;

/// What a file of OpenSSH's own form begins with (PROTOCOL.key).
const MAGIC: &[u8] = b"openssh-key-v1\0";

/// A key file of the user.
pub(super) struct KeyFile {
    pub(super) path: PathBuf,
    pub(super) content: KeyContent,
    /// The public key, if it can be known without a passphrase.
    pub(super) public: Option<Vec<u8>>,
    /// The line of a certificate for this key.
    pub(super) certificate: Option<String>,
}

/// What a key file holds.
pub(super) enum KeyContent {
    /// A private key that needs no passphrase.
    Private(String),
    /// A private key that needs a passphrase.
    Encrypted,
    /// A public key only: it chooses one of the agent's.
    Public,
    /// No key.
    Foreign,
    /// There is no such file.
    Missing,
    /// It cannot be read.
    Unreadable(io::Error),
}

impl KeyFile {
    /// Reads a key file and what belongs to it.
    pub(super) fn read(path: &Path) -> Self {
        let beside = |suffix: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            read_text_if_any(Path::new(&name), MOST).ok().flatten()
        };
        let (content, own) = match read_text(path, MOST) {
            Ok(text) => parsed(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (KeyContent::Missing, None),
            Err(error) => (KeyContent::Unreadable(error), None),
        };
        let public = own.or_else(|| public_key(&beside(".pub")?));
        let certificate = beside("-cert.pub").filter(|line| public_key(line).is_some());
        Self { path: path.to_owned(), content, public, certificate }
    }
}

/// Tells what a text holds, and its public key.
fn parsed(text: String) -> (KeyContent, Option<Vec<u8>>) {
    let Some((label, body)) = armoured(&text) else {
        let public = public_key(&text);
        let content = if public.is_some() { KeyContent::Public } else { KeyContent::Foreign };
        return (content, public);
    };
    if label == "OPENSSH PRIVATE KEY" {
        let Some((cipher, public)) = openssh_key(&body) else { return (KeyContent::Foreign, None) };
        let content = match cipher.as_slice() {
            b"none" => KeyContent::Private(text),
            _ => KeyContent::Encrypted,
        };
        return (content, Some(public));
    }
    let content = match label.as_str() {
        "ENCRYPTED PRIVATE KEY" => KeyContent::Encrypted,
        _ if !label.ends_with("PRIVATE KEY") => KeyContent::Foreign,
        // RFC 1421, as OpenSSL writes it.
        _ if text
            .lines()
            .any(|line| line.starts_with("Proc-Type:") && line.contains("ENCRYPTED")) =>
        {
            KeyContent::Encrypted
        }
        _ => KeyContent::Private(text),
    };
    (content, None)
}

/// Finds the first block between `-----BEGIN` and `-----END`: its label and its text.
fn armoured(text: &str) -> Option<(String, String)> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("-----BEGIN "));
    let label = lines.next()?.strip_prefix("-----BEGIN ")?.trim_end().strip_suffix("-----")?;
    let body = lines.take_while(|line| !line.starts_with("-----END ")).map(str::trim);
    Some((label.to_owned(), body.collect()))
}

/// Reads cipher and first public key of a file of OpenSSH's form.
fn openssh_key(body: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let bytes = STANDARD.decode(body).ok()?;
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let cipher = string(&mut rest)?.to_vec();
    let _key_derivation = (string(&mut rest)?, string(&mut rest)?);
    let (_count, mut rest) = rest.split_first_chunk::<4>()?;
    Some((cipher, string(&mut rest)?.to_vec()))
}

/// Takes a string with its length before it (RFC 4251).
pub(super) fn string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, behind) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (found, behind) = behind.split_at_checked(length)?;
    *rest = behind;
    Some(found)
}

/// Reads the key of a line `kind base64 comment`.
fn public_key(text: &str) -> Option<Vec<u8>> {
    let mut words = text.split_ascii_whitespace();
    let (kind, key) = (words.next()?, STANDARD.decode(words.next()?).ok()?);
    let is_of_kind = string(&mut key.as_slice()).is_some_and(|own| own == kind.as_bytes());
    is_of_kind.then_some(key)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn keygen(path: &Path, more: &[&str]) {
        let mut keygen = Command::new("ssh-keygen");
        let made = keygen.args(["-q", "-f"]).arg(path).args(more).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    #[test]
    fn keys_of_each_form_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        for (name, args, is_encrypted, has_public) in [
            ("ed", &["-t", "ed25519", "-N", ""][..], false, true),
            ("ed-locked", &["-t", "ed25519", "-N", "secret"], true, true),
            ("pem", &["-t", "rsa", "-b", "2048", "-m", "PEM", "-N", ""], false, false),
            ("pem-locked", &["-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "secret"], true, false),
            ("pkcs8-locked", &["-t", "ecdsa", "-m", "PKCS8", "-N", "secret"], true, false),
        ] {
            let path = dir.path().join(name);
            keygen(&path, args);
            let public = KeyFile::read(&dir.path().join(format!("{name}.pub")));
            assert!(matches!(public.content, KeyContent::Public), "{name}.pub");
            std::fs::remove_file(dir.path().join(format!("{name}.pub"))).unwrap();
            let file = KeyFile::read(&path);
            let is_private = matches!(file.content, KeyContent::Private(_));
            let is_locked = matches!(file.content, KeyContent::Encrypted);
            assert_eq!((is_private, is_locked), (!is_encrypted, is_encrypted), "{name}");
            assert_eq!(file.public.is_some(), has_public, "{name}");
            assert!(!has_public || file.public == public.public, "{name}");
        }
        let missing = KeyFile::read(&dir.path().join("none"));
        assert!(matches!(missing.content, KeyContent::Missing));
        assert!(matches!(KeyFile::read(dir.path()).content, KeyContent::Unreadable(_)));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in any::<String>(), bytes in any::<Vec<u8>>()) {
            let body = STANDARD.encode([MAGIC, &bytes].concat());
            let key = |body| format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END");
            for text in [text.clone(), key(text), key(body)] {
                let _ = parsed(text);
            }
        }
    }
}
