//! Carries out calls of the rig's tools.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jig_model::access::AccessRight;
use jig_model::command::{
    Command, CommandEvent, ConsoleLogItem, ConsoleLogSource, EventSink, Reply, RunCommand,
    TestCommand,
};
use jig_model::protocol::BoxFuture;
use jig_model::{PlaceName, RunEvent, RunId, SessionTrace, Verdict, VerdictKind};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{RIG_TOOLS, RigTool, rig_tools};
use crate::error::{OperatorCode, OperatorError};
use crate::tools::bound::{HeadAndTail, bound};
use crate::tools::{
    LogRange, RigCalls, RigQuestion, RigRequest, ToolCall, ToolDoor, ToolList, ToolResult,
};

/// Lines of the time line that come with a run that did not pass.
const LOG_LINES: usize = 60;

/// Most ranges of files that a result names.
const MOST_RANGES: usize = 8;

/// Most characters of the name of who has a place.
const MOST_HOLDER: usize = 200;

/// Most bytes of a command's output that come with its result: what a result may hold.
const MOST_OUTPUT: u64 = 32 << 10;

/// Which rights calls may use. To see is always allowed; the access rules of the rig apply beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolPolicy {
    allowed: BTreeSet<AccessRight>,
}

impl FromIterator<AccessRight> for ToolPolicy {
    fn from_iter<T: IntoIterator<Item = AccessRight>>(rights: T) -> Self {
        Self { allowed: rights.into_iter().collect() }
    }
}

impl ToolPolicy {
    /// Tells whether calls may use this right.
    pub fn allows(&self, right: AccessRight) -> bool {
        right == AccessRight::See || self.allowed.iter().any(|allowed| allowed.brings(right))
    }

    fn refused(&self, what: &str, right: AccessRight) -> OperatorError {
        let words = format!("{what} needs the right to {right}, which was not allowed");
        let mut rights: Vec<&str> = self.allowed.iter().map(|right| right.as_str()).collect();
        rights.push(right.as_str());
        OperatorError::new(OperatorCode::PolicyDenied, words)
            .next(format!("jig mcp serve --allow {}", rights.join(",")))
            .untouched()
    }
}

/// The tools of a rig, behind a policy.
pub struct RigToolDoor {
    calls: Arc<dyn RigCalls>,
    policy: ToolPolicy,
    list: ToolList,
    /// The session whose calls are carried out, for the records of their runs.
    asked: Option<SessionTrace>,
}

impl RigToolDoor {
    /// Offers the tools that the policy allows.
    pub fn new(calls: Arc<dyn RigCalls>, policy: ToolPolicy) -> Self {
        let all = rig_tools();
        let list = all.iter().filter(|tool| policy.allows(tool.risk.right)).cloned().collect();
        Self { list, calls, policy, asked: None }
    }

    /// Names the session whose calls are carried out: it is kept in the records of their runs.
    #[must_use]
    pub fn asked_in(self, asked: SessionTrace) -> Self {
        Self { asked: Some(asked), ..self }
    }

    async fn carry_out(
        &self,
        call: ToolCall,
        events: Arc<dyn EventSink>,
    ) -> Result<ToolResult, OperatorError> {
        let tool = rig_tools();
        let tool = tool.checked(&call)?;
        if !self.policy.allows(tool.risk.right) {
            return Err(self.policy.refused(&call.name, tool.risk.right));
        }
        let row: &RigTool = RIG_TOOLS
            .iter()
            .find(|row| row.name == call.name)
            .ok_or_else(|| OperatorError::new(OperatorCode::InvalidArgs, "no such tool"))?;
        match (row.lower)(call.arguments, &*self.calls)? {
            RigRequest::Question(question) => {
                let limit = call.timeout_ms.map_or(row.timeout, Duration::from_millis);
                let asked = timeout(limit, self.calls.ask(question.clone())).await;
                let data = asked.map_err(|_| too_slow(&call.name, limit).untouched())??;
                Ok(bound(told(&question, data)))
            }
            RigRequest::Command { mut command, input } => {
                if let Command::Run(RunCommand { options, .. })
                | Command::Test(TestCommand { options, .. }) = &mut *command
                {
                    options.asked.clone_from(&self.asked);
                }
                let right = command.access_right();
                if !self.policy.allows(right) {
                    return Err(self.policy.refused(&call.name, right));
                }
                let limit = call
                    .timeout_ms
                    .map_or_else(|| row.timeout + own_time(&command), Duration::from_millis);
                // A run is begun before anything is done, so one that waits has done nothing.
                let runs = matches!(*command, Command::Run(_) | Command::Test(_));
                let heard = Arc::new(Heard { events, seen: Mutex::default() });
                let sink: Arc<dyn EventSink> = heard.clone();
                let done = timeout(limit, self.calls.execute(*command, input, sink)).await;
                let waited = || heard.seen().waits_for.take();
                let late = |_| match waited().filter(|_| runs) {
                    Some(waits) => in_use(waits, limit),
                    None => too_slow(&call.name, limit),
                };
                let reply = done.map_err(late)??;
                let result = self.told_of(reply, &heard).await;
                Ok(bound(result))
            }
        }
    }

