//! Callers and hosts that keep to no protocol.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::manifest::elf;
use crate::remote::{HELLO, TwoHosts, spoken};
use crate::workshop::{Ran, Slot, Started, Workshop, name_of, until};

pub(crate) fn call(id: u64, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// Speaks bytes to `jig rpc`; returns what it says until it ends.
fn told(workshop: &Workshop, bytes: &[u8]) -> Ran {
    let mut command = workshop.jig(["rpc", "--stdio"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = Started::of(&mut command);
    let mut stdin = server.child().stdin.take().unwrap();
    let bytes = bytes.to_vec();
    // A server that refuses a line may have ended before the next one.
    let writer = thread::spawn(move || drop(stdin.write_all(&bytes)));
    let ran = server.finish();
    writer.join().unwrap();
    ran
}

#[test]
fn noise_is_answered_or_ends_the_connection_and_nothing_else() {
    let workshop = Workshop::new();
    // The same at each run: a generator of the simplest kind.
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut noise = |len: usize| {
        let bytes = (0..len).map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        });
        bytes.collect::<Vec<u8>>()
    };
    let hello = format!("{HELLO}\n").into_bytes();
    let deep = format!("{}\n", "[".repeat(200_000)).into_bytes();
    let deep_object = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"job.list\",\"params\":{}1{}}}\n",
        "{\"a\":".repeat(50_000),
        "}".repeat(50_000)
    );
    let torn = call(2, "job.list", json!({})).into_bytes();
    let cases: Vec<(Vec<u8>, i32)> = vec![
        (noise(100_000), 2),
        ([&hello[..], &noise(1_000_000)].concat(), 2),
        ([&hello[..], &deep].concat(), 0),
        ([&hello[..], deep_object.as_bytes()].concat(), 0),
        ([&hello[..], &torn[..torn.len() - 1]].concat(), 2),
        // One byte more than a line may have, with and without an end.
        (vec![b'x'; 4 << 20], 2),
        ([vec![b'x'; 4 << 20], vec![b'\n']].concat(), 2),
        (b"\n\n\n\0\n\xff\xfe\n".to_vec(), 0),
        (Vec::new(), 0),
    ];
    for (number, (bytes, code)) in cases.iter().enumerate() {
        let ran = told(&workshop, bytes);
        // Noise ends within a line, unless it ends with one by chance.
        assert_eq!(ran.code(), *code, "case {number}: {ran}");
        assert!(!ran.err().contains("panicked"), "case {number}: {ran}");
        for line in ran.out().lines() {
            let answer: Value = serde_json::from_str(line).unwrap();
            let fine = answer["id"] == 1 && answer.get("result").is_some();
            assert!(fine || answer["error"]["code"].is_i64(), "case {number}: {answer}");
        }
    }
}

#[test]
fn names_and_numbers_of_a_caller_lead_nowhere_else() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    workshop.run(["run", "-b", "microbit", &elf("microbit", "unity-pass")]).says(0, &[]);
    let dir = workshop.run_dirs().pop().unwrap();
    let run = name_of(&dir).to_owned();
    std::os::unix::fs::symlink("/etc", dir.join("consoles/etc")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.join("consoles/1/x.raw")).unwrap();
    let mut calls = Vec::new();
    let mut add = |method: &str, params: Value| {
        calls.push(call(calls.len() as u64 + 2, method, params));
    };
    for path in [
        "../../../../etc/passwd",
        "/etc/passwd",
        "consoles/etc/passwd",
        "consoles/1/x.raw",
        "consoles/../../../etc/passwd",
        "record.json/",
        "record.json/..",
        "record.json\0",
        "",
        ".",
        "consoles",
    ] {
        for method in ["run.read", "run.follow"] {
            // A slash behind the name of a file is taken for that file, or refused.
            if path == "record.json/" {
                continue;
            }
            add(method, json!({"run": run, "path": path, "offset": 0}));
        }
    }
    for id in ["..", "../x", "/etc", "", "a/b", "x\0", &"9".repeat(5000)] {
        add("run.files", json!({"run": id}));
        add("run.watch", json!({"run": id}));
        add("run.read", json!({"run": id, "path": "record.json", "offset": 0}));
        add("rig.view", json!({"query": {"about": "run", "wanted": id}}));
        add("job.follow", json!({"job": id, "offset": 0}));
        add("job.cancel", json!({"job": id}));
        add("job.read", json!({"job": id, "number": 0, "offset": 0}));
        add("rig.place", json!({"place": id}));
        add("rig.view", json!({"query": {"about": "health", "place": id, "history": null}}));
        add("file.offer", json!({"sha256": id, "size": 1, "name": "a"}));
    }
    add("run.read", json!({"run": run, "path": "record.json", "offset": u64::MAX}));
    add("rig.view", json!({"query": {"about": "everything"}}));
    add("rig.view", json!({"query": "boards"}));
    let mut lines: Vec<&str> = vec![HELLO];
    lines.extend(calls.iter().map(String::as_str));
    let asked = calls.len();
    let (code, answers) = spoken(&workshop, &lines);
    assert_eq!(code, 0);
    assert_eq!(answers.len(), asked + 1);
    for answer in answers.iter().filter(|answer| answer["id"] != 1) {
        let number = answer["id"].as_u64().unwrap();
        let question = &calls[usize::try_from(number).unwrap() - 2];
        assert!(answer["error"]["message"].is_string(), "{question:.200}: {answer}");
        assert!(!answer.to_string().contains("root:"), "{question}: {answer}");
    }
    // A run is watched to its end, and a link in it is not told.
    let watch = call(2, "run.watch", json!({"run": run, "have": {"../x": 7}}));
    let (_, told) = spoken(&workshop, &[HELLO, &watch]);
    let paths: Vec<_> = told.iter().filter_map(|told| told["params"]["path"].as_str()).collect();
    assert!(
        paths.contains(&"consoles/1/uart0.raw") && paths.contains(&"events.jsonl"),
        "{paths:?}"
    );
    assert!(paths.iter().all(|path| !path.contains("x.raw") && !path.contains("..")), "{paths:?}");
    // From an offset behind the end there is nothing, and no crash.
    let have = json!({"events.jsonl": u64::MAX, "consoles/1/uart0.raw": u64::MAX});
    let watch = call(2, "run.watch", json!({"run": run, "have": have}));
    let (code, told) = spoken(&workshop, &[HELLO, &watch]);
    assert_eq!((code, told.iter().any(|told| told["id"] == 2)), (0, true), "{told:?}");
}

