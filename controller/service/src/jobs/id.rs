//! Names of jobs.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest name.
const MOST: usize = 40;

/// Name of a job: lower-case letters, digits and `-`, so that it is one component of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JobId(String);

/// Says that a text names no job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no job: 1 to {MOST} characters of a to z, 0 to 9 and `-`")]
pub struct NotJobId(String);

impl JobId {
    /// Makes a name that no other job has: 128 random bits behind the start of `time`, by which jobs
    /// are listed in their order.
    pub fn random(time: jiff::Timestamp) -> Self {
        // Each has random keys of its own, taken from the system.
        let random = || RandomState::new().build_hasher().finish();
        let time = time.strftime("%y%m%d%H%M%S");
        Self(format!("{time}-{:012x}{:012x}", random() >> 16, random() >> 16))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for JobId {
    type Err = NotJobId;

    fn from_str(text: &str) -> Result<Self, NotJobId> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        match (1..=MOST).contains(&text.len()) && text.bytes().all(fits) {
            true => Ok(Self(text.to_owned())),
            false => Err(NotJobId(text.chars().take(MOST).collect())),
        }
    }
}

impl TryFrom<String> for JobId {
    type Error = NotJobId;

    fn try_from(text: String) -> Result<Self, NotJobId> {
        text.parse()
    }
}

impl From<JobId> for String {
    fn from(id: JobId) -> Self {
        id.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
