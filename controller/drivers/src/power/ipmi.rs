//! Management controllers that speak IPMI, by the field's own tool.
//!
//! `ipmitool` is asked for the chassis power over the network (`-I lanplus`). The cipher suite
//! is named, because finding it out takes the tool ten seconds. The password goes through a
//! pipe: not into the arguments, which all users see, nor into a file.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;

use jig_model::power::IpmiPower;
use jig_model::protocol::{BoxFuture, PowerState, ProcessLedger};
use nix::fcntl::OFlag;

use super::context::{OpenOutlets, PowerContext};
use super::error::word;
use super::{Outlets, PowerError, Secret, program};

/// Switches the chassis behind a controller.
struct IpmiOutlets {
    about: IpmiPower,
    password: Secret,
    ledger: Arc<dyn ProcessLedger>,
}

impl OpenOutlets for IpmiPower {
    fn open(self, context: &PowerContext) -> Result<Box<dyn Outlets>, PowerError> {
        let (password, ledger) = (Secret::read(&self.password)?, Arc::clone(&context.ledger));
        Ok(Box::new(IpmiOutlets { about: self, password, ledger }))
    }
}

impl IpmiOutlets {
    async fn power(&self, word: &str) -> Result<Vec<u8>, PowerError> {
        let pipe = self.password_pipe().map_err(|error| PowerError::unusable("a pipe", error))?;
        let IpmiPower { host, port, user, cipher_suite, .. } = &self.about;
        let argv = [
            "ipmitool".to_owned(),
            "-I".to_owned(),
            "lanplus".to_owned(),
            "-C".to_owned(),
            cipher_suite.to_string(),
            "-H".to_owned(),
            host.clone(),
            "-p".to_owned(),
            port.to_string(),
            "-U".to_owned(),
            user.clone(),
            "-f".to_owned(),
            format!("/proc/self/fd/{}", pipe.as_raw_fd()),
            "power".to_owned(),
            word.to_owned(),
        ];
        program::run(&argv, vec![pipe], Arc::clone(&self.ledger)).await
    }

    /// Makes a pipe that holds the password. A secret is shorter than a pipe is long.
    fn password_pipe(&self) -> std::io::Result<OwnedFd> {
        let (near, far) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        File::from(far).write_all(format!("{}\n", self.password.reveal()).as_bytes())?;
        Ok(near)
    }
}

/// Reads `Chassis Power is on`.
fn state(what: &str, said: &[u8]) -> Result<PowerState, PowerError> {
    let text = String::from_utf8_lossy(said).to_ascii_lowercase();
    let state = text.lines().find_map(|line| line.trim().strip_prefix("chassis power is "));
    match state.map(str::trim) {
        Some("on") => Ok(PowerState::On),
        Some("off") => Ok(PowerState::Off),
        Some(_) | None => Err(PowerError::garbage(what, said)),
    }
}

impl Outlets for IpmiOutlets {
    fn what(&self) -> String {
        format!("the controller at {}:{}", self.about.host, self.about.port)
    }

    fn set<'a>(&'a self, _: &'a str, to: PowerState) -> BoxFuture<'a, Result<(), PowerError>> {
        Box::pin(async move { self.power(word(to)).await.map(drop) })
    }

    fn read<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<PowerState>, PowerError>> {
        Box::pin(async move { state(&self.what(), &self.power("status").await?).map(Some) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_words_are_read() {
        assert_eq!(state("x", b"Chassis Power is on\n").unwrap(), PowerState::On);
        assert_eq!(state("x", b"warning\nChassis Power is off\n").unwrap(), PowerState::Off);
        for bad in [&b""[..], b"Chassis Power is maybe", b"on", b"\xff"] {
            assert!(state("x", bad).is_err());
        }
    }
}
