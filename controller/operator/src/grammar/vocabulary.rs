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
    if first.is(SWITCHES) {
        if second_is(&["cycle"]) {
            return Some((ActionVerb::Power, Some(PowerWord::Cycle), 2));
        }
        let (power, len) = particle(first, &tokens[1..])?;
        return Some((ActionVerb::Power, Some(power), len + 1));
    }
    if first.is(&["cut", "kill"]) {
        let articles = tokens[1..].iter().take_while(|token| token.is(&["the", "its"])).count();
        let noun = tokens.get(articles + 1).is_some_and(|token| token.is(&["power"]));
        return noun.then_some((ActionVerb::Power, Some(PowerWord::Off), articles + 2));
    }
    if first.is(&["put", "write", "install"]) {
        let image = tokens[1..].iter().find(|token| !token.is(FILLERS));
        let flashes = image.is_some_and(|token| token.is_path() && !token.is_plan());
        return flashes.then_some((ActionVerb::Flash, None, 1));
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
        (&["recover", "revive", "unbrick"], ActionVerb::Recover),
        (&["check"], ActionVerb::Check),
    ];
    known.iter().find(|(words, _)| first.is(words)).map(|(_, verb)| (*verb, None, 1))
}

/// Verbs that switch power by a word behind them.
const SWITCHES: &[&str] = &["power", "turn", "switch"];

/// What is switched, where it is said.
pub(super) const POWER_NOUNS: &[&str] = &["power", "supply"];

/// Reads how power is switched: "on", "off", "off and on again". Returns how many words it has.
fn particle(first: &Token, tokens: &[Token]) -> Option<(PowerWord, usize)> {
    let one_of = |at: usize, words: &[&str]| tokens.get(at).is_some_and(|token| token.is(words));
    let by_power = first.is(&["power"]);
    let power = match () {
        () if one_of(0, &["on"]) || by_power && one_of(0, &["up"]) => PowerWord::On,
        () if one_of(0, &["off"]) || by_power && one_of(0, &["down"]) => PowerWord::Off,
        () => return None,
    };
    let again = |len: usize| len + usize::from(one_of(len, &["again"]));
    let links = tokens[1..].iter().take_while(|token| token.is(&["and", "then", "back"])).count();
    let back = power == PowerWord::Off && links > 0 && one_of(links + 1, &["on"]);
    Some(match back {
        true => (PowerWord::Cycle, again(links + 2)),
        false => (power, again(1)),
    })
}

/// Reads a verb that stands around what it switches: "turn bench-1 off". Returns how, where the word behind
/// begins, and how many words that has.
pub(super) fn power_around(tokens: &[Token]) -> Option<(PowerWord, usize, usize)> {
    let first = tokens.first().filter(|token| token.is(SWITCHES))?;
    let mut boards = 0;
    for at in 1..tokens.len() {
        if let Some((power, len)) = particle(first, &tokens[at..]) {
            let next = tokens.get(at + len);
            let ends = next.is_none_or(|token| {
                token.after_stop
                    || token.is(&["and", "then", "afterwards", "&", "please", "now"])
                    // "turn the power off on bench-1"
                    || boards == 0 && token.is(&["on", "of", "at", "for", "to"])
            });
            if ends && at > 1 {
                return Some((power, at, len));
            }
        }
        let token = &tokens[at];
        let named = names(tokens, at) && !token.is(&["turn", "switch"]) && !token.is(POWER_NOUNS);
        let around = token.is(FILLERS)
            || token.is(POWER_NOUNS)
            || token.is(&["and", "of", "on", "at", "for", "to", "every", "each", "all", "both"]);
        if !named && !around {
            return None;
        }
        boards += usize::from(named);
    }
    None
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
    "off",
    "again",
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

/// Reads "10x".
pub(super) fn times_of(token: &Token) -> Option<u32> {
    token.word.strip_suffix('x').filter(|_| !token.quoted)?.parse().ok()
}

/// Tells whether a word names a board. A number in front of "times" does not.
pub(super) fn names(rest: &[Token], at: usize) -> bool {
    let Some(token) = rest.get(at) else { return false };
    let times = rest.get(at + 1).is_some_and(|next| next.is(&["times", "time", "x"]));
    let verb_like = !token.quoted && verb(&rest[at..]).is_some() || times_of(token).is_some();
    token.is_name()
        && !token.is_path()
        && !token.is(NO_NAMES)
        && !token.is(NEGATIONS)
        && !token.is(FILLERS)
        && !token.is(&["once", "twice", "times", "time"])
        && !verb_like
        && !times
}
