//! The `[shell]` table as it is written, what must hold of it, and what it becomes.

use std::path::PathBuf;

use super::{HostKeyCheck, SerialLogin, ShellKind, ShellTable, ShellWay, TextEncoding};
use crate::ConsoleName;
use crate::document::{Findings, Located, did_you_mean};
use crate::pattern::Pattern;
use crate::power::SecretSource;
use crate::toml_table;

/// What getty and busybox print when they want a user and a password.
const USER_PROMPT: &str = "(?i)login: ?$";
const PASSWORD_PROMPT: &str = "(?i)password: ?$";

toml_table! {
    /// The shell of a target that runs an operating system. Keys of a place go before those of the
    /// profile of its board, key by key.
    pub(crate) struct RawShell {
        /// The kind of shell: "sh", "powershell" or "cmd"; "sh" if missing. Over a serial console
        /// only "sh".
        kind: ShellKind = optional,
        /// The encoding of what it prints; "utf-8" if missing.
        encoding: TextEncoding = optional,
        /// Which way commands take if a plan does not say; "ssh" if both are there and this is
        /// missing.
        via: ShellWay = optional,
        /// The host of its SSH server, by name or address. Of a place only.
        host: String = optional,
        /// The port of that server; 22 if missing. Of a place only.
        port: u16 = optional,
        /// Name of the port, as in `{port:NAME}` of the emulation's arguments, behind which the SSH
        /// server of an emulated board listens. Of a profile only.
        forwarded: String = optional,
        /// The user to log in as over SSH; as ~/.ssh/config says if missing.
        user: String = optional,
        /// The file of the private key, by its whole path or below `~/`; agent and usual files if
        /// missing.
        identity: String = optional,
        /// The file of known hosts, by its whole path or below `~/`; the usual files if missing.
        known_hosts: String = optional,
        /// Which host keys are accepted: "known" ones, "accept-new" to write down the key of a host
        /// without an entry, or "any". If missing: "known", and "any" behind a forwarded port.
        host_key: HostKeyCheck = optional,
        /// The serial console of the shell; the first one of the place if missing.
        console: ConsoleName = optional,
        /// What the shell prints on its serial console when it takes a command, such as '^# $'.
        /// Without it no command is typed there.
        prompt: Pattern = optional,
        /// How to log in at the serial console, where it asks for it.
        login: RawLogin = optional,
        /// The command that reboots the target, and its arguments, one by one; "reboot" of "sh" and
        /// "shutdown /r /t 0" of the others if missing.
        reboot: Vec<Located<String>> = optional,
    }

    /// How to log in at a serial console.
    pub(crate) struct RawLogin {
        /// The user.
        user: String = required,
        /// What the console prints when it wants the user; '(?i)login: ?$' if missing.
        user_prompt: Pattern = optional,
        /// Where the password is kept; none is asked for if missing.
        password: SecretSource = optional,
        /// What the console prints when it wants the password; '(?i)password: ?$' if missing.
        password_prompt: Pattern = optional,
    }
}

/// Checks the table of a profile. `ports` are those that its emulation forwards.
pub(crate) fn check_in_profile(
    shell: &RawShell,
    ports: &[&str],
    uarts: &[&str],
    check: &'static str,
    findings: &Findings,
) {
    let of_place = [
        ("host", shell.host.as_ref().map(Located::at)),
        ("port", shell.port.as_ref().map(Located::at)),
    ];
    for (key, at) in of_place {
        if let Some(at) = at {
            let message = format!("`{key}` differs from place to place");
            let help = "write it below `[place.shell]` of a rig file";
            findings.add(check, at, message, help);
        }
    }
    if let Some(port) = shell.forwarded.as_ref().filter(|port| !ports.contains(&&*port.value)) {
        let message = format!("the emulation forwards no port {:?}", port.value);
        let help = match ports {
            [] => "add `hostfwd=tcp:127.0.0.1:{port:ssh}-:22` to its arguments".to_owned(),
            ports => did_you_mean(&port.value, ports.iter().copied()),
        };
        findings.add(check, port.at(), message, help);
    }
    if let Some(console) = shell.console.as_ref().filter(|c| !uarts.contains(&c.value.as_str())) {
        let message = format!("the board has no serial console {}", console.value);
        let help = did_you_mean(console.value.as_str(), uarts.iter().copied());
        findings.add(check, console.at(), message, help);
    }
    sound(shell, check, findings);
}

