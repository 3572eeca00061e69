//! `jig recover`: proves that a place works, or recoveries it.

use std::sync::Arc;
use std::time::Duration;

use jig_lab::{Lab, RunOutcome};
use jig_model::recovery::Rung;
use jig_model::{PlaceName, exit};
use jig_rig::report::{RunReport, json};
use jig_rig::session::Extent;
use serde_json::json as value;

use super::open_lab;
use super::session::recorded;
use crate::args::{Common, RecoverArgs};
use crate::failure::Failure;
use crate::render::{LiveView, Screen, Style, Table, one_line, show_verdict};

/// Recovers a place, or shows how it would be done.
///
/// JSON of a recovery: as of a run. JSON of `--dry-run`: `{"place","within_ms","ladder":[{"step",
/// "budget_ms","skip"}]}`; a step with `skip` is not taken there, for that reason.
pub(crate) fn recover(common: &Common, screen: &Screen, args: RecoverArgs) -> Result<u8, Failure> {
    let (lab, place) = (open_lab(common)?, &args.target.board);
    if args.dry_run {
        let (ladder, within) = lab.recovery_ladder(place, args.from)?;
        show_ladder(screen, place, &ladder, within);
        return Ok(exit::PASS);
    }
    let extent = args.from.map_or(Extent::Recover, Extent::From);
    let RunOutcome { record, .. } = carry_out(&lab, screen, place, extent)?;
    let report = RunReport::of(&record);
    if screen.json() {
        let text = json(&report).map_err(|e| Failure::of(jig_model::Fault::Bug, &e))?;
        screen.out(text.trim_end());
    } else {
        show_verdict(screen, &record);
    }
    Ok(report.exit_code())
}

/// Asks a place whether it works, without repairing it; what comes of it is a run, and noted in
/// the health store.
pub(crate) fn ask(common: &Common, place: &PlaceName) -> Result<(), Failure> {
    carry_out(&open_lab(common)?, &Screen::new(common), place, Extent::Ask).map(drop)
}

fn carry_out(
    lab: &Lab,
    screen: &Screen,
    place: &PlaceName,
    extent: Extent,
) -> Result<RunOutcome, Failure> {
    let view = Arc::new(LiveView::new(screen, 2));
    let watched = Arc::clone(&view);
    recorded(
        screen,
        || view.finish(),
        async |cancel| lab.recover(place, extent, watched, screen, cancel).await,
    )
}

fn show_ladder(screen: &Screen, place: &PlaceName, ladder: &[Rung], within: Duration) {
    if screen.json() {
        let within = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        screen.out_json(&value!({
            "place": place,
            "within_ms": within,
            "ladder": ladder,
        }));
        return;
    }
    screen.out(&format!("the ladder of {}, run within {within:?}:", place));
    let mut table = Table::new(&["STEP", "BUDGET", "WHAT IT DOES"]);
    for rung in ladder {
        let budget = format!("{:?}", Duration::from_millis(rung.budget_ms));
        let what = match &rung.skip {
            None => rung.step.meaning().to_owned(),
            Some(why) => format!("skipped: {why}"),
        };
        let style = rung.skip.is_some().then_some(Style::Dim);
        let cells = [rung.step.to_string(), budget, one_line(&what)];
        table.row(cells.map(|cell| (cell, style)));
    }
    screen.out(&table.text(screen.out_paint()));
}
