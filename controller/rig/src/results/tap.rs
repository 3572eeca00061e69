//! TAP 13 and 14 with sub-tests, and the kernel's KTAP: one grammar, told apart by the head.
//!
//! Cases are the leaves. A sub-test's own point is a case only where it fails although
//! nothing in it did. `not ok` with SKIP stays a failure: TAP gives it no meaning.

use jig_model::result::{CaseStatus, ResultFormat};

use super::grammar::{FormatSpec, Grammar, starts};
use super::record::{CaseOutcome, ReportBuilder};
use super::scan::{leading_number, number};
use crate::console::lines::ReportLine;

/// Deepest nesting read; KTAP has three levels in practice.
const MAX_DEPTH: usize = 8;

/// One level of points: the report itself or a sub-test.
#[derive(Debug)]
struct TapLevel {
    indent: usize,
    name: Option<String>,
    plan: Option<u64>,
    points: u64,
    last: u64,
    /// Numbers of the parents, as a prefix of keys.
    path: String,
    /// Index of the first case that belongs to it.
    first: usize,
}

/// Reads TAP and KTAP lines.
#[derive(Debug)]
struct Tap {
    ktap: bool,
    /// A KTAP head may still turn TAP into KTAP.
    may_switch: bool,
    levels: Vec<TapLevel>,
    /// A sub-test that is over and whose own point must come next.
    over: Option<TapLevel>,
    /// Name that a comment gave to the sub-test to come.
    announced: Option<String>,
    /// Indent of the YAML block that is open.
    yaml: Option<usize>,
    last_key: Option<String>,
    /// Indent of the last point: its YAML block is indented deeper.
    last_indent: usize,
    /// There was a sub-test.
    nested: bool,
    /// Leaves that the plans seen so far promise.
    planned: i64,
    claimed: u64,
}

pub(super) const TAP: FormatSpec = FormatSpec {
    format: ResultFormat::Tap,
    family: ResultFormat::Tap,
    begins: b"T1on",
    holds: None,
    opens,
    tells_size,
    grammar: |alone| Box::new(Tap::new(false, !alone)),
};

/// One grammar reads TAP and KTAP.
pub(super) const KTAP: FormatSpec = FormatSpec {
    format: ResultFormat::Ktap,
    family: ResultFormat::Tap,
    begins: b"K",
    holds: None,
    opens: opens_ktap,
    tells_size,
    grammar: |_| Box::new(Tap::new(true, false)),
};

fn opens(line: &ReportLine<'_>) -> bool {
    version(line.text) == Some(false)
        || plan(line.text).is_some()
        || line.text.strip_prefix("not ").unwrap_or(line.text).starts_with("ok 1 - ")
}

fn opens_ktap(line: &ReportLine<'_>) -> bool {
    version(line.text) == Some(true)
}

fn tells_size(first: &ReportLine<'_>) -> bool {
    first.indent == 0 && first.text.contains("TAP version ")
}

impl Grammar for Tap {
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        let text = line.text;
        if let Some(indent) = self.yaml {
            if line.indent >= indent {
                self.yaml_line(text, record);
                return true;
            }
            // Log lines may come in between; a result of an outer level ends the block.
            if !is_result(text) {
                return false;
            }
            self.yaml = None;
        }
        if text.starts_with('#') {
            self.comment(line, record);
        } else if let Some(ktap) = version(text) {
            self.version(ktap, line, record);
        } else if let Some(count) = plan(text) {
            self.plan(count, line, record);
        } else if let Some(point) = Point::parse(text) {
            self.point(&point, line, record);
        } else if let Some(reason) = text.strip_prefix("Bail out!") {
            record.remark(format!("the target bailed out: {}", reason.trim()));
            record.claim_any();
            record.end();
        } else if text == "---" && self.last_key.is_some() && line.indent > self.last_indent {
            self.yaml = Some(line.indent);
        } else if resembles_failure(text) {
            let at = line.span.start;
            record.remark(format!("the line at {at} resembles a failure that cannot be read"));
        } else {
            return false;
        }
        true
    }

    fn finish(&mut self, record: &mut ReportBuilder) {
        while self.levels.len() > 1 {
            self.drop_over(record);
            self.over = self.levels.pop();
        }
        self.drop_over(record);
        self.update_plan(record);
    }

    fn resembles(&self, line: &ReportLine<'_>) -> bool {
        starts(line, &["ok ", "not ok ", "Bail out!"])
    }
}

