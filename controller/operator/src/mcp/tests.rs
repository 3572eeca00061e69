//! The server against a client that speaks the protocol line by line.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jig_model::command::{CommandEvent, EventSink};
use jig_model::protocol::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex,
    split,
};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::error::{OperatorCode, OperatorError};
use crate::tools::{ToolCall, ToolDoor, ToolList, ToolResult, rig_tools};
use std::sync::Arc;

/// Longest wait for what has to come.
const DEADLINE: Duration = Duration::from_secs(30);

/// Has the tools of a rig; calls of `run` begin, tell of an event and hang, others answer at once.
#[derive(Default)]
struct FakeDoor {
    called: Mutex<Vec<ToolCall>>,
    begun: Notify,
    under_way: AtomicUsize,
    /// Where set, calls wait for a permit.
    gate: Option<Semaphore>,
    most: AtomicUsize,
    huge: bool,
}

/// Counts a call until its future is dropped.
struct UnderWay<'d>(&'d FakeDoor);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ToolDoor for FakeDoor {
    fn list(&self) -> ToolList {
        rig_tools()
    }

    fn call(
        &self,
        call: ToolCall,
        events: Arc<dyn EventSink>,
    ) -> BoxFuture<'_, Result<ToolResult, OperatorError>> {
        Box::pin(async move {
            rig_tools().checked(&call)?;
            let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            let _under_way = UnderWay(self);
            self.called.lock().unwrap().push(call.clone());
            if let Some(gate) = &self.gate {
                let _permit = gate.acquire().await.unwrap();
            }
            match call.name.as_str() {
                "run" => {
                    events.event(CommandEvent::Waiting {
                        place: "bench-1".parse().unwrap(),
                        holder: "somebody\x1b[2J\nelse".to_owned(),
                    });
                    self.begun.notify_one();
                    std::future::pending().await
                }
                "erase" => Err(OperatorError::new(OperatorCode::Conflict, "bench-1 is in use")
                    .next("jig lease ls")),
                "runs_list" => {
                    let before = call.arguments["before"].as_str().map(str::to_owned);
                    let run = |id: &str| json!({ "id": id, "place": "bench-1", "verdict": "pass" });
                    Ok(ToolResult::of(match before {
                        None => json!({ "runs": [run("r3"), run("r2")], "more": true }),
                        Some(_) => json!({ "runs": [run("r1")], "more": false }),
                    }))
                }
                "runs_read" => Ok(ToolResult {
                    text: Some("+++ out of a log".to_owned()),
                    ..ToolResult::of(json!({ "from": 0, "to": 16, "next": 16 }))
                }),
                _ if self.huge => Ok(ToolResult::of(json!("x".repeat(30_000)))),
                _ => Ok(ToolResult::of(json!({ "answer": call.name }))),
            }
        })
    }
}

struct Client {
    to: WriteHalf<DuplexStream>,
    from: BufReader<ReadHalf<DuplexStream>>,
    served: JoinHandle<McpServed>,
    number: u64,
}

impl Client {
    fn connect(door: &Arc<FakeDoor>) -> Self {
        let (near, far) = duplex(64 << 10);
        let (far_from, far_to) = split(far);
        let door: Arc<dyn ToolDoor> = door.clone();
        let served = tokio::spawn(serve_mcp(door, "1.2.3", far_from, far_to));
        let (from, to) = split(near);
        Self { to, from: BufReader::new(from), served, number: 0 }
    }

