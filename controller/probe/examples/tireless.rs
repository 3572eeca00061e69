//! A long-lived client: flashes a board behind a selector again and again from one process, as a
//! controller does that owns a rig for months.
//!
//! `tireless SELECTOR CHIP ADDRESS IMAGE...`, the images raw and the address in hexadecimal. Each
//! line of its input is the number of an image: it attaches, flashes it, verifies it, resets the
//! chip, lets go, and prints how many sectors were erased. It ends with its input. Between two
//! lines it stands still, so that the test that feeds it can count its open resources.

#![allow(clippy::print_stdout, reason = "that is how it reports")]

use std::error::Error;
use std::io::{BufRead as _, stdin};

use jig_probe::{
    AttachOptions, Cancel, FlashRequest, Leave, Payload, ProbeHandle, ProbeSource, ResetInto,
    Segment,
};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [selector, chip, address, images @ ..] = arguments.as_slice() else {
        return Err("SELECTOR CHIP ADDRESS IMAGE...".into());
    };
    let start = u64::from_str_radix(address.trim_start_matches("0x"), 16)?;
    let images = images.iter().map(std::fs::read).collect::<Result<Vec<_>, _>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for line in stdin().lock().lines() {
        let bytes = images.get(line?.parse::<usize>()?).ok_or("there is no such image")?.clone();
        let request = FlashRequest {
            payload: Payload { segments: vec![Segment { start, bytes }] },
            verify: true,
            preserve: Vec::new(),
            skip_equal: true,
        };
        let source = ProbeSource::Selector(selector.clone());
        let options = AttachOptions { chip: Some(chip.clone()), ..AttachOptions::default() };
        let erased = runtime.block_on(async {
            let (handle, _) = ProbeHandle::attach(source, options).await?;
            let report = handle.flash(request, |_| {}, Cancel::default()).await?;
            handle.reset(ResetInto::Run).await?;
            handle.close(Leave::Running).await?;
            Ok::<_, jig_probe::ProbeError>(report.sectors_erased)
        })?;
        println!("{erased}");
    }
    Ok(())
}
