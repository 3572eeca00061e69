//! From the tables of a profile to the profile.

use std::collections::BTreeSet;

use super::checks::{self, Subject};
use super::deploy::DeployMethod;
use super::fault_sets::lower_faults;
use super::raw::{
    RawDebug, RawDeploy, RawEmulation, RawHealth, RawKnownGood, RawLimits, RawProfile, RawQuirks,
    RawRecovery, RawStage,
};
use super::{
    BoardProfile, BootStage, ConsoleKind, ConsoleSpec, DebugSpec, Deploy, Emulation, FaultSets,
    FaultSignature, HealthSpec, KnownGoodSpec, Limits, MemoryKind, MemoryRegion, Quirks, SendReady,
    StageProbe, USUAL_BAUD, usb,
};
use crate::Problems;
use crate::document::{Findings, Located, document_schema, open};
use crate::recovery::Recovery;

const KIND: &str = "board profile";
const VERSION: u32 = 1;

impl BoardProfile {
    /// Reads a profile. `origin` says where the text came from: a path, or `built-in NAME`.
    ///
    /// # Errors
    /// Every problem of the text, with its place.
    pub fn parse(origin: &str, text: &str, faults: &FaultSets) -> Result<Self, Problems> {
        let findings = Findings::new();
        let raw = open::<RawProfile>(KIND, VERSION, text, &findings);
        let profile = raw.and_then(|raw| {
            checks::run(&Subject { raw: &raw.value, origin, faults, findings: &findings });
            lower(raw.value, origin, faults)
        });
        findings.finish(KIND, origin, text, profile)
    }

    /// Returns the JSON Schema of profiles, as committed in `board-profiles/schema.json`.
    pub fn json_schema() -> String {
        document_schema::<RawProfile>("Jig board profile")
    }
}

/// Returns the values of a list that may be missing.
fn values<T, U>(
    list: Option<Located<Vec<Located<T>>>>,
    lower: impl Fn(T) -> Option<U>,
) -> Option<Vec<U>> {
    let list = list.map(|list| list.value).unwrap_or_default();
    list.into_iter().map(|item| lower(item.value)).collect()
}

fn value_or<T>(value: Option<Located<T>>, default: T) -> T {
    value.map_or(default, |value| value.value)
}

/// Lowers what the checks have passed; `None` only where something was reported.
fn lower(raw: RawProfile, origin: &str, sets: &FaultSets) -> Option<BoardProfile> {
    let mut faults: Vec<FaultSignature> = Vec::new();
    match &raw.faults {
        None => faults.extend(sets.names().filter_map(|name| sets.get(name)).flatten().cloned()),
        Some(list) => {
            for set in &list.value {
                faults.extend_from_slice(sets.get(&set.value)?);
            }
        }
    }
    faults.extend(lower_faults(raw.fault.as_ref().map_or(&[], |list| list.value.as_slice()))?);
    let memory = values(raw.memory, |region| {
        Some(MemoryRegion {
            name: region.name?.value,
            kind: region.kind?.value,
            start: region.start?.value.0,
            size: region.size?.value.0,
        })
    })?;
    Some(BoardProfile {
        id: raw.id?.value,
        title: raw.title?.value,
        arch: raw.arch?.value,
        status: raw.status.map(|status| status.value),
        sources: values(raw.sources, Some)?,
        usb: values(raw.usb, usb::lower)?,
        chip: raw.chip.map(|chip| chip.value),
        features: values(raw.features, |feature| Some(feature.0.to_owned()))?
            .into_iter()
            .collect::<BTreeSet<String>>(),
        consoles: values(raw.console, |console| {
            let kind = console.kind?.value;
            let baud = match kind {
                ConsoleKind::Uart => value_or(console.baud, USUAL_BAUD),
                ConsoleKind::Semihosting | ConsoleKind::Rtt | ConsoleKind::Shell => 0,
            };
            let channel = value_or(console.channel, 0);
            Some(ConsoleSpec { name: console.name?.value, kind, baud, channel })
        })?,
        emulation: match raw.emulation {
            Some(emulation) => Some(lower_emulation(emulation.value, &memory)?),
            None => None,
        },
        deploy: match raw.deploy {
            Some(deploy) => Some(lower_deploy(deploy.value)?),
            None => None,
        },
        memory,
        boot_banner: raw.boot_banner.map(|pattern| pattern.value),
        allow_output: values(raw.allow_output, Some)?,
        shell: match raw.shell {
            Some(shell) => Some(crate::shell::lower(shell.value)?),
            None => None,
        },
        stages: values(raw.stage, lower_stage)?,
        faults,
        limits: raw.limits.map_or_else(Limits::default, |limits| lower_limits(limits.value)),
        recovery: match raw.recovery {
            Some(recovery) => lower_recovery(recovery.value)?,
            None => Recovery::default(),
        },
        health: match raw.health {
            Some(health) => lower_health(health.value)?,
            None => HealthSpec::default(),
        },
        origin: origin.to_owned(),
    })
}

