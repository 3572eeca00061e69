//! Plans of questions: steps that only read.

use jiff::Timestamp;
use serde_json::json;

use super::PlanningTask;
use super::steps::StepList;
use super::targets::place_of;
use crate::context::{KnownRun, SessionContext};
use crate::error::{OperatorCode, OperatorError};
use crate::grammar::{RequestQuestion, RunName, SinceWord};
use crate::plan::PlanDraft;

/// Longest question to the knowledge of the lab.
const MAX_QUESTION: usize = 300;

/// Plans the steps that answer a question.
pub(super) fn steps_of_question(
    question: &RequestQuestion,
    task: &PlanningTask<'_>,
) -> Result<PlanDraft, OperatorError> {
    let mut steps = StepList::default();
    let place = |name: &Option<String>| {
        name.as_ref().map(|name| place_of(name, task.context, task.answers)).transpose()
    };
    let summary = match question {
        RequestQuestion::WhyRun { run, board } => {
            let place = place(board)?;
            let run = run_of(run, place.as_deref(), task)?;
            explain(&mut steps, &run, task);
            format!("explain run {run}")
        }
        // "why is bench-3 broken" asks about a board that is called as a test could be.
        RequestQuestion::WhyTest { test, board: None, .. }
            if task.context.places_of(test).len() == 1 =>
        {
            let place = place_of(test, task.context, task.answers)?;
            let params = json!({ "place": place, "history": 5 });
            let name = format!("health of {place}");
            steps.add(name.clone(), "health", params, "state, reason and remedy", Vec::new());
            if let Ok(run) = run_of(&RunName::Last, Some(&place), task) {
                explain(&mut steps, &run, task);
            }
            name
        }
        RequestQuestion::WhyTest { test, board, since } => {
            let place = place(board)?;
            why_test(&mut steps, test, place.as_deref(), *since, task)
        }
        RequestQuestion::Bisect { test, board } => {
            let place = place(board)?;
            why_test(&mut steps, test, place.as_deref(), None, task)
        }
        RequestQuestion::Compare { before, after } => {
            let before = run_of(before, None, task)?;
            let after = run_of(after, None, task)?;
            let params = json!({ "before": before, "after": after });
            let name = format!("compare {before} with {after}");
            steps.add(name.clone(), "runs_compare", params, "which tests differ", Vec::new());
            name
        }
        RequestQuestion::Boards { .. } => {
            let name = "who uses which board".to_owned();
            steps.add(name.clone(), "places", json!({}), "the state of each place", Vec::new());
            name
        }
        RequestQuestion::Health { board } => {
            let place = place(board)?;
            let name = format!("health of {}", place.as_deref().unwrap_or("all places"));
            let params = place.map_or_else(|| json!({}), |place| json!({ "place": place }));
            steps.add(name.clone(), "health", params, "state, reason and remedy", Vec::new());
            name
        }
        RequestQuestion::Runs { board, .. } => {
            let place = place(board)?;
            let params = match place {
                Some(place) => json!({ "place": place, "limit": 100 }),
                None => json!({ "limit": 100 }),
            };
            steps.add("list runs".to_owned(), "runs_list", params, "the runs", Vec::new());
            "list runs".to_owned()
        }
        RequestQuestion::Run { run, board } => {
            let place = place(board)?;
            show(&mut steps, &run_of(run, place.as_deref(), task)?)
        }
        RequestQuestion::TestOutcome { test, board, since, until } => {
            let place = place(board)?;
            let span = (*since, *until);
            match last_run_of(task.context, test, place.as_deref(), span) {
                Some(run) => show(&mut steps, &run.id),
                None => no_run(&mut steps, test, place.as_deref()),
            }
        }
        RequestQuestion::Log { run, board } => {
            let place = place(board)?;
            let run = run_of(run, place.as_deref(), task)?;
            let name = format!("read the log of run {run}");
            let params = json!({ "run": run, "lines": 20 });
            steps.add(name.clone(), "runs_log", params, "its last lines", Vec::new());
            name
        }
        RequestQuestion::Power { board } => {
            let place = place_of(board, task.context, task.answers)?;
            let name = format!("ask whether {place} has power");
            let params = json!({ "place": place });
            steps.add(name.clone(), "power_status", params, "on or off", Vec::new());
            name
        }
        RequestQuestion::Console { board } => {
            let asked = board.clone().or_else(|| task.answers.get("board").cloned());
            let only = || task.context.boards.keys().next().cloned();
            let name = asked.or_else(only).unwrap_or_default();
            let place = place_of(&name, task.context, task.answers)?;
            let name = format!("read the console of {place}");
            let params = json!({ "place": place });
            steps.add(name.clone(), "console", params, "its last lines", Vec::new());
            name
        }
        RequestQuestion::Knowledge { words } => {
            let question: String = words.chars().take(MAX_QUESTION).collect();
            let params = json!({ "question": question });
            let name = "search what the lab has learnt".to_owned();
            steps.add(name.clone(), "knowledge_search", params, "what is known", Vec::new());
            name
        }
    };
    Ok(steps.drafted(summary))
}

