//! Commands of gdb's `monitor`: what the protocol itself has no packet for.

use gdbstub::target::TargetError;
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd, outputln};

use super::target::{GdbTarget, told};
use crate::{ProbeError, RegisterValue, ResetInto};

impl MonitorCmd for GdbTarget<'_> {
    fn handle_monitor_cmd(
        &mut self,
        command: &[u8],
        mut out: ConsoleOutput<'_>,
    ) -> Result<(), ProbeError> {
        let text = String::from_utf8_lossy(command);
        let words: Vec<&str> = text.split_whitespace().collect();
        let done = match words.as_slice() {
            ["reset"] | ["reset", "run"] => self.debuggee.reset(ResetInto::Run),
            ["reset", "halt"] => self.debuggee.reset(ResetInto::Halt),
            ["halt"] => self.debuggee.halt(),
            ["regs"] => self.debuggee.registers().map(|registers| {
                for RegisterValue { name, bits, value } in registers {
                    let width = 2 + usize::from(bits / 4);
                    outputln!(out, "{name:<10} {value:#0width$x}");
                }
            }),
            _ => {
                outputln!(out, "reset [run]  resets the chip and lets it run");
                outputln!(out, "reset halt   resets the chip and halts it before its program");
                outputln!(out, "halt         halts the core");
                outputln!(out, "regs         shows all registers");
                return Ok(());
            }
        };
        self.registers = None;
        match done {
            Ok(()) => Ok(()),
            Err(error) => {
                outputln!(out, "failed to {}: {error}", words.join(" "));
                match told(error) {
                    TargetError::Fatal(error) => Err(error),
                    _ => Ok(()),
                }
            }
        }
    }
}
