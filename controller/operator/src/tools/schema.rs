//! Whether arguments fit a schema, and if not where and why.
//!
//! Reads the part of JSON Schema that tools use: types, properties, required ones, enumerations, bounds,
//! lengths, patterns. What it does not know it does not refuse, because the schemas of other servers may
//! say anything.

use std::fmt;

use jig_model::document::did_you_mean;
use regex::RegexBuilder;
use serde_json::{Map, Value};

/// Most levels of a schema that are looked at: those of other servers are hostile.
const MOST_DEPTH: usize = 32;

/// Most bytes of a compiled pattern, for the same reason.
const MOST_PATTERN: usize = 256 << 10;

/// Most misfits that are told.
const MOST_MISFITS: usize = 8;

/// Where arguments do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// The place, as a JSON Pointer; empty for the arguments themselves.
    path: String,
    /// What is wrong there, and what would fit.
    why: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "/" } else { &self.path };
        write!(f, "at {path}: {}", self.why)
    }
}

/// Lists where arguments do not fit; nothing if they do.
pub(crate) fn misfits(schema: &Value, arguments: &Value) -> Vec<Misfit> {
    let mut found = Vec::new();
    look(schema, arguments, "", 0, &mut found);
    found.truncate(MOST_MISFITS);
    found
}

fn look(schema: &Value, value: &Value, path: &str, depth: usize, found: &mut Vec<Misfit>) {
    let Value::Object(schema) = schema else { return };
    if depth > MOST_DEPTH || found.len() > MOST_MISFITS {
        return;
    }
    let mut misfit = |why: String| found.push(Misfit { path: path.to_owned(), why });
    let branches = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array());
    if let Some(branches) = branches {
        one_of(branches, value, path, depth, found);
        return;
    }
    if let Some(types) = types(schema)
        && !types.iter().any(|kind| is_kind(value, kind))
    {
        misfit(format!("{} is no {}", shown(value), types.join(" or ")));
        return;
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array)
        && !choices.contains(value)
    {
        misfit(format!("{} does not fit; {}", shown(value), nearest(value, choices)));
        return;
    }
    if let Some(only) = schema.get("const")
        && only != value
    {
        misfit(format!(
            "{} does not fit; {}",
            shown(value),
            nearest(value, std::slice::from_ref(only))
        ));
        return;
    }
    match value {
        Value::Number(_) => bounds(schema, value, &mut misfit),
        Value::String(text) => {
            let chars = text.chars().count() as u64;
            length(schema, "minLength", "maxLength", chars, "characters", &mut misfit);
            if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
                && !matches(pattern, text)
            {
                misfit(format!("{} does not fit; it has to match {pattern}", shown(value)));
            }
        }
        Value::Array(items) => {
            length(schema, "minItems", "maxItems", items.len() as u64, "items", &mut misfit);
            if let Some(of) = schema.get("items") {
                for (n, item) in items.iter().enumerate() {
                    look(of, item, &format!("{path}/{n}"), depth + 1, found);
                }
            }
        }
        Value::Object(fields) => object(schema, fields, path, depth, found),
        Value::Null | Value::Bool(_) => {}
    }
}

fn object(
    schema: &Map<String, Value>,
    fields: &Map<String, Value>,
    path: &str,
    depth: usize,
    found: &mut Vec<Misfit>,
) {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            let about = properties.get(name).and_then(|of| of.get("description")?.as_str());
            let about = about.map_or_else(String::new, |about| format!(" ({about})"));
            found
                .push(Misfit { path: path.to_owned(), why: format!("`{name}` is missing{about}") });
        }
    }
    for (name, value) in fields {
        let inner = format!("{path}/{}", escaped(name));
        match (properties.get(name), schema.get("additionalProperties")) {
            (Some(of), _) => look(of, value, &inner, depth + 1, found),
            (None, Some(Value::Bool(false))) => {
                let help = did_you_mean(name, properties.keys().map(String::as_str));
                found.push(Misfit {
                    path: inner,
                    why: format!("there is no such argument; {help}"),
                });
            }
            (None, Some(of)) => look(of, value, &inner, depth + 1, found),
            (None, None) => {}
        }
    }
}

