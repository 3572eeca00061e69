//! Parameters that refer to the results of earlier steps.
//!
//! A text that consists of `${steps.N.PATH}` and nothing else is replaced by what the result of step N has
//! at PATH: names of fields and numbers of items, with dots between them. The result keeps its type. Nothing
//! is spliced into other text, so that what a target printed never becomes a part of a longer argument.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::{OperatorCode, OperatorError};

/// What steps have come to, by their numbers: `data`, `run`, `verdict`, `exit_code` of their last calls.
pub type StepOutcomes = BTreeMap<u32, Value>;

/// Deepest value that is looked through.
const MAX_DEPTH: usize = 32;

/// Lists the steps that some arguments refer to.
///
/// # Errors
/// A reference is malformed, or the arguments are too deep.
pub(super) fn referred(args: &Value) -> Result<Vec<u32>, OperatorError> {
    let mut found = Vec::new();
    walk(args, 0, &mut |text| {
        if let Some((step, _)) = reference(text)? {
            found.push(step);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Replaces the references in some arguments.
///
/// # Errors
/// A result that is referred to is not there, or has nothing at that path.
pub fn resolve(args: &Value, outcomes: &StepOutcomes) -> Result<Value, OperatorError> {
    Ok(match args {
        Value::String(text) => match reference(text)? {
            None => args.clone(),
            Some((step, path)) => {
                let result =
                    outcomes.get(&step).ok_or_else(|| bad(text, "that step has no result"))?;
                looked_up(result, &path)
                    .ok_or_else(|| bad(text, "its result has nothing there"))?
                    .clone()
            }
        },
        Value::Array(items) => Value::Array(
            items.iter().map(|item| resolve(item, outcomes)).collect::<Result<_, _>>()?,
        ),
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(name, value)| Ok((name.clone(), resolve(value, outcomes)?)))
                .collect::<Result<_, OperatorError>>()?,
        ),
        plain => plain.clone(),
    })
}

fn walk(
    value: &Value,
    depth: usize,
    visit: &mut impl FnMut(&str) -> Result<(), OperatorError>,
) -> Result<(), OperatorError> {
    if depth > MAX_DEPTH {
        return Err(OperatorError::new(
            OperatorCode::Model,
            format!("arguments are nested deeper than {MAX_DEPTH} levels"),
        )
        .untouched());
    }
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().try_for_each(|item| walk(item, depth + 1, visit)),
        Value::Object(fields) => fields.values().try_for_each(|item| walk(item, depth + 1, visit)),
        _ => Ok(()),
    }
}

/// Reads a reference; nothing where the text is plain.
fn reference(text: &str) -> Result<Option<(u32, Vec<String>)>, OperatorError> {
    if !text.contains("${") {
        return Ok(None);
    }
    let inner = text.strip_prefix("${steps.").and_then(|rest| rest.strip_suffix('}'));
    let inner = inner.filter(|inner| !inner.contains(['{', '}', '$']));
    let inner =
        inner.ok_or_else(|| bad(text, "a reference is ${steps.N.PATH} and stands alone"))?;
    let mut parts = inner.split('.');
    let step = parts.next().and_then(|n| n.parse().ok());
    let step = step.ok_or_else(|| bad(text, "it names no step by its number"))?;
    Ok(Some((step, parts.map(str::to_owned).collect())))
}

fn looked_up<'v>(mut value: &'v Value, path: &[String]) -> Option<&'v Value> {
    for part in path {
        value = match value {
            Value::Object(fields) => fields.get(part)?,
            Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(value)
}

fn bad(text: &str, why: &str) -> OperatorError {
    let shown: String = text.chars().take(80).collect();
    OperatorError::new(OperatorCode::Model, format!("reference {shown:?}: {why}")).untouched()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reference_is_replaced_with_its_type_and_nothing_is_spliced() {
        let outcomes = StepOutcomes::from([(2, json!({ "run": "r1", "data": { "n": [7, 8] } }))]);
        let args = json!({ "run": "${steps.2.run}", "deep": [{ "n": "${steps.2.data.n.1}" }] });
        let resolved = resolve(&args, &outcomes).unwrap();
        assert_eq!(resolved, json!({ "run": "r1", "deep": [{ "n": 8 }] }));
        assert_eq!(referred(&args).unwrap(), [2, 2]);
        for bad in ["x ${steps.2.run}", "${steps.2.run}${steps.2.run}", "${steps.x}", "${env.HOME}"]
        {
            assert_eq!(referred(&json!([bad])).unwrap_err().code, OperatorCode::Model, "{bad}");
        }
        for missing in ["${steps.3.run}", "${steps.2.data.n.2}", "${steps.2.run.x}"] {
            assert!(resolve(&json!(missing), &outcomes).is_err(), "{missing}");
        }
    }

    #[test]
    fn what_a_result_holds_is_never_read_as_a_reference() {
        let outcomes =
            StepOutcomes::from([(1, json!({ "text": "${steps.1.secret}", "secret": 1 }))]);
        let resolved = resolve(&json!({ "a": "${steps.1.text}" }), &outcomes).unwrap();
        assert_eq!(resolved, json!({ "a": "${steps.1.secret}" }));
    }

    #[test]
    fn arguments_that_are_too_deep_are_refused() {
        let deep = (0..40).fold(json!("x"), |inner, _| json!([inner]));
        assert!(referred(&deep).is_err());
    }
}
