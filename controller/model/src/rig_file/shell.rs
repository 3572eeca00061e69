//! The `[place.shell]` table: what must hold of it beside its profile's.

use crate::document::{Findings, Located, did_you_mean};
use crate::profile::{BoardProfile, ConsoleKind};
use crate::shell::{RawShell, ShellKind, sound};

/// Checks the table of a place.
pub(super) fn check(
    shell: &RawShell,
    is_emulated: bool,
    profile: Option<&BoardProfile>,
    findings: &Findings,
) {
    const CHECK: &str = "rig::shell";
    if let Some(port) = &shell.forwarded {
        let message = "only a profile knows which port its emulation forwards";
        findings.add(CHECK, port.at(), message, "write it below `[shell]` of the profile");
    }
    if let Some(host) = shell.host.as_ref().filter(|_| is_emulated) {
        let message = "an emulated board is reached by a port that its emulator forwards";
        findings.add(CHECK, host.at(), message, "remove the line");
    }
    if let (Some(console), Some(profile)) = (&shell.console, profile) {
        let uarts = profile.consoles.iter().filter(|console| console.kind == ConsoleKind::Uart);
        let names = uarts.map(|uart| uart.name.as_str());
        if !names.clone().any(|name| name == console.value.as_str()) {
            let message = format!("board {} has no serial console {}", profile.id, console.value);
            let help = did_you_mean(console.value.as_str(), names);
            findings.add(CHECK, console.at(), message, help);
        }
    }
    let serial_only = shell.host.is_none() && !is_emulated;
    let base = profile.and_then(|profile| profile.shell.as_ref());
    let kind = shell.kind.as_ref().map(|kind| kind.value).or(base.and_then(|base| base.kind));
    let has_prompt = shell.prompt.is_some() || base.is_some_and(|base| base.prompt.is_some());
    if serial_only && !has_prompt && profile.is_some() {
        let at = shell.kind.as_ref().map(Located::at).or(shell.user.as_ref().map(Located::at));
        let message = "nothing says how the shell is reached";
        let help = "add `host = \"...\"` for SSH, or `prompt = '...'` for a serial console";
        findings.add(CHECK, at.flatten(), message, help);
    } else if serial_only && !matches!(kind, None | Some(ShellKind::Sh)) {
        let at = shell.kind.as_ref().map(Located::at).or(shell.prompt.as_ref().map(Located::at));
        let message = "over a serial console only a POSIX shell is commanded";
        findings.add(CHECK, at.flatten(), message, "write kind = \"sh\", or add `host` for SSH");
    }
    sound(shell, CHECK, findings);
}
