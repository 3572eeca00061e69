//! Removes secrets from text, before it is written anywhere.
//!
//! Owns two kinds of knowledge: the values of the variables that a run passes on, and the shapes of
//! common keys, as data with examples. What is removed leaves a mark with the name of its rule.

use std::sync::{Arc, LazyLock};

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

/// Shorter values of variables are words that occur everywhere.
const MIN_VALUE: usize = 8;

/// Variables whose values are no secrets: they occur in paths of logs and records.
const NO_SECRETS: [&str; 9] =
    ["HOME", "PATH", "LANG", "TMPDIR", "USER", "LOGNAME", "SHELL", "TERM", "PWD"];

const RULES: &str = include_str!("redact_rules.toml");

/// The shape of a secret.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    name: String,
    /// Texts of which the pattern needs one, in lower case: they are looked for first.
    keywords: Vec<String>,
    /// The group `secret`, or else the whole match, is removed.
    pattern: String,
    /// Whether the rule is for text that is no source: there, what stands behind a `=` is a secret.
    #[serde(default)]
    not_in_source: bool,
    /// Texts in which something is removed.
    hits: Vec<String>,
    /// Texts that stay as they are.
    misses: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    rule: Vec<RuleText>,
}

#[derive(Debug)]
struct Rule {
    text: RuleText,
    pattern: Regex,
}

/// Says which of the built-in rules cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the built-in rule for secrets {name:?} cannot be used: {why}")]
pub struct RedactRuleError {
    /// The rule.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
}

/// The rules of `redact_rules.toml`. Where one is wrong there are none, and no text is let through.
static SHAPES: LazyLock<Result<Vec<Rule>, RedactRuleError>> = LazyLock::new(|| read(RULES));

/// What stands in place of a text that cannot be searched.
const UNSEARCHED: &str = "[removed: the rules for secrets cannot be used]";

/// Reads rules, and checks each by its examples.
fn read(text: &str) -> Result<Vec<Rule>, RedactRuleError> {
    let bad = |name: &str, why: String| RedactRuleError { name: name.to_owned(), why };
    let file: RuleFile = toml::from_str(text)
        .map_err(|error| bad("redact_rules.toml", error.message().to_owned()))?;
    let checked = |text: RuleText| {
        let pattern =
            Regex::new(&text.pattern).map_err(|error| bad(&text.name, error.to_string()))?;
        let rule = Rule { text, pattern };
        let RuleText { name, hits, misses, .. } = &rule.text;
        let changes = |example: &String| shaped(&rule, example.clone()) != *example;
        if hits.is_empty() || misses.is_empty() {
            return Err(bad(name, "it has no examples".to_owned()));
        }
        if let Some(kept) = hits.iter().find(|hit| !changes(hit)) {
            return Err(bad(name, format!("it removes nothing of {kept:?}")));
        }
        match misses.iter().find(|miss| changes(miss)) {
            Some(changed) => Err(bad(name, format!("it changes {changed:?}"))),
            None => Ok(rule),
        }
    };
    file.rule.into_iter().map(checked).collect()
}

/// Removes secrets from text.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// Name and value of each variable, the longest values first: one may hold another.
    values: Arc<[(String, String)]>,
}

