//! Tests against a server on loopback that speaks the real formats, well and badly.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use jig_agents::{MAX_ANSWER, TRIES, Tokens, estimate};

use super::*;
use crate::agents::AgentBudget;
use crate::journal::Usage;
use crate::task::{HttpDialect, TokenPrices};

const KEY: &str = "k3y-of-the-endpoint";

/// What the server does with one connection.
enum Act {
    /// Sends these bytes and closes.
    Send(Vec<u8>),
    /// Sends these bytes, then a byte every few milliseconds for ever.
    Drip(Vec<u8>),
    /// Closes without an answer.
    Close,
}

struct Server {
    url: String,
    /// The requests: head and body.
    seen: Arc<Mutex<Vec<(String, String)>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Does one act per connection, the last of them again and again.
    async fn new(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(serve(listener, acts, Arc::clone(&seen)));
        Self { url, seen, task }
    }

    fn seen(&self) -> Vec<(String, String)> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(listener: TcpListener, acts: Vec<Act>, seen: Arc<Mutex<Vec<(String, String)>>>) {
    for number in 0.. {
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = request(&mut stream).await;
        seen.lock().unwrap().push(request);
        // The client may close first.
        match &acts[number.min(acts.len() - 1)] {
            Act::Send(bytes) => drop(stream.write_all(bytes).await),
            Act::Close => {}
            Act::Drip(bytes) => {
                let mut alive = stream.write_all(bytes).await.is_ok();
                while alive {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    alive = stream.write_all(b" ").await.is_ok();
                }
            }
        }
    }
}

async fn request(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> (String, String) {
    let mut read = Vec::new();
    let (mut end, mut length) = (None, 0);
    while end.is_none_or(|end| read.len() < end + length) {
        if stream.read_buf(&mut read).await.unwrap() == 0 {
            break;
        }
        if !b"POST".starts_with(&read[..read.len().min(4)]) {
            // It is no HTTP.
            return (String::new(), String::new());
        }
        if end.is_none() {
            end = read.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
            let head = String::from_utf8_lossy(&read).to_ascii_lowercase();
            let stated = head.split("content-length: ").nth(1);
            let stated = stated.and_then(|rest| rest.lines().next()?.trim().parse().ok());
            length = stated.unwrap_or_default();
        }
    }
    let text = String::from_utf8(read).unwrap();
    let (head, body) = text.split_at(end.unwrap_or_default());
    (head.to_owned(), body.to_owned())
}

fn http(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn sent(status: &str, headers: &str, body: &str) -> Act {
    Act::Send(http(status, headers, body.as_bytes()))
}

fn diff(with: &str) -> String {
    format!(
        "--- a/src/ring.c\n+++ b/src/ring.c\n@@ -4,3 +4,3 @@\n {{\n-    return head + 2;\n\
         +    return head + {with};\n }}\n"
    )
}

fn text(with: &str) -> String {
    format!("HYPOTHESIS: one is skipped\n```diff\n{}```\n", diff(with))
}

fn openai(text: &str, usage: Value) -> String {
    let message = json!({ "role": "assistant", "content": text });
    let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
    json!({ "id": "1", "object": "chat.completion", "choices": [choice], "usage": usage })
        .to_string()
}

fn plausible() -> Value {
    json!({ "prompt_tokens": 400, "completion_tokens": 50, "total_tokens": 450 })
}

fn good(with: &str) -> Act {
    sent("200 OK", "Content-Type: application/json\r\n", &openai(&text(with), plausible()))
}

struct Asked {
    _folder: TempDir,
    agent: HttpAgent,
    request: ProposalRequest,
}

impl Asked {
    fn new(url: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = AgentHttp {
            name: "large".to_owned(),
            url: format!("{url}/v1").parse().unwrap(),
            dialect: HttpDialect::OpenAi,
            model: "large-1".to_owned(),
            key_env: Some("MODEL_KEY".to_owned()),
            samples: 1,
            max_tokens: 1000,
            temperature: None,
            prices: TokenPrices {
                micro_usd_per_million_in: 1_000_000,
                micro_usd_per_million_out: 10_000_000,
            },
            timeout: Duration::from_secs(60),
        };
        let (bundle, scratch) = (folder.path().join("bundle"), folder.path().join("scratch"));
        std::fs::create_dir(&bundle).unwrap();
        std::fs::create_dir(&scratch).unwrap();
        std::fs::write(bundle.join("TASK.md"), "the ring skips an entry\n").unwrap();
        std::fs::write(bundle.join("log.txt"), "boot\nExpected 3 Was 4\n").unwrap();
        let left = Usage { tokens: 100_000, micro_usd: 1_000_000 };
        let budget = AgentBudget { left, time: Duration::from_secs(30) };
        let (base, sources) = (String::new(), Arc::default());
        let request = ProposalRequest {
            bundle,
            suspects: std::path::PathBuf::new(),
            scratch,
            base,
            sources,
            budget,
        };
        let roles = RoleBook::built_in().unwrap();
        let mut agent = HttpAgent::new(settings, roles, |name| {
            (name == "MODEL_KEY").then(|| format!("{KEY}\n").into())
        });
        agent.first_pause = Duration::from_millis(2);
        Self { _folder: folder, agent, request }
    }

    /// Asks, and checks that the key is in no file and in no word.
    async fn ask(&self) -> Result<Answer, AgentError> {
        let answer = self.agent.propose(&self.request).await;
        assert!(!format!("{answer:?}").contains(KEY), "{answer:?}");
        for entry in std::fs::read_dir(&self.request.scratch).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(!text.contains(KEY), "{}: {text}", path.display());
        }
        answer
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.request.scratch.join(LOG)).unwrap_or_default()
    }

    /// Returns the most that a question may cost.
    fn worst(&self) -> Usage {
        let book = RoleBook::built_in().unwrap();
        let files = read_bundle(&self.request.bundle).unwrap();
        let bytes = prompt(book.of(AgentRole::Code).unwrap(), &files).bytes();
        let tokens = Tokens { input: estimate(bytes), output: 1000 };
        tokens.usage(self.agent.settings.prices)
    }
}

/// Asks a server that does this, and returns the error and the number of requests.
async fn error(acts: Vec<Act>) -> (AgentError, usize) {
    let server = Server::new(acts).await;
    let error = Asked::new(&server.url).ask().await.unwrap_err();
    assert!(error.why.starts_with("agent large: "), "{error}");
    let seen = server.seen().len();
    (error, seen)
}

#[tokio::test]
async fn an_openai_endpoint_is_asked_in_its_form() {
    let server = Server::new(vec![good("1")]).await;
    let mut asked = Asked::new(&server.url);
    asked.agent.settings.temperature = Some(0.5);
    let answer = asked.ask().await.unwrap();
    let proposal =
        crate::agents::PatchProposal { diff: diff("1"), hypothesis: "one is skipped".to_owned() };
    let usage = Usage { tokens: 450, micro_usd: 900 };
    assert_eq!(answer, Answer { proposals: vec![proposal], usage, notes: Vec::new() });
    let [(head, body)] = &server.seen()[..] else { panic!() };
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("authorization: Bearer {KEY}\r\n")), "{head}");
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["model"], &body["max_tokens"]), (&json!("large-1"), &json!(1000)));
    assert_eq!(body["temperature"], json!(0.5));
    let messages = body["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user"]);
    assert!(messages[0]["content"].as_str().unwrap().contains("the ring skips an entry"));
    assert!(messages[1]["content"].as_str().unwrap().contains("```\nboot\nExpected 3"));
}

