//! Placeholders in an emulator's arguments: `{image}`, `{artifact:NAME}`, `{port:NAME}`.
//!
//! One grammar for the checks of a profile and for the code that fills the placeholders in.

use std::ops::Range;

/// One part of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgPart<'a> {
    /// Text that stays as it is.
    Text(&'a str),
    /// The path of the deployed image.
    Image,
    /// The path of a file of the image set.
    Artifact(&'a str),
    /// A free TCP port on the loopback address; the same name is the same port.
    Port(&'a str),
}

/// Says which part of an argument is no placeholder although it looks like one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no placeholder")]
pub struct PlaceholderError {
    /// The part, at most 40 characters of it.
    pub text: String,
    /// Where, in bytes of the argument.
    pub span: Range<usize>,
}

/// Splits an argument into text and placeholders.
///
/// # Errors
/// Refuses unknown placeholders and braces that stand alone.
pub fn arg_parts(arg: &str) -> Result<Vec<ArgPart<'_>>, PlaceholderError> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(rest) = arg.get(at..).filter(|rest| !rest.is_empty()) {
        let brace = rest.find(['{', '}']).unwrap_or(rest.len());
        if brace > 0 {
            parts.push(ArgPart::Text(&rest[..brace]));
            at += brace;
            continue;
        }
        let length = rest.find('}').map_or(rest.len(), |end| end + 1);
        let known = rest[..length].strip_prefix('{').and_then(|r| r.strip_suffix('}'));
        let part = match known.map(|inside| inside.split_once(':').unwrap_or((inside, ""))) {
            Some(("image", "")) => Some(ArgPart::Image),
            Some(("artifact", name)) if is_name(name) => Some(ArgPart::Artifact(name)),
            Some(("port", name)) if is_name(name) => Some(ArgPart::Port(name)),
            _ => None,
        };
        match part {
            Some(part) => parts.push(part),
            None => {
                return Err(PlaceholderError {
                    text: rest[..length].chars().take(40).collect(),
                    span: at..at + length,
                });
            }
        }
        at += length;
    }
    Ok(parts)
}

/// Tells whether a text can name a port, a file of an image set, a stage or the like.
pub(crate) fn is_name(text: &str) -> bool {
    text.parse::<crate::ActionName>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up() {
        let parts = arg_parts("user,hostfwd=tcp:127.0.0.1:{port:ssh}-:22").unwrap();
        assert_eq!(parts[1], ArgPart::Port("ssh"));
        assert_eq!(parts.len(), 3);
        assert_eq!(arg_parts("{image}"), Ok(vec![ArgPart::Image]));
        assert_eq!(arg_parts(""), Ok(vec![]));
    }

    #[test]
    fn what_is_no_placeholder_is_refused_with_its_place() {
        for (arg, span) in [
            ("a{imge}", 1..7),
            ("a{", 1..2),
            ("}", 0..1),
            ("{port:}", 0..7),
            ("{artifact:../x}", 0..15),
            ("{image:x}", 0..9),
        ] {
            assert_eq!(arg_parts(arg).unwrap_err().span, span, "{arg}");
        }
    }
}
