//! Checks of how an image gets onto the board.

use super::Subject;
use crate::document::{Findings, Located, did_you_mean};
use crate::pattern::Pattern;
use crate::profile::deploy::{DEPLOY_PLACEHOLDERS, DeployMethod, DeployPart, deploy_parts};
use crate::profile::limits::WAIT_RANGE;
use crate::profile::placeholder::is_name;
use crate::profile::raw::RawDeploy;

/// Longest argument in bytes and most arguments: far beyond any flasher's, far below the
/// system's own limits.
const MAX_ARG: usize = 4096;
const MAX_ARGS: usize = 256;

impl Subject<'_> {
    fn deploy(&self) -> Option<&RawDeploy> {
        self.raw.deploy.as_ref().map(|deploy| &deploy.value)
    }
}

fn argv(deploy: &RawDeploy) -> &[Located<String>] {
    deploy.argv.as_ref().map_or(&[], |argv| argv.value.as_slice())
}

pub(super) fn method_fits_the_board(subject: &Subject<'_>, check: &'static str) {
    let Some(method) = subject.deploy().and_then(|deploy| deploy.method.as_ref()) else { return };
    let emulation = subject.raw.emulation.as_ref().map(|emulation| &emulation.value);
    let (message, help) = match (method.value, emulation) {
        // What `[emulation.debug]` describes is all that a virtual probe has to know.
        (DeployMethod::Probe, emulation)
            if subject.raw.chip.is_none() && emulation.is_none_or(|e| e.debug.is_none()) =>
        {
            (
                "a probe has to know the chip, and the profile names none",
                "add `chip = \"...\"`, by the name probe-rs knows it by",
            )
        }
        (DeployMethod::EmulatorLoader | DeployMethod::ImageSet, None) => {
            ("the board is not emulated", "add `[emulation]`, or use another method")
        }
        (DeployMethod::EmulatorLoader, Some(emulation)) if emulation.image_args.is_none() => (
            "the emulator has no arguments that load an image",
            "write `image_args = [\"-kernel\", \"{image}\"]` in `[emulation]`",
        ),
        (DeployMethod::ImageSet, Some(emulation)) if emulation.image_set.is_none() => (
            "the emulation has no image set",
            "name the folder below qemu-images in `[emulation]`: `image_set = \"...\"`",
        ),
        _ => return,
    };
    subject.findings.add(check, method.at(), message, help);
}

pub(super) fn keys_fit_the_method(subject: &Subject<'_>, check: &'static str) {
    let Some(deploy) = subject.deploy() else { return };
    let Some(method) = &deploy.method else { return };
    if method.value == DeployMethod::Command {
        if !deploy.keys().names_program() {
            let place = deploy.argv.as_ref().map_or(method.at(), Located::at);
            let message = "nothing says which program flashes the board";
            let help = "write `preset = \"NAME\"` (see: jig flashers) or `argv = [\"program\", \
                        \"argument\", \"{image}\"]`";
            subject.findings.add(check, place, message, help);
        }
        return;
    }
    for place in deploy.keys().places() {
        let message =
            format!("this belongs to `method = \"command\"`, not to {:?}", method.value.as_str());
        subject.findings.add(check, Some(place), message, "remove it, or change the method");
    }
}

pub(super) fn preset_is_known(subject: &Subject<'_>, check: &'static str) {
    let Some(deploy) = subject.deploy().filter(|deploy| is_command(deploy)) else { return };
    deploy.keys().check_preset(check, subject.findings);
}

fn is_command(deploy: &RawDeploy) -> bool {
    deploy.method.as_ref().is_none_or(|method| method.value == DeployMethod::Command)
}

pub(super) fn program_is_a_plain_name(subject: &Subject<'_>, check: &'static str) {
    let Some(deploy) = subject.deploy() else { return };
    if let Some(program) = argv(deploy).first()
        && !is_name(&program.value)
    {
        let message = "the first of `argv` must be the plain name of a program";
        let help = "no path, no placeholder and no arguments: it is looked up in PATH";
        subject.findings.add(check, program.at(), message, help);
    }
    deploy.keys().check_arguments(check, subject.findings);
}

pub(super) fn placeholders_can_be_filled(subject: &Subject<'_>, check: &'static str) {
    let Some(deploy) = subject.deploy().filter(|deploy| is_command(deploy)) else { return };
    deploy.keys().check_placeholders(check, subject.findings);
}

pub(super) fn codes_are_exit_codes(subject: &Subject<'_>, check: &'static str) {
    let Some(deploy) = subject.deploy() else { return };
    deploy.keys().check_codes(check, subject.findings);
}

pub(super) fn progress_is_captured(subject: &Subject<'_>, check: &'static str) {
    let Some(deploy) = subject.deploy() else { return };
    deploy.keys().check_progress(check, subject.findings);
}

pub(super) fn time_is_sane(subject: &Subject<'_>, check: &'static str) {
    let Some(deploy) = subject.deploy() else { return };
    for time in [&deploy.timeout, &deploy.idle_timeout] {
        let time = time.as_ref();
        super::board::in_range(subject, check, time, &WAIT_RANGE, super::board::show_duration);
    }
}

/// An argument list as it is written.
type Argv = Located<Vec<Located<String>>>;

/// Checks what holds of a flasher's arguments, whether a profile or a place names it.
pub(crate) fn arguments_are_sound(argv: Option<&Argv>, check: &'static str, findings: &Findings) {
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
pub(crate) fn placeholders_are_known(
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
pub(crate) fn codes_are_sound(
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
pub(crate) fn progress_has_a_group(
    pattern: Option<&Located<Pattern>>,
    check: &'static str,
    findings: &Findings,
) {
    let Some(pattern) = pattern.filter(|pattern| pattern.value.groups() == 0) else { return };
    let message = "the pattern has no group that captures the percentage";
    let help = "put the digits into parentheses and end with what follows: '(\\d+) ?%'";
    findings.add(check, pattern.at(), message, help);
}
