//! Tools of other servers of the Model Context Protocol, as tools of a plan.
//!
//! # Design
//! *Each server is a program that may hang, lie and die.* It is started when it is needed, ended when it
//! does not answer, and started again no sooner than a delay that doubles. What it lists and answers is
//! bounded before it is kept.
//!
//! *What a server says of its tools is a claim.* A tool is taken for harmless only if the configuration
//! trusts it; any other may do anything on this host, so a plan waits for a confirmation. Its hints say at most
//! that a trusted tool reads.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jig_model::access::AccessRight;
use jig_model::command::EventSink;
use jig_model::protocol::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, ContentBlock, PaginatedRequestParams,
    ProtocolVersion, Tool as McpTool,
};
use rmcp::service::{NotificationContext, Peer, RoleClient, RunningService, ServiceError};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ClientHandler, serve_client};
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout};

use crate::error::{OperatorCode, OperatorError};
use crate::tools::{
    Danger, Tool, ToolCall, ToolDoor, ToolList, ToolResult, ToolRisk, bound, escaped,
};

/// Longest line of a server in bytes. A longer one is dropped, and the call that it answers times out.
const MOST_LINE: usize = 8 << 20;

/// How long a server may take to start, to shake hands, or to list its tools.
const START: Duration = Duration::from_secs(20);

/// Most pages of tools, tools, bytes of a description and bytes of a schema that are kept of a server.
const MOST_PAGES: usize = 16;
const MOST_TOOLS: usize = 128;
const MOST_DESCRIPTION: usize = 2 << 10;
const MOST_SCHEMA: usize = 32 << 10;

/// Longest name of a tool with that of its server.
const MOST_NAME: usize = 64;

/// What stands between the name of a server and that of its tool.
const JOINT: &str = "__";

/// Delay before a server that failed is started again, and its limit; it doubles.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// How a server is started and what it may do: a table `[mcp.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpServerConfig {
    /// Program and arguments; never a shell line.
    pub command: Vec<String>,
    /// Variables of the environment that it gets beside PATH, HOME, LANG and TMPDIR, by name.
    #[serde(default)]
    pub pass_env: Vec<String>,
    /// Tools that may be called without a confirmation, by the server's own names.
    #[serde(default)]
    pub trust: Vec<String>,
    /// How long a call may take, in seconds.
    #[serde(default = "usual_timeout")]
    pub timeout_s: u64,
}

fn usual_timeout() -> u64 {
    60
}

/// A server that was started: what it says, what it is told, and what ends it when dropped.
pub struct McpPipe {
    /// Its standard output.
    pub from: Pin<Box<dyn AsyncRead + Send>>,
    /// Its standard input.
    pub to: Pin<Box<dyn AsyncWrite + Send>>,
    /// Ends it, and all that it has started.
    pub process: Box<dyn Send + Sync>,
}

/// Starts servers. The program binds it.
pub trait McpPrograms: Send + Sync {
    /// Starts a server.
    fn start(
        &self,
        name: &str,
        config: &McpServerConfig,
    ) -> BoxFuture<'_, Result<McpPipe, OperatorError>>;
}

/// Returns the server that the name of a tool begins with, where it is the tool of one.
pub fn server_of_tool(tool: &str) -> Option<&str> {
    tool.split_once(JOINT).map(|(server, _)| server)
}

/// The tools of other servers.
pub struct McpToolDoor {
    servers: BTreeMap<String, Server>,
}

impl McpToolDoor {
    /// Names the servers; none is started yet.
    pub fn new(
        servers: BTreeMap<String, McpServerConfig>,
        programs: &Arc<dyn McpPrograms>,
    ) -> Self {
        let server = |(name, config): (String, McpServerConfig)| {
            let programs = Arc::clone(programs);
            let known = Arc::new(Mutex::new(Known::default()));
            let session = tokio::sync::Mutex::new(SessionSlot::default());
            (name.clone(), Server { name, config, programs, known, session })
        };
        Self { servers: servers.into_iter().map(server).collect() }
    }

    /// Starts the servers that do not run and learns their tools. Returns why some of them could not be
    /// used, by name.
    pub async fn learn(&self) -> BTreeMap<String, OperatorError> {
        self.learn_of(|_| true).await
    }

