//! Values that are one word: texts, numbers, times, names, choices.

use std::time::Duration;

use serde_json::{Value, json};
use toml::de::{DeInteger, DeValue};

use super::nearest::did_you_mean;
use super::quantity::{parse_duration, parse_size};
use super::value::FromToml;
use super::{ByteSize, Located, Node};
use crate::pattern::Pattern;
use crate::{ActionName, BoardId, ClassName, ConsoleName, DeviceName, PlaceName, TagName};

const BAD_VALUE: &str = "document::bad-value";

impl FromToml for String {
    fn schema() -> Value {
        json!({ "type": "string" })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        node.text("a text", "\"text\"").map(str::to_owned)
    }
}

impl FromToml for bool {
    fn schema() -> Value {
        json!({ "type": "boolean" })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        match node.value {
            DeValue::Boolean(value) => Some(*value),
            _ => {
                node.wrong_type("true or false", "true");
                None
            }
        }
    }
}

/// Reads an integer that lies within bounds.
fn integer(node: &Node<'_>, value: &DeInteger<'_>, min: i128, max: i128) -> Option<i128> {
    let number = i128::from_str_radix(value.as_str(), value.radix()).ok();
    let fitting = number.filter(|n| (min..=max).contains(n));
    if fitting.is_none() {
        node.refuse(
            BAD_VALUE,
            format!("`{}` is out of range", node.key),
            format!("use a whole number from {min} to {max}"),
        );
    }
    fitting
}

macro_rules! integers {
    ($($type:ident)+) => {$(
        impl FromToml for $type {
            fn schema() -> Value {
                json!({ "type": "integer", "minimum": $type::MIN, "maximum": $type::MAX })
            }

            fn read(node: &Node<'_>) -> Option<Self> {
                match node.value {
                    DeValue::Integer(value) => {
                        let bounds = (i128::from($type::MIN), i128::from($type::MAX));
                        $type::try_from(integer(node, value, bounds.0, bounds.1)?).ok()
                    }
                    _ => {
                        node.wrong_type("a whole number", "16");
                        None
                    }
                }
            }
        }
    )+};
}
integers! { u8 u16 u32 u64 i32 }

impl FromToml for Duration {
    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|min|h|d)$" })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        let text = node.text("a time", "\"10s\" or \"250ms\"")?;
        match parse_duration(text) {
            Ok(duration) => Some(duration),
            Err(error) => {
                let help = "write a whole number and its unit: ms, s, m, h or d, like \"250ms\"";
                node.refuse(BAD_VALUE, error.to_string(), help);
                None
            }
        }
    }
}

impl FromToml for ByteSize {
    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": "integer", "minimum": 0 },
            { "type": "string", "pattern": "^([0-9]+(B|K|KiB|M|MiB|G|GiB)?|0x[0-9A-Fa-f]+)$" },
        ] })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        if matches!(node.value, DeValue::Integer(_)) {
            return u64::read(node).map(ByteSize);
        }
        match parse_size(node.text("a size", "\"256K\" or 0x40000")?) {
            Ok(size) => Some(size),
            Err(error) => {
                let help = "write a whole number, with K, M or G if you like: \"256K\", 0x40000";
                node.refuse(BAD_VALUE, error.to_string(), help);
                None
            }
        }
    }
}

impl FromToml for Pattern {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "format": "regex" })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        let text = node.text("a regular expression", "'^ready$'")?;
        match Pattern::new(text) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let place = match &error.span {
                    Some(part) => Some(node.place_within(part.clone())),
                    None => node.place(),
                };
                let help = "quote it with '...' so that a backslash stands for itself; \
                            write \\( or \\[ for the character";
                node.findings.add("document::bad-pattern", place, error.to_string(), help);
                None
            }
        }
    }
}

macro_rules! names {
    ($pattern:literal: $($type:ident)+) => {$(
        impl FromToml for $type {
            fn schema() -> Value {
                json!({ "type": "string", "pattern": $pattern })
            }

            fn read(node: &Node<'_>) -> Option<Self> {
                match node.text("a name", "\"uart0\"")?.parse() {
                    Ok(name) => Some(name),
                    Err(error) => {
                        let help = "names become file names, so they are kept simple";
                        node.refuse("document::bad-name", crate::NameError::to_string(&error), help);
                        None
                    }
                }
            }
        }
    )+};
}
names! {
    "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$": ActionName ClassName ConsoleName DeviceName PlaceName TagName
}
names! {
    "^([A-Za-z0-9][A-Za-z0-9._-]{0,63}|chip:[A-Za-z0-9][A-Za-z0-9._+-]{0,58})$": BoardId
}

/// A word out of a closed list.
pub trait Choice: Copy + 'static {
    /// What the words stand for, such as `processor family`.
    const WHAT: &'static str;
    /// All of them.
    const CHOICES: &'static [(&'static str, Self)];
}

impl<T: Choice> FromToml for T {
    fn schema() -> Value {
        let words: Vec<&str> = T::CHOICES.iter().map(|(word, _)| *word).collect();
        json!({ "type": "string", "enum": words })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        let example = T::CHOICES.first().map_or_else(String::new, |(word, _)| format!("{word:?}"));
        let text = node.text(&format!("a {}", T::WHAT), &example)?;
        let found = T::CHOICES.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let shown: String = text.chars().take(40).collect();
            let known = T::CHOICES.iter().map(|(word, _)| *word);
            node.refuse(
                "document::unknown-word",
                format!("{shown:?} is no {}", T::WHAT),
                did_you_mean(text, known),
            );
        }
        found.map(|(_, choice)| *choice)
    }
}

/// A value that was refused is `None` here instead of missing, for checks that must tell
/// one from the other.
impl<T: FromToml> FromToml for Option<T> {
    const IS_TABLE: bool = T::IS_TABLE;

    fn schema() -> Value {
        T::schema()
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        Some(T::read(node))
    }
}

impl<T: FromToml> FromToml for Vec<Located<T>> {
    fn how_to_add(key: &str) -> String {
        if T::IS_TABLE { format!("add a `[[{key}]]`") } else { format!("add `{key} = [...]`") }
    }

    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        let list = match node.value {
            DeValue::Array(list) => list,
            DeValue::Table(_) => {
                node.wrong_type("a list of tables", &format!("`[[{}]]`, once for each", node.key));
                return None;
            }
            _ => {
                node.wrong_type("a list", "[...], with one or more values in it");
                return None;
            }
        };
        let items = list.iter().filter_map(|item| {
            let item = Node::at(item, node.key, node.text, node.findings);
            T::read(&item).map(|value| Located { value, span: item.span })
        });
        Some(items.collect())
    }
}
