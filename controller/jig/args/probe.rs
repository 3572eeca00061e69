//! What users type to flash and debug. Parsing only.

use std::num::NonZeroU64;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand, ValueEnum, ValueHint};
use jig_model::PlaceName;
use jig_model::command::ListenAt;

use super::common::duration;
use super::target::TargetArgs;

/// Which board, and how to get at it.
#[derive(Debug)]
pub(crate) struct ProbeTarget {
    pub(crate) target: TargetArgs,
    pub(crate) probe: ProbeOptions,
}

#[derive(Args)]
struct RawProbeTarget {
    /// Place or board (see: jig boards), or a chip on a probe as chip:NAME; not needed with --chip
    #[arg(short, long, value_name = "NAME", env = "JIG_BOARD")]
    board: Option<PlaceName>,
    #[command(flatten)]
    probe: ProbeOptions,
}

impl ProbeTarget {
    /// Reads which board is meant, and how to get at it.
    fn of(board: Option<PlaceName>, probe: ProbeOptions) -> Result<Self, clap::Error> {
        let target = TargetArgs::of(board, probe.chip.as_deref(), probe.probe.as_deref())?;
        Ok(Self { target, probe })
    }
}

impl Args for ProbeTarget {
    fn augment_args(command: Command) -> Command {
        RawProbeTarget::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        RawProbeTarget::augment_args_for_update(command)
    }
}

impl FromArgMatches for ProbeTarget {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        let RawProbeTarget { board, probe } = RawProbeTarget::from_arg_matches_mut(matches)?;
        Self::of(board, probe)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// How to get at a chip. Wins over the `PROBE_RS_*` variables, and those over the rig file;
/// an emulated board is not what they mean.
#[derive(Debug, Args)]
pub(crate) struct ProbeOptions {
    /// Probe to use, VID:PID[:SERIAL] (see: jig probes) [env: PROBE_RS_PROBE]
    #[arg(long, value_name = "SELECTOR")]
    pub(crate) probe: Option<String>,
    /// Chip, if not the one of the board's profile [env: PROBE_RS_CHIP]; without a board the chip is
    /// one (see: jig chips)
    #[arg(long, value_name = "NAME")]
    pub(crate) chip: Option<String>,
    /// Speed of the debug wire [env: PROBE_RS_SPEED]
    #[arg(long, value_name = "KHZ")]
    pub(crate) speed: Option<u32>,
    /// Protocol of the debug wire [env: PROBE_RS_PROTOCOL]
    #[arg(long, value_enum)]
    pub(crate) protocol: Option<ProtocolArg>,
    /// Attach while the chip is held in reset [env: PROBE_RS_CONNECT_UNDER_RESET]
    #[arg(long)]
    pub(crate) under_reset: bool,
    /// Unlock a protected chip, which erases it [env: PROBE_RS_ALLOW_ERASE_ALL]
    #[arg(long)]
    pub(crate) allow_unlock: bool,
    /// Wait this long while another process uses the board
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub(crate) wait: Duration,
}

/// Protocols of a debug wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProtocolArg {
    /// Two wires
    Swd,
    /// Four wires
    Jtag,
}

/// Arguments of `jig flash`.
#[derive(Debug, Args)]
pub(crate) struct FlashArgs {
    #[command(flatten)]
    pub(crate) at: ProbeTarget,
    /// Image: ELF, Intel HEX, or raw bytes as FILE@ADDRESS
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) image: PathBuf,
    /// Read back and compare; the default by a probe. Where a program flashes, exit code 4 if it
    /// does not report that it did
    #[arg(long, overrides_with = "no_verify")]
    pub(crate) verify: bool,
    /// Trust the flash algorithm
    #[arg(long)]
    pub(crate) no_verify: bool,
    /// Leave the core halted instead of starting the image
    #[arg(long)]
    pub(crate) no_reset: bool,
    /// Keep what these addresses hold, START..END; may be given again
    #[arg(long, value_name = "RANGE", value_parser = range)]
    pub(crate) preserve: Vec<Range<u64>>,
    /// Write every sector, also those that hold the right bytes already
    #[arg(long)]
    pub(crate) all: bool,
}

/// Arguments of `jig erase`.
#[derive(Debug, Args)]
pub(crate) struct EraseArgs {
    #[command(flatten)]
    pub(crate) at: ProbeTarget,
    /// Erase only the sectors that touch START..END
    #[arg(long, value_name = "RANGE", value_parser = range)]
    pub(crate) range: Option<Range<u64>>,
}

