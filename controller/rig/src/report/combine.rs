//! One verdict out of several attempts.

use jig_model::result::{CaseStatus, TestReport};
use jig_model::{Cause, Verdict, VerdictKind};

use super::text::{cut, one_line};

/// Most causes that a summary lists.
const MAX_CAUSES: usize = 4;
/// Most notes of all attempts together.
const MAX_NOTES: usize = 16;
/// Longest case name in a summary.
const MAX_CASE: usize = 80;

/// Judges several attempts together. Hand in only attempts that count: one that the rig
/// spoiled and that was made again after the recovery is not among them.
///
/// The first line that applies decides:
///
/// | among the attempts | verdict | cause | because |
/// |---|---|---|---|
/// | none at all | inconclusive | `no_results` | nothing was tried |
/// | a cancelled one | cancelled | that attempt's | the set is not what was asked for, so neither "fails always" nor "flaky" can be told from it |
/// | a flaky one, or passed and failed ones | flaky | `flaky` | both outcomes are proven, and nothing else that happened unproves them |
/// | a failed one | fail | the first failed one's | the target failed whenever anything was proven |
/// | an environment error | env_error | the first such one's | the rig spoiled an attempt and was not recovered; passes beside it are not what was asked for |
/// | an inconclusive one | inconclusive | the first such one's | a pass needs proof in every attempt |
/// | passed ones only | pass | the last one's | proven every time |
///
/// A rig failure thus never makes a run flaky. Evidence and cases are those of the
/// deciding attempt, notes those of all. A single attempt is returned as it is.
pub fn combine(attempts: &[Verdict]) -> Verdict {
    let mut verdict = deciding(attempts);
    let notes = attempts.iter().flat_map(|attempt| &attempt.notes);
    verdict.notes = notes.take(MAX_NOTES).cloned().collect();
    verdict
}

fn deciding(attempts: &[Verdict]) -> Verdict {
    use VerdictKind::{Cancelled, EnvError, Fail, Flaky, Inconclusive, Pass};
    let first = |kind| attempts.iter().find(|verdict| verdict.kind == kind);
    match attempts {
        [] => return Verdict::of(Cause::NoResults, "no attempt was made"),
        [only] => return only.clone(),
        _ => {}
    }
    let flaky = first(Flaky).or_else(|| first(Pass).and(first(Fail)));
    if first(Cancelled).is_none()
        && let Some(shown) = flaky
    {
        // The failed attempt is what people look for first.
        let shown = first(Fail).unwrap_or(shown);
        return Verdict {
            evidence: shown.evidence.clone(),
            tests: shown.tests.clone(),
            ..Verdict::of(Cause::Flaky, summary(attempts))
        };
    }
    let deciding = [Cancelled, Fail, EnvError, Inconclusive].into_iter().find_map(first);
    let deciding = deciding.or(attempts.last());
    deciding.map_or_else(
        || Verdict::of(Cause::NoResults, "no attempt was made"),
        |verdict| Verdict {
            summary: format!("{}; {}", summary(attempts), verdict.summary),
            ..verdict.clone()
        },
    )
}

/// Counts: `passed 7 of 10: 3 x test_failed (a::b)`.
fn summary(attempts: &[Verdict]) -> String {
    let passed = attempts.iter().filter(|v| v.kind == VerdictKind::Pass).count();
    let mut text = format!("passed {passed} of {}", attempts.len());
    let mut causes: Vec<(Cause, usize, Option<&str>)> = Vec::new();
    for verdict in attempts.iter().filter(|v| v.kind != VerdictKind::Pass) {
        let case = first_bad_case(&verdict.tests);
        match causes.iter_mut().find(|(cause, ..)| *cause == verdict.cause) {
            Some((_, count, known)) => {
                *count += 1;
                *known = known.or(case);
            }
            None => causes.push((verdict.cause, 1, case)),
        }
    }
    for (n, (cause, count, case)) in causes.iter().take(MAX_CAUSES).enumerate() {
        let case = case.map(|name| format!(" ({})", one_line(&cut(name, MAX_CASE))));
        let separator = if n == 0 { ": " } else { ", " };
        text += &format!("{separator}{count} x {cause}{}", case.unwrap_or_default());
    }
    if causes.len() > MAX_CAUSES {
        text += &format!(", {} more causes", causes.len() - MAX_CAUSES);
    }
    text
}

