//! Conversations in which a model plans: a server on loopback answers as it is written down, well and badly.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jig_agents::{ModelKey, ModelPrompt, Usage};
use jig_model::redact::Redactor;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::tests::{
    Scripted, ScriptedRig, States, binding, nothing_dangerous_was_unconfirmed, said, shown, told,
};
use super::*;
use crate::config::AgentsFile;
use crate::journal::{
    Charter, CharterModel, PersonRequest, PlanSource, SessionEntry, SessionFact, SessionJournal,
    SessionLimits, SessionLock,
};
use crate::machine::OperatorState;
use crate::models::{EndpointModel, LanguageModel as _};
use crate::plan::RiskLevel;

const CONVERSATIONS: &str = include_str!("model_conversations.toml");
const KEY: &str = "k3y-of-the-endpoint-4419";

/// What the server answers to one question.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    /// An answer with this text.
    say: Option<String>,
    /// A plan of steps, each as `TOOL {arguments}`.
    plan: Option<Vec<String>>,
    /// A plan of so many equal steps.
    steps: Option<u32>,
    /// An analysis with this summary.
    answer: Option<String>,
    /// What the analysis says should come next.
    next: Option<String>,
    /// A body as it is, in place of an answer of the dialect.
    body: Option<String>,
    /// A body of so many blanks.
    blanks: Option<usize>,
    /// The status, if it is not 200.
    status: Option<u16>,
    retry_after: Option<u32>,
    /// The connection ends without an answer.
    #[serde(default)]
    close: bool,
    /// Nothing is answered.
    #[serde(default)]
    hang: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelConversation {
    name: String,
    say: String,
    #[serde(default)]
    first: bool,
    #[serde(default)]
    search: bool,
    yes: Option<RiskLevel>,
    #[serde(default)]
    plan_only: bool,
    tokens: Option<u64>,
    /// Millionths of a dollar that the session may use.
    micro_usd: Option<u64>,
    /// What the model answers, the last one again and again.
    #[serde(default)]
    reply: Vec<Reply>,
    #[serde(default)]
    then: Vec<String>,
    #[serde(default)]
    rig: Vec<Scripted>,
    /// How many questions the server has seen.
    asked: usize,
    /// The calls that are carried out, those of intake and context left out.
    #[serde(default)]
    calls: Vec<String>,
    /// The state in which it ends.
    state: OperatorState,
    exit: Option<u8>,
    #[serde(default)]
    told: Vec<String>,
    #[serde(default)]
    not_told: Vec<String>,
    /// Texts that the questions hold.
    #[serde(default)]
    questions: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct ModelConversationFile {
    conversation: Vec<ModelConversation>,
}

fn conversations() -> Vec<ModelConversation> {
    let file: ModelConversationFile = toml::from_str(CONVERSATIONS).unwrap();
    file.conversation
}

impl Reply {
    fn text(&self) -> Option<String> {
        let step = |number: usize, line: &str| {
            let (tool, params) = line.split_once(' ').unwrap_or((line, "{}"));
            let params: Value =
                serde_json::from_str(params).unwrap_or_else(|e| panic!("{line}: {e}"));
            json!({ "step_id": number + 1, "name": format!("{tool} it"), "skill_name": tool,
                    "params": params, "expected_output": "it is done", "dependencies": [] })
        };
        let plan =
            |steps: Vec<Value>| json!({ "plan_summary": "as asked", "steps": steps }).to_string();
        if let Some(lines) = &self.plan {
            return Some(plan(lines.iter().enumerate().map(|(n, line)| step(n, line)).collect()));
        }
        if let Some(count) = self.steps {
            return Some(plan((0..count as usize).map(|n| step(n, "boards {}")).collect()));
        }
        if let Some(summary) = &self.answer {
            let next = self.next.as_deref().unwrap_or("escalate");
            let answer = json!({ "summary": summary, "root_cause": "", "next_action": next });
            return Some(answer.to_string());
        }
        self.say.clone()
    }

    fn bytes(&self) -> Vec<u8> {
        let body = match (self.text(), &self.body, self.blanks) {
            (Some(text), ..) => {
                let message = json!({ "role": "assistant", "content": text });
                let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
                json!({ "id": "1", "object": "chat.completion", "choices": [choice] }).to_string()
            }
            (None, Some(body), _) => body.clone(),
            (None, None, Some(count)) => " ".repeat(count),
            (None, None, None) => "{}".to_owned(),
        };
        let retry = self.retry_after.map(|seconds| format!("Retry-After: {seconds}\r\n"));
        format!(
            "HTTP/1.1 {} x\r\nContent-Length: {}\r\n{}\r\n{body}",
            self.status.unwrap_or(200),
            body.len(),
            retry.unwrap_or_default(),
        )
        .into_bytes()
    }
}

/// Answers each question by the next reply.
struct Server {
    url: String,
    /// Head and body of each question.
    asked: Arc<Mutex<Vec<(String, String)>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn new(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            let mut held = Vec::new();
            for number in 0.. {
                let (mut stream, _) = listener.accept().await.unwrap();
                let Some(question) = question(&mut stream).await else { continue };
                seen.lock().unwrap().push(question);
                let Some(reply) = replies.get(number.min(replies.len().saturating_sub(1))) else {
                    continue;
                };
                if reply.hang {
                    held.push(stream);
                } else if !reply.close {
                    // The client may have gone.
                    let _ = stream.write_all(&reply.bytes()).await;
                }
            }
        });
        Self { url, asked, task }
    }

    fn asked(&self) -> Vec<(String, String)> {
        self.asked.lock().unwrap().clone()
    }
}

