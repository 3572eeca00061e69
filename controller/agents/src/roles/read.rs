//! Reading of answers. All of them are hostile text of any form.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fenced::{blocks, spoken};
use crate::quote::beginning;

/// Longest text of a field that is taken over, in characters.
const MAX_FIELD: usize = 2000;

/// Longest question to the knowledge of the lab or to the person, in characters.
const MAX_QUESTION: usize = 300;

/// Longest name and choice in a question to the person, in characters.
const MAX_NAME: usize = 120;

/// Says why an answer of a role cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoleAnswerError {
    /// It holds no JSON object.
    #[error("the answer holds no JSON object; it begins: {0:?}")]
    NoObject(String),
    /// It holds several.
    #[error("the answer holds {0} blocks of JSON; one is asked for")]
    Several(usize),
    /// Its JSON is malformed, or has other fields.
    #[error("the answer is not of the form that is asked for: {0}")]
    Form(String),
}

jig_model::words! {
    /// Names what a role says should come next.
    NextAction, "next action" {
        /// The goal is reached.
        Finish = "finish",
        /// The code has to change.
        Fix = "fix",
        /// A patch waits for its review.
        ReviewPatch = "review_patch",
        /// A person has to look.
        Escalate = "escalate",
    }
}

/// What an analysis says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnalysisAnswer {
    /// The answer to the request; hostile text.
    pub summary: String,
    /// The likely cause; hostile text.
    #[serde(default)]
    pub root_cause: String,
    /// What should come next: a claim.
    pub next_action: NextAction,
}

impl AnalysisAnswer {
    /// Reads the answer to the analysis of results.
    ///
    /// # Errors
    /// It is not of the form that is asked for.
    pub fn read(answer: &str) -> Result<Self, RoleAnswerError> {
        let read: Self = form(answer)?;
        let (summary, root_cause) = (short(&read.summary), short(&read.root_cause));
        if summary.trim().is_empty() {
            return Err(RoleAnswerError::Form("`summary` is empty".to_owned()));
        }
        Ok(Self { summary, root_cause, ..read })
    }
}

/// What is said about a step that could not be carried out.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StepAnswer {
    /// Why it failed; hostile text.
    pub thought: String,
    /// The step in its place; hostile data. Nothing where no other call helps.
    pub action: Option<Value>,
    /// What is expected of it; hostile text.
    #[serde(default)]
    pub observation: String,
}

/// Reads the answer about a step.
///
/// # Errors
/// It is not of the form that is asked for.
pub fn read_step(answer: &str) -> Result<StepAnswer, RoleAnswerError> {
    let read: StepAnswer = form(answer)?;
    let (thought, observation) = (short(&read.thought), short(&read.observation));
    Ok(StepAnswer { thought, observation, ..read })
}

/// A question that a role has for the person: which value an argument of a tool is to have.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PersonQuestion {
    /// The tool; hostile text.
    pub tool: String,
    /// Its argument; hostile text.
    pub argument: String,
    /// The question; hostile text.
    pub text: String,
    /// Answers that would do, if they can be listed; hostile text.
    #[serde(default)]
    pub choices: Vec<String>,
}

#[derive(Deserialize)]
struct RawPersonQuestions {
    questions: Vec<PersonQuestion>,
}

/// Reads questions for the person that stand in place of a plan; nothing where the answer is something else.
///
/// # Errors
/// They are not of the form that is asked for.
pub fn read_person_questions(answer: &str) -> Result<Option<Vec<PersonQuestion>>, RoleAnswerError> {
    let value: Value = form(answer)?;
    if value.get("questions").is_none() {
        return Ok(None);
    }
    let read: RawPersonQuestions =
        serde_json::from_value(value).map_err(|error| RoleAnswerError::Form(error.to_string()))?;
    let one_line = |text: &str, most: usize| {
        let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
        plain.take(most).collect::<String>().trim().to_owned()
    };
    let bounded = |question: PersonQuestion| PersonQuestion {
        tool: one_line(&question.tool, MAX_NAME),
        argument: one_line(&question.argument, MAX_NAME),
        text: one_line(&question.text, MAX_QUESTION),
        choices: question.choices.iter().map(|choice| one_line(choice, MAX_NAME)).collect(),
    };
    Ok(Some(read.questions.into_iter().map(bounded).collect()))
}

#[derive(Deserialize)]
struct RawKnowledgeQuestion {
    question: String,
}

