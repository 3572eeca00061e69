//! From answers of a model to drafts: plans, refined plans, a step in the place of another, and the answer to the
//! person.

use jig_agents::budget::PromptPart;
use jig_agents::guard::check_arguments;
use jig_agents::roles::{
    AgentRole, AnalysisAnswer, NextAction, RoleTask, json_of, read_person_questions, read_question,
    read_step,
};
use serde_json::json;

use super::asking::{self, AskedAbout};
use super::known::{ModelTask, parts_for};
use super::thinker::Thinker;
use crate::error::{OperatorCode, OperatorError};
use crate::journal::ClarifyingQuestion;
use crate::plan::{PlanDraft, PlanDraftStep, VerificationMode, VerificationPolicy, read_draft};
use crate::tools::ToolList;

/// Most steps of a plan of a model.
const MAX_STEPS: usize = 16;

/// Checks a draft and returns what it is lowered to.
pub(crate) type DraftCheck<'c, T> = &'c (dyn Fn(&PlanDraft) -> Result<T, OperatorError> + Sync);

/// What a model answers that is asked for a plan.
pub(crate) enum PlanAnswer<T> {
    /// The plan.
    Plan(T),
    /// What it has to know before.
    Questions(Vec<ClarifyingQuestion>),
}

/// Makes a plan, or asks what is missing. An answer that cannot be used is repaired once.
pub(crate) async fn planned<T>(
    thinker: &mut Thinker,
    task: &ModelTask,
    check: DraftCheck<'_, T>,
) -> Result<PlanAnswer<T>, OperatorError> {
    let read = |answer: &str| match read_person_questions(answer)
        .map_err(|error| unfit(error.to_string()))?
    {
        Some(questions) => {
            let about = AskedAbout {
                request: &task.text,
                tools: &task.tools,
                places: &task.places,
                again: !task.answers.is_empty(),
            };
            let put = asking::put(questions, &about);
            put.map(PlanAnswer::Questions).map_err(|error| unfit(error.to_string()))
        }
        None => {
            let draft = draft_of(answer, &task.tools)?;
            check(&draft).map(PlanAnswer::Plan)
        }
    };
    asked(thinker, task, (AgentRole::Test, RoleTask::Plan), &[], &read).await
}

/// Makes a better plan behind an evaluation that did not pass; nothing where the model sees none.
pub(crate) async fn refined<T>(
    thinker: &mut Thinker,
    task: &ModelTask,
    results: Vec<PromptPart>,
    check: DraftCheck<'_, T>,
) -> Result<Option<T>, OperatorError> {
    let read = |answer: &str| {
        let json = json_of(answer).map_err(|error| unfit(error.to_string()))?;
        match read_draft(&json) {
            Ok(draft) if draft.steps.is_empty() => Ok(None),
            _ => draft_of(answer, &task.tools).and_then(|draft| check(&draft)).map(Some),
        }
    };
    asked(thinker, task, (AgentRole::Test, RoleTask::Refine), &results, &read).await
}

/// Writes another step in the place of one that could not be carried out; nothing where no other call helps. The
/// first value is what the model thinks.
pub(crate) async fn adjusted<T>(
    thinker: &mut Thinker,
    task: &ModelTask,
    (plan, step, error): (&PlanDraft, u32, &OperatorError),
    check: DraftCheck<'_, T>,
) -> Result<(String, Option<T>), OperatorError> {
    let failed = plan.steps.iter().find(|one| one.step_id == step);
    let text = json!({ "failed_step": failed, "error": error }).to_string();
    let first = [PromptPart { name: "failed step", text }];
    let read = |answer: &str| {
        let said = read_step(answer).map_err(|error| unfit(error.to_string()))?;
        let Some(action) = said.action else { return Ok((said.thought, None)) };
        let action: PlanDraftStep = serde_json::from_value(action)
            .map_err(|error| unfit(format!("`action` is no step: {error}")))?;
        if action.step_id != step {
            return Err(unfit(format!("`action` has to have the step_id {step}")));
        }
        if failed.is_some_and(|failed| {
            (&failed.skill_name, &failed.params) == (&action.skill_name, &action.params)
        }) {
            return Err(unfit("`action` is the call that failed".to_owned()));
        }
        let mut draft = plan.clone();
        if let Some(place) = draft.steps.iter_mut().find(|one| one.step_id == step) {
            *place = action;
        }
        guarded(&draft, &task.tools)?;
        Ok((said.thought, Some(check(&draft)?)))
    };
    asked(thinker, task, (AgentRole::Test, RoleTask::Adjust), &first, &read).await
}