#[tokio::test]
async fn an_anthropic_endpoint_is_asked_in_its_form() {
    let body = json!({
        "id": "msg_1", "type": "message", "role": "assistant",
        "content": [{ "type": "text", "text": text("1") }],
        "stop_reason": "end_turn",
        "usage": { "input_tokens": 400, "output_tokens": 50 },
    });
    let server = Server::new(vec![sent("200 OK", "", &body.to_string())]).await;
    let mut asked = Asked::new(&server.url);
    asked.agent.settings.dialect = HttpDialect::Anthropic;
    let answer = asked.ask().await.unwrap();
    assert_eq!(answer.proposals[0].diff, diff("1"));
    assert_eq!(answer.usage, Usage { tokens: 450, micro_usd: 900 });
    let [(head, body)] = &server.seen()[..] else { panic!() };
    assert!(head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("x-api-key: {KEY}\r\n")), "{head}");
    assert!(head.contains("anthropic-version: 2023-06-01\r\n"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert!(body["system"].as_str().unwrap().contains("the ring skips an entry"));
    assert_eq!(body["messages"][0]["role"], "user");
    assert_eq!((&body["max_tokens"], &body["temperature"]), (&json!(1000), &Value::Null));
}

#[tokio::test]
async fn a_refusal_is_not_repeated_and_its_words_are_quoted_without_the_key() {
    let body = json!({ "error": { "message": format!("Incorrect API key provided: {KEY}") } });
    let (error, seen) = error(vec![sent("401 Unauthorized", "", &body.to_string())]).await;
    assert!(error.why.contains("/v1/chat/completions answered 401 Unauthorized: "), "{error}");
    assert!(error.why.ends_with("Incorrect API key provided: [removed: MODEL_KEY]"), "{error}");
    assert_eq!((seen, error.usage), (1, Usage::default()));
}

#[tokio::test]
async fn a_busy_endpoint_is_asked_again_when_it_says() {
    let busy = sent("429 Too Many Requests", "Retry-After: 1\r\n", "{}");
    let server = Server::new(vec![busy, good("1")]).await;
    let asked = Asked::new(&server.url);
    let begun = Instant::now();
    let answer = asked.ask().await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!((answer.proposals.len(), server.seen().len()), (1, 2));
    assert_eq!(answer.usage.tokens, 450, "a refused question costs nothing");
    let log = asked.log();
    let outcomes: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["outcome"].take())
        .collect();
    assert_eq!(outcomes, ["429", "200"]);
}