/// Reads a question to the knowledge of the lab.
///
/// # Errors
/// It is not of the form that is asked for.
pub fn read_question(answer: &str) -> Result<String, RoleAnswerError> {
    let read: RawKnowledgeQuestion = form(answer)?;
    let plain = read.question.chars().map(|c| if c.is_control() { ' ' } else { c });
    let question: String = plain.take(MAX_QUESTION).collect();
    match question.trim() {
        "" => Err(RoleAnswerError::Form("`question` is empty".to_owned())),
        question => Ok(question.to_owned()),
    }
}

fn form<T: DeserializeOwned>(answer: &str) -> Result<T, RoleAnswerError> {
    let text = json_of(answer)?;
    serde_json::from_str(&text).map_err(|error| RoleAnswerError::Form(error.to_string()))
}

fn short(text: &str) -> String {
    text.chars().take(MAX_FIELD).collect()
}

/// Finds the JSON object of an answer: the whole answer, the one block that holds an object, or what stands between
/// the first and the last brace.
///
/// # Errors
/// There is none, or there are several.
pub fn json_of(answer: &str) -> Result<String, RoleAnswerError> {
    let said = spoken(answer).trim();
    if said.starts_with('{') && said.ends_with('}') {
        return Ok(said.to_owned());
    }
    let holds = |text: &str| text.trim_start().starts_with('{');
    let mut objects: Vec<_> = blocks(said).into_iter().filter(|block| holds(&block.text)).collect();
    objects.dedup_by(|a, b| a.text == b.text);
    match objects.as_slice() {
        [one] => return Ok(one.text.clone()),
        [] => {}
        several => return Err(RoleAnswerError::Several(several.len())),
    }
    let between = said.find('{').zip(said.rfind('}')).filter(|(from, to)| from < to);
    let between = between.and_then(|(from, to)| said.get(from..=to));
    between.map(str::to_owned).ok_or_else(|| RoleAnswerError::NoObject(beginning(said)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_object_of_an_answer_is_found_in_its_usual_places() {
        let object = "{\"question\":\"brown-out\"}";
        for answer in [
            object.to_owned(),
            format!("Here it is:\n```json\n{object}\n```\nDone."),
            format!("<think>{{\"question\":\"draft\"}}</think>\n{object}\n"),
            format!("Sure! {object} I hope this helps."),
        ] {
            assert_eq!(read_question(&answer).as_deref(), Ok("brown-out"), "{answer}");
        }
        let two = format!("```\n{object}\n```\n```\n{{}}\n```\n");
        assert_eq!(read_question(&two), Err(RoleAnswerError::Several(2)));
        for answer in ["", "I am sorry.", "}{"] {
            assert!(matches!(json_of(answer), Err(RoleAnswerError::NoObject(_))), "{answer}");
        }
        for answer in ["{\"question\":", "{}", "{\"question\":\" \"}", "{\"question\":7}"] {
            assert!(read_question(answer).is_err(), "{answer}");
        }
    }

    #[test]
    fn an_analysis_is_bounded_and_has_a_known_next_action() {
        let answer = |next: &str, text: &str| {
            format!("{{\"summary\":\"{text}\",\"root_cause\":\"\",\"next_action\":\"{next}\"}}")
        };
        let long = AnalysisAnswer::read(&answer("fix", &"x".repeat(1 << 20))).unwrap();
        assert_eq!((long.summary.len(), long.next_action), (MAX_FIELD, NextAction::Fix));
        for bad in [answer("success", "x"), answer("fix", ""), "{}".to_owned()] {
            assert!(AnalysisAnswer::read(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn questions_for_the_person_are_told_from_plans_and_kept_on_a_line() {
        assert_eq!(read_person_questions("{\"plan_summary\":\"x\",\"steps\":[]}"), Ok(None));
        let answer = json!({ "questions": [{ "tool": "run", "argument": "image",
            "text": "Which\nimage?\u{1b}[2J", "choices": ["a.elf", "x".repeat(1000)] }] });
        let questions = read_person_questions(&answer.to_string()).unwrap().unwrap();
        assert_eq!(questions[0].text, "Which image? [2J");
        assert_eq!(questions[0].choices[1].len(), MAX_NAME);
        for bad in ["{\"questions\":7}", "{\"questions\":[{\"text\":\"x\"}]}", "no"] {
            assert!(read_person_questions(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_step_may_be_none() {
        let none = read_step("{\"thought\":\"no such board\",\"action\":null}").unwrap();
        assert_eq!((none.thought.as_str(), none.action), ("no such board", None));
        assert!(read_step("{\"action\":{}}").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_answer_breaks_it(text in "(`{0,4}(json)?|\\PC{0,9}|[{}]|\"question\":|</?think>|\\n){0,40}") {
            let _ = read_question(&text);
            let _ = read_step(&text);
            let _ = read_person_questions(&text);
            let _ = AnalysisAnswer::read(&text);
        }
    }
}
