//! The review of a patch.

use jig_agents::guard::{GuardRefusal, check_commands};

use super::directives::added_directives;
use super::file::Policy;
use super::rules::{LineRule, RULES, Rules};
use crate::patch::{FileChange, LineKind, Patch, Special};

/// What a review found. Every text names the file, so that an agent can correct the patch.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchReview {
    /// Why the patch is refused; empty where it may be applied.
    pub refusals: Vec<String>,
    /// How risky it is, from 0 to 1.
    pub risk: f64,
    /// What makes it risky.
    pub risks: Vec<String>,
    /// Whether it waits for an approval.
    pub asks: bool,
}

/// Share of the risk of a patch as large as the policy allows.
const SIZE_WEIGHT: f64 = 0.5;

/// Reviews a patch.
///
/// The risk is `1 - (1 - w1)(1 - w2)...` over the weights of the rules that match, each counted
/// once, and of the size: half of the share of `max_lines` that the patch uses.
pub fn review(patch: &Patch, policy: &Policy) -> PatchReview {
    let rules = match RULES.as_ref() {
        Ok(rules) => rules,
        Err(error) => {
            let refusals = vec![error.to_string()];
            return PatchReview { refusals, risk: 1.0, risks: Vec::new(), asks: true };
        }
    };
    let mut refusals = Vec::new();
    let mut risks = Vec::new();
    let (files, lines) = (patch.files.len(), patch.changed_lines());
    if files > policy.max_files {
        refusals.push(format!("files: {files}, and {} are allowed", policy.max_files));
    }
    if lines > policy.max_lines {
        refusals.push(format!("changed lines: {lines}, and {} are allowed", policy.max_lines));
    }
    for file in &patch.files {
        refusals.extend(refused_path(file, policy, rules).into_iter().chain(refused_form(file)));
    }
    let mut safe = 1.0 - SIZE_WEIGHT * (lines as f64 / policy.max_lines.max(1) as f64).min(1.0);
    for rule in &rules.lines {
        let Some((file, text)) = first_match(patch, rule) else { continue };
        let what = format!("{}: {}: {}", file.path(), rule.name, shown(&text));
        match rule.weight {
            Some(weight) => {
                safe *= 1.0 - weight;
                risks.push(what);
            }
            None => refusals.push(what),
        }
    }
    for file in &patch.files {
        let mut lines = file.lines().filter(|line| line.kind == LineKind::Added);
        let refused = |text: &str| check_commands(text).err();
        let found = lines.find_map(|line| Some((refused(&line.text)?, &line.text)));
        let words = |(why, text): (GuardRefusal, &String)| {
            format!("{}: {why}: {}", file.path(), shown(text))
        };
        refusals.extend(found.map(words));
    }
    for pattern in &policy.forbid {
        let added = |file: &FileChange| {
            let mut lines = file.lines().filter(|line| line.kind == LineKind::Added);
            let line = lines.find(|line| pattern.is_match(&line.text))?;
            Some(format!("{}: the policy forbids {pattern}: {}", file.path(), shown(&line.text)))
        };
        refusals.extend(patch.files.iter().filter_map(added));
    }
    let prints = policy.test_code.printing_changed(patch);
    risks
        .extend(prints.map(|one| {
            format!("{}: changes {}, by which results are printed", one.file, one.name)
        }));
    let risk = 1.0 - safe;
    let asks = prints.is_some() || policy.approve_patches || risk > policy.risk_threshold;
    PatchReview { refusals, risk, risks, asks }
}

/// Finds the first line that a rule matches, also among directives of the preprocessor as the compiler
/// sees them.
fn first_match<'p>(patch: &'p Patch, rule: &LineRule) -> Option<(&'p FileChange, String)> {
    patch.files.iter().find_map(|file| {
        let mut lines = file.lines().filter(|line| line.kind == rule.kind);
        let line = lines.find(|line| rule.pattern.is_match(&line.text));
        let directive = || {
            let added = rule.kind == LineKind::Added;
            let mut directives = added.then(|| added_directives(file)).into_iter().flatten();
            directives.find(|directive| rule.pattern.is_match(directive))
        };
        line.map(|line| line.text.clone()).or_else(directive).map(|text| (file, text))
    })
}

/// Tells whether a policy lets a file change.
pub fn may_write(path: &str, policy: &Policy) -> bool {
    RULES.as_ref().is_ok_and(|rules| refusal(path, policy, rules).is_none())
}

/// Tells whether a file holds tests that no patch may change.
pub fn is_test(path: &str, policy: &Policy) -> bool {
    let Ok(rules) = RULES.as_ref() else { return true };
    let tests = rules.protected.iter().find(|(name, _)| name == TESTS);
    let by_name = || tests.is_some_and(|(_, globs)| globs.matching(path).is_some());
    !may_write(path, policy) && (policy.test_code.files.contains_key(path) || by_name())
}

/// Name of the rule that protects tests.
const TESTS: &str = "a test";

/// Says why one of the paths of a change may not change.
fn refused_path(file: &FileChange, policy: &Policy, rules: &Rules) -> Option<String> {
    [&file.old, &file.new].into_iter().flatten().find_map(|path| refusal(path, policy, rules))
}

fn refusal(path: &str, policy: &Policy, rules: &Rules) -> Option<String> {
    // Whatever a policy allows: by these the change is judged.
    if policy.own_files.iter().any(|own| own == path) {
        return Some(format!("{path} belongs to the task of this run and is protected"));
    }
    if let Some(glob) = policy.write_deny.matching(path) {
        return Some(format!("{path}: the policy denies {glob}"));
    }
    if policy.write_allow.matching(path).is_some() {
        return None;
    }
    if !policy.write_allow.is_empty() {
        return Some(format!("{path}: the policy does not allow it to change"));
    }
    let protected = rules.protected.iter().find(|(_, globs)| globs.matching(path).is_some());
    let by_name = protected.map(|(name, _)| format!("{path} belongs to {name} and is protected"));
    by_name.or_else(|| {
        let case = policy.test_code.files.get(path)?;
        Some(format!("{path} defines the test {case} and is protected; write_allow can name it"))
    })
}

/// Says why a change has a form that is never applied.
fn refused_form(file: &FileChange) -> Option<String> {
    let path = file.path();
    if let Some(special) = file.special {
        let what = match special {
            Special::NotAFile => "is or becomes a symbolic link or a submodule",
            Special::Mode => "gets other permissions",
            Special::Binary => "is not text",
            Special::Renamed => "gets another name",
        };
        return Some(format!("{path} {what}"));
    }
    let anchored = |kind| file.lines().any(|line| line.kind == kind);
    if file.old.is_some() && !anchored(LineKind::Context) && !anchored(LineKind::Removed) {
        return Some(format!("{path}: lines are added without any line that says where"));
    }
    None
}

fn shown(line: &str) -> &str {
    let line = line.trim();
    &line[..line.floor_char_boundary(80)]
}
