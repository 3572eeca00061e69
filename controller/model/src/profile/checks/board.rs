//! Checks of what the board is.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Subject, unique};
use crate::document::{Located, did_you_mean};
use crate::profile::fault_sets::check_texts;
use crate::profile::health::{INTERVAL_RANGE, SKEW_RANGE};
use crate::profile::limits::{BAUD_RANGE, BOOT_LOOP_RANGE, SETTLE_RANGE, STORM_RANGE, WAIT_RANGE};
use crate::profile::raw::{RawConsole, RawMemory, RawStage};
use crate::profile::{ArgPart, ConsoleKind, MemoryKind, arg_parts};
use crate::shell::check_in_profile;

impl Subject<'_> {
    fn memory(&self) -> impl Iterator<Item = &Located<RawMemory>> {
        self.raw.memory.iter().flat_map(|list| &list.value)
    }

    fn consoles(&self) -> impl Iterator<Item = &Located<RawConsole>> {
        self.raw.console.iter().flat_map(|list| &list.value)
    }

    pub(super) fn stages(&self) -> impl Iterator<Item = &Located<RawStage>> {
        self.raw.stage.iter().flat_map(|list| &list.value)
    }
}

/// Returns the file name of an origin without `.toml`, if the origin is such a file or is
/// built in; a text from elsewhere (a pipe) has no name to compare with.
fn stem(origin: &str) -> Option<&str> {
    let name = origin.strip_prefix("built-in ").unwrap_or(origin);
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    match name.strip_suffix(".toml") {
        Some(stem) => Some(stem),
        None => origin.starts_with("built-in ").then_some(name),
    }
}

pub(super) fn id_is_the_file_name(subject: &Subject<'_>, check: &'static str) {
    if let Some(id) = subject.raw.id.as_ref().filter(|id| id.value.chip().is_some()) {
        let message = "a profile cannot be named as a chip is";
        let help = "give the board a name of its own, such as \"my-board\", and the chip in `chip`";
        subject.findings.add(check, id.at(), message, help);
    } else if let (Some(id), Some(stem)) = (&subject.raw.id, stem(subject.origin))
        && id.value.as_str() != stem
    {
        let message = format!("the id is {:?}, but the file is called {stem:?}", id.value.as_str());
        let help = format!("write `id = {stem:?}` or rename the file to `{}.toml`", id.value);
        subject.findings.add(check, id.at(), message, help);
    }
}

pub(super) fn title_says_something(subject: &Subject<'_>, check: &'static str) {
    let titles = [(&subject.raw.title, "title"), (&subject.raw.chip, "chip")];
    for (title, key) in titles {
        let Some(title) = title else { continue };
        if title.value.trim().is_empty() || title.value.chars().any(char::is_control) {
            let message = format!("`{key}` is empty or holds control characters");
            let help = match key {
                "chip" => "name the chip or remove the line",
                _ => "say what the board is, such as \"BBC micro:bit (nRF51822)\"",
            };
            subject.findings.add(check, title.at(), message, help);
        }
    }
}

pub(super) fn features_come_once(subject: &Subject<'_>, check: &'static str) {
    let mut seen = Vec::new();
    for feature in subject.raw.features.iter().flat_map(|list| &list.value) {
        if seen.contains(&feature.value.0) {
            let message = format!("feature {:?} is listed twice", feature.value.0);
            subject.findings.add(check, feature.at(), message, "remove one of them");
        }
        seen.push(feature.value.0);
    }
}

pub(super) fn fault_sets_exist(subject: &Subject<'_>, check: &'static str) {
    let mut seen = Vec::new();
    for set in subject.raw.faults.iter().flat_map(|list| &list.value) {
        let shown: String = set.value.chars().take(40).collect();
        if subject.faults.get(&set.value).is_none() {
            let message = format!("there is no fault set {shown:?}");
            let help = did_you_mean(&set.value, subject.faults.names());
            subject.findings.add(check, set.at(), message, help);
        } else if seen.contains(&&set.value) {
            let message = format!("fault set {shown:?} is listed twice");
            subject.findings.add(check, set.at(), message, "remove one of them");
        } else {
            seen.push(&set.value);
        }
    }
}

