//! Which answers a run is driven for while it waits for them. Pure.

use crate::run::Run;

/// Says what is done where a run waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// The answer is awaited, however long it takes.
    Await,
    /// A patch of a client is awaited, as long as a run may take; where a person has to answer, the run
    /// is left as it is.
    AwaitPatches,
    /// The run is left as it is; it can be driven on later.
    Leave,
}

impl Waiting {
    /// Tells whether an answer that a run waits for is awaited now.
    pub fn awaits(self, run: &Run, now_ms: u64) -> bool {
        let most_ms = run.contract.limits.wall_s.saturating_mul(1000);
        match self {
            Self::Await => true,
            Self::AwaitPatches => run.waits_for_patch() && run.waited_ms(now_ms) < most_ms,
            Self::Leave => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::RepairState;
    use crate::runs_for_tests::begun;

    #[test]
    fn a_patch_is_awaited_as_long_as_a_run_may_take_and_an_approval_is_not() {
        let mut run = begun(1000);
        let end = 1000 + run.contract.limits.wall_s * 1000;
        let awaits = |run: &Run, now| {
            [Waiting::Await, Waiting::AwaitPatches, Waiting::Leave]
                .map(|waiting| waiting.awaits(run, now))
        };
        run.waits = Some("digest".to_owned());
        run.state = RepairState::PatchGeneration;
        assert_eq!(awaits(&run, end - 1), [true, true, false]);
        assert_eq!(awaits(&run, end), [true, false, false]);
        run.state = RepairState::PatchApply;
        assert_eq!(awaits(&run, 1000), [true, false, false]);
    }
}
