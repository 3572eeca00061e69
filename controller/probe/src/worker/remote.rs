//! The driver of remote probes: the protocol of probe-rs' Glasgow applet over a socket.
//!
//! # Design
//! *Not probe-rs' own driver.* That one has no time-outs: a server that is silent blocks it for
//! ever, one that has gone makes it spin on end-of-file, and no caller can end either. Here [`Cut`]
//! shuts the socket down, and from then on every call fails at once.
//!
//! *Writes of registers go out with the next read*, in one packet, as drivers of USB probes do
//! it: a core register takes one trip to the server instead of six. What the bus refused is told
//! by that read, or by a flush. Blocks are waited for, so that a fault names its block.

#[cfg(test)]
mod tests;

use std::io::{self, Write as _};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, socket,
};
use probe_rs::architecture::arm::{ArmError, DapError, DapProbe, RawDapAccess, RegisterAddress};
use probe_rs::probe::{DebugProbe, DebugProbeError, Probe};

use super::leash::{Cut, Leash};
use super::selector::Address;
use crate::glasgow::{IDENTIFIER, RDBUFF, ROOT, SWD, cobs, root, swd};
use crate::swd_only::{swd_only_dap_access, swd_only_debug_probe};

/// How long it may take to reach a server. It is on this machine or in this lab.
const CONNECT: Duration = Duration::from_secs(3);

/// How often a full backlog is looked at again: no event tells that it has room.
const BACKLOG_PAUSE: Duration = Duration::from_millis(20);

/// How long to look for an answer before sleeping. Most come within 20 us, and a sleep and a
/// wake-up would cost more.
const SPIN: Duration = Duration::from_micros(50);

/// Most transfers of one packet: 1280 bytes, half of an answer's.
const MAX_TRANSFERS: usize = 256;

/// Longest answer: that to [`MAX_TRANSFERS`] reads, framed, and some. A server that sends more
/// without an end is none.
const MAX_ANSWER: usize = 64 << 10;

/// Bit of the reset pin among the pins of a probe.
const NRESET: u32 = 1 << 7;

/// Opens the remote probe at an address. What cuts it off is handed to the leash before the
/// first word to the server, which may be one that never answers.
pub(crate) fn open(address: &Address, leash: &Leash) -> Result<Probe, OpenError> {
    let server = Arc::new(Server::connect(address).map_err(OpenError::Reach)?);
    leash.hold(Arc::clone(&server) as Arc<dyn Cut>);
    let probe = RemoteProbe::greet(server).map_err(OpenError::Greeting)?;
    Ok(Probe::from_specific_probe(Box::new(probe)))
}

