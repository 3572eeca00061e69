//! Sessions that meet another one at their board, that are confirmed too late, and that are gone on with on
//! another host.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use jig_model::redact::Redactor;
use jig_operator::journal::{SessionEntry, SessionJournal};
use jig_operator::session::Session;
use serde_json::Value;

use crate::manifest::elf;
use crate::workshop::{Ran, Workshop, side_by_side, until};

fn with_image() -> Workshop {
    let workshop = Workshop::new();
    fs::copy(elf("microbit", "unity-pass"), workshop.path("app.elf")).unwrap();
    workshop
}

fn document(ran: &Ran) -> Value {
    ran.json().unwrap()
}

/// Asks for what has to be confirmed; returns the session's name, its digest and its folder.
fn waiting(workshop: &Workshop) -> (String, String, PathBuf) {
    let asked = workshop.run(["--json", "ask", "flash app.elf to microbit"]);
    asked.says(4, &[]);
    let told = document(&asked);
    let text = |at: &str| told.pointer(at).and_then(Value::as_str).unwrap().to_owned();
    let name = text("/session");
    let folder = workshop.runs().join("sessions").join(&name);
    (name, text("/waits/digest"), folder)
}

#[test]
fn two_sessions_on_one_board_have_it_one_after_the_other() {
    let workshop = with_image();
    let times = Mutex::new(Vec::new());
    side_by_side(0..2, |_| {
        let ran = workshop.run(["--json", "ask", "run app.elf on microbit 3 times"]);
        ran.says(0, &[]);
        let told = document(&ran);
        let runs = told["summary"]["runs"].as_array().unwrap().clone();
        assert_eq!(runs.len(), 1, "{told}");
        let record = workshop.runs().join(runs[0].as_str().unwrap()).join("record.json");
        let record: Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
        let at = |field: &str| record[field].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        times.lock().unwrap().push((at("started"), at("ended")));
    });
    let mut times = times.into_inner().unwrap();
    times.sort();
    // A record begins before its board is free, and ends behind its use.
    let [(_, first), (_, second)] = times.as_slice() else { panic!("{times:?}") };
    assert!(first < second, "{times:?}");
}

#[test]
fn a_confirmation_that_comes_too_late_is_none() {
    let workshop = with_image();
    workshop.write("agents.toml", "version = 1\n[session]\nconfirm_s = 1\n");
    let (name, digest, folder) = waiting(&workshop);
    let journal = SessionJournal::open(&folder, Redactor::default()).unwrap();
    let session = Session::of(&journal.rows().unwrap()).unwrap();
    let end = session.waits.unwrap().until_ms;
    until("the end of the confirmation's time", || (journal.now_ms() > end).then_some(()));
    let late = workshop.run(["--json", "ask", "--resume", &name, "--confirm", &digest]);
    late.says(4, &[]);
    let told = document(&late);
    let blocked = told["summary"]["blocked"].as_str().unwrap();
    assert!(blocked.starts_with("no confirmation came in time"), "{told}");
    assert!(workshop.run_dirs().is_empty());
}

#[test]
fn a_session_of_another_host_is_shown_and_not_gone_on_with() {
    let workshop = with_image();
    let (name, digest, folder) = waiting(&workshop);
    let journal = SessionJournal::open(&folder, Redactor::default()).unwrap();
    let rows: Vec<SessionEntry> =
        journal.rows().unwrap().into_iter().map(|row| row.entry).collect();
    // The same session as another host would have written it.
    let other = format!("{name}x");
    let moved = workshop.runs().join("sessions").join(&other);
    fs::create_dir(&moved).unwrap();
    let [SessionEntry::Begun(charter), rest @ ..] = rows.as_slice() else { panic!("{rows:?}") };
    let mut charter = charter.clone();
    assert!(charter.host.replace("bench-of-others".to_owned()).is_some());
    let mut written = SessionJournal::begin(&moved, charter, Redactor::default()).unwrap();
    written.append_all(rest).unwrap();
    let before = written.rows().unwrap().len();
    let words = ["was asked for on bench-of-others", "go on with it there, or ask anew"];
    for args in [vec!["--confirm", digest.as_str()], vec!["--yes", "high"], vec![]] {
        let resume = ["ask", "--resume", other.as_str()];
        workshop.run(resume.iter().copied().chain(args)).says(2, &words);
    }
    assert_eq!(written.rows().unwrap().len(), before, "what was refused left a row");
    workshop.run(["sessions", "show", &other]).says(0, &[]);
    // Its folder may be gone on the host on which it was asked for, too.
    let [SessionEntry::Begun(charter), ..] = rows.as_slice() else { panic!("{rows:?}") };
    let gone = jig_operator::journal::Charter {
        folder: workshop.path("gone").display().to_string(),
        ..charter.clone()
    };
    let lost = workshop.runs().join("sessions").join(format!("{name}y"));
    fs::create_dir(&lost).unwrap();
    let mut written = SessionJournal::begin(&lost, gone, Redactor::default()).unwrap();
    written.append_all(rest).unwrap();
    let resume = ["ask", "--resume", &format!("{name}y"), "--yes", "high"];
    workshop.run(resume).says(2, &["the folder in which", "is not there", "ask anew"]);
    // The one of this host goes on.
    fs::remove_dir_all(&moved).unwrap();
    fs::remove_dir_all(&lost).unwrap();
    workshop.run(["ask", "--resume", &name, "--confirm", &digest]).says(0, &[]);
}
