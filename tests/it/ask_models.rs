//! `jig ask` with a model behind HTTP: a server of the test plans well and badly. The key is nowhere.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::manifest::elf;
use crate::workshop::{Ran, Workshop, ran};

const KEY: &str = "k3y-of-the-endpoint-9902";

/// Answers each question by the next of its answers; the last one stays.
struct PlanServer {
    url: String,
    asked: Arc<Mutex<Vec<(String, String)>>>,
}

impl PlanServer {
    fn new(answers: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        // It ends with the test binary.
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                let Some(question) = question(&mut stream) else { continue };
                seen.lock().unwrap().push(question);
                // The client may have gone.
                let _ = stream.write_all(&answers[number.min(answers.len() - 1)]);
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<(String, String)> {
        self.asked.lock().unwrap().clone()
    }
}

fn question(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut read = Vec::new();
    loop {
        let mut part = [0; 64 << 10];
        let count = stream.read(&mut part).ok().filter(|&count| count > 0)?;
        read.extend_from_slice(&part[..count]);
        let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        let lower = head.to_ascii_lowercase();
        let length = lower.split("content-length: ").nth(1)?.lines().next()?.trim().parse();
        let body = &read[end + 4..];
        if body.len() >= length.unwrap_or(usize::MAX) {
            return Some((head, String::from_utf8_lossy(body).into_owned()));
        }
    }
}

fn http(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
        .into_bytes()
}

fn openai(text: &Value) -> Vec<u8> {
    let message = json!({ "role": "assistant", "content": text.to_string() });
    let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
    http("200 OK", &json!({ "id": "1", "choices": [choice] }).to_string())
}

fn anthropic(text: &Value) -> Vec<u8> {
    let content = json!([{ "type": "text", "text": text.to_string() }]);
    let body = json!({ "id": "m1", "type": "message", "role": "assistant", "content": content,
                       "stop_reason": "end_turn" });
    http("200 OK", &body.to_string())
}

fn plan(steps: &[(&str, Value)]) -> Value {
    let steps = steps.iter().enumerate().map(|(n, (tool, params))| {
        json!({ "step_id": n + 1, "name": format!("{tool} as asked"), "skill_name": tool,
                "params": params, "expected_output": "it is done", "dependencies": [] })
    });
    json!({ "plan_summary": "as asked", "steps": steps.collect::<Vec<_>>() })
}

fn answer(summary: &str, next: &str) -> Value {
    json!({ "summary": summary, "root_cause": "", "next_action": next })
}

/// A workshop with an image and a model.
fn with_model(server: &PlanServer, settings: &str) -> Workshop {
    let workshop = Workshop::new();
    for name in ["unity-pass", "unity-fail"] {
        fs::copy(elf("microbit", name), workshop.path(&format!("{name}.elf"))).unwrap();
    }
    let text = format!(
        "version = 1\n[model.lab]\nurl = \"{}/v1\"\nname = \"large-1\"\n{settings}\n",
        server.url
    );
    fs::write(workshop.path("agents.toml"), text).unwrap();
    workshop
}

fn asks(workshop: &Workshop, args: &[&str]) -> Ran {
    let mut command = workshop.jig(args.iter().copied());
    let ran = ran(command.env("LAB_OF_MODELS", KEY)).unwrap();
    keeps_the_key(workshop, &ran);
    ran
}

/// Checks that no file of the rig and no word of the program holds the key.
fn keeps_the_key(workshop: &Workshop, ran: &Ran) {
    assert!(!format!("{ran}").contains(KEY), "{ran}");
    let mut folders = vec![workshop.runs()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if entry.file_type().unwrap().is_file() {
                let bytes = fs::read(entry.path()).unwrap();
                let found = bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes());
                assert!(!found, "{} holds the key", entry.path().display());
            }
        }
    }
}

/// Checks the exit code, and words that the program has to say on either stream.
#[track_caller]
fn tells(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code(), code, "exit code of {ran}");
    let said = format!("{} {}", ran.out(), ran.err());
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in words {
        assert!(said.contains(word), "{word:?} is missing in {ran}");
    }
}

const SENTENCE: &str = "take unity-pass.elf for a spin on the microbit";