impl Tap {
    fn new(ktap: bool, may_switch: bool) -> Self {
        Self {
            ktap,
            may_switch,
            levels: Vec::new(),
            over: None,
            announced: None,
            yaml: None,
            last_key: None,
            last_indent: 0,
            nested: false,
            planned: 0,
            claimed: 0,
        }
    }

    fn yaml_line(&mut self, text: &str, record: &mut ReportBuilder) {
        if text == "..." {
            self.yaml = None;
        } else if let Some(key) = &self.last_key
            && let Some(message) = text.strip_prefix("message:")
        {
            record.explain(key, message.trim().trim_matches(['"', '\'']));
        }
    }

    fn comment(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) {
        let body = line.text.trim_start_matches('#').trim_ascii_start();
        if let Some(name) = body.strip_prefix("Subtest: ") {
            if self.levels.last().is_some_and(|top| line.indent > top.indent) {
                // The first line of a deeper level; what was announced names that level.
                let known = self.announced.is_some();
                if let Some(level) = self.enter(line, record) {
                    if known {
                        self.announced = Some(name.to_owned());
                    } else {
                        level.name = Some(name.to_owned());
                    }
                }
                return;
            }
            // On the level it stands on it names either that level, if that is a sub-test
            // of which nothing else is known, or the sub-test to come.
            let deep = self.levels.len() > 1;
            match self.levels.last_mut() {
                Some(top)
                    if deep
                        && line.indent == top.indent
                        && top.name.is_none()
                        && top.points == 0
                        && top.plan.is_none() =>
                {
                    top.name = Some(name.to_owned());
                }
                _ => self.announced = Some(name.to_owned()),
            }
        } else if let Some(totals) = Totals::parse(body) {
            self.totals(&totals, line, record);
        }
    }

    /// Holds totals against the cases. Those of inner levels are part of the outermost ones.
    fn totals(&mut self, totals: &Totals, line: &ReportLine<'_>, record: &mut ReportBuilder) {
        let outermost = self.levels.first().is_none_or(|base| line.indent <= base.indent);
        if outermost && totals.of_all {
            self.claimed += totals.failed;
            record.claim(self.claimed);
            // With sub-tests some producers count cases and others the outermost points.
            let seen = record.count(CaseStatus::Pass);
            if !self.nested && totals.passed != seen {
                let claimed = totals.passed;
                record.remark(format!("the totals claim {claimed} passes, {seen} were seen"));
            }
        } else if totals.failed > 0 {
            let first = self.levels.last().map_or(0, |level| level.first);
            if !record.failing_from(first) {
                let failed = totals.failed;
                record.remark(format!("totals claim {failed} failures that no line shows"));
            }
        }
    }

    fn version(&mut self, ktap: bool, line: &ReportLine<'_>, record: &mut ReportBuilder) {
        let switch = ktap && !self.ktap && self.may_switch;
        let Some(level) = self.enter(line, record) else { return };
        if level.points > 0 || level.plan.is_some() {
            level.points = 0;
            level.last = 0;
            record.begins_again();
        } else if switch && level.path.is_empty() {
            self.ktap = true;
            record.set_format(ResultFormat::Ktap);
        }
        self.drop_over(record);
    }

    fn plan(&mut self, count: u64, line: &ReportLine<'_>, record: &mut ReportBuilder) {
        let Some(level) = self.enter(line, record) else { return };
        match level.plan {
            None => {
                level.plan = Some(count);
                self.planned += i64::try_from(count).unwrap_or(0);
            }
            Some(_) => record.begins_again(),
        }
        self.drop_over(record);
        self.update(record);
    }

