//! From text to a table of values with places.

use toml::Spanned;
use toml::de::DeTable;

use super::value::FromToml;
use super::{Findings, Located, Node};

/// Largest accepted document in bytes: a hundred times the largest that is shipped.
const MAX_DOCUMENT: usize = 1 << 18;

/// Most syntax errors that are looked at: a hostile text has one per byte.
const MAX_SYNTAX_ERRORS: usize = 100;

/// Parses a document of one version and reads its root table.
///
/// `kind` names it for people, such as `board profile`. Where the text is no TOML, or its
/// `version` is not the one given, that alone is reported: anything else found in such a
/// document would mislead. A root table that could be read is returned even if some of its
/// values were refused, so that the caller can go on looking for problems.
pub fn open<T: FromToml>(
    kind: &'static str,
    version: u32,
    text: &str,
    findings: &Findings,
) -> Option<Located<T>> {
    if text.len() > MAX_DOCUMENT {
        findings.add(
            "document::size",
            None,
            format!("the {kind} has {} bytes, more than {MAX_DOCUMENT}", text.len()),
            "is it the right file?",
        );
        return None;
    }
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut last_line = None;
    for error in errors.iter().take(MAX_SYNTAX_ERRORS) {
        let span = error.span();
        // One slip often makes several errors; the first of a line tells.
        let start = span.as_ref().map_or(0, |s| s.start.min(text.len()));
        let line = text.as_bytes()[..start].iter().rposition(|&b| b == b'\n').map_or(0, |n| n + 1);
        if last_line.replace(line) == Some(line) {
            continue;
        }
        findings.add(
            "document::syntax",
            span,
            format!("not valid TOML: {}", error.message().replace('\n', ", ")),
            "see https://toml.io for the syntax; texts need quotes",
        );
    }
    if !errors.is_empty() || !version_fits(kind, version, text, &root, findings) {
        return None;
    }
    let value = toml::de::DeValue::Table(root.into_inner());
    let node = Node::root(&value, text, findings);
    let value = T::read(&node)?;
    Some(Located { value, span: 0..0 })
}

fn version_fits(
    kind: &'static str,
    version: u32,
    text: &str,
    root: &Spanned<DeTable<'_>>,
    findings: &Findings,
) -> bool {
    const CHECK: &str = "document::version";
    let Some(value) = root.get_ref().get("version") else {
        findings.add(
            CHECK,
            None,
            format!("the {kind} does not say its version"),
            format!("begin it with `version = {version}`"),
        );
        return false;
    };
    let local = Findings::new();
    let found = u64::read(&Node::at(value, "version", text, &local));
    if found == Some(u64::from(version)) {
        return true;
    }
    let help = match found {
        Some(found) if found > u64::from(version) => {
            format!("this jig reads version {version}; a newer jig is needed")
        }
        Some(_) | None => format!("write `version = {version}`"),
    };
    let shown = text.get(value.span()).unwrap_or("?");
    let shown: String = shown.chars().take(20).collect();
    let message = format!("the {kind} has version {shown}, which is not known");
    findings.add(CHECK, Some(value.span()), message, help);
    false
}
