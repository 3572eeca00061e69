//! Words that the grammar knows apart from forms: verbs, fillers, and what is never the name of a board.

use super::lex::Token;
use super::request::{ActionVerb, PowerWord};

/// Words that say nothing about what is asked for.
pub(super) const FILLERS: &[&str] = &[
    "please", "kindly", "the", "a", "an", "now", "just", "me", "my", "our", "us", "hey", "hi",
    "jig", "then", "also", "that", "this", "thanks", "there", "board", "boards", "place", "places",
    "image", "firmware", "binary", "file", "plan", "it", "them", "these", "those",
];

/// Tells whether some words begin with these.
pub(super) fn starts_with(tokens: &[Token], words: &[&str]) -> bool {
    tokens.len() >= words.len() && words.iter().zip(tokens).all(|(word, token)| token.is(&[word]))
}

/// Returns the verb at the beginning of some words, and how many words it has.
pub(super) fn verb(tokens: &[Token]) -> Option<(ActionVerb, Option<PowerWord>, usize)> {
    let first = tokens.first()?;
    let second = tokens.get(1);
    let second_is = |words: &[&str]| second.is_some_and(|token| token.is(words));
    if first.is(&["power", "turn", "switch"]) {
        for (word, power) in
            [("on", PowerWord::On), ("off", PowerWord::Off), ("cycle", PowerWord::Cycle)]
        {
            if second_is(&[word]) {
                return Some((ActionVerb::Power, Some(power), 2));
            }
        }
        return None;
    }
    if first.is(&["power-cycle", "powercycle"]) {
        return Some((ActionVerb::Power, Some(PowerWord::Cycle), 1));
    }
    if first.is(&["run", "execute", "start"]) && second_is(&["test", "tests"]) {
        return Some((ActionVerb::Test, None, 2));
    }
    let known: &[(&[&str], ActionVerb)] = &[
        (&["flash", "program", "deploy", "burn", "load"], ActionVerb::Flash),
        (&["run", "boot", "start", "execute"], ActionVerb::Run),
        (&["test"], ActionVerb::Test),
        (&["reset", "reboot", "restart"], ActionVerb::Reset),
        (&["erase", "wipe"], ActionVerb::Erase),
        (&["recover", "revive"], ActionVerb::Recover),
        (&["check"], ActionVerb::Check),
    ];
    known.iter().find(|(words, _)| first.is(words)).map(|(_, verb)| (*verb, None, 1))
}

/// Words that are never the name of a board, beside those of [`NEGATIONS`].
const NO_NAMES: &[&str] = &[
    "should",
    "must",
    "may",
    "might",
    "i",
    "you",
    "we",
    "he",
    "they",
    "is",
    "are",
    "was",
    "were",
    "be",
    "do",
    "does",
    "did",
    "has",
    "have",
    "had",
    "will",
    "would",
    "could",
    "can",
    "and",
    "to",
    "on",
    "at",
    "with",
    "of",
    "in",
    "from",
    "for",
    "by",
    "as",
    "so",
    "because",
    "than",
    "like",
    "everything",
    "everyone",
    "everywhere",
    "anything",
    "previous",
    "instructions",
];

/// Words that turn a sentence around, or make it depend on something.
const NEGATIONS: &[&str] = &[
    "not",
    "no",
    "never",
    "none",
    "nothing",
    "don't",
    "dont",
    "doesn't",
    "without",
    "except",
    "but",
    "unless",
    "if",
    "when",
    "while",
    "until",
    "before",
    "after",
    "instead",
    "or",
    "nor",
    "neither",
    "cannot",
    "can't",
    "cant",
    "won't",
    "wont",
    "shouldn't",
    "stop",
    "avoid",
    "skip",
    "ignore",
    "forget",
    "only",
    "who",
    "what",
    "why",
    "how",
    "which",
    "where",
];

/// Tells whether a word turns a sentence around, makes it depend on something, or makes it a question.
pub(super) fn turns(token: &Token) -> bool {
    token.is(NEGATIONS)
}

/// Tells whether a word names a board. A number in front of "times" does not.
pub(super) fn names(rest: &[Token], at: usize) -> bool {
    let Some(token) = rest.get(at) else { return false };
    let times = rest.get(at + 1).is_some_and(|next| next.is(&["times", "time", "x"]));
    let verb_like = !token.quoted && verb(&rest[at..]).is_some();
    token.is_name()
        && !token.is_path()
        && !token.is(NO_NAMES)
        && !token.is(NEGATIONS)
        && !token.is(FILLERS)
        && !token.is(&["once", "twice", "times", "time"])
        && !verb_like
        && !times
}