pub(super) fn fault_names_are_unique(subject: &Subject<'_>, check: &'static str) {
    let own = || subject.raw.fault.iter().flat_map(|list| &list.value);
    let names = own().filter_map(|fault| fault.value.name.as_ref());
    unique(check, "fault", names.clone(), |name| name, subject.findings);
    let sets: BTreeSet<&str> = match &subject.raw.faults {
        None => subject.faults.names().collect(),
        Some(list) => list.value.iter().map(|set| set.value.as_str()).collect(),
    };
    for name in names {
        let holds = |set: &&&str| {
            subject.faults.get(set).is_some_and(|set| set.iter().any(|f| f.name == name.value))
        };
        if let Some(set) = sets.iter().find(holds) {
            let message = format!("fault set {set:?} has a fault {:?} already", name.value);
            subject.findings.add(check, name.at(), message, "rename this one or remove it");
        }
    }
}

pub(super) fn faults_have_one_text(subject: &Subject<'_>, check: &'static str) {
    let own = subject.raw.fault.as_ref().map_or(&[][..], |list| list.value.as_slice());
    check_texts(own, check, subject.findings);
}

pub(super) fn memory_names_are_unique(subject: &Subject<'_>, check: &'static str) {
    let names = subject.memory().filter_map(|region| region.value.name.as_ref());
    unique(check, "memory", names, |name| name, subject.findings);
}

pub(super) fn memory_has_a_size(subject: &Subject<'_>, check: &'static str) {
    for region in subject.memory() {
        let (Some(start), Some(size)) = (&region.value.start, &region.value.size) else { continue };
        let problem = if size.value.0 == 0 {
            ("the region is empty", "give its size, or remove it")
        } else if start.value.0.checked_add(size.value.0).is_none() {
            ("the region ends beyond the 64-bit address space", "check `start` and `size`")
        } else {
            continue;
        };
        subject.findings.add(check, size.at(), problem.0, problem.1);
    }
}

pub(super) fn memory_does_not_overlap(subject: &Subject<'_>, check: &'static str) {
    let name = |region: &RawMemory| {
        region.name.as_ref().map_or("?", |name| name.value.as_str()).chars().take(40).collect()
    };
    let mut regions: Vec<(u64, u64, String, &Located<RawMemory>)> = subject
        .memory()
        .filter_map(|region| {
            let start = region.value.start.as_ref()?.value.0;
            let end = start.checked_add(region.value.size.as_ref()?.value.0)?;
            (end > start).then(|| (start, end, name(&region.value), region))
        })
        .collect();
    regions.sort_by_key(|(start, end, ..)| (*start, *end));
    // Against the one that reaches furthest so far, so that a region inside another one
    // does not hide a third.
    let mut furthest: Option<(u64, String)> = None;
    for (start, end, name, region) in regions {
        if let Some((reach, other)) = &furthest
            && start < *reach
        {
            let message =
                format!("{name:?} begins at {start:#x}, but {other:?} ends at {reach:#x}");
            let place = region.value.start.as_ref().and_then(Located::at);
            let help = "regions must not overlap; leave aliases of the same memory out";
            subject.findings.add(check, place, message, help);
        }
        if furthest.as_ref().is_none_or(|(reach, _)| end > *reach) {
            furthest = Some((end, name));
        }
    }
}

/// An image needs somewhere to keep its variables.
pub(super) fn memory_has_ram(subject: &Subject<'_>, check: &'static str) {
    let kinds: Vec<MemoryKind> =
        subject.memory().filter_map(|r| r.value.kind.as_ref()).map(|kind| kind.value).collect();
    if !kinds.is_empty()
        && !kinds.contains(&MemoryKind::Ram)
        && kinds.len() == subject.memory().count()
    {
        let place = subject.raw.memory.as_ref().and_then(Located::at);
        let help = "add the board's RAM as a `[[memory]]` of `kind = \"ram\"`";
        subject.findings.add(check, place, "the board has memory but no RAM", help);
    }
}