#[tokio::test]
async fn an_endpoint_that_wants_too_long_a_pause_is_left() {
    let busy = sent("429 Too Many Requests", "Retry-After: 3600\r\n", "{\"error\": \"slow down\"}");
    let (error, seen) = error(vec![busy]).await;
    assert!(error.why.contains("asked again after 3600s at the earliest"), "{error}");
    assert!(error.why.ends_with("slow down") && seen == 1, "{error}");
}

#[tokio::test]
async fn a_broken_endpoint_is_asked_again_and_a_lost_answer_counts() {
    let broken = || sent("500 Internal Server Error", "", "oops");
    let cut = http("200 OK", "", openai(&text("1"), plausible()).as_bytes());
    let cut = Act::Send(cut[..cut.len() - 9].to_vec());
    let server = Server::new(vec![broken(), Act::Close, cut, good("1")]).await;
    let asked = Asked::new(&server.url);
    let answer = asked.ask().await.unwrap();
    assert_eq!(server.seen().len(), 4);
    assert_eq!(answer.usage.tokens, 450 + 2 * asked.worst().tokens);

    let (error, seen) = error(vec![broken()]).await;
    assert!(error.why.ends_with("answered 500 Internal Server Error: oops"), "{error}");
    assert_eq!((seen, error.usage), (TRIES as usize, Usage::default()));
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let asked = Asked::new(&url);
    let error = asked.ask().await.unwrap_err();
    assert!(error.why.contains("no connection: Connection refused"), "{error}");
    assert_eq!((asked.log().lines().count(), error.usage), (TRIES as usize, Usage::default()));
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_not_said_to_want_a_pause() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut asked = Asked::new(&url);
    asked.agent.first_pause = asked.request.budget.time * 2;
    let error = asked.ask().await.unwrap_err();
    assert!(error.why.contains("no time is left to ask again (tries: 1)"), "{error}");
    assert!(!error.why.contains("wants"), "{error}");
}