fn lower_recovery(raw: RawRecovery) -> Option<Recovery> {
    let default = Recovery::default();
    Some(Recovery {
        ladder: match raw.ladder {
            Some(steps) => steps.value.into_iter().map(|step| step.value).collect(),
            None => default.ladder,
        },
        max_recoveries: value_or(raw.max_recoveries, default.max_recoveries),
        timeout: value_or(raw.timeout, default.timeout),
        long_off: value_or(raw.long_off, default.long_off),
    })
}

fn lower_emulation(raw: RawEmulation, memory: &[MemoryRegion]) -> Option<Emulation> {
    Some(Emulation {
        program: raw.program?.value,
        machine: raw.machine?.value,
        args: values(raw.args, Some)?,
        image_args: values(raw.image_args, Some)?,
        image_set: raw.image_set.map(|set| set.value),
        semihosting: raw.semihosting.is_some_and(|on| on.value == Some(true)),
        quirks: raw.quirks.map_or_else(Quirks::default, |quirks| lower_quirks(quirks.value)),
        debug: match raw.debug {
            Some(debug) => Some(lower_debug(debug.value, memory)?),
            None => None,
        },
        known_good: match raw.known_good {
            Some(spec) => Some(lower_known_good(spec.value)?),
            None => None,
        },
    })
}

fn lower_known_good(raw: RawKnownGood) -> Option<KnownGoodSpec> {
    Some(KnownGoodSpec {
        start: raw.start?.value,
        setup: values(raw.setup, |word| Some((word.address?.value, word.value?.value)))?,
        send: raw.send?.value,
        ready: match raw.ready.map(|ready| ready.value) {
            Some(ready) => Some(SendReady {
                status: ready.status?.value,
                mask: ready.mask?.value,
                value: ready.value?.value,
            }),
            None => None,
        },
        bytes: value_or(raw.bytes, false),
    })
}

fn lower_debug(raw: RawDebug, memory: &[MemoryRegion]) -> Option<DebugSpec> {
    let named = raw.program.map(|name| name.value);
    let holds_program = |region: &&MemoryRegion| match &named {
        Some(name) => region.name == *name,
        None => region.kind == MemoryKind::Flash,
    };
    Some(DebugSpec {
        core: raw.core?.value,
        scratch: raw.scratch?.value,
        jep106_bank: raw.jep106_bank?.value,
        jep106_code: raw.jep106_code?.value,
        part: raw.part?.value,
        flash: raw.flash?.value,
        program: memory.iter().filter(holds_program).cloned().collect(),
        overlay: values(raw.overlay, |word| Some((word.address?.value, word.value?.value)))?,
    })
}

fn lower_deploy(raw: RawDeploy) -> Option<Deploy> {
    Some(match raw.method.as_ref()?.value {
        DeployMethod::Probe => Deploy::Probe,
        DeployMethod::EmulatorLoader => Deploy::EmulatorLoader,
        DeployMethod::ImageSet => Deploy::ImageSet,
        DeployMethod::Command => Deploy::Command(raw.keys().lower()?),
        DeployMethod::Volume => Deploy::Volume(raw.volume_keys().lower()?.over(None)),
    })
}

fn lower_quirks(raw: RawQuirks) -> Quirks {
    Quirks {
        poke_after_input: value_or(raw.poke_after_input, false),
        drops_early_input: value_or(raw.drops_early_input, false),
        freezes_when_unread: value_or(raw.freezes_when_unread, false),
        drops_when_unread: value_or(raw.drops_when_unread, false),
    }
}

fn lower_stage(raw: RawStage) -> Option<BootStage> {
    let probe = match (raw.console, raw.banner) {
        (Some(pattern), None) => StageProbe::Console(pattern.value?),
        (None, Some(banner)) => {
            let banner = banner.value?;
            StageProbe::Banner { port: banner.port?.value, pattern: banner.pattern?.value }
        }
        (Some(_), Some(_)) | (None, None) => return None,
    };
    Some(BootStage { name: raw.name?.value, probe, timeout: raw.timeout?.value })
}

fn lower_limits(raw: RawLimits) -> Limits {
    let default = Limits::default();
    Limits {
        flood_bytes: raw.flood.map_or(default.flood_bytes, |flood| flood.value.0),
        boot_loop: value_or(raw.boot_loop, default.boot_loop),
        settle: value_or(raw.settle, default.settle),
        silence: value_or(raw.silence, default.silence),
    }
}

fn lower_health(raw: RawHealth) -> Option<HealthSpec> {
    let default = HealthSpec::default();
    Some(HealthSpec {
        checks: match raw.checks {
            Some(checks) => Some(values(Some(checks), Some)?),
            None => None,
        },
        interval: value_or(raw.interval, default.interval),
        free_disk: raw.free_disk.map_or(default.free_disk, |size| size.value.0),
        free_memory: raw.free_memory.map_or(default.free_memory, |size| size.value.0),
        free_handles: raw.free_handles.map_or(default.free_handles, |n| u64::from(n.value)),
        clock_skew: value_or(raw.clock_skew, default.clock_skew),
    })
}
