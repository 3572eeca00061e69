//! `jig mcp serve`: a client of the Model Context Protocol uses the rig, line by line.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::manifest::{elf, in_target, repository};
use crate::remote::TwoHosts;
use crate::workshop::{DEADLINE, Ran, Slot, Started, Workshop, until};

/// A client, and the server that it has started.
struct Agent {
    server: Started,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    number: u64,
    /// Notifications that came before an answer.
    told: Vec<Value>,
}

impl Agent {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = Started::of(&mut command);
        let requests = server.child().stdin.take();
        let answers = BufReader::new(server.child().stdout.take().unwrap());
        let mut agent = Self { server, requests, answers, number: 0, told: Vec::new() };
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } });
        let answer = agent.ask("initialize", &hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "jig", "{answer}");
        agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    /// Starts a server whose images are the fixtures.
    fn of(workshop: &Workshop, more: &[&str]) -> Self {
        let fixtures = in_target("fixtures");
        let args = [&["mcp", "serve", "--root", fixtures.to_str().unwrap()], more].concat();
        Self::start(workshop.jig(args))
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.requests.as_mut().unwrap(), "{message}").unwrap();
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
    }

    fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.number += 1;
        let id = self.number;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        loop {
            let answer = self.next();
            if answer["id"] == id {
                return answer;
            }
            self.told.push(answer);
        }
    }

    fn tools(&mut self) -> BTreeSet<String> {
        let listed = self.ask("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Calls a tool; returns its result, or the words of its refusal.
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, String> {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.ask("tools/call", &params);
        let result = &answer["result"];
        match result["isError"] == true {
            true => Err(result["content"][0]["text"].as_str().unwrap().to_owned()),
            false => Ok(result["structuredContent"].clone()),
        }
    }

    /// Begins a run that does not end by itself, and returns its call when the board runs.
    fn hang(&mut self, rig: &Workshop, board: &str) -> u64 {
        let params = json!({ "name": "run", "_meta": { "progressToken": "p" }, "arguments": {
            "place": board, "image": elf("microbit", "hang-in-test"), "timeout_s": 600,
            "until": "never printed" } });
        let call = self.begin("tools/call", &params);
        let told = self.next();
        assert_eq!(told["method"], "notifications/progress", "{told}");
        assert_eq!(told["params"]["progressToken"], "p", "{told}");
        until("a board that runs", || (!rig.emulators().is_empty()).then_some(()));
        call
    }

    fn close(mut self) -> Ran {
        drop(self.requests.take());
        let Self { server, answers, .. } = self;
        let ran = server.finish();
        drop(answers);
        ran
    }
}

fn refused(result: Result<Value, String>, words: &[&str]) {
    let why = result.unwrap_err();
    for words in words {
        assert!(why.contains(words), "{words:?} is not in {why:?}");
    }
}

#[test]
fn an_agent_finds_a_board_runs_firmware_and_reads_the_evidence() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let mut agent = Agent::of(&workshop, &["--allow", "use"]);
    let boards = agent.call("boards", &json!({})).unwrap();
    let profiles = boards["data"]["profiles"].as_array().unwrap();
    assert!(profiles.iter().any(|board| board["id"] == "microbit"), "{boards}");

    let run = |agent: &mut Agent, fixture: &str| {
        let image = elf("microbit", fixture);
        agent.call("run", &json!({ "place": "microbit", "image": image })).unwrap()
    };
    let passed = run(&mut agent, "unity-pass");
    assert_eq!((&passed["verdict"], &passed["exit_code"]), (&json!("pass"), &json!(0)), "{passed}");
    assert_eq!(passed["text"], Value::Null, "{passed}");
    let failed = run(&mut agent, "unity-fail");
    assert_eq!((&failed["verdict"], &failed["exit_code"]), (&json!("fail"), &json!(1)), "{failed}");
    // The end of the time line comes with it, and the evidence can be read.
    assert!(failed["text"].as_str().unwrap().contains("verdict"), "{failed}");
    let log = &failed["logs"][0];
    let range = json!({ "run": log["run"], "file": log["file"], "from": log["from"],
        "length": log["to"].as_u64().unwrap() - log["from"].as_u64().unwrap() });
    let read = agent.call("runs_read", &range).unwrap();
    assert!(read["text"].as_str().unwrap().contains("FAIL"), "{read}");

    let listed = agent.call("runs_list", &json!({ "limit": 1 })).unwrap();
    assert_eq!(listed["data"]["runs"][0]["id"], failed["run"], "{listed}");
    assert_eq!(listed["data"]["more"], true, "{listed}");
    let before = json!({ "before": failed["run"] });
    let older = agent.call("runs_list", &before).unwrap();
    assert_eq!(older["data"]["runs"][0]["id"], passed["run"], "{older}");
    let shown = agent.call("runs_show", &json!({})).unwrap();
    assert_eq!((&shown["run"], &shown["verdict"]), (&failed["run"], &json!("fail")), "{shown}");
    let compared = agent.call("runs_compare", &json!({ "before": passed["run"] })).unwrap();
    assert!(compared["data"]["worse"].as_u64().unwrap() > 0, "{compared}");
    let explained = agent.call("explain", &json!({})).unwrap();
    assert_eq!(explained["data"]["last_pass"], passed["run"], "{explained}");
    let log = agent.call("runs_log", &json!({ "from": 0, "lines": 3 })).unwrap();
    assert_eq!(log["data"]["next"], 3, "{log}");
    let again = agent.call("runs_log", &json!({ "from": 3, "lines": 1 })).unwrap();
    assert_ne!(again["data"]["lines"][0], log["data"]["lines"][2], "{again}");
    let files = agent.call("runs_files", &json!({})).unwrap();
    let names = files["data"]["files"].as_array().unwrap();
    assert!(names.iter().any(|file| file["file"] == "record.json"), "{files}");
    for tool in ["places", "health", "leases", "audit"] {
        agent.call(tool, &json!({})).unwrap();
    }
    let found = agent.call("knowledge_search", &json!({ "question": "hard fault" })).unwrap();
    assert_eq!(found["data"]["hits"], json!([]), "{found}");

    // The same as resources.
    let resources = agent.ask("resources/list", &json!({}));
    let first = &resources["result"]["resources"][0];
    assert_eq!(first["uri"], format!("jig://run/{}/record", failed["run"].as_str().unwrap()));
    let read = agent.ask("resources/read", &json!({ "uri": first["uri"] }));
    let record = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(record.contains("test_failed"), "{record}");
    let uri = "jig://run/last/file/consoles/1/uart0.raw?from=0&length=10";
    let page = agent.ask("resources/read", &json!({ "uri": uri }));
    assert_eq!(page["result"]["contents"][0]["text"], "jig-fixtur", "{page}");
    assert_eq!(page["result"]["contents"][0]["_meta"]["next"], 10, "{page}");
    agent.close().says(0, &[]);
    workshop.nothing_lives(DEADLINE).unwrap();
}

