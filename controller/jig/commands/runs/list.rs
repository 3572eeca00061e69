//! `jig runs list`.

use jig_model::exit;
use jig_rig::store::{RunEntry, RunState, RunStore, StoreError};
use serde_json::{Value, json};

use super::failed;
use crate::failure::{Failure, chain};
use crate::render::{Screen, Style, TextTable, one_line, seconds, verdict_word};

/// Lists the runs, newest first.
///
/// JSON: `{"runs_dir","runs":[{"id","state","started","duration_ms","place","board","plan",
/// "verdict","cause","summary","error"}]}`; `state` is `running`, `killed`, `ended`,
/// `abandoned` or `broken`.
pub(super) fn list(screen: &Screen, store: &RunStore) -> Result<u8, Failure> {
    let entries = store.list().map_err(|error| failed(&error))?;
    if screen.json() {
        let runs: Vec<Value> = entries.iter().map(as_json).collect();
        screen.out_json(&json!({ "runs_dir": store.root().display().to_string(), "runs": runs }));
        return Ok(exit::PASS);
    }
    if entries.is_empty() {
        let root = one_line(&store.root().display().to_string());
        screen.say(&format!("no runs yet in {root}; begin with `jig run -b BOARD app.elf`"));
        return Ok(exit::PASS);
    }
    let mut table =
        TextTable::new(&["ID", "WHEN (UTC)", "PLACE", "PLAN", "VERDICT", "CAUSE", "TOOK"]);
    for entry in &entries {
        table.row(row(entry));
    }
    screen.out(&table.text(screen.out_paint()));
    Ok(exit::PASS)
}

/// Says where a run stands; the lock knows better than the record.
pub(super) fn state(entry: &RunEntry) -> &'static str {
    match (&entry.record, entry.live) {
        (Err(_), false) => "broken",
        (_, true) => "running",
        (Ok(record), false) => match record.state {
            // The lock is free: its jig is dead, and its leftovers are not removed yet.
            RunState::Running => "killed",
            RunState::Ended => "ended",
            RunState::Abandoned => "abandoned",
        },
    }
}

fn row(entry: &RunEntry) -> Vec<(String, Option<Style>)> {
    let plain = |text: String| (text, None);
    let id = plain(entry.dir.id().to_string());
    let record = match &entry.record {
        Ok(record) => record,
        Err(error) => {
            let verdict = (state(entry).to_owned(), Some(Style::Bad));
            let dash = || plain("-".to_owned());
            return vec![id, dash(), dash(), dash(), verdict, plain(short(error))];
        }
    };
    let dash = |text: Option<String>| plain(text.map_or("-".into(), |text| one_line(&text)));
    let (verdict, cause) = match (&record.verdict, entry.live) {
        (Some(verdict), false) => {
            let (word, style) = verdict_word(verdict.kind);
            ((word.to_owned(), Some(style)), Some(verdict.cause.to_string()))
        }
        _ => ((state(entry).to_owned(), Some(Style::Warn)), None),
    };
    vec![
        id,
        dash(record.started.map(|at| at.strftime("%Y-%m-%d %H:%M:%S").to_string())),
        dash(record.place.as_ref().map(ToString::to_string)),
        dash(record.plan.as_ref().map(|plan| plan.name.clone())),
        verdict,
        dash(cause),
        dash(record.duration_ms.map(seconds)),
    ]
}

/// Says in a few words why a record cannot be read; `show` says all.
fn short(error: &StoreError) -> String {
    match error {
        StoreError::Newer { found, .. } => format!("written by a newer jig (version {found})"),
        StoreError::Damaged { .. } => "its record is damaged".to_owned(),
        _ => "its record cannot be read".to_owned(),
    }
}

fn as_json(entry: &RunEntry) -> Value {
    let record = entry.record.as_ref().ok();
    let verdict = record.and_then(|record| record.verdict.as_ref());
    json!({
        "id": entry.dir.id(),
        "state": state(entry),
        "started": record.and_then(|r| r.started),
        "duration_ms": record.and_then(|r| r.duration_ms),
        "place": record.and_then(|r| r.place.as_ref()),
        "board": record.and_then(|r| r.board.as_ref()),
        "plan": record.and_then(|r| r.plan.as_ref()),
        "verdict": verdict.map(|v| v.kind),
        "cause": verdict.map(|v| v.cause),
        "summary": verdict.map(|v| &v.summary),
        "error": entry.record.as_ref().err().map(|error| chain(error)),
    })
}