impl Redactor {
    /// Also removes the values of these variables.
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let is_secret = |(name, value): &(String, String)| {
            value.len() >= MIN_VALUE && !NO_SECRETS.contains(&name.as_str())
        };
        let mut values: Vec<_> = variables.into_iter().filter(is_secret).collect();
        values.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        Self { values: values.into() }
    }

    /// Checks the rules for the shapes of secrets. Where one is wrong, no text is let through.
    ///
    /// # Errors
    /// Names the rule.
    pub fn check_rules() -> Result<(), RedactRuleError> {
        SHAPES.as_ref().map(drop).map_err(Clone::clone)
    }

    /// Returns a text without secrets.
    pub fn text(&self, text: &str) -> String {
        self.cleaned(text, false)
    }

    /// Returns the text of a source file without secrets: what it assigns is code, unless it is quoted.
    pub fn source(&self, text: &str) -> String {
        self.cleaned(text, true)
    }

    fn cleaned(&self, text: &str, source: bool) -> String {
        let Ok(shapes) = SHAPES.as_ref() else { return UNSEARCHED.to_owned() };
        let mut clean = text.to_owned();
        for (name, value) in self.values.iter() {
            if clean.contains(value.as_str()) {
                clean = clean.replace(value.as_str(), &mark(name));
            }
        }
        let rules = shapes.iter().filter(|rule| !(source && rule.text.not_in_source));
        rules.fold(clean, |clean, rule| shaped(rule, clean))
    }

    /// Returns the name of a variable whose value a text holds.
    pub fn variable_in(&self, text: &str) -> Option<&str> {
        let held = self.values.iter().find(|(_, value)| text.contains(value.as_str()));
        held.map(|(name, _)| name.as_str())
    }

    /// Removes secrets from all texts of a JSON value, also from names of members.
    pub fn value(&self, value: &mut Value) {
        self.clean(value, false);
    }

    /// Removes secrets from all texts of a JSON value that quotes source files.
    pub fn source_value(&self, value: &mut Value) {
        self.clean(value, true);
    }

    fn clean(&self, value: &mut Value, source: bool) {
        match value {
            Value::String(text) => *text = self.cleaned(text, source),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean(item, source)),
            Value::Object(members) => {
                let cleaned = std::mem::take(members).into_iter().map(|(name, mut member)| {
                    self.clean(&mut member, source);
                    (self.cleaned(&name, source), member)
                });
                *members = cleaned.collect();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn mark(name: &str) -> String {
    format!("[removed: {name}]")
}

/// Removes what has the shape of a rule.
fn shaped(rule: &Rule, text: String) -> String {
    let lower = text.to_ascii_lowercase();
    if rule.text.keywords.iter().any(|keyword| lower.contains(keyword)) {
        without(rule, &text)
    } else {
        text
    }
}

fn without(rule: &Rule, text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut copied = 0;
    for found in rule.pattern.captures_iter(text) {
        let Some(secret) = found.name("secret").or_else(|| found.get(0)) else { continue };
        clean.push_str(&text[copied..secret.start()]);
        clean.push_str(&mark(&rule.text.name));
        copied = secret.end();
    }
    clean.push_str(&text[copied..]);
    clean
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_rule_removes_its_hits_and_keeps_its_misses() {
        let file: RuleFile = toml::from_str(RULES).unwrap();
        assert_eq!(Redactor::check_rules(), Ok(()));
        let redactor = Redactor::default();
        for rule in file.rule {
            assert!(!rule.hits.is_empty() && !rule.misses.is_empty(), "{}", rule.name);
            for hit in &rule.hits {
                let clean = redactor.text(hit);
                assert!(clean.contains(&mark(&rule.name)), "{}: {hit} became {clean}", rule.name);
            }
            for miss in &rule.misses {
                assert_eq!(redactor.text(miss), *miss, "{}", rule.name);
            }
        }
    }

    #[test]
    fn a_rule_that_cannot_be_used_is_named() {
        let rule = |pattern: &str, hit: &str, miss: &str| {
            let keywords = "keywords = [\"key\"]";
            format!(
                "[[rule]]\nname = \"x\"\n{keywords}\npattern = '{pattern}'\nhits = [\"{hit}\"]\n\
                 misses = [\"{miss}\"]\n"
            )
        };
        assert!(read(&rule("key=[0-9]+", "key=17", "key=x")).is_ok());
        for (text, words) in [
            ("[[rules]]".to_owned(), "redact_rules.toml"),
            (rule("key=(", "key=17", "key=x"), "\"x\" cannot be used"),
            (rule("key=[0-9]+", "key=y", "key=x"), "removes nothing of \"key=y\""),
            (rule("key=[0-9]+", "key=17", "key=18"), "changes \"key=18\""),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn values_of_variables_are_removed_longest_first_and_short_ones_stay() {
        let variables = [("SHORT", "on"), ("TOKEN", "abcdefgh"), ("LONGER", "abcdefghij")];
        let redactor =
            Redactor::new(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let clean = redactor.text("on abcdefgh, abcdefghij");
        assert_eq!(clean, "on [removed: TOKEN], [removed: LONGER]");
    }

    #[test]
    fn values_that_are_no_secrets_stay() {
        let variables = [("HOME", "/srv/someone"), ("PATH", "/usr/bin:/bin")];
        let redactor =
            Redactor::new(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let text = "/srv/someone/runs/1/log, PATH=/usr/bin:/bin";
        assert_eq!(redactor.text(text), text);
        assert_eq!(redactor.variable_in("+ /srv/someone"), None);
    }

    #[test]
    fn what_source_assigns_is_no_secret_unless_it_is_quoted() {
        let redactor = Redactor::default();
        for code in [
            "unsigned shared_secret = compute_secret(r->count);",
            "api_key = config.default_api_key;",
            "secret = 0x1234567890;",
        ] {
            assert_eq!(redactor.source(code), code);
        }
        let name = "password or token in an assignment";
        for (quoted, clean) in [
            ("wifi_password = \"correcthorse\";", format!("wifi_password = \"{}\";", mark(name))),
            ("char api_key[] = \"0123456789\";", format!("char api_key[] = \"{}\";", mark(name))),
        ] {
            assert_eq!(redactor.source(quoted), clean);
        }
        assert!(
            redactor.source("k = \"ghp_0123456789abcdefghijABCDEFGHIJ012345\"").contains("removed")
        );
    }

    #[test]
    fn a_text_with_the_value_of_a_variable_is_found() {
        let redactor = Redactor::new([("KEY".to_owned(), "s3cr3t-value".to_owned())]);
        assert_eq!(redactor.variable_in("+ s3cr3t-values"), Some("KEY"));
        assert_eq!(redactor.variable_in("+ s3cr3t"), None);
    }

    #[test]
    fn every_text_of_a_value_is_clean() {
        let redactor = Redactor::new([("KEY".to_owned(), "s3cr3t-value".to_owned())]);
        let mut value = json!({ "a": ["x s3cr3t-value"], "s3cr3t-value": { "b": 1, "c": null } });
        redactor.value(&mut value);
        assert_eq!(
            value,
            json!({ "a": ["x [removed: KEY]"], "[removed: KEY]": { "b": 1, "c": null } })
        );
    }

    proptest::proptest! {
        #[test]
        fn what_is_clean_stays_as_it_is(text in "\\PC{0,200}") {
            let redactor = Redactor::new([("KEY".to_owned(), "s3cr3t-value".to_owned())]);
            let once = redactor.text(&text);
            proptest::prop_assert_eq!(redactor.text(&once), once);
        }
    }
}