#[test]
fn nothing_is_touched_that_was_not_allowed() {
    let workshop = Workshop::new();
    fs::write(workshop.path("plan.toml"), "version = 1").unwrap();
    let image = elf("microbit", "unity-pass");
    let mut agent = Agent::of(&workshop, &[]);
    let tools = agent.tools();
    assert!(tools.contains("runs_show") && !tools.contains("run"), "{tools:?}");
    let run = json!({ "place": "microbit", "image": image });
    refused(agent.call("run", &run), &["E_POLICY_DENIED", "jig mcp serve --allow use"]);
    refused(agent.call("erase", &json!({ "place": "microbit" })), &["E_POLICY_DENIED"]);
    refused(agent.call("flsh", &json!({})), &["E_INVALID_ARGS", "did you mean `flash`?"]);
    refused(
        agent.call("runs_show", &json!({ "runn": "last" })),
        &["at /runn", "did you mean `run`?"],
    );
    agent.close().says(0, &[]);

    let mut agent = Agent::of(&workshop, &["--allow", "use"]);
    refused(agent.call("flash", &run), &["E_POLICY_DENIED", "--allow use,flash"]);
    let outside = workshop.path("plan.toml");
    for (tool, argument) in [("run", "image"), ("test", "plan")] {
        for named in ["/etc/passwd", "../../../../etc/passwd", outside.to_str().unwrap()] {
            let call = json!({ "place": "microbit", argument: named });
            refused(agent.call(tool, &call), &["E_POLICY_DENIED", "lies outside of"]);
        }
    }
    let place = json!({ "place": "microbti", "image": image });
    refused(agent.call("run", &place), &["E_INVALID_ARGS", "microbit"]);
    // A plan in words that would run a program of the host.
    let plan = "version = 1\nname = \"p\"\ntimeout = \"9s\"\n[[stage]]\nname = \"s\"\n[[stage.step]]\n\
                name = \"t\"\nactions = [{ host_command = [\"touch\", \"proof\"] }]\n";
    let test = json!({ "place": "microbit", "plan_text": plan });
    refused(agent.call("test", &test), &["E_POLICY_DENIED", "administer"]);
    for file in ["../record.json", "/etc/passwd", "consoles", ".."] {
        let read = json!({ "run": "last", "file": file });
        refused(agent.call("runs_read", &read), &["next: "]);
    }
    agent.close().says(0, &[]);
    assert_eq!(workshop.run_dirs(), Vec::<std::path::PathBuf>::new());
    assert!(!workshop.path("proof").exists());
    workshop.run(["mcp", "serve", "--allow", "everything"]).says(2, &["use one of"]);
    workshop.run(["mcp", "serve", "--root", "nowhere"]).says(2, &["nowhere"]);
    workshop.run(["mcp", "serve"]).says(2, &["jig mcp tools"]);
}

