//! TAP 13 and 14 with sub-tests, and the kernel's KTAP: one grammar, told apart by the head.
//!
//! Cases are the leaves. A sub-test's own point is a case only where it fails although
//! nothing in it did. `not ok` with SKIP is a skip, as TAP 13 has it and cmocka prints it.
//!
//! Points without a number and a dash are read where the report has a head and numbers none of its
//! points. Lines with nothing but `ok` or `not ok` are points, too, if a plan behind them counts as many;
//! anywhere else such a line is prose, as the `ok` of a modem is.
//!
//! Counts that comments give are compared with the points. Where there are sub-tests, producers
//! count cases, points of the outermost level, or both: a count that is none of them is a remark.

use jig_model::result::{CaseStatus, ResultFormat};

use self::point::{Point, is_bare, is_result, plan, resembles_failure, skip_reason, version};
pub(super) use self::torn::is_torn;
use self::totals::{Counts, Totals, Trailers};
use super::choice::Credibility;
use super::grammar::{AssertionSigns, FormatSpec, Grammar, starts};
use super::record::{CaseOutcome, ReportBuilder};
use crate::console::lines::{ReportLine, Span};
use crate::console::{tells_alarm, tells_failure};

mod point;
mod torn;
mod totals;

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
    /// A point had a number.
    numbered: bool,
    /// The first point had a number beyond the plan and no name: the numbers are names.
    digit_names: bool,
    /// Numbers of the parents, as a prefix of keys.
    path: String,
    /// Index of the first case that belongs to it.
    first: usize,
    /// Results of its own points.
    counts: Counts,
}

impl TapLevel {
    /// Another report begins on this level: its points are other cases, whatever their numbers.
    fn begin_anew(&mut self, record: &ReportBuilder) {
        self.first = record.len();
        self.path = format!("{}+", self.first);
    }
}

/// A point that stands in front of its sub-test, as node-tap prints it: `ok 1 - x {`, the sub-test
/// and `}`. It is read behind the sub-test, as those of TAP 14 are.
#[derive(Debug)]
struct BracedPoint {
    indent: usize,
    text: String,
    span: Span,
}

/// An open YAML block.
#[derive(Debug)]
struct YamlBlock {
    indent: usize,
    at: u64,
    /// A line of it would be a failure outside of it.
    hides_failure: bool,
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
    /// Points whose sub-tests are not closed.
    braced: Vec<BracedPoint>,
    /// The YAML block that is open.
    yaml: Option<YamlBlock>,
    last_key: Option<String>,
    /// Indent of the last point: its YAML block is indented deeper.
    last_indent: usize,
    /// Lines that hardly stand in a log: version lines, plans, points with a number or a dash.
    signs: u64,
    versioned: bool,
    /// All that was read are bare points, which only a plan behind them makes a report.
    bare: bool,
    /// A point had a number and a dash, or a dash and failed: hardly any prose does.
    dashed: bool,
    /// Where a comment said that something failed.
    denied_at: Option<u64>,
    /// Where a comment quoted a failed result since the last point.
    quoted_at: Option<u64>,
    /// Leaves that the plans seen so far promise.
    planned: i64,
    claimed: u64,
    /// Results of all points, those of sub-tests included.
    points: Counts,
    trailers: Trailers,
    /// The last point failed, or may fail: what its diagnostics say is known.
    explained: bool,
    /// A `not` without its `ok` stood in front of the next point.
    torn: bool,
}

/// KUnit prints them in front of the point. The diagnostics of TAP follow it.
static FAILING: AssertionSigns = AssertionSigns::new(r"^#.*(?:EXPECTATION|ASSERTION) FAILED at ");

pub(super) const TAP: FormatSpec = FormatSpec {
    format: ResultFormat::Tap,
    family: ResultFormat::Tap,
    begins: b"T1on",
    holds: &[],
    opens,
    tells_size,
    grammar: |alone| Box::new(Tap::new(false, !alone)),
    failing: &FAILING,
};

