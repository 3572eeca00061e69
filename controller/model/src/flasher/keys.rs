//! The keys that `[deploy]` of a profile and `flasher` of a place share: checked and lowered once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use super::checks::{
    arguments_are_sound, codes_are_sound, placeholders_are_known, progress_has_a_group,
};
use super::options::{OptionValue, OptionValues};
use super::{FlasherPreset, FlasherPresets};
use crate::document::{Findings, Located, did_you_mean};
use crate::pattern::Pattern;
use crate::profile::{DeployPart, FlashCommand};

/// Values that a board or a place gives to options.
pub(crate) type RawOptions = BTreeMap<String, Located<OptionValue>>;

/// What a profile or a place says of a program that flashes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlasherKeys<'a> {
    /// The program and its arguments: `argv` of a profile, `command` of a place.
    pub(crate) argv: Option<&'a Located<Vec<Located<String>>>>,
    pub(crate) preset: Option<&'a Located<String>>,
    pub(crate) options: Option<&'a Located<RawOptions>>,
    pub(crate) script: Option<&'a Located<Vec<Located<String>>>>,
    pub(crate) timeout: Option<&'a Located<Duration>>,
    pub(crate) idle_timeout: Option<&'a Located<Duration>>,
    pub(crate) touch: Option<&'a Located<Duration>>,
    pub(crate) success_codes: Option<&'a Located<Vec<Located<i32>>>>,
    pub(crate) success_pattern: Option<&'a Located<Pattern>>,
    pub(crate) failure_patterns: Option<&'a Located<Vec<Located<Pattern>>>>,
    pub(crate) verified_pattern: Option<&'a Located<Pattern>>,
    pub(crate) progress_pattern: Option<&'a Located<Pattern>>,
    pub(crate) read_back: Option<&'a Located<bool>>,
}

/// Gives a table as it is written its keys of a program and of a volume. Such tables differ in the name
/// of the key that holds the arguments.
macro_rules! flasher_table {
    ($table:ty, $argv:ident) => {
        impl $table {
            /// Returns what it says of a program.
            pub(super) fn keys(&self) -> $crate::flasher::FlasherKeys<'_> {
                $crate::flasher::FlasherKeys {
                    argv: self.$argv.as_ref(),
                    preset: self.preset.as_ref(),
                    options: self.options.as_ref(),
                    script: self.script.as_ref(),
                    timeout: self.timeout.as_ref(),
                    idle_timeout: self.idle_timeout.as_ref(),
                    touch: self.touch.as_ref(),
                    success_codes: self.success_codes.as_ref(),
                    success_pattern: self.success_pattern.as_ref(),
                    failure_patterns: self.failure_patterns.as_ref(),
                    verified_pattern: self.verified_pattern.as_ref(),
                    progress_pattern: self.progress_pattern.as_ref(),
                    read_back: self.read_back.as_ref(),
                }
            }

            /// Returns what it says of a volume.
            pub(super) fn volume_keys(&self) -> $crate::flasher::VolumeKeys<'_> {
                $crate::flasher::VolumeKeys {
                    volume: self.volume.as_ref(),
                    format: self.format.as_ref(),
                    family: self.family.as_ref(),
                    timeout: self.timeout.as_ref(),
                    touch: self.touch.as_ref(),
                }
            }
        }
    };
}
pub(crate) use flasher_table;