#[test]
fn a_cancelled_call_and_a_client_that_goes_leave_nothing() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let mut agent = Agent::of(&workshop, &["--allow", "use"]);
    let call = agent.hang(&workshop, "microbit");
    agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": call } }));
    until("the end of the board", || workshop.emulators().is_empty().then_some(()));
    // The session goes on, and knows that the run was cancelled.
    until("the end of the run", || {
        let shown = agent.call("runs_show", &json!({})).unwrap();
        (shown["data"]["state"] == "ended").then_some(())
    });
    let shown = agent.call("runs_show", &json!({})).unwrap();
    assert_eq!(shown["verdict"], "cancelled", "{shown}");

    // A client that closes its end in mid-run.
    agent.hang(&workshop, "microbit");
    agent.close().says(0, &[]);
    workshop.nothing_lives(DEADLINE).unwrap();
    let shown = workshop.run(["--json", "runs", "show", "last"]).json().unwrap();
    assert_eq!(shown["state"], "ended", "{shown}");

    // A signal, and a server that is killed.
    for (signal, state) in [(Signal::SIGTERM, "ended"), (Signal::SIGKILL, "killed")] {
        let mut agent = Agent::of(&workshop, &["--allow", "use"]);
        agent.hang(&workshop, "microbit");
        agent.server.signal(signal);
        let Agent { server, .. } = agent;
        server.finish();
        workshop.nothing_lives(DEADLINE).unwrap();
        let shown = workshop.run(["--json", "runs", "show", "last"]).json().unwrap();
        assert_eq!(shown["state"], state, "{shown}");
    }
    let image = elf("microbit", "unity-pass");
    workshop.run(["run", "-b", "microbit", &image]).says(0, &["PASS"]);
}