    /// Makes the result of a reply and of what was heard on the way.
    async fn told_of(&self, reply: Reply, heard: &Heard) -> ToolResult {
        let Seen { text, run, ranges, outputs, .. } = std::mem::take(&mut *heard.seen());
        let mut result = match reply {
            Reply::Run(ended) => {
                let logs = evidence(&ended.run, &ended.verdict);
                let data = json!({ "run": ended.run, "verdict": ended.verdict,
                    "exit_code": ended.exit_code, "not_struck": ended.not_struck });
                ToolResult {
                    run: Some(ended.run),
                    verdict: Some(ended.verdict.kind),
                    exit_code: Some(ended.exit_code),
                    logs,
                    ..ToolResult::of(data)
                }
            }
            reply => {
                let data = serde_json::to_value(&reply).unwrap_or(Value::Null);
                ToolResult { run, ..ToolResult::of(data) }
            }
        };
        let (printed, whole, kept) = text.text();
        if whole > 0 {
            result.text = Some(printed);
            if kept < whole {
                result.cut.push(crate::tools::CutPart { path: "/text".to_owned(), whole, kept });
            }
        } else if let Some(run) = result.run.clone() {
            result.text = self.text_of(&run, &outputs, result.verdict).await;
        }
        result.logs.extend(outputs.into_iter().chain(ranges.into_values()));
        result.logs.truncate(MOST_RANGES);
        result
    }

    /// Reads what belongs to the result of a run: the output of its commands, or of a run that did not
    /// pass the last lines of its time line. A result without it is still one.
    async fn text_of(
        &self,
        run: &RunId,
        outputs: &[LogRange],
        verdict: Option<VerdictKind>,
    ) -> Option<String> {
        if !outputs.is_empty() {
            let mut text = String::new();
            for LogRange { run, file, from, to } in outputs {
                let length = (to - from.min(to)).min(MOST_OUTPUT);
                let question = RigQuestion::RunFile {
                    run: run.to_string(),
                    file: file.clone(),
                    // Of a long output its end: there it says how it went.
                    from: to.saturating_sub(length),
                    length,
                };
                let read = self.calls.ask(question).await.ok()?;
                text.push_str(read["text"].as_str()?);
            }
            return Some(text);
        }
        if verdict? == VerdictKind::Pass {
            return None;
        }
        let question = RigQuestion::RunLog { run: run.to_string(), from: None, lines: LOG_LINES };
        let log = self.calls.ask(question).await.ok()?;
        let lines: Vec<&str> = log["lines"].as_array()?.iter().filter_map(Value::as_str).collect();
        Some(lines.join("\n"))
    }
}

impl ToolDoor for RigToolDoor {
    fn list(&self) -> ToolList {
        self.list.clone()
    }

    fn call(
        &self,
        call: ToolCall,
        events: Arc<dyn EventSink>,
    ) -> BoxFuture<'_, Result<ToolResult, OperatorError>> {
        Box::pin(self.carry_out(call, events))
    }
}

fn too_slow(name: &str, limit: Duration) -> OperatorError {
    let words = format!("{name} took longer than {} s and was ended", limit.as_secs_f32());
    OperatorError::new(OperatorCode::ToolTimeout, words).next("jig health")
}

/// Says that a place did not get free in time. Nothing was done there.
fn in_use((place, holder): (PlaceName, String), limit: Duration) -> OperatorError {
    let holder: String = holder.chars().take(MOST_HOLDER).collect();
    let seconds = limit.as_secs_f32();
    let words = format!("{place} did not get free within {seconds:.0} s, in use by {holder}");
    OperatorError::new(OperatorCode::Conflict, words).next("jig lease ls; jig top").untouched()
}

