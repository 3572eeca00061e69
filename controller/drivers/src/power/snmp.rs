//! Devices that speak SNMP: one object switches an outlet, one tells its state.
//!
//! # Design
//! A request is lost like any datagram, so it is repeated; to set a state twice does no harm.
//! An agent is silent about a community it does not know, which cannot be told from a device
//! that is not there. The talk runs in a task of its own: should the library meet an answer
//! that it cannot stand, that is an error here and not the end of Jig.

use std::time::Duration;

use jig_model::power::{SnmpAuth, SnmpPower, SnmpPrivacy, SnmpSecurity};
use jig_model::protocol::{BoxFuture, PowerState};
use snmp2::v3::{Auth, AuthProtocol, Cipher, KeyExtension, Security};
use snmp2::{AsyncSession, Error, Oid, Value};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::context::{OpenOutlets, PowerContext};
use super::template::{TemplateFill, fill, plain};
use super::{Outlets, PowerError, Secret};

/// How long an agent may take to answer before it is asked again. Slow ones take half a
/// second.
const TIMEOUT: Duration = Duration::from_secs(1);

/// How often it is asked.
const TRIES: u32 = 4;

/// How a device is delivered.
const COMMUNITY: &str = "private";

/// Switches by objects.
struct SnmpOutlets {
    about: SnmpPower,
    identity: SnmpIdentity,
}

/// Credentials for the device, with the secrets.
#[derive(Clone)]
enum SnmpIdentity {
    Community { first: bool, community: Option<Secret> },
    User(Box<Security>),
}

/// What is asked for.
#[derive(Clone, Copy)]
enum Ask {
    Set(i64),
    Get,
}

impl OpenOutlets for SnmpPower {
    fn open(self, _: &PowerContext) -> Result<Box<dyn Outlets>, PowerError> {
        let identity = match &self.security {
            SnmpSecurity::Community { first, community } => SnmpIdentity::Community {
                first: *first,
                community: community.as_ref().map(Secret::read).transpose()?,
            },
            SnmpSecurity::User { name, auth, privacy } => {
                let auth = auth
                    .as_ref()
                    .map(|(how, source)| Ok::<_, PowerError>((*how, Secret::read(source)?)))
                    .transpose()?;
                let privacy = privacy
                    .as_ref()
                    .map(|(how, source)| Ok::<_, PowerError>((*how, Secret::read(source)?)))
                    .transpose()?;
                SnmpIdentity::User(Box::new(user(name, auth, privacy)))
            }
        };
        Ok(Box::new(SnmpOutlets { about: self, identity }))
    }
}

impl SnmpOutlets {
    async fn talk(&self, object: &str, outlet: &str, ask: Ask) -> Result<i64, PowerError> {
        let values = TemplateFill { outlet, state: "", user: None, password: None };
        let object = fill(object, &values, plain)?;
        let numbers: Vec<u64> = object
            .trim_start_matches('.')
            .split('.')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map_err(|error| PowerError::unusable(format!("the object {object}"), error))?;
        let (what, address) = (self.what(), self.about.address.clone());
        let identity = self.identity.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { talk(&what, &address, identity, &numbers, ask).await });
        match tasks.join_next().await {
            Some(Ok(answer)) => answer,
            Some(Err(_)) | None => {
                Err(PowerError::garbage(self.what(), b"an answer that cannot be read"))
            }
        }
    }
}

fn user(
    name: &str,
    auth: Option<(SnmpAuth, Secret)>,
    privacy: Option<(SnmpPrivacy, Secret)>,
) -> Security {
    let password = auth.as_ref().map_or("", |(_, password)| password.reveal());
    let security = Security::new(name.as_bytes(), password.as_bytes());
    let Some((how, _)) = &auth else { return security.with_auth(Auth::NoAuthNoPriv) };
    let security = security.with_auth_protocol(match how {
        SnmpAuth::Md5 => AuthProtocol::Md5,
        SnmpAuth::Sha1 => AuthProtocol::Sha1,
        SnmpAuth::Sha256 => AuthProtocol::Sha256,
        SnmpAuth::Sha512 => AuthProtocol::Sha512,
    });
    let Some((how, password)) = privacy else { return security.with_auth(Auth::AuthNoPriv) };
    let cipher = match how {
        SnmpPrivacy::Des => Cipher::Des,
        SnmpPrivacy::Aes => Cipher::Aes128,
        SnmpPrivacy::Aes256 => Cipher::Aes256,
    };
    security
        .with_auth(Auth::AuthPriv { cipher, privacy_password: password.reveal().into() })
        // Only 256 bits out of a short hash need one; Reeder's is what devices use.
        .with_key_extension_method(KeyExtension::Reeder)
}

