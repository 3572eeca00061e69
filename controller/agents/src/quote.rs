//! Short quotes of hostile text for messages.

/// Most characters of a quote.
const MAX_CHARS: usize = 200;

/// Quotes the beginning of a text on one line, without control characters.
pub fn beginning(text: &str) -> String {
    let words = text.trim_start().chars().map(|c| if c.is_control() { ' ' } else { c });
    words.take(MAX_CHARS).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_is_one_line() {
        assert_eq!(beginning("\n a\nb\t"), "a b");
        assert_eq!(beginning(&"x".repeat(1 << 20)).len(), MAX_CHARS);
    }
}
