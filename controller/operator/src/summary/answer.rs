//! The answer to a question, out of what the tools have said. A field that is missing leaves out its line.

use jiff::Timestamp;
use serde_json::Value;

use super::text_of;
use crate::grammar::{RequestQuestion, RunsWanted, SinceWord, UserRequest};
use crate::planner::history;
use crate::session::Session;
use crate::tools::ToolResult;

/// Most items of a listing.
const MAX_ITEMS: usize = 20;

/// Answers a question; nothing for a request that acts.
pub(super) fn answer(session: &Session, request: &UserRequest) -> Vec<String> {
    let UserRequest::Ask { question } = request else { return Vec::new() };
    use RequestQuestion as Q;
    let result = |tool: &str| result_of(session, tool);
    let mut lines = Vec::new();
    match question {
        Q::WhyRun { .. } => explained(session, &mut lines),
        // The test was a board.
        Q::WhyTest { .. } if result("health").is_some() => {
            health(session, &mut lines);
            explained(session, &mut lines);
        }
        Q::WhyTest { test, board, since } => {
            turned(session, test, board.as_deref(), *since, &mut lines);
        }
        Q::Bisect { test, board } => turned(session, test, board.as_deref(), None, &mut lines),
        Q::Compare { .. } => compared(session, &mut lines),
        Q::Boards { board, free } => {
            let Some(found) = result("places") else { return lines };
            boards(session, found, board.as_deref(), *free, &mut lines);
        }
        Q::Health { .. } => health(session, &mut lines),
        Q::Runs { since, until, only, .. } => {
            let span = (moment(session, *since), moment(session, *until));
            runs(result("runs_list"), span, *only, &mut lines);
        }
        Q::Run { .. } => shown(result("runs_show"), &mut lines),
        Q::TestOutcome { test, .. } => {
            shown(result("runs_show"), &mut lines);
            if lines.is_empty() {
                let looked = session.context.runs.len();
                lines.push(format!(
                    "no run of {test} is among the {looked} newest runs that were looked at"
                ));
            }
        }
        Q::Log { .. } => {
            let text = |line: &Value| line.as_str().map(str::to_owned);
            lines.extend(items(result("runs_log"), "lines").filter_map(text));
            if lines.is_empty() {
                lines.push("the log of the run is empty".to_owned());
            }
        }
        Q::Power { board } => {
            let Some(found) = result("power_status") else { return lines };
            let place = text_of(&found.data, "/place").unwrap_or_else(|| board.clone());
            let state = text_of(&found.data, "/state");
            lines.push(match state {
                Some(state) => format!("the power of {place} is {state}"),
                None => format!("nothing can tell whether {place} has power"),
            });
            let user = text_of(&found.data, "/in_use_by");
            lines.extend(user.map(|user| format!("used by {user}")));
        }
        Q::Console { .. } => {
            let Some(found) = result("console") else { return lines };
            let text = found.text.clone().or_else(|| text_of(&found.data, "/text"));
            let text = text.unwrap_or_default();
            let all: Vec<&str> = text.lines().collect();
            let from = all.len().saturating_sub(MAX_ITEMS);
            lines.extend(all[from..].iter().map(|line| (*line).to_owned()));
            if lines.is_empty() {
                lines.push("the console printed nothing of late".to_owned());
            }
        }
        Q::Knowledge { .. } => {
            known(session, &mut lines);
            if lines.is_empty() {
                lines.push("nothing is known of it".to_owned());
            }
        }
    }
    lines
}

/// Returns the last result of a step that called a tool.
fn result_of<'s>(session: &'s Session, tool: &str) -> Option<&'s ToolResult> {
    let calls = session.calls.iter().rev();
    let of_step =
        |record: &&crate::session::CallRecord| record.step.is_some() && record.call.name == tool;
    calls.filter(of_step).find_map(|record| record.result.as_ref().ok())
}

/// Returns the members of a list, as many as an answer shows.
fn items<'r>(result: Option<&'r ToolResult>, name: &str) -> impl Iterator<Item = &'r Value> {
    every(result, name).take(MAX_ITEMS)
}

/// Returns all members of a list.
fn every<'r>(result: Option<&'r ToolResult>, name: &str) -> impl Iterator<Item = &'r Value> {
    let list = result.and_then(|result| match &result.data {
        Value::Array(items) => Some(items),
        data => data.get(name).and_then(Value::as_array),
    });
    list.into_iter().flatten()
}

fn moment(session: &Session, since: Option<SinceWord>) -> Option<Timestamp> {
    since.map(|since| since.moment(session.context.now))
}

