//! Tells whether a line says `ERROR` in capitals, and nothing in it takes that back. Pure.
//!
//! # Design
//! Between other output such a line may be one of a log. Where a run passes because of the line, it
//! contradicts the pass: `IntSem ERROR - tick count`.

use super::words::{Word, is_zero, listed, words};

const ERRORS: &str = "error errors err fail failed failure failures fatal panic ng nok";

/// Words in front of an error that deny it.
const DENIALS: &str = "no not without 0 zero none never";

/// Words behind an error that make it a part of the machine, or a name: `ERROR LED`, `FAIL SAFE`.
const THINGS: &str = "\
    led handler handlers handling counter counters correction detection injection rate rates log \
    level levels limit limits mode test tests safe over open soft";

/// Tells whether a readable line says that something is wrong.
pub(crate) fn says_error(line: &str) -> bool {
    let words = words(line);
    (0..words.len()).any(|at| {
        let denied = at > 0 && listed(DENIALS, &words[at - 1].text);
        let thing = words.get(at + 1).is_some_and(|next| listed(THINGS, &next.text));
        words[at].capital
            && listed(ERRORS, &words[at].text)
            && !denied
            && !thing
            && !is_zero_count(&words[at + 1..])
    })
}

/// `ERRORS: 0`, `ERROR COUNT = 0`, `ERROR: NONE`.
fn is_zero_count(behind: &[Word<'_>]) -> bool {
    let value = behind.iter().take(3).find(|word| word.before.contains([':', '=']));
    value.is_some_and(|value| is_zero(&value.text) || listed("none no ok off", &value.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_in_capitals_counts_unless_it_is_denied() {
        for (line, says) in [
            ("IntSem ERROR - tick count", true),
            ("ERROR: link down", true),
            ("[ERROR] link down", true),
            ("tick count 1000 FAIL", true),
            ("status=NG", true),
            ("NO ERRORS - tick count", false),
            ("0 ERRORS, tick count 12", false),
            ("ERRORS: 0, tick count 12", false),
            ("ERROR COUNT = 0", false),
            ("ERROR: NONE", false),
            ("ERROR LED off", false),
            ("FAIL-SAFE output low", false),
            ("Error: tick count", false),
            ("tick count", false),
            ("", false),
        ] {
            assert_eq!(says_error(line), says, "{line}");
        }
    }
}
