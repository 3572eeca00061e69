//! Checks of what a debug probe finds on the emulated board.

use super::Subject;
use crate::document::{Located, did_you_mean};
use crate::profile::MemoryKind;
use crate::profile::raw::{RawDebug, RawMemory};

/// Bytes of RAM the probe borrows.
const SCRATCH: u64 = 32;

impl Subject<'_> {
    fn debug(&self) -> Option<&Located<RawDebug>> {
        self.raw.emulation.as_ref()?.value.debug.as_ref()
    }

    fn regions(&self) -> impl Iterator<Item = &RawMemory> {
        self.raw.memory.iter().flat_map(|list| &list.value).map(|region| &region.value)
    }
}

fn is(region: &RawMemory, kind: MemoryKind) -> bool {
    region.kind.as_ref().is_some_and(|found| found.value == kind)
}

pub(super) fn scratch_lies_in_ram(subject: &Subject<'_>, check: &'static str) {
    let Some(scratch) = subject.debug().and_then(|debug| debug.value.scratch.as_ref()) else {
        return;
    };
    let start = u64::from(scratch.value);
    let bounds = |region: &RawMemory| {
        let bounds = region.start.as_ref().zip(region.size.as_ref());
        bounds.map(|(first, size)| (first.value.0, size.value.0)).filter(|(_, size)| *size > 0)
    };
    let ram = subject.regions().filter(|region| is(region, MemoryKind::Ram)).map(bounds);
    // Without RAM, or where its bounds were refused, that is what is reported.
    let Some(ram) = ram.collect::<Option<Vec<_>>>().filter(|ram| !ram.is_empty()) else { return };
    let fits = |&(first, size): &(u64, u64)| {
        first <= start && start + SCRATCH <= first.saturating_add(size)
    };
    if !start.is_multiple_of(4) || !ram.iter().any(fits) {
        let message = format!("`scratch` needs {SCRATCH} bytes of RAM, aligned to 4");
        let help = "take the last bytes of a `[[memory]]` of kind \"ram\"";
        subject.findings.add(check, scratch.at(), message, help);
    }
}

pub(super) fn identity_fits_its_fields(subject: &Subject<'_>, check: &'static str) {
    let Some(debug) = subject.debug().map(|debug| &debug.value) else { return };
    let fields = [
        ("jep106_bank", debug.jep106_bank.as_ref().map(|f| (f.at(), u16::from(f.value))), 15),
        ("jep106_code", debug.jep106_code.as_ref().map(|f| (f.at(), u16::from(f.value))), 127),
        ("part", debug.part.as_ref().map(|f| (f.at(), f.value)), 0xfff),
    ];
    for (name, field, most) in fields {
        if let Some((at, value)) = field
            && value > most
        {
            let message = format!("`{name}` is at most {most:#x}");
            let help = "take it from the chip's reference manual: its ROM table's PIDR registers";
            subject.findings.add(check, at, message, help);
        }
    }
}

pub(super) fn program_memory_exists(subject: &Subject<'_>, check: &'static str) {
    let Some(debug) = subject.debug() else { return };
    let names = subject.regions().filter_map(|region| Some(region.name.as_ref()?.value.as_str()));
    let names: Vec<&str> = names.collect();
    match &debug.value.program {
        Some(name) if !names.contains(&name.value.as_str()) => {
            let message = "`program` names no memory region".to_owned();
            let help = did_you_mean(&name.value, names.iter().copied());
            subject.findings.add(check, name.at(), message, help);
        }
        None if !subject.regions().any(|region| is(region, MemoryKind::Flash)) => {
            let message = "there is no flash a program could be in";
            let help = "name the `[[memory]]` that holds it: `program = \"...\"`";
            subject.findings.add(check, debug.at(), message, help);
        }
        Some(_) | None => {}
    }
}

pub(super) fn overlay_words_are_aligned(subject: &Subject<'_>, check: &'static str) {
    let overlay = subject.debug().and_then(|debug| debug.value.overlay.as_ref());
    for word in overlay.iter().flat_map(|list| &list.value) {
        let Some(address) = &word.value.address else { continue };
        if !address.value.is_multiple_of(4) {
            let message = "an overlay is one aligned word";
            let help = "round the address down to a multiple of 4";
            subject.findings.add(check, address.at(), message, help);
        }
    }
}
