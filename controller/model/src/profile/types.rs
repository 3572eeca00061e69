//! The lowered profile: no half-valid state, nothing left to check.

use std::collections::BTreeSet;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Deploy, HealthSpec};
use crate::document::Choice;
use crate::pattern::Pattern;
use crate::recovery::Recovery;
use crate::rig_file::ResetLine;
use crate::shell::ShellTable;
use crate::{BoardId, Cause, ConsoleName};

/// Names the processor families an image can be built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arch {
    /// 32-bit Arm, any profile.
    Arm,
    /// 64-bit Arm.
    Aarch64,
    /// 32-bit RISC-V.
    Riscv32,
    /// 64-bit RISC-V.
    Riscv64,
    /// Xtensa, as in the ESP32.
    Xtensa,
    /// 8-bit AVR.
    Avr,
}

impl Choice for Arch {
    const WHAT: &'static str = "processor family";
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("arm", Self::Arm),
        ("aarch64", Self::Aarch64),
        ("riscv32", Self::Riscv32),
        ("riscv64", Self::Riscv64),
        ("xtensa", Self::Xtensa),
        ("avr", Self::Avr),
    ];
}

impl Arch {
    /// Returns the family that an ELF file for a machine is built for, if boards have it.
    pub fn of(machine: object::Architecture) -> Option<Self> {
        Some(match machine {
            object::Architecture::Arm => Self::Arm,
            object::Architecture::Aarch64 => Self::Aarch64,
            object::Architecture::Riscv32 => Self::Riscv32,
            object::Architecture::Riscv64 => Self::Riscv64,
            object::Architecture::Xtensa => Self::Xtensa,
            object::Architecture::Avr => Self::Avr,
            _ => return None,
        })
    }

    /// Tells whether an image for the given ELF machine runs on it.
    pub fn runs(self, machine: object::Architecture) -> bool {
        Self::of(machine) == Some(self)
    }

    /// Returns the stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Arm => "arm",
            Self::Aarch64 => "aarch64",
            Self::Riscv32 => "riscv32",
            Self::Riscv64 => "riscv64",
            Self::Xtensa => "xtensa",
            Self::Avr => "avr",
        }
    }
}

impl std::fmt::Display for Arch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Says what a memory region is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryKind {
    /// Keeps its content without power.
    Flash,
    /// Loses its content without power.
    Ram,
}

impl Choice for MemoryKind {
    const WHAT: &'static str = "kind of memory";
    const CHOICES: &'static [(&'static str, Self)] = &[("flash", Self::Flash), ("ram", Self::Ram)];
}

/// One region of a board's memory that an image may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryRegion {
    /// What people call it, such as `flash`.
    pub name: String,
    /// Flash or RAM.
    pub kind: MemoryKind,
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
}

impl MemoryRegion {
    /// Tells whether an address lies in it.
    pub fn contains(&self, address: u64) -> bool {
        address.checked_sub(self.start).is_some_and(|offset| offset < self.size)
    }
}

/// Says what carries a console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConsoleKind {
    /// A serial port of the board. On an emulator the n-th of them is its n-th `-serial`.
    Uart,
    /// The semihosting output of the processor.
    Semihosting,
    /// A channel of RTT: rings in the target's RAM that a debug probe empties and fills.
    Rtt,
    /// The output of commands that a plan runs on the target over SSH. Added where the place reaches
    /// its board so; no profile declares one.
    Shell,
}

impl Choice for ConsoleKind {
    const WHAT: &'static str = "kind of console";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("uart", Self::Uart), ("semihosting", Self::Semihosting), ("rtt", Self::Rtt)];
}

/// One console of a board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConsoleSpec {
    /// Its name.
    pub name: ConsoleName,
    /// What carries it.
    pub kind: ConsoleKind,
    /// Bits per second on a real serial line; 0 where there is none.
    pub baud: u32,
    /// The number of its RTT channel, both up and down; 0 where it has none.
    pub channel: u32,
}

/// What is peculiar to an emulated machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Quirks {
    /// Console input waits for the machine's next main-loop tick (about 1 s) unless the
    /// monitor is poked after each write.
    pub poke_after_input: bool,
    /// Console input sent before the firmware has enabled its UART is dropped.
    pub drops_early_input: bool,
    /// The whole machine, monitor included, freezes while nobody reads its console.
    pub freezes_when_unread: bool,
    /// Console output is dropped while nobody reads.
    pub drops_when_unread: bool,
}

