//! Authentication by key: an agent's keys, then key files. Passwords are never used.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ssh2::{Agent, ErrorCode};

use super::agent::{self, AgentKey};
use super::error::SshError;
use super::host_key::fingerprint;
use super::key_file::{KeyContent, KeyFile};
use super::known_hosts::key_kind;
use super::link::{Link, StepError};
use super::options::Hop;

/// How long authentication may take. OpenSSH's server waits two minutes; a user has to find the
/// token that the agent wants to be touched.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// libssh2's codes: LIBSSH2_ERROR_AUTHENTICATION_FAILED and LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED.
const FAILED: ErrorCode = ErrorCode::Session(-18);
const UNVERIFIED: ErrorCode = ErrorCode::Session(-19);

/// libssh2's codes for a connection that is gone: LIBSSH2_ERROR_SOCKET_SEND, _DISCONNECT, _RECV.
const GONE: [ErrorCode; 3] =
    [ErrorCode::Session(-7), ErrorCode::Session(-13), ErrorCode::Session(-43)];

/// What an error says of an offered key.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// The server does not accept it.
    Refused,
    /// There is no server any more.
    HungUp,
    /// It cannot be used on this side.
    Unusable,
}

impl Refusal {
    /// One code of libssh2 stands for several reasons, which only its words tell apart.
    fn of(error: &ssh2::Error) -> Self {
        let says = |words: &str| error.message().starts_with(words);
        match error.code() {
            FAILED => Self::Refused,
            UNVERIFIED if says("Invalid signature") || says("Auth failed") => Self::Refused,
            UNVERIFIED if says("Waiting for") => Self::HungUp,
            code if GONE.contains(&code) => Self::HungUp,
            _ => Self::Unusable,
        }
    }
}

/// What was tried and found so far.
#[derive(Default)]
struct Attempted {
    /// Keys that the server was offered.
    tried: Vec<String>,
    /// Why other keys were not.
    looked: Vec<String>,
    encrypted: Option<PathBuf>,
    publics: Vec<Vec<u8>>,
}

/// Authenticates the user.
///
/// # Errors
/// The server accepts no key, or `StepError` where the connection or the caller is gone.
pub(super) fn authenticate(link: &Link, hop: &Hop) -> Result<(), AuthError> {
    let until = Instant::now() + LIMIT;
    let methods = link.complete(until, || link.session.auth_methods(&hop.user).map(str::to_owned));
    let methods = methods.map_err(AuthError::Step)?;
    if link.session.authenticated() {
        return Ok(());
    }
    if !methods.split(',').any(|method| method == "publickey") {
        let (at, user) = (link.at.clone(), hop.user.clone());
        return Err(SshError::NoKeyMethod { at, user, offered: methods }.into());
    }
    let files: Vec<_> = hop.identities.iter().map(|path| KeyFile::read(path)).collect();
    let mut attempted = Attempted::default();
    let accepted = by_agent(link, hop, &files, until, &mut attempted)
        .and_then(|accepted| Ok(accepted || by_files(link, hop, &files, until, &mut attempted)?));
    match accepted {
        Ok(true) => Ok(()),
        // A server hangs up after some refusals.
        Err(StepError::Session(error))
            if Refusal::of(&error) == Refusal::HungUp && !attempted.tried.is_empty() =>
        {
            attempted.tried.push("then hung up (too many keys?)".to_owned());
            Err(attempted.error(link, hop).into())
        }
        Ok(false) => Err(attempted.error(link, hop).into()),
        Err(error) => Err(AuthError::Step(error)),
    }
}

/// Why a user is not authenticated.
pub(super) enum AuthError {
    /// The reason is known.
    Ssh(SshError),
    /// A step failed.
    Step(StepError),
}

impl From<SshError> for AuthError {
    fn from(error: SshError) -> Self {
        Self::Ssh(error)
    }
}

impl Attempted {
    fn error(self, link: &Link, hop: &Hop) -> SshError {
        let (at, user) = (link.at.clone(), hop.user.clone());
        let Self { tried, looked, encrypted, .. } = self;
        match tried.is_empty() {
            true => SshError::NoKey { at, user, looked, encrypted },
            false => SshError::KeyRefused { at, user, tried, encrypted },
        }
    }

