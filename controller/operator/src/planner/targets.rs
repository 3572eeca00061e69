//! Which boards a request means, and what has to be asked before that is known.

use std::collections::BTreeMap;

use jig_model::document::did_you_mean;

use crate::context::SessionContext;
use crate::error::{OperatorCode, OperatorError};
use crate::grammar::{ActionVerb, Amount, RequestAction, RequestQuestion, TargetWord, UserRequest};
use crate::journal::ClarifyingQuestion;

/// Most questions that are asked at a time.
const MAX_QUESTIONS: usize = 3;

/// Most choices that a question lists.
const MAX_CHOICES: usize = 12;

/// Answers to the questions of a session, by their slots; hostile text.
pub type RequestAnswers = BTreeMap<String, String>;

/// Finds what is missing in a request and changes its plan. Nothing is asked where the rig leaves one
/// possibility.
///
/// # Errors
/// Words that stand where a board is named are neither one nor written like one. The grammar takes every word there
/// for a name; to ask which board "tomorrow" is would be to misunderstand the request.
pub fn clarifying_questions(
    request: &UserRequest,
    context: &SessionContext,
    answers: &RequestAnswers,
) -> Result<Vec<ClarifyingQuestion>, OperatorError> {
    let unlike = |name: &&str| context.places_of(name).is_empty() && !context.may_name_board(name);
    let unlike: Vec<_> = names_of(request).into_iter().filter(unlike).collect();
    if !unlike.is_empty() {
        let quoted: Vec<_> = unlike.iter().take(5).map(|word| format!("{word:?}")).collect();
        let words = format!("not understood: {}, which is no board of the rig", quoted.join(", "));
        return Err(OperatorError::new(OperatorCode::InvalidArgs, words)
            .next("jig boards; jig ask --forms")
            .untouched());
    }
    let mut questions = Vec::new();
    match request {
        UserRequest::Act { actions } => {
            for action in actions {
                missing_of(action, context, answers, &mut questions);
            }
        }
        UserRequest::Ask { question } => {
            if let Some(name) = board_of(question) {
                questions.extend(unknown_board(name, context, answers, false));
            } else if matches!(question, RequestQuestion::Console { .. }) {
                questions.extend(no_board("Whose console?", context, answers));
            }
        }
    }
    let mut kept: Vec<ClarifyingQuestion> = Vec::new();
    for question in questions {
        if !kept.iter().any(|other| other.slot == question.slot) {
            kept.push(question);
        }
    }
    kept.truncate(MAX_QUESTIONS);
    Ok(kept)
}

/// Lists the words by which a request names boards.
fn names_of(request: &UserRequest) -> Vec<&str> {
    match request {
        UserRequest::Act { actions } => {
            let targets = actions.iter().flat_map(|action| &action.targets);
            targets.filter_map(|target| target.name.as_deref()).collect()
        }
        UserRequest::Ask { question } => board_of(question).into_iter().collect(),
    }
}

/// Returns the board that a question is about.
pub(super) fn board_of(question: &RequestQuestion) -> Option<&str> {
    use RequestQuestion as Q;
    match question {
        Q::WhyRun { board, .. }
        | Q::WhyTest { board, .. }
        | Q::Bisect { board, .. }
        | Q::Boards { board, .. }
        | Q::Health { board }
        | Q::Runs { board, .. }
        | Q::Run { board, .. }
        | Q::TestOutcome { board, .. }
        | Q::Log { board, .. }
        | Q::Console { board } => board.as_deref(),
        Q::Power { board } => Some(board),
        Q::Compare { .. } | Q::Knowledge { .. } => None,
    }
}

fn missing_of(
    action: &RequestAction,
    context: &SessionContext,
    answers: &RequestAnswers,
    questions: &mut Vec<ClarifyingQuestion>,
) {
    let verb = action.verb;
    let unanswered = |slot: &str| !answers.contains_key(slot);
    if verb == ActionVerb::Flash && action.image.is_none() && unanswered("image") {
        questions.push(asked("image", "Which image is to be flashed?", Vec::new()));
    }
    if verb == ActionVerb::Test && action.plan.is_none() && unanswered("plan") {
        questions.push(asked("plan", "Which test plan (a TOML file) is to be run?", Vec::new()));
    }
    if action.targets.is_empty() {
        questions.extend(no_board(&format!("On which board: {verb}?"), context, answers));
    }
    for target in &action.targets {
        if let Some(name) = &target.name {
            let one = target.amount == Amount::Named;
            questions.extend(unknown_board(name, context, answers, one));
        }
    }
}

fn asked(slot: &str, text: &str, choices: Vec<String>) -> ClarifyingQuestion {
    ClarifyingQuestion { slot: slot.to_owned(), text: text.to_owned(), choices }
}