impl<'a> FlasherKeys<'a> {
    /// Returns the preset that is named, if there is one of the name.
    pub(crate) fn known_preset(&self) -> Option<&'static FlasherPreset> {
        FlasherPresets::shipped().get(&self.preset?.value)
    }

    /// Tells whether a program is named, by a preset or by itself.
    pub(crate) fn names_program(&self) -> bool {
        self.preset.is_some() || self.argv.is_some_and(|argv| !argv.value.is_empty())
    }

    /// Lists where keys stand that belong to a program.
    pub(crate) fn places(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let Self { argv, preset, options, script, timeout, idle_timeout, touch, .. } = *self;
        let Self { success_codes, success_pattern, failure_patterns, .. } = *self;
        let Self { verified_pattern, progress_pattern, read_back, .. } = *self;
        let places = [
            argv.and_then(Located::at),
            preset.and_then(Located::at),
            options.and_then(Located::at),
            script.and_then(Located::at),
            timeout.and_then(Located::at),
            idle_timeout.and_then(Located::at),
            touch.and_then(Located::at),
            success_codes.and_then(Located::at),
            success_pattern.and_then(Located::at),
            failure_patterns.and_then(Located::at),
            verified_pattern.and_then(Located::at),
            progress_pattern.and_then(Located::at),
            read_back.and_then(Located::at),
        ];
        places.into_iter().flatten()
    }

    /// Checks that the preset exists and takes the options.
    pub(crate) fn check_preset(&self, check: &'static str, findings: &Findings) {
        let Some(named) = self.preset else {
            if let Some(options) = self.options {
                let help =
                    "add `preset = \"...\"` (see: jig flashers), or write it into the arguments";
                findings.add(check, options.at(), "`options` belong to a preset", help);
            }
            return;
        };
        let Some(preset) = self.known_preset() else {
            let message = format!("there is no flasher preset {:?}", shortened(&named.value));
            let help = did_you_mean(&named.value, FlasherPresets::shipped().names());
            return findings.add(check, named.at(), message, help);
        };
        for extra in [self.argv, self.script].into_iter().flatten() {
            let message = format!("preset {} has arguments of its own", preset.name);
            let help = "remove one of both; `options` change the preset (see: jig flashers NAME)";
            findings.add(check, extra.at(), message, help);
        }
        let given = self.options.iter().flat_map(|options| &options.value);
        for (name, value) in given {
            if preset.option(name).is_none() {
                let message = format!("preset {} has no option {:?}", preset.name, shortened(name));
                let help = did_you_mean(name, preset.options.iter().map(|o| o.name.as_str()));
                findings.add(check, value.at(), message, help);
            } else if value.value.holds_zero() {
                let message = "an argument holds no zero byte";
                findings.add(check, value.at(), message, "remove it");
            }
        }
        let given = |name: &str| self.options.is_some_and(|all| all.value.contains_key(name));
        for option in preset.options.iter().filter(|o| o.required && !given(&o.name)) {
            let message = format!("preset {} needs the option {}", preset.name, option.name);
            let help = format!("add `options = {{ {} = ... }}`: {}", option.name, option.about);
            findings.add(check, named.at(), message, help);
        }
    }

    /// Checks the arguments, of which the first may be a plain name or whatever else the caller
    /// allows.
    pub(crate) fn check_arguments(&self, check: &'static str, findings: &Findings) {
        arguments_are_sound(self.argv, check, findings);
        arguments_are_sound(self.script, check, findings);
    }

    /// Checks the placeholders of the arguments and of the script.
    pub(crate) fn check_placeholders(&self, check: &'static str, findings: &Findings) {
        if self.preset.is_none() {
            placeholders_are_known(self.argv, self.script, check, findings);
        }
    }

    /// Checks that a touch leads to a port that the program is told.
    pub(crate) fn check_touch(&self, check: &'static str, findings: &Findings) {
        let told = |command: &FlashCommand| {
            command.uses(&DeployPart::Port) || command.uses(&DeployPart::PortIfAny)
        };
        if let Some(touch) = self.touch
            && self.lower().is_some_and(|command| !told(&command))
        {
            let message = "`touch` starts a boot loader whose port no argument holds";
            let help = "put `{port}` where the flasher takes its serial port, or remove `touch`";
            findings.add(check, touch.at(), message, help);
        }
    }

    /// Checks the exit codes.
    pub(crate) fn check_codes(&self, check: &'static str, findings: &Findings) {
        codes_are_sound(self.success_codes, check, findings);
    }

    /// Checks the pattern of the progress.
    pub(crate) fn check_progress(&self, check: &'static str, findings: &Findings) {
        progress_has_a_group(self.progress_pattern, check, findings);
    }

    /// Lowers what the checks have passed; nothing if no program is named.
    pub(crate) fn lower(&self) -> Option<FlashCommand> {
        let texts = |list: Option<&Located<Vec<Located<String>>>>| {
            list.iter().flat_map(|list| &list.value).map(|text| text.value.clone()).collect()
        };
        let mut command = match self.preset {
            Some(_) => self.of_preset(self.known_preset()?),
            None => FlashCommand {
                script: texts(self.script),
                ..FlashCommand::new(texts(Some(self.argv?)))
            },
        };
        if let Some(timeout) = self.timeout {
            command.timeout = timeout.value;
        }
        command.idle_timeout = self.idle_timeout.map(|time| time.value).or(command.idle_timeout);
        command.touch = self.touch.map(|time| time.value).or(command.touch);
        if let Some(codes) = self.success_codes {
            command.success_codes = codes.value.iter().map(|code| code.value).collect();
        }
        if let Some(patterns) = self.failure_patterns {
            command.failure_patterns = patterns.value.iter().map(|p| p.value.clone()).collect();
        }
        let one = |said: Option<&Located<Pattern>>, known: Option<Pattern>| {
            said.map(|pattern| pattern.value.clone()).or(known)
        };
        command.success_pattern = one(self.success_pattern, command.success_pattern);
        command.verified_pattern = one(self.verified_pattern, command.verified_pattern);
        command.read_back = self.read_back.map_or(command.read_back, |read_back| read_back.value);
        command.progress_pattern = one(self.progress_pattern, command.progress_pattern);
        Some(command)
    }

    fn of_preset(&self, preset: &FlasherPreset) -> FlashCommand {
        let mut values = OptionValues::default();
        for (name, value) in self.options.iter().flat_map(|options| &options.value) {
            values.give(name, &value.value);
        }
        for option in &preset.options {
            if let Some(default) = &option.default {
                values.fall_back(&option.name, default);
            }
        }
        let names: Vec<&str> = preset.options.iter().map(|option| option.name.as_str()).collect();
        FlashCommand {
            preset: Some(preset.name.clone()),
            argv: values.expand(&names, &preset.argv),
            script: values.expand(&names, &preset.script),
            timeout: preset.timeout,
            idle_timeout: preset.idle_timeout,
            touch: preset.touch,
            formats: preset.formats.clone(),
            formats_help: preset.formats_help.clone(),
            read_back: preset.read_back,
            success_codes: preset.success_codes.clone(),
            success_pattern: Some(preset.success_pattern.clone()),
            failure_patterns: preset.failure_patterns.clone(),
            known_failures: preset.failures.clone(),
            verified_pattern: preset.verified_pattern.clone(),
            progress_pattern: preset.progress_pattern.clone(),
            install: Some(preset.install.clone()),
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}