/// Says why a remote probe could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// No process serves the address.
    #[error("no server was reached")]
    Reach(#[source] io::Error),
    /// The server does not speak the protocol.
    #[error("the server gave no sensible answer")]
    Greeting(#[source] RemoteError),
}

/// Says why a server is of no use any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    /// It has hung up, or was cut off.
    #[error("the server of the probe has hung up")]
    Closed,
    /// Its answer is none. Jig's own server says so that its board is lost.
    #[error("the answer of the probe's server cannot be decoded")]
    Garbled,
    /// The socket failed.
    #[error("the probe's socket failed")]
    Io(#[source] io::Error),
}

impl probe_rs::probe::ProbeError for RemoteError {}

/// The connection to a server.
#[derive(Debug)]
enum Server {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Server {
    fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Unix(path) => connect_unix(path).map(Self::Unix),
            Address::Tcp(host, port) => {
                let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
                for address in format!("{host}:{port}").to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, CONNECT) {
                        Ok(stream) => {
                            // Requests are small and each waits for its answer.
                            stream.set_nodelay(true)?;
                            return Ok(Self::Tcp(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(stream) => (&*stream).write_all(bytes),
            Self::Tcp(stream) => (&*stream).write_all(bytes),
        }
    }

    /// Waits for bytes; 0 of them at the end.
    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        let fd = self.as_fd().as_raw_fd();
        let spin_until = Instant::now() + SPIN;
        let mut flags = MsgFlags::MSG_DONTWAIT;
        loop {
            match recv(fd, into, flags) {
                Err(Errno::EAGAIN) if Instant::now() < spin_until => std::thread::yield_now(),
                Err(Errno::EAGAIN) => flags = MsgFlags::empty(),
                Err(Errno::EINTR) => {}
                other => return Ok(other?),
            }
        }
    }
}

impl AsFd for Server {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Cut for Server {
    fn cut(&self) {
        // It may be closed already; then there is nothing left to do.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

/// Connects without waiting for ever: where the backlog of a server that accepts no connection is
/// full, a blocking connect would.
fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    let deadline = Instant::now() + CONNECT;
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let address = UnixAddr::new(path)?;
    loop {
        let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        match connect(fd.as_raw_fd(), &address) {
            Ok(()) => {
                let stream = UnixStream::from(fd);
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(Errno::EAGAIN) if Instant::now() < deadline => std::thread::sleep(BACKLOG_PAUSE),
            Err(Errno::EAGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// A probe behind a server.
#[derive(Debug)]
struct RemoteProbe {
    server: Arc<Server>,
    /// Bytes that have arrived of a frame that is not complete.
    arrived: Vec<u8>,
    /// Answers of the endpoint that was asked last, not taken yet.
    answers: Vec<u8>,
    /// Transfers that were not sent yet.
    batch: Vec<u8>,
    /// How many writes are among them.
    writes: usize,
    /// Set once a call has failed because of the server: all later ones fail at once, those
    /// included that only collect. probe-rs would try some of them for seconds.
    gone: bool,
    reference_clock: u32,
    divisor: u16,
}

impl RemoteProbe {
    /// Asks a server for its name and its clock.
    fn greet(server: Arc<Server>) -> Result<Self, RemoteError> {
        let mut probe = Self {
            server,
            arrived: Vec::new(),
            answers: Vec::new(),
            batch: Vec::new(),
            writes: 0,
            gone: false,
            reference_clock: 0,
            divisor: 0,
        };
        if probe.ask_root::<{ IDENTIFIER.len() }>(root::IDENTIFY)? != IDENTIFIER {
            return Err(RemoteError::Garbled);
        }
        probe.reference_clock = u32::from_le_bytes(probe.ask_root(root::REFERENCE_CLOCK)?);
        Ok(probe)
    }

    fn ask_root<const N: usize>(&mut self, command: u8) -> Result<[u8; N], RemoteError> {
        self.send(ROOT, &[command])?;
        let mut answer = [0; N];
        for byte in &mut answer {
            *byte = self.answer(ROOT)?;
        }
        Ok(answer)
    }

    /// Sends commands to an endpoint. What was answered before and not taken is void.
    fn send(&mut self, endpoint: u8, commands: &[u8]) -> Result<(), RemoteError> {
        self.answers.clear();
        let mut frame = Vec::with_capacity(commands.len() + 8);
        cobs::encode(&[&[endpoint], commands].concat(), &mut frame);
        self.check()?;
        self.server.send(&frame).map_err(|error| self.give_up(failed(error)))
    }

    /// Returns the next byte that an endpoint answers.
    fn answer(&mut self, endpoint: u8) -> Result<u8, RemoteError> {
        while self.answers.is_empty() {
            let packet = self.packet().map_err(|error| self.give_up(error))?;
            match packet.split_first() {
                Some((&from, bytes)) if from == endpoint => {
                    self.answers.extend(bytes.iter().rev());
                }
                _ => return Err(self.give_up(RemoteError::Garbled)),
            }
        }
        self.answers.pop().ok_or(RemoteError::Garbled)
    }

    /// Hangs up: behind an answer that is none, no other can be told from its rest.
    fn give_up(&mut self, error: RemoteError) -> RemoteError {
        self.gone = true;
        self.server.cut();
        error
    }

    fn check(&self) -> Result<(), RemoteError> {
        if self.gone { Err(RemoteError::Closed) } else { Ok(()) }
    }

    fn packet(&mut self) -> Result<Vec<u8>, RemoteError> {
        let mut seen = 0;
        loop {
            if let Some(at) = self.arrived[seen..].iter().position(|&byte| byte == 0) {
                let frame: Vec<u8> = self.arrived.drain(..=seen + at).collect();
                let packet = cobs::decode(&frame[..seen + at]);
                return packet.ok_or(RemoteError::Garbled);
            }
            seen = self.arrived.len();
            if seen > MAX_ANSWER {
                return Err(RemoteError::Garbled);
            }
            self.arrived.resize(seen + MAX_ANSWER, 0);
            let count = self.server.receive(&mut self.arrived[seen..]);
            self.arrived.truncate(seen + count.as_ref().map_or(0, |&count| count));
            if count.map_err(failed)? == 0 {
                return Err(RemoteError::Closed);
            }
        }
    }

    fn push_write(&mut self, address: RegisterAddress, value: u32) -> Result<(), ArmError> {
        self.check().map_err(lost)?;
        if self.writes == MAX_TRANSFERS {
            self.exchange(0)?;
        }
        self.batch.push(command(address));
        self.batch.extend(value.to_le_bytes());
        self.writes += 1;
        Ok(())
    }

    /// Sends what was collected, which ends in some reads, and returns what they found.
    fn exchange(&mut self, reads: usize) -> Result<Vec<u32>, ArmError> {
        let (batch, writes) = (std::mem::take(&mut self.batch), std::mem::take(&mut self.writes));
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        self.send(SWD, &batch).map_err(lost)?;
        for _ in 0..writes {
            self.expect(swd::WRITTEN)?;
        }
        (0..reads).map(|_| self.value()).collect()
    }

    fn value(&mut self) -> Result<u32, ArmError> {
        self.expect(swd::DATA)?;
        let mut word = [0; 4];
        for byte in &mut word {
            *byte = self.answer(SWD).map_err(lost)?;
        }
        Ok(u32::from_le_bytes(word))
    }

    fn expect(&mut self, wanted: u8) -> Result<(), ArmError> {
        match self.answer(SWD).map_err(lost)? {
            answer if answer == wanted => Ok(()),
            swd::FAULT => Err(DapError::FaultResponse.into()),
            swd::WAIT => Err(DapError::WaitResponse.into()),
            _ => Err(lost(self.give_up(RemoteError::Garbled))),
        }
    }

    fn drive_reset(&mut self, command: u8) -> Result<(), DebugProbeError> {
        // What was to be done before the reset is done before it; what the bus refused of it
        // matters no more.
        match self.exchange(0) {
            Ok(_) | Err(ArmError::Dap(_)) => {}
            Err(ArmError::Probe(error)) => return Err(error),
            Err(other) => return Err(DebugProbeError::Other(other.to_string())),
        }
        Ok(self.send(ROOT, &[command])?)
    }
}

/// Returns the command that writes a register; with [`swd::READ`] it reads it.
fn command(address: RegisterAddress) -> u8 {
    (if address.is_ap() { swd::AP } else { 0 }) | address.lsb() & swd::OFFSET
}

fn failed(error: io::Error) -> RemoteError {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => RemoteError::Closed,
        _ => RemoteError::Io(error),
    }
}

fn lost(error: RemoteError) -> ArmError {
    ArmError::Probe(error.into())
}

impl RawDapAccess for RemoteProbe {
    swd_only_dap_access!();

    fn raw_read_register(&mut self, address: RegisterAddress) -> Result<u32, ArmError> {
        if address.is_ap() {
            let mut value = [0];
            self.raw_read_block(address, &mut value)?;
            return Ok(value[0]);
        }
        self.batch.push(command(address) | swd::READ);
        self.exchange(1)?.first().copied().ok_or_else(|| lost(RemoteError::Garbled))
    }

    fn raw_write_register(&mut self, address: RegisterAddress, value: u32) -> Result<(), ArmError> {
        self.push_write(address, value)
    }

    fn raw_read_block(
        &mut self,
        address: RegisterAddress,
        values: &mut [u32],
    ) -> Result<(), ArmError> {
        // Reads of an access port are posted: each is answered by what the one before found.
        for values in values.chunks_mut(MAX_TRANSFERS) {
            self.batch.extend(values.iter().map(|_| command(address) | swd::READ));
            self.batch.push(RDBUFF | swd::READ);
            let found = self.exchange(values.len() + 1)?;
            values.copy_from_slice(&found[1..]);
        }
        Ok(())
    }

    fn raw_write_block(
        &mut self,
        address: RegisterAddress,
        values: &[u32],
    ) -> Result<(), ArmError> {
        values.iter().try_for_each(|&value| self.push_write(address, value))?;
        self.raw_flush()
    }

    fn raw_flush(&mut self) -> Result<(), ArmError> {
        self.exchange(0).map(drop)
    }

    fn swj_sequence(&mut self, bit_len: u8, bits: u64) -> Result<(), DebugProbeError> {
        /// Most bits of one command.
        const MOST: u8 = 31;
        self.check()?;
        let (mut left, mut bits) = (bit_len, bits);
        while left > 0 {
            let len = left.min(MOST);
            self.batch.push(swd::SEQUENCE | len);
            self.batch.extend((bits as u32).to_le_bytes());
            (left, bits) = (left - len, bits >> len);
        }
        Ok(())
    }

    fn swj_pins(&mut self, out: u32, select: u32, _wait: u32) -> Result<u32, DebugProbeError> {
        if select != NRESET {
            return Err(DebugProbeError::CommandNotSupportedByProbe { command_name: "swj_pins" });
        }
        let high = out & NRESET != 0;
        self.drive_reset(if high { root::CLEAR_RESET } else { root::ASSERT_RESET })?;
        // The pins cannot be read back.
        Ok(u32::MAX)
    }
}

impl DapProbe for RemoteProbe {}

impl DebugProbe for RemoteProbe {
    swd_only_debug_probe!();

    fn get_name(&self) -> &str {
        "remote probe"
    }

    fn speed_khz(&self) -> u32 {
        self.reference_clock / (u32::from(self.divisor) + 1) / 1000
    }

    fn set_speed(&mut self, speed_khz: u32) -> Result<u32, DebugProbeError> {
        let divisor = self.reference_clock.div_ceil(speed_khz.max(1).saturating_mul(1000));
        let [low, high] = u16::try_from(divisor.max(1) - 1).unwrap_or(u16::MAX).to_le_bytes();
        self.send(ROOT, &[root::SET_DIVISOR, low, high])?;
        self.divisor = u16::from_le_bytes(self.ask_root(root::DIVISOR)?);
        Ok(self.speed_khz())
    }

    fn target_reset(&mut self) -> Result<(), DebugProbeError> {
        Err(DebugProbeError::CommandNotSupportedByProbe { command_name: "target_reset" })
    }

    fn target_reset_assert(&mut self) -> Result<(), DebugProbeError> {
        self.drive_reset(root::ASSERT_RESET)
    }

    fn target_reset_deassert(&mut self) -> Result<(), DebugProbeError> {
        self.drive_reset(root::CLEAR_RESET)
    }
}

impl Drop for RemoteProbe {
    /// Hangs up although a leash may still hold the socket: a server has one client at a time.
    fn drop(&mut self) {
        self.server.cut();
    }
}