/// Tells whether a text can be a host: no option of a program, no part of an address.
fn is_host(text: &str) -> bool {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    // An IPv6 address may name an interface behind `%`.
    let v6 = bare.split('%').next().is_some_and(|ip| ip.parse::<core::net::Ipv6Addr>().is_ok());
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    v6 || ((1..=253).contains(&text.len()) && !text.starts_with('-') && text.chars().all(fits))
}

/// Checks what holds for both.
pub(crate) fn sound(shell: &RawShell, check: &'static str, findings: &Findings) {
    if let Some(host) = shell.host.as_ref().filter(|host| !is_host(&host.value)) {
        let help =
            "write a name or an address, such as \"192.0.2.7\"; the port is a key of its own";
        findings.add(check, host.at(), "this is no host", help);
    }
    if let Some(port) = shell.port.as_ref().filter(|port| port.value == 0) {
        findings.add(check, port.at(), "port 0 does not exist", "use 1 to 65535");
    }
    let login = shell.login.as_ref().map(|login| &login.value);
    let users = [shell.user.as_ref(), login.and_then(|login| login.user.as_ref())];
    for user in users.into_iter().flatten() {
        let bad = |c: char| c.is_control() || c.is_whitespace() || c == '@' || c == ':';
        if user.value.is_empty() || user.value.starts_with('-') || user.value.contains(bad) {
            findings.add(check, user.at(), "this is no user name", "such as \"root\"");
        }
    }
    for (key, path) in [("identity", &shell.identity), ("known_hosts", &shell.known_hosts)] {
        let whole = |path: &str| path.starts_with('/') || path.starts_with("~/");
        if let Some(path) = path.as_ref().filter(|p| !whole(&p.value) || p.value.contains('\0')) {
            let message = format!("`{key}` names no file by its whole path");
            findings.add(check, path.at(), message, "such as \"~/.ssh/lab_ed25519\"");
        }
    }
    if let Some(reboot) = &shell.reboot {
        let named = reboot.value.first().is_some_and(|program| !program.value.is_empty());
        let zero = reboot.value.iter().any(|word| word.value.contains('\0'));
        if !named || zero {
            let help = "write the program and each argument by itself: [\"sudo\", \"reboot\"]";
            findings.add(check, reboot.at(), "this names no program", help);
        }
    }
}

/// Lowers what the checks have passed; `None` only where something was reported.
pub(crate) fn lower(raw: RawShell) -> Option<ShellTable> {
    let login = match raw.login {
        Some(login) => Some(lower_login(login.value)?),
        None => None,
    };
    let words = |list: Vec<Located<String>>| list.into_iter().map(|word| word.value).collect();
    Some(ShellTable {
        kind: raw.kind.map(|kind| kind.value),
        encoding: raw.encoding.map(|encoding| encoding.value),
        via: raw.via.map(|via| via.value),
        host: raw.host.map(|host| host.value),
        port: raw.port.map(|port| port.value),
        forwarded: raw.forwarded.map(|port| port.value),
        user: raw.user.map(|user| user.value),
        identity: raw.identity.map(|path| PathBuf::from(path.value)),
        known_hosts: raw.known_hosts.map(|path| PathBuf::from(path.value)),
        host_key: raw.host_key.map(|check| check.value),
        console: raw.console.map(|console| console.value),
        prompt: raw.prompt.map(|prompt| prompt.value),
        login,
        reboot: raw.reboot.map(|reboot| words(reboot.value)),
    })
}

fn lower_login(raw: super::raw::RawLogin) -> Option<SerialLogin> {
    let pattern = |given: Option<Located<Pattern>>, usual: &str| match given {
        Some(given) => Some(given.value),
        None => Pattern::new(usual).ok(),
    };
    Some(SerialLogin {
        user: raw.user?.value,
        user_prompt: pattern(raw.user_prompt, USER_PROMPT)?,
        password: raw.password.map(|secret| secret.value),
        password_prompt: pattern(raw.password_prompt, PASSWORD_PROMPT)?,
    })
}
