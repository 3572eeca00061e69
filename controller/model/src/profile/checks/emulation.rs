//! Checks of how the board is emulated.

use super::Subject;
use crate::document::{Findings, Located, did_you_mean};
use crate::profile::placeholder::{ArgPart, arg_parts, is_name};
use crate::profile::raw::RawEmulation;

/// Options that Jig gives to every emulator itself, or that would take the emulator out of
/// its hands. A profile that gives them too would silently win or lose.
const OWNED: &[&str] = &[
    "-M",
    "-S",
    "-chroot",
    "-curses",
    "-daemonize",
    "-display",
    "-gdb",
    "-loadvm",
    "-machine",
    "-mon",
    "-monitor",
    "-no-shutdown",
    "-nodefaults",
    "-nographic",
    "-pidfile",
    "-qmp",
    "-qmp-pretty",
    "-qtest",
    "-qtest-log",
    "-runas",
    "-s",
    "-sandbox",
    "-semihosting",
    "-semihosting-config",
    "-serial",
    "-snapshot",
    "-vnc",
];

/// Longest argument in bytes; a kernel command line is at most 4096.
const MAX_ARG: usize = 4096;

impl Subject<'_> {
    pub(super) fn emulation(&self) -> Option<&RawEmulation> {
        self.raw.emulation.as_ref().map(|emulation| &emulation.value)
    }
}

/// Tells whether a text is one word: nothing a shell or a path would take apart.
fn plain_word(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_ascii_graphic() && !"/\\'\"`$;&|<>(){}".contains(c))
}

pub(super) fn program_is_a_plain_name(subject: &Subject<'_>, check: &'static str) {
    let Some(program) = subject.emulation().and_then(|e| e.program.as_ref()) else { return };
    if !is_name(&program.value) {
        let message = "`program` must be the plain name of a program";
        let help =
            "no path and no arguments: it is looked up in PATH, and arguments go into `args`";
        subject.findings.add(check, program.at(), message, help);
    }
}

pub(super) fn machine_is_a_plain_word(subject: &Subject<'_>, check: &'static str) {
    let Some(machine) = subject.emulation().and_then(|e| e.machine.as_ref()) else { return };
    if !plain_word(&machine.value) || machine.value.starts_with('-') {
        let message = "`machine` must be one word, as the emulator takes it";
        let help = "list the machines with `qemu-system-arm -machine help`, or of your emulator";
        subject.findings.add(check, machine.at(), message, help);
    }
}

/// Reports emulator arguments that cannot be or that Jig gives itself.
pub(crate) fn emulator_args(check: &'static str, args: &[Located<String>], findings: &Findings) {
    for arg in args {
        let option = arg.value.strip_prefix('-').map(|rest| rest.trim_start_matches('-'));
        let owned =
            option.and_then(|o| OWNED.iter().find(|owned| owned.strip_prefix('-') == Some(o)));
        if let Some(owned) = owned {
            let help = match *owned {
                "-M" | "-machine" => "use the key `machine`",
                "-semihosting" | "-semihosting-config" => "use the key `semihosting`",
                "-serial" => "use a `[[console]]`",
                _ => "remove it",
            };
            findings.add(check, arg.at(), format!("`{owned}` is given by jig itself"), help);
        } else if arg.value.is_empty() || arg.value.len() > MAX_ARG {
            let message = format!("an argument has 1 to {MAX_ARG} bytes");
            findings.add(check, arg.at(), message, "remove or shorten it");
        } else if arg.value.contains('\0') {
            let message = "an argument cannot hold a zero byte";
            findings.add(check, arg.at(), message, "remove the byte");
        } else if arg.value.starts_with('-') && arg.value.contains(' ') {
            let message = "this looks like an option and its value in one argument";
            let help = "arguments are a list, not a shell line: write \"-option\", \"value\"";
            findings.add(check, arg.at(), message, help);
        }
    }
}

pub(super) fn args_are_left_to_the_profile(subject: &Subject<'_>, check: &'static str) {
    let Some(emulation) = subject.emulation() else { return };
    for args in [&emulation.args, &emulation.image_args].into_iter().flatten() {
        emulator_args(check, &args.value, subject.findings);
    }
}

