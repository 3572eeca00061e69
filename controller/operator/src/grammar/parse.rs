//! From words to a request.

use super::forms::{RequestForm, nearest_forms};
use super::lex::{MAX_TEXT, MAX_WORDS, Token, words};
use super::questions::question;
use super::request::{ActionVerb, Amount, RequestAction, TargetWord, UserRequest};
use super::vocabulary::{FILLERS, POWER_NOUNS, names, power_around, starts_with, times_of, verb};

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

/// Reads what is to be done. Words in front of the first verb may only name boards.
fn actions(tokens: &[Token]) -> Result<Vec<RequestAction>, Vec<String>> {
    let mut actions: Vec<RequestAction> = Vec::new();
    let mut shared = Vec::new();
    let mut unknown = Vec::new();
    let mut at = 0;
    // Where the next word may be a verb: at the beginning, and behind a connection.
    let mut opens = true;
    // The rest of a verb that stands around its boards: where it begins, and where it ends.
    let mut behind = None;
    while at < tokens.len() {
        if let Some((_, end)) = behind.take_if(|(begin, _)| *begin == at) {
            at = end;
            opens = false;
            continue;
        }
        let rest = &tokens[at..];
        let token = &rest[0];
        if let Some((verb, power, len)) = verb(rest).filter(|_| opens || token.after_stop) {
            let (image, plan, repeat) = (None, None, None);
            actions.push(RequestAction { verb, power, image, plan, repeat, targets: Vec::new() });
            at += len;
            opens = false;
            continue;
        }
        if let Some((power, begin, len)) =
            power_around(rest).filter(|_| behind.is_none() && (opens || token.after_stop))
        {
            let (verb, power) = (ActionVerb::Power, Some(power));
            let (image, plan, repeat) = (None, None, None);
            actions.push(RequestAction { verb, power, image, plan, repeat, targets: Vec::new() });
            behind = Some((at + begin, at + begin + len));
            at += 1;
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
        // "turn off the power of bench-1", "erase the flash of bench-1"
        let is_part = |last: &RequestAction| match last.verb {
            ActionVerb::Power => token.is(POWER_NOUNS),
            ActionVerb::Check => {
                token.is(&["health"]) && rest.get(1).is_some_and(|t| t.is(&["of"]))
            }
            ActionVerb::Erase => {
                let of = rest.get(1).is_some_and(|next| next.is(&["of", "on", "in"]));
                last.targets.is_empty() && of && token.is(&["flash", "memory", "chip"])
            }
            _ => false,
        };
        if token.is(FILLERS) || actions.last().is_some_and(is_part) {
            at += 1;
            continue;
        }
        // "with", "on" and the like only say what kind of word follows, and that the words tell.
        let preposition =
            ["on", "to", "at", "onto", "into", "with", "using", "in", "for", "of", "from", "by"];
        if token.is(&preposition) && has_object(&rest[1..]) {
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

/// Tells whether words can stand behind a preposition: a board, a file, a pronoun. "bench-2 on please" has none.
fn has_object(tokens: &[Token]) -> bool {
    let articles = ["the", "a", "an", "my", "our", "image", "firmware", "binary", "file", "plan"];
    let about = tokens.iter().take_while(|token| token.is(&articles)).count();
    let pronouns = [
        "it", "them", "this", "that", "these", "those", "there", "board", "boards", "place",
        "places", "power",
    ];
    let stands = |token: &Token| token.is(&pronouns) || token.is_path();
    tokens.get(about).is_some_and(stands) || target(&tokens[about..]).is_some()
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
        _ if times_of(token).is_some() => times_of(token).map(|n| (n, 1)),
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

/// Reads boards: "bench-3", "every free nrf52", "all boards", "any nrf52".
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
