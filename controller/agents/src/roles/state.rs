//! The state that all roles share.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::AgentRole;
use super::read::{AnalysisAnswer, NextAction};

/// What all roles share. A role reads the fields that concern it, and its answer changes its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleState {
    /// The task: a repair run or a session.
    pub task_id: String,
    /// The iteration, from 1.
    pub iteration: u32,
    /// The folder with the sources, or the one that files are named relative to.
    pub repo_path: String,
    /// The commit that a patch is made for.
    pub current_commit: String,
    /// The patch that waits for its review, as a unified diff or the name of its file; hostile text.
    pub patch_file: String,
    /// What is carried out on the rig.
    pub test_plan: Map<String, Value>,
    /// What came of it: an object a call, with `status`. Written by the rig alone.
    pub test_results: Vec<Map<String, Value>>,
    /// What the analysis says; hostile text.
    pub analysis_report: Map<String, Value>,
    /// What should come next: the word of a role, and no decision.
    pub next_action: String,
    /// What happened, for a reader; may quote hostile text.
    pub messages: Vec<String>,
    /// What went wrong; may quote hostile text.
    pub errors: Vec<String>,
}

impl RoleState {
    /// Returns the fields that a role reads, as an object.
    pub fn seen_by(&self, role: AgentRole) -> Value {
        let fields: &[&str] = match role {
            AgentRole::Code => {
                &["task_id", "iteration", "current_commit", "analysis_report", "errors"]
            }
            AgentRole::Test => &["task_id", "iteration", "test_plan", "test_results", "errors"],
            AgentRole::Analysis => {
                &["task_id", "iteration", "patch_file", "test_plan", "test_results", "errors"]
            }
            AgentRole::Knowledge => &["task_id", "analysis_report", "test_results", "errors"],
        };
        let mut seen = Map::new();
        if let Ok(Value::Object(all)) = serde_json::to_value(self) {
            let wanted = all.into_iter().filter(|(name, _)| fields.contains(&name.as_str()));
            seen.extend(wanted);
        }
        Value::Object(seen)
    }

    /// Tells whether there are results, and each of them passed.
    pub fn all_passed(&self) -> bool {
        let passed = |result: &Map<String, Value>| {
            result.get("status").and_then(Value::as_str) == Some("passed")
        };
        !self.test_results.is_empty() && self.test_results.iter().all(passed)
    }

    /// Takes over a patch. It is not applied: it waits for its review.
    pub fn read_patch(&mut self, diff: &str, hypothesis: &str) {
        diff.clone_into(&mut self.patch_file);
        self.next_action = NextAction::ReviewPatch.to_string();
        self.messages.push(format!("a patch waits for its review: {hypothesis}"));
    }

    /// Takes over an analysis. A claim that the goal is reached holds only where every result passed.
    pub fn read_analysis(&mut self, answer: &AnalysisAnswer) {
        let claimed = answer.next_action;
        let next = match claimed {
            NextAction::Finish if !self.all_passed() => {
                let text = "the analysis claimed success, which the results do not show";
                self.errors.push(text.to_owned());
                NextAction::Escalate
            }
            NextAction::ReviewPatch => NextAction::Escalate,
            other => other,
        };
        self.next_action = next.to_string();
        self.analysis_report = Map::from_iter([
            ("summary".to_owned(), answer.summary.clone().into()),
            ("root_cause".to_owned(), answer.root_cause.clone().into()),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_state_has_exactly_these_fields() {
        let Value::Object(fields) = serde_json::to_value(RoleState::default()).unwrap() else {
            panic!()
        };
        let mut names: Vec<_> = fields.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "analysis_report",
                "current_commit",
                "errors",
                "iteration",
                "messages",
                "next_action",
                "patch_file",
                "repo_path",
                "task_id",
                "test_plan",
                "test_results",
            ]
        );
    }

    #[test]
    fn a_claim_of_success_holds_only_where_all_results_passed() {
        let result = |status: &str| Map::from_iter([("status".to_owned(), json!(status))]);
        let claim = AnalysisAnswer {
            summary: "all good".to_owned(),
            root_cause: String::new(),
            next_action: NextAction::Finish,
        };
        for (results, wanted) in [
            (vec![result("passed"), result("passed")], "finish"),
            (vec![result("passed"), result("failed")], "escalate"),
            (vec![result("Passed")], "escalate"),
            (vec![Map::new()], "escalate"),
            (Vec::new(), "escalate"),
        ] {
            let mut state = RoleState { test_results: results, ..RoleState::default() };
            state.read_analysis(&claim);
            assert_eq!(state.next_action, wanted, "{state:?}");
        }
    }

    #[test]
    fn a_role_sees_its_own_fields() {
        let state = RoleState { repo_path: "/somewhere".to_owned(), ..RoleState::default() };
        for &role in AgentRole::ALL {
            let seen = state.seen_by(role);
            assert!(seen.get("repo_path").is_none(), "{role} sees a path of the host");
            assert_eq!(seen["task_id"], "", "{role}");
        }
    }
}
