//! SHA-256 of files and bytes, as it is written in messages.

use std::io::{self, Read as _};
use std::path::Path;

use jig_model::image::hex;
use jig_rig::store::open_regular;
use sha2::{Digest as _, Sha256};

use crate::protocol::MOST_CHUNK;

/// The digest of a file, and how many bytes it is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileDigest {
    pub(crate) sha256: String,
    pub(crate) size: u64,
}

/// Reads a file to its end.
pub(crate) fn digest_of_file(path: &Path) -> io::Result<FileDigest> {
    let mut file = open_regular(path)?;
    let (mut digest, mut size, mut buf) = (Sha256::new(), 0, vec![0; MOST_CHUNK]);
    loop {
        match file.read(&mut buf) {
            Ok(0) => return Ok(FileDigest { sha256: hex(&digest.finalize()), size }),
            Ok(len) => {
                digest.update(&buf[..len]);
                size += u64::try_from(len).unwrap_or(0);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the digest of bytes.
pub(crate) fn digest_of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_and_bytes_have_the_same_digest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let bytes = vec![7; MOST_CHUNK + 1];
        std::fs::write(&path, &bytes).unwrap();
        let of_file = digest_of_file(&path).unwrap();
        assert_eq!(of_file.sha256, digest_of_bytes(&bytes));
        assert_eq!(of_file.size, bytes.len() as u64);
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest_of_bytes(b""), empty);
        assert!(digest_of_file(folder.path()).is_err());
    }
}
