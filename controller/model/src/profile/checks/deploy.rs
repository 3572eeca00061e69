//! Checks of how an image gets onto the board.

use super::Subject;
use crate::document::Located;
use crate::profile::deploy::DeployMethod;
use crate::profile::limits::WAIT_RANGE;
use crate::profile::placeholder::is_name;
use crate::profile::raw::RawDeploy;

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
    let volume = deploy.volume_keys();
    if method.value == DeployMethod::Volume {
        return copy_is_sound(subject, check, deploy);
    }
    if volume.any() {
        let message =
            format!("this belongs to `method = \"volume\"`, not to {:?}", method.value.as_str());
        subject.findings.add(check, volume.at(), message, "remove it, or change the method");
    }
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

/// Checks a copy to a volume.
fn copy_is_sound(subject: &Subject<'_>, check: &'static str, deploy: &RawDeploy) {
    let keys = deploy.volume_keys();
    if keys.any() {
        keys.check(check, subject.findings);
    } else {
        let at = deploy.method.as_ref().and_then(Located::at);
        let help = "add `volume = \"LABEL\"`";
        subject.findings.add(check, at, "no volume is named that the image is copied to", help);
    }
    let of_copy = [&deploy.timeout, &deploy.touch].map(|time| time.as_ref().and_then(Located::at));
    for at in deploy.keys().places().filter(|at| !of_copy.contains(&Some(at.clone()))) {
        let message = "this belongs to a program, and the image is copied to a volume";
        subject.findings.add(check, Some(at), message, "remove it, or change the method");
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
    deploy.keys().check_touch(check, subject.findings);
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
    for time in [&deploy.timeout, &deploy.idle_timeout, &deploy.touch] {
        let time = time.as_ref();
        super::board::in_range(subject, check, time, &WAIT_RANGE, super::board::show_duration);
    }
}