#[tokio::test]
async fn a_slow_stream_ends_at_the_deadline() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n".to_vec();
    for act in [Act::Drip(head), Act::Drip(b"HTTP/1.1 200 OK\r\nX-Slow: ".to_vec())] {
        let server = Server::new(vec![act]).await;
        let mut asked = Asked::new(&server.url);
        asked.request.budget.time = Duration::from_millis(150);
        let error = asked.ask().await.unwrap_err();
        assert!(error.why.ends_with("gave no complete answer within 150ms"), "{error}");
        assert_eq!((server.seen().len(), error.usage), (1, asked.worst()));
    }
}

#[tokio::test]
async fn answers_of_no_use_are_counted_and_not_asked_for_again() {
    for (body, words) in [
        (&b"{\"choices\": ["[..], "the answer is no JSON: EOF"),
        (b"{\"choices\": \"\xff\xfe\"}", "the answer is no JSON: invalid unicode"),
        (b"<html>", "the answer is no JSON: expected value"),
        (b"{\"choices\": []}", "the answer holds no text"),
    ] {
        let (error, seen) = error(vec![Act::Send(http("200 OK", "", body))]).await;
        assert!(error.why.contains(words), "{error}");
        assert!(seen == 1 && error.usage.tokens > 0, "{error}");
    }
}

#[tokio::test]
async fn a_huge_answer_is_not_read_to_its_end() {
    let body = vec![b' '; MAX + 1];
    let chunk = [format!("{:x}\r\n", body.len()).as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
    let chunked = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &chunk[..]].concat();
    for bytes in [http("200 OK", "", &body), chunked] {
        let (error, seen) = error(vec![Act::Send(bytes)]).await;
        assert!(error.why.ends_with("the answer is larger than 1048576 bytes"), "{error}");
        assert!(seen == 1 && error.usage.tokens > 1000, "{error}");
    }
    let headers = format!("X-Long: {}\r\n", "x".repeat(1_000_000));
    let (error, _) = error(vec![Act::Send(http("200 OK", &headers, b""))]).await;
    assert!(error.why.contains("the answer is no HTTP"), "{error}");
}

/// Most of an answer that is read.
const MAX: usize = MAX_ANSWER;

#[tokio::test]
async fn a_redirect_is_refused_and_the_key_stays() {
    let other = Server::new(vec![good("1")]).await;
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect"] {
        let location = format!("Location: {}/v1/chat/completions\r\n", other.url);
        let (error, seen) = error(vec![sent(status, &location, "")]).await;
        assert!(error.why.contains(&format!("sends one to {}/v1", other.url)), "{error}");
        assert_eq!(seen, 1);
    }
    assert_eq!(other.seen(), []);
}

#[tokio::test]
async fn usage_that_cannot_be_true_is_estimated_and_noted() {
    for usage in [
        json!({ "prompt_tokens": 0, "completion_tokens": 0 }),
        json!({ "prompt_tokens": 1, "completion_tokens": 1 }),
        json!({ "prompt_tokens": 400, "completion_tokens": 4_000_000_000_000_u64 }),
        json!({ "prompt_tokens": -5, "completion_tokens": "many" }),
        Value::Null,
    ] {
        let server = Server::new(vec![sent("200 OK", "", &openai(&text("1"), usage))]).await;
        let asked = Asked::new(&server.url);
        let answer = asked.ask().await.unwrap();
        let input = asked.worst().tokens - 1000;
        let tokens = Tokens { input, output: estimate(text("1").len()) };
        assert_eq!(answer.usage, tokens.usage(asked.agent.settings.prices));
        assert!(answer.notes[0].contains("it is estimated"), "{:?}", answer.notes);
        assert!(asked.log().contains("it is estimated"), "{}", asked.log());
    }
}

#[tokio::test]
async fn an_answer_without_diff_is_quoted_and_counted() {
    let body = openai("I am sorry, I cannot.", plausible());
    let (found, _) = error(vec![sent("200 OK", "", &body)]).await;
    assert!(found.why.ends_with("it begins: \"I am sorry, I cannot.\""), "{found}");
    assert_eq!(found.usage.tokens, 450);
    let cut = openai("```diff\n--- a/x.c\n", plausible()).replace("\"stop\"", "\"length\"");
    let (found, _) = error(vec![sent("200 OK", "", &cut)]).await;
    assert!(found.why.ends_with("(it was cut off: set `max-tokens` higher)"), "{found}");
    let (found, _) = error(vec![sent("200 OK", "", &openai(&text(KEY), plausible()))]).await;
    assert_eq!(found.why, "agent large: the answer holds the key");
}

