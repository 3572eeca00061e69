//! `jig bt`, `jig dump` and `jig gdb`.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use jig_model::command::{CommandEvent, DebugAction, EventSink, Reply};
use jig_model::post_mortem::{PostMortem, StackFrame};
use jig_model::{Fault, byte_size, exit};
use jig_probe::{CoreDump, Symbols, Why, explain};
use jig_rig::console::escape;
use jig_rig::store::read_whole;
use serde_json::json;

use super::access::{debug, quiet};
use crate::args::{BacktraceOf, BtArgs, Common, DumpArgs, GdbArgs};
use crate::commands::execute::unexpected;
use crate::failure::Failure;
use crate::render::{Screen, Style, one_line};

/// Shows a backtrace of a board or of a core dump. A running core is stopped for it.
///
/// JSON: the post-mortem: summary, frames, registers, status, limits.
pub(crate) fn backtrace(common: &Common, screen: &Screen, args: BtArgs) -> Result<u8, Failure> {
    let BtArgs { of, image } = args;
    let at = match of {
        BacktraceOf::Board(at) => at,
        BacktraceOf::CoreDump(core) => {
            show(screen, &of_dump(&core, image.as_deref())?);
            return Ok(exit::PASS);
        }
    };
    let reply = debug(common, &at, DebugAction::Backtrace { image }, quiet(screen))?;
    let Reply::Backtrace(reply) = reply else { return Err(unexpected()) };
    show(screen, &reply.found);
    Ok(exit::PASS)
}

/// Explains a core dump.
fn of_dump(core: &Path, image: Option<&Path>) -> Result<PostMortem, Failure> {
    let symbols = image.map(|image| {
        Symbols::load(&read(image)?).map_err(|error| {
            let words = format!("no names can be read from {}: {error}", image.display());
            Failure::new(Fault::Usage, words).help("give the ELF file that was built, with -g")
        })
    });
    let symbols = symbols.transpose()?;
    let snapshot = CoreDump::read(&read(core)?).map_err(|error| {
        let words = format!("{} is no core dump: {error}", core.display());
        Failure::new(Fault::Usage, words).help("write one with: jig dump -b BOARD -o FILE")
    })?;
    Ok(explain(&snapshot, symbols.as_ref(), Why::Fault))
}

/// Most bytes of a core dump or of an image with its debug information.
const MAX_FILE: u64 = 1 << 30;

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    read_whole(path, MAX_FILE).map_err(|error| {
        Failure::new(Fault::Usage, format!("could not read {}: {error}", path.display()))
    })
}

/// Saves registers and memory. A running core is stopped for it.
///
/// Ends with the code of missing evidence if some of the memory could not be read.
///
/// JSON: `{"place","core","memory","unreadable","registers"}`: bytes that were read, and ranges
/// `{"start","end"}` that could not be; no `unreadable` if there are none.
pub(crate) fn dump(common: &Common, screen: &Screen, args: DumpArgs) -> Result<u8, Failure> {
    let DumpArgs { at, output, memory } = args;
    let reply = debug(common, &at, DebugAction::Dump { output, memory }, quiet(screen))?;
    let Reply::Dumped(reply) = reply else { return Err(unexpected()) };
    let complete = reply.unreadable.is_empty();
    if screen.json() {
        screen.out_json(&reply);
    } else {
        let (size, path) = (byte_size(reply.memory), reply.core.display());
        screen.out(&format!("{size} of memory and the registers to {path}"));
        if !complete {
            screen.insist(&unreadable_words(&reply.unreadable));
        }
        screen.say(&format!("look into it: jig bt --core {path} --elf APP.elf"));
    }
    Ok(if complete { exit::PASS } else { exit::INCONCLUSIVE })
}

fn unreadable_words(ranges: &[Range<u64>]) -> String {
    let size = byte_size(ranges.iter().map(|range| range.end - range.start).sum());
    let ranges: Vec<_> =
        ranges.iter().map(|range| format!("{:#x}..{:#x}", range.start, range.end)).collect();
    format!("{size} could not be read: {}", ranges.join(", "))
}

/// Offers a board to GDB until interrupted, and ends with the code of a cancelled command.
///
/// JSON: `{"place","address"}` as soon as it listens.
pub(crate) fn gdb(common: &Common, screen: &Screen, args: GdbArgs) -> Result<u8, Failure> {
    let GdbArgs { at, listen, allow_remote, reset } = args;
    let events = Arc::new(GdbEvents(screen.clone()));
    match debug(common, &at, DebugAction::Gdb { listen, allow_remote, reset }, events)? {
        // Nothing else ends it.
        Reply::Ended(_) => Ok(exit::CANCELLED),
        _ => Err(unexpected()),
    }
}

/// Says where a server listens.
struct GdbEvents(Screen);

impl EventSink for GdbEvents {
    fn event(&self, event: CommandEvent) {
        let Self(screen) = self;
        match event {
            CommandEvent::GdbServed { place, address } if screen.json() => {
                screen.out_json(&json!({ "place": place, "address": address }));
            }
            CommandEvent::GdbServed { address, .. } => {
                screen.out(&address);
                screen.say(&format!("gdb-multiarch APP.elf -ex 'target remote {address}'"));
                screen.say("Ctrl-C ends");
            }
            other => screen.event(other),
        }
    }
}

pub(super) fn show(screen: &Screen, found: &PostMortem) {
    if screen.json() {
        return screen.out_json(found);
    }
    let paint = screen.out_paint();
    screen.out(&paint.paint(Style::Bold, &one_line(&found.summary)));
    show_frames(screen, &found.frames);
    for thread in found.threads.iter().filter(|thread| !thread.frames.is_empty()) {
        let head = format!("thread {:?} {}", thread.name, thread.state);
        screen.out(&paint.paint(Style::Bold, &one_line(&head)));
        show_frames(screen, &thread.frames);
    }
    for line in found.status.iter().chain(&found.limits) {
        screen.out(&paint.paint(Style::Dim, &one_line(line)));
    }
}

fn show_frames(screen: &Screen, frames: &[StackFrame]) {
    for (number, frame) in frames.iter().enumerate() {
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
}