/// Answers the person out of the results. The second value says where the answer claims more than they show.
pub(crate) async fn answered(
    thinker: &mut Thinker,
    task: &ModelTask,
    results: Vec<PromptPart>,
) -> Result<(AnalysisAnswer, Option<String>), OperatorError> {
    let read =
        |answer: &str| AnalysisAnswer::read(answer).map_err(|error| unfit(error.to_string()));
    let roles = (AgentRole::Analysis, RoleTask::Plan);
    let answer = asked(thinker, task, roles, &results, &read).await?;
    let mut state = task.state.clone();
    let claims = answer.next_action == NextAction::Finish && !state.test_results.is_empty();
    state.read_analysis(&answer);
    let refused = claims && state.next_action != NextAction::Finish.as_str();
    let remark = "the model's answer claims success, and the verdicts do not: they count";
    Ok((answer, refused.then(|| remark.to_owned())))
}

/// Phrases a question to what the lab knows.
pub(crate) async fn searched(
    thinker: &mut Thinker,
    task: &ModelTask,
) -> Result<String, OperatorError> {
    let read = |answer: &str| read_question(answer).map_err(|error| unfit(error.to_string()));
    asked(thinker, task, (AgentRole::Knowledge, RoleTask::Plan), &[], &read).await
}

/// Asks, reads the answer, and asks once more with the reasons where it cannot be used.
async fn asked<T>(
    thinker: &mut Thinker,
    task: &ModelTask,
    (role, of): (AgentRole, RoleTask),
    first: &[PromptPart],
    read: &(dyn Fn(&str) -> Result<T, OperatorError> + Sync),
) -> Result<T, OperatorError> {
    let prompt = thinker.prompt_of(role)?;
    let parts = parts_for(task, role, first);
    let question = prompt.question(of, &task.request(), &parts, thinker.question_tokens());
    let answer = thinker.ask(role, question.as_ref()).await?;
    let reasons = match read(&answer) {
        Ok(found) => return Ok(found),
        Err(error) => error,
    };
    let again = question.and_then(|before| {
        prompt.again(&before, &answer, &reasons.message, thinker.repair_tokens())
    });
    let Some(again) = again else { return Err(reasons) };
    let answer = thinker.ask(role, Some(&again)).await?;
    read(&answer).map_err(|error| {
        let words =
            format!("the model's answer cannot be used, also the second one: {}", error.message);
        OperatorError::new(OperatorCode::Model, words)
            .next("ask in other words; jig ask --forms lists what needs no model")
            .untouched()
    })
}

fn unfit(message: String) -> OperatorError {
    OperatorError::new(OperatorCode::Model, message).untouched()
}

/// Reads a plan out of an answer.
fn draft_of(answer: &str, tools: &ToolList) -> Result<PlanDraft, OperatorError> {
    let json = json_of(answer).map_err(|error| unfit(error.to_string()))?;
    let mut draft = read_draft(&json)?;
    if draft.steps.len() > MAX_STEPS {
        return Err(unfit(format!("a plan has at most {MAX_STEPS} steps")));
    }
    guarded(&draft, tools)?;
    draft.verification = verification(&draft);
    Ok(draft)
}

/// Refuses calls that a model may not plan.
fn guarded(draft: &PlanDraft, tools: &ToolList) -> Result<(), OperatorError> {
    let mut wrong = Vec::new();
    for step in &draft.steps {
        let refused = check_arguments(&serde_json::Value::Object(step.params.clone()));
        wrong.extend(refused.err().map(|refusal| format!("step {}: {refusal}", step.step_id)));
        if tools.find(&step.skill_name).is_none() {
            let name: String = step.skill_name.chars().take(64).collect();
            wrong.push(format!("step {}: there is no tool {name:?}", step.step_id));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(unfit(wrong.join("; "))),
    }
}

/// Returns the verification of a model's plan. A model may add commands that read, and may not do without the
/// verdicts of its runs.
fn verification(draft: &PlanDraft) -> Option<VerificationPolicy> {
    let makes_runs =
        draft.steps.iter().any(|step| matches!(step.skill_name.as_str(), "run" | "test"));
    let commands = draft.verification.as_ref().map(|policy| policy.commands.clone());
    let commands = commands.filter(|commands| !commands.is_empty());
    match (makes_runs, commands) {
        (true, commands) => Some(VerificationPolicy {
            commands: commands.unwrap_or_default(),
            ..VerificationPolicy::verdicts()
        }),
        (false, Some(commands)) => Some(VerificationPolicy {
            mode: VerificationMode::Custom,
            commands,
            required: true,
            stop_on_fail: false,
        }),
        (false, None) => None,
    }
}
