//! Options of a preset: what a board or a place says, and how it gets into the arguments.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use serde_json::{Value, json};
use toml::de::DeValue;

use crate::document::{FromToml, Located, Node};

/// The value of an option: one text, or a list of texts where an argument is nothing but the option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OptionValue {
    /// One text; a number or a truth value as its text.
    One(String),
    /// Several arguments.
    Many(Vec<String>),
}

impl FromToml for OptionValue {
    fn how_to_add(key: &str) -> String {
        format!("add `{key} = ...`")
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": "string" },
            { "type": "integer" },
            { "type": "boolean" },
            { "type": "array", "items": { "type": "string" } },
        ] })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        match node.value() {
            DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
                .ok()
                .map(|number| Self::One(number.to_string())),
            DeValue::Boolean(on) => Some(Self::One(on.to_string())),
            DeValue::Array(_) => {
                let list = Vec::<Located<String>>::read(node)?;
                Some(Self::Many(list.into_iter().map(|one| one.value).collect()))
            }
            _ => {
                let text = node.text("a text, a number, true, false or a list of texts", "\"x\"");
                text.map(|text| Self::One(text.to_owned()))
            }
        }
    }
}

impl OptionValue {
    /// Tells whether a text of it cannot be an argument.
    pub(super) fn holds_zero(&self) -> bool {
        match self {
            Self::One(text) => text.contains('\0'),
            Self::Many(texts) => texts.iter().any(|text| text.contains('\0')),
        }
    }
}

/// Values of all options of a preset, each as a part of an argument: braces of a value that was
/// given are doubled, those of a default are placeholders.
#[derive(Debug, Default)]
pub(super) struct OptionValues {
    values: BTreeMap<String, OptionValue>,
}

impl OptionValues {
    /// Adds a value that a board or a place gives.
    pub(super) fn give(&mut self, name: &str, value: &OptionValue) {
        let escaped = |text: &String| text.replace('{', "{{").replace('}', "}}");
        let value = match value {
            OptionValue::One(text) => OptionValue::One(escaped(text)),
            OptionValue::Many(texts) => OptionValue::Many(texts.iter().map(escaped).collect()),
        };
        self.values.insert(name.to_owned(), value);
    }

    /// Adds a default, if nothing is given.
    pub(super) fn fall_back(&mut self, name: &str, value: &str) {
        let value = || OptionValue::One(value.to_owned());
        self.values.entry(name.to_owned()).or_insert_with(value);
    }

    /// Puts the values into arguments or lines of a script. One with an option that has no value is
    /// left out; if it is nothing but the option, so is the switch before it (`--chip {chip?}`), unless
    /// it stands for any number of arguments (`{args*}`).
    pub(super) fn expand(&self, names: &[&str], args: &[String]) -> Vec<String> {
        let mut out: Vec<String> = Vec::with_capacity(args.len());
        for arg in args {
            let alone = names.iter().find(|name| is_placeholder(arg, name));
            match alone.map(|name| self.values.get(*name)) {
                Some(Some(OptionValue::Many(list))) => out.extend(list.iter().cloned()),
                Some(Some(OptionValue::One(text))) => out.push(text.clone()),
                Some(None) if arg.ends_with("*}") => {}
                Some(None) => leave_out(&mut out),
                None => out.extend(self.within(names, arg)),
            }
        }
        out
    }

    /// Puts the values into one argument; nothing if one of them is missing. Other placeholders and
    /// doubled braces stay as they are.
    fn within(&self, names: &[&str], arg: &str) -> Option<String> {
        let mut out = String::with_capacity(arg.len());
        let mut rest = arg;
        while let Some(brace) = rest.find(['{', '}']) {
            let (text, from) = rest.split_at(brace);
            out.push_str(text);
            let length = match from.as_bytes() {
                [a, b, ..] if a == b => 2,
                _ => from.find('}').map_or(from.len(), |end| end + 1),
            };
            let (part, behind) = from.split_at(length);
            match names.iter().find(|name| is_placeholder(part, name)) {
                None => out.push_str(part),
                Some(name) => match self.values.get(*name)? {
                    OptionValue::One(text) => out.push_str(text),
                    OptionValue::Many(list) => out.push_str(&list.join(" ")),
                },
            }
            rest = behind;
        }
        out.push_str(rest);
        Some(out)
    }
}

/// Tells whether an argument is nothing but a placeholder.
fn is_placeholder(arg: &str, name: &str) -> bool {
    let inside = arg.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inside.is_some_and(|inside| inside.strip_suffix(['?', '*']).unwrap_or(inside) == name)
}

/// Leaves out an argument that is nothing but a placeholder without a value: the switch before it
/// goes with it.
pub fn leave_out<T: AsRef<OsStr>>(args: &mut Vec<T>) {
    let takes_value = |last: &T| {
        let last = last.as_ref().as_encoded_bytes();
        last.starts_with(b"-") && !last.contains(&b'=')
    };
    if args.last().is_some_and(takes_value) {
        args.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(values: &[(&str, OptionValue)], args: &[&str]) -> Vec<String> {
        let mut all = OptionValues::default();
        for (name, value) in values {
            all.give(name, value);
        }
        all.fall_back("baud", "9600");
        all.fall_back("target", "{chip}");
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        all.expand(&["baud", "extra", "speed", "target"], &args)
    }

    #[test]
    fn options_become_arguments_or_leave_with_their_switch() {
        let args =
            ["f", "-b", "{baud}", "-v", "--speed={speed?}", "-s", "{speed?}", "-w", "{extra*}"];
        assert_eq!(expand(&[], &args), ["f", "-b", "9600", "-v", "-w"]);
        let given = [
            ("speed", OptionValue::One("{fast}".to_owned())),
            ("extra", OptionValue::Many(vec!["a".to_owned(), "b".to_owned()])),
        ];
        let wanted =
            ["f", "-b", "9600", "-v", "--speed={{fast}}", "-s", "{{fast}}", "-w", "a", "b"];
        assert_eq!(expand(&given, &args), wanted);
        // A value that looks like another option is a text.
        let given = [("target", OptionValue::One("{baud}".to_owned()))];
        assert_eq!(expand(&given, &["{{{target}}} {image}"]), ["{{{{baud}}}} {image}"]);
        // A default may name what only the place knows.
        assert_eq!(expand(&[], &["-t", "{target}", "x{target}y"]), ["-t", "{chip}", "x{chip}y"]);
    }
}