/// Returns the id of a run that a request names.
fn run_of(
    run: &RunName,
    place: Option<&str>,
    task: &PlanningTask<'_>,
) -> Result<String, OperatorError> {
    let there = |run: &&KnownRun| place.is_none_or(|place| run.place == place);
    let nth = match run {
        RunName::Id(id) => return Ok(id.clone()),
        RunName::Last => 0,
        RunName::Previous => 1,
    };
    let mut ended = task.context.runs.iter().filter(there).filter(|run| !run.verdict.is_empty());
    ended.nth(nth).map(|run| run.id.clone()).ok_or_else(|| {
        let at = place.map_or_else(String::new, |place| format!(" on {place}"));
        OperatorError::new(OperatorCode::InvalidArgs, format!("there is no {run} run{at}"))
            .next("jig runs list")
            .untouched()
    })
}

/// Adds the step that shows a run.
fn show(steps: &mut StepList, run: &str) -> String {
    let name = format!("show run {run}");
    let params = json!({ "run": run });
    steps.add(name.clone(), "runs_show", params, "the record of the run", Vec::new());
    name
}

/// Adds the step that tells that there is no run of a test.
fn no_run(steps: &mut StepList, test: &str, place: Option<&str>) -> String {
    let params = match place {
        Some(place) => json!({ "place": place, "limit": 100 }),
        None => json!({ "limit": 100 }),
    };
    steps.add("list runs".to_owned(), "runs_list", params, "a run of it", Vec::new());
    format!("look for runs of {test}")
}

/// Finds the newest run of a test that has a verdict, or of a place of that name.
fn last_run_of<'r>(
    context: &'r SessionContext,
    test: &str,
    place: Option<&str>,
    (since, until): (Option<SinceWord>, Option<SinceWord>),
) -> Option<&'r KnownRun> {
    let there = |run: &&KnownRun| place.is_none_or(|place| run.place == place);
    let places = context.places_of(test);
    let of_test = |run: &&KnownRun| {
        let named = run.verdict != "pass" && mentions(&run.summary, test);
        is_of_plan(run, test) || named || places.contains(&run.place.as_str())
    };
    let (since, until) = (
        since.map(|since| since.moment(context.now)),
        until.map(|until| until.moment(context.now)),
    );
    let in_time = |run: &&KnownRun| {
        let at: Option<Timestamp> = run.started.parse().ok();
        since.is_none_or(|since| at.is_some_and(|at| at >= since))
            && until.is_none_or(|until| at.is_some_and(|at| at < until))
    };
    let ended = |run: &&KnownRun| !run.verdict.is_empty();
    context.runs.iter().filter(there).filter(ended).filter(of_test).find(in_time)
}

/// Tells whether a run is one of a plan, by its name or that of its file.
fn is_of_plan(run: &KnownRun, name: &str) -> bool {
    let file = run.plan_origin.rsplit('/').next().unwrap_or_default();
    let named = name.rsplit('/').next().unwrap_or_default();
    run.plan == name || file == named || file.strip_suffix(".toml") == Some(name)
}

/// Adds the steps that explain a run: its own evidence first, then what the lab knows of it.
fn explain(steps: &mut StepList, run: &str, task: &PlanningTask<'_>) {
    let params = json!({ "run": run });
    steps.add(
        format!("explain run {run}"),
        "explain",
        params,
        "cause, evidence, and whether it happened before",
        Vec::new(),
    );
    let known = task.context.runs.iter().find(|known| known.id == run);
    let Some(known) = known.filter(|known| !known.summary.is_empty()) else { return };
    // What a target printed is a question to an index, and nothing else.
    let question: String = known.summary.chars().take(MAX_QUESTION).collect();
    let params = json!({ "question": question, "limit": 3 });
    steps.add(
        "search what the lab has learnt".to_owned(),
        "knowledge_search",
        params,
        "cases like this one",
        Vec::new(),
    );
    steps.optional();
}

/// Runs of one test in the order in which they were made, and where it turned.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestHistory<'r> {
    /// The newest run that failed.
    pub(crate) newest_failure: Option<&'r KnownRun>,
    /// The first of the failures that go on until now.
    pub(crate) first_failure: Option<&'r KnownRun>,
    /// The last pass before that.
    pub(crate) last_pass: Option<&'r KnownRun>,
    /// How many runs of the test were looked at.
    pub(crate) looked_at: usize,
}