async fn question(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut read = Vec::new();
    loop {
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
        let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        let lower = head.to_ascii_lowercase();
        let length =
            lower.split("content-length: ").nth(1)?.lines().next()?.trim().parse::<usize>();
        let body = &read[end + 4..];
        if body.len() >= length.ok()? {
            return Some((head, String::from_utf8_lossy(body).into_owned()));
        }
    }
}

fn model(server: &Server) -> Arc<EndpointModel> {
    let text = format!(
        "version = 1\n[model.local]\nurl = \"{}/v1\"\nname = \"large-1\"\ntimeout_s = 20\n\
         usd_per_million_in = 3.0\nusd_per_million_out = 15.0\n",
        server.url
    );
    let file = AgentsFile::parse("agents.toml", &text).unwrap();
    let redactor = Redactor::new([("MODEL_KEY".to_owned(), KEY.to_owned())]);
    let model = EndpointModel::new("local", &file.models["local"], ModelKey::new(KEY), redactor);
    Arc::new(model.unwrap().first_pause(Duration::from_millis(2)))
}

fn charter(conversation: &ModelConversation) -> Charter {
    let usual = SessionLimits::default();
    Charter {
        text: conversation.say.clone(),
        source: PlanSource::Words,
        confirmed: conversation.yes,
        plan_only: conversation.plan_only,
        trace_id: "t1".to_owned(),
        limits: SessionLimits {
            tokens: conversation.tokens.unwrap_or(usual.tokens),
            micro_usd: conversation.micro_usd.unwrap_or(usual.micro_usd),
            ..usual
        },
        folder: "/firmware".to_owned(),
        host: None,
        model: Some(CharterModel {
            name: "local".to_owned(),
            first: conversation.first,
            search: conversation.search,
        }),
    }
}

/// Holds a conversation from where its journal stands.
async fn held(
    journal: &mut SessionJournal,
    lock: &SessionLock,
    (rig, server): (&Arc<ScriptedRig>, &Server),
    turns: &[String],
) -> Session {
    let mut bound = binding(rig, &Arc::new(States::default()));
    bound.model = Some(Ok(model(server)));
    let mut session = drive(journal, lock, &bound).await.unwrap();
    for words in turns {
        if session.ended {
            break;
        }
        journal.append(&SessionEntry::Request(said(&session, words))).unwrap();
        session = drive(journal, lock, &bound).await.unwrap();
    }
    session
}

/// Returns all that a person or another program sees of a session.
fn seen(session: &Session, journal: &SessionJournal) -> String {
    let rows = journal.rows().unwrap();
    let rows: Vec<String> = rows.iter().map(|row| row.exported().to_string()).collect();
    format!("{}\n{}", told(session), rows.join("\n"))
}

