//! The log of Jig itself: text for people, or one JSON object a line.
//!
//! A JSON line has `timestamp`, `level`, `session_id` (the session of a request, else this process), `trace_id`
//! (that of the session, else the run), `event_type`, `message`, and where there are any `data` and
//! `duration_ms`. A run that a session asks for is named in `data`. Where standard error is the journal, each
//! line begins with its level.

mod journal;

use std::fmt;
use std::io::Write as _;

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer};

use crate::args::LogFormat;

/// Starts logging to standard error.
pub(crate) fn start(verbose: u8, quiet: bool, format: LogFormat, colour: bool) {
    let default = match (quiet, verbose) {
        // What goes wrong in a session is told on the screen, and kept in its journal.
        (true, _) => "error,jig::session=off",
        (false, 0) => "warn,probe_rs=error,rmcp::transport=off,jig::session=off",
        (false, 1) => "info",
        (false, 2) => "debug",
        (false, _) => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let registry = tracing_subscriber::registry().with(filter);
    let started = match format {
        LogFormat::Text if journal::has_stderr() => registry
            .with(
                tracing_subscriber::fmt::layer()
                    .with_writer(std::io::stderr)
                    .with_ansi(false)
                    .event_format(journal::JournalText::new()),
            )
            .try_init(),
        LogFormat::Text => registry
            .with(tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colour))
            .try_init(),
        LogFormat::Json => {
            let (session, in_journal) = (session_id(), journal::has_stderr());
            registry.with(JsonLines { session, in_journal }).try_init()
        }
    };
    // Only a second call can fail, and it changes nothing.
    drop(started);
}

/// Tells whether standard error goes to the journal of systemd.
pub(crate) fn in_journal() -> bool {
    journal::has_stderr()
}

/// Marks text as that of errors, line by line, for the journal.
pub(crate) fn as_errors(text: &str) -> String {
    let prefix = journal::prefix(&tracing::Level::ERROR);
    let lines = text.lines().map(|line| format!("{prefix}{line}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Names this process: when it started and its number.
fn session_id() -> String {
    format!("{:x}-{:x}", jiff::Timestamp::now().as_millisecond(), std::process::id())
}

struct JsonLines {
    session: String,
    /// Each line begins with its level.
    in_journal: bool,
}

/// What a span belongs to: a run, a session, and the trace of the session.
#[derive(Clone, Default)]
struct Trace {
    run: Option<Value>,
    session: Option<Value>,
    trace: Option<Value>,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for JsonLines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let mut fields = fields.0;
        let (run, session) = (fields.remove("trace"), fields.remove("session_id"));
        let trace = Trace { run, session, trace: fields.remove("trace_id") };
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(trace);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut data = fields.0;
        let mut around = Trace::default();
        for span in context.event_scope(event).into_iter().flatten() {
            let of = span.extensions().get::<Trace>().cloned().unwrap_or_default();
            around.run = around.run.or(of.run);
            around.session = around.session.or(of.session);
            around.trace = around.trace.or(of.trace);
        }
        // An event that belongs to a run or a session says so itself when it comes from beside the span.
        let run = data.remove("trace").or(around.run);
        let session = data.remove("session_id").or(around.session);
        let of_session = data.remove("trace_id").or(around.trace);
        if let (Some(run), Some(_)) = (&run, &of_session) {
            data.insert("run".to_owned(), run.clone());
        }
        let trace = of_session.or(run);
        let kind = data.remove("event_type");
        let kind = kind.unwrap_or_else(|| event.metadata().target().into());
        let mut line = json!({
            "timestamp": jiff::Timestamp::now(),
            "level": event.metadata().level().as_str(),
            "session_id": session.unwrap_or_else(|| self.session.as_str().into()),
            "trace_id": trace,
            "event_type": kind,
            "message": data.remove("message").unwrap_or(Value::Null),
        });
        if let Some(duration) = data.remove("duration_ms") {
            line["duration_ms"] = duration;
        }
        // What was prepared as JSON goes in as what it is, not as a string.
        if let Some(Value::String(text)) = data.get("data")
            && let Ok(Value::Object(object)) = serde_json::from_str(text)
        {
            data.remove("data");
            data.extend(object);
        }
        if !data.is_empty() {
            line["data"] = Value::Object(data);
        }
        let prefix = if self.in_journal { journal::prefix(event.metadata().level()) } else { "" };
        let text = format!("{prefix}{line}\n");
        // There is no place to report that standard error is closed.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
}

#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}"));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value);
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value);
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value);
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }
}
