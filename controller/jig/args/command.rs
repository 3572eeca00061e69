//! What users type, as a command to the rig.

use std::time::Duration;

use jig_drivers::inject::Injection;
use jig_model::command::{
    AttachCommand, AttachFollow, AttachInput, Command, ConsoleCommand, LineControlCommand,
    PlanText, PowerAction, PowerCommand, RecoverCommand, RecoverExtent, RecoverySteps, RunCommand,
    RunOptions, TestCommand,
};
use jig_model::protocol::LineControl;
use jig_model::{ConsoleName, PlaceName, Strictness};

use super::{
    AttachArgs, ConsoleArgs, FaultArgs, LineSwitch, PowerArgs, RecoverArgs, ReportArgs, RunArgs,
    TestArgs,
};

/// Returns a time in milliseconds.
pub(crate) fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn options(reports: &ReportArgs, faults: &FaultArgs) -> RunOptions {
    let inject = faults.inject.iter().map(Injection::to_string).collect();
    RunOptions {
        repeat: reports.repeat,
        recoveries: reports.max_recoveries,
        settle_ms: reports.settle.map(ms),
        strict: match (reports.strict, reports.strict_behind) {
            (true, _) => Strictness::All,
            (false, true) => Strictness::Behind,
            (false, false) => Strictness::Off,
        },
        inject,
        coverage: reports.coverage || reports.coverage_by_test,
        coverage_by_test: reports.coverage_by_test,
        asked: None,
    }
}

impl RunArgs {
    /// Returns the command.
    pub(crate) fn command(&self) -> Command {
        Command::Run(RunCommand {
            place: self.target.board.clone(),
            image: self.image.clone(),
            resets: self.resets,
            next_boot: self.next_boot.clone(),
            until: self.until.clone(),
            console: self.console.clone(),
            reject: self.reject.clone(),
            allow: self.allow.clone(),
            timeout_ms: ms(self.timeout),
            options: options(&self.reports, &self.faults),
        })
    }
}

impl TestArgs {
    /// Returns the command; `text` is what the plan's file holds.
    pub(crate) fn command(&self, text: String) -> Command {
        Command::Test(TestCommand {
            place: self.target.board.clone(),
            plan: PlanText { origin: self.plan.display().to_string(), text },
            image: self.image.clone(),
            options: options(&self.reports, &self.faults),
        })
    }
}

/// How far back the output of a console begins for a person, if not said.
const BACK: Duration = Duration::from_secs(60);

impl ConsoleArgs {
    /// Returns the command of a session: one that attaches to a console, and boots the board where that is
    /// not to be had; one that boots it where an image is named.
    /// `older` shows older output although no option says so.
    pub(crate) fn console_command(
        &self,
        console: &ConsoleName,
        quiet: Duration,
        older: bool,
    ) -> Command {
        let AttachArgs { listen_only, since, follow, take, .. } = &self.attach;
        let back = if older { BACK } else { Duration::ZERO };
        let command = AttachCommand {
            place: self.target.board.clone(),
            console: Some(console.clone()),
            since_ms: ms(since.unwrap_or(back)),
            follow: match (listen_only, follow, since) {
                (false, ..) | (true, true, _) => AttachFollow::Always,
                (true, false, Some(_)) => AttachFollow::Logged,
                (true, false, None) => AttachFollow::Captured,
            },
            input: match (listen_only, take) {
                (true, _) => AttachInput::None,
                (false, true) => AttachInput::Take,
                (false, false) => AttachInput::Send,
            },
            quiet_ms: ms(quiet),
            boot: (!self.attach.wants_a_live_one()).then(|| self.boot(console, quiet)),
        };
        match self.image {
            None => Command::Attach(command),
            Some(_) => Command::Console(self.boot(console, quiet)),
        }
    }

    /// Returns the command that controls the serial line, if that is asked for.
    pub(crate) fn line_command(&self, console: &ConsoleName) -> Option<Command> {
        let asked = &self.attach;
        let on = |switch: LineSwitch| switch == LineSwitch::On;
        let controls = [
            asked.dtr.map(|switch| LineControl::Dtr(on(switch))),
            asked.rts.map(|switch| LineControl::Rts(on(switch))),
            asked.send_break.then_some(LineControl::Break),
        ];
        let controls: Vec<_> = controls.into_iter().flatten().collect();
        let (place, console) = (self.target.board.clone(), Some(console.clone()));
        let command = LineControlCommand { place, console, take: asked.take, controls };
        (!command.controls.is_empty()).then_some(Command::LineControl(command))
    }

    /// Returns the command that boots the board.
    fn boot(&self, console: &ConsoleName, quiet: Duration) -> ConsoleCommand {
        ConsoleCommand {
            place: self.target.board.clone(),
            image: self.image.clone(),
            console: Some(console.clone()),
            quiet_ms: ms(quiet),
        }
    }
}

impl RecoverArgs {
    /// Returns the command.
    pub(crate) fn command(&self) -> Command {
        let (place, from) = (self.target.board.clone(), self.from);
        if self.dry_run {
            return Command::RecoverySteps(RecoverySteps { place, from });
        }
        let extent = from.map_or(RecoverExtent::Recover, RecoverExtent::From);
        Command::Recover(RecoverCommand { place, extent })
    }
}

impl PowerArgs {
    /// Returns the place, if one is named.
    pub(crate) fn place(&self) -> Option<&PlaceName> {
        self.explain.iter().flatten().next().or(self.board.as_ref())
    }

