//! `jig lease ls`.

use jiff::Timestamp;
use jig_model::exit;
use jig_model::lease::{LeaseAnswer, LeaseOrder, LeaseState, LeaseView, LeasedPlace};
use serde_json::json;

use crate::commands::execute::unexpected;
use crate::commands::rig::OpenRig;
use crate::commands::runtime::until_signalled;
use crate::failure::Failure;
use crate::render::{Screen, Style, TextTable, one_line, rest};

/// Shows places and queue.
///
/// JSON: `{"now","places":[{"place","board","usable","lease","in_use_by"}],"queue":[LEASE]}`.
pub(super) fn list(rig: &OpenRig, screen: &Screen) -> Result<u8, Failure> {
    let answer = until_signalled(async |_| rig.lease(LeaseOrder::List).await)?;
    let LeaseAnswer::List { now, places, queue } = answer else { return Err(unexpected()) };
    if screen.json() {
        screen.out_json(&json!({ "now": now, "places": places, "queue": queue }));
        return Ok(exit::PASS);
    }
    let mut table = TextTable::new(&["PLACE", "BOARD", "LEASED BY", "FOR", "LEASE", "NOW"]);
    for place in &places {
        table.row(row(place, now));
    }
    screen.out(&table.text(screen.out_paint()));
    if !queue.is_empty() {
        let mut table = TextTable::new(&["NEXT", "WHO", "CLASS", "WANTS", "WAITS", "LEASE"]);
        for (number, lease) in queue.iter().enumerate() {
            let plain = |text: String| (text, None);
            table.row([
                plain((number + 1).to_string()),
                plain(who(lease)),
                plain(lease.class.to_string()),
                plain(lease.need.to_string()),
                plain(rest(lease.asked, now)),
                plain(lease.id.to_string()),
            ]);
        }
        screen.out("");
        screen.out(&table.text(screen.out_paint()));
    }
    Ok(exit::PASS)
}

fn row(place: &LeasedPlace, now: Timestamp) -> Vec<(String, Option<Style>)> {
    let LeasedPlace { place, board, usable, lease, in_use_by } = place;
    let plain = |text: &str| (text.to_owned(), None);
    let mut cells = vec![plain(place.as_str()), plain(board.as_str())];
    match lease {
        Some(lease) => {
            let left = match &lease.state {
                LeaseState::Active { until, .. } => rest(now, *until),
                LeaseState::Queued { .. } | LeaseState::Ended { .. } => "-".to_owned(),
            };
            cells.extend([(who(lease), Some(Style::Warn)), plain(&left), plain(lease.id.as_str())]);
        }
        None => cells.extend([plain("-"), plain("-"), plain("-")]),
    }
    cells.push(match (usable, in_use_by) {
        (false, _) => ("out of service".to_owned(), Some(Style::Bad)),
        (true, Some(holder)) => (one_line(holder), Some(Style::Warn)),
        (true, None) => ("free".to_owned(), Some(Style::Good)),
    });
    cells
}

fn who(lease: &LeaseView) -> String {
    match &lease.comment {
        Some(comment) => format!("{} ({})", one_line(&lease.owner), one_line(comment)),
        None => one_line(&lease.owner),
    }
}
