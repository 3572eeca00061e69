//! `jig runs list`.

use jig_lab::{BrokenRecord, RecordTrouble, RigQuery, RigView, RunPage, RunStanding, RunSummary};
use jig_model::exit;
use serde_json::{Value, json};

use crate::args::Common;
use crate::commands::execute::unexpected;
use crate::commands::rig::{named_elsewhere, seen, stopped};
use crate::commands::runtime::until_signalled;
use crate::failure::Failure;
use crate::render::{Screen, Style, TextTable, one_line, seconds, verdict_word};

/// Lists the runs, newest first.
///
/// JSON: `{"runs_dir","runs":[{"id","state","started","duration_ms","place","board","plan",
/// "verdict","cause","summary","error"}]}`; `state` is `running`, `killed`, `ended`,
/// `abandoned` or `broken`.
pub(super) fn list(common: &Common, screen: &Screen) -> Result<u8, Failure> {
    let RunPage { folder, runs, .. } = all(common)?;
    if screen.json() {
        let runs: Vec<Value> = runs.iter().map(as_json).collect();
        screen.out_json(&json!({ "runs_dir": folder, "runs": runs }));
        return Ok(exit::PASS);
    }
    if runs.is_empty() {
        let folder = one_line(&folder);
        screen.say(&format!("no runs yet in {folder}; begin with `jig run -b BOARD app.elf`"));
        return Ok(exit::PASS);
    }
    let mut table =
        TextTable::new(&["ID", "WHEN (UTC)", "PLACE", "PLAN", "VERDICT", "CAUSE", "TOOK"]);
    for run in &runs {
        table.row(row(run));
    }
    screen.out(&table.text(screen.out_paint()));
    Ok(exit::PASS)
}

/// Asks for one page after the other.
fn all(common: &Common) -> Result<RunPage, Failure> {
    let rig = named_elsewhere(common)?;
    until_signalled(async |cancel| {
        let mut all: Option<RunPage> = None;
        loop {
            let before = all.as_ref().and_then(|page| Some(page.runs.last()?.id.clone()));
            let query = RigQuery::Runs { before };
            let next = tokio::select! {
                seen = seen(rig.as_ref(), common, query) => seen?,
                () = cancel.cancelled() => return Err(stopped()),
            };
            let RigView::Runs(mut next) = next else { return Err(unexpected()) };
            // A page without runs is the last one, whatever it says.
            next.more &= !next.runs.is_empty();
            let more = next.more;
            match &mut all {
                None => all = Some(next),
                Some(all) => all.runs.extend(next.runs),
            }
            if let Some(all) = all.take_if(|_| !more) {
                return Ok(all);
            }
        }
    })
}

fn row(run: &RunSummary) -> Vec<(String, Option<Style>)> {
    let plain = |text: String| (text, None);
    let dash = |text: Option<String>| plain(text.map_or("-".into(), |text| one_line(&text)));
    let (id, standing) = (plain(run.id.to_string()), run.standing.as_str().to_owned());
    if let Some(broken) = &run.broken {
        let verdict = (standing, Some(Style::Bad));
        return vec![id, dash(None), dash(None), dash(None), verdict, plain(short(broken))];
    }
    let (verdict, cause) = match (run.verdict, run.standing) {
        (None, _) | (_, RunStanding::Running) => ((standing, Some(Style::Warn)), None),
        (Some(verdict), _) => {
            let (word, style) = verdict_word(verdict);
            ((word.to_owned(), Some(style)), run.cause.map(|cause| cause.to_string()))
        }
    };
    vec![
        id,
        dash(run.started.map(|at| at.strftime("%Y-%m-%d %H:%M:%S").to_string())),
        dash(run.place.as_ref().map(ToString::to_string)),
        dash(run.plan.as_ref().map(|plan| plan.name.clone())),
        verdict,
        dash(cause),
        dash(run.duration_ms.map(seconds)),
    ]
}

/// Says in a few words why a record cannot be read; `show` says all.
fn short(broken: &BrokenRecord) -> String {
    match broken.trouble {
        RecordTrouble::Newer(version) => format!("written by a newer jig (version {version})"),
        RecordTrouble::Damaged => "its record is damaged".to_owned(),
        RecordTrouble::Unreadable => "its record cannot be read".to_owned(),
    }
}

pub(crate) fn as_json(run: &RunSummary) -> Value {
    json!({
        "id": run.id,
        "state": run.standing,
        "started": run.started,
        "duration_ms": run.duration_ms,
        "place": run.place,
        "board": run.board,
        "plan": run.plan,
        "verdict": run.verdict,
        "cause": run.cause,
        "summary": run.summary,
        "error": run.broken.as_ref().map(|broken| &broken.words),
    })
}
