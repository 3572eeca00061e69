//! The presets, read and checked.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use serde::Serialize;

use super::checks::{arguments_are_sound, codes_are_sound, progress_has_a_group};
use super::raw::{RawInstall, RawKnownFailure, RawPreset, RawPresets};
use super::{ExampleOrigin, InstallHint, KnownFailure};
use crate::Cause;
use crate::Problems;
use crate::document::{Findings, Located, document_schema, open};
use crate::image::ImageKind;
use crate::pattern::Pattern;
use crate::profile::limits::WAIT_RANGE;
use crate::profile::placeholder::is_name;
use crate::profile::{DEPLOY_PLACEHOLDERS, FLASH_TIMEOUT, deploy_parts};

const KIND: &str = "file of flasher presets";
const VERSION: u32 = 1;

const SHIPPED: &str = include_str!("../../../../board-profiles/flashers/presets.toml");

/// What is known about a program that flashes boards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlasherPreset {
    /// Its name.
    pub name: String,
    /// What it is, for people.
    pub title: String,
    /// Where the recorded output is from.
    pub source: String,
    /// Program and arguments, with `{NAME}` for each option.
    pub argv: Vec<String>,
    /// Its options.
    pub options: Vec<PresetOption>,
    /// Lines of the file that `{script}` names.
    pub script: Vec<String>,
    /// Formats of images that it takes; all if empty.
    pub formats: Vec<ImageKind>,
    /// What to do with an image of another format.
    pub formats_help: Option<String>,
    /// Whether a debug probe finds the image where its addresses say. Not so where they are offsets
    /// in a flash chip, or where the program changes the image on its way.
    pub read_back: bool,
    /// How long it may take.
    pub timeout: Duration,
    /// How long the port of the boot loader may take to come after the port of the board was opened at
    /// 1200 baud; such a boot loader is started by other means where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub touch: Option<Duration>,
    /// How long it may print nothing.
    pub idle_timeout: Option<Duration>,
    /// Exit codes that mean success.
    pub success_codes: Vec<i32>,
    /// Output without which nothing was flashed.
    pub success_pattern: Pattern,
    /// Output that means failure, whatever the exit code.
    pub failure_patterns: Vec<Pattern>,
    /// Output that proves that the flash was read back and compared.
    pub verified_pattern: Option<Pattern>,
    /// Output whose first group is a percentage of the work done.
    pub progress_pattern: Option<Pattern>,
    /// Which package has it.
    pub install: InstallHint,
    /// Failures that are known, the most specific first.
    pub failures: Vec<KnownFailure>,
    /// Where the output of a success is from.
    pub success_origin: ExampleOrigin,
    /// Output of a success, as recorded.
    #[serde(skip)]
    pub success_example: String,
    /// Output of each failure, as recorded; as many as there are failures, in their order.
    #[serde(skip)]
    pub failure_examples: Vec<PresetExample>,
}

/// Output of a failure, as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresetExample {
    /// The output.
    pub text: String,
    /// The exit code that came with it; nothing if the program did not end by itself.
    pub code: Option<i32>,
}

/// An option of a preset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PresetOption {
    /// Its name.
    pub name: String,
    /// What it means.
    pub about: String,
    /// Its value where nothing is given.
    pub default: Option<String>,
    /// Whether a board or a place has to give it.
    pub required: bool,
}

impl FlasherPreset {
    /// Returns the program.
    pub fn program(&self) -> &str {
        self.argv.first().map_or("", String::as_str)
    }

    /// Finds an option.
    pub(super) fn option(&self, name: &str) -> Option<&PresetOption> {
        self.options.iter().find(|option| option.name == name)
    }
}

/// All presets, by name.
#[derive(Debug, Clone, Default)]
pub struct FlasherPresets {
    presets: Vec<FlasherPreset>,
}

