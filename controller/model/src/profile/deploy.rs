//! How an image gets onto a board: a fact of its profile.
//!
//! A profile that says nothing is deployed as its place suggests: an emulated board by the
//! emulator's loader or out of its image set, a real one through its debug probe.

use std::ops::Range;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::placeholder::PlaceholderError;
use crate::document::Choice;
use crate::flasher::{InstallHint, KnownFailure, VolumeCopy};
use crate::image::ImageKind;
use crate::pattern::Pattern;

/// Names the ways to deploy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeployMethod {
    /// A debug probe writes flash or RAM.
    Probe,
    /// The emulator loads the image when it starts.
    EmulatorLoader,
    /// The emulator boots files that were built for it; no image is deployed.
    ImageSet,
    /// A program of its own writes the flash.
    Command,
    /// The image is copied to a mass-storage volume.
    Volume,
}

impl Choice for DeployMethod {
    const WHAT: &'static str = "way to deploy";
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("probe", Self::Probe),
        ("emulator-loader", Self::EmulatorLoader),
        ("image-set", Self::ImageSet),
        ("command", Self::Command),
        ("volume", Self::Volume),
    ];
}

impl DeployMethod {
    /// Returns the stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::EmulatorLoader => "emulator-loader",
            Self::ImageSet => "image-set",
            Self::Command => "command",
            Self::Volume => "volume",
        }
    }
}

impl std::fmt::Display for DeployMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How an image gets onto a board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "there is one in a profile")]
pub enum Deploy {
    /// A debug probe writes flash or RAM.
    Probe,
    /// The emulator loads the image when it starts.
    EmulatorLoader,
    /// The emulator boots files that were built for it; no image is deployed.
    ImageSet,
    /// A program of its own writes the flash.
    Command(FlashCommand),
    /// The image is copied to a mass-storage volume.
    Volume(VolumeCopy),
}

impl Deploy {
    /// Returns the method without what belongs to it.
    pub fn method(&self) -> DeployMethod {
        match self {
            Self::Probe => DeployMethod::Probe,
            Self::EmulatorLoader => DeployMethod::EmulatorLoader,
            Self::ImageSet => DeployMethod::ImageSet,
            Self::Command(_) => DeployMethod::Command,
            Self::Volume(_) => DeployMethod::Volume,
        }
    }
}

/// A program that flashes a board, and how it is judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlashCommand {
    /// The preset that it is made of, if it is of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Program and arguments, one each and never a shell line, with placeholders (see
    /// [`deploy_parts`]). Never empty; the program holds none.
    pub argv: Vec<String>,
    /// Lines of the file that `{script}` names, with placeholders.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub script: Vec<String>,
    /// Formats of images that it takes; all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<ImageKind>,
    /// What to do with an image of another format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formats_help: Option<String>,
    /// Whether a debug probe finds the image where its addresses say. Not so where they are offsets
    /// in a flash chip, or where the program changes the image on its way.
    pub read_back: bool,
    /// How long it may take.
    pub timeout: Duration,
    /// How long it may print nothing; as long as it may take where there is none.
    pub idle_timeout: Option<Duration>,
    /// The boot loader is started by opening the port at 1200 baud, and its port takes so long to come
    /// at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub touch: Option<Duration>,
    /// Exit codes that mean success. Never empty.
    pub success_codes: Vec<i32>,
    /// Output without which nothing was flashed, whatever the exit code.
    pub success_pattern: Option<Pattern>,
    /// Output that means failure, whatever the exit code.
    pub failure_patterns: Vec<Pattern>,
    /// Failures that are known by their output, the most specific first. They explain a failure.
    #[serde(skip)]
    pub known_failures: Vec<KnownFailure>,
    /// Output that proves that the flash was read back and compared.
    pub verified_pattern: Option<Pattern>,
    /// Output whose first group is a percentage of the work done.
    pub progress_pattern: Option<Pattern>,
    /// Which package has the program, if that is known.
    #[serde(skip)]
    pub install: Option<InstallHint>,
}

/// How long a flasher may take if its profile does not say: 2 MiB at 115200 baud take three
/// minutes, and the slow ones among them say so.
pub(crate) const FLASH_TIMEOUT: Duration = Duration::from_secs(240);

