//! The `known_hosts` files of OpenSSH: which keys a host may show.
//!
//! Reads files; decides on their texts alone. Lines that cannot be read are skipped, as OpenSSH
//! does. Certificates of hosts are not supported by libssh2, so `@cert-authority` lines are
//! skipped, too.
//!
//! # Design
//! libssh2 has a reader of its own. It knows no patterns, no markers and no positions, and it
//! refuses a whole file for one line that it does not know.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use sha1::Sha1;

use super::error::SshError;
use super::files::read_text_if_any;

/// Longest file that is read: some ten thousand hosts.
const MOST: usize = 16 << 20;

/// The standard port, which names in these files leave out.
const PORT: u16 = 22;

/// Returns the name by which these files know a host at a port.
pub(super) fn name_of(host: &str, port: u16) -> String {
    let host = host.to_ascii_lowercase();
    match port {
        PORT => host,
        _ => format!("[{host}]:{port}"),
    }
}

/// All lines of some files, in their order.
#[derive(Default)]
pub(super) struct KnownHosts(Vec<KnownLine>);

/// Where a line stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownPlace {
    pub(super) path: PathBuf,
    pub(super) line: usize,
}

struct KnownLine {
    path: Arc<Path>,
    line: usize,
    is_revoked: bool,
    names: String,
    kind: String,
    key: Vec<u8>,
}

/// What the files say of a key that a host shows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyJudgement {
    /// It is the host's.
    Known,
    /// The host has another key, of the named kind.
    Changed(KnownPlace, String),
    /// It must not be trusted.
    Revoked(KnownPlace),
    /// The host is not there.
    Unknown,
}

impl KnownHosts {
    /// Reads files; a missing one holds no lines.
    ///
    /// # Errors
    /// One cannot be read.
    pub(super) fn read(files: &[PathBuf]) -> Result<Self, SshError> {
        let mut known = Self::default();
        for path in files {
            let text = read_text_if_any(path, MOST);
            if let Some(text) = text.map_err(|source| SshError::read(path, source))? {
                known.add(path, &text);
            }
        }
        Ok(known)
    }

    fn add(&mut self, path: &Path, text: &str) {
        let path: Arc<Path> = path.into();
        self.0.extend((1..).zip(text.lines()).filter_map(|(line, text)| {
            let mut words = text.split_ascii_whitespace();
            let first = words.next().filter(|word| !word.starts_with('#'))?;
            let is_revoked = first == "@revoked";
            let names = match first.starts_with('@') {
                true if is_revoked => words.next()?,
                true => return None,
                false => first,
            };
            let (kind, key) = (words.next()?, STANDARD.decode(words.next()?).ok()?);
            let (names, kind) = (names.to_owned(), kind.to_owned());
            Some(KnownLine { path: Arc::clone(&path), line, is_revoked, names, kind, key })
        }));
    }

    fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a KnownLine> {
        self.0.iter().filter(move |line| line.matches(name))
    }

    /// Lists the kinds of key that a host is known by, in the order of the files.
    pub(super) fn kinds(&self, host: &str, port: u16) -> Vec<&str> {
        let (name, plain) = (name_of(host, port), host.to_ascii_lowercase());
        let lines = |name: &str| -> Vec<&str> {
            let all = self.0.iter().filter(|line| line.matches(name) && !line.is_revoked);
            all.map(|line| line.kind.as_str()).collect()
        };
        let of_port = lines(&name);
        if of_port.is_empty() { lines(&plain) } else { of_port }
    }

    /// Judges a key that a host shows.
    ///
    /// A host that is unknown by its port may be known without one, as OpenSSH has it. Such a line
    /// can confirm a key; it is no reason to refuse one.
    pub(super) fn judge(&self, host: &str, port: u16, key: &[u8]) -> KeyJudgement {
        let name = name_of(host, port);
        match self.judge_name(&name, key) {
            KeyJudgement::Unknown => {}
            judged => return judged,
        }
        match self.judge_name(&host.to_ascii_lowercase(), key) {
            KeyJudgement::Changed(..) => KeyJudgement::Unknown,
            judged => judged,
        }
    }

    fn judge_name(&self, name: &str, key: &[u8]) -> KeyJudgement {
        if let Some(line) = self.of(name).find(|line| line.is_revoked && line.key == key) {
            return KeyJudgement::Revoked(line.place());
        }
        if self.of(name).any(|line| !line.is_revoked && line.key == key) {
            return KeyJudgement::Known;
        }
        let shown = key_kind(key);
        let mut others: Vec<_> = self.of(name).filter(|line| !line.is_revoked).collect();
        // The key of the same kind is the one that has changed.
        others.sort_by_key(|line| line.kind != shown);
        match others.first() {
            Some(line) => KeyJudgement::Changed(line.place(), line.kind.clone()),
            None => KeyJudgement::Unknown,
        }
    }
}

impl KnownLine {
    fn place(&self) -> KnownPlace {
        KnownPlace { path: self.path.to_path_buf(), line: self.line }
    }

    fn matches(&self, name: &str) -> bool {
        if let Some(hashed) = self.names.strip_prefix("|1|") {
            return is_hash_of(hashed, name);
        }
        let mut is_there = false;
        for pattern in self.names.split(',') {
            match pattern.strip_prefix('!') {
                Some(pattern) if is_match(pattern, name) => return false,
                Some(_) => {}
                None => is_there |= is_match(pattern, name),
            }
        }
        is_there
    }
}

