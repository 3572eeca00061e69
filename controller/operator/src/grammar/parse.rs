//! From words to a request.

use super::forms::{RequestForm, nearest_forms};
use super::lex::{MAX_TEXT, MAX_WORDS, Token, words};
use super::questions::question;
use super::request::{ActionVerb, Amount, PowerWord, RequestAction, TargetWord, UserRequest};

/// Most that a request may repeat a test.
const MAX_REPEAT: u32 = 100;

/// Most actions of one request, and most boards of one action.
const MAX_PARTS: usize = 32;

/// Says what of a request is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.words())]
pub struct NotUnderstood {
    /// The words that are not understood, as they were written; hostile text.
    pub unknown: Vec<String>,
    /// The forms that the request is nearest to.
    pub nearest: Vec<&'static RequestForm>,
    too_long: bool,
}

impl NotUnderstood {
    fn words(&self) -> String {
        if self.too_long {
            return format!("a request has at most {MAX_TEXT} bytes and {MAX_WORDS} words");
        }
        match self.unknown.as_slice() {
            [] => "nothing in the request says what to do".to_owned(),
            unknown => {
                let quoted: Vec<_> =
                    unknown.iter().take(5).map(|word| format!("{word:?}")).collect();
                format!("not understood: {}", quoted.join(", "))
            }
        }
    }
}

/// Words that say nothing about what is asked for.
const FILLERS: &[&str] = &[
    "please", "kindly", "the", "a", "an", "now", "just", "me", "my", "our", "us", "hey", "hi",
    "jig", "then", "also", "that", "this", "thanks", "there", "board", "boards", "place", "places",
    "image", "firmware", "binary", "file", "plan", "it", "them", "these", "those",
];

/// Openings of a polite request, longest first.
const OPENINGS: &[&[&str]] = &[
    &["i", "would", "like", "you", "to"],
    &["i", "would", "like", "to"],
    &["i'd", "like", "to"],
    &["i", "want", "you", "to"],
    &["i", "want", "to"],
    &["i", "need", "to"],
    &["could", "you"],
    &["would", "you"],
    &["can", "you"],
    &["can", "we"],
    &["let", "us"],
    &["let's"],
    &["please"],
];

/// Reads a request.
///
/// # Errors
/// One of its words is not understood, or nothing says what is asked for.
pub fn parse(text: &str) -> Result<UserRequest, NotUnderstood> {
    let failed = |unknown: Vec<String>, too_long| {
        Err(NotUnderstood { unknown, nearest: nearest_forms(text), too_long })
    };
    let Some(tokens) = words(text) else { return failed(Vec::new(), true) };
    let mut tokens = tokens.as_slice();
    while let Some(opening) = OPENINGS.iter().find(|opening| starts_with(tokens, opening)) {
        tokens = &tokens[opening.len()..];
    }
    if let Some(found) = question(tokens) {
        return match found {
            Ok(question) => Ok(UserRequest::Ask { question }),
            Err(unknown) => failed(unknown, false),
        };
    }
    match actions(tokens) {
        Ok(actions) if actions.is_empty() => failed(Vec::new(), false),
        Ok(actions) => Ok(UserRequest::Act { actions }),
        Err(unknown) => failed(unknown, false),
    }
}

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

/// Reads what is to be done. Words in front of the first verb may only name boards.
fn actions(tokens: &[Token]) -> Result<Vec<RequestAction>, Vec<String>> {
    let mut actions: Vec<RequestAction> = Vec::new();
    let mut shared = Vec::new();
    let mut unknown = Vec::new();
    let mut at = 0;
    // Where the next word may be a verb: at the beginning, and behind a connection.
    let mut opens = true;
    while at < tokens.len() {
        let rest = &tokens[at..];
        let token = &rest[0];
        if let Some((verb, power, len)) = verb(rest).filter(|_| opens || token.after_stop) {
            let (image, plan, repeat) = (None, None, None);
            actions.push(RequestAction { verb, power, image, plan, repeat, targets: Vec::new() });
            at += len;
            opens = false;
            continue;
        }
        if token.is(&["and", "then", "afterwards", "&"]) {
            opens = true;
            at += 1;
            continue;
        }
        let tests = token.is(&["test", "tests"]);
        if let Some(run) = actions.last_mut().filter(|last| tests && last.verb == ActionVerb::Run) {
            run.verb = ActionVerb::Test;
            at += 1;
            continue;
        }
        if token.is(FILLERS) {
            at += 1;
            continue;
        }
        // "with", "on" and the like only say what kind of word follows, and that the words tell.
        let preposition =
            ["on", "to", "at", "onto", "into", "with", "using", "in", "for", "of", "from", "by"];
        if token.is(&preposition) && rest.len() > 1 {
            at += 1;
            opens = actions.is_empty();
            continue;
        }
        if let Some((target, len)) = target(rest) {
            actions.last_mut().map_or(&mut shared, |action| &mut action.targets).push(target);
            at += len;
            // "on bench-3 run app.elf": a verb may follow the board where none was said yet.
            opens = actions.is_empty();
            continue;
        }
        let len = match actions.last_mut() {
            Some(action) => detail(action, rest),
            None => 0,
        };
        if len == 0 {
            unknown.push(token.text.clone());
        }
        at += len.max(1);
        opens = false;
    }
    if actions.is_empty() {
        // Boards alone say nothing; what they are is not worth a word then.
        return if unknown.is_empty() { Ok(actions) } else { Err(unknown) };
    }
    let too_many = actions.len() > MAX_PARTS
        || shared.len() > MAX_PARTS
        || actions.iter().any(|action| action.targets.len() > MAX_PARTS);
    if too_many {
        return Err(vec![format!("more than {MAX_PARTS} actions or boards")]);
    }
    if !unknown.is_empty() {
        return Err(unknown);
    }
    share(&mut actions, &shared);
    Ok(actions)
}