    async fn begin(door: &Arc<FakeDoor>) -> Self {
        let mut client = Self::connect(door);
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } });
        let answer = client.ask("initialize", hello).await;
        assert_eq!(answer["result"]["serverInfo"], json!({ "name": "jig", "version": "1.2.3" }));
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    async fn send(&mut self, message: &Value) {
        self.send_line(message.to_string().as_bytes()).await;
    }

    async fn send_line(&mut self, line: &[u8]) {
        self.to.write_all(line).await.unwrap();
        self.to.write_all(b"\n").await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let mut line = String::new();
        timeout(DEADLINE, self.from.read_line(&mut line)).await.expect("an answer").unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
    }

    async fn start(&mut self, method: &str, params: Value) -> u64 {
        self.number += 1;
        let id = self.number;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.start(method, params).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    async fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": name, "arguments": arguments })).await
    }

    /// Closes the connection and returns how it was served.
    async fn close(self) -> McpServed {
        let Self { to, from, served, .. } = self;
        drop(from.into_inner().unsplit(to));
        timeout(DEADLINE, served).await.expect("the end of the server").unwrap()
    }
}

async fn until_idle(door: &FakeDoor) {
    timeout(DEADLINE, async {
        while door.under_way.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await
    .expect("the end of the calls");
}

#[tokio::test]
async fn tools_are_listed_with_schemas_and_hints() {
    let door = Arc::new(FakeDoor::default());
    let mut client = Client::begin(&door).await;
    let listed = client.ask("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), rig_tools().iter().count());
    let of = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    assert_eq!(
        of("boards")["annotations"],
        json!({ "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true,
            "openWorldHint": false })
    );
    assert_eq!(
        of("flash")["annotations"],
        json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true,
            "openWorldHint": false })
    );
    assert_eq!(of("run")["inputSchema"]["required"], json!(["place"]));
    for tool in tools {
        assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
    }
    assert_eq!(client.close().await, McpServed::Closed);
}

#[tokio::test]
async fn results_are_structured_and_refusals_are_told_to_the_agent() {
    let door = Arc::new(FakeDoor::default());
    let mut client = Client::begin(&door).await;
    let done = client.call("boards", json!({})).await;
    let result = &done["result"];
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["data"]["answer"]),
        (&json!(false), &json!("boards"))
    );
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"]);

    let refused = client.call("erase", json!({ "place": "bench-1" })).await;
    assert_eq!(refused["result"]["isError"], true);
    assert_eq!(
        refused["result"]["content"][0]["text"],
        "E_CONFLICT: bench-1 is in use\nnext: jig lease ls"
    );
    let unknown = client.call("rig_erase", json!({})).await;
    let text = unknown["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("E_INVALID_ARGS: there is no tool \"rig_erase\""), "{text}");
}

#[tokio::test]
async fn a_client_of_the_newest_version_needs_no_handshake() {
    let door = Arc::new(FakeDoor::default());
    let mut client = Client::connect(&door);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let told = client.ask("server/discover", json!({ "_meta": meta })).await;
    let versions = told["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{told}");
    let params = json!({ "_meta": meta, "name": "boards", "arguments": {} });
    let done = client.ask("tools/call", params).await;
    assert_eq!(done["result"]["structuredContent"]["data"]["answer"], "boards", "{done}");
}

#[tokio::test]
async fn progress_is_told_and_a_cancelled_call_is_dropped() {
    let door = Arc::new(FakeDoor::default());
    let mut client = Client::begin(&door).await;
    let params = json!({ "name": "run", "arguments": { "place": "bench-1" },
        "_meta": { "progressToken": "t1" } });
    let id = client.start("tools/call", params).await;
    let told = client.next().await;
    assert_eq!(told["method"], "notifications/progress", "{told}");
    assert_eq!(told["params"]["progressToken"], "t1");
    assert_eq!(told["params"]["progress"], 1.0);
    assert_eq!(told["params"]["message"], "waits for bench-1, used by somebody\\x1b[2J else");
    client
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": id, "reason": "test" } }))
        .await;
    until_idle(&door).await;
    // The session goes on, and nothing is answered to what was cancelled.
    assert!(client.call("boards", json!({})).await["result"].is_object());
}

#[tokio::test]
async fn calls_of_a_client_that_has_gone_are_dropped() {
    let door = Arc::new(FakeDoor::default());
    let mut client = Client::begin(&door).await;
    let params = json!({ "name": "run", "arguments": { "place": "bench-1" } });
    client.start("tools/call", params).await;
    timeout(DEADLINE, door.begun.notified()).await.unwrap();
    assert_eq!(client.close().await, McpServed::Closed);
    until_idle(&door).await;
}

