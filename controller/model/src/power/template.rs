//! Placeholders in what is sent to a power device: `{outlet}`, `{state}`, `{user}`,
//! `{password}`.

use crate::profile::PlaceholderError;

/// One part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PowerPart<'a> {
    /// Text that stays as it is.
    Text(&'a str),
    /// The outlet: `{outlet}`.
    Outlet,
    /// The device's word for on or off: `{state}`.
    State,
    /// The user's name: `{user}`.
    User,
    /// The password: `{password}`.
    Password,
}

/// Splits a template into text and placeholders. `{{` and `}}` stand for single braces,
/// because JSON is full of them.
///
/// # Errors
/// Refuses unknown placeholders and braces that stand alone.
pub fn power_parts(template: &str) -> Result<Vec<PowerPart<'_>>, PlaceholderError> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(rest) = template.get(at..).filter(|rest| !rest.is_empty()) {
        let brace = rest.find(['{', '}']).unwrap_or(rest.len());
        let (part, length) = if brace > 0 {
            (Some(PowerPart::Text(&rest[..brace])), brace)
        } else if rest.starts_with("{{") || rest.starts_with("}}") {
            (Some(PowerPart::Text(&rest[..1])), 2)
        } else {
            let length = rest.find('}').map_or(rest.len(), |end| end + 1);
            let part = match &rest[..length] {
                "{outlet}" => Some(PowerPart::Outlet),
                "{state}" => Some(PowerPart::State),
                "{user}" => Some(PowerPart::User),
                "{password}" => Some(PowerPart::Password),
                _ => None,
            };
            (part, length)
        };
        let span = at..at + length;
        let shown = || rest[..length].chars().take(40).collect();
        parts.push(part.ok_or_else(|| PlaceholderError { text: shown(), span: span.clone() })?);
        at = span.end;
    }
    Ok(parts)
}