/// One grammar reads TAP and KTAP.
pub(super) const KTAP: FormatSpec = FormatSpec {
    format: ResultFormat::Ktap,
    family: ResultFormat::Tap,
    begins: b"K",
    holds: &[],
    opens: opens_ktap,
    tells_size,
    grammar: |_| Box::new(Tap::new(true, false)),
    failing: &FAILING,
};

fn opens(line: &ReportLine<'_>) -> bool {
    version(line.text) == Some(false)
        || plan(line.text).is_some()
        || is_bare(line.text)
        || Point::parse(line.text).is_some_and(|point| match point.number {
            Some(number) => number == 1,
            None => point.dashed,
        })
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
        if let Some(block) = &self.yaml {
            if line.indent >= block.indent {
                self.yaml_line(text, record);
                return true;
            }
            // Log lines may come in between; a result of an outer level ends the block.
            if !is_result(text) {
                return false;
            }
            if let Some(block) = self.yaml.take().filter(|block| block.hides_failure) {
                block.remark_on_end(record);
            }
        }
        if self.braces(line, record) {
            return true;
        }
        if text.starts_with('#') {
            self.comment(line, record);
        } else if let Some(ktap) = version(text) {
            self.version(ktap, line, record);
        } else if let Some(count) = plan(text) {
            self.plan(count, line, record);
        } else if let Some(point) = self.point_in(line) {
            self.point(&point, line, record);
        } else if let Some(reason) = text.strip_prefix("Bail out!") {
            record.remark(format!("the target bailed out: {}", reason.trim()));
            record.claim_any();
            record.end();
        } else if text == "---" && self.last_key.is_some() && line.indent > self.last_indent {
            let (indent, at) = (line.indent, line.span.start);
            self.yaml = Some(YamlBlock { indent, at, hides_failure: false });
        } else if resembles_failure(text) {
            let at = line.span.start;
            record.remark(format!("the line at {at} resembles a failure that cannot be read"));
        } else {
            return false;
        }
        true
    }

    fn finish(&mut self, record: &mut ReportBuilder) {
        self.end_braces(0, record);
        if let Some(block) = self.yaml.take() {
            block.remark_on_end(record);
        }
        while self.levels.len() > 1 {
            self.drop_over(record);
            self.over = self.levels.pop();
        }
        self.drop_over(record);
        self.update_plan(record);
        let base = self.levels.first().map_or(self.points, |base| base.counts);
        self.trailers.check(&[Counts::of_cases(0, record), base, self.points], record);
        let denied_at = self.denied_at.or(self.quoted_at);
        if let Some(at) = denied_at.filter(|_| !record.failed()) {
            record.remark(format!("the comment at {at} claims a failure that no line shows"));
        }
    }

    /// An `ok` that fulfils the plan cannot become a failure, and a count that equals the points
    /// seen is hardly the beginning of a larger one.
    fn closed(&self, line: &ReportLine<'_>) -> bool {
        let Some(base) = self.levels.first() else { return false };
        let open = self.yaml.is_some() || !self.braced.is_empty() || line.text.ends_with('{');
        if line.indent != base.indent || open {
            return false;
        }
        if let Some(count) = plan(line.text) {
            return base.plan.is_none() && count > 0 && base.points == count;
        }
        // A directive that is only begun may turn out to be any, and so may a word.
        let whole = |point: &Point<'_>| {
            let named = point.number.is_some() || !point.name.is_empty();
            named && (point.message.is_some() || !point.name.contains('#'))
        };
        let next = base.points + 1;
        base.plan == Some(next)
            && self.point_in(line).is_some_and(|point| {
                point.number.is_none_or(|number| number == next) && whole(&point)
            })
    }

    /// One sign, and bare `ok`s, may be log lines.
    fn credibility(&self) -> Credibility {
        let planned = self.levels.iter().any(|level| level.plan.is_some());
        match self.signs {
            2.. => Credibility::Report,
            _ if planned || self.dashed => Credibility::Weak,
            _ => Credibility::Guess,
        }
    }

    fn holds_failure(&self, text: &str) -> bool {
        let text = text.trim_ascii_start().to_ascii_lowercase();
        let numbered = |rest: &str| {
            let rest = rest.trim_ascii_start().strip_prefix("ok").map(str::trim_ascii_start);
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let fails = || text.split("not").skip(1).any(numbered);
        // Comments quote the output of nested tests.
        !text.starts_with('#') && (text.starts_with("bail out!") || fails())
    }

    fn fragment(&mut self, line: &str) {
        self.torn |= is_torn(line);
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
            signs: 0,
            versioned: false,
            bare: true,
            dashed: false,
            denied_at: None,
            quoted_at: None,
            planned: 0,
            claimed: 0,
            braced: Vec::new(),
            points: Counts::default(),
            trailers: Trailers::default(),
            explained: false,
            torn: false,
        }
    }

    fn yaml_line(&mut self, text: &str, record: &mut ReportBuilder) {
        if let Some(block) = &mut self.yaml {
            block.hides_failure |= text.starts_with("Bail out!") || text.starts_with("not ok");
        }
        if text == "..." {
            self.yaml = None;
        } else if let Some(key) = &self.last_key
            && let Some(message) = text.strip_prefix("message:")
        {
            record.explain(key, message.trim().trim_matches(['"', '\'']));
        }
    }

    /// Reads a point in front of its sub-test, and the brace behind the sub-test.
    fn braces(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool {
        if line.text == "}" && self.braced.last().is_some_and(|b| b.indent == line.indent) {
            self.end_braces(line.indent, record);
            return true;
        }
        if Point::parse(line.text).is_none() {
            return false;
        }
        self.end_braces(line.indent, record);
        let Some(text) = line.text.strip_suffix(" {").filter(|_| self.braced.len() < MAX_DEPTH)
        else {
            return false;
        };
        if self.enter(line, record).is_none() {
            return true;
        }
        self.braced.push(BracedPoint {
            indent: line.indent,
            text: text.trim_ascii_end().to_owned(),
            span: line.span,
        });
        true
    }

    /// Reads the points, on one level or deeper, whose sub-tests are over.
    fn end_braces(&mut self, indent: usize, record: &mut ReportBuilder) {
        while let Some(braced) = self.braced.pop_if(|braced| braced.indent >= indent) {
            let BracedPoint { indent, text, span } = braced;
            let line = ReportLine { indent, text: &text, span };
            if let Some(point) = Point::parse(&text) {
                self.point(&point, &line, record);
            }
        }
    }

    /// Reads the point that a line holds, as this report writes them.
    fn point_in<'a>(&self, line: &ReportLine<'a>) -> Option<Point<'a>> {
        let bare = || {
            let known = self.levels.last();
            let alone = known.is_none_or(|level| level.indent == line.indent);
            let point = Point::loose(line.text).filter(|_| self.bare && alone)?;
            is_bare(line.text).then_some(point)
        };
        Point::parse(line.text).or_else(bare).or_else(|| {
            let level = self.levels.last().filter(|level| level.indent == line.indent)?;
            let headed = self.versioned || level.plan.is_some();
            let point = Point::loose(line.text).filter(|_| headed && !level.numbered)?;
            let wanted = level.plan.is_none_or(|plan| level.points < plan);
            (wanted || point.status == CaseStatus::Fail).then_some(point)
        })
    }

    /// Tells whether all that was read is one line that may stand in a log.
    fn is_stray(&self, record: &ReportBuilder) -> bool {
        self.signs <= 1 && !record.failed() && self.levels.len() == 1
    }

    /// Forgets the line that was taken for a report; the real one begins here.
    fn start_over(&mut self, record: &mut ReportBuilder) {
        if let Some(base) = self.levels.first_mut() {
            (base.plan, base.points, base.last, base.numbered) = (None, 0, 0, false);
            base.counts = Counts::default();
        }
        self.points = Counts::default();
        (self.signs, self.planned, self.last_key) = (0, 0, None);
        self.bare = false;
        record.forget();
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
        } else if self.trailers.line(body) {
        } else if body.starts_with("not ok ")
            && Point::parse(body).is_some_and(|point| point.status == CaseStatus::Fail)
        {
            // cmocka says so of a group whose set-up or tear-down failed.
            self.denied_at = Some(line.span.start);
        } else if denies(body) && !self.explained {
            self.denied_at = Some(line.span.start);
        } else if quotes_failure(body)
            || !self.explained && (tells_failure(body) || tells_alarm(body))
        {
            self.quoted_at = Some(line.span.start);
        }
    }

    /// Holds totals against the points of the level that they belong to: that of the sub-test that
    /// stands deeper than they, or the outermost.
    fn totals(&mut self, totals: &Totals, line: &ReportLine<'_>, record: &mut ReportBuilder) {
        let Some(base) = self.levels.first() else { return };
        let deeper = self.levels.iter().find(|level| level.indent > line.indent);
        let level = deeper.or(self.levels.last()).unwrap_or(base);
        if totals.of_all && line.indent <= base.indent {
            self.claimed += totals.failed;
            record.claim(self.claimed);
        } else if totals.failed > 0 && !record.failing_from(level.first) {
            let failed = totals.failed;
            record.remark(format!("totals claim {failed} failures that no line shows"));
        }
        // Comments quote the output of a nested test, whose points are not read.
        if totals.quoted {
            return;
        }
        // Parameters of a test are cases, and its suite counts the test.
        let seen = [Counts::of_cases(level.first, record), level.counts];
        totals.check(&seen, record);
    }

    fn version(&mut self, ktap: bool, line: &ReportLine<'_>, record: &mut ReportBuilder) {
        if !self.versioned && self.is_stray(record) {
            self.start_over(record);
        }
        self.signs += 2;
        (self.versioned, self.bare) = (true, false);
        let switch = ktap && !self.ktap && self.may_switch;
        let Some(level) = self.enter(line, record) else { return };
        if level.points > 0 || level.plan.is_some() {
            (level.plan, level.points, level.last) = (None, 0, 0);
            level.counts = Counts::default();
            level.begin_anew(record);
            record.begins_again();
        } else if switch && level.path.is_empty() {
            self.ktap = true;
            record.set_format(ResultFormat::Ktap);
        }
        self.drop_over(record);
    }

    fn plan(&mut self, count: u64, line: &ReportLine<'_>, record: &mut ReportBuilder) {
        // A plan stands in front of all points or behind them, and there is one.
        let contradicts = |level: &TapLevel| match level.plan {
            Some(plan) => level.points == 0 && plan != count,
            None => level.points > 0 && level.points != count,
        };
        let base = self.levels.first().filter(|level| level.indent == line.indent);
        let contradicted = base.is_some_and(contradicts);
        if contradicted && self.is_stray(record) {
            self.start_over(record);
        }
        self.signs += 1;
        self.bare = false;
        let outermost = self.levels.len() <= 1 && self.over.is_none();
        if count == 0
            && outermost
            && let Some(reason) = skip_reason(line.text)
        {
            record.remark(format!("all tests are skipped: {reason}"));
        }
        let Some(level) = self.enter(line, record) else { return };
        match level.plan {
            None => {
                level.plan = Some(count);
                self.planned += i64::try_from(count).unwrap_or(0);
            }
            Some(_) => {
                level.begin_anew(record);
                record.begins_again();
            }
        }
        self.drop_over(record);
        self.update(record);
    }

    /// Returns the number of a point as its name, where the points of its level have names of digits
    /// and no numbers: `1..2`, `ok 404`, `ok 500`.
    fn digits_as_name(&mut self, point: &Point<'_>, line: &ReportLine<'_>) -> Option<String> {
        let number = point.number.filter(|_| point.name.is_empty())?;
        let level = self.levels.last_mut().filter(|level| level.indent == line.indent)?;
        let beyond = level.plan.is_some_and(|plan| number > plan);
        level.digit_names |= level.points == 0 && beyond;
        level.digit_names.then(|| number.to_string())
    }

    fn point(&mut self, point: &Point<'_>, line: &ReportLine<'_>, record: &mut ReportBuilder) {
        // Prose in front of numbered points was read as points without a number.
        let loose = self.levels.first().is_some_and(|base| base.points > 0 && !base.numbered);
        if point.number == Some(1) && loose && self.levels.len() == 1 && !record.failed() {
            let (signs, plan) = (self.signs, self.levels.first().and_then(|base| base.plan));
            self.start_over(record);
            self.signs = signs;
            self.restore_plan(plan);
        }
        let digits = self.digits_as_name(point, line);
        let named = digits.as_deref().map(|name| Point { number: None, name, ..*point });
        let point = named.as_ref().unwrap_or(point);
        let numbered = point.number.is_some();
        self.bare &= !numbered && point.name.is_empty();
        self.signs += u64::from(numbered || (point.dashed && self.signs > 0));
        self.dashed |= point.dashed && (numbered || point.status == CaseStatus::Fail);
        let Some(level) = self.enter(line, record) else { return };
        level.numbered |= point.number.is_some();
        level.counts.add(point.status);
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
        // What a program printed in front of its point belongs to the point.
        if let Some(quoted) = self.quoted_at.take().filter(|_| point.status == CaseStatus::Pass) {
            self.denied_at = Some(quoted);
        }
        if point.expected {
            record.excuse_assertion();
        }
        if std::mem::take(&mut self.torn) && point.status == CaseStatus::Pass {
            let at = line.span.start;
            record.remark(format!("`ok` at {at} may belong to the `not` in front of it"));
        }
        // A sub-test that was skipped as a whole holds no point and is a case itself.
        let over = self.over.take();
        let empty = over.as_ref().is_some_and(|c| c.points == 0 && c.plan == Some(0));
        if empty && point.status == CaseStatus::Pass {
            record.remark(format!("sub-test {name} is ok, but no test in it was run"));
        }
        let parent_of = over.filter(|c| c.points > 0 || c.plan.is_some_and(|n| n > 0));
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
        self.points.add(point.status);
        self.explained = point.expected || point.status == CaseStatus::Fail;
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
            self.levels.push(TapLevel {
                indent: line.indent,
                name: self.announced.take(),
                plan: None,
                points: 0,
                last: 0,
                numbered: false,
                digit_names: false,
                path,
                first: record.len(),
                counts: Counts::default(),
            });
        }
        self.levels.last_mut()
    }

    fn restore_plan(&mut self, plan: Option<u64>) {
        if let Some(base) = self.levels.first_mut() {
            base.plan = plan;
            self.planned = plan.and_then(|plan| i64::try_from(plan).ok()).unwrap_or(0);
        }
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

impl YamlBlock {
    /// What stands in a block without an end may be none of it.
    fn remark_on_end(&self, record: &mut ReportBuilder) {
        record.remark(format!("the block at {} has no end: what it holds is not read", self.at));
    }
}

/// Tells whether a comment is a failed result of a program whose output is quoted, as the runner of
/// the kernel's self-tests does, or of KUnit itself: `[FAIL] x`, `TEST: x  [FAIL]`, `Tests failed:  1`,
/// `RESULT: x FAILED`.
fn quotes_failure(body: &str) -> bool {
    let body = body.trim_ascii_end();
    let marks = ["[FAIL]", "[FAILED]"];
    let counted = body.strip_prefix("Tests failed:").map(str::trim_ascii);
    let count = counted.and_then(|count| count.parse::<u64>().ok());
    let result = body.strip_prefix("RESULT:").map(str::trim_ascii_start);
    // KUnit's own words for a case that did not run to its end.
    let broken_off = body.split_once(": ").is_some_and(|(_, text)| {
        let starts = ["try faulted", "try timed out", "internal error occurred "];
        starts.iter().any(|start| text.starts_with(start))
    });
    marks.iter().any(|mark| body.starts_with(mark) || body.ends_with(&format!(" {mark}")))
        || broken_off
        || count.is_some_and(|count| count > 0)
        || result
            .and_then(|text| text.split(' ').next_back())
            .is_some_and(|word| matches!(word, "FAIL" | "FAILED"))
}

/// Tells whether a diagnostic says that something failed: `Failed test 'x'` of the point above it,
/// `Looks like you failed 1 test of 3.`, and the line of the command that bats ran.
fn denies(body: &str) -> bool {
    let starts = [
        "Failed test ",
        "Looks like you failed ",
        "Looks like you planned ",
        "Looks like your test ",
    ];
    starts.iter().any(|start| body.starts_with(start))
        || body == "Failed test"
        || (body.starts_with('`') && body.ends_with("' failed"))
}
