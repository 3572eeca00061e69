//! Sessions that meet another one at their board, that are confirmed too late, that are gone on with on another
//! host, and whose process is killed while they begin.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use jig_model::redact::Redactor;
use jig_operator::journal::{SessionEntry, SessionJournal};
use jig_operator::session::Session;
use serde_json::{Value, json};

use crate::manifest::elf;
use crate::workshop::{Ran, Workshop, until};

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
fn a_session_whose_board_others_have_says_so_and_goes_on_when_it_is_free() {
    let workshop = with_image();
    let place = "[[place]]\nname = \"bench-1\"\nboard = \"microbit\"\nemulator = {}\n";
    workshop.write("rig.toml", format!("version = 1\n{place}"));
    let lease = workshop.run(["--json", "lease", "acquire", "-b", "bench-1", "--by-id"]);
    lease.says(0, &[]);
    let lease = document(&lease)["id"].as_str().unwrap().to_owned();
    let sentence = "run app.elf on bench-1";
    let short = workshop.run(["ask", "--session-timeout", "2s", sentence]);
    short.says(75, &["waiting for place bench-1, in use by"]);
    for words in ["E_CONFLICT", "bench-1 did not get free within", &lease] {
        assert!(short.out().contains(words), "{words}: {short}");
    }
    // Another one is at its board, too, and has it when it is given back.
    let waits =
        workshop.jig(["ask", sentence]).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let waits = waits.unwrap();
    let sessions = workshop.runs().join("sessions");
    until("the call of the second session", || {
        let all = fs::read_dir(&sessions).unwrap().map(|entry| entry.unwrap().path());
        let asks = |folder: PathBuf| {
            let journal = SessionJournal::open(&folder, Redactor::default()).ok()?;
            let session = Session::of(&journal.rows().ok()?).ok()?;
            session.in_flight.values().any(|call| call.call.name == "run").then_some(())
        };
        all.filter(|path| path.is_dir()).find_map(asks)
    });
    workshop.run(["lease", "release", &lease]).says(0, &[]);
    let output = waits.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 of 1 runs passed"), "{text}");
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
    assert_eq!(told["summary"]["done"], json!(["flash app.elf to microbit: not reached"]));
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

/// The moments of the kills are the subject: they lie between the start of the program and its first rows.
#[test]
fn a_session_whose_process_is_killed_while_it_begins_is_there_whole_or_not_at_all() {
    let workshop = with_image();
    let sessions = workshop.runs().join("sessions");
    for moment in 0..24 {
        let mut asks = workshop.jig(["ask", "how is microbit?"]);
        let mut asks = asks.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(moment * 4));
        asks.kill().unwrap();
        asks.wait().unwrap();
        let listed = document(&workshop.run(["--json", "sessions", "ls"]));
        let broken = |session: &&Value| session["state"] == "broken";
        assert_eq!(listed.as_array().unwrap().iter().find(broken), None, "{moment}: {listed}");
    }
    workshop.run(["ask", "how is microbit?"]).says(0, &[]);
    // What such a process leaves goes when it is old.
    let left = sessions.join(".new-s20200101-000000-aaaa");
    fs::create_dir(&left).unwrap();
    let old = SystemTime::now() - Duration::from_secs(7200);
    fs::File::open(&left).unwrap().set_modified(old).unwrap();
    workshop.run(["ask", "how is microbit?"]).says(0, &[]);
    assert!(!left.exists());
}