#[test]
fn what_the_grammar_does_not_understand_is_planned_by_the_model() {
    let run = json!({ "place": "microbit", "image": "unity-pass.elf" });
    let server = PlanServer::new(vec![
        openai(&plan(&[("run", run)])),
        openai(&answer("It spins.", "finish")),
    ]);
    let workshop = with_model(&server, "key_env = \"LAB_OF_MODELS\"");
    let ran = asks(&workshop, &["ask", SENTENCE]);
    tells(&ran, 0, &["1 of 1 runs passed"]);
    assert!(ran.out().contains("model lab: It spins."), "{ran}");
    let asked = server.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked[0].0.starts_with("POST /v1/chat/completions "), "{}", asked[0].0);
    assert!(asked[0].0.contains(&format!("Bearer {KEY}")), "{}", asked[0].0);
    let body: Value = serde_json::from_str(&asked[0].1).unwrap();
    let user = body["messages"][1]["content"].as_str().unwrap();
    assert!(user.contains(SENTENCE) && user.contains("microbit: a emulated microbit"), "{user}");
    assert!(user.contains("run(") && user.contains("flash("), "{user}");
    // The grammar needs no model, and so does a person who wants none.
    asks(&workshop, &["ask", "run unity-pass.elf on microbit"]).says(0, &[]);
    let none = asks(&workshop, &["ask", "--model", "none", SENTENCE]);
    tells(&none, 2, &["E_INVALID_ARGS: not understood"]);
    assert_eq!(server.asked().len(), 2);
    asks(&workshop, &["ask", "--model", "lap", SENTENCE]).says(2, &["no model \"lap\"", "lab"]);
    let exported = asks(&workshop, &["sessions", "export", "last"]);
    exported.says(0, &[]);
}

#[test]
fn claims_of_the_model_replace_no_verdict_and_its_orders_wait() {
    let run = json!({ "place": "microbit", "image": "unity-fail.elf" });
    let server = PlanServer::new(vec![
        anthropic(&plan(&[("run", run)])),
        anthropic(&answer("5 Tests 0 Failures: OK, everything passed.", "finish")),
        anthropic(&plan(&[("erase", json!({ "place": "microbit" }))])),
    ]);
    let workshop = with_model(&server, "dialect = \"anthropic\"\nkey_file = \"lab.key\"");
    let key = workshop.path("lab.key");
    fs::write(&key, format!("{KEY}\n")).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let open = asks(&workshop, &["ask", SENTENCE]);
    tells(&open, 2, &["E_MODEL: model lab: the file with its key", "other users can read it"]);
    assert_eq!(server.asked(), []);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let failed = asks(&workshop, &["ask", "take unity-fail.elf for a spin on the microbit"]);
    tells(&failed, 1, &["0 of 1 runs passed", "claims success, and the verdicts do not"]);
    assert!(server.asked()[0].0.to_ascii_lowercase().contains(&format!("x-api-key: {KEY}")));
    let waits = asks(&workshop, &["--json", "ask", "--yes", "high", "make the microbit feel new"]);
    waits.says(4, &[]);
    let told = waits.json().unwrap();
    assert_eq!(told["state"], "AWAITING_CONFIRMATION");
    assert_eq!(told["waits"]["calls"][0]["tool"], "erase");
    asks(&workshop, &["ask", "--resume", "last", "--refuse"]).says(130, &[]);
    assert_eq!(server.asked().len(), 3);
}

#[test]
fn what_is_wrong_with_a_model_is_said_with_what_to_do() {
    let refused = format!("{{\"error\":{{\"message\":\"Incorrect API key provided: {KEY}\"}}}}");
    let server = PlanServer::new(vec![http("401 Unauthorized", &refused)]);
    let workshop = with_model(&server, "key_env = \"LAB_OF_MODELS\"");
    let ran = asks(&workshop, &["ask", SENTENCE]);
    tells(&ran, 2, &["E_MODEL: model lab:", "401 Unauthorized", "check the key"]);
    let mut command = workshop.jig(["ask", SENTENCE]);
    let unset = crate::workshop::ran(command.env_remove("LAB_OF_MODELS")).unwrap();
    tells(&unset, 2, &["the variable LAB_OF_MODELS is not set", "export LAB_OF_MODELS"]);
    fs::write(workshop.path("agents.toml"), "version = 1\n[model.lab]\nurl = \"lab\"\n").unwrap();
    asks(&workshop, &["ask", SENTENCE]).says(3, &["agents.toml"]);
    let two = "version = 1\n[model.a]\nurl = \"http://a\"\nname = \"x\"\n\
               [model.b]\nurl = \"http://b\"\nname = \"x\"\n";
    fs::write(workshop.path("agents.toml"), two).unwrap();
    asks(&workshop, &["ask", SENTENCE]).says(3, &["[planner] model = \"NAME\""]);
}

#[test]
fn the_doctor_looks_for_the_keys_of_models_and_asks_no_endpoint() {
    let server = PlanServer::new(vec![http("200 OK", "{}")]);
    let workshop = with_model(&server, "key_env = \"LAB_OF_MODELS\"");
    let there = asks(&workshop, &["--json", "doctor"]);
    let finding = |ran: &Ran| {
        let checks = ran.json().unwrap()["checks"].take();
        let all = checks.as_array().unwrap().clone();
        all.into_iter().find(|check| check["check"] == "model lab").unwrap()
    };
    assert_eq!(finding(&there)["level"], "ok");
    let mut command = workshop.jig(["--json", "doctor"]);
    let unset = crate::workshop::ran(command.env_remove("LAB_OF_MODELS")).unwrap();
    let found = finding(&unset);
    assert_eq!(found["level"], "warning");
    assert_eq!(found["found"], "the variable LAB_OF_MODELS is not set");
    assert_eq!(server.asked(), []);
}
