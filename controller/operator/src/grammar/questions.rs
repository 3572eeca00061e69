//! Questions: sentences that begin with a word that asks, and lead to steps that only read.

use super::lex::Token;
use super::outcomes::{self, FAILS};
use super::parts::{QuestionEnd, run, skip, tail, test_name, texts};
use super::request::{RequestQuestion, RunName, RunsWanted};
use super::vocabulary::{names, starts_with};

type Asked = Result<RequestQuestion, Vec<String>>;

/// Reads a question; nothing where the words are none. An error lists the words that are not understood:
/// what begins like a question is never taken for something to be done.
pub(super) fn question(tokens: &[Token]) -> Option<Asked> {
    let first = tokens.first()?;
    let rest = &tokens[1..];
    let one_of = |words: &[&str]| first.is(words);
    Some(match () {
        () if one_of(&["why"]) => why(rest),
        () if one_of(&["explain", "diagnose"]) => explained(rest),
        () if one_of(&["compare", "diff"]) => compared(rest),
        () if one_of(&["bisect"]) => bisect(rest),
        () if one_of(&["search", "find", "lookup"]) => search(skip(rest, &["for", "out", "about"])),
        () if one_of(&["health"]) => health(skip(rest, &["of", "for"])),
        () if one_of(&["runs"]) => outcomes::runs(rest),
        () if one_of(&["status", "state"]) => health(skip(rest, &["of", "for"])),
        () if one_of(&["failures", "failed", "failing"]) || any_failures(tokens) => {
            outcomes::listed(tokens)
        }
        () if one_of(&["free", "available", "idle"]) => boards(tokens),
        () if one_of(&["show", "list", "print", "display", "tell", "read", "give"]) => show(rest),
        () if one_of(&["console", "open", "tail"]) => {
            console(if one_of(&["console"]) { tokens } else { rest })
        }
        () if one_of(&["which", "what", "who", "when", "since", "how", "is", "are", "has"]) => {
            asked(tokens)
        }
        () if one_of(&["was", "were", "does", "do", "did", "have"]) => outcomes::outcome(tokens),
        () if starts_with(tokens, &["can", "i", "use"]) => boards(&tokens[3..]),
        () if one_of(&[
            "whose", "where", "should", "shall", "may", "must", "can", "could", "would", "will",
            "whether", "if", "what's", "how's", "who's",
        ]) =>
        {
            Err(texts(tokens))
        }
        () => return None,
    })
}

/// Tells whether some words ask for any failures: "any failures today".
fn any_failures(tokens: &[Token]) -> bool {
    let behind = tokens.get(1);
    tokens.first().is_some_and(|token| token.is(&["any"]))
        && behind.is_some_and(|token| token.is(&["failure", "failures", "failed", "failing"]))
}

/// "why did RUN fail", "why does TEST fail on BOARD since WHEN"
fn why(tokens: &[Token]) -> Asked {
    let auxiliaries = ["did", "does", "do", "is", "was", "has", "are", "were", "have"];
    let rest =
        if tokens.first().is_some_and(|t| t.is(&auxiliaries)) { &tokens[1..] } else { tokens };
    let QuestionEnd { rest, board, since, until } = tail(rest);
    let end = rest.iter().rposition(|token| token.is(FAILS)).ok_or_else(|| texts(tokens))?;
    if end + 1 != rest.len() {
        return Err(texts(&rest[end + 1..]));
    }
    let mut about = skip(&rest[..end], &[]);
    // "why does it start failing", "why has the test been failing"
    let links = ["start", "started", "begin", "began", "been", "keep", "keeps", "now", "always"];
    while about.last().is_some_and(|token| token.is(&links)) {
        about = &about[..about.len() - 1];
    }
    // "why did the last run on bench-3 fail"
    let QuestionEnd { rest: inner, board: inner_board, since: inner_since, .. } = tail(about);
    let board = board.or(inner_board);
    let since = since.or(inner_since);
    if let Some(run) = run(inner).or_else(|| inner.is_empty().then_some(RunName::Last)) {
        return Ok(RequestQuestion::WhyRun { run, board });
    }
    // "why is everything red today": what failed is listed.
    if inner
        .iter()
        .all(|token| token.is(&["everything", "anything", "all", "the", "tests", "runs"]))
    {
        let only = Some(RunsWanted::Failed);
        return Ok(RequestQuestion::Runs { board, since, until, only });
    }
    let test = test_name(inner)?;
    Ok(RequestQuestion::WhyTest { test, board, since })
}

