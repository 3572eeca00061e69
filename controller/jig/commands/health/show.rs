//! The health of places as text and as JSON.

use jig_lab::{ListedHealth, PlacePast};
use jig_model::protocol::CheckReport;
use jig_rig::health::{Figures, HealthState, PlaceHealth};
use serde_json::{Value, json};

use super::{HealthRow, Looked};
use crate::render::{Screen, Style, TextTable, one_line, seconds};

/// Longest reason in a table, in characters; `-b` shows all of it.
const SHORT: usize = 60;

/// Shows the places. With one that was asked for by name, everything about it.
///
/// JSON: `{"places":[{"place","board","state","since","why","passes_needed","passes","failures",
/// "clears","in_use","checks":[{"check","ok","detail"}],"figures":{"first","runs","passed",
/// "served","recoveries","recovered","flash_ms_median","gaps","overruns","success_rate","recoveries_per_day"},
/// "history":[{"seq","at","state","event"}]}]}`; what was not asked for is null.
pub(super) fn show(screen: &Screen, rows: &[HealthRow], named: bool, now: jiff::Timestamp) {
    if screen.json() {
        let places: Vec<Value> = rows.iter().map(|row| as_json(row, now)).collect();
        screen.out_json(&json!({ "places": places }));
        return;
    }
    let mut table = TextTable::new(&["PLACE", "HEALTH", "SINCE (UTC)", "WHY", "WHAT CLEARS IT"]);
    for row in rows {
        let (health, name) = (&row.place.health, &row.place.place);
        let why = one_line(&health.why);
        let why = match why.char_indices().nth(SHORT) {
            Some((at, _)) if !named => format!("{}...", &why[..at]),
            _ => why,
        };
        table.row([
            (name.to_string(), Some(Style::Bold)),
            (health.state.to_string(), Some(style(health.state))),
            (health.since.map_or_else(|| "-".to_owned(), when), None),
            (if why.is_empty() { "-".to_owned() } else { why }, None),
            (clears(health, name.as_str()).unwrap_or_else(|| "-".to_owned()), None),
        ]);
    }
    screen.out(&table.text(screen.out_paint()));
    for row in rows {
        match &row.looked {
            Looked::No => {}
            Looked::InUse(who) => screen.say(&format!("not checked: {}", one_line(who))),
            Looked::At(seen) => show_checks(screen, row, seen, named),
        }
        if let Some(past) = &row.place.past
            && (named || !past.history.is_empty())
        {
            show_past(screen, row, past, now);
        }
    }
}

/// Returns how a state stands out.
pub(crate) fn style(state: HealthState) -> Style {
    match state {
        HealthState::Healthy => Style::Good,
        HealthState::Suspect => Style::Warn,
        HealthState::Unhealthy | HealthState::Quarantined => Style::Bad,
    }
}

