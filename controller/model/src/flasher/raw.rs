//! The tables of the presets as they are written.

use std::time::Duration;

use serde_json::{Value, json};

use super::ExampleOrigin;
use crate::document::{FromToml, Located, Node, did_you_mean};
use crate::image::ImageKind;
use crate::pattern::Pattern;
use crate::toml_table;
use crate::{Cause, Fault, VerdictKind};

toml_table! {
    /// Programs that flash boards, and what is known about them.
    pub(super) struct RawPresets {
        /// Version of this format: 1.
        version: u32 = required,
        /// The presets.
        flasher: Vec<Located<RawPreset>> = required,
    }

    /// One program, as one kind of board needs it.
    pub(super) struct RawPreset {
        /// Its name, as `preset = "..."` gives it.
        name: String = required,
        /// What it is, for people.
        title: String = required,
        /// Where the recorded output is from: a version that was run, or source and manual.
        source: String = required,
        /// The program and its arguments, one by one and never a shell line, with the placeholders
        /// of `[deploy]` and `{NAME}` for each option; `{NAME*}` is any number of arguments.
        argv: Vec<Located<String>> = required,
        /// What `{NAME}` in the arguments stands for.
        option: Vec<Located<RawPresetOption>> = optional,
        /// Lines of the file that `{script}` names, with the same placeholders.
        script: Vec<Located<String>> = optional,
        /// Formats of images that it takes; all if missing.
        formats: Vec<Located<ImageKind>> = optional,
        /// What to do with an image of another format.
        formats_help: String = optional,
        /// Whether a debug probe finds the image where its addresses say; true if missing. False where
        /// they are offsets in a flash chip, or where the program changes the image on its way.
        read_back: bool = optional,
        /// How long it may take; "4m" if missing.
        timeout: Duration = optional,
        /// The boot loader is started by opening `{port}` at 1200 baud, and its port takes so long to
        /// come at most; the program is told that port as `{port}`. Not done if missing.
        touch: Duration = optional,
        /// How long it may print nothing; as long as it may take if missing.
        idle_timeout: Duration = optional,
        /// Exit codes that mean success; [0] if missing.
        success_codes: Vec<Located<i32>> = optional,
        /// Output without which nothing was flashed, whatever the exit code.
        success_pattern: Pattern = required,
        /// Output that means failure, whatever the exit code.
        failure_patterns: Vec<Located<Pattern>> = optional,
        /// Output that proves that the flash was read back and compared.
        verified_pattern: Pattern = optional,
        /// Output whose first group is a percentage of the work done.
        progress_pattern: Pattern = optional,
        /// Which package has it.
        install: RawInstall = required,
        /// Where the output of a success is from.
        success_origin: ExampleOrigin = required,
        /// Output of a success, as recorded.
        success_example: String = required,
        /// Failures that are known, the most specific first.
        failure: Vec<Located<RawKnownFailure>> = required,
    }

    /// An option of a preset.
    pub(super) struct RawPresetOption {
        /// Its name.
        name: String = required,
        /// What it means.
        about: String = required,
        /// Its value where nothing is given; an argument with `{NAME?}` is left out without one.
        default: String = optional,
    }

    /// Which package has a program.
    pub(super) struct RawInstall {
        /// Package of Debian 12.
        debian: String = optional,
        /// Package of PyPI.
        pip: String = optional,
        /// Crate of crates.io.
        cargo: String = optional,
        /// Page of its maker.
        url: String = optional,
    }

    /// A failure that is known by a line of the output.
    pub(super) struct RawKnownFailure {
        /// What the line matches.
        pattern: Pattern = required,
        /// The cause that a run ends with; "deploy_failed" if missing.
        cause: RigCause = optional,
        /// What has happened, lower case.
        why: String = required,
        /// What to do next, with `{port}`, `{serial}` and `{chip}`.
        help: String = required,
        /// Where the output is from.
        origin: ExampleOrigin = required,
        /// The output, as recorded.
        example: String = required,
        /// The exit code that came with it; 1 if missing.
        code: i32 = optional,
        /// It did not end by itself.
        endless: bool = optional,
    }
}

/// A cause that blames the rig.
#[derive(Debug, Clone, Copy)]
pub(super) struct RigCause(pub(super) Cause);

impl RigCause {
    fn allowed() -> impl Iterator<Item = &'static str> + Clone {
        let of_rig = |cause: &Cause| {
            cause.fault() == Some(Fault::Lab) && cause.verdict() == VerdictKind::EnvError
        };
        Cause::ALL.iter().copied().filter(of_rig).map(Cause::as_str)
    }
}

impl FromToml for RigCause {
    fn schema() -> Value {
        json!({ "type": "string", "enum": Self::allowed().collect::<Vec<_>>() })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        let text = node.text("a cause", "\"deploy_failed\"")?;
        let found = Self::allowed().find(|cause| *cause == text);
        if found.is_none() {
            let shown: String = text.chars().take(40).collect();
            let help = did_you_mean(text, Self::allowed());
            node.refuse("flasher::cause", format!("{shown:?} is no cause of a rig"), help);
        }
        found?.parse().ok().map(Self)
    }
}
