//! Short quotes of hostile output for messages: bounded, on few lines, without control characters.

/// Most characters of a quote.
const MAX_CHARS: usize = 600;

/// Most lines of a quote.
const MAX_LINES: usize = 6;

/// Quotes the last lines of what a program printed, joined by ` / `.
pub(crate) fn last_lines(output: &[u8]) -> String {
    // A line may be huge; four bytes are the most that a character has.
    let from = output.len().saturating_sub(MAX_CHARS * 4);
    let text = String::from_utf8_lossy(&output[from..]);
    let lines: Vec<_> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let joined = lines[lines.len().saturating_sub(MAX_LINES)..].join(" / ");
    let plain: String = joined.chars().filter(|c| !c.is_control()).collect();
    let skip = plain.chars().count().saturating_sub(MAX_CHARS);
    plain.chars().skip(skip).collect()
}

/// Quotes the beginning of a text on one line.
pub(crate) fn beginning(text: &str) -> String {
    let words = text.trim_start().chars().map(|c| if c.is_control() { ' ' } else { c });
    words.take(MAX_CHARS / 3).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_output_is_quoted_without_control_characters() {
        let output: String = (0..50).map(|line| format!("\x1b[31mline {line}\r\n")).collect();
        assert_eq!(
            last_lines(output.as_bytes()),
            "[31mline 44 / [31mline 45 / [31mline 46 / [31mline 47 / [31mline 48 / [31mline 49"
        );
        assert_eq!(last_lines(&vec![0xff; 1 << 20]).chars().count(), MAX_CHARS);
        assert_eq!(last_lines(b"\n\n"), "");
    }

    #[test]
    fn the_beginning_is_one_line() {
        assert_eq!(beginning("\n a\nb\t"), "a b");
        assert_eq!(beginning(&"x".repeat(1 << 20)).len(), MAX_CHARS / 3);
    }
}