/// Connects a caller that asks and never reads, until the server waits for it to read.
pub(crate) fn clogged(socket: &Path) -> UnixStream {
    let mut silent = UnixStream::connect(socket).unwrap();
    silent.set_nonblocking(true).unwrap();
    let ask = format!("{}\n", call(2, "rig.view", json!({"query": {"about": "boards"}})));
    let mut pending = format!("{HELLO}\n").into_bytes();
    let (mut sent, mut waits) = (0_usize, None::<Instant>);
    // Until the server has taken no byte for a second.
    loop {
        if pending.is_empty() {
            pending = ask.clone().into_bytes();
        }
        match silent.write(&pending) {
            Ok(len) => {
                pending.drain(..len);
                (sent, waits) = (sent + len, None);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if waits.get_or_insert_with(Instant::now).elapsed() > Duration::from_secs(1) {
                    return silent;
                }
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
        assert!(sent < 64 << 20, "the server takes in calls without end");
    }
}

#[test]
fn a_caller_that_never_reads_holds_up_itself_only() {
    let _slot = Slot::take();
    let hosts = TwoHosts::new();
    let socket = hosts.socket();
    let silent = clogged(&socket);
    // Others are served meanwhile, also a run.
    hosts.run(&["boards"]).says(0, &[]);
    hosts.run(&["run", "-b", "microbit", &elf("microbit", "unity-pass")]).says(0, &["PASS"]);
    let rig =
        hosts.rig.processes().into_iter().find(|(_, line)| line.trim_end().ends_with(" serve"));
    let pid = rig.unwrap().0;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 400 << 10, "{peak} KiB of memory");
    // It reads again: the connection is as good as before.
    silent.set_nonblocking(false).unwrap();
    let mut line = String::new();
    BufReader::new(&silent).read_line(&mut line).unwrap();
    assert!(line.contains("\"protocol\""), "{line}");
    drop(silent);
    let open = || fs::read_link(format!("/proc/{pid}/exe")).is_ok();
    assert!(open(), "the server has ended");
}

/// A host that answers each line by what a function says, and then goes on or hangs up.
fn false_host(
    workshop: &Workshop,
    name: &str,
    answer: impl Fn(&str) -> Option<Vec<u8>> + Send + 'static,
) -> String {
    let path = workshop.path(name);
    let listener = UnixListener::bind(&path).unwrap();
    // Ends with the test's process.
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while let Some(Ok(line)) = lines.next() {
                match answer(&line) {
                    Some(bytes) if (&stream).write_all(&bytes).is_ok() => {}
                    Some(_) | None => break,
                }
            }
        }
    });
    format!("unix:{}", path.display())
}

fn hello_answer(program: &str) -> Vec<u8> {
    let runs = json!({"path": "/x", "inode": null, "boot": ""});
    let result = json!({"protocol": 1, "program": program, "host": "rig7", "identity": "me",
        "runs": runs});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "result": result})).into_bytes()
}

