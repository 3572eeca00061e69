//! The policy file.

use std::fmt;

use jig_model::document::{Findings, Located, document_schema, open};
use jig_model::{Problems, toml_table};
use regex::Regex;

use super::globs::Globs;
use super::rules::{RULES, RuleError};
use crate::run::Run;
use crate::test_code::TestCode;

/// Version of the policy file that is read.
const VERSION: u32 = 1;

toml_table! {
    /// Lines that a patch may not add.
    struct RawForbid {
        /// Regular expression that a line matches, such as `flash_erase\\s*\\(`.
        pattern: String = required,
        /// Lines that it must match, at least one; checked when the policy is read.
        hits: Vec<Located<String>> = required,
        /// Lines that it must not match, at least one.
        misses: Vec<Located<String>> = required,
    }
    /// What the repair loop may change. The file stands outside of the repository.
    struct RawPolicy {
        /// Version of the policy file: 1.
        version: u32 = required,
        /// Paths that may change, such as `src/**`; all but the protected ones if left out. A path
        /// that is named here may change although it is protected.
        write_allow: Vec<Located<String>> = optional,
        /// Paths that never change. Decides before `write_allow`.
        write_deny: Vec<Located<String>> = optional,
        /// Most files of a patch; 5 if left out.
        max_files: u32 = optional,
        /// Most lines that a patch adds and removes; 200 if left out.
        max_lines: u32 = optional,
        /// A patch whose risk, from 0 to 100, is above this waits for an approval; 70 if left out.
        risk_percent: u32 = optional,
        /// Whether patches wait for an approval whatever their risk; false if left out.
        approve_patches: bool = optional,
        /// Whether patches made by templates wait for an approval whatever their risk; true if left
        /// out.
        approve_templates: bool = optional,
        /// Whether flashing a real board waits for an approval; true if left out.
        approve_flash: bool = optional,
        /// Whether builds run in a sandbox: they write below the work tree alone, and use no
        /// network; true if left out.
        sandbox: bool = optional,
        /// Lines that no patch may add, beside those that are refused anyway.
        forbid: Vec<Located<RawForbid>> = optional,
    }
}

/// What the repair loop may change.
#[derive(Debug, Clone)]
pub struct Policy {
    pub(super) write_allow: Globs,
    pub(super) write_deny: Globs,
    /// Most files of a patch.
    pub max_files: usize,
    /// Most lines that a patch adds and removes.
    pub max_lines: usize,
    /// A patch whose risk, from 0 to 1, is above this waits for an approval.
    pub risk_threshold: f64,
    /// Whether patches wait for an approval whatever their risk.
    pub approve_patches: bool,
    /// Whether patches made by templates wait for an approval whatever their risk: they know no more
    /// of a program than its text.
    pub approve_templates: bool,
    /// Whether flashing a real board waits for an approval.
    pub approve_flash: bool,
    /// Whether builds run in a sandbox.
    pub sandbox: bool,
    /// Lines that no patch may add.
    pub(super) forbid: Vec<Regex>,
    /// What a run knows of the tests in its repository; no part of the file.
    pub(super) test_code: TestCode,
    /// Files of the task that lie in the repository; no part of the file.
    pub(super) own_files: Vec<String>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            write_allow: Globs::default(),
            write_deny: Globs::default(),
            max_files: 5,
            max_lines: 200,
            risk_threshold: 0.7,
            approve_patches: false,
            approve_templates: true,
            approve_flash: true,
            sandbox: true,
            forbid: Vec::new(),
            test_code: TestCode::default(),
            own_files: Vec::new(),
        }
    }
}

/// Says what may change, for agents.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "A patch changes at most {} files and {} lines.",
            self.max_files, self.max_lines
        )?;
        if self.write_allow.is_empty() {
            writeln!(f, "Files of these kinds may not change:")?;
            let protected = RULES.as_ref().map(|rules| rules.protected.as_slice());
            for (name, _) in protected.unwrap_or_default() {
                writeln!(f, "- {name}")?;
            }
            self.test_code.files.keys().try_for_each(|file| writeln!(f, "- {file}"))?;
        } else {
            writeln!(f, "These files may change, and no others:")?;
            self.write_allow.texts().try_for_each(|text| writeln!(f, "- {text}"))?;
        }
        if !self.write_deny.is_empty() {
            writeln!(f, "These files may not change:")?;
            self.write_deny.texts().try_for_each(|text| writeln!(f, "- {text}"))?;
        }
        if !self.forbid.is_empty() {
            writeln!(f, "No line may be added that matches one of these regular expressions:")?;
            self.forbid.iter().try_for_each(|pattern| writeln!(f, "- {pattern}"))?;
        }
        writeln!(f, "Tests may not be removed, skipped or weakened, and no result may be forged.")
    }
}

