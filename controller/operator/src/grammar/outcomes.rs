//! Questions about how runs went: did they pass, which of them failed, what have they printed.

use super::lex::Token;
use super::parts::{QuestionEnd, run, skip, tail, test_name, texts};
use super::request::{RequestQuestion, RunName, RunsWanted};
use super::vocabulary::{names, starts_with};

type Asked = Result<RequestQuestion, Vec<String>>;

/// Words that say that something failed.
pub(super) const FAILS: &[&str] = &[
    "fail", "fails", "failed", "failing", "break", "breaks", "broke", "broken", "crash", "crashes",
    "crashed", "crashing", "hang", "hangs", "time", "red", "flaky",
];

/// Words that say that something passed.
const PASSES: &[&str] = &[
    "pass",
    "passes",
    "passed",
    "passing",
    "succeed",
    "succeeds",
    "succeeded",
    "green",
    "ok",
    "okay",
    "fine",
    "good",
    "well",
];

/// Words between what is asked about and how it went.
const LINKS: &[&str] =
    &["still", "been", "just", "ever", "already", "always", "again", "finally", "go", "end", "now"];

/// Words that stand for several runs.
const SEVERAL: &[&str] =
    &["anything", "something", "everything", "all", "any", "every", "runs", "tests"];

/// What a list of runs is asked for by, beside how they went.
const LISTED: &[&str] = &[
    "run",
    "runs",
    "test",
    "tests",
    "case",
    "cases",
    "have",
    "has",
    "had",
    "did",
    "do",
    "were",
    "was",
    "are",
    "is",
    "there",
    "been",
    "all",
    "of",
    "the",
    "any",
    "a",
    "so",
    "far",
    "anything",
    "everything",
    "that",
];

/// Words that say that something was printed.
const PRINTS: &[&str] = &["print", "prints", "printed", "printing", "say", "said", "output"];

/// Returns how a word says that something went.
fn went_by(token: &Token) -> Option<RunsWanted> {
    if token.is(FAILS) || token.is(&["failure", "failures"]) {
        return Some(RunsWanted::Failed);
    }
    token.is(PASSES).then_some(RunsWanted::Passed)
}

/// "runs on bench-3 since yesterday"
pub(super) fn runs(tokens: &[Token]) -> Asked {
    let QuestionEnd { rest, board, since, until } = tail(tokens);
    match rest {
        [] => Ok(RequestQuestion::Runs { board, since, until, only: None }),
        rest => Err(texts(rest)),
    }
}

/// "did the last run pass", "does boot-test still fail on bench-3", "did anything fail today"
pub(super) fn outcome(tokens: &[Token]) -> Asked {
    let unknown = || Err(texts(tokens));
    if tokens.get(1).is_some_and(|token| token.is(&["there"])) {
        return listed(&tokens[2..]);
    }
    if starts_with(tokens, &["does"])
        && let Some(power) = asks_for_power(&tokens[1..])
    {
        return Ok(power);
    }
    let QuestionEnd { rest, board, since, until } = tail(&tokens[1..]);
    let Some(at) = rest.iter().rposition(|token| went_by(token).is_some()) else {
        return unknown();
    };
    let wanted = went_by(&rest[at]).unwrap_or(RunsWanted::Failed);
    let (mut about, behind) = (&rest[..at], &rest[at + 1..]);
    while about.last().is_some_and(|token| token.is(LINKS)) {
        about = &about[..about.len() - 1];
    }
    // "did all tests pass in the last run"
    if !behind.is_empty() {
        let of_all = about.iter().all(|token| token.is(SEVERAL) || token.is(LISTED));
        return match in_run(behind).filter(|_| of_all) {
            Some(run) => Ok(RequestQuestion::Run { run, board }),
            None => unknown(),
        };
    }
    // "did the last run on bench-3 pass"
    let inner = tail(about);
    let (board, since) = (board.or(inner.board), since.or(inner.since));
    let (about, until) = (inner.rest, until.or(inner.until));
    let several = about.iter().any(|token| token.is(SEVERAL));
    if several && about.iter().all(|token| token.is(SEVERAL) || token.is(LISTED)) {
        // Whether everything passed is told by what failed.
        let every = about.iter().any(|token| token.is(&["everything", "all", "every"]));
        let only = Some(if every { RunsWanted::Failed } else { wanted });
        return Ok(RequestQuestion::Runs { board, since, until, only });
    }
    let the_run = skip(about, &[]);
    if the_run.len() == 1 && the_run[0].is(&["run"]) && since.is_none() {
        return Ok(RequestQuestion::Run { run: RunName::Last, board });
    }
    match run(about) {
        Some(run) if since.is_none() => Ok(RequestQuestion::Run { run, board }),
        Some(_) => unknown(),
        None => {
            let test = test_of(about).ok_or_else(|| texts(tokens))?;
            Ok(RequestQuestion::TestOutcome { test, board, since, until })
        }
    }
}

/// Reads the name of a test where any other word could stand.
fn test_of(tokens: &[Token]) -> Option<String> {
    let kept = skip(tokens, &["test", "case", "plan"]);
    let kept = match kept {
        [head @ .., last] if last.is(&["test", "case", "plan"]) && !head.is_empty() => head,
        all => all,
    };
    let is_name = match kept {
        [one] => one.quoted || one.is_plan() || names(kept, 0),
        _ => false,
    };
    test_name(kept).ok().filter(|_| is_name)
}

/// Reads "in the last run".
fn in_run(tokens: &[Token]) -> Option<RunName> {
    let (first, behind) = tokens.split_first()?;
    run(behind).filter(|_| first.is(&["in", "during", "of", "from"]))
}