    /// Does so for the servers whose names are wanted.
    pub async fn learn_of(&self, wanted: impl Fn(&str) -> bool) -> BTreeMap<String, OperatorError> {
        let wanted = self.servers.values().filter(|server| wanted(&server.name));
        let learnt = wanted.map(async |server| {
            let learnt = server.session().await;
            (server.name.clone(), learnt.err())
        });
        let mut failed = BTreeMap::new();
        // One after the other: each is bounded, and few are configured.
        for learnt in learnt {
            let (name, error) = learnt.await;
            failed.extend(error.map(|error| (name, error)));
        }
        failed
    }

    async fn carry_out(&self, call: ToolCall) -> Result<ToolResult, OperatorError> {
        let (name, tool) = call.name.split_once(JOINT).unwrap_or((call.name.as_str(), ""));
        let Some(server) = self.servers.get(name) else {
            let known: Vec<&str> = self.servers.keys().map(String::as_str).collect();
            let words = format!("there is no MCP server {name:?}; there are: {}", known.join(", "));
            return Err(OperatorError::new(OperatorCode::InvalidArgs, words)
                .next("jig mcp tools")
                .untouched());
        };
        server.call(tool, &call).await
    }
}

impl ToolDoor for McpToolDoor {
    fn list(&self) -> ToolList {
        self.servers.values().flat_map(|server| server.known().tools.clone()).collect()
    }

    fn call(
        &self,
        call: ToolCall,
        _: Arc<dyn EventSink>,
    ) -> BoxFuture<'_, Result<ToolResult, OperatorError>> {
        Box::pin(self.carry_out(call))
    }
}

/// Asks a server for its tools, a page after the other.
fn all_tools(peer: Peer<RoleClient>) -> BoxFuture<'static, Result<Vec<McpTool>, ServiceError>> {
    Box::pin(async move {
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let page = cursor.take().map(|cursor| {
                let page = PaginatedRequestParams::default();
                page.with_cursor(Some(cursor))
            });
            let page = peer.list_tools(page).await?;
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if cursor.is_none() || tools.len() >= MOST_TOOLS {
                break;
            }
        }
        Ok(tools)
    })
}

/// What is known of a server.
#[derive(Default)]
struct Known {
    tools: Vec<Tool>,
    /// Whether the server has said that its tools are others now.
    changed: bool,
}

struct Server {
    name: String,
    config: McpServerConfig,
    programs: Arc<dyn McpPrograms>,
    known: Arc<Mutex<Known>>,
    session: tokio::sync::Mutex<SessionSlot>,
}

/// The session with a server, or when the next one may begin.
#[derive(Default)]
struct SessionSlot {
    session: Option<Arc<Session>>,
    delay: Option<Duration>,
    not_before: Option<Instant>,
}

struct Session {
    running: RunningService<RoleClient, Listener>,
    /// A call was given up before it was answered: the server may hang, and is not asked again.
    given_up: AtomicBool,
    _process: Box<dyn Send + Sync>,
}

/// Marks the session of a call whose future is dropped before the server has answered.
struct UntilAnswered<'s>(Option<&'s Session>);

impl Drop for UntilAnswered<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.0 {
            session.given_up.store(true, Ordering::Relaxed);
        }
    }
}

/// Hears what a server says without being asked.
struct Listener(Arc<Mutex<Known>>);

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.client_info.name = "jig".to_owned();
        info.client_info.version = env!("CARGO_PKG_VERSION").to_owned();
        info
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).changed = true;
    }
}