    fn point(&mut self, point: &Point<'_>, line: &ReportLine<'_>, record: &mut ReportBuilder) {
        let Some(level) = self.enter(line, record) else { return };
        let number = point.number.unwrap_or(level.last + 1);
        level.points += 1;
        level.last = number;
        if level.plan.is_some_and(|plan| number > plan) {
            record.remark(format!("point {number} is beyond its plan"));
        }
        let key = format!("{}{number}", level.path);
        let fallback = format!("{number}");
        let name = if point.name.is_empty() { fallback.as_str() } else { point.name };
        let outcome = CaseOutcome { message: point.message, ..CaseOutcome::of(point.status) };
        // A sub-test that was skipped as a whole holds no point and is a case itself.
        let parent_of = self.over.take().filter(|c| c.points > 0 || c.plan.is_some_and(|n| n > 0));
        let prefix: Vec<&str> =
            self.levels.iter().filter_map(|level| level.name.as_deref()).collect();
        let shown = if prefix.is_empty() {
            name.to_owned()
        } else {
            format!("{}::{name}", prefix.join("::"))
        };
        match parent_of {
            None => record.decide(&key, name, outcome, line.span),
            Some(child) => {
                let failing = record.failing_from(child.first);
                self.close(&child, Some(name), record);
                if point.status == CaseStatus::Fail && !failing {
                    record.decide(&key, name, outcome, line.span);
                } else {
                    self.planned -= 1;
                    if point.status == CaseStatus::Pass && failing {
                        record.remark(format!("sub-test {shown} is ok, but a case in it failed"));
                    }
                }
            }
        }
        // Some producers announce every test as a sub-test, also those that hold none.
        self.announced = None;
        self.last_key = Some(key);
        self.last_indent = line.indent;
        self.update(record);
    }

    /// Finds or opens the level that an indent stands for; leaves the deeper ones.
    fn enter(
        &mut self,
        line: &ReportLine<'_>,
        record: &mut ReportBuilder,
    ) -> Option<&mut TapLevel> {
        while self.levels.len() > 1
            && self.levels.last().is_some_and(|top| line.indent < top.indent)
        {
            let level = self.levels.pop();
            self.drop_over(record);
            self.over = level;
        }
        let (deeper, path) = match self.levels.last() {
            None => (true, String::new()),
            Some(top) => (line.indent > top.indent, format!("{}{}.", top.path, top.last + 1)),
        };
        if deeper {
            self.drop_over(record);
            if self.levels.len() >= MAX_DEPTH {
                record.remark(format!("sub-tests nested deeper than {MAX_DEPTH} are not read"));
                return None;
            }
            self.nested |= !self.levels.is_empty();
            self.levels.push(TapLevel {
                indent: line.indent,
                name: self.announced.take(),
                plan: None,
                points: 0,
                last: 0,
                path,
                first: record.len(),
            });
        }
        self.levels.last_mut()
    }

    /// Gives up on the own point of a sub-test that is over.
    fn drop_over(&mut self, record: &mut ReportBuilder) {
        if let Some(level) = self.over.take() {
            let name = level.name.clone().unwrap_or_else(|| level.path.clone());
            record.remark(format!("sub-test {name} has no result of its own"));
            self.close(&level, None, record);
        }
    }

    fn close(&mut self, level: &TapLevel, parent: Option<&str>, record: &mut ReportBuilder) {
        let name = level.name.as_deref().or(parent);
        let shown = name.unwrap_or(&level.path);
        match level.plan {
            Some(plan) if plan == level.points => {}
            Some(plan) => record
                .remark(format!("sub-test {shown} plans {plan} points, {} seen", level.points)),
            None => {
                // The kernel prints none for the parameters of a test.
                if !self.ktap || level.last != level.points {
                    record.remark(format!("sub-test {shown} has no plan"));
                }
                self.planned += i64::try_from(level.points).unwrap_or(0);
            }
        }
        if let Some(name) = name {
            record.prefix_from(level.first, name);
        }
    }

    /// Passes on what the plans promise, and ends the report when they are fulfilled.
    fn update(&mut self, record: &mut ReportBuilder) {
        let alone = self.levels.len() == 1;
        let Some(base) = self.levels.first() else { return };
        if let Some(plan) = base.plan {
            record.replan(u64::try_from(self.planned).unwrap_or(0));
            if alone && base.points >= plan {
                record.end();
            }
        }
    }

    fn update_plan(&self, record: &mut ReportBuilder) {
        if self.levels.first().is_some_and(|base| base.plan.is_some()) {
            record.replan(u64::try_from(self.planned).unwrap_or(0));
        }
    }
}

fn is_result(text: &str) -> bool {
    version(text).is_some()
        || plan(text).is_some()
        || Point::parse(text).is_some()
        || text.starts_with("Bail out!")
}