pub(super) fn a_console_exists(subject: &Subject<'_>, check: &'static str) {
    let Some(list) = &subject.raw.console else { return };
    if list.value.is_empty() {
        let help = "add one: `[[console]]`, `name = \"uart0\"`, `kind = \"uart\"`";
        subject.findings.add(check, list.at(), "the board has no console", help);
    }
}

pub(super) fn console_names_are_unique(subject: &Subject<'_>, check: &'static str) {
    let names = subject.consoles().filter_map(|console| console.value.name.as_ref());
    unique(check, "console", names, |name| name.as_str(), subject.findings);
}

pub(super) fn baud_rates_are_sane(subject: &Subject<'_>, check: &'static str) {
    for console in subject.consoles() {
        let (Some(kind), Some(baud)) = (&console.value.kind, &console.value.baud) else { continue };
        match kind.value {
            ConsoleKind::Semihosting => subject.findings.add(
                check,
                baud.at(),
                "a semihosting console has no baud rate",
                "remove the line",
            ),
            ConsoleKind::Uart if !BAUD_RANGE.contains(&baud.value) => subject.findings.add(
                check,
                baud.at(),
                format!("{} bits per second is no usual rate", baud.value),
                format!("use {} to {}", BAUD_RANGE.start(), BAUD_RANGE.end()),
            ),
            ConsoleKind::Rtt => subject.findings.add(
                check,
                baud.at(),
                "an rtt console has no baud rate",
                "remove the line",
            ),
            ConsoleKind::Uart | ConsoleKind::Shell => {}
        }
    }
}

/// Most RTT channels that are looked at; no library of RTT offers as many.
const CHANNELS: u32 = 64;

pub(super) fn channels_belong_to_rtt(subject: &Subject<'_>, check: &'static str) {
    let mut seen = std::collections::BTreeSet::new();
    for console in subject.consoles() {
        let Some(kind) = &console.value.kind else { continue };
        let number = console.value.channel.as_ref();
        if kind.value != ConsoleKind::Rtt {
            if let Some(number) = number {
                let message = "only an rtt console has a channel";
                let help = "remove the line, or write `kind = \"rtt\"`";
                subject.findings.add(check, number.at(), message, help);
            }
            continue;
        }
        let place = number.map_or(kind.at(), |number| number.at());
        let value = number.map_or(0, |number| number.value);
        if value >= CHANNELS {
            let message = format!("there is no rtt channel {value}");
            let help = format!("use 0 to {}", CHANNELS - 1);
            subject.findings.add(check, place, message, help);
        } else if !seen.insert(value) {
            let message = format!("two consoles are rtt channel {value}");
            subject.findings.add(check, place, message, "give each a channel of its own");
        }
    }
}

pub(super) fn semihosting_consoles_have_semihosting(subject: &Subject<'_>, check: &'static str) {
    let Some(emulation) = &subject.raw.emulation else { return };
    // A value that was refused may have been meant to offer it.
    let offered = emulation.value.semihosting.as_ref().is_some_and(|on| on.value != Some(false));
    let mut found = 0;
    for console in subject.consoles() {
        let Some(kind) = &console.value.kind else { continue };
        match kind.value {
            ConsoleKind::Uart | ConsoleKind::Rtt | ConsoleKind::Shell => continue,
            ConsoleKind::Semihosting => found += 1,
        }
        if !offered {
            let message = "this console needs semihosting, which the emulation does not offer";
            let help = "write `semihosting = true` in `[emulation]`, or remove the console";
            subject.findings.add(check, kind.at(), message, help);
        } else if found > 1 {
            let message = "a processor has one semihosting console only";
            subject.findings.add(check, kind.at(), message, "remove all but one");
        }
    }
}