/// Looks at the alternatives of a value. Of those that do not fit, the one with the deepest misfit is
/// told: it was meant.
fn one_of(branches: &[Value], value: &Value, path: &str, depth: usize, found: &mut Vec<Misfit>) {
    let mut tried = Vec::new();
    for branch in branches {
        let mut of_branch = Vec::new();
        look(branch, value, path, depth + 1, &mut of_branch);
        if of_branch.is_empty() {
            return;
        }
        tried.push(of_branch);
    }
    // An enumeration whose values have descriptions is a list of constants.
    let constants: Option<Vec<Value>> =
        branches.iter().map(|branch| branch.get("const").cloned()).collect();
    if let Some(constants) = constants.filter(|all| !all.is_empty()) {
        let why = format!("{} does not fit; {}", shown(value), nearest(value, &constants));
        found.push(Misfit { path: path.to_owned(), why });
        return;
    }
    // The first of those that are equally deep: a schema puts null last.
    let deepest = tried.into_iter().rev().max_by_key(|misfits| {
        misfits.iter().map(|misfit| misfit.path.matches('/').count()).max().unwrap_or_default()
    });
    found.extend(deepest.into_iter().flatten());
}

/// Tells whether a text matches a pattern. One that is of another dialect, or too costly, refuses nothing.
fn matches(pattern: &str, text: &str) -> bool {
    let pattern = RegexBuilder::new(pattern).size_limit(MOST_PATTERN).build();
    pattern.map_or(true, |pattern| pattern.is_match(text))
}

fn types(schema: &Map<String, Value>) -> Option<Vec<&str>> {
    match schema.get("type")? {
        Value::String(one) => Some(vec![one]),
        Value::Array(several) => Some(several.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

fn is_kind(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => {
            value.is_u64() || value.is_i64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn bounds(schema: &Map<String, Value>, value: &Value, misfit: &mut impl FnMut(String)) {
    let Some(n) = value.as_f64() else { return };
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(least) = bound("minimum").filter(|least| n < *least) {
        misfit(format!("{} is too small; the least is {least}", shown(value)));
    }
    if let Some(most) = bound("maximum").filter(|most| n > *most) {
        misfit(format!("{} is too large; the most is {most}", shown(value)));
    }
}

fn length(
    schema: &Map<String, Value>,
    least: &str,
    most: &str,
    is: u64,
    of: &str,
    misfit: &mut impl FnMut(String),
) {
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
    if let Some(least) = bound(least).filter(|least| is < *least) {
        misfit(format!("{is} {of}; the least is {least}"));
    }
    if let Some(most) = bound(most).filter(|most| is > *most) {
        misfit(format!("{is} {of}; the most is {most}"));
    }
}

fn nearest(value: &Value, choices: &[Value]) -> String {
    let texts: Vec<String> = choices
        .iter()
        .map(|choice| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned))
        .collect();
    let text = value.as_str().map_or_else(|| shown(value), str::to_owned);
    did_you_mean(&text, texts.iter().map(String::as_str))
}

/// Shows a value in a message; long ones are cut.
fn shown(value: &Value) -> String {
    const MOST: usize = 64;
    let text = match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.len() > 4 * MOST => {
            let head: String = text.chars().take(MOST).collect();
            Value::String(head).to_string()
        }
        _ => value.to_string(),
    };
    match text.chars().count() > MOST + 2 {
        true => text.chars().take(MOST).chain(['…']).collect(),
        false => text,
    }
}

/// Escapes a name for a JSON Pointer; long ones are cut.
fn escaped(name: &str) -> String {
    let name: String = name.chars().take(64).collect();
    name.replace('~', "~0").replace('/', "~1")
}
