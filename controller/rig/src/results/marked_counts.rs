//! Counts of failures in the words that a plan's markers have for them: `end of tests, 1 bad`.

use jig_model::pattern::Pattern;

/// Lists the words that a pattern spells out and none of the others does.
pub(super) fn own_words(pattern: &Pattern, others: [Option<&Pattern>; 2]) -> Vec<String> {
    let others: Vec<String> = others.iter().flatten().flat_map(|other| spelled(other)).collect();
    let mut own = spelled(pattern);
    own.retain(|word| !others.contains(word));
    own
}

/// Lists the words of at least two letters that stand in a pattern, neither in the name of a group nor
/// behind a backslash.
fn spelled(pattern: &Pattern) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut rest = pattern.as_str();
    while let Some(c) = rest.chars().next() {
        let mut used = c.len_utf8();
        let begun = words.last_mut().filter(|_| c.is_ascii_alphabetic());
        match begun {
            Some(word) => word.push(c.to_ascii_lowercase()),
            None => {
                words.push(String::new());
                let class = rest.find(']').filter(|_| c == '[');
                let group = rest.find(['>', ')', ':']).filter(|_| rest.starts_with("(?"));
                used = match c {
                    '\\' => used + rest[used..].chars().next().map_or(0, char::len_utf8),
                    _ => class.or(group).map_or(used, |end| end + 1),
                };
            }
        }
        rest = &rest[used..];
    }
    words.retain(|word| word.len() > 1);
    words
}

/// Tells whether a text counts one of some words, and the count is not zero. In a part of the text that
/// begins with a number, the number in front of a word counts it, else the one behind it.
pub(super) fn counts_any(text: &str, counted: &[String]) -> bool {
    text.split([',', ';', '|', '/', '(', ')']).any(|part| {
        let words: Vec<&str> =
            part.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
        let number = |at: usize| super::scan::number(words.get(at)?);
        let first = number(0).is_some();
        (0..words.len()).any(|at| {
            let small = words[at].to_ascii_lowercase();
            let before = || at.checked_sub(1).and_then(number);
            let count =
                if first { before().or(number(at + 1)) } else { number(at + 1).or_else(before) };
            counted.contains(&small) && count.is_some_and(|count| count > 0)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_fail_marker_are_counted() {
        let pattern = |text| Pattern::new(text).unwrap();
        let pass = pattern(r"^(?P<name>\w+) +ok$");
        let skip = pattern(r"^(?<name>[a-z]+): (?i:left) out$");
        let fail = pattern(r"^(?P<name>\w+) +(?:bad|wrong)\b(?P<message>[^x]*) out$");
        let words = own_words(&fail, [Some(&pass), Some(&skip)]);
        assert_eq!(words, ["bad", "wrong"]);
        for (text, counted) in [
            (", 1 bad", true),
            (": 3 ok, 1 bad", true),
            (" (bad: 2)", true),
            (" ok=3 wrong=1", true),
            (" 3 ok 1 BAD", true),
            (", 0 bad", false),
            (": 3 ok, 0 bad", false),
            (" ok=3 bad=0", false),
            (" 3 ok 0 bad", false),
            (" total 3: 3 ok 0 bad", false),
            (" bad: 0, ok: 3", false),
            (", 1 name", false),
            ("", false),
        ] {
            assert_eq!(counts_any(text, &words), counted, "{text}");
        }
    }
}
