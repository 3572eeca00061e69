//! The two ends of a console for `cargo xtask bench`: a target that prints as fast as its
//! transport takes it, and a capture of it with everything that a run has.
//!
//! A program of its own, because `xtask` is built for quick starts and this for speed.
//! Refuses to measure: it says when it is ready and when it has everything, and the bench
//! looks at the clock.
#![allow(clippy::print_stdout, reason = "it talks to the bench over its standard output")]

use std::error::Error;
use std::fs::File;
use std::io::{BufRead as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use jig_drivers::serial::TtyTransport;
use jig_model::pattern::Pattern;
use jig_model::profile::{FaultSignature, FaultText, Limits};
use jig_model::{Cause, ConsoleName};
use jig_rig::console::{Console, Follow, LogPaths, Recogniser, Stamp};
use nix::fcntl::{FallocateFlags, fallocate};
use nix::pty::openpty;
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};
use nix::unistd::ttyname;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[derive(Parser)]
enum Role {
    /// Makes pseudo-terminals, names them, waits for a line, then prints into each.
    Feed {
        /// Bytes for each.
        bytes: u64,
        /// How many.
        #[arg(long, default_value_t = 1)]
        count: usize,
        /// Bytes a second for each; as fast as it goes if 0.
        #[arg(long, default_value_t = 0)]
        rate: u64,
    },
    /// Captures terminals until each has given its bytes.
    Read {
        /// Where the logs go.
        folder: PathBuf,
        /// Bytes of each.
        bytes: u64,
        /// The terminals.
        ttys: Vec<PathBuf>,
        /// Gives back the disk space of what was looked at, so that a log can be longer
        /// than the disk; its offsets stay.
        #[arg(long)]
        punch: bool,
        /// How many further readers each console has that read once and then never again.
        #[arg(long, default_value_t = 0)]
        stuck: usize,
    },
}

fn main() -> Outcome<()> {
    match Role::parse() {
        Role::Feed { bytes, count, rate } => feed(bytes, count, rate),
        Role::Read { folder, bytes, ttys, punch, stuck } => {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()?
                .block_on(read(folder, bytes, ttys, punch, stuck))
        }
    }
}

/// What the target prints, over and over: numbered lines, about a mebibyte, with one line
/// that a pattern knows.
fn printed() -> Vec<u8> {
    let mut text = Vec::with_capacity(1 << 20);
    for number in 0..16_000 {
        let _ = writeln!(text, "[{number:08}] sensor 7: temperature 21.5 C, humidity 40 %, ok");
    }
    text.extend_from_slice(b"*** HardFault: pc=0x000001a4\n");
    text
}

fn feed(bytes: u64, count: usize, rate: u64) -> Outcome<()> {
    let mut ptys = Vec::new();
    for _ in 0..count {
        let pty = openpty(None, None)?;
        let mut settings = tcgetattr(&pty.slave)?;
        cfmakeraw(&mut settings);
        tcsetattr(&pty.slave, SetArg::TCSANOW, &settings)?;
        println!("{}", ttyname(&pty.slave)?.display());
        ptys.push(pty);
    }
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    std::thread::scope(|scope| {
        let writers: Vec<_> =
            ptys.iter().map(|pty| scope.spawn(|| print_into(&pty.master, bytes, rate))).collect();
        for writer in writers {
            writer.join().map_err(|_| "a writer panicked")??;
        }
        Outcome::Ok(())
    })?;
    println!("fed");
    // What is in a terminal is lost when its other end closes.
    line.clear();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(())
}

fn print_into(pty: &std::os::fd::OwnedFd, bytes: u64, rate: u64) -> Outcome<()> {
    let text = printed();
    let began = Instant::now();
    let mut done = 0;
    while done < bytes {
        let at = (done % text.len() as u64) as usize;
        // A real transport gives a few bytes at a time; a fast one as many as fit.
        let most = if rate == 0 { 64 << 10 } else { (rate / 1000).max(1) as usize };
        let left = usize::try_from(bytes - done).unwrap_or(usize::MAX);
        let piece = &text[at..(at + most.min(left)).min(text.len())];
        done += nix::unistd::write(pty, piece)? as u64;
        if let Some(due) = (done * 1_000_000).checked_div(rate) {
            std::thread::sleep(Duration::from_micros(due).saturating_sub(began.elapsed()));
        }
    }
    Ok(())
}

