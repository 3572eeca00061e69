//! The `jig` binary: arguments, rendering, exit codes, signals.
//!
//! **Invariant: no decisions about boards or verdicts.** It asks the rig of this host
//! ([`jig_lab::Lab`]), shows what that says, and turns the outcome into an exit code. Everything a
//! target or a file says is escaped before it is shown.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the one crate that prints")]

mod args;
mod commands;
mod failure;
mod logs;
mod render;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use nix::sys::signal::{SigSet, Signal};

use crate::args::{Cli, CliCommand};
use crate::failure::Failure;
use crate::render::Screen;

/// Has a write beyond the limit on the size of files (`ulimit -f`) fail, which is reported, where
/// the signal would end the process before it can say why. Children inherit it and fail likewise.
fn report_large_files() {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    // Without it the signal ends the process, as it ends every other program.
    let _ = signals.thread_block();
}

fn main() -> ExitCode {
    // Before there is a second thread: each one inherits the mask.
    report_large_files();
    // Runs one program and ends all that it starts. It is started for each call of git and each build,
    // by Jig alone, so no time is spent on reading other verbs and options.
    if std::env::args_os().skip(1).eq(["supervise"]) {
        return commands::supervise::supervise();
    }
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(not_parsed(&error)),
    };
    let screen = Screen::new(&cli.common);
    let colour = std::io::stderr().is_terminal() && screen.colour();
    logs::start(cli.common.verbose, cli.common.quiet, cli.common.log_format, colour);
    let outcome = match cli.command {
        CliCommand::Run(args) => commands::run::run(&cli.common, &screen, args),
        CliCommand::Test(args) => commands::run::test(&cli.common, &screen, args),
        CliCommand::Console(args) => commands::console::console(&cli.common, &screen, args),
        CliCommand::Exec(args) => commands::exec::exec(&cli.common, &screen, args),
        CliCommand::Cp(args) => commands::exec::copy(&cli.common, &screen, args),
        CliCommand::Hold(args) => commands::hold::hold(&cli.common, &screen, args),
        CliCommand::Recover(args) => commands::recover::recover(&cli.common, &screen, args),
        CliCommand::Health(args) => commands::health::health(&cli.common, &screen, args),
        CliCommand::Discover(args) => commands::discover::discover(&cli.common, &screen, args),
        CliCommand::Power(args) => commands::power::power(&cli.common, &screen, args),
        CliCommand::Probes => commands::probe::probes(&cli.common, &screen),
        CliCommand::Flash(args) => commands::probe::flash(&cli.common, &screen, args),
        CliCommand::Erase(args) => commands::probe::erase(&cli.common, &screen, args),
        CliCommand::Reset(args) => commands::probe::reset(&cli.common, &screen, args),
        CliCommand::Halt(at) => commands::probe::halt(&cli.common, &screen, at),
        CliCommand::Resume(at) => commands::probe::resume(&cli.common, &screen, at),
        CliCommand::Step(args) => commands::probe::step(&cli.common, &screen, args),
        CliCommand::Regs(args) => commands::probe::registers(&cli.common, &screen, args),
        CliCommand::Mem(command) => commands::probe::memory(&cli.common, &screen, command),
        CliCommand::Bp(args) => commands::probe::breakpoint(&cli.common, &screen, args),
        CliCommand::Bt(args) => commands::probe::backtrace(&cli.common, &screen, args),
        CliCommand::Rtt(args) => commands::probe::rtt(&cli.common, &screen, args),
        CliCommand::Dump(args) => commands::probe::dump(&cli.common, &screen, args),
        CliCommand::Gdb(args) => commands::probe::gdb(&cli.common, &screen, args),
        CliCommand::Probe(command) => commands::probe::probe(&cli.common, &screen, command),
        CliCommand::Serve(args) => commands::serve::serve(&cli.common, args),
        CliCommand::Top(args) => commands::top::top(&cli.common, &screen, args),
        CliCommand::Worker(args) => Ok(commands::worker::worker(&cli.common, &screen, args)),
        CliCommand::Rpc(args) => commands::rpc::rpc(&cli.common, args),
        CliCommand::Lease(command) => commands::lease::lease(&cli.common, &screen, command),
        CliCommand::Shell(args) => commands::lease::shell(&cli.common, &screen, args),
        CliCommand::Access(command) => commands::access::access(&cli.common, &screen, command),
        CliCommand::Audit(args) => commands::audit::audit(&cli.common, &screen, args),
        CliCommand::Chips(args) => commands::chips::chips(&screen, &args),
        CliCommand::Boards => commands::boards::boards(&cli.common, &screen),
        CliCommand::Profile(command) => commands::profile::profile(&cli.common, &screen, command),
        CliCommand::Plan(command) => commands::plan::plan(&screen, command),
        CliCommand::Runs { command } => commands::runs::runs(&cli.common, &screen, command),
        CliCommand::Flashers(args) => commands::flashers::flashers(&screen, &args),
        CliCommand::Inject(args) => commands::inject::inject(&screen, &args),
        CliCommand::Doctor(args) => commands::doctor::doctor(&cli.common, &screen, &args),
        CliCommand::Machine(command) => commands::machine::machine(&screen, command),
        CliCommand::Repair(args) => commands::repair::repair(&cli.common, &screen, *args),
        CliCommand::Ask(args) => commands::ask::ask(&cli.common, &screen, *args),
        CliCommand::Sessions(command) => commands::ask::sessions(&cli.common, &screen, command),
        CliCommand::Kb(command) => commands::knowledge::knowledge(&cli.common, &screen, *command),
        CliCommand::Mcp(command) => commands::mcp::mcp(&cli.common, &screen, command),
        CliCommand::Explain(command) => commands::explain::explain(&cli.common, &screen, command),
        CliCommand::Completions { shell } => commands::manual::completions(shell),
        CliCommand::Man { dir } => commands::manual::man(&dir),
    };
    // Output that was lost is no success, whatever the command came to; nor may it hide a
    // worse end.
    let outcome = match (outcome, screen.output_failure()) {
        (Ok(jig_model::exit::PASS), Some(lost)) => Err(lost),
        (Ok(code), Some(lost)) => {
            screen.failure(&lost);
            Ok(code)
        }
        (outcome, _) => outcome,
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            screen.failure(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Shows the help or version that was asked for, or what is wrong with the arguments; returns the
/// exit code.
fn not_parsed(error: &clap::Error) -> u8 {
    // Help and version are no errors to clap; their exit code is 0.
    if !error.use_stderr() {
        let _ = error.print();
        return jig_model::exit::PASS;
    }
    // The arguments were not understood, so `--json` is looked for among them as they were typed.
    let mut typed = std::env::args_os().skip(1).take_while(|arg| arg != "--");
    if typed.any(|arg| arg == "--json") {
        println!("{}", render::failure_json(&Failure::arguments(error)));
    } else {
        let _ = error.print();
    }
    jig_model::exit::USAGE
}
