//! The virtual probe at work for `cargo xtask bench`: what flashing and RTT take.
//!
//! A program of its own, because `xtask` is built for quick starts and this for speed. Prints
//! one JSON object: each measurement's rounds, and where the time of a flash went.
#![allow(clippy::print_stdout, reason = "it talks to the bench over its standard output")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use jig_drivers::qemu::QemuFactory;
use jig_model::ConsoleName;
use jig_model::event::BoardEvent;
use jig_model::image::{ImageFormat, Payload, Segment};
use jig_model::profile::{BoardProfile, FaultSetText, FaultSets};
use jig_model::protocol::{BindContext, BoardSink, BoxFuture, NoLedger, Transport};
use jig_model::rig_file::{EmulatorPart, Place};
use jig_probe::{
    AttachOptions, Cancel, FlashRequest, Leave, ProbeHandle, ProbeSource, ResetInto, RttBlock,
    ServeAt, VirtualBoard,
};
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Bytes of the flash that is measured.
const SIZE: usize = 128 << 10;
/// Bytes that are echoed in one round.
const ECHO: usize = 64 << 10;

#[derive(Parser)]
struct Job {
    /// The board's profile.
    profile: PathBuf,
    /// Folder of the fault sets it names.
    faults: PathBuf,
    /// A firmware that echoes RTT channel 0.
    echo: PathBuf,
    /// Rounds of each measurement.
    #[arg(long, default_value_t = 12)]
    rounds: usize,
}

/// Throws away what the board prints.
struct Deaf;

impl BoardSink for Deaf {
    fn attach(&self, _console: &ConsoleName, mut transport: Box<dyn Transport>) {
        tokio::spawn(async move {
            let mut chunk = [0; 4096];
            while let Ok(1..) = std::future::poll_fn(|cx| transport.poll_read(cx, &mut chunk)).await
            {
            }
        });
    }
    fn drained(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
    fn event(&self, _event: BoardEvent) {}
}

fn main() -> Outcome<()> {
    let job = Job::parse();
    let runtime = tokio::runtime::Runtime::new()?;
    let folder = tempfile::tempdir()?;
    let found = runtime.block_on(measure(&job, folder.path()))?;
    println!("{found}");
    Ok(())
}

async fn measure(job: &Job, folder: &Path) -> Outcome<Value> {
    let profile = Arc::new(profile(job)?);
    let place = Place::new("bench".parse()?, profile.id.clone());
    let context = BindContext {
        profile: Arc::clone(&profile),
        place: Arc::new(place.with_emulator(EmulatorPart::default())),
        sink: Arc::new(Deaf),
        evidence: folder.to_owned(),
        images: folder.to_owned(),
        ledger: Arc::new(NoLedger),
    };
    let (protocols, machine) = QemuFactory.bind_with_machine(context)?;
    let board = tokio::task::spawn_blocking(move || VirtualBoard::start(machine, &profile));
    let board = board.await??;
    let server = board.serve(ServeAt::Unix(folder.join("probe")))?;
    let selector = ProbeSource::Selector(server.selector().to_owned());
    let mut found = json!({});
    let (rates, again, spent) = flashing(board.source()?, &board, job.rounds).await?;
    found["in_process"] = json!(rates);
    found["again"] = json!(again);
    found["spent"] = spent;
    let (rates, ..) = flashing(selector, &board, job.rounds).await?;
    found["served"] = json!(rates);
    let (echo, trips) = echo(board.source()?, job).await?;
    found["rtt"] = json!(echo);
    found["rtt_trips"] = json!(trips);
    drop(server);
    drop(protocols);
    Ok(found)
}

fn profile(job: &Job) -> Outcome<BoardProfile> {
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(&job.faults)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            texts.push((name, path.display().to_string(), std::fs::read_to_string(&path)?));
        }
    }
    let texts = texts.iter().map(|(name, origin, text)| FaultSetText { name, origin, text });
    let sets = FaultSets::parse(texts).map_err(|_| "a fault set is not valid")?;
    let text = std::fs::read_to_string(&job.profile)?;
    let name = job.profile.display().to_string();
    Ok(BoardProfile::parse(&name, &text, &sets).map_err(|_| "the profile is not valid")?)
}

