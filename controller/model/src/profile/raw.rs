//! The tables of a board profile as they are written.

use std::time::Duration;

use serde_json::{Value, json};

use crate::document::{ByteSize, Choice, FromToml, Located, Node, did_you_mean};
use crate::flasher::{RawOptions, VolumeFormat, flasher_table};
use crate::pattern::Pattern;
use crate::profile::{
    Arch, CheckKind, ConsoleKind, DebugCore, DeployMethod, FlashModel, MemoryKind, ProfileStatus,
};
use crate::recovery::RecoveryStep;
use crate::rig_file::ResetLine;
use crate::shell::RawShell;
use crate::toml_table;
use crate::{BoardId, Cause, ConsoleName, Fault, VerdictKind};

toml_table! {
    /// A board profile: what a kind of board is.
    pub(super) struct RawProfile {
        /// Version of this format: 1.
        version: u32 = required,
        /// Name of the board; equals the file name without `.toml`.
        id: BoardId = required,
        /// Name of the board for people.
        title: String = required,
        /// What was proven of the profile: "data-sheet" (its facts are taken from documents),
        /// "emulated" or "hardware" (firmware was run there).
        status: ProfileStatus = optional,
        /// Where its facts come from: documents by number and section, target descriptions.
        sources: Vec<Located<String>> = optional,
        /// USB devices on the board, by which `jig discover` recognises it.
        usb: Vec<Located<RawUsb>> = optional,
        /// Processor family an image must be built for.
        arch: Arch = required,
        /// Chip, by the name probe-rs knows it by.
        chip: String = optional,
        /// What plans can require of the board.
        features: Vec<Located<Feature>> = optional,
        /// Shared sets of fault signatures, by file name in `board-profiles/faults/`; all if
        /// missing.
        faults: Vec<Located<String>> = optional,
        /// What the firmware prints at each start; seen too often, it shows a boot loop.
        boot_banner: Pattern = optional,
        /// Output that is harmless although it looks like a failed test, or like a crash behind
        /// the end of a green report. Each expression is looked for anywhere in a line.
        allow_output: Vec<Located<Pattern>> = optional,
        /// Memory an image may use. None: the board loads no ELF image.
        memory: Vec<Located<RawMemory>> = optional,
        /// Consoles; the first is the primary one.
        console: Vec<Located<RawConsole>> = required,
        /// How the board is emulated.
        emulation: RawEmulation = optional,
        /// How an image gets onto the board. Missing: an emulated board takes it by the
        /// emulator's loader or boots its image set, a real one takes it by its probe.
        deploy: RawDeploy = optional,
        /// The shell of a board that runs an operating system.
        shell: RawShell = optional,
        /// Stages of booting, in order.
        stage: Vec<Located<RawStage>> = optional,
        /// Numbers that tell trouble from normal operation.
        limits: RawLimits = optional,
        /// How the rig is recovered when a run finds it broken.
        recovery: RawRecovery = optional,
        /// What shows that a place of the board is well, and when to look.
        health: RawHealth = optional,
        /// Fault signatures of this board alone.
        fault: Vec<Located<RawFault>> = optional,
    }

    /// A USB device on the board: its debug probe, or the bridge to a serial port of its chip.
    pub(super) struct RawUsb {
        /// Vendor and product, four hex digits each: "0d28:0204"; "1366:*" for all of a vendor.
        id: String = required,
        /// What the serial number of the board's device begins with, one of these; any if missing.
        serials: Vec<Located<String>> = optional,
        /// Whether it is a debug probe on the chip; false if missing.
        probe: bool = optional,
        /// The console that its first serial port carries; none if missing.
        console: ConsoleName = optional,
        /// The line of this port that resets the board while it is asserted, "dtr" or "rts"; none if
        /// missing.
        reset: ResetLine = optional,
        /// Whether boards that no profile describes have such a device, too, such as a probe that is
        /// sold alone; false if missing. Such a device never decides which board it is.
        shared: bool = optional,
    }

    /// How the rig is recovered.
    pub(super) struct RawRecovery {
        /// The steps in the order in which they are taken, gentlest first; all if missing. A
        /// place skips those it has no means for.
        ladder: Vec<Located<RecoveryStep>> = optional,
        /// How often a run may recover the rig and attempt the same test again; 3 if missing, 0
        /// for never.
        max_recoveries: u32 = optional,
        /// How long one recovery may take, proofs included; "5m" if missing.
        timeout: Duration = optional,
        /// How long the power is away in a long power cycle; "10s" if missing.
        long_off: Duration = optional,
    }

    /// One region of memory.
    pub(super) struct RawMemory {
        /// What people call it, such as `flash`.
        name: String = required,
        /// Whether it keeps its content without power.
        kind: MemoryKind = required,
        /// First address.
        start: ByteSize = required,
        /// Size: bytes, or a text such as "256K".
        size: ByteSize = required,
    }

    /// One console.
    pub(super) struct RawConsole {
        /// What plans call it.
        name: ConsoleName = required,
        /// What carries it.
        kind: ConsoleKind = required,
        /// Bits per second on a real serial line; 115200 if missing.
        baud: u32 = optional,
        /// The number of an RTT console's channel; 0 if missing.
        channel: u32 = optional,
    }

    /// How the board is emulated. Jig adds by itself: the machine, the display (none), the
    /// halted start, the chardevs of consoles and monitor, semihosting and the sandbox.
    pub(super) struct RawEmulation {
        /// The program; looked up in PATH.
        program: String = required,
        /// The value of `-machine`.
        machine: String = required,
        /// Further arguments. `{artifact:NAME}` is a file of the image set, `{port:NAME}` a
        /// free TCP port on the loopback address.
        args: Vec<Located<String>> = optional,
        /// Arguments that boot a deployed image; `{image}` is its path.
        image_args: Vec<Located<String>> = optional,
        /// Folder below `qemu-images/` whose artifacts boot without a deployed image.
        image_set: String = optional,
        /// Whether semihosting is offered to the firmware; false if missing.
        semihosting: Option<bool> = optional,
        /// What is peculiar to the emulated machine.
        quirks: RawQuirks = optional,
        /// What a debug probe finds on the board. None: the virtual probe cannot drive it.
        debug: RawDebug = optional,
        /// How a program sends a byte by the first UART. Jig's own known-good image is made from
        /// it, which shows whether the rig or the firmware has failed. None: an image that has
        /// passed three times in a row takes its part.
        known_good: RawKnownGood = optional,
    }

    /// How a program on the emulated board sends a byte by its first UART.
    pub(super) struct RawKnownGood {
        /// Where the processor starts: its vectors (arch "arm", which is a Cortex-M) or its first
        /// instruction.
        start: u32 = required,
        /// Words that are written first, in order.
        setup: Vec<Located<RawWrite>> = optional,
        /// Address of the register that sends a byte.
        send: u32 = required,
        /// When it takes one; always if missing.
        ready: RawReady = optional,
        /// Whether both registers are a byte wide, and not a word; false if missing.
        bytes: bool = optional,
    }

    /// A word that a program writes.
    pub(super) struct RawWrite {
        /// Its address, aligned to 4.
        address: u32 = required,
        /// The word.
        value: u32 = required,
    }

    /// When a UART takes a byte.
    pub(super) struct RawReady {
        /// Address of the status register.
        status: u32 = required,
        /// The bits that count.
        mask: u32 = required,
        /// Their value when a byte is taken.
        value: u32 = required,
    }

    /// What a debug probe finds on the emulated board, where the emulator does not say.
    pub(super) struct RawDebug {
        /// The processor core.
        core: DebugCore = required,
        /// Address of 32 bytes of RAM, aligned to 4, that the probe borrows while the core
        /// stands: some registers are only reached by executing an instruction. They are put
        /// back before it runs.
        scratch: u32 = required,
        /// The chip's maker in its ROM table: continuation codes before the JEP106 code.
        jep106_bank: u8 = required,
        /// The chip's maker in its ROM table: the JEP106 code, without parity.
        jep106_code: u8 = required,
        /// The chip's part number in its ROM table, 12 bits.
        part: u16 = required,
        /// What the emulator has where the program lives.
        flash: FlashModel = required,
        /// Name of the memory region that holds the program; the flash regions if missing.
        program: String = optional,
        /// Words that the chip has and the emulator leaves blank, such as identification.
        overlay: Vec<Located<RawOverlay>> = optional,
    }

    /// A word that a probe reads instead of what the emulator holds.
    pub(super) struct RawOverlay {
        /// Its address, aligned to 4.
        address: u32 = required,
        /// The word.
        value: u32 = required,
    }

    /// How an image gets onto the board. All but `method` belongs to "command".
    pub(super) struct RawDeploy {
        /// Who puts it there.
        method: DeployMethod = required,
        /// The flasher and its arguments, one by one and never a shell line. `{image}` is the
        /// image's path, `{elf}` the same of an ELF file, `{bin}` and `{hex}` the path of the image
        /// as a raw binary or as Intel HEX, `{script}` that of the `script`, `{address}` the image's
        /// lowest address, `{chip}` the chip, `{serial}` the serial number of the place's probe,
        /// `{port}` the place's serial port; an argument with `{serial?}` or `{port?}` is left out
        /// where the place has none, with the switch before it if it is nothing else; `{{` and `}}`
        /// are braces.
        argv: Vec<Located<String>> = optional,
        /// A flasher that Jig knows, instead of `argv` (see: jig flashers). Other keys replace what
        /// is known of it.
        preset: String = optional,
        /// Options of the preset, by name.
        options: RawOptions = optional,
        /// Lines of the file that `{script}` names, with the same placeholders.
        script: Vec<Located<String>> = optional,
        /// With method "volume": the mass-storage volume that the image is copied to, by its label or
        /// the whole path of the folder where it is mounted. A place may name another one.
        volume: String = optional,
        /// What the volume takes; "uf2" if there is a `family`, else "hex".
        format: VolumeFormat = optional,
        /// Family of the chip in UF2, such as 0xe48bff56 for the RP2040.
        family: u32 = optional,
        /// How long the flasher may take; "4m" if missing, "1m" for a volume.
        timeout: Duration = optional,
        /// How long the flasher may print nothing; as long as it may take if missing.
        idle_timeout: Duration = optional,
        /// Starts the boot loader by opening the place's port at 1200 baud, and waits at most so long
        /// for its port, which the program is told as `{port}`, or for its volume.
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

    /// What is peculiar to an emulated machine. All false if missing.
    pub(super) struct RawQuirks {
        /// Input waits up to 1 s unless the monitor is poked after each write.
        poke_after_input: bool = optional,
        /// Input sent before the firmware has enabled its UART is dropped.
        drops_early_input: bool = optional,
        /// The machine, monitor included, freezes while nobody reads its console.
        freezes_when_unread: bool = optional,
        /// Output is dropped while nobody reads.
        drops_when_unread: bool = optional,
    }

    /// One stage of booting: either `console` or `banner` tells that it is reached.
    pub(super) struct RawStage {
        /// Its name, such as `kernel`.
        name: String = required,
        /// What the primary console prints.
        console: Option<Pattern> = optional,
        /// What a forwarded port answers.
        banner: Option<RawBanner> = optional,
        /// How long it may take, from the stage before.
        timeout: Duration = required,
    }

    /// The first line a forwarded port answers with.
    pub(super) struct RawBanner {
        /// Name of the port, as in `{port:NAME}` of the emulation's arguments.
        port: String = required,
        /// What the line must match.
        pattern: Pattern = required,
    }

    /// Numbers that tell trouble from normal operation.
    pub(super) struct RawLimits {
        /// A console that prints more than this in one boot is a flood; "2M" if missing.
        flood: ByteSize = optional,
        /// So many boots nobody asked for are a boot loop; 3 if missing.
        boot_loop: u32 = optional,
        /// How long the board has to be quiet after the end marker; "50ms" if missing.
        settle: Duration = optional,
        /// How long a board may print nothing before that is reported; "5s" if missing.
        silence: Duration = optional,
    }

    /// What shows that a place of the board is well, and when to look.
    pub(super) struct RawHealth {
        /// Which checks to run; all that fit the place if missing. "board": the emulator starts
        /// and answers, or the debug port says what it is. "console": the transports' other ends are
        /// there and nobody else has them. "network": what the place's `network` names answers,
        /// while it has power. "power": what switches the power can be asked.
        /// "disk", "memory", "handles", "clock": the host.
        checks: Vec<Located<CheckKind>> = optional,
        /// How often an idle place is looked at; "5m" if missing.
        interval: Duration = optional,
        /// What must be free where runs are kept; "512M" if missing.
        free_disk: ByteSize = optional,
        /// How much memory programs must still be able to get; "256M" if missing.
        free_memory: ByteSize = optional,
        /// How many files must still be free to be opened; 64 if missing.
        free_handles: u32 = optional,
        /// How far the host's clock may be from where it should be; "5s" if missing.
        clock_skew: Duration = optional,
    }

    /// A set of fault signatures that boards share.
    pub(super) struct RawFaultSet {
        /// Version of this format: 1.
        version: u32 = required,
        /// The signatures.
        fault: Vec<Located<RawFault>> = required,
    }

    /// Text by which a fault shows on a console.
    pub(super) struct RawFault {
        /// Its name, such as `zephyr-fatal`.
        name: String = required,
        /// What the console shows anywhere. `^` and `$` stand at line borders.
        pattern: Pattern = optional,
        /// What a line begins with, behind colours and what loggers put in front of a message:
        /// time, level, tag, file and line. Either this or `pattern`.
        line: Pattern = optional,
        /// The cause it stands for.
        cause: FaultCause = required,
        /// What one of the next twelve lines begins with that says why, where the text itself does
        /// not. That line is quoted, too.
        reason: Pattern = optional,
        /// A line as firmware really prints it. The tests of the project hold the signature
        /// against it.
        example: String = optional,
        /// What a line behind it begins with that says that the firmware expected the crash, which
        /// is no failure then. With `line` only. Until such a line comes, for a second of silence
        /// at most, the crash does not count.
        excuse: Pattern = optional,
        /// Names of signatures whose crash this text is a further headline of, where it follows
        /// theirs. With `excuse` only; it must be the same.
        continues: Vec<Located<String>> = optional,
        /// A line behind `example` that says why; with `reason`.
        example_reason: String = optional,
        /// A line behind `example` that excuses it; with `excuse`.
        example_excuse: String = optional,
        /// A line that resembles `example_excuse` and excuses nothing.
        near_miss_excuse: String = optional,
        /// A line that resembles it and shows no fault; the tests hold it against this, too.
        near_miss: String = optional,
    }
}

flasher_table!(RawDeploy, argv);

/// A cause that text on a console can stand for: a failure of the target.
#[derive(Debug, Clone, Copy)]
pub(super) struct FaultCause(pub(super) Cause);

impl FaultCause {
    fn allowed() -> impl Iterator<Item = Cause> + Clone {
        Cause::ALL.iter().copied().filter(|cause| {
            cause.fault() == Some(Fault::Target) && cause.verdict() == VerdictKind::Fail
        })
    }
}

impl FromToml for FaultCause {
    fn schema() -> Value {
        json!({ "type": "string", "enum": Self::allowed().map(Cause::as_str).collect::<Vec<_>>() })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        let text = node.text("a cause", "\"fault_banner\"")?;
        let found = Self::allowed().find(|cause| cause.as_str() == text);
        if found.is_none() {
            let shown: String = text.chars().take(40).collect();
            let message = if text.parse::<Cause>().is_ok() {
                format!("{shown:?} is a cause, but no failure of the target")
            } else {
                format!("{shown:?} is no cause")
            };
            let help = did_you_mean(text, Self::allowed().map(Cause::as_str));
            node.refuse("profile::fault-cause", message, help);
        }
        found.map(Self)
    }
}

/// Something a plan can require of a board.
///
/// The list is closed so that a slip in a profile or plan is found; a new feature is a new
/// line here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Feature(pub(super) &'static str);

macro_rules! features {
    ($($(#[doc = $doc:literal])+ $name:literal)+) => {
        /// Every feature and what it promises.
        pub const FEATURES: &[(&str, &str)] = &[$(($name, concat!($($doc),+).trim_ascii())),+];

        impl Choice for Feature {
            const WHAT: &'static str = "feature";
            const CHOICES: &'static [(&'static str, Self)] = &[$(($name, Feature($name))),+];
        }
    };
}

features! {
    /// Firmware's own fault handler runs and can say what happened.
    "fault-banner"
    /// An access to an address where nothing is faults, as it does on the chip.
    "faults-on-unmapped"
    /// The processor computes floating-point numbers by itself.
    "fpu"
    /// The target runs Linux.
    "linux"
    /// A fault inside the fault handler stops the processor, and that is noticed.
    "lockup"
    /// The target has a network interface.
    "network"
    /// Firmware can reset the board.
    "self-reset"
    /// Firmware can print and exit by semihosting.
    "semihosting"
    /// The target answers SSH.
    "ssh"
    /// A stack that grows out of its memory faults instead of running on.
    "stack-guard"
    /// The processor has a secure and a non-secure state.
    "trustzone"
    /// An access that is not aligned can be made to fault.
    "unaligned-traps"
    /// A watchdog resets the board if firmware lets it run out.
    "watchdog"
}