impl Server {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, code: OperatorCode, why: impl std::fmt::Display) -> OperatorError {
        let mut why = escaped(why.to_string().as_bytes());
        why.truncate(why.floor_char_boundary(MOST_DESCRIPTION));
        OperatorError::new(code, format!("MCP server {}: {why}", self.name))
            .next(format!("try it by hand: {}", self.config.command.join(" ")))
    }

    /// Returns the session, or begins one; its tools are known then.
    async fn session(&self) -> Result<Arc<Session>, OperatorError> {
        let mut slot = self.session.lock().await;
        let given_up = |session: &Arc<Session>| session.given_up.load(Ordering::Relaxed);
        if slot.session.as_ref().is_some_and(given_up) {
            slot.session = None;
            slot.put_off();
        }
        if let Some(session) = slot.session.clone().filter(|session| !session.running.is_closed()) {
            if std::mem::take(&mut self.known().changed) {
                self.learn(&session).await?;
            }
            return Ok(session);
        }
        slot.session = None;
        if let Some(at) = slot.not_before.filter(|at| *at > Instant::now()) {
            let left = at.duration_since(Instant::now()).as_secs_f32();
            let why = format!("it failed, and is started again in {left:.1} s at the earliest");
            return Err(self.failed(OperatorCode::Io, why).untouched());
        }
        match self.begin().await {
            Ok(session) => {
                slot.session = Some(Arc::clone(&session));
                Ok(session)
            }
            Err(error) => {
                slot.put_off();
                Err(error.untouched())
            }
        }
    }

    async fn begin(&self) -> Result<Arc<Session>, OperatorError> {
        let pipe = self.programs.start(&self.name, &self.config).await?;
        let McpPipe { from, to, process } = pipe;
        let transport = AsyncRwTransport::new_client(from, to).with_max_line_length(MOST_LINE);
        let serving: BoxFuture<'static, _> =
            Box::pin(serve_client(Listener(Arc::clone(&self.known)), transport));
        let begun = timeout(START, serving);
        let begun = begun.await.map_err(|_| {
            let why = format!("no handshake within {} s", START.as_secs());
            self.failed(OperatorCode::ToolTimeout, why)
        })?;
        let running =
            begun.map_err(|error| self.failed(OperatorCode::Io, jig_model::chain(&error)))?;
        let version = running.peer().peer_info().map(|info| info.protocol_version.clone());
        if let Some(other) = version.filter(|one| !ProtocolVersion::KNOWN_VERSIONS.contains(one)) {
            let known: Vec<_> =
                ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
            let (other, known) = (other.as_str(), known.join(", "));
            let why = format!("it speaks version {other:?} of the protocol; known are {known}");
            return Err(self.failed(OperatorCode::Io, why));
        }
        let given_up = AtomicBool::new(false);
        let session = Arc::new(Session { running, given_up, _process: process });
        self.known().changed = false;
        self.learn(&session).await?;
        Ok(session)
    }

    /// Learns the tools.
    async fn learn(&self, session: &Session) -> Result<(), OperatorError> {
        let list = all_tools(session.running.peer().clone());
        let listed = timeout(START, list).await.map_err(|_| {
            let why = format!("it did not list its tools within {} s", START.as_secs());
            self.failed(OperatorCode::ToolTimeout, why)
        })?;
        let listed = listed.map_err(|error| self.failed(OperatorCode::Io, error))?;
        let tools = listed.into_iter().take(MOST_TOOLS).filter_map(|tool| self.described(tool));
        self.known().tools = tools.collect();
        Ok(())
    }

    /// Makes a tool of the list out of what a server says; nothing if it cannot be one.
    fn described(&self, tool: McpTool) -> Option<Tool> {
        let name = format!("{}{JOINT}{}", self.name, tool.name);
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let schema = Value::Object((*tool.input_schema).clone());
        let kept = name.chars().all(fits)
            && name.len() <= MOST_NAME
            && schema.to_string().len() <= MOST_SCHEMA;
        if !kept {
            tracing::warn!(server = self.name, tool = ?tool.name, "a tool is left out");
            return None;
        }
        let mut description = escaped(tool.description.unwrap_or_default().as_bytes());
        description.truncate(description.floor_char_boundary(MOST_DESCRIPTION));
        let hints = tool.annotations.unwrap_or_default();
        let risk = match self.config.trust.iter().any(|trusted| *trusted == *tool.name) {
            true => {
                let read_only = hints.read_only_hint == Some(true);
                let idempotent = read_only || hints.idempotent_hint == Some(true);
                ToolRisk { read_only, idempotent, ..ToolRisk::READ }
            }
            false => ToolRisk {
                read_only: false,
                idempotent: false,
                destructive: true,
                danger: Danger::Host,
                right: AccessRight::Administer,
            },
        };
        let timeout = Duration::from_secs(self.config.timeout_s);
        Some(Tool::of_server(&self.name, name, description, schema, risk, timeout))
    }

    async fn call(&self, tool: &str, call: &ToolCall) -> Result<ToolResult, OperatorError> {
        let session = self.session().await?;
        let list: ToolList = self.known().tools.iter().cloned().collect();
        let limit = list.checked(call)?.timeout;
        let limit = call.timeout_ms.map_or(limit, Duration::from_millis);
        let mut params = CallToolRequestParams::new(tool.to_owned());
        if let Value::Object(arguments) = &call.arguments {
            params = params.with_arguments(arguments.clone());
        }
        let peer = session.running.peer().clone();
        let calling: BoxFuture<'static, _> = Box::pin(async move { peer.call_tool(params).await });
        let mut until_answered = UntilAnswered(Some(&session));
        let called = timeout(limit, calling).await;
        until_answered.0 = None;
        match called {
            Ok(Ok(result)) => {
                let mut slot = self.session.lock().await;
                (slot.delay, slot.not_before) = (None, None);
                self.told(result)
            }
            Ok(Err(error @ ServiceError::McpError(_))) => {
                Err(self.failed(OperatorCode::InvalidArgs, error))
            }
            Ok(Err(error)) => {
                self.end(&session).await;
                Err(self.failed(OperatorCode::Io, error))
            }
            Err(_) => {
                // It may hang for good, and other calls with it.
                self.end(&session).await;
                let why = format!(
                    "{tool} took longer than {} s; the server was ended",
                    limit.as_secs_f32()
                );
                Err(self.failed(OperatorCode::ToolTimeout, why))
            }
        }
    }

    /// Gives a session up: its program ends with the last call that uses it.
    async fn end(&self, session: &Arc<Session>) {
        let mut slot = self.session.lock().await;
        if slot.session.as_ref().is_some_and(|current| Arc::ptr_eq(current, session)) {
            slot.session = None;
            slot.put_off();
        }
    }

    fn told(&self, result: CallToolResult) -> Result<ToolResult, OperatorError> {
        let mut text = String::new();
        for block in &result.content {
            match block {
                ContentBlock::Text(block) => text.push_str(&block.text),
                // Nothing of a plan can use them.
                ContentBlock::Image(_) | ContentBlock::Audio(_) => text.push_str("[media]"),
                other => text.push_str(&serde_json::to_string(other).unwrap_or_default()),
            }
            text.push('\n');
        }
        let text = escaped(text.trim_end().as_bytes());
        if result.is_error == Some(true) {
            return Err(self.failed(OperatorCode::Io, text));
        }
        let text = (!text.is_empty()).then_some(text);
        let data = result.structured_content.unwrap_or_default();
        Ok(bound(ToolResult { text, ..ToolResult::of(data) }))
    }
}

