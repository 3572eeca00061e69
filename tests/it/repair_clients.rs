//! `jig repair` with patches of clients: over the Model Context Protocol, and from the command line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::repair_project::RepairProject;
use crate::workshop::{DEADLINE, Ran, Slot, Started, Workshop, until};

const FIX: &str = "--- a/src/ring.c\n+++ b/src/ring.c\n@@ -3,4 +3,4 @@\n int ring_put(struct ring *r, int v)\n {\n-    if (r->count > 8)\n+    if (r->count >= 8)\n         return 0;\n";

/// A client that speaks the protocol line by line.
struct Client {
    server: Started,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    calls: u64,
}

impl Client {
    fn start(workshop: &Workshop) -> Self {
        let mut command = workshop.jig(["repair", "mcp", "last"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = Started::of(&mut command);
        let requests = server.child().stdin.take().unwrap();
        let answers = BufReader::new(server.child().stdout.take().unwrap());
        let mut client = Self { server, requests, answers, calls: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = client.ask("initialize", &hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "jig-repair", "{answer}");
        client
            .send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        client
    }

    fn send(&mut self, line: &str) {
        writeln!(self.requests, "{line}").unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let call =
            json!({ "jsonrpc": "2.0", "id": self.calls, "method": method, "params": params });
        self.send(&call.to_string());
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"));
        assert_eq!(answer["id"], self.calls, "{answer}");
        answer
    }

    /// Calls a tool; returns its result, or the words of its error.
    fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, String> {
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        let result = &answer["result"];
        match result["isError"] == true {
            true => Err(result["content"][0]["text"].as_str().unwrap().to_owned()),
            false => Ok(result["structuredContent"].clone()),
        }
    }

    fn finish(self) -> Ran {
        let Self { server, requests, answers, .. } = self;
        drop((requests, answers));
        server.finish()
    }
}

fn refused(result: Result<Value, String>, words: &str) {
    let why = result.unwrap_err();
    assert!(why.contains(words), "{words:?} is not in {why:?}");
}

/// Drives a run to where it waits for a patch. The process that drives it awaits one, in every mode.
fn waiting(project: &RepairProject<'_>, mode: &str) -> Started {
    let task = project.task(&format!("[\"mcp\"]\nmode = \"{mode}\""), None);
    let workshop = project.workshop;
    let run = Started::of(workshop.jig(["--json", "repair"]).arg(task).stdout(Stdio::piped()));
    waits(workshop);
    run
}

/// Waits until the run waits for a patch.
fn waits(workshop: &Workshop) {
    until("the wish for a patch", || {
        let status = workshop.run(["--json", "repair", "status", "last"]).json().ok()?;
        (status["waits_for"] == "patch").then_some(())
    });
}

#[test]
fn a_client_reads_the_evidence_and_its_patch_is_proven() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    std::os::unix::fs::symlink("/etc/passwd", workshop.path("fw/src/link")).unwrap();
    project.commit("a link that leads out of the repository");
    let slot = Slot::take();
    let run = waiting(&project, "ci");
    let status = workshop.run(["repair", "status", "last"]).out();
    assert!(
        status.contains("waits for a patch") && status.contains("jig repair submit"),
        "{status}"
    );
    let digest =
        workshop.run(["--json", "repair", "status", "last"]).json().unwrap()["waits"].clone();
    workshop
        .run(["repair", "approve", "last", "--digest", digest.as_str().unwrap()])
        .says(2, &["waits for no approval"]);

    let mut client = Client::start(&workshop);
    let tools = client.ask("tools/list", &json!({}));
    let names: Vec<_> =
        tools["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(
        names,
        ["repair_status", "repair_wait", "repair_evidence", "repair_source", "repair_submit"]
    );
    let status = client.call("repair_wait", json!({})).unwrap();
    assert_eq!((&status["waits_for"], &status["driven"]), (&json!("patch"), &json!(true)));
    let files = client.call("repair_evidence", json!({})).unwrap();
    assert!(files["files"].as_array().unwrap().contains(&json!("failure.json")), "{files}");
    let failure = client.call("repair_evidence", json!({ "file": "failure.json" })).unwrap();
    assert!(failure["text"].as_str().unwrap().contains("test_refuses_when_full"), "{failure}");
    let source = client.call("repair_source", json!({ "path": "src/ring.c" })).unwrap();
    assert!(source["text"].as_str().unwrap().contains("r->count > 8"), "{source}");

    // What a client may not see, say or change.
    for path in
        ["../task.toml", "/etc/passwd", "src", ".git", "src/../../task.toml", "src/link", ""]
    {
        refused(client.call("repair_source", json!({ "path": path })), "is no file of the base");
    }
    refused(client.call("repair_evidence", json!({ "file": "../../task.toml" })), "there is no");
    refused(client.call("repair_submit", json!({ "patch": FIX })), "hypothesis");
    let submit = |patch: &str| json!({ "patch": patch, "hypothesis": "the bound" });
    refused(client.call("repair_submit", submit("make it green")), "no patch that can be used");
    let in_test = FIX.replace("src/ring.c", "test/test_ring.c");
    refused(client.call("repair_submit", submit(&in_test)), "is protected");
    let unknown = client.ask("tools/call", &json!({ "name": "rig_erase", "arguments": {} }));
    assert!(unknown["error"]["message"].as_str().unwrap().contains("no tool"), "{unknown}");

    client.call("repair_submit", submit(FIX)).unwrap();
    let ran = run.finish();
    drop(slot);
    assert_eq!(ran.code(), 0, "{ran}");
    assert_eq!(ran.json().unwrap()["agent"], "mcp", "{ran}");
    let end = client.call("repair_wait", json!({})).unwrap();
    assert_eq!((&end["ended"], &end["state"]), (&json!(true), &json!("SUCCESS")), "{end}");
    refused(client.call("repair_submit", submit(FIX)), "does not wait for a patch");
    client.finish().says(0, &[]);
    project.is_untouched();
}

#[test]
fn a_client_learns_that_no_process_drives_the_run_and_which_command_does() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let slot = Slot::take();
    let run = waiting(&project, "ci");
    run.signal(nix::sys::signal::Signal::SIGKILL);
    run.finish();
    let mut client = Client::start(&workshop);
    let submit = json!({ "patch": FIX, "hypothesis": "the bound" });
    client.call("repair_submit", submit.clone()).unwrap();
    refused(client.call("repair_submit", submit), "another patch was submitted first");
    // Nothing can happen that would be worth a wait.
    let status = client.call("repair_wait", json!({})).unwrap();
    assert_eq!(status["driven"], false, "{status}");
    let next = status["next"].as_str().unwrap();
    let words: Vec<_> = next.strip_prefix("jig ").unwrap().split(' ').collect();
    workshop.run(words).says(0, &["SUCCESS"]);
    drop(slot);
    let end = client.call("repair_status", json!({})).unwrap();
    assert_eq!((&end["driven"], &end["next"]), (&json!(false), &Value::Null), "{end}");
    client.finish().says(0, &[]);
}

#[test]
fn bad_lines_of_a_client_end_nothing_and_a_signal_ends_the_server() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let slot = Slot::take();
    let run = waiting(&project, "ci");
    run.signal(nix::sys::signal::Signal::SIGKILL);
    run.finish();
    drop(slot);
    let mut client = Client::start(&workshop);
    client.send("{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"no/such/method\"}");
    let mut line = String::new();
    client.answers.read_line(&mut line).unwrap();
    assert!(line.contains("\"error\""), "{line}");
    assert_eq!(client.call("repair_status", json!({})).unwrap()["waits_for"], "patch");
    client.server.signal(nix::sys::signal::Signal::SIGTERM);
    client.server.finish().says(130, &[]);
    workshop.nothing_lives(DEADLINE).unwrap();
}

