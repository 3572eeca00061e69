//! A value with its place, and what can be read from one.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use super::Findings;

/// A value that was read, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Where, in bytes of the document.
    pub span: Range<usize>,
}

impl<T> Located<T> {
    /// Converts the value into another one at the same place.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Located<U> {
        Located { value: f(self.value), span: self.span }
    }

    /// Returns the place in the form that [`Findings::add`] takes.
    pub fn at(&self) -> Option<Range<usize>> {
        Some(self.span.clone())
    }
}

/// A type that can be read from a TOML value.
pub trait FromToml: Sized {
    /// Returns the JSON Schema of the values that are accepted.
    fn schema() -> serde_json::Value;

    /// Reads the value, or reports why not and returns nothing.
    fn read(node: &Node<'_>) -> Option<Self>;

    /// Whether the value is a table, which people write below a header of its own.
    const IS_TABLE: bool = false;

    /// Says how to add such a value where it is missing.
    fn how_to_add(key: &str) -> String {
        if Self::IS_TABLE { format!("add `[{key}]`") } else { format!("add `{key} = ...`") }
    }
}

/// One value of a document that is about to be read.
#[derive(Debug, Clone)]
pub struct Node<'d> {
    pub(super) value: &'d DeValue<'d>,
    pub(super) span: Range<usize>,
    /// The key that leads to it, for messages.
    pub(super) key: &'d str,
    pub(super) is_root: bool,
    pub(super) text: &'d str,
    pub(super) findings: &'d Findings,
}

impl<'d> Node<'d> {
    /// Takes the root of a document.
    pub(super) fn root(value: &'d DeValue<'d>, text: &'d str, findings: &'d Findings) -> Self {
        Self { value, span: 0..0, key: "document", is_root: true, text, findings }
    }

    /// Takes the value of a key.
    pub(super) fn at(
        value: &'d Spanned<DeValue<'d>>,
        key: &'d str,
        text: &'d str,
        findings: &'d Findings,
    ) -> Self {
        let span = value.span();
        Self { value: value.get_ref(), span, key, is_root: false, text, findings }
    }

    /// Returns the place; `None` for the root, which is the document as a whole.
    pub fn place(&self) -> Option<Range<usize>> {
        (!self.is_root).then(|| self.span.clone())
    }

    /// Returns the key that leads to the value.
    pub fn key(&self) -> &'d str {
        self.key
    }

    /// Returns the value, for a type that is read in a way of its own.
    pub fn value(&self) -> &'d DeValue<'d> {
        self.value
    }

    /// Reports a problem with this value.
    pub fn refuse(&self, check: &'static str, message: impl Into<String>, help: impl Into<String>) {
        self.findings.add(check, self.place(), message, help);
    }

    /// Reports that the value has another type than it must.
    pub fn wrong_type(&self, expected: &str, example: &str) {
        let found = match self.value {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.refuse(
            "document::wrong-type",
            format!("`{}` must be {expected}, not {found}", self.key),
            format!("write it like {example}"),
        );
    }

    /// Returns the text, or reports that it is none.
    pub fn text(&self, expected: &str, example: &str) -> Option<&'d str> {
        match self.value {
            DeValue::String(text) => Some(text),
            _ => {
                self.wrong_type(expected, example);
                None
            }
        }
    }

    /// Returns where a part of a text value stands in the document. Where escapes make
    /// that unclear, the place of the whole value.
    pub fn place_within(&self, part: Range<usize>) -> Range<usize> {
        let whole = self.span.clone();
        let (Some(raw), DeValue::String(text)) = (self.text.get(whole.clone()), self.value) else {
            return whole;
        };
        let quotes = if raw.starts_with("'''") || raw.starts_with("\"\"\"") { 3 } else { 1 };
        let escaped = raw.starts_with('"');
        // A line end right after three quotes is not part of the text.
        let newline = match raw.get(quotes..) {
            Some(rest) if quotes == 3 && rest.starts_with("\r\n") => 2,
            Some(rest) if quotes == 3 && rest.starts_with('\n') => 1,
            _ => 0,
        };
        let Some(body) = raw.get(quotes + newline..raw.len().saturating_sub(quotes)) else {
            return whole;
        };
        let base = whole.start + quotes + newline;
        let place = |offset: usize| {
            let at = if escaped { source_offset(body, offset)? } else { offset };
            (body.is_char_boundary(at) && at <= body.len()).then_some(base + at)
        };
        match (place(part.start), place(part.end)) {
            _ if part.end > text.len() => whole,
            (Some(start), Some(end)) if start <= end => start..end,
            _ => whole,
        }
    }
}

/// Finds where the byte `offset` of a decoded basic string stands in its source.
fn source_offset(body: &str, offset: usize) -> Option<usize> {
    let (mut raw, mut decoded) = (0, 0);
    while decoded < offset {
        let rest = body.get(raw..)?;
        let mut chars = rest.chars();
        let first = chars.next()?;
        if first != '\\' {
            raw += first.len_utf8();
            decoded += first.len_utf8();
            continue;
        }
        let digits = match chars.next()? {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            // A line that is continued swallows any amount of white space.
            c if c.is_whitespace() => return None,
            _ => 0,
        };
        let code = match digits {
            0 => 1,
            n => char::from_u32(u32::from_str_radix(rest.get(2..2 + n)?, 16).ok()?)?.len_utf8(),
        };
        raw += 2 + digits;
        decoded += code;
    }
    (decoded == offset).then_some(raw)
}