impl SessionSlot {
    fn put_off(&mut self) {
        let delay = self.delay.map_or(FIRST_DELAY, |delay| (delay * 2).min(LONGEST_DELAY));
        (self.delay, self.not_before) = (Some(delay), Some(Instant::now() + delay));
    }
}

/// Several doors as one. Of tools with one name, that of the first door is called.
pub struct ToolDoors(Vec<Arc<dyn ToolDoor>>);

impl ToolDoors {
    /// Joins doors.
    pub fn new(doors: Vec<Arc<dyn ToolDoor>>) -> Self {
        Self(doors)
    }
}

impl ToolDoor for ToolDoors {
    fn list(&self) -> ToolList {
        self.0.iter().flat_map(|door| door.list().iter().cloned().collect::<Vec<_>>()).collect()
    }

    fn call(
        &self,
        call: ToolCall,
        events: Arc<dyn EventSink>,
    ) -> BoxFuture<'_, Result<ToolResult, OperatorError>> {
        Box::pin(async move {
            let has = |door: &&Arc<dyn ToolDoor>| door.list().find(&call.name).is_some();
            match self.0.iter().find(has) {
                Some(door) => door.call(call, events).await,
                // Says which names there are.
                None => Err(match self.list().checked(&call) {
                    Err(error) => error,
                    Ok(_) => OperatorError::new(OperatorCode::Io, "the tool has just gone"),
                }),
            }
        })
    }
}
