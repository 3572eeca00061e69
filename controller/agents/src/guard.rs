//! Guardrails on what a model writes: commands that destroy, paths that lead outside. Pure.
//!
//! They add to the rules of the rig and replace none: a tool still refuses a path outside of its folder, and a
//! dangerous call still waits for a person.

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

const RULES: &str = include_str!("guard.toml");

/// Deepest value that is looked through.
const MAX_DEPTH: usize = 32;

/// Names of arguments that name files.
const PATHS: [&str; 3] = ["image", "plan", "file"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGuardRule {
    name: String,
    pattern: String,
    hits: Vec<String>,
    misses: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGuardFile {
    rule: Vec<RawGuardRule>,
}

/// Name and pattern of each rule. Where one is wrong there are none, and nothing passes.
static COMMANDS: LazyLock<Option<Vec<(String, Regex)>>> = LazyLock::new(|| read(RULES));

fn read(text: &str) -> Option<Vec<(String, Regex)>> {
    let file: RawGuardFile = toml::from_str(text).ok()?;
    let rule = |raw: RawGuardRule| {
        let pattern = Regex::new(&raw.pattern).ok()?;
        let fits = !raw.hits.is_empty()
            && raw.hits.iter().all(|hit| pattern.is_match(hit))
            && !raw.misses.iter().any(|miss| pattern.is_match(miss));
        fits.then_some((raw.name, pattern))
    };
    file.rule.into_iter().map(rule).collect()
}

/// Says why something that a model wrote is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuardRefusal {
    /// It holds a command that destroys.
    #[error("the command {0:?} is forbidden")]
    Command(String),
    /// It names a file outside of the folder.
    #[error("{0:?} leads outside of the folder")]
    Outside(String),
    /// It is nested too deep.
    #[error("it is nested deeper than {MAX_DEPTH} levels")]
    Deep,
    /// The rules of this program are malformed.
    #[error("the rules for forbidden commands cannot be used")]
    Rules,
}

/// Refuses a text that holds a command that destroys.
///
/// # Errors
/// It holds one, which is named.
pub fn check_commands(text: &str) -> Result<(), GuardRefusal> {
    let rules = COMMANDS.as_ref().ok_or(GuardRefusal::Rules)?;
    match rules.iter().find(|(_, pattern)| pattern.is_match(text)) {
        Some((name, _)) => Err(GuardRefusal::Command(name.clone())),
        None => Ok(()),
    }
}

/// Refuses arguments of a tool that hold a command that destroys, also as a list of words, or name a file
/// outside of the folder.
///
/// # Errors
/// They do; the first one is named.
pub fn check_arguments(arguments: &Value) -> Result<(), GuardRefusal> {
    walk("", arguments, 0)
}

fn walk(name: &str, value: &Value, depth: usize) -> Result<(), GuardRefusal> {
    if depth > MAX_DEPTH {
        return Err(GuardRefusal::Deep);
    }
    match value {
        Value::String(text) => {
            check_commands(text)?;
            // A plan may be given as text, which has lines.
            if PATHS.contains(&name) && !text.contains('\n') && leads_outside(text) {
                return Err(GuardRefusal::Outside(text.chars().take(80).collect()));
            }
            Ok(())
        }
        Value::Array(items) => {
            let words: Vec<_> = items.iter().filter_map(Value::as_str).collect();
            check_commands(&words.join(" "))?;
            items.iter().try_for_each(|item| walk(name, item, depth + 1))
        }
        Value::Object(fields) => {
            fields.iter().try_for_each(|(name, field)| walk(name, field, depth + 1))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// Tells whether a path is absolute, belongs to a home folder, or leaves its folder.
fn leads_outside(path: &str) -> bool {
    path.starts_with(['/', '\\', '~'])
        || path.contains(':') && path.get(1..2) == Some(":")
        || path.split(['/', '\\']).any(|part| part == "..")
        || path.contains('\0')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_rules_fit_their_examples_and_wrong_ones_let_nothing_pass() {
        assert!(COMMANDS.as_ref().is_some_and(|rules| rules.len() >= 5));
        assert!(read(&RULES.replace("mkfs /dev/sda", "nothing")).is_none());
        assert!(read(&RULES.replace("mkfsx", "mkfs /x")).is_none());
    }

    #[test]
    fn commands_are_found_in_texts_and_in_lists_of_words() {
        for bad in [
            json!({ "argv": ["rm", "-rf", "/"] }),
            json!({ "argv": ["sh", "-c", "dd if=/dev/zero of=/dev/mmcblk0"] }),
            json!({ "deep": [{ "text": "mkfs.ext4 /dev/sda" }] }),
        ] {
            let refusal = check_arguments(&bad).unwrap_err();
            assert!(matches!(refusal, GuardRefusal::Command(_)), "{bad}: {refusal}");
        }
        assert_eq!(check_arguments(&json!({ "argv": ["ls", "/"], "place": "b" })), Ok(()));
        let deep = (0..40).fold(json!("x"), |inner, _| json!([inner]));
        assert_eq!(check_arguments(&deep), Err(GuardRefusal::Deep));
    }

    #[test]
    fn files_stay_inside_of_the_folder() {
        for bad in ["../x.elf", "/etc/passwd", "a/../../b", "~/x", "C:\\x", "..\\x", "a\\..\\b"] {
            let refusal = check_arguments(&json!({ "image": bad })).unwrap_err();
            assert!(matches!(refusal, GuardRefusal::Outside(_)), "{bad}");
        }
        for good in ["build/app.elf", "app.bin@0x8000000", "a..b/x", "last"] {
            assert_eq!(check_arguments(&json!({ "image": good })), Ok(()), "{good}");
        }
        // A program on a target has paths of the target.
        assert_eq!(check_arguments(&json!({ "argv": ["cat", "/proc/version"] })), Ok(()));
    }
}
