//! Digest authentication (RFC 7616), with SHA-256 and `qop=auth` only.
//!
//! That is what plugs of the second Shelly generation ask for. MD5, which older devices
//! want, is refused: such a device gets `auth = "basic"`, or another way.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

use crate::power::Secret;

/// What a device asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Challenge {
    realm: String,
    nonce: String,
    opaque: Option<String>,
}

impl Challenge {
    /// Reads a challenge; nothing if it asks for what is not known here.
    pub(super) fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("digest") {
            return None;
        }
        let mut keys = parameters(rest)?;
        let qop = keys.remove("qop")?;
        let fits = keys.get("algorithm").is_some_and(|a| a.eq_ignore_ascii_case("SHA-256"))
            && qop.split(',').any(|word| word.trim().eq_ignore_ascii_case("auth"));
        fits.then(|| {
            let opaque = keys.remove("opaque");
            Some(Self { realm: keys.remove("realm")?, nonce: keys.remove("nonce")?, opaque })
        })?
    }

    /// Returns the `Authorization` header for one request.
    pub(super) fn answer(&self, user: &str, password: &Secret, method: &str, path: &str) -> String {
        self.answer_with(user, password, method, path, &client_nonce())
    }

    fn answer_with(
        &self,
        user: &str,
        password: &Secret,
        method: &str,
        path: &str,
        cnonce: &str,
    ) -> String {
        let Self { realm, nonce, opaque } = self;
        let who = hash(&format!("{user}:{realm}:{}", password.reveal()));
        let what = hash(&format!("{method}:{path}"));
        let response = hash(&format!("{who}:{nonce}:00000001:{cnonce}:auth:{what}"));
        let opaque = opaque.as_ref().map_or(String::new(), |o| format!(", opaque={}", quoted(o)));
        format!(
            "Digest username={}, realm={}, nonce={}, uri={}, algorithm=SHA-256, qop=auth, \
             nc=00000001, cnonce={}, response=\"{response}\"{opaque}",
            quoted(user),
            quoted(realm),
            quoted(nonce),
            quoted(path),
            quoted(cnonce),
        )
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn hash(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Makes a value that does not come twice. It only has to be new, not secret.
fn client_nonce() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    hash(&format!("{} {count} {}", now.as_nanos(), std::process::id()))
}

/// Reads `key=value, key="value"`.
fn parameters(mut rest: &str) -> Option<BTreeMap<String, String>> {
    let mut keys = BTreeMap::new();
    loop {
        rest = rest.trim_start_matches([' ', ',', '\t']);
        if rest.is_empty() {
            return Some(keys);
        }
        let (key, behind) = rest.split_once('=')?;
        let behind = behind.trim_start();
        let value = match behind.strip_prefix('"') {
            Some(text) => {
                let mut value = String::new();
                let mut chars = text.char_indices();
                loop {
                    match chars.next()? {
                        (end, '"') => {
                            rest = &text[end + 1..];
                            break value;
                        }
                        (_, '\\') => value.push(chars.next()?.1),
                        (_, c) => value.push(c),
                    }
                }
            }
            None => {
                let end = behind.find(',').unwrap_or(behind.len());
                let (value, after) = behind.split_at(end);
                rest = after;
                value.trim().to_owned()
            }
        };
        keys.insert(key.trim().to_ascii_lowercase(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_standard_comes_out() {
        // RFC 7616, 3.9.1.
        let challenge = Challenge::parse(
            "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=SHA-256, \
             nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", \
             opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"",
        )
        .unwrap();
        let proof = challenge.answer_with(
            "Mufasa",
            &Secret::of("Circle of Life"),
            "GET",
            "/dir/index.html",
            "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
        );
        let wanted = "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1";
        assert!(proof.contains(&format!("response=\"{wanted}\"")), "{proof}");
        assert!(!proof.contains("Circle"), "{proof}");
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for bad in [
            "",
            "Digest",
            "Basic realm=\"x\"",
            "Digest realm=\"x\", nonce=\"y\", qop=\"auth\", algorithm=MD5",
            "Digest realm=\"x\", nonce=\"y\", algorithm=SHA-256",
            "Digest realm=\"x, nonce=\"y\", qop=auth, algorithm=SHA-256",
            "Digest realm=\"x\", qop=auth, algorithm=SHA-256",
            "Digest realm=\"x\\",
        ] {
            assert_eq!(Challenge::parse(bad), None, "{bad}");
        }
    }
}
