//! Colours of text, and the rules by which a stream gets them.

use std::ffi::OsStr;

/// What a text means; decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// As it should be.
    Good,
    /// Wrong.
    Bad,
    /// Worth a look.
    Warn,
    /// In the background.
    Dim,
    /// In the foreground.
    Bold,
}

/// Colours text for one stream, or leaves it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    /// Whether there is colour.
    pub(crate) on: bool,
}

impl Paint {
    /// Colours a text.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        if !self.on || text.is_empty() {
            return text.to_owned();
        }
        // The eight basic colours only: those follow the terminal's own theme.
        let code = match style {
            Style::Good => "32",
            Style::Bad => "1;31",
            Style::Warn => "33",
            Style::Dim => "2",
            Style::Bold => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Tells whether a stream gets colour. `NO_COLOR` wins over everything, because the choice
/// of a user who cannot read colours wins over a CI system's `CLICOLOR_FORCE`.
pub(crate) fn wants_colour<'v>(
    is_terminal: bool,
    variable: impl Fn(&str) -> Option<&'v OsStr>,
) -> bool {
    let set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let is = |name: &str, value: &str| variable(name).is_some_and(|found| found == value);
    if set("NO_COLOR") {
        return false;
    }
    if set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") {
        return true;
    }
    is_terminal && !is("TERM", "dumb") && !is("CLICOLOR", "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_decides_about_colour() {
        let wants = |terminal, set: &[(&str, &'static str)]| {
            let find =
                |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| OsStr::new(*v));
            wants_colour(terminal, find)
        };
        assert!(wants(true, &[]));
        assert!(!wants(false, &[]));
        assert!(!wants(true, &[("NO_COLOR", "1")]));
        assert!(wants(true, &[("NO_COLOR", "")]));
        assert!(wants(false, &[("CLICOLOR_FORCE", "1")]));
        assert!(!wants(false, &[("CLICOLOR_FORCE", "0")]));
        assert!(!wants(true, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
        assert!(!wants(true, &[("TERM", "dumb")]));
        assert!(!wants(true, &[("CLICOLOR", "0")]));
        assert!(wants(true, &[("TERM", "xterm")]));
    }

    #[test]
    fn nothing_is_painted_without_colour() {
        assert_eq!(Paint { on: false }.paint(Style::Bad, "x"), "x");
        assert_eq!(Paint { on: true }.paint(Style::Good, "x"), "\x1b[32mx\x1b[0m");
        assert_eq!(Paint { on: true }.paint(Style::Good, ""), "");
    }
}
