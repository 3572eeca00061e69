//! A channel of the target: what it writes becomes events, and input is written to it.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use jig_model::command::{CommandEvent, EndedReply, Reply, RttChannelInfo};
use jig_probe::{
    DefmtDecoder, DefmtItem, DefmtTable, Leave, ResetInto, RttBlock, RttChannel, RttError,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use super::ProbeCommandError;
use super::memory::as_it_is;
use super::port::{Port, PortDone};
use super::target::{MAX_SYMBOLS, read};

/// How long a program may take to set its channels up.
const APPEARS_WITHIN: Duration = Duration::from_secs(10);

/// How long the ring is left alone when it was empty: short enough for people to see no
/// delay, and a hundredth of what a probe can do.
const REST: Duration = Duration::from_millis(2);

/// Most bytes in one event: a line of a worker holds them in hexadecimal.
const PIECE: usize = 16 << 10;

/// How much input is kept ready: more than the ring of a target takes at once.
const STRIDE: usize = 4 << 10;

/// What the caller asked for.
pub(super) struct RttWish {
    pub(super) image: Option<PathBuf>,
    pub(super) channel: usize,
    pub(super) reset: bool,
    pub(super) timeout_ms: Option<u64>,
}

pub(super) async fn rtt(port: &Port, wish: RttWish, input: mpsc::Receiver<Vec<u8>>) -> PortDone {
    let elf = wish.image.as_deref().map(|image| read(image, MAX_SYMBOLS)).transpose()?;
    let table = elf.as_deref().map(DefmtTable::load).transpose()?.flatten();
    let ram = port.ram();
    let known = elf.as_deref().and_then(RttBlock::address_in);
    // A board that was just made real has not begun; there is nothing to see but its start.
    if wish.reset || port.held.is_fresh() {
        let places = ram.clone();
        let wiped = port.handle.rtt(move |memory| RttBlock::wipe(memory, &places)).await;
        wiped.map_err(|error| told(error, port))?;
        port.done(port.handle.reset(ResetInto::Run).await)?;
    }
    let deadline = wish.timeout_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
    let talk = async {
        let mut block = find(port, known, ram.clone()).await?;
        let (up, down) = (channels(&block.up), channels(&block.down));
        if !up.iter().any(|channel| channel.number == wish.channel) {
            let known = up.into_iter().map(|channel| (channel.number, channel.name)).collect();
            return Err(ProbeCommandError::NoRttChannel { channel: wish.channel, known });
        }
        port.events.event(CommandEvent::RttChannels { up, down });
        let mut session = RttSession::new(wish.channel, table, input);
        loop {
            match session.converse(port, &block).await {
                // Another command has reset the board, and its program sets the channels up anew.
                Err(RttError::Corrupted { .. }) if port.held.is_shared() => {
                    block = find(port, known, ram.clone()).await?;
                }
                ended => return ended.map_err(|error| told(error, port)),
            }
        }
    };
    tokio::select! {
        ended = talk => ended?,
        () = port.cancel.cancelled() => {}
        () = until(deadline) => {}
    }
    let leave = if port.held.is_shared() { as_it_is(port).await? } else { Leave::Running };
    Ok((Reply::Ended(EndedReply { place: port.place.clone() }), leave))
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn told(error: RttError, port: &Port) -> ProbeCommandError {
    match error {
        RttError::Memory(error) => ProbeCommandError::Probe { place: port.place.clone(), error },
        error @ (RttError::Corrupted { .. } | RttError::NoChannel { .. }) => {
            ProbeCommandError::Rtt(error)
        }
    }
}

async fn find(
    port: &Port,
    known: Option<u64>,
    ram: Vec<Range<u64>>,
) -> Result<RttBlock, ProbeCommandError> {
    let deadline = Instant::now() + APPEARS_WITHIN;
    loop {
        let ram = ram.clone();
        let found = port.handle.rtt(move |memory| match known {
            Some(address) => RttBlock::at(memory, address),
            None => RttBlock::find(memory, &ram),
        });
        match found.await {
            Ok(Some(block)) => return Ok(block),
            // A program that starts may be in the middle of writing it.
            Ok(None) | Err(RttError::Corrupted { .. }) if Instant::now() < deadline => {
                sleep(REST).await;
            }
            Ok(None) => return Err(ProbeCommandError::NoRtt),
            Err(error) => return Err(told(error, port)),
        }
    }
}

fn channels(channels: &[RttChannel]) -> Vec<RttChannelInfo> {
    let used = channels.iter().enumerate().filter(|(_, channel)| channel.size > 0);
    used.map(|(number, channel)| RttChannelInfo {
        number,
        name: channel.name.clone(),
        size: channel.size,
    })
    .collect()
}

/// A channel that is shown and fed.
struct RttSession {
    channel: usize,
    decoder: Option<DefmtDecoder>,
    input: mpsc::Receiver<Vec<u8>>,
    to_send: Vec<u8>,
}

impl RttSession {
    fn new(channel: usize, table: Option<DefmtTable>, input: mpsc::Receiver<Vec<u8>>) -> Self {
        Self { channel, decoder: table.map(DefmtDecoder::new), input, to_send: Vec::new() }
    }

    /// Passes bytes on until the control block cannot be used.
    async fn converse(&mut self, port: &Port, block: &RttBlock) -> Result<(), RttError> {
        let Self { channel, decoder, input, to_send } = self;
        let channel = *channel;
        loop {
            let (up, bytes) = (block.clone(), std::mem::take(to_send));
            let had = bytes.len();
            let moved = port.handle.rtt(move |memory| {
                let mut got = Vec::new();
                up.read(memory, channel, &mut got)?;
                let sent = if bytes.is_empty() { 0 } else { up.write(memory, channel, &bytes)? };
                Ok((got, bytes[sent..].to_vec()))
            });
            let (got, rest) = moved.await?;
            let idle = got.is_empty() && rest.len() == had;
            *to_send = rest;
            match decoder {
                Some(decoder) => {
                    for item in decoder.push(&got) {
                        port.events.event(match item {
                            DefmtItem::Line(line) => CommandEvent::RttLine { line },
                            DefmtItem::Broken { bytes } => CommandEvent::RttBroken { bytes },
                        });
                    }
                }
                None => {
                    for bytes in got.chunks(PIECE) {
                        port.events.event(CommandEvent::RttBytes { bytes: bytes.to_vec() });
                    }
                }
            }
            while to_send.len() < STRIDE
                && let Ok(bytes) = input.try_recv()
            {
                to_send.extend_from_slice(&bytes);
            }
            if idle && to_send.len() < STRIDE {
                if let Ok(Some(bytes)) = timeout_at(Instant::now() + REST, input.recv()).await {
                    to_send.extend_from_slice(&bytes);
                } else if input.is_closed() {
                    sleep(REST).await;
                }
            } else if idle {
                sleep(REST).await;
            }
        }
    }
}
