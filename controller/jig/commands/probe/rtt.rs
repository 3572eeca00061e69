//! `jig rtt`: a channel of the target, on this terminal or pipe.

use std::io::BufRead as _;
use std::time::Duration;

use jig_model::{Fault, exit};
use jig_probe::{DefmtDecoder, DefmtItem, DefmtTable, Leave, ResetInto, RttBlock, RttError};
use jig_rig::console::{Escaper, escape};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use super::help::failed;
use super::port::{Lasting, Port, with_port};
use crate::args::{Common, RttArgs};
use crate::failure::Failure;
use crate::render::Screen;

/// How long a program may take to set its channels up.
const APPEARS_WITHIN: Duration = Duration::from_secs(10);

/// How long the ring is left alone when it was empty: short enough for people to see no
/// delay, and a hundredth of what a probe can do.
const REST: Duration = Duration::from_millis(2);

/// How much of what is typed is kept ready: more than the ring of a target takes at once.
const STRIDE: usize = 4 << 10;

/// Shows a channel, and sends what is typed to it.
pub(crate) fn rtt(common: &Common, screen: &Screen, args: RttArgs) -> Result<u8, Failure> {
    with_port(common, screen, "rtt", &args.at, Lasting::Flash, async |port: &Port| {
        let elf = args.image.as_ref().map(|path| {
            std::fs::read(path).map_err(|error| {
                Failure::new(Fault::Usage, format!("could not read {}: {error}", path.display()))
            })
        });
        let elf = elf.transpose()?;
        let table = elf.as_deref().map(DefmtTable::load).transpose();
        let table = table.map_err(|error| Failure::of(Fault::Usage, &error))?.flatten();
        let ram = port.ram();
        let known = elf.as_deref().and_then(RttBlock::address_in);
        // A board that was just made real has not begun; there is nothing to see but its start.
        if args.reset || port.is_fresh() {
            let places = ram.clone();
            port.handle
                .rtt(move |memory| RttBlock::wipe(memory, &places))
                .await
                .map_err(|error| told(&error, port))?;
            let reset = port.handle.reset(ResetInto::Run).await;
            reset.map_err(|error| failed(&error, &port.place))?;
        }
        let deadline = args.timeout.map(|timeout| Instant::now() + timeout);
        let talk = async {
            let block = find(port, known, ram).await?;
            tell_channels(screen, &block);
            converse(screen, port, &block, args.channel, table).await
        };
        tokio::select! {
            ended = talk => ended?,
            () = port.until_stopped() => {}
            () = until(deadline) => {}
        }
        Ok((exit::PASS, Leave::Running))
    })
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn told(error: &RttError, port: &Port) -> Failure {
    match error {
        RttError::Memory(error) => failed(error, &port.place),
        RttError::Corrupted { .. } | RttError::NoChannel { .. } => {
            Failure::new(Fault::Target, escape(error.to_string().as_bytes()).to_string())
        }
    }
}

async fn find(
    port: &Port,
    known: Option<u64>,
    ram: Vec<std::ops::Range<u64>>,
) -> Result<RttBlock, Failure> {
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
            Ok(None) => {
                let words = "the target has no RTT control block";
                return Err(Failure::new(Fault::Target, words)
                    .help("does the program use RTT? --image APP.elf says where to look; --reset starts it anew"));
            }
            Err(error) => return Err(told(&error, port)),
        }
    }
}

fn tell_channels(screen: &Screen, block: &RttBlock) {
    for (direction, channels) in [("up", &block.up), ("down", &block.down)] {
        for (number, channel) in channels.iter().enumerate().filter(|(_, c)| c.size > 0) {
            let name = escape(channel.name.as_bytes());
            screen.say(&format!("{direction} {number}: {name} ({} bytes)", channel.size));
        }
    }
}

async fn converse(
    screen: &Screen,
    port: &Port,
    block: &RttBlock,
    channel: usize,
    table: Option<DefmtTable>,
) -> Result<(), Failure> {
    let mut decoder = table.map(DefmtDecoder::new);
    let mut escaper = Escaper::default();
    let mut typed = lines();
    let mut to_send: Vec<u8> = Vec::new();
    loop {
        let (up, bytes) = (block.clone(), std::mem::take(&mut to_send));
        let had = bytes.len();
        let moved = port.handle.rtt(move |memory| {
            let mut got = Vec::new();
            up.read(memory, channel, &mut got)?;
            let sent = if bytes.is_empty() { 0 } else { up.write(memory, channel, &bytes)? };
            Ok((got, bytes[sent..].to_vec()))
        });
        let (got, rest) = moved.await.map_err(|error| told(&error, port))?;
        let idle = got.is_empty() && rest.len() == had;
        to_send = rest;
        match &mut decoder {
            Some(decoder) => {
                for item in decoder.push(&got) {
                    screen.out(&match item {
                        DefmtItem::Line(line) => escape(line.as_bytes()).to_string(),
                        DefmtItem::Broken { bytes } => format!("[{bytes} bytes are no frame]"),
                    });
                }
            }
            None if !got.is_empty() => screen.out_bytes(escaper.escape(&got).as_bytes()),
            None => {}
        }
        if screen.closed() {
            return Ok(());
        }
        while to_send.len() < STRIDE
            && let Ok(line) = typed.try_recv()
        {
            to_send.extend_from_slice(&line);
        }
        if idle && to_send.len() < STRIDE {
            if let Ok(Some(line)) = timeout_at(Instant::now() + REST, typed.recv()).await {
                to_send.extend_from_slice(&line);
            } else if typed.is_closed() {
                sleep(REST).await;
            }
        } else if idle {
            sleep(REST).await;
        }
    }
}

/// Reads lines of standard input on a thread of its own, which ends with the process.
fn lines() -> mpsc::Receiver<Vec<u8>> {
    let (lines, receiver) = mpsc::channel(64);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut line = Vec::new();
        while matches!(input.read_until(b'\n', &mut line), Ok(1..)) {
            if lines.blocking_send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    receiver
}
