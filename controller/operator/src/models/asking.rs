//! Questions that a model has for the person: which of them are put. Pure.
//!
//! # Design
//! *Only what changes the plan.* A question is for one argument of one tool that may be planned, and has no answer
//! that the rig leaves no choice about or that the request names. So a model cannot hold a conversation, and cannot
//! have the person confirm anything: an answer is a value, and the plan that is made with it is judged as any other.

use jig_agents::roles::PersonQuestion;
use serde_json::Value;

use crate::journal::ClarifyingQuestion;
use crate::tools::{Tool, ToolList};

/// Most questions of a session.
const MAX_QUESTIONS: usize = 3;

/// Most choices that a question lists.
const MAX_CHOICES: usize = 12;

/// Begins the slots of answers to questions of a model.
const SLOT: &str = "model:";

/// Says why questions are not put.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RefusedQuestion {
    #[error("the person was asked before: write the plan with what is known")]
    AskedBefore,
    #[error("ask 1 to {MAX_QUESTIONS} questions, or write the plan")]
    Count,
    #[error("a question is empty")]
    Empty,
    #[error("there is no tool {0:?}")]
    NoTool(String),
    #[error("{tool} has no argument {argument:?}")]
    NoArgument { tool: String, argument: String },
    #[error("what {argument} of {tool} is to be is known: {known}")]
    Known { tool: String, argument: String, known: String },
}

/// What questions are about.
pub(super) struct AskedAbout<'t> {
    /// The words of the person.
    pub(super) request: &'t str,
    /// The tools that may be planned.
    pub(super) tools: &'t ToolList,
    /// The places of the rig.
    pub(super) places: &'t [String],
    /// Whether the person was asked before.
    pub(super) again: bool,
}

/// Returns the questions as the person is asked, each with the slot of its answer.
pub(super) fn put(
    questions: Vec<PersonQuestion>,
    about: &AskedAbout<'_>,
) -> Result<Vec<ClarifyingQuestion>, RefusedQuestion> {
    if about.again {
        return Err(RefusedQuestion::AskedBefore);
    }
    if !(1..=MAX_QUESTIONS).contains(&questions.len()) {
        return Err(RefusedQuestion::Count);
    }
    let mut put: Vec<ClarifyingQuestion> = Vec::new();
    for question in questions {
        let question = checked(question, about)?;
        if put.iter().all(|other| other.slot != question.slot) {
            put.push(question);
        }
    }
    Ok(put)
}

fn checked(
    question: PersonQuestion,
    about: &AskedAbout<'_>,
) -> Result<ClarifyingQuestion, RefusedQuestion> {
    let PersonQuestion { tool, argument, text, mut choices } = question;
    if text.is_empty() {
        return Err(RefusedQuestion::Empty);
    }
    let Some(found) = about.tools.find(&tool) else { return Err(RefusedQuestion::NoTool(tool)) };
    let Some(schema) = argument_of(found, &argument) else {
        return Err(RefusedQuestion::NoArgument { tool, argument });
    };
    let known = |known: &str| {
        let (tool, argument, known) = (tool.clone(), argument.clone(), known.to_owned());
        Err(RefusedQuestion::Known { tool, argument, known })
    };
    let mut possible = values_of(schema);
    if argument == "place" {
        possible = about.places.to_vec();
        let names = |place: &&String| names(about.request, place);
        if let [named] = about.places.iter().filter(names).collect::<Vec<_>>()[..] {
            return known(named);
        }
    }
    if let [only] = &possible[..] {
        return known(only);
    }
    if !possible.is_empty() {
        choices.retain(|choice| possible.contains(choice));
        if choices.len() < 2 {
            choices = possible;
        }
    }
    let mut kept: Vec<String> = Vec::new();
    for choice in choices.into_iter().filter(|choice| !choice.is_empty()).take(MAX_CHOICES) {
        if !kept.contains(&choice) {
            kept.push(choice);
        }
    }
    if let [only] = &kept[..] {
        return known(only);
    }
    Ok(ClarifyingQuestion { slot: format!("{SLOT}{tool}.{argument}"), text, choices: kept })
}

