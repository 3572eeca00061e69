//! The planner without a model: a request of the grammar becomes a plan by rules.
//!
//! It plans what the words name and nothing else. A tool that acts is only planned for the verb of its
//! name.

use jig_model::protocol::BoxFuture;
use serde_json::{Value, json};

use super::questions::steps_of_question;
use super::steps::StepList;
use super::targets::places_of_action;
use super::{PlanFeedback, PlanningTask, SessionPlanner};
use crate::error::{OperatorCode, OperatorError};
use crate::grammar::{ActionVerb, RequestAction, UserRequest};
use crate::plan::{PlanDraft, SessionPlan};

/// Plans by the grammar.
#[derive(Debug, Clone, Copy, Default)]
pub struct WordsPlanner;

impl SessionPlanner for WordsPlanner {
    fn plan<'a>(
        &'a self,
        task: PlanningTask<'a>,
    ) -> BoxFuture<'a, Result<PlanDraft, OperatorError>> {
        Box::pin(async move { planned(&task) })
    }

    fn refine<'a>(
        &'a self,
        feedback: PlanFeedback<'a>,
    ) -> BoxFuture<'a, Result<Option<PlanDraft>, OperatorError>> {
        Box::pin(async move { Ok(refined(&feedback)) })
    }
}

fn planned(task: &PlanningTask<'_>) -> Result<PlanDraft, OperatorError> {
    match task.request {
        UserRequest::Act { actions } => acting(actions, task),
        UserRequest::Ask { question } => steps_of_question(question, task),
    }
}

fn acting(actions: &[RequestAction], task: &PlanningTask<'_>) -> Result<PlanDraft, OperatorError> {
    let mut steps = StepList::default();
    // The last step of each board: later ones of the same board wait for it.
    let mut last: Vec<(String, u32)> = Vec::new();
    let mut titles = Vec::new();
    for action in actions {
        let places = places_of_action(action, task.context, task.answers)?;
        titles.push(format!("{} on {}", action.verb, places.join(", ")));
        for place in places {
            let before = last.iter().find(|(other, _)| *other == place).map(|(_, step)| *step);
            let (name, tool, params, expected) = call_of(action, &place, task);
            let params = without_nulls(params);
            let step = steps.add(name, tool, params, expected, before.into_iter().collect());
            last.retain(|(other, _)| *other != place);
            last.push((place, step));
        }
    }
    Ok(steps.drafted(titles.join(", then ")))
}

fn without_nulls(params: Value) -> Value {
    match params {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().filter(|(_, value)| !value.is_null()).collect())
        }
        other => other,
    }
}

/// Returns title, tool, arguments and expectation of an action at a place. Arguments that are null are
/// left out.
fn call_of(
    action: &RequestAction,
    place: &str,
    task: &PlanningTask<'_>,
) -> (String, &'static str, Value, &'static str) {
    let answer = |slot: &str| task.answers.get(slot).map(|answer| answer.trim().to_owned());
    let image = action.image.clone();
    let options = action.repeat.map(|repeat| json!({ "repeat": repeat }));
    match action.verb {
        ActionVerb::Flash => {
            let image = image.or_else(|| answer("image")).unwrap_or_default();
            let name = format!("flash {image} to {place}");
            let params = json!({ "place": place, "image": image });
            (name, "flash", params, "the image is in the flash of the board")
        }
        ActionVerb::Run => {
            let shown = image.as_deref().unwrap_or("what the board boots");
            let name = format!("run {shown} on {place}");
            let params = json!({ "place": place, "image": image, "options": options });
            (name, "run", params, "a run whose verdict is pass")
        }
        ActionVerb::Test => {
            let plan = action.plan.clone().or_else(|| answer("plan")).unwrap_or_default();
            let name = format!("test {plan} on {place}");
            let params =
                json!({ "place": place, "plan": plan, "image": image, "options": options });
            (name, "test", params, "a run of the plan whose verdict is pass")
        }
        ActionVerb::Reset => {
            let params = json!({ "place": place });
            (format!("reset {place}"), "reset", params, "the board starts again")
        }
        ActionVerb::Erase => {
            let params = json!({ "place": place });
            (format!("erase {place}"), "erase", params, "the flash of the board is empty")
        }
        ActionVerb::Power => {
            let power = action.power.map_or("status", |power| power.as_str());
            let params = json!({ "place": place, "action": power });
            (format!("power {power} {place}"), "power", params, "the power reads back as switched")
        }
        ActionVerb::Recover => {
            let params = json!({ "place": place });
            (format!("recover {place}"), "recover", params, "the place proves to work")
        }
        ActionVerb::Check => {
            let params = json!({ "place": place });
            (format!("check {place}"), "check", params, "the health checks pass")
        }
    }
}

/// Where runs blame the rig, the place is recovered and the same step is retried. A run that blames the
/// target is an answer, and nothing is refined.
fn refined(feedback: &PlanFeedback<'_>) -> Option<PlanDraft> {
    let SessionPlan { steps, .. } = feedback.plan;
    let failed_on_the_rig = feedback.error.code == OperatorCode::Io;
    if !failed_on_the_rig || feedback.rig_failed.is_empty() {
        return None;
    }
    let mut list = StepList::default();
    for step in steps {
        let number: u32 = step.step_id.parse().ok()?;
        let call = step.tool_calls.first()?;
        let again = feedback.rig_failed.contains(&number);
        let place = call.args.get("place").and_then(Value::as_str);
        let Some(place) = place.filter(|_| again) else { continue };
        let recovered = list.add(
            format!("recover {place}"),
            "recover",
            json!({ "place": place }),
            "the place proves to work",
            Vec::new(),
        );
        let title = format!("{} again", step.title);
        list.add(title, &call.tool, call.args.clone(), &step.intent, vec![recovered]);
    }
    let places = feedback.rig_failed.len();
    Some(list.drafted(format!("recover {places} places and make their runs again")))
}
