//! `jig doctor`: what is missing on this host, and the command that fixes it.
//!
//! Looks and asks; changes nothing. Every finding that is not fine comes with what to type.

mod agents;
mod host;
mod lab;
mod place;
mod programs;
pub(crate) use programs::find as find_program;
mod repair;

use jig_lab::Catalogue;
use jig_model::exit;
use jig_rig::store::RunStore;
use serde::Serialize;
use serde_json::json;

use super::rig::stopped;
use super::runtime::until_signalled;
use crate::args::{Common, DoctorArgs};
use crate::failure::Failure;
use crate::render::{Paint, Screen, Style, one_line};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum DoctorLevel {
    /// As it should be.
    Ok,
    /// Some boards or some features do not work.
    Warning,
    /// Nothing can run.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct DoctorFinding {
    /// Stable name.
    check: String,
    level: DoctorLevel,
    /// What was seen.
    found: String,
    /// What to type.
    fix: Option<String>,
}

impl DoctorFinding {
    fn ok(check: impl Into<String>, found: impl Into<String>) -> Self {
        Self { check: check.into(), level: DoctorLevel::Ok, found: found.into(), fix: None }
    }

    fn bad(
        check: impl Into<String>,
        level: DoctorLevel,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { check: check.into(), level, found: found.into(), fix: Some(fix.into()) }
    }
}

/// Looks at the host. JSON: `{"ok":BOOL,"checks":[{"check","level","found","fix"}]}` with
/// the levels `ok`, `warning` and `missing`; `ok` tells that nothing is missing. With a place, only
/// its serial ports, its probe and its shell are looked at.
pub(crate) fn doctor(common: &Common, screen: &Screen, args: &DoctorArgs) -> Result<u8, Failure> {
    if common.is_elsewhere() {
        // Programs, rights and folders are those of the process that looks.
        screen.insist(
            "this looks at this host; for the rig's host: log in there and run `jig doctor`",
        );
    }
    if let Some(name) = &args.board {
        let catalogue = Catalogue::load(&common.own_lab())?;
        let findings = until_signalled(async |cancel| {
            tokio::select! {
                found = place::look(&catalogue, name) => found,
                () = cancel.cancelled() => Err(stopped()),
            }
        });
        return Ok(report(screen, &findings?));
    }
    let mut findings = Vec::new();
    let progress = screen.progress();
    progress.set("looking at this host");
    match Catalogue::load(&common.own_lab()) {
        Ok(catalogue) => {
            findings.push(rig(&catalogue));
            findings.extend(programs::look(&catalogue));
            findings.extend(lab::look(&catalogue));
            findings.extend(images(&catalogue));
            let store = RunStore::new(catalogue.runs_dir());
            findings.extend(host::runs_folder(store.root()));
            findings.extend(host::leftovers(&store));
        }
        Err(error) => {
            let failure = Failure::from(error);
            let problems = failure.problems.iter().map(|p| p.to_string());
            let words = problems.collect::<Vec<_>>().join("; ");
            let found = if words.is_empty() { failure.message } else { words };
            findings.push(DoctorFinding::bad(
                "configuration",
                DoctorLevel::Missing,
                found,
                failure.help.unwrap_or_else(|| "jig boards   # shows every problem".to_owned()),
            ));
        }
    }
    findings.extend(host::system());
    findings.extend(repair::look());
    findings.extend(agents::look(common));
    progress.clear();
    Ok(report(screen, &findings))
}

/// Shows what was found; returns the exit code.
fn report(screen: &Screen, findings: &[DoctorFinding]) -> u8 {
    let ok = findings.iter().all(|finding| finding.level != DoctorLevel::Missing);
    if screen.json() {
        screen.out_json(&json!({ "ok": ok, "checks": findings }));
    } else {
        for finding in findings {
            screen.out(&line(finding, screen.out_paint()));
        }
    }
    if ok { exit::PASS } else { exit::LAB }
}

fn line(finding: &DoctorFinding, paint: Paint) -> String {
    let (word, style) = match finding.level {
        DoctorLevel::Ok => ("ok", Style::Good),
        DoctorLevel::Warning => ("warn", Style::Warn),
        DoctorLevel::Missing => ("MISSING", Style::Bad),
    };
    let word = paint.paint(style, &format!("{word:<7}"));
    let mut text = format!("{word} {}: {}", finding.check, one_line(&finding.found));
    if let Some(fix) = &finding.fix {
        text.push_str(&format!("\n        fix: {}", one_line(fix)));
    }
    text
}

fn rig(catalogue: &Catalogue) -> DoctorFinding {
    let (places, boards) = (catalogue.rig.places.len(), catalogue.profiles.count());
    let what = format!("{places} places, {boards} boards");
    match catalogue.rig_files.first() {
        Some(file) => DoctorFinding::ok("rig-file", format!("{}: {what}", file.display())),
        None => DoctorFinding::ok(
            "rig-file",
            format!("none, so every emulated board is a place: {what}"),
        ),
    }
}

/// Looks whether what emulated machines boot has been built.
fn images(catalogue: &Catalogue) -> Vec<DoctorFinding> {
    let folder = catalogue.images_dir();
    let emulations = catalogue.profiles.values().filter_map(|profile| profile.emulation.as_ref());
    let mut sets: Vec<&str> = emulations.filter_map(|e| e.image_set.as_deref()).collect();
    sets.sort_unstable();
    sets.dedup();
    let look = |set: &str| {
        let home = folder.join(set);
        // The description is written last, so it proves a whole set.
        if home.join("image.json").is_file() {
            DoctorFinding::ok(format!("image-set {set}"), home.display().to_string())
        } else {
            let found = format!("not built in {}", folder.display());
            let fix = format!("cargo xtask images {set}");
            DoctorFinding::bad(format!("image-set {set}"), DoctorLevel::Warning, found, fix)
        }
    };
    sets.into_iter().map(look).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_what_to_type() {
        let bad = DoctorFinding::bad("x", DoctorLevel::Missing, "not\x1b there", "apt install x");
        let text = line(&bad, Paint { on: false });
        assert_eq!(text, "MISSING x: not\\x1b there\n        fix: apt install x");
        assert_eq!(line(&DoctorFinding::ok("y", "here"), Paint { on: false }), "ok      y: here");
    }
}
