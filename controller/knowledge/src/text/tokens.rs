//! Tokens of a text: each identifier whole, and split where it is composed.
//!
//! # Design
//! `HAL_UART_Init` and `dmaIrqHandler` are searched as a whole by those who know the name, and by
//! their parts by those who do not. Both are indexed. On the history of a boot loader (697 newer
//! fixes, one relevant change each) a search with parts alone finds .51 of them among ten, with
//! both .58; `jig kb bench` measures it for other data.

/// Longest token, in bytes. What is longer is encoded data and no word.
pub const MAX_TOKEN: usize = 48;

/// Calls `emit` with each token of a text, in order, in lower case.
pub fn each_token(text: &str, mut emit: impl FnMut(&str)) {
    let mut lower = String::new();
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    for word in text.split(|c| !inside(c)) {
        let word = word.trim_matches('_');
        if word.is_empty() {
            continue;
        }
        let mut one = |part: &str| {
            if part.len() <= MAX_TOKEN {
                lower.clear();
                lower.extend(part.chars().flat_map(char::to_lowercase));
                emit(&lower);
            }
        };
        one(word);
        let parts = Parts(word);
        if parts.clone().nth(1).is_some() {
            // A single character says nothing by itself.
            parts.filter(|part| part.len() > 1).for_each(one);
        }
    }
}

/// Returns the tokens of a text.
pub fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    each_token(text, |token| found.push(token.to_owned()));
    found
}

/// What the next character begins or goes on with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Upper,
    Lower,
    Digit,
    Blank,
}

impl Shape {
    fn of(c: char) -> Self {
        match c {
            '_' => Self::Blank,
            c if c.is_numeric() => Self::Digit,
            c if c.is_uppercase() => Self::Upper,
            _ => Self::Lower,
        }
    }
}

/// The parts of an identifier: `HTTPServer2_go` is `HTTP`, `Server`, `2` and `go`.
#[derive(Clone)]
struct Parts<'a>(&'a str);

impl<'a> Iterator for Parts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start_matches('_');
        let mut chars = text.char_indices().peekable();
        let (_, first) = chars.next()?;
        let mut shape = Shape::of(first);
        let mut end = text.len();
        while let Some((at, c)) = chars.next() {
            let next = Shape::of(c);
            let word_begins = next == Shape::Upper
                && chars.peek().is_some_and(|(_, behind)| Shape::of(*behind) == Shape::Lower);
            let goes_on = match (shape, next) {
                // `Ser`: the capital belongs to the word that it begins.
                (Shape::Upper, Shape::Lower) => true,
                (Shape::Upper, Shape::Upper) => !word_begins,
                (before, next) => before == next,
            };
            if !goes_on {
                end = at;
                break;
            }
            shape = next;
        }
        self.0 = &text[end..];
        Some(&text[..end])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn identifiers_are_kept_whole_and_split() {
        for (text, expected) in [
            ("HAL_UART_Init()", "hal_uart_init hal uart init"),
            ("dmaIrqHandler", "dmairqhandler dma irq handler"),
            ("HTTPServer2_go", "httpserver2_go http server go"),
            ("uart0 -EINVAL", "uart0 uart einval"),
            ("lib/gunzip.c", "lib gunzip c"),
            ("__x__ _ ", "x"),
            ("Größe ÄrgerÜber", "größe ärgerüber ärger über"),
            ("MATCH \"a\" OR NOT col:*", "match a or not col"),
        ] {
            assert_eq!(tokens(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn encoded_data_is_no_word() {
        assert_eq!(tokens(&"a".repeat(MAX_TOKEN + 1)), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn tokens_are_short_and_lower_case(text in "\\PC{0,200}") {
            each_token(&text, |token| {
                assert!(!token.is_empty() && !token.contains('_') || !token.starts_with('_'));
                assert!(!token.contains([' ', '"', '*', '\0', '=']), "{token:?}");
            });
        }
    }
}
