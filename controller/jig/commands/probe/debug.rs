//! `jig bt`, `jig dump` and `jig gdb`.

use std::fs;
use std::ops::Range;
use std::path::Path;

use jig_model::post_mortem::PostMortem;
use jig_model::{Fault, byte_size, exit};
use jig_probe::{
    CoreDump, CoreSnapshot, CoreState, GdbEndpoint, GdbServer, Leave, ResetInto, Symbols, Why,
    explain,
};
use jig_rig::console::escape;
use serde_json::json;

use super::help::failed;
use super::port::{Lasting, Port, with_port};
use crate::args::{BtArgs, Common, DumpArgs, GdbArgs, ProbeTarget, Target};
use crate::failure::Failure;
use crate::render::{Screen, Style, one_line};

/// Shows a backtrace of a board or of a core dump. A running core is stopped for it.
///
/// JSON: the post-mortem: summary, frames, registers, status, limits.
pub(crate) fn backtrace(common: &Common, screen: &Screen, args: BtArgs) -> Result<u8, Failure> {
    let symbols = args.image.as_deref().map(symbols_of).transpose()?;
    if let Some(core) = &args.core {
        let bytes = read(core)?;
        let snapshot = CoreDump::read(&bytes).map_err(|error| {
            let words = format!("{} is no core dump: {error}", core.display());
            Failure::new(Fault::Usage, words).help("write one with: jig dump -b BOARD -o FILE")
        })?;
        show(screen, &explain(&snapshot, symbols.as_ref(), Why::Fault));
        return Ok(exit::PASS);
    }
    let Some(board) = args.board else {
        return Err(Failure::new(Fault::Usage, "name a board with -b, or a dump with --core"));
    };
    let at = ProbeTarget { target: Target { board }, probe: args.probe };
    with_port(common, screen, "bt", &at, Lasting::Board, async |port: &Port| {
        let (snapshot, leave) = look(port, None).await?;
        show(screen, &explain(&snapshot, symbols.as_ref(), Why::Fault));
        Ok((exit::PASS, leave))
    })
}

/// Saves registers and memory. A running core is stopped for it.
pub(crate) fn dump(common: &Common, screen: &Screen, args: DumpArgs) -> Result<u8, Failure> {
    with_port(common, screen, "dump", &args.at, Lasting::Board, async |port: &Port| {
        let memory = if args.memory.is_empty() { port.ram() } else { args.memory };
        let (snapshot, leave) = look(port, Some(memory)).await?;
        let written = fs::File::create(&args.output)
            .and_then(|file| CoreDump::write(&snapshot, &mut std::io::BufWriter::new(file)));
        written.map_err(|error| {
            let path = args.output.display();
            Failure::new(Fault::Lab, format!("could not write {path}: {error}"))
        })?;
        let size: u64 = snapshot.memory.iter().map(|range| range.bytes.len() as u64).sum();
        if screen.json() {
            screen.out_json(&json!({
                "place": port.place,
                "core": args.output,
                "memory": size,
                "registers": snapshot.registers.len(),
            }));
        } else {
            let path = args.output.display();
            screen.out(&format!("{} of memory and the registers to {path}", byte_size(size)));
            screen.say(&format!("look into it: jig bt --core {path} --elf APP.elf"));
        }
        Ok((exit::PASS, leave))
    })
}

/// Copies a core's registers and memory, and leaves it as it was; what a backtrace needs, if
/// no memory is named.
async fn look(
    port: &Port,
    memory: Option<Vec<Range<u64>>>,
) -> Result<(CoreSnapshot, Leave), Failure> {
    let told = |error| failed(&error, &port.place);
    let runs = match port.handle.state().await.map_err(told)? {
        CoreState::Running | CoreState::Sleeping => true,
        CoreState::Halted { .. } | CoreState::LockedUp => false,
    };
    if runs {
        port.handle.halt().await.map_err(told)?;
    }
    let snapshot = match memory {
        Some(memory) => port.handle.snapshot(memory).await,
        None => port.handle.snapshot_of_stacks(&port.ram()).await,
    };
    if runs {
        port.handle.run().await.map_err(told)?;
    }
    let leave = if runs { Leave::Running } else { Leave::Halted };
    Ok((snapshot.map_err(told)?, leave))
}

/// Offers a board to GDB until interrupted.
pub(crate) fn gdb(common: &Common, screen: &Screen, args: GdbArgs) -> Result<u8, Failure> {
    with_port(common, screen, "gdb", &args.at, Lasting::Flash, async |port: &Port| {
        if args.reset {
            let halted = port.handle.reset(ResetInto::Halt).await;
            halted.map_err(|error| failed(&error, &port.place))?;
        }
        let server = GdbServer::start(&GdbEndpoint::Tcp(args.listen), Box::new(port.debuggee()))
            .map_err(|error| {
                Failure::new(Fault::Lab, format!("could not listen on {}: {error}", args.listen))
            })?;
        let address = server.address();
        if screen.json() {
            screen.out_json(&json!({ "place": port.place, "address": address.to_string() }));
        } else {
            screen.out(&address.to_string());
            screen.say(&format!("gdb-multiarch APP.elf -ex 'target remote {address}'"));
            screen.say("Ctrl-C ends");
        }
        port.until_stopped().await;
        server.stop();
        Ok((exit::PASS, Leave::Running))
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| {
        Failure::new(Fault::Usage, format!("could not read {}: {error}", path.display()))
    })
}

/// Reads the names and lines of an image.
pub(super) fn symbols_of(path: &Path) -> Result<Symbols, Failure> {
    Symbols::load(&read(path)?).map_err(|error| {
        let words = format!("no names can be read from {}: {error}", path.display());
        Failure::new(Fault::Usage, words).help("give the ELF file that was built, with -g")
    })
}

fn show(screen: &Screen, found: &PostMortem) {
    if screen.json() {
        return screen.out_json(found);
    }
    let paint = screen.out_paint();
    screen.out(&paint.paint(Style::Bold, &one_line(&found.summary)));
    for (number, frame) in found.frames.iter().enumerate() {
        let kind = match (frame.inlined, frame.exception) {
            (true, _) => " (inlined)",
            (_, true) => " (exception)",
            _ => "",
        };
        let function = frame.function.as_deref().unwrap_or("??");
        let at = match (&frame.file, frame.line) {
            (Some(file), Some(line)) => format!(" at {file}:{line}"),
            _ => String::new(),
        };
        let line = format!("#{number:<2} {:#010x} in {function}{at}{kind}", frame.pc);
        screen.out(&escape(line.as_bytes()).to_string());
    }
    for line in found.status.iter().chain(&found.limits) {
        screen.out(&paint.paint(Style::Dim, &one_line(line)));
    }
}
