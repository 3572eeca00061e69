//! Parts of questions: boards, times, runs and tests, as people name them.

use super::lex::Token;
use super::request::RunName;
use super::vocabulary::{names, starts_with};
use super::when::SinceWord;

pub(super) fn texts(tokens: &[Token]) -> Vec<String> {
    tokens.iter().map(|token| token.text.clone()).collect()
}

/// Returns the words without those at the beginning that say nothing.
pub(super) fn skip<'t>(mut tokens: &'t [Token], words: &[&str]) -> &'t [Token] {
    let articles = ["the", "a", "an", "me", "us", "my", "our"];
    while tokens.first().is_some_and(|token| token.is(words) || token.is(&articles)) {
        tokens = &tokens[1..];
    }
    tokens
}

/// The end of a question: where, and when.
#[derive(Debug, Default)]
pub(super) struct QuestionEnd<'t> {
    /// What stands in front of it.
    pub(super) rest: &'t [Token],
    pub(super) board: Option<String>,
    pub(super) since: Option<SinceWord>,
    /// What is asked about ends here: "yesterday" is over, "since yesterday" goes on.
    pub(super) until: Option<SinceWord>,
}

/// Reads the end of a question: "on bench-3", "since yesterday", in whatever order.
pub(super) fn tail(tokens: &[Token]) -> QuestionEnd<'_> {
    let mut end = QuestionEnd { rest: tokens, ..QuestionEnd::default() };
    for _ in 0..4 {
        let on = |token: &Token| token.is(&["on", "at", "of", "for"]);
        let (tokens, len) = (end.rest, end.rest.len());
        let place = (0..len.saturating_sub(1)).rev().find(|&n| on(&tokens[n])).and_then(|n| {
            let behind = skip(&tokens[n + 1..], &["board", "place"]);
            (behind.len() == 1 && names(behind, 0)).then(|| (n, behind[0].text.clone()))
        });
        if let Some((n, name)) = place.filter(|_| end.board.is_none()) {
            (end.board, end.rest) = (Some(name), &tokens[..n]);
            continue;
        }
        let time = (0..len).find_map(|n| time(tokens, n).map(|found| (n, found)));
        if let Some((n, (since, until))) = time.filter(|_| end.since.is_none()) {
            (end.since, end.until, end.rest) = (Some(since), until, &tokens[..n]);
            continue;
        }
        break;
    }
    end
}

/// Reads a time that reaches to the end of some words from the word `n` on.
fn time(tokens: &[Token], n: usize) -> Option<(SinceWord, Option<SinceWord>)> {
    let goes_on = tokens[n].is(&["since", "from"]);
    let within = tokens[n].is(&["in", "within", "during", "for"]);
    let bare = tokens[n].is(&["today", "yesterday", "overnight", "last", "this", "past"]);
    if !goes_on && !within && !bare {
        return None;
    }
    let behind = if bare { &tokens[n..] } else { skip(&tokens[n + 1..], &[]) };
    let (since, words) = SinceWord::read(behind)?;
    let is_over = !goes_on && behind[0].is(&["yesterday"]);
    let until = is_over.then_some(SinceWord::DaysAgo(0));
    (words == behind.len()).then_some((since, until))
}

/// Reads the name of a run: an id, "last", "the last run", "previous one", "the run before".
pub(super) fn run(tokens: &[Token]) -> Option<RunName> {
    let tokens = skip(tokens, &["run", "one"]);
    let (first, behind) = tokens.split_first()?;
    let named = match first.word.as_str() {
        _ if first.quoted => None,
        "last" | "latest" | "newest" | "it" | "that" => Some(RunName::Last),
        "previous" => Some(RunName::Previous),
        "before" if starts_with(behind, &["that"]) || starts_with(behind, &["it"]) => {
            return behind[1..].is_empty().then_some(RunName::Previous);
        }
        "before" => Some(RunName::Previous),
        _ if first.is_run_id() => Some(RunName::Id(first.text.clone())),
        _ => None,
    }?;
    let rest = skip(behind, &["run", "one", "test"]);
    match (named, rest) {
        (named, []) => Some(named),
        // "the run before last", "the one before"
        _ => None,
    }
}

/// Reads the name of a test: one word, or quoted words.
pub(super) fn test_name(tokens: &[Token]) -> Result<String, Vec<String>> {
    let tokens = skip(tokens, &["test", "case", "plan"]);
    let kept = match tokens {
        [head @ .., last] if last.is(&["test", "case", "plan"]) && !head.is_empty() => head,
        all => all,
    };
    match kept {
        [one] if one.text.len() <= 256 => Ok(one.text.clone()),
        all => Err(texts(all)),
    }
}