    /// Notes what came of an offered key; tells whether it was accepted.
    fn note(&mut self, key: String, outcome: Result<(), StepError>) -> Result<bool, StepError> {
        let error = match outcome {
            Ok(()) => return Ok(true),
            Err(StepError::Session(error)) => error,
            Err(error) => return Err(error),
        };
        match Refusal::of(&error) {
            Refusal::Refused => self.tried.push(key),
            Refusal::HungUp => {
                self.tried.push(key);
                return Err(StepError::Session(error));
            }
            // A key that cannot sign says nothing about the next.
            Refusal::Unusable => self.looked.push(format!("{key}: {}", error.message())),
        }
        Ok(false)
    }
}

fn by_agent(
    link: &Link,
    hop: &Hop,
    files: &[KeyFile],
    until: Instant,
    attempted: &mut Attempted,
) -> Result<bool, StepError> {
    let Some(socket) = &hop.agent else {
        attempted.looked.push("there is no SSH agent".to_owned());
        return Ok(false);
    };
    let keys = match agent::keys(socket) {
        Ok(keys) => keys,
        Err(error) => {
            attempted.looked.push(format!("SSH agent at {}: {error}", socket.display()));
            return Ok(false);
        }
    };
    let keys = chosen(keys, files, hop);
    if keys.is_empty() {
        attempted.looked.push("the SSH agent has no key for this host".to_owned());
        return Ok(false);
    }
    let agent = connected(link, socket).map_err(StepError::Session)?;
    let known = agent.identities().map_err(StepError::Session)?;
    for key in keys {
        let Some(identity) = known.iter().find(|identity| identity.blob() == key.public) else {
            continue;
        };
        let outcome = link.complete(until, || agent.userauth(&hop.user, identity));
        let AgentKey { public, comment } = key;
        let name = format!("{} {} `{comment}` (agent)", key_kind(&public), fingerprint(&public));
        attempted.publics.push(public);
        if attempted.note(name, outcome)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn connected(link: &Link, socket: &Path) -> Result<Agent, ssh2::Error> {
    let mut agent = link.session.agent()?;
    agent.set_identity_path(socket)?;
    agent.connect()?;
    agent.list_identities()?;
    Ok(agent)
}

/// Orders an agent's keys: those of named files first, or alone.
fn chosen(keys: Vec<AgentKey>, files: &[KeyFile], hop: &Hop) -> Vec<AgentKey> {
    let is_named = |key: &AgentKey| {
        hop.prefers_identities && files.iter().any(|file| file.public.as_ref() == Some(&key.public))
    };
    let (mut named, others): (Vec<_>, Vec<_>) = keys.into_iter().partition(is_named);
    if !(hop.identities_only && hop.prefers_identities) {
        named.extend(others);
    }
    named
}

fn by_files(
    link: &Link,
    hop: &Hop,
    files: &[KeyFile],
    until: Instant,
    attempted: &mut Attempted,
) -> Result<bool, StepError> {
    for file in files {
        let path = file.path.display();
        let private = match &file.content {
            KeyContent::Private(text) => text,
            // Files that are only looked for by default are missing mostly.
            KeyContent::Missing if !hop.prefers_identities => continue,
            KeyContent::Missing => {
                attempted.looked.push(format!("{path}: there is no such file"));
                continue;
            }
            KeyContent::Unreadable(error) => {
                attempted.looked.push(format!("{path}: {error}"));
                continue;
            }
            KeyContent::Public => continue,
            KeyContent::Foreign => {
                attempted.looked.push(format!("{path}: it holds no private key"));
                continue;
            }
            KeyContent::Encrypted => {
                let is_tried =
                    file.public.as_ref().is_some_and(|key| attempted.publics.contains(key));
                if !is_tried {
                    attempted.looked.push(format!("{path}: it needs a passphrase"));
                    attempted.encrypted.get_or_insert_with(|| file.path.clone());
                }
                continue;
            }
        };
        let is_tried = file.public.as_ref().is_some_and(|key| attempted.publics.contains(key));
        let plain = (!is_tried).then_some(None);
        for public in file.certificate.as_deref().map(Some).into_iter().chain(plain) {
            let outcome = link.complete(until, || {
                link.session.userauth_pubkey_memory(&hop.user, public, private, None)
            });
            let with = if public.is_some() { " with its certificate" } else { "" };
            if attempted.note(format!("{path}{with}"), outcome)? {
                return Ok(true);
            }
        }
    }
    if attempted.looked.is_empty() && attempted.tried.is_empty() {
        attempted.looked.push("there is no key file".to_owned());
    }
    Ok(false)
}
