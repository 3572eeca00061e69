//! What follows an error of a repair run: how often it is recovered, by what, and where the run goes
//! on. Pure, one table.

use crate::machine::{RepairEvent, RepairState};

jig_model::words! {
    /// Names the classes of errors.
    ErrorClass, "error class" {
        /// The firmware does not build.
        BuildFailure = "BUILD_FAILURE",
        /// The rig failed.
        TestEnvFailure = "TEST_ENV_FAILURE",
        /// A state took too long.
        Timeout = "TIMEOUT",
        /// A log, a result or an image is missing.
        ArtifactMissing = "ARTIFACT_MISSING",
        /// The failure could not be analysed.
        AnalysisFailure = "ANALYSIS_FAILURE",
        /// An agent gave no usable answer.
        ModelFailure = "MODEL_FAILURE",
        /// A proposal breaks the policy.
        PolicyViolation = "POLICY_VIOLATION",
        /// A patch does not apply.
        PatchApplyFailure = "PATCH_APPLY_FAILURE",
        /// A step failed in a way that it does not know.
        UnhandledException = "UNHANDLED_EXCEPTION",
    }
}

jig_model::words! {
    /// Names what is done about an error.
    RecoveryAction, "recovery action" {
        /// The build folder is cleaned.
        CleanBuild = "clean_build",
        /// The rig recovers the place, step by step.
        RecoverRig = "recover_rig",
        /// Logs and results are collected again.
        CollectAgain = "collect_again",
        /// The next agent is asked, with more constraints.
        Degrade = "degrade",
        /// The patch is taken back.
        RollBack = "roll_back",
        /// The run ends.
        GiveUp = "give_up",
    }
}

/// Most recoveries of one class in a row: the third error of a class in a row is no accident.
pub const MAX_RETRIES: u32 = 3;

/// What follows an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorRecovery {
    /// What is done.
    pub action: RecoveryAction,
    /// How the run goes on afterwards.
    pub event: RepairEvent,
    /// Whether the iteration counts: an error of the rig uses none, nor does the end of a run, nor what
    /// the same candidate goes on with.
    pub uses_iteration: bool,
}

/// Says what follows an error.
///
/// `retries` counts the errors of this class before it since the last progress; `state` is where it
/// occurred; `can_roll_back` tells whether a patch is applied that can be taken back; `agents_left`
/// whether the ladder has another agent, which was not asked yet: what the ones before it could not do
/// says nothing of it.
pub fn recovery_of(
    class: ErrorClass,
    state: RepairState,
    retries: u32,
    can_roll_back: bool,
    agents_left: bool,
) -> ErrorRecovery {
    let recovery = first_recovery_of(class, state, retries, can_roll_back);
    let asks_another = recovery.action == RecoveryAction::Degrade && agents_left;
    if retries < MAX_RETRIES || asks_another {
        return recovery;
    }
    let (action, event) = (RecoveryAction::GiveUp, RepairEvent::Unrecoverable);
    ErrorRecovery { action, event, uses_iteration: false }
}

