//! Relay boards that speak Modbus: an outlet is a coil.
//!
//! Function 5 writes one coil and function 1 reads it (Modbus Application Protocol 1.1b3,
//! 6.1 and 6.5), by TCP or by a serial line (RTU).

use std::io;

use jig_model::power::{ModbusLink, ModbusPower};
use jig_model::protocol::{BoxFuture, PowerState};
use tokio::net::TcpStream;
use tokio_modbus::client::{Context, Reader as _, Writer as _, rtu, tcp};
use tokio_modbus::{Error, Slave};

use super::context::{OpenOutlets, PowerContext};
use super::line::PowerLine;
use super::{Outlets, PowerError};

/// Switches coils.
struct ModbusOutlets(ModbusPower);

impl OpenOutlets for ModbusPower {
    fn open(self, _: &PowerContext) -> Result<Box<dyn Outlets>, PowerError> {
        Ok(Box::new(ModbusOutlets(self)))
    }
}

impl ModbusOutlets {
    async fn connect(&self) -> Result<Context, PowerError> {
        let unit = Slave(self.0.unit);
        match &self.0.link {
            ModbusLink::Tcp(address) => {
                let stream = TcpStream::connect(address)
                    .await
                    .map_err(|source| PowerError::Unreachable { what: self.what(), source })?;
                Ok(tcp::attach_slave(stream, unit))
            }
            ModbusLink::Serial(line) => Ok(rtu::attach_slave(PowerLine::open(line)?, unit)),
        }
    }

    fn coil(&self, outlet: &str) -> Result<u16, PowerError> {
        let none = |_| PowerError::refused(self.what(), format!("it has no coil {outlet:?}"));
        outlet.parse().map_err(none)
    }

    /// Judges an answer: an error of the connection, an exception of the device, or a value.
    fn judge<T>(
        &self,
        answer: Result<Result<T, tokio_modbus::ExceptionCode>, Error>,
    ) -> Result<T, PowerError> {
        match answer {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(exception)) => {
                let code: u8 = exception.into();
                let why = format!("exception {code}: {}", meaning(code));
                Err(PowerError::refused(self.what(), why))
            }
            Err(Error::Protocol(error)) => {
                Err(PowerError::garbage(self.what(), error.to_string().as_bytes()))
            }
            Err(Error::Transport(source)) => match source.kind() {
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                    Err(PowerError::garbage(self.what(), source.to_string().as_bytes()))
                }
                _ => Err(PowerError::Unreachable { what: self.what(), source }),
            },
        }
    }
}

/// Says what an exception means, in terms of outlets (1.1b3, 7).
fn meaning(code: u8) -> &'static str {
    match code {
        1 => "it does not switch coils",
        2 => "it has no such coil",
        3 => "it does not take that value",
        4 => "it has failed",
        6 => "it is busy",
        10 | 11 => "the gateway does not reach it",
        _ => "it gives no reason",
    }
}

impl Outlets for ModbusOutlets {
    fn what(&self) -> String {
        let place = match &self.0.link {
            ModbusLink::Tcp(address) => address.clone(),
            ModbusLink::Serial(line) => line.port.display().to_string(),
        };
        format!("unit {} at {place}", self.0.unit)
    }

    fn set<'a>(
        &'a self,
        outlet: &'a str,
        state: PowerState,
    ) -> BoxFuture<'a, Result<(), PowerError>> {
        Box::pin(async move {
            let coil = self.coil(outlet)?;
            let mut device = self.connect().await?;
            self.judge(device.write_single_coil(coil, state == PowerState::On).await)
        })
    }

    fn read<'a>(
        &'a self,
        outlet: &'a str,
    ) -> BoxFuture<'a, Result<Option<PowerState>, PowerError>> {
        Box::pin(async move {
            let coil = self.coil(outlet)?;
            let mut device = self.connect().await?;
            match self.judge(device.read_coils(coil, 1).await)?.first() {
                Some(true) => Ok(Some(PowerState::On)),
                Some(false) => Ok(Some(PowerState::Off)),
                None => Err(PowerError::garbage(self.what(), b"no coil at all")),
            }
        })
    }
}