/// Lists runs of a time that went as asked, and says how many are left out.
fn runs(
    found: Option<&ToolResult>,
    (since, until): (Option<Timestamp>, Option<Timestamp>),
    only: Option<RunsWanted>,
    lines: &mut Vec<String>,
) {
    let at = |run: &Value| text_of(run, "/started").and_then(|at| at.parse::<Timestamp>().ok());
    let in_time = |run: &&Value| {
        let at = at(run);
        since.is_none_or(|since| at.is_some_and(|at| at >= since))
            && until.is_none_or(|until| at.is_some_and(|at| at < until))
    };
    let wanted = |run: &&Value| {
        let verdict = text_of(run, "/verdict");
        match only {
            None => true,
            Some(RunsWanted::Passed) => verdict.as_deref() == Some("pass"),
            // One that has no verdict yet did not fail.
            Some(RunsWanted::Failed) => verdict.is_some_and(|verdict| verdict != "pass"),
        }
    };
    let all: Vec<&Value> = every(found, "runs").collect();
    let kept: Vec<&Value> = all.iter().copied().filter(in_time).filter(wanted).collect();
    lines.extend(kept.iter().take(MAX_ITEMS).map(|run| run_line(run)));
    match kept.len() {
        0 => lines.push(match only {
            Some(RunsWanted::Failed) => "no run failed".to_owned(),
            Some(RunsWanted::Passed) => "no run passed".to_owned(),
            None => "no runs".to_owned(),
        }),
        more if more > MAX_ITEMS => lines.push(format!("and {} more", more - MAX_ITEMS)),
        _ => {}
    }
    let more = found.is_some_and(|found| found.data["more"] == true);
    // Older runs were not listed, though they may be of this time, too.
    if more && all.last().is_some_and(in_time) {
        lines.push(format!("only the {} newest runs were looked at", all.len()));
    }
}

/// Tells what a run came to.
fn shown(found: Option<&ToolResult>, lines: &mut Vec<String>) {
    let Some(found) = found else { return };
    let record = found.data.get("record").unwrap_or(&found.data);
    let word = |at: &str| text_of(record, at);
    if let (Some(id), Some(summary)) = (word("/id"), word("/verdict/summary")) {
        let kind = word("/verdict/kind").unwrap_or_default();
        lines.push(format!("{id}: {kind}: {summary}"));
    }
    let cause =
        word("/verdict/cause").filter(|_| word("/verdict/kind").is_none_or(|kind| kind != "pass"));
    lines.extend(cause.map(|cause| format!("cause: {cause}")));
}

fn run_line(run: &Value) -> String {
    let word = |at: &str| text_of(run, at).unwrap_or_default();
    let summary = word("/summary");
    let about = if summary.is_empty() { word("/state") } else { summary };
    format!("{} {} on {}: {about}", word("/id"), word("/verdict"), word("/place"))
}

fn health(session: &Session, lines: &mut Vec<String>) {
    for place in items(result_of(session, "health"), "places") {
        let name = text_of(place, "/place").unwrap_or_default();
        let state = text_of(place, "/state").or_else(|| text_of(place, "/health/state"));
        let why = text_of(place, "/why").or_else(|| text_of(place, "/health/why"));
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        lines.push(format!("{name} is {}{why}", state.unwrap_or_else(|| "unknown".into())));
    }
}

fn explained(session: &Session, lines: &mut Vec<String>) {
    let Some(found) = result_of(session, "explain") else { return };
    let data = &found.data;
    let word = |at: &str| text_of(data, at);
    if let (Some(run), Some(summary)) = (word("/run"), word("/summary")) {
        lines.push(format!("{run}: {summary}"));
    }
    if let Some(cause) = word("/cause") {
        let blame = match word("/blame").as_deref() {
            Some("lab") => "; the rig is to blame, this says nothing about the target".to_owned(),
            Some(blame) => format!("; the {blame} is to blame"),
            None => String::new(),
        };
        lines.push(format!("cause: {cause}{blame}"));
    }
    if word("/verdict").as_deref() == Some("pass") {
        lines.push("it did not fail".to_owned());
        return;
    }
    lines.extend(word("/first_bad_line").map(|line| format!("first bad line: {line}")));
    for evidence in data.get("evidence").and_then(Value::as_array).into_iter().flatten().take(3) {
        let file = text_of(evidence, "/file").unwrap_or_default();
        let range = text_of(evidence, "/start").zip(text_of(evidence, "/end"));
        let range = range.map(|(start, end)| format!(" @{start}..{end}")).unwrap_or_default();
        lines.push(format!("evidence: {file}{range}"));
    }
    let alike = data.get("same_signature").and_then(Value::as_array).map_or(0, Vec::len);
    if let Some(seen) = word("/earlier_runs") {
        lines.push(format!("it failed the same way in {alike} of {seen} earlier runs there"));
    }
    lines.extend(word("/last_pass").map(|run| format!("the last pass there: {run}")));
    known(session, lines);
}

