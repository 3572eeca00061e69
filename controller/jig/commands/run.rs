//! `jig run` and `jig test`: one plan on one place.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use jig_lab::{Unreadable, read};
use jig_model::Fault;
use jig_model::command::Command;
use jig_model::exit::PASS;
use jig_model::post_mortem::PostMortem;
use jig_model::result::TestReport;
use jig_rig::console::escape;
use jig_rig::report::baseline::{self, ChangeKind};
use jig_rig::report::{RunReport, annotations, json, junit, summary, tap};
use jig_rig::store::{AttemptRecord, RunDir, RunRecord, read_whole};

use super::coverage;
use super::execute::{ended_run, execute};
use super::report_file::{self, is_standard_output};
use super::rig::OpenRig;
use crate::args::{Common, ReportArgs, ReportFormatArg, ReportRequest, RunArgs, TestArgs};
use crate::failure::Failure;
use crate::render::{LiveView, Screen, seen_words, show_seen, show_verdict};

/// Runs an image with the built-in plan.
pub(crate) fn run(common: &Common, screen: &Screen, args: RunArgs) -> Result<u8, Failure> {
    carry_out(common, screen, args.command(), &args.reports)
}

/// Runs a plan.
pub(crate) fn test(common: &Common, screen: &Screen, args: TestArgs) -> Result<u8, Failure> {
    let plan = read(&args.plan).map_err(|why| match why {
        Unreadable::Io(error) => {
            let origin = args.plan.display();
            Failure::new(Fault::Usage, format!("cannot read plan {origin}: {error}"))
        }
        Unreadable::NoText(problems) => Failure::problems(vec![*problems]),
    })?;
    carry_out(common, screen, args.command(plan.text), &args.reports)
}

fn carry_out(
    common: &Common,
    screen: &Screen,
    command: Command,
    reports: &ReportArgs,
) -> Result<u8, Failure> {
    // First: a run must not be wasted on what cannot be read or written.
    let baseline = reports.baseline.as_deref().map(read_baseline).transpose()?;
    let requests = reports.requests(std::env::var_os("GITHUB_STEP_SUMMARY"));
    check_reports(&requests)?;
    let rig = OpenRig::open(common)?;
    let view = Arc::new(LiveView::new(screen, reports.repeat));
    let reply = execute(&rig, command, view.clone());
    view.finish();
    let (dir, record) = ended_run(&rig, screen, reply?)?;
    let seen = seen_words(&dir, &record);
    let report = located(RunReport::of(&record), &dir, &record).with_seen_before(seen.as_deref());
    keep_reports(&dir, &report);
    let (shown, files): (Vec<_>, Vec<_>) =
        requests.iter().partition(|request| is_standard_output(&request.path));
    for request in shown {
        let text = text_of(request.format, &report)?;
        // A pass has no annotations.
        if !text.is_empty() {
            screen.out(text.trim_end());
        }
    }
    let measured = reports.coverage || reports.coverage_by_test;
    let covered = measured.then(|| coverage::of_run(&dir)).transpose();
    if screen.json() {
        let text = match &covered {
            Ok(Some(covered)) => {
                coverage::document(&report, covered).map_err(|e| Failure::of(Fault::Bug, &e))?
            }
            _ => json(&report).map_err(|e| Failure::of(Fault::Bug, &e))?,
        };
        screen.out(text.trim_end());
    } else {
        show_verdict(screen, &record);
        show_seen(screen, seen.as_deref());
        if let Ok(Some(covered)) = &covered {
            coverage::show(screen, &dir, covered);
        }
        if let Some(old) = &baseline {
            show_changes(screen, old, &record);
        }
    }
    // Behind the verdict: a pipe may wait for its reader.
    let mut code = report.exit_code();
    if let Err(failure) = covered {
        screen.failure_beside(&failure);
        code = if code == PASS { failure.exit_code() } else { code };
    }
    for request in files {
        if let Err(failure) = write_report(request, &report) {
            screen.failure_beside(&failure);
            // It hides no worse end.
            code = if code == PASS { failure.exit_code() } else { code };
        }
    }
    rig.learn_from(&record.id);
    Ok(code)
}