/// How a board is emulated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Emulation {
    /// The program, such as `qemu-system-arm`; looked up in `PATH`.
    pub program: String,
    /// The `-machine` value.
    pub machine: String,
    /// Further arguments, placed before those Jig adds. `{artifact:NAME}` stands for a
    /// file of the image set, `{port:NAME}` for a free loopback TCP port.
    pub args: Vec<String>,
    /// Arguments that make the machine boot a deployed image; `{image}` stands for its path.
    pub image_args: Vec<String>,
    /// Name of the folder below `qemu-images/` that boots without a deployed image.
    pub image_set: Option<String>,
    /// Whether the processor's semihosting is offered to the firmware.
    pub semihosting: bool,
    /// What is peculiar.
    pub quirks: Quirks,
    /// What a debug probe finds; the virtual probe needs it.
    pub debug: Option<DebugSpec>,
    /// How a program sends a byte; Jig's own known-good image needs it.
    pub known_good: Option<KnownGoodSpec>,
}

/// How a program on an emulated board sends a byte by its first UART.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnownGoodSpec {
    /// Where the processor starts: its vectors (Cortex-M) or its first instruction.
    pub start: u32,
    /// Address and value of each word that is written first, in order.
    pub setup: Vec<(u32, u32)>,
    /// Address of the register that sends a byte.
    pub send: u32,
    /// When it takes one, if the program has to wait.
    pub ready: Option<SendReady>,
    /// Whether the registers to send and of the status are a byte wide, and not a word.
    pub bytes: bool,
}

/// When a UART takes a byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SendReady {
    /// Address of the status register.
    pub status: u32,
    /// The bits that count.
    pub mask: u32,
    /// Their value when a byte is taken.
    pub value: u32,
}

/// Names the processor cores the virtual probe can imitate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DebugCore {
    /// Cortex-M0, M0+, M1.
    Armv6m,
    /// Cortex-M3.
    Armv7m,
    /// Cortex-M4 without a floating-point unit.
    Armv7em,
    /// Cortex-M4F, M7.
    Armv7emFpu,
}

impl Choice for DebugCore {
    const WHAT: &'static str = "processor core";
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("armv6m", Self::Armv6m),
        ("armv7m", Self::Armv7m),
        ("armv7em", Self::Armv7em),
        ("armv7em-fpu", Self::Armv7emFpu),
    ];
}

/// Says what the emulator has where a chip has its program memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlashModel {
    /// Flash with its controller: the chip's real flash algorithm works.
    Modelled,
    /// Memory no bus access can write. The probe writes it, as the emulator's loader would.
    Plain,
    /// RAM, on the real board too; something else fills it at power-on. The probe keeps it
    /// without power.
    Ram,
}

impl Choice for FlashModel {
    const WHAT: &'static str = "flash model";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("modelled", Self::Modelled), ("plain", Self::Plain), ("ram", Self::Ram)];
}

/// What a debug probe finds on an emulated board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DebugSpec {
    /// The processor core.
    pub core: DebugCore,
    /// Address of 32 bytes of RAM the probe may borrow while the core stands.
    pub scratch: u32,
    /// JEP106 continuation codes of the chip's maker.
    pub jep106_bank: u8,
    /// JEP106 code of the chip's maker, without parity.
    pub jep106_code: u8,
    /// Part number, 12 bits.
    pub part: u16,
    /// What the emulator has where the program lives.
    pub flash: FlashModel,
    /// Where the program lives, and what is kept without power. Never empty.
    pub program: Vec<MemoryRegion>,
    /// Words by address that a probe reads instead of what the emulator holds.
    pub overlay: Vec<(u32, u32)>,
}

/// How a board's stage of booting is recognised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageProbe {
    /// The primary console prints a match.
    Console(Pattern),
    /// A forwarded TCP port answers with a banner that matches. (A connect alone proves
    /// nothing: the emulator accepts long before the guest listens.)
    Banner {
        /// Name of the port, as in `{port:NAME}` of the emulation's arguments.
        port: String,
        /// What the banner must match.
        pattern: Pattern,
    },
}

/// One stage a board goes through while it boots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BootStage {
    /// Its name, such as `kernel`.
    pub name: String,
    /// How it is recognised.
    pub probe: StageProbe,
    /// How long it may take, from the stage before.
    pub timeout: Duration,
}

/// Text by which a fault shows on a console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultSignature {
    /// Its name, such as `zephyr-fatal`.
    pub name: String,
    /// What the console shows.
    pub text: FaultText,
    /// The cause it stands for.
    pub cause: Cause,
    /// What a line behind it begins with that says why, where the text itself does not.
    pub reason: Option<Pattern>,
    /// What a line behind it begins with that says that the firmware expected the crash. Only
    /// signatures of lines have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excuse: Option<Pattern>,
    /// Names of the signatures whose crash it is a further headline of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub continues: Vec<String>,
}

/// What a console shows of a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultText {
    /// A match anywhere in the output, across lines if the expression says so.
    Pattern(Pattern),
    /// A match at the start of a line, behind colours and what loggers put in front of a message.
    Line(Pattern),
}

/// Numbers that tell trouble from normal operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// A console that prints more than this in one boot is a flood.
    pub flood_bytes: u64,
    /// Boots within one attempt, beyond those asked for, that make a boot loop.
    pub boot_loop: u32,
    /// How long the board has to be quiet after the end marker.
    pub settle: Duration,
    /// How long a board may print nothing before `silence` is reported while waiting.
    pub silence: Duration,
}

