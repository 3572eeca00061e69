//! Lowering one action: which kind it is, which keys belong to it, how long it may take.
//!
//! Owns the defaults of actions. Refuses two kinds in one action, and keys of another kind.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use super::check::wait_ends;
use super::raw::{ActionKeys, RawAction, RawCopy, RawSwitch};
use super::types::{ActionKind, Assertion};
use crate::document::{Findings, Located};

/// How long an action may take if it does not say; never longer than the plan.
pub mod defaults {
    use std::time::Duration;

    /// Switching power: an emulator starts in under a second, a slow outlet with its
    /// off-time takes ten.
    pub const POWER: Duration = Duration::from_secs(30);
    /// A reset: a line is pulled or a monitor is asked.
    pub const RESET: Duration = Duration::from_secs(10);
    /// A reset of the target, and the first output behind it: the time-outs of watchdogs are seconds.
    pub const EXPECT_RESET: Duration = Duration::from_secs(10);
    /// Deploying: a megabyte of flash at 20 KiB/s, with some air.
    pub const DEPLOY: Duration = Duration::from_secs(60);
    /// All boot stages: an emulated Linux machine takes half a minute on a busy host; each
    /// stage has its own limit in the profile.
    pub const BOOT: Duration = Duration::from_secs(120);
    /// Awaited text: what firmware prints by itself, it prints within seconds.
    pub const EXPECT: Duration = Duration::from_secs(10);
    /// Sending: kilobytes at 9600 baud.
    pub const SEND: Duration = Duration::from_secs(10);
    /// A program on the target.
    pub const EXEC: Duration = Duration::from_secs(60);
    /// A file to or from the target: megabytes over a network, and a hundred kilobytes over a serial
    /// console.
    pub const COPY: Duration = Duration::from_secs(120);
    /// A reboot, as long as all boot stages may take.
    pub const REBOOT: Duration = BOOT;
    /// A program on the host.
    pub const HOST_COMMAND: Duration = Duration::from_secs(60);
    /// A look at output that is there already.
    pub const ASSERT: Duration = Duration::from_secs(5);
    /// What a sleep may take beyond its duration, on a busy host.
    pub const SLEEP_SLACK: Duration = Duration::from_secs(1);
}

/// Keys that say what an action does.
const KINDS: [&str; 15] = [
    "power",
    "reset",
    "expect_reset",
    "deploy",
    "boot",
    "expect",
    "send",
    "wait_for_results",
    "exec",
    "upload",
    "download",
    "reboot",
    "host_command",
    "assert",
    "sleep",
];

/// A lowered action that has no name yet.
#[derive(Debug)]
pub(super) struct LoweredAction {
    pub(super) kind: ActionKind,
    pub(super) timeout: Duration,
    /// The head of a default name.
    pub(super) word: &'static str,
}

/// Lowers an action, or reports why not.
pub(super) fn lower(
    raw: Located<RawAction>,
    plan_timeout: Duration,
    findings: &Findings,
) -> Option<LoweredAction> {
    let place = raw.at();
    let RawAction { keys: raw, named } = raw.value;
    let mut given = named.iter().filter_map(|(key, span)| {
        KINDS.iter().find(|kind| *kind == key).map(|kind| (*kind, span.clone()))
    });
    let Some((word, _)) = given.next() else {
        // An unknown key was probably meant to say it, and was reported.
        if keys_are_known(&named) {
            findings.add(
                "plan::no-kind",
                place,
                "the action does not say what to do",
                format!("add one of: {}", KINDS.join(", ")),
            );
        }
        return None;
    };
    if let Some((second, at)) = given.next() {
        findings.add(
            "plan::two-kinds",
            Some(at),
            format!("`{second}` cannot stand in one action with `{word}`"),
            "make it an action of its own: they run one after the other",
        );
        return None;
    }
    stray_keys(&named, word, findings);
    if let Some(timeout) = &raw.timeout {
        wait_ends("timeout", timeout.value, timeout.at(), findings);
    }
    let chosen = raw.timeout.as_ref().map(|t| t.value);
    let kind = kind_of(raw, chosen.unwrap_or(plan_timeout), plan_timeout, findings)?;
    let timeout = chosen.unwrap_or_else(|| default_timeout(&kind, plan_timeout));
    Some(LoweredAction { kind, timeout: timeout.min(plan_timeout), word: name_word(word) })
}

/// Says which kinds a key belongs to, where it does not belong to all.
fn owners(key: &str) -> Option<&'static [&'static str]> {
    match key {
        "console" => Some(&["expect_reset", "expect", "send", "wait_for_results", "assert"]),
        "reject" | "echo" => Some(&["expect"]),
        "exit_code" => Some(&["exec", "host_command"]),
        "via" => Some(&["exec", "upload", "download", "reboot"]),
        "at_least" | "absent" => Some(&["assert"]),
        _ => None,
    }
}

