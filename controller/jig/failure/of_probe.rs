//! What to type next when a board could not be flashed, reset or debugged.

use jig_lab::ProbeCommandError;
use jig_model::PlaceName;
use jig_probe::{FlashLeft, ProbeError, VirtualBoardError};
use jig_rig::console::escape;
use jig_rig::store::PlaceLockError;

use super::{Failure, chain};

impl From<ProbeCommandError> for Failure {
    fn from(error: ProbeCommandError) -> Self {
        let failure = Self::of(error.fault(), &error);
        match error {
            ProbeCommandError::Catalogue(error) => error.into(),
            ProbeCommandError::Missing(missing) => Self::missing(missing),
            ProbeCommandError::Held(error @ PlaceLockError::Held { .. }) => {
                Self::from(error).help("wait for it with --wait 30s")
            }
            ProbeCommandError::Held(error) => error.into(),
            ProbeCommandError::Store(error) => error.into(),
            ProbeCommandError::Bind(error) => error.into(),
            ProbeCommandError::Switch(error) => error.into(),
            ProbeCommandError::FlashFile { place, reading: true, .. } => {
                failure.help(format!("blank it: jig erase -b {place}"))
            }
            ProbeCommandError::NotKept { place, .. } => failure.help(format!(
                "start it in another terminal: jig hold -b {place}; a board that `jig run` \
                 or `jig console` boots belongs to that command alone"
            )),
            ProbeCommandError::NotEmulated { .. } => failure
                .help("any probe-rs tool can use it as it is; `jig probes` lists what there is"),
            ProbeCommandError::VirtualBoard(VirtualBoardError::NotDescribed { .. }) => failure
                .help(
                    "`jig run` and `jig test` load its images without a debug port; one is \
                     emulated for a Cortex-M whose profile has [emulation.debug]",
                ),
            ProbeCommandError::ImageFormat { refused, .. } => failure.help(refused.help),
            ProbeCommandError::NoNames { .. } => {
                failure.help("give the ELF file that was built, with -g")
            }
            ProbeCommandError::Probe { place, error } => match help(&error, &place) {
                Some(help) => failure.help(help),
                None => failure,
            },
            ProbeCommandError::Unpowered { place, .. } => {
                failure.help(format!("jig power -b {place} on"))
            }
            ProbeCommandError::Rtt(error) => {
                Self::new(failure.fault, escape(chain(&error).as_bytes()).to_string())
            }
            ProbeCommandError::NoRttChannel { known, .. } if known.is_empty() => {
                failure.help("it has set up none that is read from")
            }
            ProbeCommandError::NoRttChannel { known, .. } => {
                let known: Vec<_> = known
                    .iter()
                    .map(|(number, name)| format!("{number} ({})", escape(name.as_bytes())))
                    .collect();
                failure.help(format!("it has: {}", known.join(", ")))
            }
            ProbeCommandError::WritesFlash { place, .. } => {
                failure.help(format!("put an image there: jig flash -b {place} IMAGE"))
            }
            ProbeCommandError::NoRtt => failure.help(
                "does the program use RTT? --image APP.elf says where to look; --reset starts it \
                 anew",
            ),
            ProbeCommandError::NoFlash(place) => {
                failure.help(format!("its program is in plain memory: jig flash -b {place} IMAGE"))
            }
            ProbeCommandError::NoRegister { known, .. } => {
                failure.help(format!("it has: {}", known.join(", ")))
            }
            ProbeCommandError::NoSuchMemory { board, .. } => {
                failure.help(format!("see where it has memory: jig profile show {board}"))
            }
            ProbeCommandError::Exposed(_) => failure.help(
                "listen on 127.0.0.1:PORT and forward it with ssh -L, or allow it with \
                 --allow-remote",
            ),
            ProbeCommandError::NotLoopback => {
                failure.help("listen on 127.0.0.1:PORT, and forward it with ssh -L")
            }
            ProbeCommandError::BoardLost { ref place, .. } => {
                let help = format!("serve it anew: jig probe serve -b {place}");
                Self::new(failure.fault, escape(chain(&error).as_bytes()).to_string()).help(help)
            }
            ProbeCommandError::FlashCancelled { place, evidence } => failure.help(format!(
                "before it is used, flash it again: jig flash -b {place} IMAGE; the output of the \
                 program is in {}",
                evidence.display()
            )),
            ProbeCommandError::Flasher { evidence, .. } => {
                // One that did not start has printed nothing.
                let log = std::fs::metadata(evidence.join("flasher-1.log"));
                match log.is_ok_and(|log| log.len() > 0) {
                    true => failure.help(format!("its output is in {}", evidence.display())),
                    false => failure,
                }
            }
            ProbeCommandError::NothingToBoot(place) => {
                failure.help(format!("jig hold -b {place} --image APP.elf"))
            }
            ProbeCommandError::ImageOfHeld(place) => {
                failure.help(format!("jig flash -b {place} IMAGE; jig probe serve -b {place}"))
            }
            ProbeCommandError::BoardOff { ref place, .. } => {
                let help = format!("start it again: jig reset -b {place}");
                Self::new(failure.fault, escape(chain(&error).as_bytes()).to_string()).help(help)
            }
            ProbeCommandError::ServedAlready { .. } => {
                failure.help("one server is enough: its clients take turns")
            }
            ProbeCommandError::NoMemory
            | ProbeCommandError::Waiting(_)
            | ProbeCommandError::Cancelled(_)
            | ProbeCommandError::FlashFile { reading: false, .. }
            | ProbeCommandError::Folder(_)
            | ProbeCommandError::Task(_)
            | ProbeCommandError::Driver(_)
            | ProbeCommandError::NotBound(_)
            | ProbeCommandError::VirtualBoard(_)
            | ProbeCommandError::Unreadable { .. }
            | ProbeCommandError::Unwritable { .. }
            | ProbeCommandError::Image { .. }
            | ProbeCommandError::NoFunction { .. }
            | ProbeCommandError::Defmt(_)
            | ProbeCommandError::TooMuch
            | ProbeCommandError::Listen { .. } => failure,
        }
    }
}