/// Returns how long a command may take by itself, beside what its place needs.
fn own_time(command: &Command) -> Duration {
    Duration::from_millis(match command {
        Command::Run(run) => run.timeout_ms.saturating_mul(run.options.repeat.into()),
        Command::Shell(shell) => shell.timeout_ms,
        // A plan has its own time-outs, up to an hour by default of CI systems.
        Command::Test(test) => 3_000_000_u64.saturating_mul(test.options.repeat.into()),
        _ => 0,
    })
}

/// Makes the result of a question: what the record of a run says of it stands where that of a new run
/// stands, too.
fn told(question: &RigQuestion, mut data: Value) -> ToolResult {
    let text = match question {
        RigQuestion::RunFile { .. } => match data["text"].take() {
            Value::String(text) => Some(text),
            _ => None,
        },
        _ => None,
    };
    let mut result = ToolResult { text, ..ToolResult::of(data) };
    if let RigQuestion::Run { .. } = question {
        let record = &result.data["record"];
        let verdict = &record["verdict"]["kind"];
        let exit_code = record["exit_code"].as_u64().and_then(|code| u8::try_from(code).ok());
        let run = record["id"].as_str().and_then(|id| id.parse::<RunId>().ok());
        let verdict = serde_json::from_value(verdict.clone()).ok();
        (result.run, result.verdict, result.exit_code) = (run, verdict, exit_code);
    }
    result
}

/// Names the byte ranges that a verdict rests on.
fn evidence(run: &RunId, verdict: &Verdict) -> Vec<LogRange> {
    let ranges = verdict.evidence.iter().take(MOST_RANGES);
    ranges
        .map(|evidence| LogRange {
            run: run.clone(),
            file: evidence.file.clone(),
            from: evidence.start,
            to: evidence.end,
        })
        .collect()
}

/// Hears the events of a call, and passes them on.
struct Heard {
    events: Arc<dyn EventSink>,
    seen: Mutex<Seen>,
}

/// What the events of a call have told.
#[derive(Default)]
struct Seen {
    /// The place that the command waits for, and who has it, until its run begins.
    waits_for: Option<(PlaceName, String)>,
    /// What a console printed.
    text: HeadAndTail,
    run: Option<RunId>,
    attempt: u32,
    /// The console that the command is attached to.
    console: String,
    /// The ranges of the logs that the text is from.
    ranges: BTreeMap<String, LogRange>,
    /// The output of commands on the target.
    outputs: Vec<LogRange>,
}

impl Heard {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for Heard {
    fn event(&self, event: CommandEvent) {
        self.seen().hear(&event);
        self.events.event(event);
    }
}

impl Seen {
    fn hear(&mut self, event: &CommandEvent) {
        match event {
            CommandEvent::Waiting { place, holder } => {
                // Who has it is told first, and then the queue.
                let known = self.waits_for.take_if(|(waits, _)| waits == place);
                self.waits_for = known.or_else(|| Some((place.clone(), holder.clone())));
            }
            CommandEvent::RunBegan { run, .. } => {
                (self.waits_for, self.run) = (None, Some(run.clone()));
            }
            CommandEvent::Run { event: RunEvent::AttemptStarted { attempt, .. } } => {
                self.attempt = *attempt;
            }
            CommandEvent::Run { event: RunEvent::TargetCommand { console, from, to, .. } } => {
                if let Some(run) = &self.run
                    && self.outputs.len() < MOST_RANGES
                {
                    let file = format!("consoles/{}/{console}.raw", self.attempt);
                    self.outputs.push(LogRange { run: run.clone(), file, from: *from, to: *to });
                }
            }
            CommandEvent::ConsoleAttached { console, .. } => self.console = console.to_string(),
            CommandEvent::ConsoleLog(log) => match &log.item {
                ConsoleLogItem::Output { bytes } => {
                    self.text.push(bytes);
                    if let ConsoleLogSource::Run { run, attempt } = &log.source {
                        let to = log.offset + u64::try_from(bytes.len()).unwrap_or_default();
                        let file = format!("consoles/{attempt}/{}.raw", self.console);
                        let range = LogRange { run: run.clone(), file, from: log.offset, to };
                        let key = format!("{run}/{attempt}");
                        let known = self.ranges.entry(key).or_insert(range);
                        known.to = known.to.max(to);
                    }
                }
                ConsoleLogItem::Gap { lost, reason } => {
                    let lost = lost.map_or_else(|| "bytes".to_owned(), |n| format!("{n} bytes"));
                    self.text
                        .push(format!("\n[{lost} may be missing here: {reason}]\n").as_bytes());
                }
                ConsoleLogItem::Garbled { .. } => {}
            },
            _ => {}
        }
    }
}