/// Tells whether every key is one that any action may have.
fn keys_are_known(named: &[(String, Range<usize>)]) -> bool {
    named.iter().all(|(key, _)| owners(key).is_some() || key == "name" || key == "timeout")
}

/// Reports keys that mean nothing for the kind.
fn stray_keys(named: &[(String, Range<usize>)], kind: &str, findings: &Findings) {
    for (key, span) in named {
        if let Some(owners) = owners(key).filter(|owners| !owners.contains(&kind)) {
            findings.add(
                "plan::stray-key",
                Some(span.clone()),
                format!("`{key}` means nothing for `{kind}`"),
                format!("remove it; it belongs to {}", owners.join(", ")),
            );
        }
    }
}

fn name_word(kind: &'static str) -> &'static str {
    match kind {
        "wait_for_results" => "wait-for-results",
        "expect_reset" => "expect-reset",
        "host_command" => "host-command",
        other => other,
    }
}

fn default_timeout(kind: &ActionKind, plan_timeout: Duration) -> Duration {
    match kind {
        ActionKind::Power { .. } => defaults::POWER,
        ActionKind::Reset => defaults::RESET,
        ActionKind::ExpectReset { .. } => defaults::EXPECT_RESET,
        ActionKind::Deploy { .. } => defaults::DEPLOY,
        ActionKind::Boot { .. } => defaults::BOOT,
        ActionKind::Expect { .. } => defaults::EXPECT,
        ActionKind::Send { .. } => defaults::SEND,
        // A report is what a plan with tests is for: it has the plan's time.
        ActionKind::WaitForResults { .. } => plan_timeout,
        ActionKind::Exec { .. } => defaults::EXEC,
        ActionKind::Upload { .. } | ActionKind::Download { .. } => defaults::COPY,
        ActionKind::Reboot { .. } => defaults::REBOOT,
        ActionKind::HostCommand { .. } => defaults::HOST_COMMAND,
        ActionKind::Assert { .. } => defaults::ASSERT,
        ActionKind::Sleep { duration } => duration.saturating_add(defaults::SLEEP_SLACK),
    }
}

/// Builds the kind. Every refusal has been reported when it returns nothing.
fn kind_of(
    raw: ActionKeys,
    limit: Duration,
    plan_timeout: Duration,
    findings: &Findings,
) -> Option<ActionKind> {
    let console = raw.console.map(|c| c.value);
    if let Some(op) = raw.power {
        return Some(ActionKind::Power { op: op.value });
    }
    if raw.reset.is_some() {
        return Some(ActionKind::Reset);
    }
    if let Some(expected) = raw.expect_reset {
        let begins = match expected.value {
            RawSwitch::On => None,
            RawSwitch::With(pattern) => Some(pattern),
        };
        return Some(ActionKind::ExpectReset { console, begins });
    }
    if let Some(deploy) = raw.deploy {
        let image = match word("deploy", deploy, findings)? {
            RawSwitch::On => None,
            RawSwitch::With(path) => Some(PathBuf::from(path)),
        };
        return Some(ActionKind::Deploy { image });
    }
    if let Some(boot) = raw.boot {
        let until = match word("boot", boot, findings)? {
            RawSwitch::On => None,
            RawSwitch::With(stage) => Some(stage),
        };
        return Some(ActionKind::Boot { until });
    }
    if let Some(expect) = raw.expect {
        let place = expect.at();
        let any: Vec<_> = expect.value.0.into_iter().map(|p| p.value).collect();
        if any.is_empty() {
            // Patterns that were refused are gone from the list, but were reported.
            let help = "give at least one regular expression, such as '^ready$'";
            findings.add("plan::no-pattern", place, "`expect` awaits nothing", help);
            return None;
        }
        let reject = raw.reject.map(|r| r.value.0).unwrap_or_default();
        let reject = reject.into_iter().map(|p| p.value).collect();
        let echo = raw.echo.is_some_and(|echo| echo.value);
        return Some(ActionKind::Expect { console, any, reject, echo });
    }
    if let Some(text) = raw.send {
        if text.value.is_empty() {
            let help = "write what to send, such as \"help\\n\"";
            findings.add("plan::nothing-to-do", text.at(), "`send` sends nothing", help);
            return None;
        }
        return Some(ActionKind::Send { console, bytes: text.value.into_bytes() });
    }
    if let Some(wait) = raw.wait_for_results {
        let format = match wait.value {
            RawSwitch::On => None,
            RawSwitch::With(format) => Some(format),
        };
        return Some(ActionKind::WaitForResults { console, format });
    }
    let exit_code = raw.exit_code.map_or(0, |c| c.value);
    let via = raw.via.map(|via| via.value);
    if let Some(command) = raw.exec {
        let argv = command_words("exec", command, findings)?;
        return Some(ActionKind::Exec { argv, exit_code: Some(exit_code), via });
    }
    if let Some(copy) = raw.upload {
        let (from, to) = copied(copy, "upload", findings)?;
        return Some(ActionKind::Upload { from: PathBuf::from(from), to, mode: None, via });
    }
    if let Some(copy) = raw.download {
        let (from, to) = copied(copy, "download", findings)?;
        return Some(ActionKind::Download { from, to, via });
    }
    if raw.reboot.is_some() {
        return Some(ActionKind::Reboot { via });
    }
    if let Some(command) = raw.host_command {
        let argv = command_words("host_command", command, findings)?;
        return Some(ActionKind::HostCommand { argv, exit_code });
    }
    if let Some(pattern) = raw.assert {
        let assertion = assertion(raw.at_least, raw.absent, findings)?;
        return Some(ActionKind::Assert { console, pattern: pattern.value, assertion });
    }
    let sleep = raw.sleep?;
    wait_ends("sleep", sleep.value, sleep.at(), findings);
    for (whose, most) in [("the plan's", plan_timeout), ("its own", limit)] {
        if sleep.value > most {
            findings.add(
                "plan::endless",
                sleep.at(),
                format!("the sleep is longer than {whose} time-out, so it can never end well"),
                "wait for what the sleep stands for (expect, boot), or allow more time",
            );
            break;
        }
    }
    Some(ActionKind::Sleep { duration: sleep.value })
}

/// Refuses the empty word, which would name nothing.
fn word(
    key: &str,
    switch: Located<RawSwitch<String>>,
    findings: &Findings,
) -> Option<RawSwitch<String>> {
    match &switch.value {
        RawSwitch::With(text) if text.is_empty() => {
            let message = format!("`{key}` names nothing");
            findings.add("plan::nothing-to-do", switch.at(), message, "write true, or a name");
            None
        }
        RawSwitch::With(_) | RawSwitch::On => Some(switch.value),
    }
}

/// Returns both ends of a copy: the second one is named as the first if it is left out.
fn copied(copy: Located<RawCopy>, key: &str, findings: &Findings) -> Option<(String, String)> {
    const CHECK: &str = "plan::copy";
    let RawCopy { from, to } = copy.value;
    let from = from?;
    let name = |path: &str| path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    let place = to.as_ref().map_or(from.at(), Located::at);
    let to = to.map_or_else(|| name(&from.value), |to| to.value);
    let is_path = |text: &str| !text.is_empty() && !text.contains(['\0', '\n']);
    if !is_path(&from.value) || name(&from.value).is_empty() {
        let help = "name a file, such as \"build/tests\"";
        findings.add(CHECK, from.at(), format!("`from` of `{key}` names no file"), help);
        return None;
    }
    // A name in the run's own folder, which the file keeps there.
    let is_name = !to.contains(['/', '\\']) && to != "." && to != ".." && to.len() <= 100;
    if !is_path(&to) || (key == "download" && !is_name) {
        let help = match key {
            "download" => "write a name without a folder, such as \"dmesg.txt\"",
            _ => "write a path on the target, such as \"/tmp/tests\"",
        };
        findings.add(CHECK, place, format!("`to` of `{key}` names no file"), help);
        return None;
    }
    Some((from.value, to))
}

/// Returns the words of a command, or reports why they are none.
fn command_words(
    key: &str,
    command: Located<Vec<Located<String>>>,
    findings: &Findings,
) -> Option<Vec<String>> {
    let place = command.at();
    if command.value.first().is_none_or(|program| program.value.is_empty()) {
        let help = "write a list of program and arguments, such as [\"ping\", \"-c1\", \"host\"]";
        findings.add("plan::bad-command", place, format!("`{key}` names no program"), help);
        return None;
    }
    if let Some(bad) = command.value.iter().find(|arg| arg.value.contains('\0')) {
        let help = "no program can be given one; write it to a file and name that";
        findings.add("plan::bad-command", bad.at(), "the argument holds a zero byte", help);
        return None;
    }
    Some(command.value.into_iter().map(|arg| arg.value).collect())
}

fn assertion(
    at_least: Option<Located<u32>>,
    absent: Option<Located<bool>>,
    findings: &Findings,
) -> Option<Assertion> {
    const CHECK: &str = "plan::bad-assertion";
    match (at_least, absent) {
        (None, None) => Some(Assertion::AtLeast(1)),
        (Some(n), None) if n.value > 0 => Some(Assertion::AtLeast(n.value)),
        (Some(n), None) => {
            let help = "to forbid the text, write `absent = true`";
            findings.add(CHECK, n.at(), "`at_least = 0` always holds", help);
            None
        }
        (None, Some(absent)) if absent.value => Some(Assertion::Absent),
        (None, Some(absent)) => {
            let help = "remove it: without it, the text must be there";
            findings.add(CHECK, absent.at(), "`absent = false` says nothing", help);
            None
        }
        (Some(_), Some(absent)) => {
            let help = "keep one of them, or make two actions";
            findings.add(CHECK, absent.at(), "`absent` contradicts `at_least`", help);
            None
        }
    }
}
