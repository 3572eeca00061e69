//! Relay boards on a serial port.
//!
//! *LCUS*: four bytes, `A0 channel state sum`, where the sum is that of the first three; so
//! `A0 01 01 A2` closes the first relay. The board does not answer. From the data sheet of
//! the LCUS-1 module, which all copies follow.
//!
//! *Numato*: lines that end with a carriage return: `relay on N`, `relay off N`, `relay read N`.
//! The board echoes the line, answers, and ends with the prompt `>`.
//! <https://docs.numato.com/doc/4-channel-usb-relay-module/>

use std::io;

use jig_model::power::{RelayPower, RelayProtocol};
use jig_model::protocol::{BoxFuture, PowerState};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::context::{OpenOutlets, PowerContext};
use super::error::word;
use super::line::PowerLine;
use super::{Outlets, PowerError};

/// Longest answer of a board that speaks lines: echo, state and prompt take 30 bytes.
const MAX_ANSWER: usize = 256;

/// Switches relays.
struct RelayOutlets(RelayPower);

impl OpenOutlets for RelayPower {
    fn open(self, _: &PowerContext) -> Result<Box<dyn Outlets>, PowerError> {
        Ok(Box::new(RelayOutlets(self)))
    }
}

impl RelayOutlets {
    fn broken(&self, source: io::Error) -> PowerError {
        PowerError::Unreachable { what: self.what(), source }
    }

    async fn lcus(&self, outlet: &str, state: PowerState) -> Result<(), PowerError> {
        let channel = outlet.parse::<u8>().map_err(|_| {
            PowerError::refused(self.what(), format!("it has no channel {outlet:?}"))
        })?;
        let mut line = PowerLine::open(&self.0.line)?;
        line.write_all(&lcus_frame(channel, state)).await.map_err(|e| self.broken(e))?;
        line.drained().await.map_err(|e| self.broken(e))
    }

    /// Sends a line and returns the words of the answer, without the echo.
    async fn numato(&self, command: &str) -> Result<Vec<String>, PowerError> {
        let mut line = PowerLine::open(&self.0.line)?;
        line.write_all(format!("{command}\r").as_bytes()).await.map_err(|e| self.broken(e))?;
        let mut said = Vec::new();
        while said.last() != Some(&b'>') {
            let byte = line.read_u8().await.map_err(|e| self.broken(e))?;
            said.push(byte);
            if said.len() > MAX_ANSWER {
                return Err(PowerError::garbage(self.what(), &said));
            }
        }
        said.pop();
        let text = String::from_utf8(said)
            .map_err(|error| PowerError::garbage(self.what(), error.as_bytes()))?;
        // A prompt that an earlier talk has left behind may come before the echo.
        let answer = match text.split_once(command) {
            Some((_, answer)) => answer,
            None => return Err(PowerError::garbage(self.what(), text.as_bytes())),
        };
        Ok(answer.split_ascii_whitespace().map(str::to_owned).collect())
    }
}

fn lcus_frame(channel: u8, state: PowerState) -> [u8; 4] {
    let state = u8::from(state == PowerState::On);
    [0xa0, channel, state, 0xa0_u8.wrapping_add(channel).wrapping_add(state)]
}

impl Outlets for RelayOutlets {
    fn what(&self) -> String {
        format!("the relay board on {}", self.0.line.port.display())
    }

    fn set<'a>(
        &'a self,
        outlet: &'a str,
        state: PowerState,
    ) -> BoxFuture<'a, Result<(), PowerError>> {
        Box::pin(async move {
            match self.0.protocol {
                RelayProtocol::Lcus => self.lcus(outlet, state).await,
                RelayProtocol::Numato => {
                    let words = self.numato(&format!("relay {} {outlet}", word(state))).await?;
                    match words.is_empty() {
                        true => Ok(()),
                        false => Err(PowerError::refused(self.what(), words.join(" "))),
                    }
                }
            }
        })
    }

    fn read<'a>(
        &'a self,
        outlet: &'a str,
    ) -> BoxFuture<'a, Result<Option<PowerState>, PowerError>> {
        Box::pin(async move {
            if self.0.protocol == RelayProtocol::Lcus {
                return Ok(None);
            }
            let words = self.numato(&format!("relay read {outlet}")).await?;
            match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
                ["on"] => Ok(Some(PowerState::On)),
                ["off"] => Ok(Some(PowerState::Off)),
                other => Err(PowerError::garbage(self.what(), other.join(" ").as_bytes())),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_those_of_the_data_sheet() {
        assert_eq!(lcus_frame(1, PowerState::On), [0xa0, 0x01, 0x01, 0xa2]);
        assert_eq!(lcus_frame(1, PowerState::Off), [0xa0, 0x01, 0x00, 0xa1]);
        assert_eq!(lcus_frame(8, PowerState::On), [0xa0, 0x08, 0x01, 0xa9]);
        assert_eq!(lcus_frame(254, PowerState::On), [0xa0, 0xfe, 0x01, 0x9f]);
    }
}
