//! A stranger: uses a board behind a selector as any program does that knows published
//! probe-rs and nothing else.
//!
//! It must import nothing of this workspace: what it proves is that the protocol, not the code,
//! carries everything. Tests of the repository start it with the selector of an emulated
//! board; it works unchanged on a real one.
//!
//! `stranger SELECTOR CHIP IMAGE.elf RAM BREAKPOINT [DESCRIPTION.yaml]`, addresses in
//! hexadecimal; the last describes chips that probe-rs does not know. Prints one fact a line.

#![allow(clippy::print_stdout, reason = "that is how it reports")]

use std::error::Error;
use std::fs;
use std::time::Duration;

use probe_rs::config::Registry;
use probe_rs::flashing::{DownloadOptions, ElfLoader, ElfOptions, download_file_with_options};
use probe_rs::probe::DebugProbeSelector;
use probe_rs::probe::list::Lister;
use probe_rs::{MemoryInterface as _, Permissions};

/// How long a core may take to do as asked; only a failure takes so long.
const TIMEOUT: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [selector, chip, image, ram, breakpoint, description @ ..] = arguments.as_slice() else {
        return Err("SELECTOR CHIP IMAGE.elf RAM BREAKPOINT [DESCRIPTION.yaml]".into());
    };
    let (ram, breakpoint) = (address(ram)?, address(breakpoint)?);
    let mut registry = Registry::from_builtin_families();
    if let [description] = description {
        registry.add_target_family_from_yaml(&fs::read_to_string(description)?)?;
    }
    let selector: DebugProbeSelector = selector.parse()?;
    let probe = Lister::new().open(selector)?;
    let mut session =
        probe.attach_with_registry(chip.as_str(), Permissions::default(), &registry)?;
    println!("target {}", session.target().name);

    let mut options = DownloadOptions::default();
    options.verify = true;
    download_file_with_options(&mut session, image, ElfLoader(ElfOptions::default()), options)?;
    println!("flashed");

    let mut core = session.core(0)?;
    let start = core.reset_and_halt(TIMEOUT)?;
    println!("reset {:#x}", start.pc);
    let word = core.read_word_32(ram)?;
    core.write_word_32(ram, !word)?;
    println!("ram {}", if core.read_word_32(ram)? == !word { "kept" } else { "lost" });

    core.set_hw_breakpoint(breakpoint)?;
    core.run()?;
    core.wait_for_core_halted(TIMEOUT)?;
    let pc: u64 = core.read_core_reg(core.program_counter())?;
    println!("breakpoint {pc:#x}");
    core.clear_hw_breakpoint(breakpoint)?;
    println!("step {:#x}", core.step()?.pc);
    core.run()?;
    println!("done");
    Ok(())
}

fn address(text: &str) -> Result<u64, std::num::ParseIntError> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16)
}