    /// Returns the command for a place.
    pub(crate) fn command(&self, place: PlaceName) -> Command {
        Command::Power(PowerCommand {
            place,
            action: self.action.map_or(PowerAction::Explain, super::PowerVerb::asked),
            off_ms: self.off_time.map(ms),
            force: self.force,
            wait_ms: ms(self.wait),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser as _;
    use jig_model::command::to_line;

    use crate::args::{Cli, CliCommand};

    /// Returns the command that a line means, as it travels.
    fn typed(line: &str) -> String {
        let command = match Cli::parse_from(line.split_whitespace()).command {
            CliCommand::Run(args) => args.command(),
            CliCommand::Test(args) => args.command("version = 1\n".to_owned()),
            CliCommand::Console(args) => {
                let (console, quiet) = ("u".parse().unwrap(), Duration::from_secs(1));
                let line = args.line_command(&console);
                let older = args.shows_older(true, true);
                line.unwrap_or_else(|| args.console_command(&console, quiet, older))
            }
            CliCommand::Recover(args) => args.command(),
            CliCommand::Power(args) => args.command(args.place().unwrap().clone()),
            other => panic!("{other:?} is none of these"),
        };
        to_line(&command).unwrap()
    }

    fn say(text: &str) -> String {
        format!("{{\"version\":4,\"say\":{{{text}}}}}")
    }

    #[test]
    fn what_is_typed_is_what_is_asked() {
        let options = r#""options":{"repeat":1}"#;
        for (line, said) in [
            (
                "jig run -b a app.elf",
                format!(
                    r#""command":"run","place":"a","image":"app.elf","timeout_ms":10000,{options}"#
                ),
            ),
            (
                "jig run -b a --until up --timeout 2s --repeat 3 --max-recoveries 0 --inject kill-emulator@2s",
                r#""command":"run","place":"a","until":"up","timeout_ms":2000,"options":{"repeat":3,"recoveries":0,"inject":["kill-emulator@2s"]}"#.to_owned(),
            ),
            (
                "jig run -b a --until up --console uart1",
                format!(
                    r#""command":"run","place":"a","until":"up","console":"uart1","timeout_ms":10000,{options}"#
                ),
            ),
            (
                "jig test -b a plan.toml",
                format!(
                    r#""command":"test","place":"a","plan":{{"origin":"plan.toml","text":"version = 1\n"}},{options}"#
                ),
            ),
            (
                "jig console -b a",
                r#""command":"attach","place":"a","console":"u","since_ms":60000,"follow":"always","input":"send","quiet_ms":1000,"boot":{"place":"a","console":"u","quiet_ms":1000}"#.to_owned(),
            ),
            (
                "jig console -b a --raw",
                r#""command":"attach","place":"a","console":"u","since_ms":0,"follow":"always","input":"send","quiet_ms":1000,"boot":{"place":"a","console":"u","quiet_ms":1000}"#.to_owned(),
            ),
            (
                "jig console -b a --raw=bytes --since 3s",
                r#""command":"attach","place":"a","console":"u","since_ms":3000,"follow":"always","input":"send","quiet_ms":1000"#.to_owned(),
            ),
            (
                "jig console -b a --listen-only",
                r#""command":"attach","place":"a","console":"u","since_ms":60000,"follow":"captured","input":"none","quiet_ms":1000"#.to_owned(),
            ),
            (
                "jig console -b a --listen-only --since 2s",
                r#""command":"attach","place":"a","console":"u","since_ms":2000,"follow":"logged","input":"none","quiet_ms":1000"#.to_owned(),
            ),
            (
                "jig console -b a --listen-only --since 2s --follow",
                r#""command":"attach","place":"a","console":"u","since_ms":2000,"follow":"always","input":"none","quiet_ms":1000"#.to_owned(),
            ),
            (
                "jig console -b a --take --send-break --rts off",
                r#""command":"line_control","place":"a","console":"u","controls":[{"rts":false},"break"],"take":true"#.to_owned(),
            ),
            (
                "jig console -b a --image app.elf",
                r#""command":"console","place":"a","image":"app.elf","console":"u","quiet_ms":1000"#.to_owned(),
            ),
            ("jig recover -b a", r#""command":"recover","place":"a","extent":"recover""#.to_owned()),
            (
                "jig recover -b a --from reopen",
                r#""command":"recover","place":"a","extent":{"from":"reopen"}"#.to_owned(),
            ),
            ("jig recover -b a --dry-run", r#""command":"recovery_steps","place":"a""#.to_owned()),
            (
                "jig power -b a cycle --off-time 2s --force --wait 1s",
                r#""command":"power","place":"a","action":"cycle","off_ms":2000,"force":true,"wait_ms":1000"#.to_owned(),
            ),
            (
                "jig power --explain a",
                r#""command":"power","place":"a","action":"explain","force":false,"wait_ms":0"#.to_owned(),
            ),
        ] {
            assert_eq!(typed(line), say(&said), "{line}");
        }
    }
    #[test]
    fn only_a_person_is_shown_older_output() {
        let args = |line: &str| match Cli::parse_from(line.split_whitespace()).command {
            CliCommand::Console(args) => args,
            other => panic!("{other:?} is no console"),
        };
        for (line, stdin, stdout, shown) in [
            ("jig console -b a", true, true, true),
            ("jig console -b a", true, false, false),
            ("jig console -b a", false, true, false),
            ("jig console -b a --listen-only", false, true, true),
            ("jig console -b a --listen-only", true, false, false),
            ("jig console -b a --raw", true, true, false),
            ("jig console -b a --raw=bytes", true, true, false),
        ] {
            assert_eq!(args(line).shows_older(stdin, stdout), shown, "{line} {stdin} {stdout}");
        }
    }
}