fn first_bad_case(tests: &TestReport) -> Option<&str> {
    let bad = |status| matches!(status, CaseStatus::Fail | CaseStatus::Unfinished);
    tests.cases.iter().find(|case| bad(case.status)).map(|case| case.name.as_str())
}

#[cfg(test)]
mod tests {
    use jig_model::Note;

    use jig_model::result::TestCase;

    use super::*;

    const KINDS: [VerdictKind; 6] = [
        VerdictKind::Pass,
        VerdictKind::Fail,
        VerdictKind::Flaky,
        VerdictKind::EnvError,
        VerdictKind::Inconclusive,
        VerdictKind::Cancelled,
    ];

    fn verdict(kind: VerdictKind) -> Verdict {
        let cause = Cause::ALL.iter().find(|cause| cause.verdict() == kind).unwrap();
        Verdict::of(*cause, format!("a {kind}"))
    }

    /// The table again, in letters, written by hand for every multiset of up to three:
    /// Pass, Fail, flaKy, Env error, Inconclusive, Cancelled.
    const EXPECTED: &str = "
        P=P F=F K=K E=E I=I C=C
        PP=P PF=K PK=K PE=E PI=I PC=C FF=F FK=K FE=F FI=F FC=C KK=K KE=K KI=K KC=C
        EE=E EI=E EC=C II=I IC=C CC=C
        PPP=P PPF=K PPK=K PPE=E PPI=I PPC=C PFF=K PFK=K PFE=K PFI=K PFC=C
        PKK=K PKE=K PKI=K PKC=C PEE=E PEI=E PEC=C PII=I PIC=C PCC=C
        FFF=F FFK=K FFE=F FFI=F FFC=C FKK=K FKE=K FKI=K FKC=C
        FEE=F FEI=F FEC=C FII=F FIC=C FCC=C
        KKK=K KKE=K KKI=K KKC=C KEE=K KEI=K KEC=C KII=K KIC=C KCC=C
        EEE=E EEI=E EEC=C EII=E EIC=C ECC=C III=I IIC=C ICC=C CCC=C";

    fn kind(letter: char) -> VerdictKind {
        KINDS["PFKEIC".find(letter).unwrap()]
    }

    #[test]
    fn every_multiset_of_up_to_three_is_judged_as_tabled() {
        let mut seen = 0;
        for entry in EXPECTED.split_whitespace() {
            let (attempts, expected) = entry.split_once('=').unwrap();
            let kinds: Vec<VerdictKind> = attempts.chars().map(kind).collect();
            // In every order, by rotating and reversing: that is all orders of three.
            for turn in 0..kinds.len() {
                let mut order = kinds.clone();
                order.rotate_left(turn);
                for _ in 0..2 {
                    order.reverse();
                    let verdicts: Vec<Verdict> = order.iter().copied().map(verdict).collect();
                    let combined = combine(&verdicts);
                    assert_eq!(combined.kind, kind(expected.chars().next().unwrap()), "{entry}");
                    assert_eq!(combined.cause.verdict(), combined.kind, "{entry}");
                }
            }
            seen += 1;
        }
        // 6 + 21 + 56 multisets of six kinds.
        assert_eq!(seen, 83);
        assert_eq!(combine(&[]).kind, VerdictKind::Inconclusive);
    }

    #[test]
    fn notes_of_every_attempt_are_kept_and_bounded() {
        let mut noted = verdict(VerdictKind::Pass);
        noted.notes.push(Note::Text("attached twice".to_owned()));
        let attempts = [verdict(VerdictKind::Fail), noted.clone(), noted.clone()];
        assert_eq!(combine(&attempts).notes, ["attached twice", "attached twice"]);
        assert_eq!(combine(&vec![noted; 100]).notes.len(), MAX_NOTES);
    }

    #[test]
    fn the_summary_counts() {
        let mut failed = Verdict::of(Cause::TestFailed, "1 of 2 failed");
        failed.tests.cases.push(TestCase {
            name: "a::b".into(),
            status: CaseStatus::Fail,
            message: None,
            duration_ms: None,
            start: 0,
            end: 0,
        });
        let mut attempts = vec![verdict(VerdictKind::Pass); 7];
        attempts.extend(vec![failed.clone(); 3]);
        let combined = combine(&attempts);
        assert_eq!(combined.summary, "passed 7 of 10: 3 x test_failed (a::b)");
        assert_eq!(combined.tests, failed.tests);
    }
}
