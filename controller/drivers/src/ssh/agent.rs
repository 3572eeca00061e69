//! The SSH agent: asked for its keys with a limit of time.
//!
//! # Design
//! libssh2 waits for an agent without a limit, and closes a descriptor twice that it could not
//! connect: in a program with several threads the second time hits somebody else's file. So the
//! list of keys is fetched here, and libssh2 connects only to an agent that has just answered.
//! It then waits for signatures, for which a user may have to touch a token.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::key_file::string;

/// How long an agent may take to list its keys, which it holds in memory.
const ANSWER: Duration = Duration::from_secs(3);

/// Longest list that is read (OpenSSH: 256 KiB for any message).
const MOST: usize = 256 << 10;

/// Numbers of messages (draft-ietf-sshm-ssh-agent).
const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;

/// A key that an agent holds.
pub(super) struct AgentKey {
    pub(super) public: Vec<u8>,
    pub(super) comment: String,
}

/// Lists the keys of an agent.
///
/// # Errors
/// There is no agent, or it does not answer as one.
pub(super) fn keys(socket: &Path) -> io::Result<Vec<AgentKey>> {
    let mut agent = UnixStream::connect(socket)?;
    agent.set_read_timeout(Some(ANSWER))?;
    agent.set_write_timeout(Some(ANSWER))?;
    agent.write_all(&[0, 0, 0, 1, REQUEST_IDENTITIES])?;
    let mut length = [0; 4];
    agent.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > MOST {
        return Err(io::Error::other("its answer is too long"));
    }
    let mut answer = vec![0; length];
    agent.read_exact(&mut answer)?;
    listed(&answer).ok_or_else(|| io::Error::other("it does not list its keys"))
}

fn listed(answer: &[u8]) -> Option<Vec<AgentKey>> {
    let rest = answer.strip_prefix(&[IDENTITIES_ANSWER])?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let mut keys = Vec::new();
    for _ in 0..u32::from_be_bytes(*count) {
        let public = string(&mut rest)?.to_vec();
        let comment = String::from_utf8_lossy(string(&mut rest)?).into_owned();
        keys.push(AgentKey { public, comment });
    }
    Some(keys)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_of_an_answer_are_listed() {
        let answer = b"\x0c\0\0\0\x02\0\0\0\x01A\0\0\0\x03one\0\0\0\x01B\0\0\0\0";
        let keys = listed(answer).unwrap();
        let keys: Vec<_> = keys.iter().map(|key| (&key.public[..], &key.comment[..])).collect();
        assert_eq!(keys, [(&b"A"[..], "one"), (&b"B"[..], "")]);
        assert!(listed(b"\x05").is_none() && listed(&answer[..answer.len() - 1]).is_none());
    }

    proptest! {
        #[test]
        fn any_answer_is_read(bytes in any::<Vec<u8>>()) {
            let _ = listed(&[&[IDENTITIES_ANSWER], &bytes[..]].concat());
        }
    }
}