pub(super) fn placeholders_can_be_filled(subject: &Subject<'_>, check: &'static str) {
    let Some(emulation) = subject.emulation() else { return };
    for (args, may_image) in [(&emulation.args, false), (&emulation.image_args, true)] {
        for arg in args.iter().flat_map(|args| &args.value) {
            let problem = match arg_parts(&arg.value) {
                Err(error) => {
                    let known = ["{image}", "{artifact:NAME}", "{port:NAME}"];
                    Some((error.to_string(), did_you_mean(&error.text, known)))
                }
                Ok(parts) if !may_image && parts.contains(&ArgPart::Image) => Some((
                    "`{image}` stands in `args`".to_owned(),
                    "move it to `image_args`, which are used if an image is deployed".to_owned(),
                )),
                Ok(parts)
                    if emulation.image_set.is_none()
                        && parts.iter().any(|part| matches!(part, ArgPart::Artifact(_))) =>
                {
                    Some((
                        "an artifact is used, but there is no image set to take it from".to_owned(),
                        "name the folder below qemu-images: `image_set = \"...\"`".to_owned(),
                    ))
                }
                Ok(_) => None,
            };
            if let Some((message, help)) = problem {
                subject.findings.add(check, arg.at(), message, help);
            }
        }
    }
}

pub(super) fn something_boots(subject: &Subject<'_>, check: &'static str) {
    let Some(emulation) = subject.emulation() else { return };
    let uses = |args: &Option<Located<Vec<Located<String>>>>, wanted: fn(&ArgPart<'_>) -> bool| {
        let args = args.iter().flat_map(|args| &args.value);
        args.filter_map(|arg| arg_parts(&arg.value).ok()).any(|parts| parts.iter().any(wanted))
    };
    let image = |part: &ArgPart<'_>| matches!(part, ArgPart::Image);
    let artifact = |part: &ArgPart<'_>| matches!(part, ArgPart::Artifact(_));
    match &emulation.image_set {
        None if !uses(&emulation.image_args, image) => {
            let place = emulation.image_args.as_ref().or(emulation.args.as_ref());
            let place = place
                .and_then(Located::at)
                .or_else(|| subject.raw.emulation.as_ref().and_then(Located::at));
            let message = "the emulator would boot nothing: no argument holds `{image}`";
            let help = "write `image_args = [\"-kernel\", \"{image}\"]`, or name an `image_set`";
            subject.findings.add(check, place, message, help);
        }
        Some(set) if !uses(&emulation.args, artifact) => {
            let message = "the image set is never used: no argument holds `{artifact:NAME}`";
            let help = "add one to `args`, such as \"-kernel\", \"{artifact:vmlinuz}\"";
            subject.findings.add(check, set.at(), message, help);
        }
        None | Some(_) => {}
    }
}

pub(super) fn image_set_is_a_folder_name(subject: &Subject<'_>, check: &'static str) {
    let Some(set) = subject.emulation().and_then(|e| e.image_set.as_ref()) else { return };
    if !is_name(&set.value) {
        let message = "`image_set` must be the plain name of a folder";
        let help = "name a folder of `qemu-images/`, without a path";
        subject.findings.add(check, set.at(), message, help);
    }
}

pub(super) fn banner_ports_are_forwarded(subject: &Subject<'_>, check: &'static str) {
    let args: Vec<&str> = subject
        .emulation()
        .and_then(|emulation| emulation.args.as_ref())
        .iter()
        .flat_map(|args| &args.value)
        .map(|arg| arg.value.as_str())
        .collect();
    let parts = args.iter().filter_map(|arg| arg_parts(arg).ok()).flatten();
    let ports: std::collections::BTreeSet<&str> = parts
        .filter_map(|part| match part {
            ArgPart::Port(name) => Some(name),
            ArgPart::Text(_) | ArgPart::Image | ArgPart::Artifact(_) => None,
        })
        .collect();
    for stage in subject.stages() {
        let Some(port) =
            (stage.value.banner.as_ref()).and_then(|banner| banner.value.as_ref()?.port.as_ref())
        else {
            continue;
        };
        if !ports.contains(port.value.as_str()) {
            let shown: String = port.value.chars().take(40).collect();
            let message = format!("port {shown:?} is not forwarded by the emulation");
            let help = if ports.is_empty() {
                format!("forward it in `args`: hostfwd=tcp:127.0.0.1:{{port:{shown}}}-:22")
            } else {
                did_you_mean(&port.value, ports.iter().copied())
            };
            subject.findings.add(check, port.at(), message, help);
        }
    }
}