async fn read(
    folder: PathBuf,
    bytes: u64,
    ttys: Vec<PathBuf>,
    punch: bool,
    stuck: usize,
) -> Outcome<()> {
    let recogniser = Recogniser::new(&signatures()?, &[], None, &limits())?;
    let began = Instant::now();
    let clock = Arc::new(move || {
        let mono_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Stamp { mono_ns, wall_ns: 0 }
    });
    let mut captures = Vec::new();
    for (number, tty) in ttys.iter().enumerate() {
        let name: ConsoleName = format!("tty{number}").parse()?;
        let paths = LogPaths::new(&folder, &name);
        let console = Console::start(&paths, clock.clone())?;
        console.handle().attach(Box::new(TtyTransport::open(tty, 115_200)?))?;
        captures.push((console, paths));
    }
    let mut readers = tokio::task::JoinSet::new();
    for (console, paths) in &captures {
        let (handle, path) = (console.handle().clone(), punch.then(|| paths.raw.clone()));
        readers.spawn(look(handle, recogniser.clone(), bytes, path));
    }
    // They hold their place in the log while it grows, until all is caught.
    let mut idle = tokio::task::JoinSet::new();
    for (console, _) in &captures {
        for _ in 0..stuck {
            let mut follower = console.handle().follow(0, 0)?;
            idle.spawn(async move {
                let _ = follower.next(&mut [0; 16]).await;
                std::future::pending::<()>().await;
            });
        }
    }
    println!("ready");
    let mut found = 0;
    while let Some(reader) = readers.join_next().await {
        found += reader??;
    }
    println!("caught");
    let (mut lost, mut records) = (0, 0);
    for (console, paths) in captures {
        let state = console.close().await;
        lost += state.lost + u64::from(state.gaps) + bytes.abs_diff(state.len);
        records += std::fs::metadata(&paths.index)?.len() / 32;
        lost += if punch { 0 } else { differing(&paths.raw)? };
    }
    println!("{}", serde_json::json!({ "lost": lost, "records": records, "found": found }));
    Ok(())
}

/// Follows a log with a recogniser, as a run does; returns how much was recognised.
async fn look(
    handle: jig_rig::console::ConsoleHandle,
    mut recogniser: Recogniser,
    bytes: u64,
    punch: Option<PathBuf>,
) -> Outcome<u64> {
    let mut follower = handle.follow(0, 0)?;
    let holes = punch.as_deref().map(|path| File::options().write(true).open(path)).transpose()?;
    let (began, text) = (Instant::now(), printed());
    let (mut buf, mut found, mut punched) = (vec![0; 64 << 10], 0, 0);
    while follower.cursor() < bytes {
        let Follow::Bytes { offset, len } = follower.next(&mut buf).await? else {
            return Err("the terminal ended early".into());
        };
        found += recogniser.feed(&buf[..len], began.elapsed()).len() as u64;
        if let Some(file) = &holes {
            // Compared while it is there; the other way compares afterwards.
            compare(offset, &buf[..len], &text)?;
            if offset - punched >= 64 << 20 {
                let flags =
                    FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
                let (from, len) = (i64::try_from(punched)?, i64::try_from(offset - punched)?);
                fallocate(file, flags, from, len)?;
                punched = offset;
            }
        }
        tokio::task::yield_now().await;
    }
    Ok(found)
}

fn compare(offset: u64, bytes: &[u8], text: &[u8]) -> Outcome<()> {
    let (mut at, mut rest) = ((offset % text.len() as u64) as usize, bytes);
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.len().min(text.len() - at));
        if piece != &text[at..at + piece.len()] {
            return Err(format!("other bytes than were printed behind offset {offset}").into());
        }
        (at, rest) = (0, behind);
    }
    Ok(())
}

/// Counts the pieces of a log that are not what was printed.
fn differing(raw: &Path) -> Outcome<u64> {
    let (file, text) = (File::open(raw)?, printed());
    let (mut buf, mut at, mut wrong) = (vec![0; 1 << 20], 0, 0);
    loop {
        let len = file.read_at(&mut buf, at)?;
        if len == 0 {
            return Ok(wrong);
        }
        wrong += u64::from(compare(at, &buf[..len], &text).is_err());
        at += len as u64;
    }
}

fn limits() -> Limits {
    let day = Duration::from_secs(86_400);
    Limits { flood_bytes: u64::MAX, boot_loop: u32::MAX, settle: Duration::ZERO, silence: day }
}

/// Ten patterns as profiles have them.
fn signatures() -> Outcome<Vec<FaultSignature>> {
    const PATTERNS: [&str; 10] = [
        r"^(?:ERROR +|\[ERROR\] +)?panicked at (?:[^\r\n]*, )?[^\s:]+:\d+:\d",
        r#"^assertion "[^\r\n]*" failed: file "[^\r\n"]*", line \d"#,
        r"^\*\*\* stack smashing detected \*\*\*",
        r"^\*\*\* (?:HardFault|MemManage|BusFault|UsageFault|SecureFault): pc=0x[0-9A-Fa-f]",
        r"^\+\+ MbedOS (?:Fault Handler|Error Info) \+\+",
        r"^(?:[^\r\n>]*(?:<err> os: |E: ))?>>> ZEPHYR FATAL ERROR \d",
        r"^\*\*\* RIOT kernel panic:",
        r"^Guru Meditation Error: Core +\d panic'ed \(",
        r"^(?:\[ *\d+\.\d+\](?:\[ *[CT]\d+\])? )?Kernel panic - not syncing",
        r"^\*\*\* Trap: mcause=0x[0-9A-Fa-f]",
    ];
    let signatures = PATTERNS.iter().map(|text| {
        let pattern = Pattern::new(text)?;
        let (name, text) = ((*text).to_owned(), FaultText::Pattern(pattern));
        let (cause, continues) = (Cause::FaultBanner, Vec::new());
        Ok(FaultSignature { name, text, cause, reason: None, excuse: None, continues })
    });
    signatures.collect()
}