/// "failures today", "failed runs on bench-3", "tests failed in the last run", "runs were there"
pub(super) fn listed(tokens: &[Token]) -> Asked {
    let QuestionEnd { rest, board, since, until } = tail(tokens);
    let of = (0..rest.len()).find_map(|n| in_run(&rest[n..]).map(|run| (n, run)));
    let words = of.as_ref().map_or(rest, |(n, _)| &rest[..*n]);
    let mut only = None;
    for word in words {
        match went_by(word) {
            Some(wanted) if only.is_none_or(|known| known == wanted) => only = Some(wanted),
            None if word.is(LISTED) => {}
            _ => return Err(vec![word.text.clone()]),
        }
    }
    match (of, only) {
        (Some((_, run)), Some(RunsWanted::Failed)) => Ok(RequestQuestion::WhyRun { run, board }),
        (Some((_, run)), _) => Ok(RequestQuestion::Run { run, board }),
        (None, None) if !words.iter().any(|word| word.is(&["run", "runs", "tests"])) => {
            Err(texts(tokens))
        }
        (None, only) => Ok(RequestQuestion::Runs { board, since, until, only }),
    }
}

/// Reads what stands behind "which" or "what", where it asks how runs went; nothing where it does not.
pub(super) fn what(rest: &[Token]) -> Option<Asked> {
    let (first, last) = (rest.first()?, rest.last()?);
    if rest.len() > 1 && first.is(&["is", "are"]) && rest[1].is(&["running"]) {
        let QuestionEnd { rest, board, since, .. } = tail(&rest[2..]);
        let plain = skip(rest, &["right", "now"]).is_empty() && since.is_none();
        return plain.then_some(Ok(RequestQuestion::Boards { board, free: false }));
    }
    if starts_with(rest, &["is", "wrong", "with"]) {
        let about = skip(&rest[3..], &["board", "place"]);
        let test = about.first().filter(|_| about.len() == 1 && names(about, 0))?.text.clone();
        return Some(Ok(RequestQuestion::WhyTest { test, board: None, since: None }));
    }
    if first.is(&["is", "was", "does", "did", "has"]) && last.is(PRINTS) {
        let about = skip(&rest[1..rest.len() - 1], &["board", "place", "been"]);
        return Some(match (log(about), about) {
            (Some(asked), _) => Ok(asked),
            (None, [one]) if names(about, 0) => {
                Ok(RequestQuestion::Console { board: Some(one.text.clone()) })
            }
            (None, about) => Err(texts(about)),
        });
    }
    if first.is(&["is", "was"]) {
        let about = skip(&rest[1..], &["result", "outcome", "verdict", "of"]);
        let QuestionEnd { rest: inner, board, since, .. } = tail(about);
        if let Some(run) = run(inner).filter(|_| since.is_none()) {
            return Some(Ok(RequestQuestion::Run { run, board }));
        }
    }
    if first.is(&["ran"]) {
        return Some(runs(&rest[1..]));
    }
    let boards = first.is(&["board", "boards", "place", "places"]);
    if boards && last.is(&["healthy", "unhealthy", "broken", "ok", "okay", "fine", "good"]) {
        return Some(Ok(RequestQuestion::Health { board: None }));
    }
    let asks = !boards && rest.iter().any(|token| went_by(token).is_some());
    asks.then(|| listed(rest))
}

/// "how did the last run go", "how did smoke.toml do on bench-3"
pub(super) fn went(tokens: &[Token]) -> Asked {
    let QuestionEnd { rest, board, since, until } = tail(tokens);
    let [about @ .., last] = rest else { return Err(texts(tokens)) };
    if !last.is(&["go", "do", "end", "finish"]) {
        return Err(texts(tokens));
    }
    let inner = tail(about);
    let board = board.or(inner.board);
    match run(inner.rest) {
        Some(run) if since.is_none() => Ok(RequestQuestion::Run { run, board }),
        Some(_) => Err(texts(tokens)),
        None => {
            let test = test_of(inner.rest).ok_or_else(|| texts(tokens))?;
            Ok(RequestQuestion::TestOutcome { test, board, since, until })
        }
    }
}

/// Reads of which run the log is asked for: "of the last run on bench-3".
pub(super) fn log(tokens: &[Token]) -> Option<RequestQuestion> {
    let of = ["of", "from", "for", "in"];
    // The id of a run is written like the name of a board.
    if let Some(run) = run(skip(tokens, &of)) {
        return Some(RequestQuestion::Log { run, board: None });
    }
    let QuestionEnd { rest, board, since, .. } = tail(tokens);
    let run = run(skip(rest, &of)).filter(|_| since.is_none())?;
    Some(RequestQuestion::Log { run, board })
}

/// Reads whether a board has power: "bench-3 on", "bench-3 powered", "the power of bench-3 off".
pub(super) fn asks_for_power(tokens: &[Token]) -> Option<RequestQuestion> {
    const AROUND: &[&str] = &[
        "the", "board", "place", "of", "at", "switched", "turned", "have", "has", "got", "still",
        "now", "any", "power", "powered", "on", "off",
    ];
    let about: Vec<&Token> = tokens.iter().filter(|token| !token.is(AROUND)).collect();
    let named = tokens.iter().any(|token| token.is(&["power", "powered"]));
    let switched = tokens.last()?.is(&["on", "off"]);
    let [one] = about.as_slice() else { return None };
    let is_name = names(std::slice::from_ref(*one), 0);
    let asks = (named || switched) && is_name;
    asks.then(|| RequestQuestion::Power { board: one.text.clone() })
}
