//! The forms that are understood, as they are shown to people and in the guide.

/// A form of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestForm {
    /// How it looks; words in capitals are to be replaced.
    pub form: &'static str,
    /// An example that is understood.
    pub example: &'static str,
    /// What is done.
    pub about: &'static str,
    /// Words by which a request that is not understood is taken to be near.
    pub(super) near: &'static [&'static str],
}

/// Lists the forms.
pub const FORMS: &[RequestForm] = &[
    RequestForm {
        form: "flash IMAGE to BOARD [and run PLAN]",
        example: "flash build/app.elf to every free nrf52 and run smoke.toml",
        about: "puts an image on boards, and then runs a test plan there",
        near: &["flash", "program", "write", "load", "burn", "deploy", "image", "firmware", "put"],
    },
    RequestForm {
        form: "run IMAGE on BOARD",
        example: "run build/app.elf on bench-3",
        about: "boots an image and judges what it reports",
        near: &["run", "boot", "start", "execute", "launch"],
    },
    RequestForm {
        form: "run PLAN on BOARD [with IMAGE] [N times]",
        example: "test smoke.toml on bench-3 with build/app.elf 3 times",
        about: "runs a test plan",
        near: &["test", "tests", "plan", "suite"],
    },
    RequestForm {
        form: "show console of BOARD",
        example: "show the console of bench-3",
        about: "tells the last lines that a console printed",
        near: &["console", "output", "serial", "uart", "log", "printed"],
    },
    RequestForm {
        form: "reset BOARD",
        example: "reset bench-3",
        about: "resets a board",
        near: &["reset", "reboot", "restart"],
    },
    RequestForm {
        form: "erase BOARD",
        example: "erase bench-3",
        about: "erases the flash of a board",
        near: &["erase", "wipe"],
    },
    RequestForm {
        form: "power on|off|cycle BOARD",
        example: "power cycle bench-3",
        about: "switches the power of a board; `turn BOARD off` does, too",
        near: &["power", "switch", "turn", "off", "cycle"],
    },
    RequestForm {
        form: "recover BOARD",
        example: "recover bench-3",
        about: "proves that a place works, or takes recovery steps until it does",
        near: &["recover", "repair", "fix", "revive", "unbrick", "stuck"],
    },
    RequestForm {
        form: "check BOARD",
        example: "check bench-3",
        about: "runs the health checks of a place",
        near: &["check"],
    },
    RequestForm {
        form: "why is BOARD broken",
        example: "why is bench-3 broken?",
        about: "tells the health of a place, and how its last run failed",
        near: &["why", "broken", "wrong", "health"],
    },
    RequestForm {
        form: "why did RUN fail",
        example: "why did the last run on bench-3 fail?",
        about: "tells how a run failed, whether it did so before, and what is known of it",
        near: &["why", "explain", "reason", "failed", "wrong", "happened"],
    },
    RequestForm {
        form: "why does TEST fail on BOARD [since WHEN]",
        example: "why does boot-test fail on bench-3 since yesterday?",
        about: "tells when a test began to fail, and what changed then",
        near: &["why", "fail", "fails", "failing", "since"],
    },
    RequestForm {
        form: "bisect TEST on BOARD",
        example: "when did boot-test start failing on bench-3?",
        about: "finds the first run that failed, among the runs there are",
        near: &["bisect", "when", "broke", "first"],
    },
    RequestForm {
        form: "compare RUN and RUN",
        example: "compare the last run with the previous one",
        about: "tells how the tests of two runs differ",
        near: &["compare", "diff", "difference", "changed", "between"],
    },
    RequestForm {
        form: "which boards are free",
        example: "which nrf52 boards are free?",
        about: "lists boards and who uses them",
        near: &["which", "boards", "free", "available", "idle", "who"],
    },
    RequestForm {
        form: "how is BOARD",
        example: "how is bench-3?",
        about: "tells the health of places",
        near: &["health", "healthy", "how", "well", "ok"],
    },
    RequestForm {
        form: "list runs [on BOARD] [since WHEN]",
        example: "list runs on bench-3 since yesterday",
        about: "lists runs, the newest first",
        near: &["runs", "list", "history"],
    },
    RequestForm {
        form: "what failed [on BOARD] [WHEN]",
        example: "what failed yesterday?",
        about: "lists the runs that did not pass; `passed` those that did",
        near: &["what", "failed", "failures", "passed", "today", "yesterday"],
    },
    RequestForm {
        form: "did RUN pass",
        example: "did the last run on bench-3 pass?",
        about: "tells what a run came to",
        near: &["did", "pass", "green", "result", "go"],
    },
    RequestForm {
        form: "did TEST pass [on BOARD] [WHEN]",
        example: "does boot-test still fail on bench-3?",
        about: "tells what the last run of a test came to",
        near: &["did", "does", "pass", "passed", "still"],
    },
    RequestForm {
        form: "show the log of RUN",
        example: "show the log of the last run",
        about: "tells the last lines of a run's time line",
        near: &["log", "printed", "timeline", "output"],
    },
    RequestForm {
        form: "is BOARD on",
        example: "is bench-3 on?",
        about: "asks whether a board has power",
        near: &["power", "powered", "on"],
    },
    RequestForm {
        form: "show RUN",
        example: "show the last run",
        about: "tells what a run came to",
        near: &["show", "result", "last"],
    },
    RequestForm {
        form: "search WORDS",
        example: "what do we know about brown-out resets?",
        about: "looks into what the lab has learnt",
        near: &["search", "find", "know", "knowledge", "seen"],
    },
];

/// Returns the forms that a request is nearest to, the nearest first; three at most, and the first three
/// where it is near to none.
pub fn nearest_forms(text: &str) -> Vec<&'static RequestForm> {
    let words: Vec<String> = text
        .chars()
        .take(1024)
        .collect::<String>()
        .split(|c: char| !c.is_alphanumeric())
        .map(str::to_lowercase)
        .collect();
    let score = |form: &RequestForm| {
        form.near.iter().filter(|near| words.iter().any(|word| word == *near)).count()
    };
    let mut scored: Vec<_> = FORMS.iter().map(|form| (score(form), form)).collect();
    // The order of the list decides among equals: the sort is stable.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let near = scored.iter().filter(|(score, _)| *score > 0).count();
    scored.into_iter().take(if near == 0 { 3 } else { near.min(3) }).map(|(_, form)| form).collect()
}
