//! `jig recover`: proves that a place works, or recoveries it.

use std::sync::Arc;
use std::time::Duration;

use jig_model::recovery::Rung;
use jig_model::{PlaceName, exit};
use jig_rig::report::{RunReport, json};
use jig_rig::session::{
    Bench, Extent, RecoverRequest, Seat, recover as recover_place, recovery_rungs,
};
use jig_rig::workflow::CancelToken;
use serde_json::json as value;

use super::lab::RigLab;
use super::power::InRun;
use super::session::{Outcome, Setting, on_bench};
use crate::args::{Common, RecoverArgs};
use crate::catalogue::Catalogue;
use crate::failure::Failure;
use crate::render::{LiveView, Screen, Style, Table, one_line, show_verdict};
use crate::wire_up;

/// Recovers a place, or shows how it would be done.
///
/// JSON of a recovery: as of a run. JSON of `--dry-run`: `{"place","within_ms","ladder":[{"step",
/// "budget_ms","skip"}]}`; a step with `skip` is not taken there, for that reason.
pub(crate) fn recover(common: &Common, screen: &Screen, args: RecoverArgs) -> Result<u8, Failure> {
    let catalogue = Catalogue::load(common)?;
    let (place, profile) = catalogue.place(&args.target.board)?;
    if args.dry_run {
        let seat = Seat {
            canary: catalogue.canary(&place),
            factory: wire_up::factory(&profile, &place.resource)?,
            outlet: InRun::of(&catalogue, &place.name).map(|outlet| outlet.takes),
            place: place.name,
            resource: place.resource,
            profile,
        };
        let (ladder, within) = recovery_rungs(&seat, &RigLab::new(&catalogue, common), args.from);
        show_ladder(screen, &seat, &ladder, within);
        return Ok(exit::PASS);
    }
    let extent = args.from.map_or(Extent::Recover, Extent::From);
    let Outcome { record, .. } = carry_out(common, &catalogue, screen, &args.target.board, extent)?;
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
    let catalogue = Catalogue::load(common)?;
    carry_out(common, &catalogue, &Screen::new(common), place, Extent::Ask).map(drop)
}

fn carry_out(
    common: &Common,
    catalogue: &Catalogue,
    screen: &Screen,
    place: &PlaceName,
    extent: Extent,
) -> Result<Outcome, Failure> {
    let (place, profile) = catalogue.place(place)?;
    let request = RecoverRequest {
        canary: catalogue.canary(&place),
        place: place.name.clone(),
        resource: place.resource.clone(),
        profile: Arc::clone(&profile),
        extent,
    };
    let view = Arc::new(LiveView::new(screen, 2));
    let watched = Arc::clone(&view);
    let finish = || view.finish();
    let setting = Setting { place: &place, profile: &profile, inject: Vec::new(), recovers: true };
    let work = async |bench: &Bench<'_>, cancel: CancelToken| {
        recover_place(request, bench, watched, cancel)
            .await
            .map_err(|error| Failure::of(error.fault(), &error))
    };
    on_bench(common, catalogue, screen, setting, finish, work)
}

fn show_ladder(screen: &Screen, seat: &Seat<'_>, ladder: &[Rung], within: Duration) {
    if screen.json() {
        let within = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        screen.out_json(&value!({
            "place": seat.place,
            "within_ms": within,
            "ladder": ladder,
        }));
        return;
    }
    screen.out(&format!("the ladder of {}, run within {within:?}:", seat.place));
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