#[test]
fn a_patch_from_the_command_line_reaches_a_run_that_is_driven() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let patch = workshop.write("fix.diff", FIX);
    let slot = Slot::take();
    let run = waiting(&project, "interactive");
    workshop
        .run(["repair", "submit", "last", "nowhere.diff", "--why", "x"])
        .says(2, &["cannot read"]);
    let patch = patch.to_str().unwrap();
    // What cannot apply is refused while it can still be corrected.
    let text = std::fs::read_to_string(patch).unwrap().replace("src/ring.c", "lib/ring.c");
    let elsewhere = workshop.write("elsewhere.diff", text);
    workshop
        .run(["repair", "submit", "last", elsewhere.to_str().unwrap(), "--why", "x"])
        .says(2, &["there is no lib/ring.c, but src/ring.c"]);
    workshop.run(["repair", "submit", "last", patch, "--why", "the bound"]).says(0, &["submitted"]);
    let ran = run.finish();
    drop(slot);
    assert_eq!(ran.code(), 0, "{ran}");
    workshop
        .run(["repair", "submit", "last", patch, "--why", "again"])
        .says(2, &["waits for no patch"]);
    let log = workshop.run(["repair", "log", "last"]).out();
    assert!(log.contains("a client submits a patch: the bound"), "{log}");
}

#[test]
fn without_a_patch_the_run_ends_unrepaired() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let slot = Slot::take();
    let run = waiting(&project, "ci");
    // The wish is repeated as often as an agent may fail.
    for _ in 0..3 {
        waits(&workshop);
        workshop.run(["repair", "reject", "last", "--why", "no idea"]).says(0, &[]);
        until("the end, or the next wish", || {
            let status = workshop.run(["--json", "repair", "status", "last"]).json().ok()?;
            (status["waits_for"] == "patch" || status["ended"] == true).then_some(())
        });
    }
    let ran = run.finish();
    drop(slot);
    assert_eq!(ran.code(), 1, "{ran}");
    let log = workshop.run(["repair", "log", "last"]).out();
    assert!(log.contains("nobody proposes a patch: no idea"), "{log}");
    assert_eq!(project.branches(), [""; 0]);
}
