//! The files that a command names, for a caller on another host.

use std::path::PathBuf;

use super::{CodeLocation, Command, DebugAction, DebugCommand, ShellTask};

/// The files that a command names.
#[derive(Debug, Default)]
pub struct CommandFiles<'c> {
    /// Images that it reads, as `FILE` or `FILE.bin@ADDRESS`.
    pub images: Vec<&'c mut PathBuf>,
    /// Files that it writes.
    pub outputs: Vec<&'c mut PathBuf>,
}

impl Command {
    /// Returns the files that the command names.
    pub fn files(&mut self) -> CommandFiles<'_> {
        let images = |image| CommandFiles { images: Vec::from_iter(image), outputs: Vec::new() };
        let outputs = |file| CommandFiles { images: Vec::new(), outputs: Vec::from_iter(file) };
        match self {
            Self::Run(run) => images(run.image.as_mut()),
            Self::Test(test) => images(test.image.as_mut()),
            Self::Console(console) => images(console.image.as_mut()),
            Self::Flash(flash) => images(Some(&mut flash.image)),
            Self::ServeProbe(serve) => images(serve.image.as_mut()),
            Self::Hold(hold) => images(hold.image.as_mut()),
            Self::Shell(shell) => match &mut shell.what {
                ShellTask::Upload { from, .. } => images(Some(from)),
                ShellTask::Exec { .. } | ShellTask::Download { .. } => CommandFiles::default(),
            },
            Self::Debug(DebugCommand { action, .. }) => match action {
                DebugAction::Backtrace { image } | DebugAction::Rtt { image, .. } => {
                    images(image.as_mut())
                }
                DebugAction::Breakpoint { at: CodeLocation::Function { image, .. }, .. } => {
                    images(Some(image))
                }
                DebugAction::ReadMemory { output, .. } => outputs(output.as_mut()),
                DebugAction::Dump { output, .. } => outputs(Some(output)),
                DebugAction::Breakpoint { at: CodeLocation::Address(_), .. }
                | DebugAction::Halt
                | DebugAction::Resume
                | DebugAction::Step { .. }
                | DebugAction::Registers { .. }
                | DebugAction::WriteMemory { .. }
                | DebugAction::Gdb { .. } => CommandFiles::default(),
            },
            Self::Attach(_)
            | Self::LineControl(_)
            | Self::Recover(_)
            | Self::RecoverySteps(_)
            | Self::Power(_)
            | Self::Check(_)
            | Self::Erase(_)
            | Self::Reset(_) => CommandFiles::default(),
        }
    }

    /// Tells whether the command is a session, which has no purpose without its caller: a console, a
    /// channel or a server.
    pub fn is_session(&self) -> bool {
        match self {
            Self::Console(_) | Self::Attach(_) | Self::ServeProbe(_) | Self::Hold(_) => true,
            Self::Debug(debug) => {
                matches!(debug.action, DebugAction::Rtt { .. } | DebugAction::Gdb { .. })
            }
            Self::Run(_)
            | Self::Test(_)
            | Self::Shell(_)
            | Self::LineControl(_)
            | Self::Recover(_)
            | Self::RecoverySteps(_)
            | Self::Power(_)
            | Self::Check(_)
            | Self::Flash(_)
            | Self::Erase(_)
            | Self::Reset(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{FlashBy, FlashImageCommand, ProbeAccess};

    #[test]
    fn images_and_outputs_can_be_named_anew() {
        let place: crate::PlaceName = "bench".parse().unwrap();
        let mut flash = Command::Flash(FlashImageCommand {
            place: place.clone(),
            probe: ProbeAccess::default(),
            image: "app.elf".into(),
            by: FlashBy::Usual,
        });
        *flash.files().images[0] = "elsewhere.elf".into();
        assert!(matches!(&flash, Command::Flash(f) if f.image.ends_with("elsewhere.elf")));
        assert!(flash.files().outputs.is_empty() && !flash.is_session());
        let dump = DebugAction::Dump { output: "core".into(), memory: Vec::new() };
        let probe = ProbeAccess::default();
        let mut dump = Command::Debug(DebugCommand { place, probe, action: dump });
        assert_eq!(dump.files().outputs, [&mut PathBuf::from("core")]);
    }
}
