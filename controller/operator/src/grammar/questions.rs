//! Questions: sentences that begin with a word that asks, and lead to steps that only read.

use super::lex::Token;
use super::request::{RequestQuestion, RunName};
use super::vocabulary::{names, starts_with};
use super::when::SinceWord;

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
        () if one_of(&["runs"]) => runs(rest),
        () if one_of(&["free", "available", "idle"]) => boards(tokens),
        () if one_of(&["show", "list", "print", "display", "tell", "read", "give"]) => show(rest),
        () if one_of(&["console", "open", "tail"]) => {
            console(if one_of(&["console"]) { tokens } else { rest })
        }
        () if one_of(&["which", "what", "who", "when", "since", "how", "is", "are", "has"]) => {
            asked(tokens)
        }
        () if one_of(&[
            "whose", "where", "was", "were", "does", "do", "did", "should", "shall", "may", "must",
            "have", "can", "could", "would", "will", "whether", "if", "what's", "how's", "who's",
        ]) =>
        {
            Err(texts(tokens))
        }
        () => return None,
    })
}

fn texts(tokens: &[Token]) -> Vec<String> {
    tokens.iter().map(|token| token.text.clone()).collect()
}

/// Returns the words without those at the beginning that say nothing.
fn skip<'t>(mut tokens: &'t [Token], words: &[&str]) -> &'t [Token] {
    let articles = ["the", "a", "an", "me", "us", "my", "our"];
    while tokens.first().is_some_and(|token| token.is(words) || token.is(&articles)) {
        tokens = &tokens[1..];
    }
    tokens
}

/// Reads the end of a question: "on bench-3", "since yesterday", in whatever order. Returns what is left
/// in front of it.
fn tail(mut tokens: &[Token]) -> (&[Token], Option<String>, Option<SinceWord>) {
    let (mut board, mut since) = (None, None);
    for _ in 0..4 {
        let on = |token: &Token| token.is(&["on", "at", "of", "for"]);
        let len = tokens.len();
        let place = (0..len.saturating_sub(1)).rev().find(|&n| on(&tokens[n])).and_then(|n| {
            let behind = skip(&tokens[n + 1..], &["board", "place"]);
            (behind.len() == 1 && names(behind, 0)).then(|| (n, behind[0].text.clone()))
        });
        if let Some((n, name)) = place.filter(|_| board.is_none()) {
            board = Some(name);
            tokens = &tokens[..n];
            continue;
        }
        let time = (0..len).find_map(|n| {
            let begins = tokens[n].is(&["since", "in", "within", "from", "during", "for"]);
            let behind = if begins { skip(&tokens[n + 1..], &[]) } else { &tokens[n..] };
            let bare = tokens[n].is(&["today", "yesterday"]);
            let (found, words) = (begins || bare).then(|| SinceWord::read(behind)).flatten()?;
            (words == behind.len()).then_some((n, found))
        });
        if let Some((n, found)) = time.filter(|_| since.is_none()) {
            since = Some(found);
            tokens = &tokens[..n];
            continue;
        }
        break;
    }
    (tokens, board, since)
}

/// Reads the name of a run: an id, "last", "the last run", "previous one".
fn run(tokens: &[Token]) -> Option<RunName> {
    let tokens = skip(tokens, &["run"]);
    let (first, behind) = tokens.split_first()?;
    let named = match first.word.as_str() {
        _ if first.quoted => None,
        "last" | "latest" | "newest" | "it" | "that" => Some(RunName::Last),
        "previous" => Some(RunName::Previous),
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

/// "why did RUN fail", "why does TEST fail on BOARD since WHEN"
fn why(tokens: &[Token]) -> Asked {
    let auxiliaries = ["did", "does", "do", "is", "was", "has", "are", "were", "have"];
    let rest =
        if tokens.first().is_some_and(|t| t.is(&auxiliaries)) { &tokens[1..] } else { tokens };
    let (rest, board, since) = tail(rest);
    let fails = [
        "fail", "fails", "failed", "failing", "break", "breaks", "broke", "broken", "crash",
        "crashes", "crashed", "crashing", "hang", "hangs", "time", "red", "flaky",
    ];
    let end = rest.iter().rposition(|token| token.is(&fails)).ok_or_else(|| texts(tokens))?;
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
    let (inner, inner_board, inner_since) = tail(about);
    let board = board.or(inner_board);
    let since = since.or(inner_since);
    if let Some(run) = run(inner).or_else(|| inner.is_empty().then_some(RunName::Last)) {
        return Ok(RequestQuestion::WhyRun { run, board });
    }
    let test = test_name(inner)?;
    Ok(RequestQuestion::WhyTest { test, board, since })
}

/// Reads the name of a test: one word, or quoted words.
fn test_name(tokens: &[Token]) -> Result<String, Vec<String>> {
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

/// "explain the last run", "explain RUN"
fn explained(tokens: &[Token]) -> Asked {
    let (rest, board, _) = tail(tokens);
    let rest = skip(rest, &["failure", "of", "why", "what", "happened", "in"]);
    let run = run(rest).or_else(|| rest.is_empty().then_some(RunName::Last));
    run.map(|run| RequestQuestion::WhyRun { run, board }).ok_or_else(|| texts(tokens))
}

/// "compare A and B"
fn compared(tokens: &[Token]) -> Asked {
    let tokens = skip(tokens, &["runs", "run", "between"]);
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
    let (rest, board, _) = tail(tokens);
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

/// "runs on bench-3 since yesterday"
fn runs(tokens: &[Token]) -> Asked {
    let (rest, board, since) = tail(tokens);
    if rest.is_empty() { Ok(RequestQuestion::Runs { board, since }) } else { Err(texts(rest)) }
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
        () if first.is(&["runs"]) => runs(&rest[1..]),
        () if first.is(&["last", "latest", "recent", "newest"])
            && rest.get(1).is_some_and(|token| token.is(&["runs"])) =>
        {
            runs(&rest[2..])
        }
        () if first.is(&["health"]) => health(skip(&rest[1..], &["of", "for"])),
        () if first.is(&["console", "output", "serial"]) => console(rest),
        () if first.is(&["board", "boards", "place", "places", "free", "available", "idle"]) => {
            boards(rest)
        }
        () => {
            let named = skip(rest, &["result", "results", "of", "run"]);
            run(named).map(|run| RequestQuestion::Run { run }).ok_or_else(|| texts(rest))
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
        let (rest, board, _) = tail(&tokens[2..]);
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
    if tokens[0].is(&["how"]) {
        let rest = skip(rest, &["is", "are", "healthy"]);
        let rest =
            if rest.last().is_some_and(|t| t.is(&well)) { &rest[..rest.len() - 1] } else { rest };
        return health(rest);
    }
    if tokens[0].is(&["is", "are", "has"]) {
        let free = ["free", "available", "idle", "used", "busy", "taken"];
        return match rest {
            [head @ .., last] if last.is(&well) => health(head),
            [head @ .., last] if last.is(&free) => {
                // The answer to whether a board is free names its user, too.
                boards(skip(head, &["in"])).map(|asked| match asked {
                    RequestQuestion::Boards { board, .. } => {
                        RequestQuestion::Boards { board, free: false }
                    }
                    other => other,
                })
            }
            all => Err(texts(all)),
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
        let runs_asked = rest.iter().any(|token| token.is(&["runs"]));
        if runs_asked {
            let from = rest.iter().position(|token| token.is(&["runs"])).unwrap_or_default();
            return runs(skip(&rest[from + 1..], &["are", "there", "were", "ran"]));
        }
        return boards(skip(rest, &["of"]));
    }
    Err(texts(tokens))
}