#[test]
fn hosts_of_other_versions_are_told_apart_and_what_to_do_is_said() {
    let workshop = Workshop::new();
    let newer = false_host(&workshop, "newer.sock", |_| {
        let refusal = json!({"fault": "lab", "message": "rig7 speaks protocol 2 (jig 9.0.0), and the \
            caller speaks 1", "help": "install the same version of jig on both hosts"});
        let error = json!({"code": -32000, "message": "rig7 speaks protocol 2", "data": refusal});
        Some(format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "error": error})).into_bytes())
    });
    let older = false_host(&workshop, "older.sock", |line| {
        if line.contains("\"hello\"") {
            return Some(hello_answer("0.0.9"));
        }
        let error = json!({"code": -32601, "message": "there is no method"});
        Some(format!("{}\n", json!({"jsonrpc": "2.0", "id": 2, "error": error})).into_bytes())
    });
    for verb in [&["boards"][..], &["runs"], &["runs", "attach"], &["power", "-b", "x", "status"]] {
        let args = [&["--rig", &newer], verb].concat();
        workshop.run(&args).says(75, &["protocol 2", "jig 9.0.0", "install the same version"]);
    }
    for verb in [&["boards"][..], &["runs", "list"], &["health"], &["probes"], &["discover"]] {
        let args = [&["--rig", &older], verb].concat();
        workshop
            .run(&args)
            .says(75, &["jig 0.0.9", "rig.view", "install jig", "such as run and test"]);
    }
    // What this host says to a caller of another version.
    let (_, answers) = spoken(&workshop, &[&HELLO.replace("\"protocol\":1", "\"protocol\":2")]);
    let refusal = &answers[0]["error"]["data"];
    assert!(refusal["message"].as_str().unwrap().contains("the caller speaks 2"), "{refusal}");
    assert!(refusal["help"].as_str().unwrap().contains("run jig there"), "{refusal}");
}

#[test]
fn a_host_that_keeps_to_no_protocol_ends_the_verb_with_words() {
    let workshop = Workshop::new();
    let of = |answer: fn(&str) -> Option<Vec<u8>>| move |line: &str| answer(line);
    let noise = false_host(&workshop, "n.sock", of(|_| Some(b"\x7fELF\0\xff\n".to_vec())));
    let shell = false_host(&workshop, "s.sock", of(|_| Some(b"Welcome to rig7!\n$ ".to_vec())));
    let endless = false_host(&workshop, "e.sock", of(|_| Some(vec![b'x'; 3 << 20])));
    let closed = false_host(&workshop, "c.sock", of(|_| None));
    let other = false_host(
        &workshop,
        "o.sock",
        of(|line| match line.contains("\"hello\"") {
            true => Some(hello_answer("0.1.0")),
            false => Some(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":[1]}\n".to_vec()),
        }),
    );
    for (host, words) in [
        (noise, "not a message"),
        (shell, "Welcome to rig7"),
        (endless, "a line of more than"),
        (closed, "lost"),
        (other, "with something else"),
    ] {
        let ran = workshop.run(["--rig", &host, "boards"]);
        ran.says(75, &[words]);
        assert!(!ran.err().contains('\u{7f}') && ran.out().is_empty(), "{ran}");
    }
    // Paths that a host names lead nowhere: a run's files stay within its copy.
    let evil = false_host(
        &workshop,
        "p.sock",
        of(|line| {
            let request: Value = serde_json::from_str(line).ok()?;
            let data = "e30=";
            let run = "20261124-101112-1314";
            let result = match request["method"].as_str()? {
                "hello" => return Some(hello_answer("0.1.0")),
                "rig.view" => json!({"about": "run", "view": {"run": run, "dir": "/r/x",
                    "live": false}}),
                "run.files" => json!({"live": false, "files": [
                    {"path": "record.json", "size": 2, "sha256": null},
                    {"path": "../../../../evil", "size": 2, "sha256": null},
                    {"path": "/tmp/evil-of-jig", "size": 2, "sha256": null},
                    {"path": "consoles/../../evil", "size": 2, "sha256": null}]}),
                _ if request["params"]["offset"] == 0 => json!({"data": data}),
                _ => json!({"data": ""}),
            };
            let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
            Some(format!("{answer}\n").into_bytes())
        }),
    );
    workshop.run(["--rig", &evil, "runs", "export", "last", "-o", "x.tar.gz"]).says(0, &[]);
    let mut archive = Vec::new();
    fs::File::open(workshop.path("x.tar.gz")).unwrap().read_to_end(&mut archive).unwrap();
    assert!(!archive.is_empty());
    for path in ["../tmp/evil", "../evil", "evil", "../runs/evil"] {
        assert!(!workshop.path(path).exists(), "{path}");
    }
    assert!(!fs::exists("/tmp/evil-of-jig").unwrap());
    until("an empty folder of temporary files", || {
        (fs::read_dir(workshop.path("../tmp")).unwrap().count() == 0).then_some(())
    });
}