/// Tells whether `salt|hash` is that of a name. (sshd(8): HMAC-SHA1 with the salt as the key.)
fn is_hash_of(hashed: &str, name: &str) -> bool {
    let Some((salt, hash)) = hashed.split_once('|') else { return false };
    let (Ok(salt), Ok(hash)) = (STANDARD.decode(salt), STANDARD.decode(hash)) else { return false };
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(&salt) else { return false };
    mac.update(name.as_bytes());
    mac.verify_slice(&hash).is_ok()
}

/// Tells whether a name matches a pattern with `*` and `?`; case does not count.
fn is_match(pattern: &str, name: &str) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // Where to go on when the last `*` takes one byte more.
    let mut again = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                again = Some((p, n));
                p += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match again {
                Some((star, from)) => {
                    again = Some((star, from + 1));
                    (p, n) = (star + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

/// Returns the kind of a public key, which is the first string in it.
pub(super) fn key_kind(key: &[u8]) -> String {
    let length = key.first_chunk::<4>().map_or(0, |length| u32::from_be_bytes(*length));
    let name = usize::try_from(length).ok().and_then(|length| key.get(4..)?.get(..length));
    let name = name.filter(|name| name.iter().all(u8::is_ascii_graphic) && !name.is_empty());
    name.map_or_else(|| "unknown".to_owned(), |name| String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(kind: &str, body: &str) -> Vec<u8> {
        let length = u32::try_from(kind.len()).unwrap().to_be_bytes();
        [&length, kind.as_bytes(), body.as_bytes()].concat()
    }

    fn line(names: &str, kind: &str, body: &str) -> String {
        format!("{names} {kind} {}\n", STANDARD.encode(key(kind, body)))
    }

    fn known(text: &str) -> KnownHosts {
        let mut known = KnownHosts::default();
        known.add(Path::new("known"), text);
        known
    }

    const ED: &str = "ssh-ed25519";
    const RSA: &str = "ssh-rsa";

    fn place(line: usize) -> KnownPlace {
        KnownPlace { path: "known".into(), line }
    }

    #[test]
    fn a_key_is_judged_by_the_lines_of_its_host() {
        let text =
            line("rig7,10.0.0.7", ED, "a") + "# nothing\n\nbad line\n" + &line("b", RSA, "b");
        let known = known(&text);
        assert_eq!(known.judge("Rig7", 22, &key(ED, "a")), KeyJudgement::Known);
        assert_eq!(known.judge("10.0.0.7", 22, &key(ED, "a")), KeyJudgement::Known);
        let changed = KeyJudgement::Changed(place(1), ED.to_owned());
        assert_eq!(known.judge("rig7", 22, &key(ED, "x")), changed);
        assert_eq!(known.judge("rig8", 22, &key(ED, "a")), KeyJudgement::Unknown);
        let changed = KeyJudgement::Changed(place(5), RSA.to_owned());
        assert_eq!(known.judge("b", 22, &key(ED, "a")), changed);
        assert_eq!(known.kinds("b", 22), [RSA]);
    }

    #[test]
    fn a_port_is_part_of_the_name_and_a_line_without_one_can_confirm() {
        let known = known(&(line("[rig7]:2222", ED, "a") + &line("rig8", ED, "b")));
        assert_eq!(known.judge("rig7", 2222, &key(ED, "a")), KeyJudgement::Known);
        assert_eq!(known.judge("rig7", 22, &key(ED, "a")), KeyJudgement::Unknown);
        assert_eq!(known.judge("rig8", 2222, &key(ED, "b")), KeyJudgement::Known);
        assert_eq!(known.judge("rig8", 2222, &key(ED, "x")), KeyJudgement::Unknown);
        assert_eq!(known.kinds("rig8", 2222), [ED]);
    }

    #[test]
    fn patterns_negations_and_markers_count() {
        let text = line("*.lab,!old.lab", ED, "a")
            + &format!("@revoked {}", line("*", ED, "r"))
            + &format!("@cert-authority {}", line("*", ED, "c"));
        let known = known(&text);
        assert_eq!(known.judge("a.lab", 22, &key(ED, "a")), KeyJudgement::Known);
        assert_eq!(known.judge("old.lab", 22, &key(ED, "a")), KeyJudgement::Unknown);
        assert_eq!(known.judge("any", 22, &key(ED, "r")), KeyJudgement::Revoked(place(2)));
        assert_eq!(known.judge("any", 22, &key(ED, "c")), KeyJudgement::Unknown);
    }

    /// The line was made by `ssh-keygen -H`.
    #[test]
    fn a_hashed_name_is_found() {
        let hashed = "|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg=";
        let line = line(hashed, ED, "a");
        assert!(known(&line).judge("192.168.1.61", 22, &key(ED, "a")) == KeyJudgement::Known);
        assert!(known(&line).judge("192.168.1.62", 22, &key(ED, "a")) == KeyJudgement::Unknown);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in any::<String>(), name in "[a-c*?]{0,5}") {
            let known = known(&text);
            let _ = known.judge(&name, 22, text.as_bytes());
        }

        #[test]
        fn a_name_matches_itself_and_a_star(name in "[a-c.]{0,9}", cut in 0usize..9) {
            let cut = cut.min(name.len());
            prop_assert!(is_match(&name, &name));
            let pattern = format!("{}*", &name[..cut]);
            prop_assert!(is_match(&pattern, &name));
            let pattern = format!("*{}", &name[cut..]);
            prop_assert!(is_match(&pattern, &name));
            let pattern = format!("{name}x");
            prop_assert!(!is_match(&pattern, &name));
        }
    }
}