#[tokio::test]
async fn equal_proposals_of_several_samples_are_one() {
    let useless = sent("200 OK", "", &openai("no idea", plausible()));
    let server = Server::new(vec![good("1"), good("1"), useless, good("3")]).await;
    let mut asked = Asked::new(&server.url);
    asked.agent.settings.samples = 4;
    let answer = asked.ask().await.unwrap();
    let diffs: Vec<_> = answer.proposals.into_iter().map(|proposal| proposal.diff).collect();
    assert_eq!(diffs, [diff("1"), diff("3")]);
    assert_eq!(answer.usage.tokens, 4 * 450);
    let kept = std::fs::read_to_string(asked.request.scratch.join("answer-3.txt")).unwrap();
    assert_eq!(kept, "no idea");
    assert!(answer.notes[0].contains("no idea"), "{:?}", answer.notes);
}

#[tokio::test]
async fn a_question_that_may_exceed_the_budget_is_not_asked() {
    let server = Server::new(vec![good("1")]).await;
    let mut asked = Asked::new(&server.url);
    let worst = asked.worst();
    for left in [
        Usage { tokens: worst.tokens - 1, ..asked.request.budget.left },
        Usage { micro_usd: worst.micro_usd - 1, ..asked.request.budget.left },
        Usage::default(),
    ] {
        asked.request.budget.left = left;
        let error = asked.ask().await.unwrap_err();
        let words = format!(
            "a question may use {} tokens and {} millionths of a dollar",
            worst.tokens, worst.micro_usd
        );
        assert!(error.why.contains(&words), "{error}");
    }
    assert_eq!(server.seen(), []);
    // What fits is asked; the second question no longer fits.
    asked.agent.settings.samples = 2;
    asked.request.budget.left = Usage { tokens: worst.tokens, micro_usd: 1_000_000 };
    let answer = asked.ask().await.unwrap();
    assert_eq!((answer.proposals.len(), server.seen().len()), (1, 1));
    assert!(answer.notes[0].contains("are left"), "{:?}", answer.notes);
}

#[tokio::test]
async fn a_key_that_is_not_set_is_named_before_anything_is_sent() {
    let server = Server::new(vec![good("1")]).await;
    let mut asked = Asked::new(&server.url);
    asked.agent.key = None;
    let error = asked.ask().await.unwrap_err();
    assert_eq!(error.why, "agent large: the variable MODEL_KEY is not set");
    assert_eq!(server.seen(), []);
    asked.agent.settings.key_env = None;
    asked.ask().await.unwrap();
    assert!(!server.seen()[0].0.contains("authorization"));
}

#[tokio::test]
async fn an_endpoint_that_knows_the_limit_by_another_name_is_asked_so() {
    let said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                'max_completion_tokens' instead.";
    let body = json!({ "error": { "message": said } }).to_string();
    let refused = || sent("400 Bad Request", "", &body);
    let server = Server::new(vec![refused(), good("1")]).await;
    Asked::new(&server.url).ask().await.unwrap();
    let body: Value = serde_json::from_str(&server.seen()[1].1).unwrap();
    assert_eq!((&body["max_completion_tokens"], &body["max_tokens"]), (&json!(1000), &Value::Null));
    let (error, seen) = error(vec![refused()]).await;
    assert!(error.why.contains("answered 400 Bad Request: Unsupported parameter"), "{error}");
    assert_eq!(seen, 2);
}

#[tokio::test]
async fn encryption_with_a_server_that_has_none_fails_with_words() {
    let server = Server::new(vec![Act::Send(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())]).await;
    let asked = Asked::new(&server.url.replace("http://", "https://"));
    let error = asked.ask().await.unwrap_err();
    assert!(
        error.why.contains("https://127.0.0.1") && error.why.contains("no connection: "),
        "{error}"
    );
}