impl FlasherPresets {
    /// Returns the presets that Jig brings; read when they are asked for first.
    pub fn shipped() -> &'static Self {
        // The tests read the same text, so nothing refuses here.
        static ALL: LazyLock<FlasherPresets> =
            LazyLock::new(|| FlasherPresets::parse("built-in", SHIPPED).unwrap_or_default());
        &ALL
    }

    /// Reads presets. `origin` says where the text came from.
    ///
    /// # Errors
    /// Every problem of the text, with its place.
    pub fn parse(origin: &str, text: &str) -> Result<Self, Problems> {
        let findings = Findings::new();
        let raw = open::<RawPresets>(KIND, VERSION, text, &findings);
        let presets = raw.and_then(|raw| {
            let list = raw.value.flasher?.value;
            check(&list, &findings);
            let lowered = list.into_iter().map(|preset| lower(preset.value));
            Some(Self { presets: lowered.collect::<Option<_>>()? })
        });
        findings.finish(KIND, origin, text, presets)
    }

    /// Returns the JSON Schema of presets, as committed beside them.
    pub fn json_schema() -> String {
        document_schema::<RawPresets>("Jig flasher presets")
    }

    /// Finds a preset.
    pub fn get(&self, name: &str) -> Option<&FlasherPreset> {
        self.presets.iter().find(|preset| preset.name == name)
    }

    /// Finds a preset that runs a program.
    pub fn of_program(&self, program: &str) -> Option<&FlasherPreset> {
        self.presets.iter().find(|preset| preset.program() == program)
    }

    /// Lists the presets in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &FlasherPreset> + Clone {
        self.presets.iter()
    }

    /// Lists the names.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.iter().map(|preset| preset.name.as_str())
    }
}

const CHECK: &str = "flasher::preset";

fn check(presets: &[Located<RawPreset>], findings: &Findings) {
    let names = presets.iter().filter_map(|preset| preset.value.name.as_ref());
    unique("flasher", names, findings);
    for preset in presets {
        check_one(&preset.value, findings);
    }
}

/// Reports names that are no names or come twice.
fn unique<'n>(
    what: &str,
    names: impl IntoIterator<Item = &'n Located<String>>,
    findings: &Findings,
) {
    let mut seen = BTreeSet::new();
    for name in names {
        if !is_name(&name.value) {
            let help = "use 1 to 64 of a-z, A-Z, 0-9, `.`, `_` and `-`, a letter or digit first";
            findings.add(CHECK, name.at(), format!("this cannot name a {what}"), help);
        } else if !seen.insert(name.value.as_str()) {
            let message = format!("there are two {what} entries called {:?}", name.value);
            findings.add(CHECK, name.at(), message, "give each a name of its own");
        }
    }
}

fn check_one(raw: &RawPreset, findings: &Findings) {
    if let Some(argv) = &raw.argv
        && !argv.value.first().is_some_and(|program| is_name(&program.value))
    {
        let help = "no path and no placeholder: it is looked up in PATH";
        findings.add(CHECK, argv.at(), "the first of `argv` is no plain name of a program", help);
    }
    arguments_are_sound(raw.argv.as_ref(), CHECK, findings);
    codes_are_sound(raw.success_codes.as_ref(), CHECK, findings);
    progress_has_a_group(raw.progress_pattern.as_ref(), CHECK, findings);
    for time in [&raw.timeout, &raw.idle_timeout, &raw.touch].into_iter().flatten() {
        if !WAIT_RANGE.contains(&time.value) {
            findings.add(
                CHECK,
                time.at(),
                "this is no time for a flasher",
                "use \"1ms\" to \"1h\"",
            );
        }
    }
    let options: Vec<_> = raw.option.iter().flat_map(|list| &list.value).collect();
    let named = options.iter().filter_map(|option| option.value.name.as_ref());
    unique("option", named.clone(), findings);
    for name in named.clone().filter(|name| DEPLOY_PLACEHOLDERS.contains(&name.value.as_str())) {
        let message = format!("{{{}}} is a placeholder of every flasher", name.value);
        findings.add(CHECK, name.at(), message, "give the option another name");
    }
    let names: Vec<&str> = named.map(|name| name.value.as_str()).collect();
    let texts = [&raw.argv, &raw.script].into_iter().flatten().flat_map(|list| &list.value);
    let defaults = options.iter().filter_map(|option| option.value.default.as_ref());
    for text in texts.chain(defaults) {
        let known = names.iter().fold(text.value.clone(), |text, name| {
            text.replace(&format!("{{{name}}}"), "")
                .replace(&format!("{{{name}?}}"), "")
                .replace(&format!("{{{name}*}}"), "")
        });
        if let Err(error) = deploy_parts(&known) {
            let help = "declare it by an `[[flasher.option]]`, or double a brace of the text";
            findings.add(CHECK, text.at(), error.to_string(), help);
        }
    }
    // Three failures are what people meet most; without them a preset explains nothing.
    if let Some(failures) = raw.failure.as_ref().filter(|list| list.value.len() < 3) {
        let help = "add a `[[flasher.failure]]` with its output";
        findings.add(CHECK, failures.at(), "fewer than three failures are known", help);
    }
}

