//! Which board a verb is about: a place or board by its name, or a chip on a probe.

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use jig_lab::ChipAtProbe;
use jig_model::{ChipName, PlaceName};

/// Which board to use.
#[derive(Debug)]
pub(crate) struct TargetArgs {
    pub(crate) board: PlaceName,
    /// The chip and probe that are the place, where no rig file has it.
    pub(crate) chip: Option<ChipAtProbe>,
}

impl TargetArgs {
    /// Reads which board is meant.
    pub(super) fn of(
        board: Option<PlaceName>,
        chip: Option<&str>,
        probe: Option<&str>,
    ) -> Result<Self, clap::Error> {
        let refused = |message: String| clap::Error::raw(ErrorKind::ValueValidation, message);
        let named = match &board {
            Some(board) => board.chip(),
            None => chip,
        };
        let chip = match named {
            None => None,
            Some(name) => {
                let chip: ChipName = name
                    .parse()
                    .map_err(|e: jig_model::chip::ChipNameError| refused(e.to_string()))?;
                let of_environment = || std::env::var("PROBE_RS_PROBE").ok();
                let selector = probe.map(str::to_owned).or_else(of_environment);
                Some(ChipAtProbe { chip, selector: selector.filter(|text| !text.is_empty()) })
            }
        };
        match (board, &chip) {
            (Some(board), _) => Ok(Self { board, chip }),
            (None, Some(at_probe)) => Ok(Self { board: at_probe.place(), chip }),
            (None, None) => Err(refused(
                "no board is named: --board NAME (jig boards lists them), or --chip NAME on a probe".to_owned(),
            )),
        }
    }
}

#[derive(Args)]
struct RawTarget {
    /// Place or board (see: jig boards), or a chip on a probe as chip:NAME
    #[arg(short, long, value_name = "NAME", env = "JIG_BOARD")]
    board: Option<PlaceName>,
    /// Chip that is the board, on a probe of its own; no profile and no rig file is needed (see: jig
    /// chips)
    #[arg(long, value_name = "NAME")]
    chip: Option<String>,
    /// Probe that the chip is on, VID:PID[:SERIAL]; the only one if not said (see: jig probes) [env:
    /// PROBE_RS_PROBE]
    #[arg(long, value_name = "SELECTOR")]
    probe: Option<String>,
}

impl Args for TargetArgs {
    fn augment_args(command: Command) -> Command {
        RawTarget::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        RawTarget::augment_args_for_update(command)
    }
}

impl FromArgMatches for TargetArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        let RawTarget { board, chip, probe } = RawTarget::from_arg_matches_mut(matches)?;
        if let Some(board) = board
            .as_ref()
            .filter(|board| chip.is_some() || (probe.is_some() && board.chip().is_none()))
        {
            let message = format!(
                "--chip and --probe make a board of their own, but --board or JIG_BOARD names {board}, \
                 which has its chip and probe: leave one of both out\n"
            );
            return Err(clap::Error::raw(ErrorKind::ArgumentConflict, message));
        }
        Self::of(board, chip.as_deref(), probe.as_deref())
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::args::{ChipAtProbe, Cli};

    fn read(line: &str) -> Result<Option<ChipAtProbe>, String> {
        let cli =
            Cli::try_parse_from(line.split_whitespace()).map_err(|error| error.to_string())?;
        Ok(cli.command.chip().cloned())
    }

    #[test]
    fn a_chip_is_a_board_in_every_verb_that_takes_one() {
        for verb in [
            "run app.elf",
            "test plan.toml",
            "console",
            "hold",
            "recover",
            "flash app.elf",
            "erase",
            "reset",
            "halt",
            "resume",
            "step",
            "regs",
            "mem read 0 4",
            "mem write 0 4",
            "bp main",
            "bt",
            "rtt",
            "dump -o f",
            "gdb",
        ] {
            for named in ["--chip nRF52840_xxAA", "-b chip:nRF52840_xxAA"] {
                let found = read(&format!("jig {verb} {named} --probe 1366:0101")).unwrap();
                let found = found.unwrap_or_else(|| panic!("{verb} {named}"));
                assert_eq!(found.chip.as_str(), "nRF52840_xxAA");
                assert_eq!(found.selector.as_deref(), Some("1366:0101"), "{verb}");
                assert_eq!(found.place().as_str(), "chip:nRF52840_xxAA");
            }
            assert!(read(&format!("jig {verb} -b bench")).unwrap().is_none(), "{verb}");
            assert!(read(&format!("jig {verb}")).is_err(), "{verb}");
            assert!(read(&format!("jig {verb} --chip a/b")).is_err(), "{verb}");
        }
    }

    #[test]
    fn a_place_and_a_chip_are_no_place() {
        let told = read("jig run -b bench --chip nRF52840_xxAA app.elf").unwrap_err();
        assert!(told.contains("leave one of both out"), "{told}");
        assert!(read("jig run -b bench --probe 1366:0101 app.elf").is_err());
        // Where a probe is told how to get at a place, both mean the place.
        assert!(read("jig flash -b bench --chip nRF52840_xxAA app.elf").unwrap().is_none());
    }
}
