//! Checks of how a program on the emulated board sends a byte.

use super::Subject;
use crate::document::Located;
use crate::profile::Arch;
use crate::profile::raw::RawKnownGood;

/// Memory that the image needs, with room for a long list of writes.
const ROOM: u64 = 1024;

impl Subject<'_> {
    fn known_good(&self) -> Option<&Located<RawKnownGood>> {
        self.raw.emulation.as_ref()?.value.known_good.as_ref()
    }
}

pub(super) fn start_lies_in_memory(subject: &Subject<'_>, check: &'static str) {
    let Some(start) = subject.known_good().and_then(|spec| spec.value.start.as_ref()) else {
        return;
    };
    let arch = subject.raw.arch.as_ref().map(|arch| arch.value);
    if let Some(arch @ (Arch::Xtensa | Arch::Avr)) = arch {
        let message = format!("there is no known-good image for arch \"{arch}\"");
        subject.findings.add(check, start.at(), message, "remove `[emulation.known_good]`");
        return;
    }
    let first = u64::from(start.value);
    let regions = subject.raw.memory.iter().flat_map(|list| &list.value);
    let holds = |start: u64, size: u64| {
        first >= start && first.saturating_add(ROOM) <= start.saturating_add(size)
    };
    let fits = regions
        .filter_map(|region| region.value.start.as_ref().zip(region.value.size.as_ref()))
        .any(|(start, size)| holds(start.value.0, size.value.0));
    if !fits || !first.is_multiple_of(4) {
        let message = format!("`start` needs {ROOM} bytes of a `[[memory]]` behind it");
        let help = "give the address that the emulator starts at, such as the start of the flash";
        subject.findings.add(check, start.at(), message, help);
    }
}

pub(super) fn words_are_aligned(subject: &Subject<'_>, check: &'static str) {
    let Some(spec) = subject.known_good().map(|spec| &spec.value) else { return };
    let writes = spec.setup.iter().flat_map(|list| &list.value);
    let bytes = spec.bytes.as_ref().is_some_and(|bytes| bytes.value);
    let status = spec.ready.as_ref().and_then(|ready| ready.value.status.as_ref());
    let registers = spec.send.as_ref().into_iter().chain(status).filter(|_| !bytes);
    for address in writes.filter_map(|word| word.value.address.as_ref()).chain(registers) {
        if !address.value.is_multiple_of(4) {
            let message = "the address of a word is a multiple of 4";
            let help = "for registers of a byte that send and tell the status: `bytes = true`";
            subject.findings.add(check, address.at(), message, help);
        }
    }
}

pub(super) fn a_status_can_be_met(subject: &Subject<'_>, check: &'static str) {
    let ready = subject.known_good().and_then(|spec| spec.value.ready.as_ref());
    let Some(ready) = ready else { return };
    if let (Some(mask), Some(value)) = (&ready.value.mask, &ready.value.value)
        && value.value & !mask.value != 0
    {
        let message = "the program would wait for ever: `value` has bits that `mask` leaves out";
        let help = "`ready` holds when STATUS & `mask` is `value`";
        subject.findings.add(check, value.at(), message, help);
    }
}