/// Tells whether a request has a name as a word of its own.
fn names(request: &str, name: &str) -> bool {
    let belongs = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let word = |word: &str| word.trim_end_matches('.').eq_ignore_ascii_case(name);
    request.split(|c| !belongs(c)).any(word)
}

fn argument_of<'t>(tool: &'t Tool, argument: &str) -> Option<&'t Value> {
    tool.input_schema.get("properties")?.as_object()?.get(argument)
}

/// Lists the values that an argument may have, where they are few and known.
fn values_of(schema: &Value) -> Vec<String> {
    let branches = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array());
    let branches = branches.map_or(std::slice::from_ref(schema), Vec::as_slice);
    let listed = branches.iter().filter_map(|branch| branch.get("enum")?.as_array());
    let words = listed.flatten().filter_map(Value::as_str);
    words.map(str::to_owned).collect()
}

/// Returns the answers of the person to questions of a model, as they are added to the request.
pub(super) fn answered<'a>(
    answers: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Vec<String> {
    let of_model = |(slot, answer): (&String, &String)| {
        let what = slot.strip_prefix(SLOT)?;
        Some(format!("{what} is to be: {answer}"))
    };
    answers.into_iter().filter_map(of_model).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::rig_tools;

    fn put_at(
        questions: Vec<PersonQuestion>,
        request: &str,
        places: &[&str],
        again: bool,
    ) -> Result<Vec<ClarifyingQuestion>, RefusedQuestion> {
        let places: Vec<_> = places.iter().map(|&place| place.to_owned()).collect();
        let tools = rig_tools();
        put(questions, &AskedAbout { request, tools: &tools, places: &places, again })
    }

    fn question(tool: &str, argument: &str, choices: &[&str]) -> PersonQuestion {
        PersonQuestion {
            tool: tool.to_owned(),
            argument: argument.to_owned(),
            text: "Which?".to_owned(),
            choices: choices.iter().map(|&choice| choice.to_owned()).collect(),
        }
    }

    #[test]
    fn questions_whose_answers_change_the_plan_are_put() {
        let all = vec![
            question("run", "place", &["bench-3", "bench-9", "microbit", "bench-3"]),
            question("run", "image", &[]),
            question("power", "action", &["explode"]),
        ];
        let places = ["bench-3", "bench-4", "microbit"];
        let put = put_at(all, "take it for a spin", &places, false).unwrap();
        let slots: Vec<_> = put.iter().map(|one| one.slot.as_str()).collect();
        assert_eq!(slots, ["model:run.place", "model:run.image", "model:power.action"]);
        assert_eq!(put[0].choices, ["bench-3", "microbit"]);
        assert!(put[1].choices.is_empty() && put[2].choices.len() > 2, "{put:?}");
    }

    #[test]
    fn what_is_known_and_what_is_no_argument_is_not_asked() {
        use RefusedQuestion as R;
        let two = |questions| {
            let request = "take it for a spin on Bench-3.";
            put_at(questions, request, &["bench-3", "bench-30"], false)
        };
        let one = |questions| put_at(questions, "take it for a spin", &["bench-3"], false);
        let image = || question("run", "image", &[]);
        let known = |result| matches!(result, Err(R::Known { .. }));
        assert!(known(two(vec![question("run", "place", &["bench-30", "bench-3"])])));
        assert!(known(one(vec![question("run", "place", &[])])));
        assert!(known(two(vec![question("run", "image", &["a.elf", "a.elf"])])));
        let again = put_at(vec![image()], "take it", &["bench-3", "bench-4"], true);
        assert_eq!(again, Err(R::AskedBefore));
        assert_eq!(two(Vec::new()), Err(R::Count));
        assert_eq!(two(vec![image(); 4]), Err(R::Count));
        let no_tool = two(vec![question("confirm", "yes", &[])]);
        assert_eq!(no_tool, Err(R::NoTool("confirm".to_owned())));
        let no_argument = two(vec![question("run", "password", &[])]);
        assert!(matches!(no_argument, Err(R::NoArgument { .. })), "{no_argument:?}");
        let empty = PersonQuestion { text: String::new(), ..image() };
        assert_eq!(two(vec![empty]), Err(R::Empty));
        assert_eq!(two(vec![image(), image()]).unwrap().len(), 1);
    }
}