pub(super) fn shell_is_sound(subject: &Subject<'_>, check: &'static str) {
    let Some(shell) = &subject.raw.shell else { return };
    let is_uart = |kind: &Located<ConsoleKind>| kind.value == ConsoleKind::Uart;
    let uarts = subject.consoles().filter(|c| c.value.kind.as_ref().is_none_or(is_uart));
    let uarts: Vec<&str> =
        uarts.filter_map(|uart| uart.value.name.as_ref()).map(|name| name.value.as_str()).collect();
    let args = subject.emulation().and_then(|emulation| emulation.args.as_ref());
    let args = args.iter().flat_map(|args| &args.value);
    let parts = args.filter_map(|arg| arg_parts(&arg.value).ok()).flatten();
    let ports: Vec<&str> = parts
        .filter_map(|part| match part {
            ArgPart::Port(name) => Some(name),
            ArgPart::Text(_) | ArgPart::Image | ArgPart::Artifact(_) => None,
        })
        .collect();
    check_in_profile(&shell.value, &ports, &uarts, check, subject.findings);
}

pub(super) fn stage_names_are_unique(subject: &Subject<'_>, check: &'static str) {
    let names = subject.stages().filter_map(|stage| stage.value.name.as_ref());
    unique(check, "stage", names, |name| name, subject.findings);
}

pub(super) fn stages_have_one_probe(subject: &Subject<'_>, check: &'static str) {
    for stage in subject.stages() {
        let message = match (&stage.value.console, &stage.value.banner) {
            (Some(_), Some(_)) => "the stage has `console` and `banner`",
            (None, None) => "nothing tells when the stage is reached",
            (Some(_), None) | (None, Some(_)) => continue,
        };
        let help =
            "give one: `console = 'REGEX'`, or `banner = { port = \"ssh\", pattern = '^SSH-' }`";
        subject.findings.add(check, stage.at(), message, help);
    }
}

/// Reports a value outside its range.
pub(super) fn in_range<T: PartialOrd>(
    subject: &Subject<'_>,
    check: &'static str,
    value: Option<&Located<T>>,
    range: &RangeInclusive<T>,
    show: impl Fn(&T) -> String,
) {
    let Some(value) = value else { return };
    if !range.contains(&value.value) {
        let message = format!("{} is too much or too little here", show(&value.value));
        let help = format!("use {} to {}", show(range.start()), show(range.end()));
        subject.findings.add(check, value.at(), message, help);
    }
}

pub(super) fn show_duration(duration: &Duration) -> String {
    match duration.as_millis() {
        ms if ms % 1000 == 0 => format!("\"{}s\"", ms / 1000),
        ms => format!("\"{ms}ms\""),
    }
}

pub(super) fn stage_times_are_sane(subject: &Subject<'_>, check: &'static str) {
    for stage in subject.stages() {
        in_range(subject, check, stage.value.timeout.as_ref(), &WAIT_RANGE, show_duration);
    }
}

pub(super) fn limits_are_sane(subject: &Subject<'_>, check: &'static str) {
    let Some(limits) = subject.raw.limits.as_ref().map(|limits| &limits.value) else { return };
    let flood = limits.flood.clone().map(|flood| flood.map(|size| size.0));
    in_range(subject, check, flood.as_ref(), &STORM_RANGE, |size| format!("{size} bytes"));
    in_range(subject, check, limits.boot_loop.as_ref(), &BOOT_LOOP_RANGE, u32::to_string);
    in_range(subject, check, limits.settle.as_ref(), &SETTLE_RANGE, show_duration);
    in_range(subject, check, limits.silence.as_ref(), &WAIT_RANGE, show_duration);
}

pub(super) fn health_is_sane(subject: &Subject<'_>, check: &'static str) {
    let Some(health) = subject.raw.health.as_ref().map(|health| &health.value) else { return };
    in_range(subject, check, health.interval.as_ref(), &INTERVAL_RANGE, show_duration);
    in_range(subject, check, health.clock_skew.as_ref(), &SKEW_RANGE, show_duration);
    let Some(checks) = &health.checks else { return };
    if checks.value.is_empty() {
        let help = "name some, or remove the line to have all that fit the place";
        subject.findings.add(
            check,
            checks.at(),
            "a place without checks is never known to be well",
            help,
        );
    }
    let mut seen = BTreeSet::new();
    for kind in &checks.value {
        if !seen.insert(kind.value) {
            let message = format!("check {:?} is listed twice", kind.value.as_str());
            subject.findings.add(check, kind.at(), message, "remove one of them");
        }
    }
}