/// Arguments of `jig reset`.
#[derive(Debug, Args)]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    pub(crate) at: ProbeTarget,
    /// Stand still before the first instruction
    #[arg(long)]
    pub(crate) halt: bool,
}

/// Arguments of `jig step`.
#[derive(Debug, Args)]
pub(crate) struct StepArgs {
    #[command(flatten)]
    pub(crate) at: ProbeTarget,
    /// How many instructions
    #[arg(default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) count: u32,
}

/// Arguments of `jig regs`.
#[derive(Debug, Args)]
pub(crate) struct RegsArgs {
    #[command(flatten)]
    pub(crate) at: ProbeTarget,
    /// Registers to show, or to set with NAME=VALUE; all if none is named
    pub(crate) registers: Vec<String>,
}

/// What to do with memory.
#[derive(Debug, Subcommand)]
pub(crate) enum MemCommand {
    /// Show or save memory
    Read {
        #[command(flatten)]
        at: ProbeTarget,
        /// First address
        #[arg(value_parser = number)]
        address: u64,
        /// How many bytes (K and M allowed)
        #[arg(value_parser = length)]
        length: NonZeroU64,
        /// Width of an access; matters for peripherals
        #[arg(long, value_enum, default_value_t = Width::Auto)]
        width: Width,
        /// Write the raw bytes to a file instead; `-` is standard output, without --json
        #[arg(short, long, value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
    /// Write values to memory
    Write {
        #[command(flatten)]
        at: ProbeTarget,
        /// First address
        #[arg(value_parser = number)]
        address: u64,
        /// Values, each as wide as an access
        #[arg(required = true, value_parser = number)]
        values: Vec<u64>,
        /// Width of an access; 32 bits if not said
        #[arg(long, value_enum, default_value_t = Width::Auto)]
        width: Width,
    },
}

/// Widths of a memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Width {
    /// As it suits
    Auto,
    /// One byte
    #[value(name = "8")]
    Byte,
    /// Two bytes
    #[value(name = "16")]
    Half,
    /// Four bytes
    #[value(name = "32")]
    Word,
}

/// Arguments of `jig bp`.
#[derive(Debug, Args)]
pub(crate) struct BpArgs {
    #[command(flatten)]
    pub(crate) at: ProbeTarget,
    /// Address, or a function of the image
    pub(crate) location: String,
    /// Image that has the names
    #[arg(long, visible_alias = "elf", value_hint = ValueHint::FilePath)]
    pub(crate) image: Option<PathBuf>,
    /// Reset first
    #[arg(long)]
    pub(crate) reset: bool,
    /// Give up after this long
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// Arguments of `jig bt`.
#[derive(Debug)]
pub(crate) struct BtArgs {
    pub(crate) of: BacktraceOf,
    pub(crate) image: Option<PathBuf>,
}

/// What a backtrace is of.
#[derive(Debug)]
pub(crate) enum BacktraceOf {
    /// Of a board.
    Board(Box<ProbeTarget>),
    /// Of a core dump.
    CoreDump(PathBuf),
}

#[derive(Args)]
struct RawBt {
    /// Place or board, or a chip on a probe as chip:NAME; not needed with --chip or --core
    #[arg(short, long, value_name = "NAME", env = "JIG_BOARD", required_unless_present_any = ["chip", "core"])]
    board: Option<PlaceName>,
    #[command(flatten)]
    probe: ProbeOptions,
    /// Image that has the names and lines
    #[arg(long, visible_alias = "elf", value_hint = ValueHint::FilePath)]
    image: Option<PathBuf>,
    /// Look into a core dump instead of a board
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    core: Option<PathBuf>,
}

impl Args for BtArgs {
    fn augment_args(command: Command) -> Command {
        RawBt::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        RawBt::augment_args_for_update(command)
    }
}

impl FromArgMatches for BtArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        let RawBt { board, probe, image, core } = RawBt::from_arg_matches_mut(matches)?;
        let of = match core {
            Some(core) => BacktraceOf::CoreDump(core),
            None => BacktraceOf::Board(Box::new(ProbeTarget::of(board, probe)?)),
        };
        Ok(Self { of, image })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Arguments of `jig rtt`.
#[derive(Debug, Args)]
pub(crate) struct RttArgs {
    #[command(flatten)]
    pub(crate) at: ProbeTarget,
    /// Image that has the control block's address and the defmt table
    #[arg(long, visible_alias = "elf", value_hint = ValueHint::FilePath)]
    pub(crate) image: Option<PathBuf>,
    /// Channel to show and to type into
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) channel: usize,
    /// Reset first, to see the program from its start
    #[arg(long)]
    pub(crate) reset: bool,
    /// Stop after this long; without it, when interrupted
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}