/// Adds the line of the source that the backtrace of the last attempt leads to. Of its frames, one in
/// the current folder comes first: the files of a library are not in the user's repository.
fn located(report: RunReport, dir: &RunDir, record: &RunRecord) -> RunReport {
    let counts = |made: &&AttemptRecord| made.purpose.is_test() && !made.replaced;
    let Some(last) = record.attempts.iter().rfind(counts) else { return report };
    let told = read_whole(&dir.post_mortem_path(last.attempt), MOST_POST_MORTEM).ok();
    let told = told.and_then(|text| serde_json::from_slice::<PostMortem>(&text).ok());
    let Some(told) = told else { return report };
    let here = std::env::current_dir().unwrap_or_default();
    // The handler of the fault is not what went wrong.
    let from = told.frames.iter().position(|frame| frame.exception).map_or(0, |at| at + 1);
    let frames = told.frames.iter().skip(from);
    let lines = frames.filter_map(|frame| Some((Path::new(frame.file.as_deref()?), frame.line?)));
    let inside = |path: &Path| match path.strip_prefix(&here) {
        Ok(inside) => Some(inside.to_owned()),
        Err(_) => here.join(path).exists().then(|| path.to_owned()).filter(|p| p.is_relative()),
    };
    let own = lines.clone().find_map(|(path, line)| Some((inside(path)?, line)));
    match own.or_else(|| lines.clone().next().map(|(path, line)| (path.to_owned(), line))) {
        Some((file, line)) => report.at_location(&file.to_string_lossy(), line),
        None => report,
    }
}

/// Largest post-mortem that is read: its backtraces and threads are bounded far below.
const MOST_POST_MORTEM: u64 = 4 << 20;

fn check_reports(requests: &[ReportRequest]) -> Result<(), Failure> {
    for ReportRequest { path, .. } in requests {
        report_file::check(path).map_err(|error| {
            let words = format!("report {} cannot be written: {error}", path.display());
            Failure::new(Fault::Lab, words).help("nothing was run; name a file that can be written")
        })?;
    }
    Ok(())
}

fn text_of(format: ReportFormatArg, report: &RunReport) -> Result<String, Failure> {
    let bug = |error| Failure::of(Fault::Bug, &error);
    match format {
        ReportFormatArg::Junit => junit(report).map_err(bug),
        ReportFormatArg::Json => json(report).map_err(bug),
        ReportFormatArg::Tap => Ok(tap(report)),
        ReportFormatArg::Github => Ok(summary(report)),
        ReportFormatArg::Annotations => Ok(annotations(report)),
    }
}

/// Leaves every form of the report in the run's own directory.
fn keep_reports(dir: &RunDir, report: &RunReport) {
    let forms = [
        (ReportFormatArg::Junit, jig_rig::report::ReportFormat::Junit),
        (ReportFormatArg::Json, jig_rig::report::ReportFormat::Json),
        (ReportFormatArg::Tap, jig_rig::report::ReportFormat::Tap),
        (ReportFormatArg::Github, jig_rig::report::ReportFormat::Summary),
    ];
    for (format, name) in forms {
        let Ok(text) = text_of(format, report) else { continue };
        // The record is what counts; these can be made again from it.
        if let Err(error) = fs::write(dir.report_path(name), text) {
            tracing::warn!(%error, "report not kept in the run's directory");
        }
    }
}

fn write_report(request: &ReportRequest, report: &RunReport) -> Result<(), Failure> {
    let text = text_of(request.format, report)?;
    report_file::write(&request.path, &text).map_err(|error| {
        let path = request.path.display();
        Failure::new(
            Fault::Lab,
            format!("the run ended, but its report {path} was not written: {error}"),
        )
        .help("the run itself is kept: jig runs show")
    })
}

/// Largest baseline that is read: a report of a hundred thousand cases has half of that.
const MOST_BASELINE: u64 = 64 << 20;

fn read_baseline(path: &Path) -> Result<TestReport, Failure> {
    let wrong = |why: String| {
        Failure::new(Fault::Usage, format!("cannot use baseline {}: {why}", path.display()))
            .help("a baseline is an earlier report: jig test ... --report json=FILE")
    };
    let text = read_whole(path, MOST_BASELINE).map_err(|error| wrong(error.to_string()))?;
    let text = String::from_utf8(text).map_err(|error| wrong(error.to_string()))?;
    let document =
        jig_rig::report::VerdictDocument::parse(&text).map_err(|e| wrong(e.to_string()))?;
    Ok(document.verdict.tests)
}

fn show_changes(screen: &Screen, old: &TestReport, record: &RunRecord) {
    let Some(verdict) = &record.verdict else { return };
    let changes = baseline::compare(old, &verdict.tests);
    if changes.is_empty() {
        screen.say("  nothing has changed against the baseline");
    }
    for change in changes {
        let kind = match change.kind {
            ChangeKind::Regression => "regression",
            ChangeKind::Fixed => "fixed",
            ChangeKind::KnownFailure => "known failure",
            ChangeKind::New => "new",
            ChangeKind::Vanished => "vanished",
        };
        screen.say(&format!("  {kind}: {}", escape(change.name.as_bytes())));
    }
}
