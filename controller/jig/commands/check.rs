//! Checks files one by one and reports all their problems at once.
//!
//! JSON: `{"ok":BOOL,"files":[{"file","kind","ok","problems":[...]}]}`; the problems have
//! the shape they have in an error.

use std::path::PathBuf;

use jig_lab::{Source, Unreadable, read};
use jig_model::{Fault, Problems, exit};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::render::{Screen, Style, one_line};

/// What a check found.
pub(crate) struct Checked {
    /// What the file is.
    pub(crate) kind: &'static str,
    /// What is in it, in a few words, or what is wrong with it.
    pub(crate) result: Result<String, Problems>,
}

/// Checks files; `beside` are problems of other files that those depend on.
pub(crate) fn check_all(
    screen: &Screen,
    files: &[PathBuf],
    beside: Vec<Problems>,
    check: impl Fn(&Source) -> Checked,
) -> Result<u8, Failure> {
    let mut checked = Vec::new();
    for path in files {
        match read(path) {
            Ok(source) => checked.push((source.origin.clone(), check(&source))),
            Err(Unreadable::NoText(problems)) => {
                let origin = problems.origin.clone();
                checked.push((origin, Checked { kind: problems.kind, result: Err(*problems) }));
            }
            Err(Unreadable::Io(error)) => {
                let message = format!("could not read {}: {error}", path.display());
                return Err(Failure::new(Fault::Usage, message)
                    .help("give files that exist and that this user may read"));
            }
        }
    }
    for problems in beside {
        // The same file may be known by another path.
        let real = |origin: &str| std::fs::canonicalize(origin).ok();
        let same = |origin: &str| real(origin).is_some_and(|r| Some(r) == real(&problems.origin));
        if !checked.iter().any(|(origin, _)| same(origin)) {
            let origin = problems.origin.clone();
            checked.push((origin, Checked { kind: problems.kind, result: Err(problems) }));
        }
    }
    let ok = checked.iter().all(|(_, checked)| checked.result.is_ok());
    if screen.json() {
        let files: Vec<Value> = checked.iter().map(as_json).collect();
        screen.out_json(&json!({ "ok": ok, "files": files }));
        return Ok(if ok { exit::PASS } else { exit::PROFILE });
    }
    let mut bad = Vec::new();
    for (origin, Checked { kind, result }) in checked {
        match result {
            Ok(what) => {
                let word = screen.out_paint().paint(Style::Good, "ok");
                screen.out(&format!("{word} {}: {kind} ({})", one_line(&origin), one_line(&what)));
            }
            Err(problems) => bad.push(problems),
        }
    }
    if bad.is_empty() { Ok(exit::PASS) } else { Err(Failure::problems(bad)) }
}

fn as_json((origin, checked): &(String, Checked)) -> Value {
    let problems = checked.result.as_ref().err().map(Problems::located);
    let problems = problems.unwrap_or_default();
    json!({
        "file": origin,
        "kind": checked.kind,
        "ok": checked.result.is_ok(),
        "problems": problems,
    })
}
