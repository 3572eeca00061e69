//! The proof of a repair: everything that must be seen before a run may call itself a success.
//! Pure.

use serde::{Deserialize, Serialize};

/// Passes in a row of the required tests.
pub const PASSES: usize = 3;

/// What one run of a plan has shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRun {
    /// The run.
    pub run: String,
    /// Whether its verdict is a pass.
    pub passed: bool,
    /// Cases that were announced; `None` where the report announces none.
    pub planned: Option<u64>,
    /// Cases that were reported, skipped ones included; 0 where the firmware reports none.
    pub executed: u64,
    /// Cases that were skipped.
    pub skipped: u64,
    /// Names of the cases that passed.
    pub passes: Vec<String>,
    /// Whether something shows that the image that ran is the one that was built: the emulator has loaded
    /// it, the board was read back, or the firmware has printed its build id.
    pub image_seen: bool,
}

/// What was looked at once the required tests pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofFacts {
    /// The plan without the patch.
    pub baseline: PlanRun,
    /// The plan with the patch, in order.
    pub runs: Vec<PlanRun>,
    /// Whether a build from base and patch alone gave the image that ran.
    pub clean_build: bool,
    /// Paths that are protected and differ from the base.
    pub changed_protected: Vec<String>,
    /// The plan without the patch, at the end; `None` where it was not run.
    pub reverted: Option<PlanRun>,
    /// The held-out plan with the patch; `None` where there is none.
    pub held_out: Option<PlanRun>,
    /// Functions of the tests that are executed without the patch and not with it; `None` where what
    /// is executed cannot be measured.
    #[serde(default)]
    pub tests_not_run: Option<Vec<String>>,
    /// Paths that are protected and that the build rewrites with the patch, and not without it.
    #[serde(default)]
    pub rewritten_protected: Vec<String>,
    /// Paths of the work tree of the clean build that hold neither what the base holds nor what the patch
    /// makes of it.
    #[serde(default)]
    pub foreign_files: Vec<String>,
    /// Why it cannot be told completely what the tests execute, where it could be at the baseline or can
    /// be without the patch.
    #[serde(default)]
    pub not_measured: Option<String>,
}

/// Something that the proof lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lack {
    /// The required tests do not pass often enough.
    #[error("the required tests passed {0} times in a row, and {PASSES} are needed")]
    Passes(usize),
    /// Not every case was run.
    #[error("run {run} announced {planned} cases and ran {executed}")]
    NotExecuted {
        /// The run.
        run: String,
        /// Cases that were announced.
        planned: u64,
        /// Cases that were run.
        executed: u64,
    },
    /// All cases were skipped.
    #[error("run {0} ran no case")]
    NoCase(String),
    /// Fewer cases were run than before.
    #[error("run {run} ran {executed} cases, and the baseline {before}")]
    Fewer {
        /// The run.
        run: String,
        /// Cases that were run.
        executed: u64,
        /// Cases that the baseline ran.
        before: u64,
    },
    /// More cases are skipped than before.
    #[error("run {run} skipped {skipped} cases, and the baseline {before}")]
    Skipped {
        /// The run.
        run: String,
        /// Cases that were skipped.
        skipped: u64,
        /// Cases that the baseline skipped.
        before: u64,
    },
    /// A case that passed before does not pass now.
    #[error("{0} passed before the patch and does not now")]
    Worse(String),
    /// It is not known which image ran.
    #[error(
        "run {0} does not show that the built image ran: let the rig read the board back, or the \
         firmware print its build id"
    )]
    ImageUnknown(String),
    /// The image cannot be built from base and patch alone.
    #[error("a clean build of base and patch gave another image")]
    Build,
    /// A protected path differs.
    #[error("{0} is protected and differs from the base")]
    Protected(String),
    /// The build rewrites a protected path.
    #[error("{0} is protected, and the build rewrites it with the patch and not without it")]
    Rewritten(String),
    /// A file is neither of the base nor of the patch.
    #[error("{0} holds neither what the base holds nor what the patch makes of it")]
    Foreign(String),
    /// The base was not run again.
    #[error("the base was not run again, so that it is not known whether it still fails")]
    NotReverted,
    /// The base passes, too.
    #[error("the base passes without the patch: what failed was not the code")]
    HealedItself,
    /// The held-out plan fails.
    #[error("the held-out plan fails")]
    HeldOut,
    /// Parts of the tests are not executed.
    #[error("the tests pass without being run: {0} ran without the patch and does not run with it")]
    TestsNotRun(String),
    /// What the tests execute is not known any more.
    #[error("what the tests execute cannot be told any more: {0}")]
    NotMeasured(String),
}