/// Finds where a test turned from pass to fail. A run is one of the test if its plan has the name, or if its
/// verdict names it; a pass names no test, so each pass of the same plan counts.
pub(crate) fn history<'r>(
    runs: &'r [KnownRun],
    test: &str,
    place: Option<&str>,
    since: Option<Timestamp>,
) -> TestHistory<'r> {
    let there = |run: &&KnownRun| place.is_none_or(|place| run.place == place);
    let named = |run: &KnownRun| run.verdict == "fail" && mentions(&run.summary, test);
    let mut plans: Vec<(&str, &str)> = Vec::new();
    for run in runs.iter().filter(there).filter(|run| named(run)) {
        plans.push((&run.plan, &run.plan_origin));
    }
    let relevant = |run: &&KnownRun| {
        let same_plan = || plans.contains(&(run.plan.as_str(), run.plan_origin.as_str()));
        is_of_plan(run, test) || named(run) || (run.verdict == "pass" && same_plan())
    };
    let mut found = TestHistory::default();
    for run in runs.iter().filter(there).filter(relevant) {
        found.looked_at += 1;
        match run.verdict.as_str() {
            "fail" | "flaky" => {
                let started: Option<Timestamp> = run.started.parse().ok();
                let recent = since.is_none_or(|since| started.is_some_and(|at| at >= since));
                if found.newest_failure.is_none() && !recent {
                    break;
                }
                found.newest_failure = found.newest_failure.or(Some(run));
                found.first_failure = Some(run);
            }
            "pass" if found.newest_failure.is_some() => {
                found.last_pass = Some(run);
                break;
            }
            // A newer pass: the test does not fail any more. Older failures still explain it. A failure of
            // the rig says nothing about the test.
            _ => {}
        }
    }
    found
}

/// Tells whether a text has a name as a whole word.
fn mentions(text: &str, name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(name).any(|(at, found)| {
        let before = text[..at].chars().next_back().is_some_and(word);
        let behind = text[at + found.len()..].chars().next().is_some_and(word);
        !before && !behind
    }) && !name.is_empty()
}

fn why_test(
    steps: &mut StepList,
    test: &str,
    place: Option<&str>,
    since: Option<SinceWord>,
    task: &PlanningTask<'_>,
) -> String {
    let since = since.map(|since| since.moment(task.context.now));
    let found = history(&task.context.runs, test, place, since);
    let Some(newest) = found.newest_failure else {
        let params = match place {
            Some(place) => json!({ "place": place, "limit": 100 }),
            None => json!({ "limit": 100 }),
        };
        steps.add("list runs".to_owned(), "runs_list", params, "no run of it failed", Vec::new());
        return format!("look for failed runs of {test}");
    };
    explain(steps, &newest.id, task);
    if let (Some(pass), Some(first)) = (found.last_pass, found.first_failure) {
        let params = json!({ "before": pass.id, "after": first.id });
        steps.add(
            format!("compare the last pass {} with the first failure {}", pass.id, first.id),
            "runs_compare",
            params,
            "which tests turned",
            Vec::new(),
        );
        steps.optional();
    }
    format!("find out since when and why {test} fails")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str, plan: &str, verdict: &str, summary: &str) -> KnownRun {
        KnownRun {
            id: id.to_owned(),
            place: "b".to_owned(),
            plan: plan.to_owned(),
            plan_origin: format!("tests/{plan}.toml"),
            verdict: verdict.to_owned(),
            summary: summary.to_owned(),
            started: format!("2026-11-{id}T00:00:00Z"),
            ..KnownRun::default()
        }
    }

    fn ids(history: &TestHistory<'_>) -> [String; 3] {
        let id = |run: Option<&KnownRun>| run.map_or_else(|| "-".to_owned(), |run| run.id.clone());
        [id(history.newest_failure), id(history.first_failure), id(history.last_pass)]
    }

    #[test]
    fn the_turn_of_a_test_is_found_among_other_runs() {
        let runs = [
            run("26", "smoke", "fail", "1 of 3 tests failed: test_boot"),
            run("25", "other", "fail", "test_boot_late failed"),
            run("24", "smoke", "env_error", "the probe is gone"),
            run("23", "smoke", "fail", "1 of 3 tests failed: test_boot"),
            run("22", "smoke", "pass", "3 tests passed"),
            run("21", "smoke", "fail", "1 of 3 tests failed: test_boot"),
        ];
        for name in ["test_boot", "smoke", "smoke.toml"] {
            assert_eq!(ids(&history(&runs, name, Some("b"), None)), ["26", "23", "22"], "{name}");
        }
        assert_eq!(ids(&history(&runs, "test_boot", Some("c"), None)), ["-", "-", "-"]);
        assert_eq!(ids(&history(&runs, "boot", None, None)), ["-", "-", "-"]);
        let since = "2026-11-27T00:00:00Z".parse().ok();
        assert_eq!(ids(&history(&runs, "smoke", None, since)), ["-", "-", "-"]);
    }
}
