//! What probe-rs is told about chips it does not know, or whose flash the emulator lacks.

use std::fmt::Write as _;

use jig_model::profile::{BoardProfile, DebugCore, FlashModel, MemoryKind, MemoryRegion};
use jig_model::rig_file::ProbePart;
use probe_rs::config::{Registry, TargetSelector};

use super::{About, VirtualBoardError};

/// Returns what probe-rs is to take the board for: the chip it knows if its flash algorithm
/// can work, else a description of its own.
pub(super) fn selector(about: &About) -> Result<TargetSelector, VirtualBoardError> {
    if let (FlashModel::Modelled, Some(chip)) = (about.spec.flash, &about.chip) {
        return Ok(TargetSelector::Unspecified(chip.clone()));
    }
    let refused =
        |error: probe_rs::config::RegistryError| VirtualBoardError::Description(Box::new(error));
    let mut registry = Registry::new();
    registry.add_target_family_from_yaml(&describe(about)).map_err(refused)?;
    let name = about.chip.as_ref().unwrap_or(&about.name);
    let target = registry.get_target_by_name(name).map_err(refused)?;
    Ok(TargetSelector::Specified(target))
}

/// What probe-rs is to be told of a board that it does not know as it is emulated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChipDescription {
    /// The chip's name in the text.
    pub chip: String,
    /// The text of a probe-rs target file.
    pub text: String,
}

impl ChipDescription {
    /// Describes an emulated board; nothing if probe-rs knows its chip, or no probe can drive
    /// it. A process that attaches to a served board needs it; in this process it is known.
    pub fn of(profile: &BoardProfile) -> Option<Self> {
        let spec = profile.emulation.as_ref()?.debug.as_ref()?;
        if spec.flash == FlashModel::Modelled && profile.chip.is_some() {
            return None;
        }
        let about = About::of(profile, spec);
        let chip = about.chip.clone().unwrap_or_else(|| about.name.clone());
        Some(Self { chip, text: describe(&about) })
    }
}

impl ChipDescription {
    /// Describes the board behind a place's probe, if it has to be: probe-rs does not know
    /// its chip, or the probe is served by a program, and the board emulated as described.
    /// A chip that the place names is what the place says it is.
    pub fn at_place(profile: &BoardProfile, probe: &ProbePart) -> Option<Self> {
        let unknown = profile.chip.is_none() || probe.is_served();
        Self::of(profile).filter(|_| probe.chip.is_none() && unknown)
    }
}

/// Writes a description in which all memory is loaded as RAM is.
fn describe(about: &About) -> String {
    let core = match about.spec.core {
        DebugCore::Armv6m => "armv6m",
        DebugCore::Armv7m => "armv7m",
        DebugCore::Armv7em | DebugCore::Armv7emFpu => "armv7em",
    };
    // Names are plain words in profiles; quoted all the same.
    let quote = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let chip = quote(about.chip.as_ref().unwrap_or(&about.name));
    let mut text = format!(
        "name: {}\nvariants:\n- name: {chip}\n  cores:\n  - name: main\n    type: {core}\n    \
         core_access_options: !Arm\n      ap: !v1 0\n  memory_map:\n",
        quote(&format!("{} (emulated)", about.name)),
    );
    let boots = |region: &MemoryRegion| about.spec.program.iter().any(|p| p.name == region.name);
    // probe-rs puts its own things into the first RAM it finds, so real RAM comes first.
    let mut memory: Vec<&MemoryRegion> = about.memory.iter().collect();
    memory.sort_by_key(|region| (boots(region), region.kind == MemoryKind::Flash, region.start));
    for region in memory {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "  - !Ram\n    name: {}\n    range:\n      start: {:#x}\n      end: {:#x}\n    cores:\n    \
             - main\n    access:\n      boot: {}\n",
            quote(&region.name),
            region.start,
            region.start.saturating_add(region.size),
            boots(region),
        );
    }
    text.push_str("  flash_algorithms: []\nflash_algorithms: []\n");
    text
}