/// How much a complete proof says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confidence {
    /// The held-out plan passes, too.
    HeldOut,
    /// There is no held-out plan: the patch is plausible.
    Plausible,
}

/// Says in a sentence what a proof lacks; nothing where it is complete.
pub fn lack_of_proof(facts: &ProofFacts) -> Option<String> {
    let lacks = proven(facts).err()?;
    let lacks: Vec<_> = lacks.iter().map(ToString::to_string).collect();
    Some(format!("not proven: {}", lacks.join("; ")))
}

/// Says what a proof lacks, or how much it says.
///
/// # Errors
/// Everything that it lacks; never empty.
pub fn proven(facts: &ProofFacts) -> Result<Confidence, Vec<Lack>> {
    let mut lacks = Vec::new();
    let in_a_row = facts.runs.iter().rev().take_while(|run| run.passed).count();
    if in_a_row < PASSES {
        lacks.push(Lack::Passes(in_a_row));
    }
    let counted = facts.runs.len().saturating_sub(PASSES);
    for run in &facts.runs[counted..] {
        lacks.extend(lacks_of(run, &facts.baseline));
    }
    lacks.extend((!facts.clean_build).then_some(Lack::Build));
    lacks.extend(facts.changed_protected.iter().cloned().map(Lack::Protected));
    lacks.extend(facts.rewritten_protected.iter().cloned().map(Lack::Rewritten));
    let foreign = Some(&facts.foreign_files).filter(|names| !names.is_empty());
    lacks.extend(foreign.map(|names| Lack::Foreign(some_of(names))));
    match &facts.reverted {
        None => lacks.push(Lack::NotReverted),
        Some(run) if run.passed => lacks.push(Lack::HealedItself),
        Some(_) => {}
    }
    let held_out = facts.held_out.as_ref();
    lacks.extend(held_out.filter(|run| !run.passed).map(|_| Lack::HeldOut));
    let not_run = facts.tests_not_run.as_ref().filter(|names| !names.is_empty());
    lacks.extend(not_run.map(|names| Lack::TestsNotRun(some_of(names))));
    lacks.extend(facts.not_measured.clone().map(Lack::NotMeasured));
    if !lacks.is_empty() {
        return Err(lacks);
    }
    Ok(if held_out.is_some() { Confidence::HeldOut } else { Confidence::Plausible })
}

/// Most names in a message.
const MAX_NAMES: usize = 8;

fn some_of(names: &[String]) -> String {
    let more = names.len().saturating_sub(MAX_NAMES);
    let some = names[..names.len() - more].join(", ");
    if more == 0 { some } else { format!("{some} and {more} more") }
}

