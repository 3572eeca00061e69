//! Requests, responses and notifications of JSON-RPC 2.0.

use jig_model::Fault;
use jig_model::command::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RpcCall;

/// Number of a call within its connection.
pub type CallId = u64;

/// Codes of errors: those of JSON-RPC, and ours.
pub mod error_code {
    /// The line is no JSON.
    pub const PARSE: i64 = -32700;
    /// The JSON is no request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const UNKNOWN_METHOD: i64 = -32601;
    /// The parameters do not fit the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The call was not carried out; `data` is a [`Refusal`](jig_model::command::Refusal).
    pub const REFUSED: i64 = -32000;
    /// As [`REFUSED`]: the host is stopping, and begins no job.
    pub const STOPPING: i64 = -32001;
}

/// A message as it travels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMessage {
    jsonrpc: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<CallId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    params: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RequestError>,
}

/// Why a call was not carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct RequestError {
    /// One of [`error_code`].
    pub code: i64,
    /// What happened; may quote hostile text.
    pub message: String,
    /// The refusal, ready to be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<Refusal>>,
}

impl RequestError {
    /// Refuses a call.
    pub fn refused(fault: Fault, message: impl Into<String>, help: Option<String>) -> Self {
        let (message, problems) = (message.into(), Vec::new());
        let refusal = Refusal { fault, message: message.clone(), help, problems };
        Self { code: error_code::REFUSED, message, data: Some(Box::new(refusal)) }
    }

    /// Passes a refusal on.
    pub fn of_refusal(refusal: Refusal) -> Self {
        let message = refusal.message.clone();
        Self { code: error_code::REFUSED, message, data: Some(Box::new(refusal)) }
    }

    /// Says that a message is not understood.
    pub fn misunderstood(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

/// A call that was received.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcRequest {
    /// Its number.
    pub id: CallId,
    /// The method.
    pub method: String,
    /// Its parameters.
    pub params: Value,
}

impl RpcRequest {
    /// Reads the parameters of a call.
    ///
    /// # Errors
    /// They do not fit.
    pub fn params<C: RpcCall>(self) -> Result<C, RequestError> {
        serde_json::from_value(self.params).map_err(|error| {
            let message = format!("parameters of {}: {error}", C::METHOD);
            RequestError::misunderstood(error_code::INVALID_PARAMS, message)
        })
    }
}

/// A message without an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// What it is.
    pub method: String,
    /// Its content.
    pub params: Value,
}

/// A message that was received.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// A call.
    Request(RpcRequest),
    /// The answer to a call.
    Response(CallId, Result<Value, RequestError>),
    /// A message without an answer.
    Notification(Notification),
}

/// Says why a line is no message.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// It is no JSON of the expected shape.
    #[error("not a message of JSON-RPC 2.0")]
    Malformed(#[source] serde_json::Error),
    /// Its fields do not make a message.
    #[error("a message of JSON-RPC 2.0 is a request, a response or a notification")]
    Shape {
        /// Its number, if it has one.
        id: Option<CallId>,
    },
}

impl Incoming {
    /// Reads a line.
    ///
    /// # Errors
    /// It is no message.
    pub fn from_line(line: &[u8]) -> Result<Self, EnvelopeError> {
        let raw: RawMessage = serde_json::from_slice(line).map_err(EnvelopeError::Malformed)?;
        let RawMessage { jsonrpc, id, method, params, result, error } = raw;
        let shape = EnvelopeError::Shape { id };
        if jsonrpc != "2.0" {
            return Err(shape);
        }
        let params = params.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        match (id, method, result, error) {
            (Some(id), Some(method), None, None) => {
                Ok(Self::Request(RpcRequest { id, method, params }))
            }
            (None, Some(method), None, None) => {
                Ok(Self::Notification(Notification { method, params }))
            }
            (Some(id), None, Some(result), None) => Ok(Self::Response(id, Ok(result))),
            (Some(id), None, None, Some(error)) => Ok(Self::Response(id, Err(error))),
            _ => Err(shape),
        }
    }
}

/// A message to be sent.
pub struct Outgoing;

impl Outgoing {
    /// Writes a call as a line.
    ///
    /// # Errors
    /// A value of it cannot be written as JSON.
    pub fn request<C: RpcCall>(id: CallId, call: &C) -> serde_json::Result<Vec<u8>> {
        Self::line(Some(id), Some(C::METHOD), Some(serde_json::to_value(call)?), None)
    }

    /// Writes a notification as a line.
    ///
    /// # Errors
    /// A value of it cannot be written as JSON.
    pub fn notification(method: &str, params: &impl Serialize) -> serde_json::Result<Vec<u8>> {
        Self::line(None, Some(method), Some(serde_json::to_value(params)?), None)
    }

    /// Writes the answer to a call as a line.
    ///
    /// # Errors
    /// A value of it cannot be written as JSON.
    pub fn response(
        id: CallId,
        answer: Result<Value, RequestError>,
    ) -> serde_json::Result<Vec<u8>> {
        Self::line(Some(id), None, None, Some(answer))
    }

    fn line(
        id: Option<CallId>,
        method: Option<&str>,
        params: Option<Value>,
        answer: Option<Result<Value, RequestError>>,
    ) -> serde_json::Result<Vec<u8>> {
        let (result, error) = match answer {
            None => (None, None),
            Some(Ok(result)) => (Some(result), None),
            Some(Err(error)) => (None, Some(error)),
        };
        let method = method.map(str::to_owned);
        let jsonrpc = "2.0".to_owned();
        let mut line =
            serde_json::to_vec(&RawMessage { jsonrpc, id, method, params, result, error })?;
        line.push(b'\n');
        Ok(line)
    }
}