fn help(error: &ProbeError, place: &PlaceName) -> Option<String> {
    Some(match error {
        ProbeError::NotFound { .. } | ProbeError::Ambiguous { .. } => {
            let or_correct = match place.chip() {
                Some(_) => String::new(),
                None => format!(" or correct `selector` of place {place} in the rig file"),
            };
            format!(
                "list them with `jig probes`, then name one with --probe VID:PID:SERIAL{or_correct}; \
                 of two alike without serial numbers, unplug one"
            )
        }
        ProbeError::Held { .. } => "stop that program, or wait for it with --wait 30s".to_owned(),
        ProbeError::UnknownChip { .. } => {
            "correct `chip` in the board's profile, or name one with --chip".to_owned()
        }
        ProbeError::WrongChip { .. } => {
            format!(
                "check that the probe is wired to {place}; `jig boards` shows what belongs where"
            )
        }
        ProbeError::Protected { .. } => {
            "if that may be lost, say so with --allow-unlock".to_owned()
        }
        ProbeError::NoTarget { .. } => {
            "check the target's power and its debug wires; a target that sleeps answers with \
             --under-reset"
                .to_owned()
        }
        ProbeError::ProbeLost { .. } | ProbeError::Hung { .. } => {
            "plug the probe in again, then look with `jig probes`".to_owned()
        }
        ProbeError::NotHalted => format!("stop it first: jig halt -b {place}"),
        ProbeError::NoBreakpointAt { .. } => {
            "name an even address of code; comparators of an ARMv6-M core end at 0x20000000"
                .to_owned()
        }
        ProbeError::UnknownRegister { .. } => format!("see all of them: jig regs -b {place}"),
        ProbeError::VerifyFailed { .. } | ProbeError::FlashFailed { .. } => {
            format!("erase it all and try again: jig erase -b {place}")
        }
        ProbeError::NoFlashAlgorithm { .. } => {
            "name the exact chip with --chip, or in the board's profile a program that flashes it"
                .to_owned()
        }
        ProbeError::Cancelled { left: FlashLeft::Partial | FlashLeft::Unverified } => {
            format!("before it is used, flash it again: jig flash -b {place} IMAGE")
        }
        _ => return None,
    })
}