/// Tells what the lab has learnt; where that does not answer, what runs have printed with the same words.
fn known(session: &Session, lines: &mut Vec<String>) {
    for hit in items(result_of(session, "runs_search"), "hits").take(3) {
        let word = |at: &str| text_of(hit, at).unwrap_or_default();
        let (run, place, file) = (word("/run"), word("/place"), word("/file"));
        lines.push(format!("seen in {run} on {place}: {} ({file})", word("/line")));
    }
    for hit in items(result_of(session, "knowledge_search"), "hits").take(3) {
        let word = |at: &str| text_of(hit, at);
        let (Some(id), Some(title)) = (word("/unit/id"), word("/unit/content/title")) else {
            continue;
        };
        let status = word("/unit/standing/status").unwrap_or_default();
        lines.push(format!("known, {status}: {title} (jig kb show {id})"));
    }
}

fn turned(
    session: &Session,
    test: &str,
    board: Option<&str>,
    since: Option<SinceWord>,
    lines: &mut Vec<String>,
) {
    let place = board.map(|name| {
        let answered = session.answers.get(&format!("board:{name}"));
        let name = answered.map_or(name, |answer| answer.trim());
        session.context.places_of(name).first().map_or(name, |place| *place)
    });
    let at = moment(session, since);
    let found = history(&session.context.runs, test, place, at);
    let of = place.map_or_else(String::new, |place| format!(" on {place}"));
    let Some(newest) = found.newest_failure else {
        let looked = found.looked_at;
        let within = at.map_or_else(String::new, |at| format!(" since {at}"));
        lines.push(format!(
            "no run of {test}{of} failed{within}; {looked} runs of it were looked at"
        ));
        return;
    };
    if let Some(first) = found.first_failure {
        lines.push(format!("{test} fails{of} since {} ({})", first.id, first.started));
    }
    lines.push(match found.last_pass {
        Some(pass) => format!("it passed last in {} ({})", pass.id, pass.started),
        None => "no earlier pass of it is recorded".to_owned(),
    });
    lines.push(format!("the newest failure: {}", newest.id));
    explained(session, lines);
    compared(session, lines);
}

fn compared(session: &Session, lines: &mut Vec<String>) {
    let Some(found) = result_of(session, "runs_compare") else { return };
    for run in ["before", "after"] {
        let word = |at: &str| text_of(&found.data, &format!("/{run}/{at}"));
        if let (Some(id), Some(summary)) = (word("run"), word("summary")) {
            lines.push(format!("{run}: {id}: {summary}"));
        }
    }
    let Some(changes) = found.data.get("changes").and_then(Value::as_array) else {
        lines.push("the answer does not tell how their tests differ".to_owned());
        return;
    };
    for case in changes.iter().take(MAX_ITEMS) {
        let word = |at: &str| text_of(case, at);
        let name = word("/name").unwrap_or_default();
        let status = |at: &str| word(at).unwrap_or_else(|| "not run".to_owned());
        lines.push(format!("{name}: {} -> {}", status("/old"), status("/new")));
    }
    if changes.is_empty() {
        lines.push("their tests do not differ".to_owned());
    }
}

fn boards(
    session: &Session,
    found: &ToolResult,
    wanted: Option<&str>,
    free: bool,
    lines: &mut Vec<String>,
) {
    let mut context = session.context.clone();
    context.learn_users(&found.data);
    let wanted = wanted.map(|name| {
        let answered = session.answers.get(&format!("board:{name}"));
        answered.map_or(name, |answer| answer.trim())
    });
    let places: Vec<&str> = match wanted {
        Some(name) => context.places_of(name),
        None => context.boards.keys().map(String::as_str).collect(),
    };
    for place in places {
        let board = &context.boards[place];
        let is_free = context.is_free(place);
        if free && !is_free {
            continue;
        }
        let user = board.used_by.as_ref().map(|user| format!("used by {user}"));
        let ill =
            board.health.as_ref().filter(|_| !is_free).map(|health| format!("it is {health}"));
        let state = user.or(ill).unwrap_or_else(|| "free".to_owned());
        lines.push(format!("{place} ({}): {state}", board.kind));
    }
    lines.truncate(2 * MAX_ITEMS);
    if lines.is_empty() {
        lines.push("no board of these is free".to_owned());
    }
}