fn lacks_of(run: &PlanRun, baseline: &PlanRun) -> Vec<Lack> {
    let mut lacks = Vec::new();
    let name = || run.run.clone();
    if let Some(planned) = run.planned.filter(|&planned| planned != run.executed) {
        lacks.push(Lack::NotExecuted { run: name(), planned, executed: run.executed });
    }
    if run.skipped > 0 && run.executed == run.skipped {
        lacks.push(Lack::NoCase(name()));
    }
    let ran = |run: &PlanRun| run.executed.saturating_sub(run.skipped);
    if ran(run) < ran(baseline) && run.skipped <= baseline.skipped {
        lacks.push(Lack::Fewer { run: name(), executed: ran(run), before: ran(baseline) });
    }
    if run.skipped > baseline.skipped {
        let before = baseline.skipped;
        lacks.push(Lack::Skipped { run: name(), skipped: run.skipped, before });
    }
    let worse = baseline.passes.iter().filter(|case| !run.passes.contains(case));
    lacks.extend(worse.cloned().map(Lack::Worse));
    lacks.extend((!run.image_seen).then(|| Lack::ImageUnknown(name())));
    lacks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(passed: bool) -> PlanRun {
        let passes = if passed { vec!["a", "b"] } else { vec!["a"] };
        PlanRun {
            run: "r".to_owned(),
            passed,
            planned: Some(3),
            executed: 3,
            skipped: 1,
            passes: passes.into_iter().map(str::to_owned).collect(),
            image_seen: true,
        }
    }

    fn facts() -> ProofFacts {
        ProofFacts {
            baseline: run(false),
            runs: vec![run(false), run(true), run(true), run(true)],
            clean_build: true,
            changed_protected: Vec::new(),
            reverted: Some(run(false)),
            held_out: Some(run(true)),
            tests_not_run: Some(Vec::new()),
            rewritten_protected: Vec::new(),
            foreign_files: Vec::new(),
            not_measured: None,
        }
    }

    #[test]
    fn a_complete_proof_says_how_much_it_says() {
        assert_eq!(proven(&facts()), Ok(Confidence::HeldOut));
        assert_eq!(proven(&ProofFacts { held_out: None, ..facts() }), Ok(Confidence::Plausible));
    }

    #[test]
    fn each_part_that_is_missing_is_named() {
        type Change = fn(&mut ProofFacts);
        let lacking: [(Change, Lack); 17] = [
            (|f| f.runs[2] = run(false), Lack::Passes(1)),
            (
                |f| f.runs[3].planned = Some(4),
                Lack::NotExecuted { run: "r".to_owned(), planned: 4, executed: 3 },
            ),
            (|f| f.runs[1].skipped = 3, Lack::NoCase("r".to_owned())),
            (
                |f| f.runs[1].skipped = 2,
                Lack::Skipped { run: "r".to_owned(), skipped: 2, before: 1 },
            ),
            (
                |f| (f.runs[2].executed, f.runs[2].planned) = (2, None),
                Lack::Fewer { run: "r".to_owned(), executed: 1, before: 2 },
            ),
            (
                |f| f.runs[1] = PlanRun { executed: 0, skipped: 0, planned: None, ..run(true) },
                Lack::Fewer { run: "r".to_owned(), executed: 0, before: 2 },
            ),
            (|f| f.runs[3].passes = vec!["b".to_owned()], Lack::Worse("a".to_owned())),
            (|f| f.runs[3].image_seen = false, Lack::ImageUnknown("r".to_owned())),
            (|f| f.clean_build = false, Lack::Build),
            (|f| f.changed_protected.push("x.ld".to_owned()), Lack::Protected("x.ld".to_owned())),
            (|f| f.rewritten_protected.push("x.ld".to_owned()), Lack::Rewritten("x.ld".to_owned())),
            (
                |f| f.not_measured = Some("no log".to_owned()),
                Lack::NotMeasured("no log".to_owned()),
            ),
            (|f| f.foreign_files.push("x.c".to_owned()), Lack::Foreign("x.c".to_owned())),
            (|f| f.reverted = None, Lack::NotReverted),
            (|f| f.reverted = Some(run(true)), Lack::HealedItself),
            (|f| f.held_out = Some(run(false)), Lack::HeldOut),
            (
                |f| f.tests_not_run = Some((1..=10).map(|n| n.to_string()).collect()),
                Lack::TestsNotRun("1, 2, 3, 4, 5, 6, 7, 8 and 2 more".to_owned()),
            ),
        ];
        for (change, lack) in lacking {
            let mut facts = facts();
            change(&mut facts);
            let lacks = proven(&facts).unwrap_err();
            assert!(lacks.contains(&lack), "{lack:?} is not in {lacks:?}");
        }
    }

    #[test]
    fn firmware_that_reports_no_cases_can_be_proven() {
        let unreported = |passed| PlanRun {
            planned: None,
            executed: 0,
            skipped: 0,
            passes: Vec::new(),
            ..run(passed)
        };
        let silent = ProofFacts {
            baseline: unreported(false),
            runs: vec![unreported(true); PASSES],
            reverted: Some(unreported(false)),
            ..facts()
        };
        assert_eq!(proven(&silent), Ok(Confidence::HeldOut));
        // A baseline that crashed before its first case says nothing of the number of cases.
        assert_eq!(proven(&ProofFacts { runs: facts().runs, ..silent }), {
            let before = 0;
            let skipped = |run| Lack::Skipped { run, skipped: 1, before };
            Err(vec![skipped("r".to_owned()); PASSES])
        });
    }

    #[test]
    fn no_run_proves_nothing() {
        let none = ProofFacts { runs: Vec::new(), ..facts() };
        assert_eq!(proven(&none), Err(vec![Lack::Passes(0)]));
    }
}
