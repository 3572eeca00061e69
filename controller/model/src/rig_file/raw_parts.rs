//! The tables of resets and flashers as they are written.

use std::time::Duration;

use serde_json::{Value, json};

use super::ResetLine;
use crate::document::{Choice, FromToml, Located, Node};
use crate::flasher::{RawOptions, VolumeFormat, flasher_table};
use crate::pattern::Pattern;
use crate::toml_table;
use crate::{ConsoleName, DeviceName};

toml_table! {
    /// A program that flashes the board of a place; all but `port` as in `[deploy]` of a profile.
    pub(super) struct RawFlasher {
        /// The program and its arguments, one by one and never a shell line; the profile's if
        /// missing. `{image}` is the image's path, `{elf}` the same of an ELF file, `{bin}` and
        /// `{hex}` the path of the image as a raw binary or as Intel HEX, `{script}` that of the
        /// `script`, `{address}` the image's lowest address, `{chip}` the chip, `{serial}` the
        /// serial number of the place's probe, `{port}` its serial port; an argument with
        /// `{serial?}` or `{port?}` is left out where there is none; `{{` and `}}` are braces.
        command: Vec<Located<String>> = optional,
        /// A flasher that Jig knows, instead of `command` (see: jig flashers). Other keys replace
        /// what is known of it.
        preset: String = optional,
        /// Options of the preset, by name.
        options: RawOptions = optional,
        /// Lines of the file that `{script}` names, with the same placeholders.
        script: Vec<Located<String>> = optional,
        /// A mass-storage volume that the image is copied to, instead of a program: its label, or the
        /// whole path of the folder where it is mounted.
        volume: String = optional,
        /// What the volume takes; "uf2" if there is a `family`, else "hex".
        format: VolumeFormat = optional,
        /// Family of the chip in UF2, such as 0xe48bff56 for the RP2040.
        family: u32 = optional,
        /// Serial port that the program is told as `{port}`, by its path; the only tty of the
        /// place's consoles if missing.
        port: String = optional,
        /// How long the program may take; "4m" if missing, "1m" for a volume.
        timeout: Duration = optional,
        /// How long the program may print nothing; as long as it may take if missing.
        idle_timeout: Duration = optional,
        /// Starts the boot loader by opening the port at 1200 baud, and waits at most so long for its
        /// port, which the program is told as `{port}`, or for its volume.
        touch: Duration = optional,
        /// Exit codes that mean success; [0] if missing.
        success_codes: Vec<Located<i32>> = optional,
        /// Output without which nothing was flashed, whatever the exit code.
        success_pattern: Pattern = optional,
        /// Output that means failure, whatever the exit code.
        failure_patterns: Vec<Located<Pattern>> = optional,
        /// Output that proves that the flash was read back and compared.
        verified_pattern: Pattern = optional,
        /// Output whose first group is a percentage of the work done, such as '(\\d+)%'.
        progress_pattern: Pattern = optional,
        /// Whether a debug probe beside it reads the flash back and compares; true if missing. False
        /// where addresses are offsets in a flash chip, or where the program changes the image.
        read_back: bool = optional,
    }
}

flasher_table!(RawFlasher, command);

toml_table! {
    /// What resets a board: a line of a console's port, an outlet, or a program.
    pub(super) struct RawResetTable {
        /// The console whose port has the line, as `[[place.console]]` names it.
        console: ConsoleName = optional,
        /// The line that resets the board while it is asserted: "rts" (the usual circuit of ESP
        /// boards: EN by RTS) or "dtr". The other line is released meanwhile.
        lines: ResetLine = optional,
        /// The power device of an outlet that holds the board in reset while it is off.
        device: DeviceName = optional,
        /// Its outlet, in the device's own words; missing where it has only one.
        outlet: String = optional,
        /// How long that outlet stays off; as the device says if missing.
        off_time: Duration = optional,
        /// A program that resets the board, and its arguments, one by one.
        command: Vec<Located<String>> = optional,
        /// How long the program may take; "10s" if missing.
        timeout: Duration = optional,
    }
}

/// What resets a board: a word, or a table.
#[derive(Debug, Clone)]
pub(super) enum RawReset {
    Word(ResetWord),
    Table(Box<RawResetTable>),
}

/// A part of the place that resets the board beside its own work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResetWord {
    Probe,
    Power,
}

impl Choice for ResetWord {
    const WHAT: &'static str = "part that resets";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("probe", Self::Probe), ("power", Self::Power)];
}

impl Choice for ResetLine {
    const WHAT: &'static str = "line of a serial port";
    const CHOICES: &'static [(&'static str, Self)] = &[("rts", Self::Rts), ("dtr", Self::Dtr)];
}

impl FromToml for RawReset {
    fn schema() -> Value {
        json!({ "anyOf": [ResetWord::schema(), RawResetTable::schema()] })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        match node.value() {
            toml::de::DeValue::Table(_) => {
                RawResetTable::read(node).map(|table| Self::Table(Box::new(table)))
            }
            _ => ResetWord::read(node).map(Self::Word),
        }
    }
}