const RULED: &str = "version = 1
[[place]]
name = \"bench-1\"
board = \"microbit\"
emulator = {}
tags = [\"radio\"]
[[place]]
name = \"secret-1\"
board = \"microbit\"
emulator = {}
[[access]]
identity = [\"ci\"]
may = [\"use\"]
places = [\"tag=radio\"]
";

#[test]
fn an_agent_under_a_name_sees_and_uses_what_the_rules_let_it() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let rig = workshop.write("rig.toml", RULED);
    let rig = rig.to_str().unwrap();
    let mut agent =
        Agent::of(&workshop, &["--rig", rig, "--as", "ci", "--allow", "use,flash,power"]);
    let places = agent.call("places", &json!({})).unwrap();
    let names: Vec<_> =
        places["data"]["places"].as_array().unwrap().iter().map(|at| &at["place"]).collect();
    assert_eq!(names, ["bench-1"]);
    let image = elf("microbit", "unity-pass");
    let on = |place: &str| json!({ "place": place, "image": image });
    // A hidden place is as one that is not there.
    let hidden = agent.call("run", &on("secret-1")).unwrap_err();
    assert_eq!(hidden.replace("secret-1", "x"), agent.call("run", &on("x")).unwrap_err());
    refused(agent.call("flash", &on("bench-1")), &["ci", "flash"]);
    let passed = agent.call("run", &on("bench-1")).unwrap();
    assert_eq!(passed["verdict"], "pass", "{passed}");
    // The log of what was asked is for those who administer the rig.
    refused(agent.call("audit", &json!({})), &["next: "]);
    agent.close().says(0, &[]);
    let noted = workshop.run(["--rig", rig, "audit", "--json"]).out();
    assert!(noted.lines().any(|line| line.contains("\"ci\"")), "{noted}");
    workshop.nothing_lives(DEADLINE).unwrap();
    workshop
        .run(["--rig", rig, "mcp", "serve", "--as", "unix:root"])
        .says(2, &["names no identity"]);
}

#[test]
fn the_rig_of_another_host_has_the_same_tools() {
    let _slot = Slot::take();
    let hosts = TwoHosts::new();
    let fixtures = in_target("fixtures");
    let serve = ["mcp", "serve", "--allow", "use", "--root", fixtures.to_str().unwrap()];
    let mut agent = Agent::start(hosts.call(&serve));
    let image = elf("microbit", "unity-fail");
    let failed = agent.call("run", &json!({ "place": "microbit", "image": image })).unwrap();
    assert_eq!(failed["verdict"], "fail", "{failed}");
    let log = failed["logs"][0].clone();
    let range = json!({ "run": log["run"], "file": log["file"], "from": log["from"] });
    let read = agent.call("runs_read", &range).unwrap();
    assert!(read["text"].as_str().unwrap().contains("FAIL"), "{read}");
    for (tool, arguments) in [
        ("boards", json!({})),
        ("places", json!({})),
        ("health", json!({})),
        ("leases", json!({})),
        ("runs_list", json!({})),
        ("runs_show", json!({})),
        ("runs_log", json!({})),
        ("runs_files", json!({})),
        ("explain", json!({})),
        ("recovery_steps", json!({ "place": "microbit" })),
    ] {
        agent.call(tool, &arguments).unwrap_or_else(|why| panic!("{tool}: {why}"));
    }
    // What is known lies at the other host, and is found there.
    let title = "the ring of the other host refuses its ninth byte";
    let draft = ["kb", "add", "--title", title, "--resolution", "raise the bound of the ring"];
    hosts.rig.run(draft).says(0, &[]);
    let found = agent.call("knowledge_search", &json!({ "question": "ninth byte" })).unwrap();
    assert_eq!(found["data"]["hits"][0]["unit"]["content"]["title"], title, "{found:#}");
    agent.hang(&hosts.rig, "microbit");
    agent.close().says(0, &[]);
    until("the end of the board", || hosts.rig.emulators().is_empty().then_some(()));
    let shown = hosts.rig.run(["--json", "runs", "show", "last"]).json().unwrap();
    assert_eq!(shown["state"], "ended", "{shown}");
}

#[test]
fn two_agents_at_once_each_get_their_own_result() {
    let _slots = [Slot::take(), Slot::take()];
    let workshop = Workshop::new();
    let mut agents: Vec<_> = ["unity-pass", "unity-fail"]
        .map(|fixture| (Agent::of(&workshop, &["--allow", "use"]), fixture))
        .into();
    let calls: Vec<_> = agents
        .iter_mut()
        .map(|(agent, fixture)| {
            let image = elf("microbit", fixture);
            let arguments = json!({ "place": "microbit", "image": image });
            agent.begin("tools/call", &json!({ "name": "run", "arguments": arguments }))
        })
        .collect();
    let verdicts: Vec<_> = agents
        .iter_mut()
        .zip(calls)
        .map(|((agent, _), call)| {
            let answer = agent.next();
            assert_eq!(answer["id"], call, "{answer}");
            answer["result"]["structuredContent"]["verdict"].clone()
        })
        .collect();
    assert_eq!(verdicts, ["pass", "fail"]);
    for (agent, _) in agents {
        agent.close().says(0, &[]);
    }
    workshop.nothing_lives(DEADLINE).unwrap();
}

#[test]
fn a_place_that_another_user_has_is_a_conflict() {
    let workshop = Workshop::new();
    let rig = workshop.write("rig.toml", RULED);
    let rig = rig.to_str().unwrap();
    workshop.run(["--rig", rig, "lease", "acquire", "-b", "bench-1", "--by-id"]).says(0, &[]);
    let mut agent = Agent::of(&workshop, &["--rig", rig, "--allow", "use"]);
    let image = elf("microbit", "unity-pass");
    let refusal = agent.call("run", &json!({ "place": "bench-1", "image": image }));
    refused(refusal, &["E_CONFLICT", "queue", "jig lease ls"]);
    let leases = agent.call("leases", &json!({})).unwrap();
    assert!(leases.to_string().contains("bench-1"), "{leases}");
    agent.close().says(0, &[]);
}

#[test]
fn people_see_and_call_the_same_tools() {
    let workshop = Workshop::new();
    let listed = workshop.run(["--json", "mcp", "tools"]).says(0, &[]).json().unwrap();
    let tools = listed["tools"].as_array().unwrap();
    assert!(tools.len() > 30, "{listed}");
    workshop.run(["mcp", "tools"]).says(0, &[]);
    workshop.run(["mcp", "tools", "run"]).says(0, &[]);
    workshop.run(["mcp", "tools", "runn"]).says(2, &["did you mean `run`?"]);
    let called = workshop.run(["mcp", "call", "boards"]).says(0, &[]).json().unwrap();
    assert!(called["data"]["profiles"].is_array(), "{called}");
    workshop.run(["mcp", "call", "boards", "{"]).says(2, &["no JSON"]);
    workshop.run(["mcp", "call", "reset", "{\"place\":\"x\"}"]).says(2, &["E_POLICY_DENIED"]);
}

#[test]
fn tools_of_another_server_are_listed_and_called_and_one_that_fails_hides_none() {
    let workshop = Workshop::new();
    let jig = env!("CARGO_BIN_EXE_jig");
    workshop.write(
        "agents.toml",
        format!(
            "version = 1\n[mcp.other]\ncommand = [{jig:?}, \"mcp\", \"serve\"]\ntrust = [\"boards\"]\n\
             [mcp.dead]\ncommand = [\"false\"]\n"
        ),
    );
    let listed = workshop.run(["--json", "mcp", "tools"]);
    listed.says(0, &["MCP server dead"]);
    let listed: Value = serde_json::from_str(&listed.out()).unwrap();
    let of = |name: &str| {
        let tools = listed["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    assert_eq!(of("boards")["server"], Value::Null);
    assert_eq!(
        (&of("other__boards")["server"], &of("other__boards")["danger"]),
        (&json!("other"), &json!("none"))
    );
    assert_eq!(of("other__places")["danger"], "host");
    let called = workshop.run(["mcp", "call", "other__boards"]).says(0, &[]).json().unwrap();
    assert!(called["data"]["data"]["profiles"].is_array(), "{called}");
    workshop.run(["mcp", "call", "other__bords"]).says(2, &["did you mean `other__boards`?"]);
    workshop.run(["mcp", "call", "dead__x"]).says(75, &["MCP server dead"]);
    workshop.nothing_lives(DEADLINE).unwrap();
    workshop.write("agents.toml", "version = 1\n[mcp.x]\ncommand = []\n");
    workshop.run(["mcp", "tools"]).says(3, &["[mcp.x]", "names no program"]);
    workshop.write("agents.toml", "version = 1\n[mcp.x]\ncommand = [\"a\"]\ntrusts = []\n");
    workshop.run(["mcp", "tools"]).says(3, &["[mcp.x]", "trusts"]);
}

/// The guide has a row for each tool, and no other.
#[test]
fn the_guide_lists_the_tools() {
    let workshop = Workshop::new();
    let listed = workshop.run(["--json", "mcp", "tools"]).json().unwrap();
    let rows = listed["tools"].as_array().unwrap().iter().map(|tool| {
        let text = |key: &str| tool[key].as_str().unwrap();
        let repeat = if tool["idempotent"] == true { "yes" } else { "no" };
        format!("| `{}` | {} | {} | {repeat} |", text("name"), text("right"), text("danger"))
    });
    let rows: Vec<String> = rows.collect();
    let guide = fs::read_to_string(repository().join("controller/guide/mcp.md")).unwrap();
    let known: Vec<&str> = guide
        .lines()
        .skip_while(|line| !line.starts_with("| tool | right"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| &line[..line.rfind(" |").and_then(|end| line[..end].rfind(" |")).unwrap() + 2])
        .collect();
    assert_eq!(known, rows);
}
