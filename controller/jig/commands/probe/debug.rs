//! `jig bt`, `jig dump` and `jig gdb`.

use std::fs;
use std::ops::Range;
use std::path::Path;

use jig_model::post_mortem::PostMortem;
use jig_model::{Fault, exit};
use jig_probe::{
    CoreDump, CoreSnapshot, CoreState, GdbEndpoint, GdbServer, Leave, RegisterValue, ResetInto,
    Symbols, Why, explain,
};
use jig_rig::console::escape;
use serde_json::json;

use super::help::failed;
use super::port::{Lasting, Port, with_port};
use crate::args::{BtArgs, Common, DumpArgs, GdbArgs, ProbeTarget, Target};
use crate::failure::Failure;
use crate::render::{Screen, Style, byte_size, one_line};

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
    with_port(common, screen, &at, Lasting::Board, async |port: &Port| {
        let (snapshot, leave) = look(port, &around_stacks).await?;
        show(screen, &explain(&snapshot, symbols.as_ref(), Why::Fault));
        Ok((exit::PASS, leave))
    })
}

/// Saves registers and memory. A running core is stopped for it.
pub(crate) fn dump(common: &Common, screen: &Screen, args: DumpArgs) -> Result<u8, Failure> {
    with_port(common, screen, &args.at, Lasting::Board, async |port: &Port| {
        let wanted = |ram: Vec<Range<u64>>, _: &[RegisterValue]| match args.memory.as_slice() {
            [] => ram,
            named => named.to_vec(),
        };
        let (snapshot, leave) = look(port, &wanted).await?;
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

/// Chooses what a backtrace needs of the RAM: all of small regions, the start of large ones,
/// where handlers have stacks of their own, and what lies around the stack pointers. A probe
/// carries some 100 KiB a second.
fn around_stacks(ram: Vec<Range<u64>>, registers: &[RegisterValue]) -> Vec<Range<u64>> {
    const SMALL: u64 = 256 << 10;
    const START: u64 = 64 << 10;
    const BELOW: u64 = 1 << 10;
    const ABOVE: u64 = 64 << 10;
    let stacks = registers.iter().filter(|one| matches!(&*one.name, "sp" | "msp" | "psp"));
    let stacks: Vec<u64> = stacks.filter_map(|one| u64::try_from(one.value).ok()).collect();
    let choose = |region: Range<u64>| {
        if region.end - region.start <= SMALL {
            return vec![region];
        }
        let near = stacks.iter().filter(|sp| region.contains(sp)).map(|sp| {
            sp.saturating_sub(BELOW).max(region.start)..sp.saturating_add(ABOVE).min(region.end)
        });
        let start = region.start..region.start + START;
        std::iter::once(start).chain(near).collect()
    };
    ram.into_iter().flat_map(choose).collect()
}

/// Chooses what to copy of the RAM, knowing the registers.
type Choice<'a> = dyn Fn(Vec<Range<u64>>, &[RegisterValue]) -> Vec<Range<u64>> + 'a;

/// Copies a core's registers and the memory that is wanted of it, and leaves it as it was.
async fn look(port: &Port, wanted: &Choice<'_>) -> Result<(CoreSnapshot, Leave), Failure> {
    let told = |error| failed(&error, &port.place);
    let runs = match port.handle.state().await.map_err(told)? {
        CoreState::Running | CoreState::Sleeping => true,
        CoreState::Halted { .. } | CoreState::LockedUp => false,
    };
    if runs {
        port.handle.halt().await.map_err(told)?;
    }
    let copied = async {
        let registers = port.handle.registers().await?;
        port.handle.snapshot(wanted(port.ram(), &registers)).await
    };
    let snapshot = copied.await;
    if runs {
        port.handle.run().await.map_err(told)?;
    }
    let leave = if runs { Leave::Running } else { Leave::Halted };
    Ok((snapshot.map_err(told)?, leave))
}

/// Offers a board to GDB until interrupted.
pub(crate) fn gdb(common: &Common, screen: &Screen, args: GdbArgs) -> Result<u8, Failure> {
    with_port(common, screen, &args.at, Lasting::Flash, async |port: &Port| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backtrace_copies_little_of_large_memories() {
        let sp = |value| RegisterValue { name: "sp".to_owned(), bits: 32, value };
        let ram = vec![0..0x4000, 0x2000_0000..0x2040_0000];
        let near_top = around_stacks(ram.clone(), &[sp(0x203f_ff00)]);
        let expected = [0..0x4000, 0x2000_0000..0x2001_0000, 0x203f_fb00..0x2040_0000];
        assert_eq!(near_top, expected);
        assert_eq!(around_stacks(ram, &[sp(u128::MAX)]).len(), 2);
    }
}
