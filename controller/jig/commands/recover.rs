//! `jig recover`: proves that a place works, or recovers it.

use std::sync::Arc;
use std::time::Duration;

use jig_model::command::{RecoveryStepsReply, Reply};
use jig_model::exit;
use jig_rig::report::{RunReport, json};
use serde_json::json as value;

use super::execute::{ended_run, execute, unexpected};
use super::rig::OpenRig;
use crate::args::{Common, RecoverArgs};
use crate::failure::Failure;
use crate::render::{
    LiveView, Screen, Style, TextTable, one_line, seen_words, show_seen, show_verdict,
};

/// Recovers a place, or shows how it would be done.
///
/// JSON of a recovery: as of a run. JSON of `--dry-run`: `{"place","timeout_ms","ladder":[{"step",
/// "budget_ms","skip"}]}`; a step with `skip` is not taken there, for that reason.
pub(crate) fn recover(common: &Common, screen: &Screen, args: RecoverArgs) -> Result<u8, Failure> {
    let (rig, command) = (OpenRig::open(common)?, args.command());
    if args.dry_run {
        let Reply::RecoverySteps(steps) = execute(&rig, command, Arc::new(screen.clone()))? else {
            return Err(unexpected());
        };
        show_ladder(screen, &steps);
        return Ok(exit::PASS);
    }
    let view = Arc::new(LiveView::new(screen, 2));
    let reply = execute(&rig, command, view.clone());
    view.finish();
    let (dir, record) = ended_run(&rig, screen, reply?)?;
    let seen = seen_words(&dir, &record);
    let report = RunReport::of(&record).with_seen_before(seen.as_deref());
    if screen.json() {
        let text = json(&report).map_err(|e| Failure::of(jig_model::Fault::Bug, &e))?;
        screen.out(text.trim_end());
    } else {
        show_verdict(screen, &record);
        show_seen(screen, seen.as_deref());
    }
    rig.learn_from(&record.id);
    Ok(report.exit_code())
}

fn show_ladder(screen: &Screen, reply: &RecoveryStepsReply) {
    let RecoveryStepsReply { place, steps, timeout_ms } = reply;
    if screen.json() {
        let ladder = value!({ "place": place, "timeout_ms": timeout_ms, "ladder": steps });
        return screen.out_json(&ladder);
    }
    let timeout = Duration::from_millis(*timeout_ms);
    screen.out(&format!("recovery steps of {place}, timeout {timeout:?}:"));
    let mut table = TextTable::new(&["STEP", "BUDGET", "WHAT IT DOES"]);
    for rung in steps {
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