fn texts(list: Option<Located<Vec<Located<String>>>>) -> Vec<String> {
    list.into_iter().flat_map(|list| list.value).map(|text| text.value).collect()
}

fn lower(raw: RawPreset) -> Option<FlasherPreset> {
    let (argv, script) = (texts(Some(raw.argv?)), texts(raw.script));
    let used_as_required = |name: &str| {
        let placeholder = format!("{{{name}}}");
        argv.iter().chain(&script).any(|text| text.contains(&placeholder))
    };
    let options = raw.option.into_iter().flat_map(|list| list.value).map(|option| {
        let (name, default) = (option.value.name?.value, option.value.default);
        Some(PresetOption {
            required: default.is_none() && used_as_required(&name),
            name,
            about: option.value.about?.value,
            default: default.map(|text| text.value),
        })
    });
    let options = options.collect::<Option<_>>()?;
    let (mut failures, mut failure_examples) = (Vec::new(), Vec::new());
    for failure in raw.failure?.value {
        let RawKnownFailure { pattern, cause, why, help, origin, example, code, endless } =
            failure.value;
        let cause = cause.map_or(Cause::DeployFailed, |cause| cause.value.0);
        let (pattern, why, help) = (pattern?.value, why?.value, help?.value);
        failures.push(KnownFailure { pattern, cause, why, help, origin: origin?.value });
        let endless = endless.is_some_and(|endless| endless.value);
        let code = (!endless).then(|| code.map_or(1, |code| code.value));
        failure_examples.push(PresetExample { text: example?.value, code });
    }
    let RawInstall { debian, pip, cargo, url } = raw.install?.value;
    let text = |text: Option<Located<String>>| text.map(|text| text.value);
    Some(FlasherPreset {
        name: raw.name?.value,
        title: raw.title?.value,
        source: raw.source?.value,
        argv,
        options,
        script,
        formats: raw.formats.into_iter().flat_map(|list| list.value).map(|f| f.value).collect(),
        formats_help: text(raw.formats_help),
        read_back: raw.read_back.is_none_or(|read_back| read_back.value),
        timeout: raw.timeout.map_or(FLASH_TIMEOUT, |timeout| timeout.value),
        touch: raw.touch.map(|touch| touch.value),
        idle_timeout: raw.idle_timeout.map(|timeout| timeout.value),
        success_codes: match raw.success_codes {
            Some(codes) => codes.value.into_iter().map(|code| code.value).collect(),
            None => vec![0],
        },
        success_pattern: raw.success_pattern?.value,
        failure_patterns: raw
            .failure_patterns
            .into_iter()
            .flat_map(|list| list.value)
            .map(|pattern| pattern.value)
            .collect(),
        verified_pattern: raw.verified_pattern.map(|pattern| pattern.value),
        progress_pattern: raw.progress_pattern.map(|pattern| pattern.value),
        install: InstallHint {
            debian: text(debian),
            pip: text(pip),
            cargo: text(cargo),
            url: text(url),
        },
        failures,
        success_origin: raw.success_origin?.value,
        success_example: raw.success_example?.value,
        failure_examples,
    })
}