/// Says what follows an error that is not one too many.
fn first_recovery_of(
    class: ErrorClass,
    state: RepairState,
    retries: u32,
    can_roll_back: bool,
) -> ErrorRecovery {
    use ErrorClass as C;
    use RecoveryAction as A;
    use RepairEvent as E;
    // The same candidate goes on behind a clean build, or with results that are collected again.
    let same = |action| matches!(action, A::GiveUp | A::CleanBuild | A::CollectAgain);
    let to = |action, event| ErrorRecovery { action, event, uses_iteration: !same(action) };
    let on_the_rig = matches!(state, RepairState::TestSetup | RepairState::TestRun);
    match class {
        // A clean build did not help: it is the patch.
        C::BuildFailure if retries > 0 && can_roll_back => to(A::RollBack, E::RecoveredToAnalysis),
        C::BuildFailure if state == RepairState::BuildSetup => {
            to(A::CleanBuild, E::RecoveredToBuildSetup)
        }
        C::BuildFailure => to(A::CleanBuild, E::RecoveredToBuild),
        // What builds is gone: no recovery of the rig brings it back.
        C::TestEnvFailure if matches!(state, RepairState::BuildSetup | RepairState::BuildRun) => {
            to(A::GiveUp, E::Unrecoverable)
        }
        // A trial of proposals: none of them is a candidate yet.
        C::TestEnvFailure if state == RepairState::PatchGeneration => {
            ErrorRecovery { uses_iteration: false, ..to(A::RecoverRig, E::RecoveredToAnalysis) }
        }
        C::TestEnvFailure => {
            ErrorRecovery { uses_iteration: false, ..to(A::RecoverRig, E::RecoveredToTestSetup) }
        }
        // What takes too long on the rig may be the rig: it is asked before the patch is blamed.
        C::Timeout if on_the_rig => {
            ErrorRecovery { uses_iteration: false, ..to(A::RecoverRig, E::RecoveredToTestSetup) }
        }
        C::ArtifactMissing => to(A::CollectAgain, E::RecoveredToCollection),
        C::AnalysisFailure | C::ModelFailure => to(A::Degrade, E::RecoveredToAnalysis),
        C::Timeout | C::PolicyViolation | C::PatchApplyFailure | C::UnhandledException
            if can_roll_back =>
        {
            to(A::RollBack, E::RecoveredToAnalysis)
        }
        // Nothing is applied yet, so there is nothing to take back.
        C::PolicyViolation | C::PatchApplyFailure => to(A::Degrade, E::RecoveredToAnalysis),
        C::Timeout | C::UnhandledException => to(A::GiveUp, E::Unrecoverable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::next;

    #[test]
    fn every_recovery_is_a_transition_and_none_is_endless() {
        for &class in ErrorClass::ALL {
            for &state in RepairState::ALL {
                for can_roll_back in [false, true] {
                    for retries in 0..=MAX_RETRIES {
                        for agents_left in [false, true] {
                            let recovery =
                                recovery_of(class, state, retries, can_roll_back, agents_left);
                            assert!(next(RepairState::ErrorRecovery, recovery.event).is_ok());
                        }
                    }
                    let last = recovery_of(class, state, MAX_RETRIES, can_roll_back, false);
                    assert_eq!(last.event, RepairEvent::Unrecoverable);
                }
            }
        }
    }

    #[test]
    fn a_ladder_with_an_agent_that_was_not_asked_is_not_given_up() {
        let state = RepairState::PatchGeneration;
        for class in [ErrorClass::ModelFailure, ErrorClass::PolicyViolation] {
            let action =
                |agents_left| recovery_of(class, state, MAX_RETRIES + 4, false, agents_left).action;
            assert_eq!(action(true), RecoveryAction::Degrade, "{class}");
            assert_eq!(action(false), RecoveryAction::GiveUp, "{class}");
        }
        let rig = recovery_of(ErrorClass::TestEnvFailure, state, MAX_RETRIES, false, true);
        assert_eq!(rig.action, RecoveryAction::GiveUp);
    }

    #[test]
    fn errors_of_the_rig_recover_the_rig_and_use_no_iteration() {
        for class in [ErrorClass::TestEnvFailure, ErrorClass::Timeout] {
            let recovery = recovery_of(class, RepairState::TestRun, 0, true, false);
            assert_eq!(recovery.action, RecoveryAction::RecoverRig);
            assert_eq!(recovery.event, RepairEvent::RecoveredToTestSetup);
            assert!(!recovery.uses_iteration);
        }
        let trial =
            recovery_of(ErrorClass::TestEnvFailure, RepairState::PatchGeneration, 0, false, false);
        assert_eq!(trial.action, RecoveryAction::RecoverRig);
        assert_eq!((trial.event, trial.uses_iteration), (RepairEvent::RecoveredToAnalysis, false));
    }

    #[test]
    fn a_patch_that_does_not_build_uses_one_iteration_and_a_host_that_does_not_none() {
        let build =
            |class, retries| recovery_of(class, RepairState::BuildRun, retries, true, false);
        let used = [0, 1].map(|retries| build(ErrorClass::BuildFailure, retries).uses_iteration);
        assert_eq!(used, [false, true]);
        let again =
            recovery_of(ErrorClass::ArtifactMissing, RepairState::ResultCollection, 0, true, false);
        assert_eq!((again.action, again.uses_iteration), (RecoveryAction::CollectAgain, false));
        for state in [RepairState::BuildSetup, RepairState::BuildRun] {
            let gone = recovery_of(ErrorClass::TestEnvFailure, state, 0, true, false);
            assert_eq!((gone.event, gone.uses_iteration), (RepairEvent::Unrecoverable, false));
        }
    }

    #[test]
    fn other_classes_go_where_the_specification_sends_them() {
        use ErrorClass as C;
        use RepairEvent as E;
        use RepairState as S;
        for (class, state, event) in [
            (C::BuildFailure, S::BuildRun, E::RecoveredToBuild),
            (C::BuildFailure, S::BuildSetup, E::RecoveredToBuildSetup),
            (C::ArtifactMissing, S::ResultCollection, E::RecoveredToCollection),
            (C::AnalysisFailure, S::CodeAnalysis, E::RecoveredToAnalysis),
            (C::ModelFailure, S::ResultAnalysis, E::RecoveredToAnalysis),
            (C::PolicyViolation, S::PatchGeneration, E::RecoveredToAnalysis),
            (C::PatchApplyFailure, S::PatchApply, E::RecoveredToAnalysis),
            (C::UnhandledException, S::BuildRun, E::RecoveredToAnalysis),
        ] {
            assert_eq!(recovery_of(class, state, 0, true, false).event, event, "{class}");
        }
        let again = recovery_of(C::BuildFailure, S::BuildRun, 1, true, false);
        assert_eq!((again.action, again.event), (RecoveryAction::RollBack, E::RecoveredToAnalysis));
        let at_start = recovery_of(C::UnhandledException, S::Init, 0, false, false);
        assert_eq!(at_start.event, E::Unrecoverable);
    }
}