/// What was proven of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileStatus {
    /// Its facts were taken from documents, and nothing was run.
    DataSheet,
    /// Firmware was run on an emulation of the board.
    Emulated,
    /// Firmware was run on the board.
    Hardware,
}

impl Choice for ProfileStatus {
    const WHAT: &'static str = "status of a profile";
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("data-sheet", Self::DataSheet),
        ("emulated", Self::Emulated),
        ("hardware", Self::Hardware),
    ];
}

impl ProfileStatus {
    /// Returns the stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DataSheet => "data-sheet",
            Self::Emulated => "emulated",
            Self::Hardware => "hardware",
        }
    }
}

/// A USB device on a board: its debug probe, or the bridge to a serial port of its chip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OnboardUsb {
    /// Vendor.
    pub vendor: u16,
    /// Product; any of the vendor's if missing.
    pub product: Option<u16>,
    /// What its serial number begins with, one of these; any serial number if empty.
    pub serials: Vec<String>,
    /// Whether it is a debug probe on the chip.
    pub probe: bool,
    /// The console that its first serial port carries.
    pub console: Option<ConsoleName>,
    /// The line of this port that resets the board while it is asserted.
    pub reset: Option<ResetLine>,
    /// Whether boards that no profile describes have such a device, too.
    pub shared: bool,
}

impl OnboardUsb {
    /// Tells whether an attached device is one of these.
    pub fn is(&self, vendor: u16, product: u16, serial: Option<&str>) -> bool {
        let begins = |known: &String| {
            let head = serial.and_then(|serial| serial.get(..known.len()));
            head.is_some_and(|head| head.eq_ignore_ascii_case(known))
        };
        self.vendor == vendor
            && self.product.is_none_or(|own| own == product)
            && (self.serials.is_empty() || self.serials.iter().any(begins))
    }
}

/// What a kind of board is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BoardProfile {
    /// Its name; the file stem of the profile.
    pub id: BoardId,
    /// Its name for people.
    pub title: String,
    /// What was proven of the profile, if it says so.
    pub status: Option<ProfileStatus>,
    /// Where its facts come from.
    pub sources: Vec<String>,
    /// USB devices on the board, by which an attached one is recognised.
    pub usb: Vec<OnboardUsb>,
    /// Its processor family.
    pub arch: Arch,
    /// Its chip, by the name probe-rs knows it by.
    pub chip: Option<String>,
    /// What plans can require of it, such as `watchdog`.
    pub features: BTreeSet<String>,
    /// Memory an image may use; empty where the board loads no ELF image.
    pub memory: Vec<MemoryRegion>,
    /// Consoles; the first is the primary one. Never empty.
    pub consoles: Vec<ConsoleSpec>,
    /// How it is emulated, if it can be.
    pub emulation: Option<Emulation>,
    /// How an image gets onto it, if the profile says so (see [`BoardProfile::deploy_at`]).
    pub deploy: Option<Deploy>,
    /// What the firmware prints at each start, if it is known.
    pub boot_banner: Option<Pattern>,
    /// Output that is harmless although it looks like a failed test, or like a crash behind the end
    /// of a green report.
    pub allow_output: Vec<Pattern>,
    /// The shell of a board that runs an operating system (see [`BoardProfile::shell_at`]).
    pub shell: Option<ShellTable>,
    /// Stages of booting, in order.
    pub stages: Vec<BootStage>,
    /// Text that shows a fault.
    pub faults: Vec<FaultSignature>,
    /// Limits.
    pub limits: Limits,
    /// How the rig is recovered.
    pub recovery: Recovery,
    /// What shows that a place of it is well.
    pub health: HealthSpec,
    /// Where the profile came from: a path, or `built-in NAME`.
    pub origin: String,
}

impl BoardProfile {
    /// Tells whether one memory region holds the addresses `start..end`.
    pub fn holds(&self, start: u64, end: u64) -> bool {
        self.memory.iter().any(|r| start >= r.start && end <= r.start.saturating_add(r.size))
    }

    /// Lists the memory regions for people: `flash 0x0..0x40000, ram ...`.
    pub fn memory_text(&self) -> String {
        let regions = self
            .memory
            .iter()
            .map(|r| format!("{} {:#x}..{:#x}", r.name, r.start, r.start.saturating_add(r.size)));
        regions.collect::<Vec<_>>().join(", ")
    }

    /// Returns the largest size of an image file, in bytes: the memory and what an ELF file holds beside
    /// it. Debug information of a large program in C++ or Rust takes 100 to 200 MiB.
    pub fn image_file_limit(&self) -> u64 {
        let memory = self.memory.iter().map(|region| region.size).fold(0, u64::saturating_add);
        memory.saturating_add(256 << 20)
    }

    /// Returns the primary console.
    pub fn primary_console(&self) -> &ConsoleName {
        &self.consoles[0].name
    }
}