impl FlashCommand {
    /// Returns a program of which nothing is known but its arguments: it has four minutes, and exit
    /// code 0 means success.
    pub fn new(argv: Vec<String>) -> Self {
        Self {
            preset: None,
            argv,
            script: Vec::new(),
            formats: Vec::new(),
            formats_help: None,
            read_back: true,
            timeout: FLASH_TIMEOUT,
            idle_timeout: None,
            touch: None,
            success_codes: vec![0],
            success_pattern: None,
            failure_patterns: Vec::new(),
            known_failures: Vec::new(),
            verified_pattern: None,
            progress_pattern: None,
            install: None,
        }
    }

    /// Checks that it takes an image of a format, as it is or converted.
    ///
    /// # Errors
    /// Says what it takes, and how such a file is made.
    pub fn takes(&self, kind: ImageKind) -> Result<(), FormatNotTaken> {
        let allowed = |kind: &ImageKind| {
            (self.formats.is_empty() || self.formats.contains(kind))
                && (*kind == ImageKind::Elf || !self.uses(&DeployPart::Elf))
        };
        if allowed(&kind) {
            return Ok(());
        }
        let takes: Vec<_> = ImageKind::ALL.into_iter().filter(allowed).collect();
        let help = self.formats_help.clone().unwrap_or_else(|| conversion(kind, &takes));
        Err(FormatNotTaken { program: self.program().to_owned(), kind, takes, help })
    }

    /// Returns the program.
    pub fn program(&self) -> &str {
        self.argv.first().map_or("", String::as_str)
    }

    /// Tells whether an argument, or a line of a script that is named, holds a placeholder.
    pub fn uses(&self, placeholder: &DeployPart<'_>) -> bool {
        let of = |texts: &[String]| {
            let parts = texts.iter().filter_map(|text| deploy_parts(text).ok()).flatten();
            parts.into_iter().any(|part| part == *placeholder)
        };
        of(&self.argv) || of(&self.script)
    }
}

/// Says that a program takes no images of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{program} takes {}, and this is {kind}", either(takes))]
pub struct FormatNotTaken {
    /// The program.
    pub program: String,
    /// The format of the image.
    pub kind: ImageKind,
    /// What it takes.
    pub takes: Vec<ImageKind>,
    /// How such a file is made.
    pub help: String,
}

fn either(kinds: &[ImageKind]) -> String {
    let kinds: Vec<_> = kinds.iter().map(ImageKind::to_string).collect();
    match kinds.as_slice() {
        [] => "no image".to_owned(),
        kinds => kinds.join(" or "),
    }
}

/// Says how a file of a format is made of another one, where the program's preset does not.
fn conversion(from: ImageKind, takes: &[ImageKind]) -> String {
    let named = if from == ImageKind::Hex { "objcopy -I ihex" } else { "objcopy" };
    if takes.contains(&ImageKind::Elf) && from != ImageKind::Elf {
        "give the ELF file that the build made".to_owned()
    } else if takes.contains(&ImageKind::Bin) {
        format!("{named} -O binary IMAGE app.bin, then give app.bin@ADDRESS")
    } else if from == ImageKind::Bin {
        "objcopy -I binary -O ihex --change-addresses ADDRESS app.bin app.hex".to_owned()
    } else {
        format!("{named} -O ihex IMAGE app.hex, then give app.hex")
    }
}

/// One part of a flasher's argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeployPart<'a> {
    /// Text that stays as it is.
    Text(&'a str),
    /// The path of the image, whatever its format: `{image}`.
    Image,
    /// The path of the image, which has to be an ELF file: `{elf}`.
    Elf,
    /// The path of the image as a raw binary: `{bin}`.
    Bin,
    /// The path of the image as Intel HEX: `{hex}`.
    Hex,
    /// The path of a file with the lines of the script: `{script}`.
    Script,
    /// The serial number of the place's probe: `{serial}`.
    Serial,
    /// The same; an argument with it is left out where there is none: `{serial?}`.
    SerialIfAny,
    /// The serial port of the place: `{port}`.
    Port,
    /// The same; an argument with it is left out where there is none: `{port?}`.
    PortIfAny,
    /// The chip of the place, as probe-rs names it: `{chip}`.
    Chip,
    /// The lowest address of the image, such as `0x8000`: `{address}`.
    Address,
}

/// The placeholders of a flasher's arguments, without braces.
pub(crate) const DEPLOY_PLACEHOLDERS: [&str; 11] = [
    "image", "elf", "bin", "hex", "script", "serial", "serial?", "port", "port?", "chip", "address",
];