fn when(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Says what makes a place healthy again.
fn clears(health: &PlaceHealth, place: &str) -> Option<String> {
    let passes = match health.passes_needed {
        1 => "1 pass".to_owned(),
        n => format!("{n} passes in a row"),
    };
    Some(match health.state {
        HealthState::Healthy => return None,
        HealthState::Suspect => format!("{passes}: jig health -b {place} --check"),
        HealthState::Unhealthy | HealthState::Quarantined => {
            format!("{passes}: jig recover -b {place}")
        }
    })
}

/// Shows what failed; of a place that was asked for, also what passed.
fn show_checks(screen: &Screen, row: &HealthRow, seen: &[CheckReport], named: bool) {
    let paint = screen.out_paint();
    for report in seen.iter().filter(|report| named || !report.ok) {
        let word = if report.ok {
            paint.paint(Style::Good, "ok    ")
        } else {
            paint.paint(Style::Bad, "FAILED")
        };
        let whose = if named { String::new() } else { format!("{}: ", row.place.place) };
        let words = one_line(&format!("{whose}{}: {}", report.check, report.detail));
        screen.out(&format!("{word} {words}"));
    }
}

fn show_past(screen: &Screen, row: &HealthRow, past: &PlacePast, now: jiff::Timestamp) {
    let PlacePast { figures, history } = past;
    screen.out(&format!("{}, last 30 days: {}", row.place.place, in_words(figures, now)));
    if history.is_empty() {
        return;
    }
    let mut table = TextTable::new(&["WHEN (UTC)", "HEALTH", "WHAT"]);
    for entry in history {
        table.row([
            (when(entry.at), Some(Style::Dim)),
            (entry.state.to_string(), Some(style(entry.state))),
            (one_line(&entry.event.words()), None),
        ]);
    }
    screen.out(&table.text(screen.out_paint()));
}

fn in_words(figures: &Figures, now: jiff::Timestamp) -> String {
    let counted = |count: u64, one: &str| match count {
        1 => format!("1 {one}"),
        n => format!("{n} {one}s"),
    };
    let mut words = counted(figures.runs, "run");
    if let Some(rate) = figures.success_rate() {
        words.push_str(&format!(
            ", {:.1} % of them not spoiled by the rig, {} passed",
            rate * 100.0,
            figures.passed
        ));
    }
    words.push_str(&format!("; {}", counted(figures.recoveries, "recovery").replace("ys", "ies")));
    if figures.recoveries > 0 {
        words.push_str(&format!(", {} recovered", figures.recovered));
        if let Some(rate) = figures.recoveries_per_day(now) {
            words.push_str(&format!(", {rate:.1} a day"));
        }
    }
    if let Some(ms) = figures.flash_ms_median {
        words.push_str(&format!("; image on the board in {} (median)", seconds(ms)));
    }
    words.push_str(&format!("; output lost {}", counted(figures.gaps, "time")));
    if figures.overruns > 0 {
        words.push_str(&format!(" ({})", counted(figures.overruns, "overrun")));
    }
    words
}

fn as_json(row: &HealthRow, now: jiff::Timestamp) -> Value {
    let HealthRow { place: ListedHealth { place, board, health, past }, looked } = row;
    let (checks, in_use) = match looked {
        Looked::No => (None, None),
        Looked::InUse(who) => (None, Some(who)),
        Looked::At(seen) => (Some(seen), None),
    };
    let figures = past.as_ref().map(|PlacePast { figures, .. }| {
        let mut value = json!(figures);
        value["success_rate"] = json!(figures.success_rate());
        value["recoveries_per_day"] = json!(figures.recoveries_per_day(now));
        value
    });
    json!({
        "place": place,
        "board": board,
        "state": health.state,
        "since": health.since,
        "why": health.why,
        "passes_needed": health.passes_needed,
        "passes": health.passes,
        "failures": health.failures,
        "clears": clears(health, place.as_str()),
        "in_use": in_use,
        "checks": checks,
        "figures": figures,
        "history": past.as_ref().map(|past| &past.history),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Figures {
        Figures {
            first: None,
            runs: 0,
            passed: 0,
            served: 0,
            recoveries: 0,
            recovered: 0,
            flash_ms_median: None,
            gaps: 0,
            overruns: 0,
        }
    }

    #[test]
    fn figures_are_said_in_one_line() {
        let now = jiff::Timestamp::from_second(1_700_000_000).unwrap();
        assert_eq!(in_words(&figures(), now), "0 runs; 0 recoveries; output lost 0 times");
        let busy = Figures {
            first: Some(jiff::Timestamp::from_second(1_700_000_000 - 4 * 86_400).unwrap()),
            runs: 8,
            passed: 5,
            served: 7,
            recoveries: 1,
            recovered: 1,
            flash_ms_median: Some(1500),
            gaps: 1,
            overruns: 1,
        };
        assert_eq!(
            in_words(&busy, now),
            "8 runs, 87.5 % of them not spoiled by the rig, 5 passed; 1 recovery, 1 recovered, 0.2 a \
             day; image on the board in 1.50 s (median); output lost 1 time (1 overrun)"
        );
    }

    #[test]
    fn each_state_says_what_to_type() {
        let mut health = PlaceHealth::unknown_to_anybody();
        assert_eq!(clears(&health, "b"), None);
        health.state = HealthState::Suspect;
        health.passes_needed = 1;
        assert_eq!(clears(&health, "b").unwrap(), "1 pass: jig health -b b --check");
        health.state = HealthState::Quarantined;
        health.passes_needed = 3;
        assert_eq!(clears(&health, "b").unwrap(), "3 passes in a row: jig recover -b b");
    }
}
