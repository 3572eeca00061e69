//! What the two dialects say: bodies of questions and of answers. Pure.

use serde_json::{Value, json};

use crate::cost::Tokens;
use crate::endpoint::{HttpDialect, ModelSettings};
use crate::prompt::ModelPrompt;
use crate::quote::beginning;

/// Version of the interface that `anthropic` asks for.
pub(crate) const ANTHROPIC_VERSION: &str = "2023-06-01";

/// By which key an `openai` endpoint knows the length of an answer. Newer models of the company
/// refuse the first; most local servers know no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LengthKey {
    MaxTokens,
    MaxCompletionTokens,
}

impl LengthKey {
    /// Returns the key as it is written.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// Says why the body of an answer cannot be read. Each quotes the beginning of the body, which is hostile text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It is no JSON.
    #[error("the answer is no JSON: {why}: {begins:?}")]
    NoJson {
        /// What the reader met, and where.
        why: String,
        /// How the body begins.
        begins: String,
    },
    /// It holds no text of a model.
    #[error("the answer holds no text: {begins:?}")]
    NoText {
        /// How the body begins.
        begins: String,
    },
    /// It ended at its limit of tokens before it held any text.
    #[error("the answer was cut off before it began: {begins:?}")]
    CutOff {
        /// How the body begins.
        begins: String,
    },
}

/// What an endpoint answered to one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelReply {
    /// The answers; one, unless the endpoint likes to give more.
    pub texts: Vec<String>,
    /// Whether it ended at its limit of tokens.
    pub cut_off: bool,
    /// The usage that the endpoint reports.
    pub reported: Option<Tokens>,
}

/// Returns the path of a question below the address of the endpoint.
pub(crate) fn path(settings: &ModelSettings) -> String {
    let base = &settings.url.base;
    match settings.dialect {
        HttpDialect::OpenAi => format!("{base}/chat/completions"),
        // Some write the version into the address, as the other dialect wants it.
        HttpDialect::Anthropic => {
            format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base))
        }
    }
}

/// Returns the body of a question.
pub(crate) fn question(
    settings: &ModelSettings,
    prompt: &ModelPrompt,
    length: LengthKey,
) -> String {
    let user = json!({ "role": "user", "content": prompt.user });
    let mut body = match settings.dialect {
        HttpDialect::OpenAi => json!({
            "model": settings.model,
            "messages": [{ "role": "system", "content": prompt.system }, user],
            length.as_str(): settings.max_tokens,
        }),
        HttpDialect::Anthropic => json!({
            "model": settings.model,
            "system": prompt.system,
            "messages": [user],
            "max_tokens": settings.max_tokens,
        }),
    };
    if let Some(temperature) = settings.temperature {
        body["temperature"] = temperature.into();
    }
    body.to_string()
}

/// Reads the body of an answer.
pub(crate) fn reply(dialect: HttpDialect, body: &[u8]) -> Result<ModelReply, WireError> {
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        let (why, begins) = (error.to_string(), quoted(body));
        WireError::NoJson { why, begins }
    })?;
    let (texts, cut_off, keys) = match dialect {
        HttpDialect::OpenAi => {
            let choices = value["choices"].as_array().map(Vec::as_slice).unwrap_or_default();
            let texts = choices.iter().filter_map(|choice| text(&choice["message"]["content"]));
            let cut_off = choices.iter().any(|choice| choice["finish_reason"] == "length");
            let keys = (&["prompt_tokens"][..], "completion_tokens");
            (texts.collect::<Vec<_>>(), cut_off, keys)
        }
        HttpDialect::Anthropic => {
            let texts = text(&value["content"]).into_iter().collect();
            let keys = &["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
            (texts, value["stop_reason"] == "max_tokens", (&keys[..], "output_tokens"))
        }
    };
    if texts.is_empty() {
        let begins = quoted(body);
        return Err(match cut_off {
            true => WireError::CutOff { begins },
            false => WireError::NoText { begins },
        });
    }
    Ok(ModelReply { texts, cut_off, reported: reported(&value["usage"], keys) })
}

/// Returns the text of a message: a string, or the texts of its parts.
fn text(content: &Value) -> Option<String> {
    let text = match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => return None,
    };
    (!text.trim().is_empty()).then_some(text)
}