fn no_board(
    text: &str,
    context: &SessionContext,
    answers: &RequestAnswers,
) -> Option<ClarifyingQuestion> {
    // With one board there is nothing to choose.
    if context.boards.len() == 1 || answers.contains_key("board") {
        return None;
    }
    let choices: Vec<String> = context.boards.keys().take(MAX_CHOICES).cloned().collect();
    Some(asked("board", text, choices))
}

/// Asks about a name that the rig does not have, or of which it has several where one is meant.
fn unknown_board(
    name: &str,
    context: &SessionContext,
    answers: &RequestAnswers,
    one: bool,
) -> Option<ClarifyingQuestion> {
    let slot = format!("board:{name}");
    if answers.contains_key(&slot) {
        return None;
    }
    let found = context.places_of(name);
    match found.as_slice() {
        [_] => None,
        [] => {
            let names = context.boards.keys().map(String::as_str);
            let help = did_you_mean(name, names);
            let choices: Vec<String> = context.boards.keys().take(MAX_CHOICES).cloned().collect();
            Some(asked(&slot, &format!("There is no board {name:?}; {help}"), choices))
        }
        several if one => {
            let choices: Vec<String> =
                several.iter().take(MAX_CHOICES).map(|&place| place.to_owned()).collect();
            let text = format!("{} places have a board {name:?}. Which one?", several.len());
            Some(asked(&slot, &text, choices))
        }
        _ => None,
    }
}

/// Returns the place that a name stands for, after the answers.
pub(super) fn place_of(
    name: &str,
    context: &SessionContext,
    answers: &RequestAnswers,
) -> Result<String, OperatorError> {
    let answered = answers.get(&format!("board:{name}"));
    let name = answered.map_or(name, |answer| answer.trim());
    match context.places_of(name).as_slice() {
        [place] => Ok((*place).to_owned()),
        [] => Err(no_such_board(name, context)),
        several => Err(OperatorError::new(
            OperatorCode::InvalidArgs,
            format!("{name:?} is {} places: {}", several.len(), several.join(", ")),
        )
        .next("jig boards")
        .untouched()),
    }
}

fn no_such_board(name: &str, context: &SessionContext) -> OperatorError {
    let shown: String = name.chars().take(64).collect();
    let help = did_you_mean(&shown, context.boards.keys().map(String::as_str));
    OperatorError::new(OperatorCode::InvalidArgs, format!("there is no board {shown:?}; {help}"))
        .next("jig boards")
        .untouched()
}

/// Lists the places that an action is about, after the answers.
pub(super) fn places_of_action(
    action: &RequestAction,
    context: &SessionContext,
    answers: &RequestAnswers,
) -> Result<Vec<String>, OperatorError> {
    if action.targets.is_empty() {
        let answered = answers.get("board").map(|answer| answer.trim().to_owned());
        let only = (context.boards.len() == 1).then(|| context.boards.keys().next().cloned());
        let name = answered.or(only.flatten()).unwrap_or_default();
        return Ok(vec![place_of(&name, context, &RequestAnswers::new())?]);
    }
    let mut places = Vec::new();
    for target in &action.targets {
        for place in places_of_target(target, context, answers)? {
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    Ok(places)
}

fn places_of_target(
    target: &TargetWord,
    context: &SessionContext,
    answers: &RequestAnswers,
) -> Result<Vec<String>, OperatorError> {
    let TargetWord { name, amount, free } = target;
    if let (Some(name), Amount::Named) = (name, amount) {
        return Ok(vec![place_of(name, context, answers)?]);
    }
    let name = name.as_ref().map(|name| {
        answers.get(&format!("board:{name}")).map_or(name.as_str(), |answer| answer.trim())
    });
    let all: Vec<&str> = match name {
        Some(name) => context.places_of(name),
        None => context.boards.keys().map(String::as_str).collect(),
    };
    if all.is_empty() {
        return Err(no_such_board(name.unwrap_or("any"), context));
    }
    let fit = |place: &&str| !*free && *amount == Amount::Every || context.is_free(place);
    let mut found: Vec<String> = all.iter().copied().filter(fit).map(str::to_owned).collect();
    if *amount == Amount::Any {
        found.truncate(1);
    }
    if found.is_empty() {
        let users = all.iter().map(|place| {
            let board = &context.boards[*place];
            let state = board.used_by.as_deref().or(board.health.as_deref()).unwrap_or("not free");
            format!("{place}: {state}")
        });
        let users: Vec<String> = users.take(MAX_CHOICES).collect();
        return Err(OperatorError::new(
            OperatorCode::Conflict,
            format!("no board of these is free: {}", users.join(", ")),
        )
        .next("jig top")
        .untouched());
    }
    Ok(found)
}