/// Flashes new bytes, then the same again; returns KiB/s of the first, the share of the time
/// that the second took, and where the last round spent its time.
async fn flashing(
    source: ProbeSource,
    board: &VirtualBoard,
    rounds: usize,
) -> Outcome<(Vec<f64>, Vec<f64>, Value)> {
    let (handle, _) = ProbeHandle::attach(source, AttachOptions::default()).await?;
    let (mut rates, mut again) = (Vec::new(), Vec::new());
    let mut spent = Value::Null;
    for round in 0..rounds {
        let bytes: Vec<u8> = (0..SIZE)
            .map(|at| (at as u8).wrapping_mul(31).wrapping_add(round as u8) ^ (at >> 8) as u8)
            .collect();
        let segments = vec![Segment { start: 0, bytes }];
        let request = FlashRequest {
            payload: Payload { segments },
            verify: true,
            preserve: Vec::new(),
            skip_equal: true,
        };
        let before = board.stats();
        let began = Instant::now();
        handle.flash(request.clone(), |_| {}, Cancel::default()).await?;
        let first = began.elapsed();
        let after = board.stats();
        let began = Instant::now();
        let report = handle.flash(request, |_| {}, Cancel::default()).await?;
        if report.written > 0 {
            return Err("equal sectors were written again".into());
        }
        again.push(began.elapsed().as_secs_f64() / first.as_secs_f64());
        rates.push(SIZE as f64 / 1024.0 / first.as_secs_f64());
        spent = json!({
            "flash_ms": first.as_secs_f64() * 1e3,
            "algorithm_ms": (after.wait_time - before.wait_time).as_secs_f64() * 1e3,
            "calls": after.resumes - before.resumes,
            "gdb_ms": (after.gdb_time - before.gdb_time).as_secs_f64() * 1e3,
            "gdb_trips": after.gdb_trips - before.gdb_trips,
            "bus_ms": (after.qtest_time - before.qtest_time).as_secs_f64() * 1e3,
            "bus_trips": after.qtest_trips - before.qtest_trips,
            "registers": after.registers - before.registers,
        });
    }
    handle.close(Leave::Halted).await?;
    Ok((rates, again, spent))
}

/// Echoes bytes through RTT: KiB/s there and back, and milliseconds of a single byte's trip.
async fn echo(source: ProbeSource, job: &Job) -> Outcome<(Vec<f64>, Vec<f64>)> {
    let elf = std::fs::read(&job.echo)?;
    let payload = Payload::read(ImageFormat::Elf, &elf)?;
    let address = RttBlock::address_in(&elf).ok_or("the firmware has no RTT")?;
    let (handle, _) = ProbeHandle::attach(source, AttachOptions::default()).await?;
    let request = FlashRequest { payload, verify: true, preserve: Vec::new(), skip_equal: true };
    handle.flash(request, |_| {}, Cancel::default()).await?;
    handle.reset(ResetInto::Run).await?;
    let block = loop {
        if let Some(block) = handle.rtt(move |memory| RttBlock::at(memory, address)).await? {
            break block;
        }
    };
    // What it greets with.
    let hello = block.clone();
    handle
        .rtt(move |memory| {
            let mut got = Vec::new();
            while !got.ends_with(b"\n") {
                hello.read(memory, 0, &mut got)?;
            }
            Ok(())
        })
        .await?;
    let (mut rates, mut trips) = (Vec::new(), Vec::new());
    for _ in 0..job.rounds {
        let began = Instant::now();
        exchange(&handle, &block, ECHO).await?;
        rates.push(ECHO as f64 / 1024.0 / began.elapsed().as_secs_f64());
        for _ in 0..20 {
            let began = Instant::now();
            exchange(&handle, &block, 1).await?;
            trips.push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
    handle.close(Leave::Halted).await?;
    Ok((rates, trips))
}

async fn exchange(handle: &ProbeHandle, block: &RttBlock, count: usize) -> Outcome<()> {
    let bytes: Vec<u8> = (0..count).map(|at| (at % 251) as u8).collect();
    let (block, sent) = (block.clone(), bytes.clone());
    let got = handle.rtt(move |memory| {
        let (mut rest, mut got) = (sent.as_slice(), Vec::new());
        while got.len() < sent.len() {
            let taken = block.write(memory, 0, rest)?;
            rest = &rest[taken..];
            block.read(memory, 0, &mut got)?;
        }
        Ok(got)
    });
    if got.await? == bytes { Ok(()) } else { Err("the echo differs from what was sent".into()) }
}