#[tokio::test]
async fn conversations_with_a_model_go_as_they_are_written_down() {
    let all = conversations();
    assert!(all.len() >= 25, "{}", all.len());
    let names: BTreeSet<_> = all.iter().map(|conversation| &conversation.name).collect();
    assert_eq!(names.len(), all.len());
    for conversation in &all {
        let name = &conversation.name;
        let server = Server::new(conversation.reply.clone()).await;
        let folder = tempfile::tempdir().unwrap();
        let lock = SessionLock::take(folder.path()).unwrap();
        let mut journal =
            SessionJournal::begin(folder.path(), charter(conversation), Redactor::default())
                .unwrap();
        let rig = Arc::new(ScriptedRig::new(conversation.rig.clone()));
        let session = held(&mut journal, &lock, (&rig, &server), &conversation.then).await;
        let all_seen = seen(&session, &journal);
        assert_eq!(session.state, conversation.state, "{name}: {all_seen}");
        let context = session.calls.iter().filter(|record| record.step.is_none()).count();
        let calls: Vec<_> = rig.calls.lock().unwrap().iter().map(shown).collect();
        assert_eq!(calls[context.min(calls.len())..], conversation.calls, "{name}: {all_seen}");
        let exit = session.summary.as_ref().map(|summary| summary.exit_code);
        assert_eq!(exit, conversation.exit, "{name}: {all_seen}");
        for text in &conversation.told {
            assert!(told(&session).contains(text), "{name}: {text:?} is not in {}", told(&session));
        }
        for text in &conversation.not_told {
            assert!(!told(&session).contains(text), "{name}: {text:?} is in {}", told(&session));
        }
        let asked = server.asked();
        assert_eq!(asked.len(), conversation.asked, "{name}: {all_seen}");
        let questions: String = asked.iter().map(|(_, body)| body.as_str()).collect();
        for text in &conversation.questions {
            assert!(questions.contains(text), "{name}: {text:?} is not in {questions}");
        }
        let with_key = |(head, _): &(String, String)| head.contains(&format!("Bearer {KEY}"));
        assert!(asked.iter().all(with_key), "{name}");
        assert!(!all_seen.contains(KEY) && !questions.contains(KEY), "{name}: the key is out");
        let again = Session::of(&journal.rows().unwrap()).unwrap();
        assert_eq!(again, session, "{name}: the fold of the journal is another session");
        let limits = &session.charter.limits;
        assert!(session.used.tokens <= limits.tokens, "{name}: {:?}", session.used);
        assert!(session.used.micro_usd <= limits.micro_usd, "{name}: {:?}", session.used);
        assert_eq!(
            session.used.micro_usd > 0,
            session.used.tokens > 0,
            "{name}: {:?}",
            session.used
        );
        nothing_dangerous_was_unconfirmed(&session, name);
    }
}

/// Behind each row the process is killed and another one goes on: nothing dangerous runs unconfirmed, and what was
/// granted to a question that was cut off counts as used.
#[tokio::test]
async fn a_session_with_a_model_goes_on_behind_each_of_its_rows() {
    let all = conversations();
    let chosen =
        ["a dangerous step that the words name is confirmed in advance", "a step is replaced"];
    for conversation in all.iter().filter(|one| chosen.contains(&one.name.as_str())) {
        let server = Server::new(conversation.reply.clone()).await;
        let whole = tempfile::tempdir().unwrap();
        let lock = SessionLock::take(whole.path()).unwrap();
        let begin = |folder: &std::path::Path| {
            SessionJournal::begin(folder, charter(conversation), Redactor::default()).unwrap()
        };
        let mut journal = begin(whole.path());
        let rig = Arc::new(ScriptedRig::new(conversation.rig.clone()));
        let session = held(&mut journal, &lock, (&rig, &server), &conversation.then).await;
        assert!(session.ended);
        let rows = journal.rows().unwrap();
        let grants = rows.iter().filter(
            |row| matches!(&row.entry, SessionEntry::Intent(intent) if intent.grant.is_some()),
        );
        assert!(grants.count() >= 2, "{}", seen(&session, &journal));
        for kept in 1..rows.len() {
            let folder = tempfile::tempdir().unwrap();
            let lock = SessionLock::take(folder.path()).unwrap();
            let mut journal = begin(folder.path());
            let mut entries: Vec<_> = rows[1..kept].iter().map(|row| row.entry.clone()).collect();
            entries.push(SessionEntry::Request(PersonRequest::Resume));
            journal.append_all(&entries).unwrap();
            let before = Session::of(&journal.rows().unwrap()).unwrap();
            let answered = rows[1..kept].iter().filter_map(|row| match &row.entry {
                SessionEntry::Outcome(outcome) => Some(&outcome.facts),
                _ => None,
            });
            let is_asked = |fact: &&SessionFact| matches!(fact, SessionFact::ModelAsked { .. });
            let answered = answered.flatten().filter(is_asked).count();
            let server = Server::new(
                conversation.reply[answered.min(conversation.reply.len() - 1)..].to_vec(),
            )
            .await;
            let mut script = conversation.rig.clone();
            for record in before.calls.iter().filter(|record| record.step.is_some()) {
                if let Some(at) = script.iter().position(|one| one.tool == record.call.name) {
                    script.remove(at);
                }
            }
            let rig = Arc::new(ScriptedRig::new(script));
            let after = held(&mut journal, &lock, (&rig, &server), &conversation.then).await;
            let case = format!("{} behind row {kept}", conversation.name);
            assert!(after.ended, "{case}: {:?}", after.state);
            nothing_dangerous_was_unconfirmed(&after, &case);
            assert!(after.used.tokens >= before.granted.unwrap_or_default().tokens, "{case}");
            let cut_beside_a_board = before
                .in_flight
                .values()
                .any(|call| call.effect == crate::journal::CutOffEffect::Device);
            if !cut_beside_a_board {
                let exit = |session: &Session| session.summary.as_ref().unwrap().exit_code;
                assert_eq!(exit(&after), exit(&session), "{case}: {}", seen(&after, &journal));
            }
        }
    }
}