/// Gives actions without a board those of the sentence, and tests behind an image that image.
fn share(actions: &mut [RequestAction], shared: &[TargetWord]) {
    let mut last = shared.to_vec();
    if last.is_empty() {
        // "flash app.elf and run smoke.toml on bench-3"
        let named = actions.iter().find(|action| !action.targets.is_empty());
        last = named.map(|action| action.targets.clone()).unwrap_or_default();
    }
    let mut image: Option<String> = None;
    for action in actions {
        if action.targets.is_empty() {
            action.targets.clone_from(&last);
        } else {
            last.clone_from(&action.targets);
        }
        if action.verb == ActionVerb::Run && action.plan.is_some() {
            action.verb = ActionVerb::Test;
        }
        if action.verb == ActionVerb::Test && action.plan.is_none() && action.image.is_some() {
            action.verb = ActionVerb::Run;
        }
        let takes_image =
            matches!(action.verb, ActionVerb::Flash | ActionVerb::Run | ActionVerb::Test);
        if takes_image && action.image.is_none() {
            action.image.clone_from(&image);
        }
        if action.image.is_some() {
            image.clone_from(&action.image);
        }
    }
}

/// Reads an image, a plan or a number of times; returns how many words it has.
fn detail(action: &mut RequestAction, rest: &[Token]) -> usize {
    let token = &rest[0];
    if token.is_path() {
        let takes_plan = matches!(action.verb, ActionVerb::Run | ActionVerb::Test);
        let takes_image = takes_plan || action.verb == ActionVerb::Flash;
        let slot = if token.is_plan() { &mut action.plan } else { &mut action.image };
        let fits = if token.is_plan() { takes_plan } else { takes_image };
        if !fits || slot.is_some() {
            return 0;
        }
        *slot = Some(token.text.clone());
        return 1;
    }
    let takes_times = matches!(action.verb, ActionVerb::Run | ActionVerb::Test);
    let times = match token.word.as_str() {
        "once" => Some((1, 1)),
        "twice" => Some((2, 1)),
        word if rest.get(1).is_some_and(|next| next.is(&["times", "time", "x"])) => {
            word.parse().ok().map(|n: u32| (n, 2))
        }
        _ => None,
    };
    match times {
        Some((n, len)) if takes_times && (1..=MAX_REPEAT).contains(&n) && !token.quoted => {
            action.repeat = Some(n);
            len
        }
        _ => 0,
    }
}

/// Reads boards: "bench-3", "every free nrf52", "all boards", "any microbit".
pub(super) fn target(rest: &[Token]) -> Option<(TargetWord, usize)> {
    let mut amount = Amount::Named;
    let mut free = false;
    let mut at = 0;
    while let Some(token) = rest.get(at) {
        if token.is(&["every", "each", "all"]) {
            amount = Amount::Every;
        } else if token.is(&["any", "some"]) {
            amount = Amount::Any;
        } else if token.is(&["free", "idle", "available", "unused"]) {
            free = true;
        } else if !(at > 0 && token.is(&["the", "of", "a"])) {
            break;
        }
        at += 1;
    }
    let quantified = amount != Amount::Named || free;
    if free && amount == Amount::Named {
        amount = Amount::Any;
    }
    let generic = |token: &Token| token.is(&["board", "boards", "place", "places", "one", "ones"]);
    match rest.get(at) {
        Some(token) if generic(token) && quantified => {
            Some((TargetWord { name: None, amount, free }, at + 1))
        }
        Some(token) if names(rest, at) => {
            let name = Some(token.text.clone());
            at += 1;
            at += usize::from(quantified && rest.get(at).is_some_and(generic));
            Some((TargetWord { name, amount, free }, at))
        }
        _ if quantified => Some((TargetWord { name: None, amount, free }, at)),
        _ => None,
    }
}

/// Words that are never the name of a board: they change what a sentence means.
const NO_NAMES: &[&str] = &[
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
    "should",
    "must",
    "may",
    "might",
    "stop",
    "avoid",
    "skip",
    "ignore",
    "forget",
    "only",
    "i",
    "you",
    "we",
    "he",
    "they",
    "who",
    "what",
    "why",
    "how",
    "which",
    "where",
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

/// Tells whether a word names a board. A number in front of "times" does not.
pub(super) fn names(rest: &[Token], at: usize) -> bool {
    let Some(token) = rest.get(at) else { return false };
    let times = rest.get(at + 1).is_some_and(|next| next.is(&["times", "time", "x"]));
    let verb_like = !token.quoted && verb(&rest[at..]).is_some();
    token.is_name()
        && !token.is_path()
        && !token.is(NO_NAMES)
        && !token.is(FILLERS)
        && !token.is(&["once", "twice", "times", "time"])
        && !verb_like
        && !times
}
