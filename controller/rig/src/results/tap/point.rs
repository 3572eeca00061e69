//! Version lines, plans, points and their directives.

use jig_model::result::CaseStatus;

use super::super::scan::{leading_number, number};

pub(super) fn is_result(text: &str) -> bool {
    version(text).is_some()
        || plan(text).is_some()
        || Point::parse(text).is_some()
        || text.starts_with("Bail out!")
}

/// Tells whether a line that is no point looks like one that failed: `not ok`, `not ok: x`,
/// `not ok 2: x`, a number that is too large.
pub(super) fn resembles_failure(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("not ok") else { return false };
    let number = rest.trim_ascii_start().starts_with(|c: char| c.is_ascii_digit());
    number || rest.is_empty() || rest.starts_with([':', '-'])
}

/// Reads a version line; true means KTAP.
pub(super) fn version(text: &str) -> Option<bool> {
    let (ktap, body) = match text.strip_prefix('K') {
        Some(body) => (true, body),
        None => (false, text),
    };
    number(body.strip_prefix("TAP version ")?)?;
    Some(ktap)
}

/// Reads `1..3`, with or without a comment.
pub(super) fn plan(text: &str) -> Option<u64> {
    let (count, rest) = leading_number(text.strip_prefix("1..")?)?;
    (rest.is_empty() || rest.trim_ascii_start().starts_with('#')).then_some(count)
}

/// Reads the reason of a plan that skips all tests: `1..0 # SKIP no sensor`.
pub(super) fn skip_reason(text: &str) -> Option<&str> {
    let (_, Some((Directive::Skip, reason))) = split_directive(text) else { return None };
    (!reason.is_empty()).then_some(reason)
}

/// Tells whether a line is a point that says nothing else.
pub(super) fn is_bare(text: &str) -> bool {
    matches!(text, "ok" | "not ok")
}

#[derive(Clone, Copy)]
pub(super) struct Point<'a> {
    pub(super) status: CaseStatus,
    pub(super) number: Option<u64>,
    pub(super) name: &'a str,
    pub(super) dashed: bool,
    pub(super) message: Option<&'a str>,
    /// It failed, or may fail, as it declares.
    pub(super) expected: bool,
}

impl<'a> Point<'a> {
    /// Reads a point that a number or a dash tells from prose.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (ok, rest) = Self::split(text)?;
        let body = rest.strip_prefix(' ')?;
        let (number, rest) = match leading_number(body) {
            Some((number, rest)) if rest.is_empty() || rest.starts_with(' ') => {
                (Some(number), rest.trim_ascii_start())
            }
            _ if body.starts_with("- ") || body.starts_with("# ") => (None, body),
            _ => return None,
        };
        Some(Self::new(ok, number, rest))
    }

    /// Reads a point without either: `ok`, `not ok the clock runs`.
    pub(super) fn loose(text: &'a str) -> Option<Self> {
        let (ok, rest) = Self::split(text)?;
        (rest.is_empty() || rest.starts_with(' ')).then(|| Self::new(ok, None, rest.trim_ascii()))
    }

    fn split(text: &str) -> Option<(bool, &str)> {
        match text.strip_prefix("not ok") {
            Some(rest) => Some((false, rest)),
            None => Some((true, text.strip_prefix("ok")?)),
        }
    }

    fn new(ok: bool, number: Option<u64>, rest: &'a str) -> Self {
        let dashed = rest.starts_with("- ");
        let (name, directive) = split_directive(rest.strip_prefix("- ").unwrap_or(rest));
        let status = match (ok, directive.map(|(kind, _)| kind)) {
            (_, Some(Directive::Broken)) => CaseStatus::Fail,
            (_, Some(Directive::Skip | Directive::Xfail)) | (false, Some(Directive::Todo)) => {
                CaseStatus::Skip
            }
            (true, None | Some(Directive::Todo)) => CaseStatus::Pass,
            (false, None) => CaseStatus::Fail,
        };
        let expected = matches!(directive, Some((Directive::Todo | Directive::Xfail, _)));
        let message = directive.map(|(_, text)| text);
        Self { status, number, name, dashed, message, expected }
    }
}

#[derive(Clone, Copy)]
enum Directive {
    Skip,
    Todo,
    /// KTAP's: it failed, which is known. kselftest prints `ok` in front of it.
    Xfail,
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
            "TODO" => Directive::Todo,
            "XFAIL" => Directive::Xfail,
            "TIMEOUT" | "ERROR" => Directive::Broken,
            _ => continue,
        };
        let reason = reason.trim_start_matches([' ', ':']);
        return (name.trim_ascii_end(), Some((kind, reason)));
    }
    (text, None)
}
