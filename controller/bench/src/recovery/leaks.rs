//! What is left behind.

use std::fs;
use std::time::{Duration, Instant};

use super::lab::TrialLab;

/// How long a process may take to vanish that was killed: the kernel needs milliseconds.
const GONE: Duration = Duration::from_secs(5);

/// Counts the processes that work in the lab although no run is under way.
pub(super) fn processes(lab: &TrialLab) -> usize {
    let end = Instant::now() + GONE;
    loop {
        let count = alive(lab);
        if count == 0 || Instant::now() >= end {
            return count;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn alive(lab: &TrialLab) -> usize {
    let mark = lab.folder.display().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let works_there = |entry: &fs::DirEntry| {
        let pid = entry.file_name().to_string_lossy().parse::<u32>();
        let Some(pid) = pid.ok().filter(|pid| *pid != std::process::id()) else { return false };
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&mark)
    };
    entries.filter(works_there).count()
}

/// Lists the files that places keep between runs.
pub(super) fn places(lab: &TrialLab) -> Vec<String> {
    names(&lab.folder.join("STATE/jig/places"))
}

/// Names what is left at the end: processes, unfinished runs, and files of places beside the
/// ones that were `kept` when nothing had failed yet.
pub(super) fn left(lab: &TrialLab, kept: &[String]) -> Vec<String> {
    let mut left: Vec<String> = Vec::new();
    let count = processes(lab);
    if count > 0 {
        left.push(format!("{count} processes"));
    }
    for run in names(&lab.runs()) {
        let path = lab.runs().join(&run);
        if run.starts_with('.') || path.join("lock").exists() {
            left.push(format!("run {run} is unfinished"));
        }
        // Pipes of consoles vanish when the emulator has opened them, or did not come so far.
        for folder in names(&path.join("artefacts")) {
            let found = names(&path.join("artefacts").join(&folder)).into_iter();
            let pipes = found.filter(|name| name.ends_with(".in") || name.ends_with(".out"));
            left.extend(pipes.map(|name| format!("pipe {run}/artefacts/{folder}/{name}")));
        }
    }
    let new = places(lab).into_iter().filter(|name| !kept.contains(name));
    left.extend(new.map(|name| format!("file places/{name}")));
    left
}

fn names(folder: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
