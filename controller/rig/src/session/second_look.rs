//! The same test once more, where a report came in pieces.
//!
//! # Design
//! A known-good image that passes shows that the rig works now, not that it worked then: a few
//! bytes that a wire has lost leave no other trace. So a report in which something is missing
//! is asked for again. What is missing each time, the target does not print. What comes the
//! second time was lost, or comes only now and then: neither is proven, so neither is said, and
//! nothing that was missing becomes a pass. Silence is not asked again: it takes as long as the
//! whole time-out, and is a matter for the known-good image.
//!
//! A build id is another matter: an attempt that lacks it may have run another image, so it is
//! no attempt of this one. The next, which proves what runs, stands for itself.

use jig_model::{Cause, Purpose, Verdict, VerdictKind};

use super::making::Making;
use crate::store::StoreError;

impl Making<'_> {
    /// Makes the test again if its report came in pieces; returns what both together amount
    /// to, if that is something else.
    pub(super) async fn second_look(
        &mut self,
        first: &Verdict,
    ) -> Result<Option<Verdict>, StoreError> {
        let pieces = matches!(
            first.cause,
            Cause::PlanMismatch | Cause::NoEnd | Cause::NoTests | Cause::IdentityMissing
        );
        if !pieces || self.cures == 0 || self.cancel.is_cancelled() {
            return Ok(None);
        }
        self.amend(first, true).await?;
        let again = self.attempt(Purpose::Test, self.plan, self.images).await?;
        Ok(together(first, again))
    }
}

/// Says what two attempts amount to, of which the first had a report in pieces.
fn together(first: &Verdict, again: Verdict) -> Option<Verdict> {
    match again.kind {
        // What it is seen to do wrong is proven.
        VerdictKind::Fail | VerdictKind::Cancelled => Some(again),
        VerdictKind::Pass if first.cause == Cause::IdentityMissing => {
            let mut again = again;
            let note = "made again, because nothing showed which image had run";
            again.notes.insert(0, note.to_owned());
            Some(again)
        }
        VerdictKind::Pass => {
            let summary = format!(
                "{}; made again, nothing was missing: it was lost on the way, or comes only now \
                 and then (find out: --repeat 10)",
                first.summary
            );
            Some(Verdict {
                evidence: first.evidence.clone(),
                tests: first.tests.clone(),
                notes: first.notes.clone(),
                ..Verdict::of(Cause::OutputLost, summary)
            })
        }
        VerdictKind::Flaky | VerdictKind::EnvError | VerdictKind::Inconclusive => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_never_become_a_pass_and_a_seen_failure_stands() {
        let first = Verdict::of(Cause::PlanMismatch, "3 announced, 2 ran");
        for (again, wanted) in [
            (Cause::Passed, Some(Cause::OutputLost)),
            (Cause::TestFailed, Some(Cause::TestFailed)),
            (Cause::PlanMismatch, None),
            (Cause::EmulatorKilled, None),
        ] {
            let found = together(&first, Verdict::of(again, "again"));
            assert_eq!(found.map(|verdict| verdict.cause), wanted, "{again}");
        }
        let unknown = Verdict::of(Cause::IdentityMissing, "no id");
        let found = together(&unknown, Verdict::of(Cause::Passed, "again")).unwrap();
        assert_eq!((found.cause, found.notes.len()), (Cause::Passed, 1));
    }
}
