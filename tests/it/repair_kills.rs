//! `jig repair`, whose process is killed at each row of its journal, with real steps: git, a build in
//! the sandbox, an emulated board.
//!
//! Rows that are durable together are killed together: a library that is loaded before the program
//! counts the flushes of the journal and ends the process behind one of them, before the step begins
//! that the last row announces. What cuts a step off in its middle is in [`crate::repair_faults`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::repair_project::{MEND, RepairProject};
use crate::workshop::{DEADLINE, Ran, Slot, Workshop, ran, side_by_side, tied};

/// Ends the process behind the flush of a journal whose number is `KILL_AT_FLUSH`.
const KILLER: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int flush(const char *name, int fd)
{
    static atomic_int flushes;
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    int done = real(fd);
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    const char *name_of_file = strrchr(path, '/');
    if (!name_of_file || strcmp(name_of_file, "/journal.db-wal") != 0)
        return done;
    const char *last = getenv("KILL_AT_FLUSH");
    if (last && atomic_fetch_add(&flushes, 1) + 1 == atoi(last))
        kill(getpid(), SIGKILL);
    return done;
}

int fsync(int fd) { return flush("fsync", fd); }
int fdatasync(int fd) { return flush("fdatasync", fd); }
"#;

/// Runs that are killed side by side.
const LANES: usize = 3;

/// Has each row be killed, which takes about two minutes. Else it is one of [`SAMPLE`].
const ALL: &str = "JIG_TEST_ALL_ROWS";

/// A run has about 31 flushes: three are those of an empty journal, and no step takes four.
const SAMPLE: usize = 4;

/// An agent whose first answer is wrong: the candidate is taken back, and a second one is proven.
fn script() -> String {
    format!(
        "if grep -q signature \"$1/attempts.json\"; then {MEND}; else \
         sed -i 's/count > 8/count > 9/' src/ring.c; fi"
    )
}

/// Builds [`KILLER`].
fn killer(workshop: &Workshop) -> PathBuf {
    let (source, library) = (workshop.write("killer.c", KILLER), workshop.path("killer.so"));
    let mut cc = tied("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source);
    let built = ran(&mut cc).unwrap();
    assert_eq!(built.code(), 0, "{built}");
    library
}

/// How a run ended, without what differs from run to run: behind a board in an unknown state a candidate
/// is tested again.
fn end(project: &RepairProject<'_>, ran: &Ran) -> Value {
    let workshop = project.workshop;
    let document = ran.json().unwrap_or_else(|why| panic!("{why}"));
    // One that was killed before its first row may have been begun in the same second.
    let log = workshop.run(["repair", "log", document["run"].as_str().unwrap()]).out();
    let mut end = json!({ "code": ran.code(), "branches": project.branches().len() });
    for key in ["state", "why", "iterations", "before", "after", "agent", "confidence"] {
        end[key] = document[key].clone();
    }
    let commit = document["commit"].as_str().unwrap_or("HEAD");
    end["diff"] = project.git(&["diff", "HEAD", commit]).into();
    end["proposals"] = log.matches("patch_valid").count().into();
    project.is_untouched();
    workshop.nothing_lives(DEADLINE).unwrap();
    end
}

/// Runs the task, and kills it behind a flush of its journal; returns how it ended once it was driven
/// on, and the row behind which it was killed, if it was.
fn killed_at(flush: usize) -> (Value, Option<String>) {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let task = project.task("[\"command:script\"]", Some(&script()));
    let killer = killer(&workshop);
    let begin = || {
        let mut jig = workshop.jig(["--json", "repair"]);
        jig.arg(&task);
        jig
    };
    let _slot = Slot::take();
    let first = ran(begin().env("LD_PRELOAD", killer).env("KILL_AT_FLUSH", flush.to_string()));
    let first = first.unwrap();
    if first.code() != 128 + Signal::SIGKILL as i32 {
        return (end(&project, &first), None);
    }
    workshop.nothing_lives(DEADLINE).unwrap();
    let rows = workshop.run(["repair", "log", "last"]).out();
    let row = rows.lines().last().unwrap_or("before the first row").to_owned();
    let began = workshop.run(["repair", "status", "last"]).code() == 0;
    let last = match began {
        true => workshop.run(["--json", "repair", "resume", "last"]),
        false => ran(&mut begin()).unwrap(),
    };
    (end(&project, &last), Some(row))
}

#[test]
fn a_run_that_is_killed_at_any_row_reaches_the_same_end() {
    let (first, step) = if std::env::var_os(ALL).is_some() { (1, 1) } else { (3, SAMPLE) };
    let (next, whole) = (AtomicUsize::new(first), Mutex::new(None));
    let ends = Mutex::new(BTreeMap::new());
    side_by_side(0..LANES, |_| {
        loop {
            let flush = next.fetch_add(step, Ordering::Relaxed);
            let (end, row) = killed_at(flush);
            let Some(row) = row else {
                whole.lock().unwrap().get_or_insert(end);
                break;
            };
            ends.lock().unwrap().insert(flush, (row, end));
        }
    });
    let whole = whole.into_inner().unwrap().unwrap();
    assert_eq!(
        (&whole["state"], &whole["iterations"]),
        (&json!("SUCCESS"), &json!(2)),
        "{whole:#}"
    );
    let ends = ends.into_inner().unwrap();
    assert!(ends.len() * step > 24, "{ends:#?}");
    for (flush, (row, end)) in &ends {
        assert_eq!(end, &whole, "killed behind flush {flush}: {row}");
    }
}
