//! What must hold of a program that flashes, whether a profile, a place or a preset names it.

use crate::document::{Findings, Located, did_you_mean};
use crate::pattern::Pattern;
use crate::profile::{DEPLOY_PLACEHOLDERS, DeployPart, deploy_parts};

/// Longest argument in bytes and most arguments: far beyond any flasher's, far below the
/// system's own limits.
const MAX_ARG: usize = 4096;
const MAX_ARGS: usize = 256;

/// An argument list as it is written.
type Argv = Located<Vec<Located<String>>>;

/// Checks what holds of a flasher's arguments, whether a profile or a place names it.
pub(super) fn arguments_are_sound(argv: Option<&Argv>, check: &'static str, findings: &Findings) {
    let Some(list) = argv else { return };
    if list.value.len() > MAX_ARGS {
        let message = format!("more than {MAX_ARGS} arguments");
        findings.add(check, list.at(), message, "write them into a file of the flasher");
    }
    for arg in list.value.iter().skip(1) {
        if arg.value.len() > MAX_ARG || arg.value.contains('\0') {
            let message = format!("an argument has at most {MAX_ARG} bytes, none of them zero");
            findings.add(check, arg.at(), message, "shorten it");
        }
    }
}

/// Checks that a flasher learns what to flash, and that its placeholders are known; those of its
/// script count where an argument names the script.
pub(super) fn placeholders_are_known(
    argv: Option<&Argv>,
    script: Option<&Argv>,
    check: &'static str,
    findings: &Findings,
) {
    let Some(list) = argv.filter(|list| !list.value.is_empty()) else { return };
    let (mut image, mut sound, mut names_script) = (false, true, false);
    let args = list.value.iter().skip(1).map(|arg| (arg, true));
    let lines = script.iter().flat_map(|script| &script.value).map(|line| (line, false));
    for (arg, is_arg) in args.chain(lines) {
        match deploy_parts(&arg.value) {
            Ok(parts) => {
                names_script |= is_arg && parts.contains(&DeployPart::Script);
                let has = |part: &DeployPart<'_>| {
                    use DeployPart::{Bin, Elf, Hex, Image};
                    matches!(part, Image | Elf | Bin | Hex)
                };
                image |= parts.iter().any(has);
            }
            Err(error) => {
                sound = false;
                let known = DEPLOY_PLACEHOLDERS.map(|name| format!("{{{name}}}"));
                let help = match error.text.as_str() {
                    "{" | "}" => "write `{{` or `}}` for a brace itself".to_owned(),
                    text => did_you_mean(text, known.iter().map(String::as_str)),
                };
                findings.add(check, arg.at(), error.to_string(), help);
            }
        }
    }
    if !sound {
        return;
    }
    match script {
        Some(script) if !names_script => {
            let message = "no argument holds `{script}`, so the flasher would not learn of it";
            let help = "put `{script}` where the flasher takes the file's path";
            findings.add(check, script.at(), message, help);
        }
        None if names_script => {
            let help = "add `script = [\"a line with {image}\"]`";
            findings.add(check, list.at(), "`{script}` is named, and there is none", help);
        }
        _ if !image => {
            let message =
                "no argument holds `{image}`, so the flasher would not learn what to flash";
            let help = "put `{image}` where the flasher takes the file's path";
            findings.add(check, list.at(), message, help);
        }
        _ => {}
    }
}

/// Checks the exit codes that mean success.
pub(super) fn codes_are_sound(
    codes: Option<&Located<Vec<Located<i32>>>>,
    check: &'static str,
    findings: &Findings,
) {
    let Some(codes) = codes else { return };
    if codes.value.is_empty() {
        let message = "no exit code would mean success";
        findings.add(check, codes.at(), message, "write `[0]`, or remove the line");
    }
    for code in codes.value.iter().filter(|code| !(0..=255).contains(&code.value)) {
        findings.add(check, code.at(), "this is no exit code", "use 0 to 255");
    }
}

/// Checks that a percentage can be read.
pub(super) fn progress_has_a_group(
    pattern: Option<&Located<Pattern>>,
    check: &'static str,
    findings: &Findings,
) {
    let Some(pattern) = pattern.filter(|pattern| pattern.value.groups() == 0) else { return };
    let message = "the pattern has no group that captures the percentage";
    let help = "put the digits into parentheses and end with what follows: '(\\d+) ?%'";
    findings.add(check, pattern.at(), message, help);
}