/// "explain the last run", "explain RUN"
fn explained(tokens: &[Token]) -> Asked {
    let QuestionEnd { rest, board, .. } = tail(tokens);
    let rest = skip(rest, &["failure", "of", "why", "what", "happened", "in"]);
    let run = run(rest).or_else(|| rest.is_empty().then_some(RunName::Last));
    run.map(|run| RequestQuestion::WhyRun { run, board }).ok_or_else(|| texts(tokens))
}

/// "compare A and B"
fn compared(tokens: &[Token]) -> Asked {
    let tokens = skip(tokens, &["runs", "run", "between"]);
    if starts_with(tokens, &["last", "two"]) && skip(&tokens[2..], &["runs"]).is_empty() {
        let (before, after) = (RunName::Previous, RunName::Last);
        return Ok(RequestQuestion::Compare { before, after });
    }
    let between = tokens.iter().position(|token| token.is(&["and", "with", "to", "against"]));
    let (first, second) = match between {
        Some(n) => (&tokens[..n], &tokens[n + 1..]),
        None if tokens.len() == 2 => tokens.split_at(1),
        None => return Err(texts(tokens)),
    };
    match (run(first), run(second)) {
        // The older one is the one that is compared with: a person may name them in either order.
        (Some(after @ RunName::Last), Some(before)) => {
            Ok(RequestQuestion::Compare { before, after })
        }
        (Some(before), Some(after)) => Ok(RequestQuestion::Compare { before, after }),
        _ => Err(texts(tokens)),
    }
}

/// "bisect TEST on BOARD"
fn bisect(tokens: &[Token]) -> Asked {
    let QuestionEnd { rest, board, .. } = tail(tokens);
    Ok(RequestQuestion::Bisect { test: test_name(rest)?, board })
}

fn search(tokens: &[Token]) -> Asked {
    let words = texts(tokens).join(" ");
    if words.is_empty() { Err(texts(tokens)) } else { Ok(RequestQuestion::Knowledge { words }) }
}

/// "health", "health of bench-3"
fn health(tokens: &[Token]) -> Asked {
    let tokens = skip(tokens, &["all", "every", "board", "boards", "place", "places", "rig", "of"]);
    match tokens {
        [] => Ok(RequestQuestion::Health { board: None }),
        [one] if names(tokens, 0) => Ok(RequestQuestion::Health { board: Some(one.text.clone()) }),
        all => Err(texts(all)),
    }
}

/// "free nrf52 boards", "boards"
fn boards(tokens: &[Token]) -> Asked {
    let (mut board, mut free) = (None, false);
    for (n, token) in tokens.iter().enumerate() {
        if token.is(&["free", "available", "idle", "unused"]) {
            free = true;
        } else if token.is(&[
            "board", "boards", "place", "places", "are", "is", "there", "all", "the", "do", "we",
            "have", "now", "right", "one", "ones",
        ]) {
        } else if names(tokens, n) && board.is_none() {
            board = Some(token.text.clone());
        } else {
            return Err(vec![token.text.clone()]);
        }
    }
    Ok(RequestQuestion::Boards { board, free })
}

/// "the console of bench-3", "console bench-3"
fn console(tokens: &[Token]) -> Asked {
    let words = ["console", "output", "serial", "log", "of", "on", "at", "from", "last", "lines"];
    let tokens = skip(tokens, &words);
    match tokens {
        [] => Ok(RequestQuestion::Console { board: None }),
        [one] if names(tokens, 0) => Ok(RequestQuestion::Console { board: Some(one.text.clone()) }),
        all => Err(texts(all)),
    }
}

/// "show ...", "list ..."
fn show(tokens: &[Token]) -> Asked {
    let rest = skip(tokens, &["all", "about"]);
    let Some(first) = rest.first() else { return Err(texts(tokens)) };
    match () {
        () if first.is(&["runs"]) => outcomes::runs(&rest[1..]),
        () if first.is(&["last", "latest", "recent", "newest"])
            && rest.get(1).is_some_and(|token| token.is(&["runs"])) =>
        {
            outcomes::runs(&rest[2..])
        }
        () if first.is(&["failures", "failed", "failing", "passed", "any", "everything"]) => {
            outcomes::listed(rest)
        }
        () if first.is(&["health", "status", "state"]) => health(skip(&rest[1..], &["of", "for"])),
        () if first.is(&["log", "logs", "output", "timeline"])
            && outcomes::log(&rest[1..]).is_some() =>
        {
            outcomes::log(&rest[1..]).ok_or_else(|| texts(rest))
        }
        () if first.is(&["console", "output", "serial"]) => console(rest),
        () if first.is(&["board", "boards", "place", "places", "free", "available", "idle"]) => {
            boards(rest)
        }
        () => {
            let of = ["result", "results", "of", "run"];
            let QuestionEnd { rest: named, board, .. } = tail(rest);
            // The id of a run is written like the name of a board.
            let whole = run(skip(rest, &of)).map(|run| (run, None));
            match whole.or_else(|| run(skip(named, &of)).map(|run| (run, board))) {
                Some((run, board)) => Ok(RequestQuestion::Run { run, board }),
                // "show bench-3"
                None if rest.len() == 1 && names(rest, 0) => health(rest),
                None => Err(texts(rest)),
            }
        }
    }
}