/// Asks until there is an answer, and returns the number in it.
async fn talk(
    what: &str,
    address: &str,
    identity: SnmpIdentity,
    object: &[u64],
    ask: Ask,
) -> Result<i64, PowerError> {
    let object = Oid::from(object)
        .map_err(|_| PowerError::unusable(what.to_owned(), "the object's name has a bad number"))?;
    for _ in 0..TRIES {
        match timeout(TIMEOUT, once(what, address, &identity, &object, ask)).await {
            Ok(answer) => return answer,
            Err(_) => tracing::debug!(what, "no answer; asking again"),
        }
    }
    let what = match identity {
        SnmpIdentity::Community { .. } => format!("{what} (silent also if the community is wrong)"),
        SnmpIdentity::User(_) => what.to_owned(),
    };
    Err(PowerError::TimedOut { what, timeout: TIMEOUT * TRIES })
}

async fn once(
    what: &str,
    address: &str,
    identity: &SnmpIdentity,
    object: &Oid<'_>,
    ask: Ask,
) -> Result<i64, PowerError> {
    let opened = match identity {
        SnmpIdentity::Community { first, community } => {
            let community = community.as_ref().map_or(COMMUNITY, Secret::reveal).as_bytes();
            match first {
                true => AsyncSession::new_v1(address, community, 1).await,
                false => AsyncSession::new_v2c(address, community, 1).await,
            }
        }
        SnmpIdentity::User(security) => {
            AsyncSession::new_v3(address, 1, (**security).clone()).await
        }
    };
    let mut session =
        opened.map_err(|source| PowerError::Unreachable { what: what.to_owned(), source })?;
    let failed = |error: Error| match error {
        Error::Send | Error::Receive => {
            let source = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
            PowerError::Unreachable { what: what.to_owned(), source }
        }
        Error::AuthFailure(why) => {
            PowerError::refused(what, format!("user or password are not believed ({why})"))
        }
        Error::CommunityMismatch => PowerError::refused(what, "it answers for another community"),
        other => PowerError::garbage(what, other.to_string().as_bytes()),
    };
    session.init().await.map_err(failed)?;
    // The agent's clock may have to be learnt first: then it is asked a second time.
    let mut learnt = false;
    loop {
        let answer = match ask {
            Ask::Set(number) => session.set(&[(object, Value::Integer(number))]).await,
            Ask::Get => session.get(object).await,
        };
        let answer = match answer {
            Err(Error::AuthUpdated) if !learnt => {
                learnt = true;
                continue;
            }
            other => other.map_err(failed)?,
        };
        if answer.error_status != 0 {
            return Err(PowerError::refused(what, status(answer.error_status)));
        }
        return match answer.varbinds.clone().next() {
            Some((_, Value::Integer(number))) => Ok(number),
            Some((_, Value::NoSuchObject | Value::NoSuchInstance | Value::EndOfMibView)) => {
                Err(PowerError::refused(what, format!("it has no object {object}")))
            }
            Some((_, other)) => Err(PowerError::garbage(what, format!("{other:?}").as_bytes())),
            None => Err(PowerError::garbage(what, b"no value at all")),
        };
    }
}

/// Says what an agent's error means (RFC 3416, 3).
fn status(code: u32) -> String {
    let words = match code {
        1 => "the answer would be too big",
        2 => "it has no such object: is the outlet right?",
        3 | 7 | 8 | 9 | 10 => "the object takes no such value",
        4 | 17 => "the object cannot be written",
        6 | 16 => "one may not do that",
        5 | 13..=15 => "it failed",
        11 | 18 => "it has no such outlet",
        12 => "the value does not fit now",
        _ => "for no reason that is known",
    };
    format!("{words} (error {code})")
}

impl Outlets for SnmpOutlets {
    fn what(&self) -> String {
        format!("the SNMP agent at {}", self.about.address)
    }

    fn set<'a>(
        &'a self,
        outlet: &'a str,
        state: PowerState,
    ) -> BoxFuture<'a, Result<(), PowerError>> {
        let number = match state {
            PowerState::On => self.about.set_values.0,
            PowerState::Off => self.about.set_values.1,
        };
        // Some agents answer with the value that was before; only the read-back counts.
        Box::pin(
            async move { self.talk(&self.about.set, outlet, Ask::Set(number)).await.map(drop) },
        )
    }

    fn read<'a>(
        &'a self,
        outlet: &'a str,
    ) -> BoxFuture<'a, Result<Option<PowerState>, PowerError>> {
        Box::pin(async move {
            let number = self.talk(&self.about.read, outlet, Ask::Get).await?;
            let (on, off) = self.about.read_values;
            match number {
                number if number == on => Ok(Some(PowerState::On)),
                number if number == off => Ok(Some(PowerState::Off)),
                other => {
                    let said = format!("{other}, where {on} is on and {off} is off");
                    Err(PowerError::Garbage { what: self.what(), said })
                }
            }
        })
    }
}