#[tokio::test]
async fn calls_beyond_the_limit_wait() {
    let door = Arc::new(FakeDoor { gate: Some(Semaphore::new(0)), ..FakeDoor::default() });
    let mut client = Client::begin(&door).await;
    for _ in 0..50 {
        client.start("tools/call", json!({ "name": "boards", "arguments": {} })).await;
    }
    // The gate opens only when the first calls stand at it.
    timeout(DEADLINE, async {
        while door.under_way.load(Ordering::SeqCst) < 16 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await
    .unwrap();
    door.gate.as_ref().unwrap().add_permits(1000);
    for _ in 0..50 {
        assert!(client.next().await["result"].is_object());
    }
    assert_eq!(door.most.load(Ordering::SeqCst), 16);
}

#[tokio::test]
async fn lines_that_are_no_messages_end_nothing() {
    let door = Arc::new(FakeDoor { huge: true, ..FakeDoor::default() });
    let mut client = Client::begin(&door).await;
    client.send_line(b"").await;
    client.send_line(b"{").await;
    client.send_line(b"\xff\xfe\x00").await;
    client.send_line(&vec![b'x'; 3 << 20]).await;
    let mut deep = vec![b'['; 200_000];
    deep.extend(vec![b']'; 200_000]);
    client.send_line(&deep).await;
    // An argument that is too long is refused by the schema.
    let long = client.call("run", json!({ "place": "p", "image": "x".repeat(500_000) })).await;
    let text = long["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("at /image: 500000 characters; the most is 1024"), "{text}");
    assert!(text.len() < 1000);
    let unknown = client.ask("no/such/method", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let wrong = client.ask("tools/call", json!({ "arguments": 7 })).await;
    assert!(wrong["error"].is_object(), "{wrong}");
    assert!(client.call("boards", json!({})).await["result"].is_object());
    assert_eq!(client.close().await, McpServed::Closed);
}

#[tokio::test]
async fn what_does_not_begin_as_a_session_is_none() {
    let door = Arc::new(FakeDoor::default());
    let client = Client::connect(&door);
    assert_eq!(client.close().await, McpServed::NoHandshake);
    assert!(door.called.lock().unwrap().is_empty());
}

#[tokio::test]
async fn runs_are_resources_in_pages() {
    let door = Arc::new(FakeDoor::default());
    let mut client = Client::begin(&door).await;
    let first = client.ask("resources/list", json!({})).await;
    let uris: Vec<_> =
        first["result"]["resources"].as_array().unwrap().iter().map(|r| &r["uri"]).collect();
    assert_eq!(uris, ["jig://run/r3/record", "jig://run/r2/record"]);
    let cursor = first["result"]["nextCursor"].clone();
    assert_eq!(cursor, "r2");
    let second = client.ask("resources/list", json!({ "cursor": cursor })).await;
    assert_eq!(second["result"]["resources"][0]["name"], "r1");
    assert_eq!(second["result"]["nextCursor"], Value::Null);
    let templates = client.ask("resources/templates/list", json!({})).await;
    assert_eq!(templates["result"]["resourceTemplates"].as_array().unwrap().len(), 4);
    let uri = "jig://run/r3/file/consoles/1/uart0.raw?from=0&length=16";
    let read = client.ask("resources/read", json!({ "uri": uri })).await;
    let contents = &read["result"]["contents"][0];
    assert_eq!((&contents["text"], &contents["uri"]), (&json!("+++ out of a log"), &json!(uri)));
    assert_eq!(contents["_meta"]["next"], 16, "{read}");
    for uri in ["file:///etc/passwd", "jig://run/../record?x=1", ""] {
        let refused = client.ask("resources/read", json!({ "uri": uri })).await;
        assert!(refused["error"]["message"].is_string(), "{refused}");
    }
}