/// "which ...", "what ...", "who ...", "when ...", "how ...", "is ..."
fn asked(tokens: &[Token]) -> Asked {
    let rest = &tokens[1..];
    let begins = |words: &[&str]| starts_with(tokens, words);
    if begins(&["what", "changed", "between"]) {
        return compared(&tokens[3..]);
    }
    if begins(&["what", "is", "the", "difference", "between"]) {
        return compared(&tokens[5..]);
    }
    if begins(&["what", "happened"]) || begins(&["what", "went", "wrong"]) {
        let behind = if tokens[1].is(&["went"]) { &tokens[3..] } else { &tokens[2..] };
        let QuestionEnd { rest, since, .. } = tail(behind);
        // "what happened on bench-3 since yesterday"
        if rest.is_empty() && since.is_some() {
            return outcomes::runs(behind);
        }
        return explained(skip(behind, &["in", "with", "to", "during"]));
    }
    let know: &[&[&str]] =
        &[&["what", "do", "we", "know"], &["what", "is", "known"], &["what", "do", "you", "know"]];
    if let Some(opening) = know.iter().find(|opening| begins(opening)) {
        return search(skip(&tokens[opening.len()..], &["about", "of", "on"]));
    }
    if begins(&["which", "run", "broke"]) {
        return bisect(&tokens[3..]);
    }
    if begins(&["when", "did"]) || begins(&["since", "when"]) {
        let QuestionEnd { rest, board, .. } = tail(&tokens[2..]);
        let rest = skip(rest, &["does", "did", "has", "is"]);
        let words =
            ["start", "begin", "break", "failing", "fail", "fails", "to", "been", "started"];
        let end = rest.iter().position(|token| token.is(&words)).ok_or_else(|| texts(tokens))?;
        if let Some(odd) = rest[end..].iter().find(|token| !token.is(&words)) {
            return Err(vec![odd.text.clone()]);
        }
        return Ok(RequestQuestion::Bisect { test: test_name(&rest[..end])?, board });
    }
    let well = ["healthy", "ok", "okay", "well", "fine", "doing", "good", "broken", "alive"];
    if begins(&["how", "many"]) {
        return outcomes::listed(&tokens[2..]);
    }
    if begins(&["how", "did"]) {
        return outcomes::went(&tokens[2..]);
    }
    if tokens[0].is(&["how"]) {
        let rest = skip(rest, &["is", "are", "healthy"]);
        let rest =
            if rest.last().is_some_and(|t| t.is(&well)) { &rest[..rest.len() - 1] } else { rest };
        return health(rest);
    }
    if tokens[0].is(&["is", "are", "has"]) {
        let free = ["free", "available", "idle", "used", "busy", "taken"];
        return match rest {
            _ if outcomes::asks_for_power(rest).is_some() => {
                outcomes::asks_for_power(rest).ok_or_else(|| texts(rest))
            }
            // "is anything broken"
            [what, last]
                if what.is(&["anything", "something"]) && last.is(&["broken", "wrong"]) =>
            {
                health(&[])
            }
            [head @ .., last] if last.is(&well) => {
                health(head).or_else(|_| outcomes::outcome(tokens))
            }
            [head @ .., last] if last.is(&free) => {
                // The answer to whether a board is free names its user, too.
                boards(skip(head, &["in"])).map(|asked| match asked {
                    RequestQuestion::Boards { board, .. } => {
                        RequestQuestion::Boards { board, free: false }
                    }
                    other => other,
                })
            }
            _ => outcomes::outcome(tokens),
        };
    }
    if tokens[0].is(&["who"]) {
        return match rest.split_first() {
            Some((verb, behind)) if verb.is(&["has", "uses", "holds", "is", "owns"]) => {
                boards(skip(behind, &["using", "on", "holding"]))
            }
            _ => Err(texts(rest)),
        };
    }
    if tokens[0].is(&["which", "what"]) {
        if let Some(asked) = outcomes::what(rest) {
            return asked;
        }
        let runs_asked = rest.iter().any(|token| token.is(&["runs"]));
        if runs_asked {
            let from = rest.iter().position(|token| token.is(&["runs"])).unwrap_or_default();
            return outcomes::runs(skip(&rest[from + 1..], &["are", "there", "were", "ran"]));
        }
        return boards(skip(rest, &["of"]));
    }
    Err(texts(tokens))
}
