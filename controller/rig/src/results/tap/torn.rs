//! What is left of a `not ok` that another task's output tore apart.

use crate::console::log_prefix::without_context;

/// Tells whether a line holds the `not ` of a point whose `ok` follows on a later line: behind it the
/// line ends, or a comment or a line of a log begins.
pub(in crate::results) fn is_torn(line: &str) -> bool {
    let behind = |(at, _): (usize, &str)| {
        let word = !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let rest = &line[at + "not".len()..];
        let text = rest.trim_ascii_start();
        let starts = line[..at].trim_ascii_start().is_empty();
        // A sentence that ends with the word has no blank behind it.
        let ends = text.is_empty() && (starts || rest.starts_with(' '));
        let gap = rest.starts_with(' ');
        let log = || text.starts_with(['#', '[', '<']) || without_context(text, true).is_some();
        word && (ends || starts && gap && log())
    };
    line.match_indices("not").any(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_not_stands_in_front_of_a_line_end_or_a_log_line() {
        for (line, torn) in [
            ("not", true),
            ("not ", true),
            ("    not ", true),
            ("not I (812) wifi: connected", true),
            ("not [wifi] connected", true),
            ("not [   12.3] usb 1-1: new device", true),
            ("not <inf> net: up", true),
            ("not # heap 1200 free", true),
            ("not 00:01:02.5 x", true),
            ("I (812) wifi: connected not ", true),
            ("", false),
            ("not found: /etc/config", false),
            ("not enough memory, a smaller buffer is used", false),
            ("whether it is used or not", false),
            ("cannot ", false),
            ("not_used ", false),
            ("nothing", false),
        ] {
            assert_eq!(is_torn(line), torn, "{line}");
        }
    }
}