/// Arguments of `jig dump`.
#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    #[command(flatten)]
    pub(crate) at: ProbeTarget,
    /// Core dump to write
    #[arg(short, long, value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Memory to keep, START..END; all RAM if none is named
    #[arg(long, value_name = "RANGE", value_parser = range)]
    pub(crate) memory: Vec<Range<u64>>,
}

/// Arguments of `jig gdb`.
#[derive(Debug, Args)]
pub(crate) struct GdbArgs {
    #[command(flatten)]
    pub(crate) at: ProbeTarget,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: std::net::SocketAddr,
    /// Allow an address that other machines reach: whichever connects controls the board, without
    /// a password
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Reset first and stand still before the first instruction
    #[arg(long)]
    pub(crate) reset: bool,
}

/// What to do with probes.
#[derive(Debug, Subcommand)]
pub(crate) enum ProbeCommand {
    /// Run an emulated board and offer its debug port to any probe-rs tool
    Serve {
        /// Place or board (see: jig boards)
        #[arg(short, long, value_name = "NAME", env = "JIG_BOARD")]
        board: PlaceName,
        /// Where to listen: unix:PATH or a path with a slash, or an address of this machine such
        /// as 127.0.0.1:PORT; a path of its own if not said
        #[arg(long, value_name = "WHERE")]
        listen: Option<ListenAt>,
        /// Flash this image first
        #[arg(long, value_hint = ValueHint::FilePath)]
        image: Option<PathBuf>,
        /// Wait this long while another process uses the board
        #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
        wait: Duration,
    },
}

/// Reads a number as C writes it: decimal, `0x`, `0b`, with `_` anywhere inside.
pub(crate) fn number(text: &str) -> Result<u64, String> {
    let plain = text.replace('_', "").to_ascii_lowercase();
    let (digits, radix) = match plain.get(..2) {
        Some("0x") => (&plain[2..], 16),
        Some("0b") => (&plain[2..], 2),
        _ => (plain.as_str(), 10),
    };
    if digits.starts_with(['+', '-']) {
        return Err(format!("{text:?} is no number such as 4096 or 0x1000"));
    }
    u64::from_str_radix(digits, radix)
        .map_err(|_| format!("{text:?} is no number such as 4096 or 0x1000"))
}

/// Reads a length: a number, or one with K or M behind it.
fn length(text: &str) -> Result<NonZeroU64, String> {
    number(text)
        .or_else(|_| jig_model::document::parse_size(text).map(|s| s.0).map_err(|e| e.to_string()))
        .and_then(|len| NonZeroU64::new(len).ok_or_else(|| "nothing to read".to_owned()))
}

/// Reads `START..END`, or `START+LENGTH`.
fn range(text: &str) -> Result<Range<u64>, String> {
    let (start, end) = if let Some((start, end)) = text.split_once("..") {
        (number(start)?, number(end)?)
    } else if let Some((start, len)) = text.split_once('+') {
        let start = number(start)?;
        (start, start.checked_add(length(len)?.get()).ok_or("it ends beyond the last address")?)
    } else {
        return Err("expected START..END or START+LENGTH, such as 0x1000..0x2000".to_owned());
    };
    if start < end { Ok(start..end) } else { Err(format!("{text:?} holds no address")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_read_as_people_write_them() {
        assert_eq!(number("4096"), Ok(4096));
        assert_eq!(number("0x2000_0000"), Ok(0x2000_0000));
        assert_eq!(number("0b101"), Ok(5));
        for bad in ["", "0x", "x", "-1", "0x+1", "1e3", "0x1_ffff_ffff_ffff_ffff"] {
            assert!(number(bad).is_err(), "{bad}");
        }
        assert_eq!(range("0x10..0x20"), Ok(0x10..0x20));
        assert_eq!(range("0x10+1K"), Ok(0x10..0x410));
        for bad in ["1", "2..1", "1..1", "0xffff_ffff_ffff_ffff+2", "..", "+"] {
            assert!(range(bad).is_err(), "{bad}");
        }
        assert!(length("0").is_err());
    }
}