/// Tells whether a line that is no point looks like one that failed: `not ok: x`, `not ok 2: x`, a
/// number that is too large.
fn resembles_failure(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("not ok") else { return false };
    let number = rest.trim_ascii_start().starts_with(|c: char| c.is_ascii_digit());
    number || rest.starts_with([':', '-'])
}

/// Counts that a comment claims: `Totals: pass:1 fail:0 ...`, or of one suite `list: pass:1 ...`.
struct Totals {
    of_all: bool,
    passed: u64,
    failed: u64,
}

impl Totals {
    fn parse(body: &str) -> Option<Self> {
        let (name, counts) = body.split_once(": ")?;
        let (mut passed, mut failed) = (None, 0);
        for (label, count) in counts.split(' ').filter_map(|word| word.split_once(':')) {
            match label {
                "pass" => passed = number(count),
                "xpass" => passed = Some(passed? + number(count)?),
                "fail" | "error" => failed += number(count)?,
                _ => {}
            }
        }
        Some(Self { of_all: name == "Totals", passed: passed?, failed })
    }
}

/// Reads a version line; true means KTAP.
fn version(text: &str) -> Option<bool> {
    let (ktap, body) = match text.strip_prefix('K') {
        Some(body) => (true, body),
        None => (false, text),
    };
    number(body.strip_prefix("TAP version ")?)?;
    Some(ktap)
}

/// Reads `1..3`, with or without a comment.
fn plan(text: &str) -> Option<u64> {
    let (count, rest) = leading_number(text.strip_prefix("1..")?)?;
    (rest.is_empty() || rest.trim_ascii_start().starts_with('#')).then_some(count)
}

struct Point<'a> {
    status: CaseStatus,
    number: Option<u64>,
    name: &'a str,
    message: Option<&'a str>,
}

impl<'a> Point<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (ok, rest) = match text.strip_prefix("not ok") {
            Some(rest) => (false, rest),
            None => (true, text.strip_prefix("ok")?),
        };
        let (count, rest) = match rest.strip_prefix(' ') {
            None if rest.is_empty() => (None, ""),
            None => return None,
            Some(body) => match leading_number(body) {
                Some((count, rest)) if rest.is_empty() || rest.starts_with(' ') => {
                    (Some(count), rest.trim_ascii_start())
                }
                // Without a number only the dash or a directive tells a point from prose.
                _ if body.starts_with("- ") || body.starts_with("# ") => (None, body),
                _ => return None,
            },
        };
        let rest = rest.strip_prefix("- ").unwrap_or(rest);
        let (name, directive) = split_directive(rest);
        let status = match (ok, directive.map(|(kind, _)| kind)) {
            (_, Some(Directive::Broken)) => CaseStatus::Fail,
            (true, None | Some(Directive::Todo)) => CaseStatus::Pass,
            (true, Some(Directive::Skip)) | (false, Some(Directive::Todo)) => CaseStatus::Skip,
            (false, None | Some(Directive::Skip)) => CaseStatus::Fail,
        };
        Some(Self { status, number: count, name, message: directive.map(|(_, text)| text) })
    }
}

#[derive(Clone, Copy)]
enum Directive {
    Skip,
    /// Also KTAP's XFAIL: known to fail.
    Todo,
    /// KTAP's TIMEOUT and ERROR.
    Broken,
}

/// Splits `# SKIP reason` off a description; an escaped `#` belongs to the description.
fn split_directive(text: &str) -> (&str, Option<(Directive, &str)>) {
    for (at, _) in text.match_indices('#') {
        let (name, tail) = text.split_at(at);
        if !(name.is_empty() || name.ends_with(' ')) {
            continue;
        }
        let body = tail.trim_start_matches('#').trim_ascii_start();
        let end = body.find([' ', ':']).unwrap_or(body.len());
        let (word, reason) = body.split_at(end);
        let kind = match word.to_ascii_uppercase().as_str() {
            "SKIP" | "SKIPPED" => Directive::Skip,
            "TODO" | "XFAIL" => Directive::Todo,
            "TIMEOUT" | "ERROR" => Directive::Broken,
            _ => continue,
        };
        let reason = reason.trim_start_matches([' ', ':']);
        return (name.trim_ascii_end(), Some((kind, reason)));
    }
    (text, None)
}
