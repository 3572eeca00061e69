//! The words of the repair machine. What leads where is said by the table alone.

jig_model::words! {
    /// Names where a repair run stands.
    #[derive(Default)]
    RepairState, "repair state" {
        /// No task is under way.
        #[default]
        Idle = "IDLE",
        /// Configuration, rig, repository and baseline are checked.
        Init = "INIT",
        /// The failure is located and a plan for a patch is made.
        CodeAnalysis = "CODE_ANALYSIS",
        /// An agent proposes a patch, which is checked against the policy.
        PatchGeneration = "PATCH_GENERATION",
        /// The patch becomes a commit of the run's own branch.
        PatchApply = "PATCH_APPLY",
        /// Tool chain and build folder are made ready.
        BuildSetup = "BUILD_SETUP",
        /// The firmware is built.
        BuildRun = "BUILD_RUN",
        /// The board is reserved, checked and loaded.
        TestSetup = "TEST_SETUP",
        /// The plan runs on the board.
        TestRun = "TEST_RUN",
        /// Logs, results and artefacts are brought together.
        ResultCollection = "RESULT_COLLECTION",
        /// The result is classified: pass, failure, environment.
        ResultAnalysis = "RESULT_ANALYSIS",
        /// A pure function decides whether the run goes on.
        ConvergenceCheck = "CONVERGENCE_CHECK",
        /// An error is classified, and its recovery carried out.
        ErrorRecovery = "ERROR_RECOVERY",
        /// The goal is reached and proven.
        Success = "SUCCESS",
        /// The goal is not reached.
        Failure = "FAILURE",
        /// The run was stopped from outside.
        Aborted = "ABORTED",
    }
}

impl RepairState {
    /// Tells whether a run ends in this state.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Success | Self::Failure | Self::Aborted)
    }

    /// Lists the parts of a state that are recorded by themselves, in order.
    pub fn sub_states(self) -> &'static [RepairSubState] {
        use RepairSubState as Sub;
        match self {
            Self::CodeAnalysis => {
                &[Sub::LogTriage, Sub::RootCauseHypothesis, Sub::ChangeImpactEstimate]
            }
            Self::TestSetup => &[Sub::ResourceAlloc, Sub::FlashOrDeploy, Sub::HealthCheck],
            Self::ResultCollection => &[Sub::FetchLogs, Sub::Normalize, Sub::AttachArtifacts],
            _ => &[],
        }
    }
}

jig_model::words! {
    /// Names a part of a state.
    RepairSubState, "repair sub-state" {
        /// The log is searched for the first bad line.
        LogTriage = "LOG_TRIAGE",
        /// Suspect lines are ranked.
        RootCauseHypothesis = "ROOT_CAUSE_HYPOTHESIS",
        /// What a change would touch is estimated.
        ChangeImpactEstimate = "CHANGE_IMPACT_ESTIMATE",
        /// A board is reserved.
        ResourceAlloc = "RESOURCE_ALLOC",
        /// The image is put on the board.
        FlashOrDeploy = "FLASH_OR_DEPLOY",
        /// The board is checked.
        HealthCheck = "HEALTH_CHECK",
        /// Logs are copied from the rig.
        FetchLogs = "FETCH_LOGS",
        /// Results become rows of one form.
        Normalize = "NORMALIZE",
        /// Artefacts are bound to the rows.
        AttachArtifacts = "ATTACH_ARTIFACTS",
    }
}

jig_model::words! {
    /// Names what moves a repair run.
    RepairEvent, "repair event" {
        /// A task came in.
        TaskRequested = "task_requested",
        /// Configuration, rig, repository and baseline are as they must be.
        ContextReady = "context_ready",
        /// The baseline passes, or fails differently each time: there is nothing to repair.
        BaselineRefused = "baseline_refused",
        /// There is a plan for a patch.
        PatchPlanned = "patch_planned",
        /// The failure could not be analysed.
        AnalysisFailed = "analysis_failed",
        /// The proposed patch keeps the policy.
        PatchValid = "patch_valid",
        /// The proposed patch is unusable, or breaks the policy.
        PatchInvalid = "patch_invalid",
        /// The patch is applied.
        WorkspaceUpdated = "workspace_updated",
        /// The patch does not apply.
        ApplyFailed = "apply_failed",
        /// The build can begin.
        BuildReady = "build_ready",
        /// A tool of the build is missing.
        ToolchainMissing = "toolchain_missing",
        /// The build made its artefact.
        BuildPassed = "build_passed",
        /// The build failed.
        BuildFailed = "build_failed",
        /// The board is ready for the test.
        EnvironmentReady = "environment_ready",
        /// The board could not be made ready.
        EnvironmentFailed = "environment_failed",
        /// The test ran to its end, whatever its result.
        TestFinished = "test_finished",
        /// The test did not run to its end.
        RunnerFailed = "runner_failed",
        /// The results are complete and in one form.
        ResultNormalized = "result_normalized",
        /// Results or artefacts are missing.
        ArtifactsMissing = "artifacts_missing",
        /// The result is classified.
        DecisionProduced = "decision_produced",
        /// The result could not be classified.
        DecisionFailed = "decision_failed",
        /// The rig failed, not the firmware.
        EnvironmentBlamed = "environment_blamed",
        /// A further iteration begins.
        Continue = "continue",
        /// The goal is reached and stable.
        Converged = "converged",
        /// The goal is not reached, and the best result so far is accepted with a warning.
        AcceptedWithWarning = "accepted_with_warning",
        /// Nothing improves any more; a further iteration begins with another agent.
        StrategySwitched = "strategy_switched",
        /// Nothing improves any more, and a person has to decide.
        HumanReview = "human_review",
        /// A limit is reached, or no iteration makes progress.
        NoProgress = "no_progress",
        /// The run is to stop.
        Abort = "abort",
        /// A state took longer than it may.
        TimedOut = "timed_out",
        /// A step failed in a way that it does not know.
        UnhandledError = "unhandled_error",
        /// The run goes on with the analysis.
        RecoveredToAnalysis = "recovered_to_analysis",
        /// The run goes on with the preparation of the build.
        RecoveredToBuildSetup = "recovered_to_build_setup",
        /// The run goes on with the build.
        RecoveredToBuild = "recovered_to_build",
        /// The run goes on with the preparation of the test.
        RecoveredToTestSetup = "recovered_to_test_setup",
        /// The run goes on with the collection of results.
        RecoveredToCollection = "recovered_to_collection",
        /// No recovery is left.
        Unrecoverable = "unrecoverable",
        /// The report is written, and the next task may come.
        Reported = "reported",
    }
}