/// Reads the usage: the first key of the question is needed, the others add to it.
fn reported(usage: &Value, (input, output): (&[&str], &str)) -> Option<Tokens> {
    let (first, others) = input.split_first()?;
    let others = others.iter().filter_map(|key| usage[*key].as_u64());
    let input = others.fold(usage[*first].as_u64()?, u64::saturating_add);
    Some(Tokens { input, output: usage[output].as_u64()? })
}

/// Quotes why an endpoint refuses: its message where it is one, else the beginning of what it said.
pub(crate) fn refusal(body: &[u8]) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let said = [&value["error"]["message"], &value["error"], &value["message"], &value["detail"]];
    let said = said.into_iter().find_map(Value::as_str);
    said.map_or_else(|| quoted(body), beginning)
}

fn quoted(body: &[u8]) -> String {
    // A character has at most four bytes; more than is quoted need not be read.
    beginning(&String::from_utf8_lossy(&body[..body.len().min(4 << 10)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_usage_of_both_dialects_are_read() {
        let openai = |body: Value| reply(HttpDialect::OpenAi, body.to_string().as_bytes());
        let choice =
            json!({ "message": { "role": "assistant", "content": "hi" }, "finish_reason": "stop" });
        let usage = json!({ "prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9 });
        let reported = Some(Tokens { input: 7, output: 2 });
        let expected = ModelReply { texts: vec!["hi".to_owned()], cut_off: false, reported };
        assert_eq!(openai(json!({ "choices": [choice], "usage": usage })), Ok(expected.clone()));
        let parts = json!([{ "type": "text", "text": "h" }, { "type": "text", "text": "i" }]);
        let cut = json!({ "message": { "content": parts }, "finish_reason": "length" });
        let found = openai(json!({ "choices": [cut], "usage": null })).unwrap();
        assert_eq!((found.texts, found.cut_off, found.reported), (expected.texts, true, None));

        let body = json!({
            "content": [{ "type": "thinking", "thinking": "..." }, { "type": "text", "text": "hi" }],
            "stop_reason": "max_tokens",
            "usage": { "input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 2 },
        });
        let found = reply(HttpDialect::Anthropic, body.to_string().as_bytes()).unwrap();
        let expected = ModelReply { texts: vec!["hi".to_owned()], cut_off: true, reported };
        assert_eq!(found, expected);
    }

    #[test]
    fn an_answer_without_text_is_an_error_that_quotes_it() {
        for (body, words) in [
            (&b"<html>"[..], "no JSON: expected value at line 1 column 1: \"<html>\""),
            (b"{\"choices\": [", "no JSON: EOF"),
            (b"{\"choices\": []}", "holds no text"),
            (b"[]", "holds no text"),
            (b"{\"choices\": {\"a\": 1}}", "holds no text"),
            (b"{\"choices\": [{\"message\": {\"content\": null}}]}", "holds no text"),
            (
                b"{\"choices\": [{\"message\": {\"content\": \"\"}, \"finish_reason\": \"length\"}]}",
                "cut off before it began",
            ),
            (b"{\"choices\": \"\xff\"}", "no JSON: invalid unicode"),
            (b"", "no JSON"),
        ] {
            let error = reply(HttpDialect::OpenAi, body).unwrap_err().to_string();
            assert!(error.contains(words), "{words:?} is not in {error}");
        }
        let deep = "[".repeat(100_000);
        let error = reply(HttpDialect::Anthropic, deep.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("recursion limit") && error.len() < 1000, "{error}");
    }

    #[test]
    fn usage_that_is_no_number_is_none() {
        for usage in [
            json!({ "prompt_tokens": -1, "completion_tokens": 2 }),
            json!({ "prompt_tokens": "7", "completion_tokens": 2 }),
            json!({ "prompt_tokens": 7 }),
            json!([1, 2]),
        ] {
            assert_eq!(reported(&usage, (&["prompt_tokens"], "completion_tokens")), None);
        }
    }

    #[test]
    fn refusals_are_quoted_in_all_their_forms() {
        for (body, said) in [
            (&b"{\"error\": {\"message\": \"bad key\", \"code\": 1}}"[..], "bad key"),
            (
                b"{\"type\": \"error\", \"error\": {\"type\": \"x\", \"message\": \"bad key\"}}",
                "bad key",
            ),
            (b"{\"error\": \"bad key\"}", "bad key"),
            (b"{\"detail\": \"bad key\"}", "bad key"),
            (b"bad\r\nkey", "bad  key"),
            (b"", ""),
        ] {
            assert_eq!(refusal(body), said);
        }
    }
}