#[tokio::test]
async fn a_cancelled_session_drops_its_question_and_counts_it() {
    let hang = Reply { hang: true, ..Reply::default() };
    let server = Server::new(vec![hang]).await;
    let conversation = ModelConversation { then: Vec::new(), ..conversations()[0].clone() };
    let folder = tempfile::tempdir().unwrap();
    let lock = SessionLock::take(folder.path()).unwrap();
    let mut journal =
        SessionJournal::begin(folder.path(), charter(&conversation), Redactor::default()).unwrap();
    let mut other = SessionJournal::open(folder.path(), Redactor::default()).unwrap();
    let rig = Arc::new(ScriptedRig::new(Vec::new()));
    let cancel = async {
        while server.asked().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let why = "enough".to_owned();
        other.append(&SessionEntry::Request(PersonRequest::Cancel { why })).unwrap();
    };
    let (session, ()) = tokio::join!(held(&mut journal, &lock, (&rig, &server), &[]), cancel);
    let summary = session.summary.clone().unwrap();
    assert_eq!(summary.exit_code, 130, "{}", seen(&session, &journal));
    let micro_usd = 4 * (8000 * 3 + 4096 * 15);
    assert_eq!(session.used, Usage { tokens: 4 * (8000 + 4096), micro_usd });
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn secrets_are_not_sent_and_an_answer_that_holds_the_key_is_refused() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let mut conversation = conversations()[0].clone();
    conversation.say = format!("tell me what {secret} and {KEY} mean for the boards");
    let leak = Reply { say: Some(format!("{{\"note\":\"{KEY}\"}}")), ..Reply::default() };
    let server = Server::new(vec![leak]).await;
    let folder = tempfile::tempdir().unwrap();
    let lock = SessionLock::take(folder.path()).unwrap();
    let redactor = Redactor::new([("MODEL_KEY".to_owned(), KEY.to_owned())]);
    let mut journal =
        SessionJournal::begin(folder.path(), charter(&conversation), redactor).unwrap();
    let rig = Arc::new(ScriptedRig::new(Vec::new()));
    let session = held(&mut journal, &lock, (&rig, &server), &[]).await;
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    let body = &asked[0].1;
    assert!(body.contains("for the boards") && !body.contains(secret) && !body.contains(KEY));
    let all_seen = seen(&session, &journal);
    assert!(!all_seen.contains(KEY) && !all_seen.contains(secret), "{all_seen}");
    assert!(told(&session).contains("the answer holds the key"), "{}", told(&session));
    assert_eq!(session.summary.unwrap().exit_code, 2);
    // The journal has removed them before; who asks a model removes them, too.
    let prompt = ModelPrompt {
        system: format!("the key is {KEY}"),
        user: format!("a console printed {secret} and {KEY}, then boot"),
    };
    let left = Usage { tokens: 100_000, micro_usd: 1_000_000 };
    let answered = model(&server).ask(&prompt, Duration::from_secs(20), left).await;
    assert!(answered.said.is_err() && answered.usage.tokens > 0);
    let body = &server.asked()[1].1;
    assert!(body.contains(", then boot") && !body.contains(secret) && !body.contains(KEY));
}

#[tokio::test]
async fn a_model_that_cannot_be_used_says_why_and_the_grammar_needs_none() {
    let conversation = conversations()[0].clone();
    let why = || {
        crate::error::OperatorError::new(
            crate::error::OperatorCode::Model,
            "the variable K is not set",
        )
        .untouched()
    };
    for (text, exit) in [(conversation.say.as_str(), 2), ("run app.elf on microbit", 0)] {
        let folder = tempfile::tempdir().unwrap();
        let lock = SessionLock::take(folder.path()).unwrap();
        let charter = Charter { text: text.to_owned(), ..charter(&conversation) };
        let mut journal =
            SessionJournal::begin(folder.path(), charter, Redactor::default()).unwrap();
        let rig = Arc::new(ScriptedRig::new(Vec::new()));
        let mut bound = binding(&rig, &Arc::new(States::default()));
        bound.model = Some(Err(why()));
        let session = drive(&mut journal, &lock, &bound).await.unwrap();
        assert_eq!(session.summary.as_ref().unwrap().exit_code, exit, "{}", told(&session));
        assert_eq!(told(&session).contains("the variable K is not set"), exit != 0);
    }
}
