//! `jig flashers`: the programs that flash boards, and which of them this host has.

use std::fmt::Write as _;

use jig_model::document::did_you_mean;
use jig_model::flasher::{FlasherPreset, FlasherPresets, KnownFailure};
use jig_model::{Fault, exit};
use serde_json::{Value, json};

use super::doctor::find_program;
use crate::args::FlashersArgs;
use crate::failure::Failure;
use crate::render::{Paint, Screen, Style, TextTable};

/// Lists the flashers, or tells all that is known about one. Looks at this host alone.
///
/// JSON of the list: `{"flashers":[{"name","title","program","installed","install"}]}`. JSON of one:
/// the same, and what a profile can replace: `argv`, `script`, `options`, times, patterns and the
/// known failures. `installed` is the path of the program, or null; `install` the command that
/// installs it.
pub(crate) fn flashers(screen: &Screen, args: &FlashersArgs) -> Result<u8, Failure> {
    let presets = FlasherPresets::shipped();
    let Some(name) = &args.name else {
        if screen.json() {
            let list: Vec<Value> = presets.iter().map(brief_json).collect();
            screen.out_json(&json!({ "flashers": list }));
        } else {
            screen.out(&list(presets).text(screen.out_paint()));
            screen.say("jig flashers NAME shows its options and its known failures");
            screen.say(&format!("{VOLUMES}: flasher = {{ volume = \"LABEL\" }}"));
        }
        return Ok(exit::PASS);
    };
    let Some(preset) = presets.get(name) else {
        let shown: String = name.chars().take(40).collect();
        let failure = Failure::new(Fault::Usage, format!("there is no flasher {shown:?}"));
        let help = did_you_mean(name, presets.names());
        return Err(failure.help(format!("{help} ({VOLUMES}: flasher = {{ volume = \"LABEL\" }})")));
    };
    if screen.json() {
        screen.out_json(&whole_json(preset));
    } else {
        screen.out(&text(preset, screen.out_paint()));
    }
    Ok(exit::PASS)
}

/// What needs no program.
const VOLUMES: &str = "a volume that takes a copy, of UF2 or DAPLink, needs none";

fn install(preset: &FlasherPreset) -> String {
    preset.install.command().unwrap_or_default()
}

fn installed(preset: &FlasherPreset) -> Option<String> {
    find_program(preset.program()).map(|path| path.display().to_string())
}

fn brief_json(preset: &FlasherPreset) -> Value {
    json!({
        "name": preset.name,
        "title": preset.title,
        "program": preset.program(),
        "installed": installed(preset),
        "install": install(preset),
    })
}

fn whole_json(preset: &FlasherPreset) -> Value {
    let mut all = json!(preset);
    if let (Value::Object(all), Value::Object(brief)) = (&mut all, brief_json(preset)) {
        all.extend(brief);
    }
    all
}

fn list(presets: &FlasherPresets) -> TextTable {
    let mut table = TextTable::new(&["FLASHER", "INSTALLED", "WHAT IT IS"]);
    for preset in presets.iter() {
        let found = installed(preset);
        let style = if found.is_some() { None } else { Some(Style::Dim) };
        table.row([
            (preset.name.clone(), Some(Style::Bold)),
            (found.unwrap_or_else(|| format!("no: {}", install(preset))), style),
            (preset.title.clone(), None),
        ]);
    }
    table
}

fn text(preset: &FlasherPreset, paint: Paint) -> String {
    let mut out = format!("{}: {}\n", paint.paint(Style::Bold, &preset.name), preset.title);
    let mut line = |name: &str, text: String| {
        if !text.is_empty() {
            let _ = writeln!(out, "  {name:<10} {text}");
        }
    };
    line("installed", installed(preset).unwrap_or_else(|| format!("no; {}", install(preset))));
    line("command", preset.argv.join(" "));
    line("script", preset.script.join("; "));
    let formats: Vec<String> = preset.formats.iter().map(ToString::to_string).collect();
    line("takes", formats.join(", "));
    line("success", format!("a line matches /{}/", preset.success_pattern.as_str()));
    let verified = preset.verified_pattern.as_ref();
    line(
        "verified",
        verified.map_or(String::new(), |p| format!("a line matches /{}/", p.as_str())),
    );
    let idle = preset.idle_timeout.map(|idle| format!(", silent for {idle:?}"));
    line("at most", format!("{:?}{}", preset.timeout, idle.unwrap_or_default()));
    line("examples", preset.source.clone());
    for option in &preset.options {
        let default = match &option.default {
            Some(default) => format!(" ({default} if missing)"),
            None if option.required => " (required)".to_owned(),
            None => String::new(),
        };
        line("option", format!("{}: {}{default}", option.name, option.about));
    }
    for failure in &preset.failures {
        let KnownFailure { why, cause, help, origin, .. } = failure;
        line("failure", format!("{why} ({cause}; output from: {}): {help}", origin.words()));
    }
    let needed = preset.options.iter().filter(|option| option.required);
    let needed: Vec<String> = needed.map(|option| format!("{} = \"...\"", option.name)).collect();
    let options = match needed.as_slice() {
        [] => String::new(),
        needed => format!(", options = {{ {} }}", needed.join(", ")),
    };
    line("rig file", format!("flasher = {{ preset = \"{}\"{options} }}", preset.name));
    out
}