/// Splits an argument into text and placeholders. `{{` and `}}` stand for single braces,
/// because OpenOCD's own commands are quoted with them.
///
/// # Errors
/// Refuses unknown placeholders and braces that stand alone.
pub fn deploy_parts(arg: &str) -> Result<Vec<DeployPart<'_>>, PlaceholderError> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(rest) = arg.get(at..).filter(|rest| !rest.is_empty()) {
        let brace = rest.find(['{', '}']).unwrap_or(rest.len());
        let (part, length) = if brace > 0 {
            (Some(DeployPart::Text(&rest[..brace])), brace)
        } else if rest.starts_with("{{") || rest.starts_with("}}") {
            (Some(DeployPart::Text(&rest[..1])), 2)
        } else {
            let length = rest.find('}').map_or(rest.len(), |end| end + 1);
            let part = match &rest[..length] {
                "{image}" => Some(DeployPart::Image),
                "{elf}" => Some(DeployPart::Elf),
                "{bin}" => Some(DeployPart::Bin),
                "{hex}" => Some(DeployPart::Hex),
                "{script}" => Some(DeployPart::Script),
                "{serial}" => Some(DeployPart::Serial),
                "{serial?}" => Some(DeployPart::SerialIfAny),
                "{port}" => Some(DeployPart::Port),
                "{port?}" => Some(DeployPart::PortIfAny),
                "{chip}" => Some(DeployPart::Chip),
                "{address}" => Some(DeployPart::Address),
                _ => None,
            };
            (part, length)
        };
        let span: Range<usize> = at..at + length;
        let shown = || rest[..length].chars().take(40).collect();
        parts.push(part.ok_or_else(|| PlaceholderError { text: shown(), span: span.clone() })?);
        at = span.end;
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_that_is_not_taken_is_answered_with_what_makes_another() {
        let command = |formats: &[ImageKind], argument: &str| FlashCommand {
            formats: formats.to_vec(),
            ..FlashCommand::new(vec!["loader".to_owned(), argument.to_owned()])
        };
        let any = command(&[], "{image}");
        assert!(ImageKind::ALL.into_iter().all(|kind| any.takes(kind).is_ok()));
        let (elf, hex, bin) = (ImageKind::Elf, ImageKind::Hex, ImageKind::Bin);
        for (formats, argument, kind, told, help) in [
            (
                vec![bin],
                "{bin}",
                elf,
                "loader takes a raw binary, and this is an ELF file",
                "objcopy -O binary IMAGE app.bin, then give app.bin@ADDRESS",
            ),
            (
                vec![bin],
                "{bin}",
                hex,
                "loader takes a raw binary, and this is Intel HEX",
                "objcopy -I ihex -O binary IMAGE app.bin, then give app.bin@ADDRESS",
            ),
            (
                vec![hex],
                "{hex}",
                elf,
                "loader takes Intel HEX, and this is an ELF file",
                "objcopy -O ihex IMAGE app.hex, then give app.hex",
            ),
            (
                vec![hex],
                "{hex}",
                bin,
                "loader takes Intel HEX, and this is a raw binary",
                "objcopy -I binary -O ihex --change-addresses ADDRESS app.bin app.hex",
            ),
            (
                vec![],
                "{elf}",
                hex,
                "loader takes an ELF file, and this is Intel HEX",
                "give the ELF file that the build made",
            ),
        ] {
            let refused = command(&formats, argument).takes(kind).unwrap_err();
            assert_eq!((refused.to_string().as_str(), refused.help.as_str()), (told, help));
        }
        let own =
            FlashCommand { formats_help: Some("make one".to_owned()), ..command(&[bin], "x") };
        assert_eq!(own.takes(elf).unwrap_err().help, "make one");
        assert!(own.takes(bin).is_ok());
    }

    #[test]
    fn parts_are_told_apart() {
        let parts = deploy_parts("program {{{image}}} {address}").unwrap();
        assert_eq!(
            parts,
            [
                DeployPart::Text("program "),
                DeployPart::Text("{"),
                DeployPart::Image,
                DeployPart::Text("}"),
                DeployPart::Text(" "),
                DeployPart::Address,
            ]
        );
        assert_eq!(deploy_parts(""), Ok(vec![]));
        for name in DEPLOY_PLACEHOLDERS {
            let arg = format!("{{{name}}}");
            let parts = deploy_parts(&arg).unwrap();
            assert!(matches!(parts[..], [part] if !matches!(part, DeployPart::Text(_))), "{arg}");
        }
        for (arg, span) in
            [("a{imge}", 1..7), ("a{", 1..2), ("}", 0..1), ("{image:x}", 0..9), ("é{x}", 2..5)]
        {
            assert_eq!(deploy_parts(arg).unwrap_err().span, span, "{arg}");
        }
    }
}