impl Policy {
    /// Returns the text of the policy file's JSON Schema.
    pub fn json_schema() -> String {
        document_schema::<RawPolicy>("Jig repair policy")
    }

    /// Checks the rules that hold where a policy says nothing. Where one is wrong, each patch is refused.
    ///
    /// # Errors
    /// Names the rule.
    pub fn check_rules() -> Result<(), RuleError> {
        RULES.as_ref().map(drop).map_err(Clone::clone)
    }

    /// Adds what a run has found out about its repository.
    #[must_use]
    pub fn for_run(&self, run: &Run) -> Self {
        let own_files = run.contract.own_files.clone();
        Self { test_code: run.test_code.clone(), own_files, ..self.clone() }
    }

    /// Reads a policy. `origin` says where it came from, for messages.
    ///
    /// # Errors
    /// All problems of the document, in its order.
    pub fn parse(origin: &str, text: &str) -> Result<Self, Problems> {
        let findings = Findings::new();
        let policy = open::<RawPolicy>("repair policy", VERSION, text, &findings)
            .map(|raw| lower(raw.value, &findings));
        findings.finish("repair policy", origin, text, policy)
    }
}

fn lower(raw: RawPolicy, findings: &Findings) -> Policy {
    let usual = Policy::default();
    let count = |given: Option<Located<u32>>, usual: usize| {
        given.map_or(usual, |given| usize::try_from(given.value).unwrap_or(usize::MAX))
    };
    let percent = raw.risk_percent.inspect(|percent| {
        if percent.value > 100 {
            findings.add(
                "policy::risk",
                percent.at(),
                "`risk_percent` is a number from 0 to 100",
                "write 100 to wait for no approval",
            );
        }
    });
    Policy {
        write_allow: globs(raw.write_allow, findings),
        write_deny: globs(raw.write_deny, findings),
        max_files: count(raw.max_files, usual.max_files),
        max_lines: count(raw.max_lines, usual.max_lines),
        risk_threshold: percent.map_or(usual.risk_threshold, |p| f64::from(p.value) / 100.0),
        approve_patches: raw.approve_patches.map_or(usual.approve_patches, |value| value.value),
        approve_templates: raw
            .approve_templates
            .map_or(usual.approve_templates, |value| value.value),
        approve_flash: raw.approve_flash.map_or(usual.approve_flash, |value| value.value),
        sandbox: raw.sandbox.map_or(usual.sandbox, |value| value.value),
        forbid: forbid(raw.forbid, findings),
        test_code: usual.test_code,
        own_files: usual.own_files,
    }
}

/// Reads lines that no patch may add, and checks each rule by its examples: one that does not do what it
/// is meant to do would protect nothing.
fn forbid(list: Option<Located<Vec<Located<RawForbid>>>>, findings: &Findings) -> Vec<Regex> {
    let rules = list.map(|list| list.value).unwrap_or_default();
    rules.into_iter().filter_map(|rule| forbidden(rule, findings)).collect()
}

fn forbidden(rule: Located<RawForbid>, findings: &Findings) -> Option<Regex> {
    let at = rule.at();
    let RawForbid { pattern, hits, misses } = rule.value;
    let (pattern, hits, misses) = (pattern?, hits?.value, misses?.value);
    let regex = match Regex::new(&pattern.value) {
        Ok(regex) => regex,
        Err(error) => {
            let help = "write a regular expression in single quotes, such as 'flash_erase\\s*\\('";
            findings.add("policy::pattern", pattern.at(), error.to_string(), help);
            return None;
        }
    };
    if hits.is_empty() || misses.is_empty() {
        let help = "write a line into `hits` that the pattern matches, and one into `misses`";
        findings.add("policy::examples", at, "this rule lacks examples", help);
    }
    for (lines, matches, what) in [(&hits, true, "does not match"), (&misses, false, "matches")] {
        for line in lines.iter().filter(|line| regex.is_match(&line.value) != matches) {
            let message = format!("the pattern {what} {:?}", line.value);
            findings.add("policy::example", line.at(), message, "correct the pattern or the line");
        }
    }
    Some(regex)
}

/// Reads patterns. One that is wrong is reported, so that a rule is never silently missing.
fn globs(list: Option<Located<Vec<Located<String>>>>, findings: &Findings) -> Globs {
    let Some(list) = list else { return Globs::default() };
    for text in &list.value {
        if let Err(error) = Globs::new(&[&text.value]) {
            let help = "write a path below the repository, such as `src/**/*.c`";
            findings.add("policy::glob", text.at(), error.to_string(), help);
        }
    }
    let texts: Vec<_> = list.value.into_iter().map(|text| text.value).collect();
    Globs::new(&texts).unwrap_or_default()
}
