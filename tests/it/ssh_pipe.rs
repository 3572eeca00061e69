//! The byte pipe over SSH, against a real server, a real agent, and what is neither.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use jig_drivers::ssh::{
    SshAccount, SshConfigFile, SshEnd, SshEnding, SshError, SshOptions, SshPipe, SshTarget,
    split_words,
};
use jig_model::Fault;
use jig_model::protocol::NoLedger;
use nix::sys::signal::{Signal, kill};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;

use crate::sshd::Sshd;
use crate::workshop::{DEADLINE, Started, Workshop, ran, tied, until};

/// Bytes that are sent each way at once.
const MANY: usize = 20 << 20;

/// A server, and an account that knows it and may log in.
struct Site {
    workshop: Workshop,
    sshd: Sshd,
    runtime: Runtime,
}

impl Site {
    fn new() -> Self {
        Self::with("")
    }

    /// Starts a server with more lines in its configuration.
    fn with(more: &str) -> Self {
        let workshop = Workshop::new();
        let sshd = Sshd::start_with(workshop.path("ssh"), "127.0.0.1:0", more);
        fs::create_dir_all(workshop.path("home/.ssh")).unwrap();
        let site = Self { workshop, sshd, runtime: Runtime::new().unwrap() };
        site.knows(&site.sshd.known_line("host.pub"));
        symlink(site.sshd.file("user"), site.home(".ssh/id_ed25519")).unwrap();
        site
    }

    fn home(&self, name: &str) -> PathBuf {
        self.workshop.path("home").join(name)
    }

    /// Writes the file of known hosts.
    fn knows(&self, lines: &str) {
        fs::write(self.home(".ssh/known_hosts"), lines).unwrap();
    }

    fn known(&self) -> String {
        fs::read_to_string(self.home(".ssh/known_hosts")).unwrap()
    }

    fn target(&self) -> SshTarget {
        format!("ssh://127.0.0.1:{}", self.sshd.port()).parse().unwrap()
    }

    fn options(&self, command: &[&str]) -> SshOptions {
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().unwrap();
        let account = SshAccount { home: self.home(""), user: user.name, agent: None };
        let command = command.iter().map(|&word| word.to_owned()).collect();
        SshOptions::new(self.target(), command, account)
    }

    fn open(&self, options: SshOptions) -> Result<SshPipe, SshError> {
        self.wait(SshPipe::open(options))
    }

    fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        let what = async { tokio::time::timeout(DEADLINE, what).await };
        self.runtime.block_on(what).expect("an end before the deadline")
    }

    /// Opens a pipe, sends a text and the end of input, and reads all.
    fn talk(&self, options: SshOptions, text: &str) -> (String, SshEnd) {
        let pipe = self.open(options).unwrap_or_else(|error| panic!("{}", said(&error)));
        self.finish(pipe, text)
    }

    fn finish(&self, mut pipe: SshPipe, text: &str) -> (String, SshEnd) {
        self.wait(async {
            // A program may end before it has read all.
            let _ = pipe.write_all(text.as_bytes()).await;
            let _ = pipe.shutdown().await;
            let mut output = String::new();
            pipe.read_to_string(&mut output).await.unwrap();
            (output, pipe.ended().await)
        })
    }

    /// Opens a pipe that is refused.
    #[track_caller]
    fn refused(&self, options: SshOptions, fault: Fault, words: &[&str]) -> SshError {
        let error = self.open(options).err().expect("a refusal");
        says(&error, fault, words);
        error
    }

    /// Counts the threads of sessions with the server.
    fn threads(&self) -> usize {
        let name = format!("jig-ssh:{}", self.sshd.port());
        let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        names.filter(|of| of.trim_end() == name).count()
    }

    fn no_thread_is_left(&self) {
        until("the end of each thread", || (self.threads() == 0).then_some(()));
    }
}

fn said(error: &SshError) -> String {
    jig_model::chain(error)
}

#[track_caller]
fn says(error: &SshError, fault: Fault, words: &[&str]) {
    let text = said(error) + "\n" + &error.help().unwrap_or_default();
    assert_eq!(error.fault(), fault, "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is missing in: {text}");
    }
}

fn keygen(args: &[&str], path: &Path) {
    let mut keygen = Command::new("ssh-keygen");
    let made = ran(keygen.args(["-q"]).args(args).arg("-f").arg(path).stdin(Stdio::null()));
    let made = made.unwrap();
    assert_eq!(made.code(), 0, "{made}");
}

/// Starts an agent and gives it a key.
fn agent(site: &Site, key: &Path) -> (Started, PathBuf) {
    let socket = site.workshop.path("agent");
    let mut agent = tied("ssh-agent");
    agent.arg("-D").arg("-a").arg(&socket);
    agent.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let agent = Started::of(&mut agent);
    until("an agent that listens", || UnixStream::connect(&socket).ok());
    let mut add = Command::new("ssh-add");
    add.arg("-q").arg(key).env("SSH_AUTH_SOCK", &socket).stdin(Stdio::null());
    // Asked for a passphrase, it runs a program that knows it.
    let askpass = site.workshop.write("askpass", "#!/bin/sh\necho secret\n");
    fs::set_permissions(&askpass, fs::Permissions::from_mode(0o700)).unwrap();
    add.env("SSH_ASKPASS", askpass).env("SSH_ASKPASS_REQUIRE", "force");
    let added = ran(&mut add).unwrap();
    assert_eq!(added.code(), 0, "{added}");
    (agent, socket)
}

#[test]
fn bytes_go_both_ways_and_the_end_of_input_is_sent() {
    let site = Site::new();
    let (output, end) = site.talk(site.options(&["cat"]), "hello\n");
    assert_eq!((output.as_str(), end.received, end.stderr.as_str()), ("hello\n", 6, ""));
    end.result().unwrap();
    let hard = ["printf", "%s|", "a b", "it's", "$HOME", "x\ny", ""];
    assert_eq!(site.talk(site.options(&hard), "").0, "a b|it's|$HOME|x\ny||");
    site.no_thread_is_left();
}

#[test]
fn ssh_configuration_says_where_and_how() {
    let site = Site::new();
    let (key, known) = (site.home("key"), site.home("known"));
    fs::rename(site.home(".ssh/id_ed25519"), &key).unwrap();
    fs::rename(site.home(".ssh/known_hosts"), &known).unwrap();
    let config = format!(
        "Host rig7\n HostName 127.0.0.1\n Port {}\n IdentityFile ~/key\n\
         UserKnownHostsFile ~/known\n",
        site.sshd.port()
    );
    fs::write(site.home(".ssh/config"), config).unwrap();
    let mut options = site.options(&["echo", "there"]);
    options.target = "ssh://rig7".parse().unwrap();
    assert_eq!(site.talk(options, "").0, "there\n");
    fs::write(site.home(".ssh/config"), "Host rig7\n Port many\n").unwrap();
    let words = ["home/.ssh/config:2: expected port number"];
    site.refused(site.options(&["true"]), Fault::Usage, &words);
}

#[test]
fn agent_gives_the_key_that_a_file_keeps_locked() {
    let site = Site::new();
    let key = site.home(".ssh/id_ed25519");
    fs::remove_file(&key).unwrap();
    keygen(&["-t", "ed25519", "-N", "secret"], &key);
    fs::copy(site.home(".ssh/id_ed25519.pub"), site.sshd.file("user.pub")).unwrap();
    let mut options = site.options(&["echo", "there"]);
    let words = ["no usable key", "no SSH agent", "it needs a passphrase", "ssh-add", "id_ed25519"];
    site.refused(options.clone(), Fault::Usage, &words);
    let (agent, socket) = agent(&site, &key);
    options.account.agent = Some(socket.clone());
    assert_eq!(site.talk(options.clone(), "").0, "there\n");
    // A file that is named chooses the agent's key.
    options.identities = vec![site.home(".ssh/id_ed25519.pub")];
    assert_eq!(site.talk(options.clone(), "").0, "there\n");
    // An agent that is stopped does not hold up the session.
    agent.signal(Signal::SIGSTOP);
    site.refused(options.clone(), Fault::Usage, &["no usable key", "SSH agent at"]);
    agent.signal(Signal::SIGCONT);
    options.use_agent = false;
    site.refused(options.clone(), Fault::Usage, &["there is no SSH agent"]);
    drop(agent);
    options.use_agent = true;
    site.refused(options, Fault::Usage, &["no usable key", "SSH agent at"]);
    site.no_thread_is_left();
}

#[test]
fn keys_of_each_kind_and_certificates_log_in() {
    let site = Site::new();
    let line = |name: &str| fs::read_to_string(site.home(name)).unwrap();
    let mut all = String::new();
    for (name, kind) in [("rsa", "rsa"), ("ecdsa", "ecdsa"), ("pem", "rsa")] {
        let form = if name == "pem" { "PEM" } else { "RFC4716" };
        keygen(&["-t", kind, "-N", "", "-m", form], &site.home(name));
        all += &line(&format!("{name}.pub"));
    }
    keygen(&["-t", "ed25519", "-N", ""], &site.home("ca"));
    let user = site.options(&[]).account.user;
    for (name, kind) in [("of-ca", "ed25519"), ("of-ca-rsa", "rsa")] {
        keygen(&["-t", kind, "-N", ""], &site.home(name));
        let mut sign = Command::new("ssh-keygen");
        sign.args(["-q", "-s"]).arg(site.home("ca")).args(["-I", "test", "-n", &user]);
        let signed = ran(sign.arg(site.home(&format!("{name}.pub")))).unwrap();
        assert_eq!(signed.code(), 0, "{signed}");
    }
    all += &format!("cert-authority {}", line("ca.pub"));
    fs::write(site.sshd.file("user.pub"), all).unwrap();
    for name in ["rsa", "ecdsa", "pem", "of-ca", "of-ca-rsa"] {
        let mut options = site.options(&["echo", name]);
        options.identities = vec![site.home(name)];
        assert_eq!(site.talk(options, "").0, format!("{name}\n"));
    }
    let (_agent, socket) = agent(&site, &site.home("of-ca"));
    let mut options = site.options(&["echo", "there"]);
    options.account.agent = Some(socket);
    assert_eq!(site.talk(options, "").0, "there\n");
}

#[test]
fn a_host_that_is_not_known_is_refused_and_can_be_accepted() {
    let site = Site::new();
    fs::remove_dir_all(site.home(".ssh")).unwrap();
    let mut options = site.options(&["echo", "there"]);
    options.identities = vec![site.sshd.file("user")];
    let mut keygen = Command::new("ssh-keygen");
    let shown = ran(keygen.arg("-lf").arg(site.sshd.file("host.pub"))).unwrap().out();
    let fingerprint = shown.split_whitespace().nth(1).unwrap();
    let at = format!("127.0.0.1:{}: the host is not known", site.sshd.port());
    let words = [&at, "ssh-ed25519", fingerprint, "--ssh-accept-new"];
    let error = site.refused(options.clone(), Fault::Usage, &words);
    let SshError::HostKeyUnknown { key, .. } = error else { panic!("{error}") };
    assert!(site.sshd.known_line("host.pub").starts_with(&key.line), "{key:?}");
    options.accept_new = true;
    assert_eq!(site.talk(options.clone(), "").0, "there\n");
    assert_eq!(site.known(), key.line + "\n");
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(site.home(".ssh")), mode(site.home(".ssh/known_hosts"))), (0o700, 0o600));
    options.accept_new = false;
    assert_eq!(site.talk(options, "").0, "there\n");
    site.no_thread_is_left();
}

#[test]
fn a_host_key_that_has_changed_is_refused_with_file_and_line() {
    let site = Site::new();
    keygen(&["-t", "ed25519", "-N", ""], &site.sshd.file("other"));
    let other = format!("# rigs\n{}", site.sshd.known_line("other.pub"));
    let mut options = site.options(&["true"]);
    options.accept_new = true;
    for is_hashed in [false, true] {
        site.knows(&other);
        if is_hashed {
            let known = site.home(".ssh/known_hosts");
            keygen(&["-H"], &known);
            assert!(site.known().contains("|1|"), "{}", site.known());
        }
        let name = format!("ssh-keygen -f {}", site.home(".ssh/known_hosts").display());
        let words = ["THE HOST KEY HAS CHANGED", "known_hosts:2", "SHA256:", &name];
        site.refused(options.clone(), Fault::Usage, &words);
    }
    // A host key is also refused that another line revokes.
    let line = site.sshd.known_line("host.pub");
    site.knows(&format!("{line}@revoked {line}"));
    site.refused(options, Fault::Usage, &["THE HOST KEY IS REVOKED", "known_hosts:2"]);
}

#[test]
fn known_key_is_asked_for_among_several_and_found_under_a_hash() {
    let workshop = Workshop::new();
    let rsa = workshop.path("rsa");
    keygen(&["-t", "rsa", "-N", ""], &rsa);
    let site = Site::with(&format!("HostKey {}\n", rsa.display()));
    let rsa = fs::read_to_string(rsa.with_extension("pub")).unwrap();
    site.knows(&format!("[127.0.0.1]:{} {rsa}", site.sshd.port()));
    keygen(&["-H"], &site.home(".ssh/known_hosts"));
    assert_eq!(site.talk(site.options(&["echo", "there"]), "").0, "there\n");
}

#[test]
fn a_key_or_a_user_that_is_refused_is_named() {
    let site = Site::new();
    let mut options = site.options(&["true"]);
    options.target = format!("ssh://nouser@127.0.0.1:{}", site.sshd.port()).parse().unwrap();
    let at = format!("nouser@127.0.0.1:{}: permission denied", site.sshd.port());
    let copy = format!("ssh-copy-id -p {} nouser@127.0.0.1", site.sshd.port());
    site.refused(options, Fault::Usage, &[&at, ".ssh/id_ed25519", &copy]);
    fs::write(site.sshd.file("user.pub"), "").unwrap();
    let error = site.refused(site.options(&["true"]), Fault::Usage, &["permission denied"]);
    assert!(matches!(error, SshError::KeyRefused { .. }), "{error:?}");
    // More keys than the server lets a client try.
    let mut options = site.options(&["true"]);
    for number in 0..7 {
        let key = site.home(&number.to_string());
        keygen(&["-t", "ed25519", "-N", ""], &key);
        options.identities.push(key);
    }
    site.refused(options, Fault::Usage, &["permission denied", "home/0", "too many keys"]);
    let mut options = site.options(&["true"]);
    options.identities = vec![site.home("none"), site.sshd.file("config")];
    let words = ["no usable key", "home/none: there is no such file", "it holds no private key"];
    site.refused(options, Fault::Usage, &words);
    let closed = Site::with("PubkeyAuthentication no\nKbdInteractiveAuthentication yes\n");
    let words = ["accepts no keys", "keyboard-interactive", "PubkeyAuthentication"];
    closed.refused(closed.options(&["true"]), Fault::Usage, &words);
    site.no_thread_is_left();
}

#[test]
fn what_is_no_ssh_server_is_told_apart() {
    let site = Site::new();
    let to = |address: &str| {
        let mut options = site.options(&["true"]);
        options.target = format!("ssh://{address}").parse().unwrap();
        options.connect_timeout = Some(DEADLINE);
        options
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let words = [&*address, "connection refused"];
    site.refused(to(&address), Fault::Lab, &words);
    site.refused(to("no-such-host.invalid"), Fault::Usage, &["no-such-host.invalid:22", "resolve"]);
    // Each answers in its own way, until its test ends.
    for (answer, words) in [
        (
            "HTTP/1.1 400 Bad Request\r\n\r\n",
            "not an SSH server: it said `HTTP/1.1 400 Bad Request`",
        ),
        ("", "not an SSH server: it closed the connection without a word"),
        ("\0\0\0", "not an SSH server"),
        ("SSH-2.0-other\r\n", "the SSH handshake failed"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // Only after the client's greeting, as a web server does.
            let mut some = [0; 4];
            stream.read_exact(&mut some).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let error = site.open(to(&address)).err().unwrap();
        assert!(said(&error).contains(words), "{answer:?}: {}", said(&error));
        server.join().unwrap();
    }
    // A server that never speaks.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = to(&listener.local_addr().unwrap().to_string());
    options.connect_timeout = Some(Duration::from_millis(300));
    site.refused(options, Fault::Lab, &["no greeting of an SSH server within 0.3 s"]);
}

#[test]
fn a_future_that_is_dropped_ends_its_thread() {
    let site = Site::new();
    // It accepts, and never speaks.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut options = site.options(&["true"]);
    options.target = format!("ssh://127.0.0.1:{port}").parse().unwrap();
    options.connect_timeout = Some(DEADLINE);
    let name = format!("jig-ssh:{port}");
    let is_there = move || {
        let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
        let mut names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        names.any(|of| of.trim_end() == name)
    };
    let opening = site.runtime.spawn(SshPipe::open(options));
    until("the session's thread", || is_there().then_some(()));
    opening.abort();
    until("the end of the thread", || (!is_there()).then_some(()));
}

#[test]
fn forced_command_replaces_what_is_asked_for() {
    let site = Site::new();
    let key = fs::read_to_string(site.sshd.file("user.pub")).unwrap();
    let forced = "restrict,command=\"echo forced $SSH_ORIGINAL_COMMAND; cat; exit 42\"";
    fs::write(site.sshd.file("user.pub"), format!("{forced} {key}")).unwrap();
    let (output, end) = site.talk(site.options(&["jig", "rpc", "a b"]), "input\n");
    assert_eq!(output, "forced jig rpc 'a b'\ninput\n");
    assert!(matches!(end.ending, SshEnding::Exited(42)), "{end:?}");
}

#[test]
fn end_of_the_far_program_is_told_with_its_complaints() {
    let site = Site::new();
    let (_, end) = site.talk(site.options(&["/opt/no/jig", "rpc", "--stdio"]), "");
    let error = end.result().unwrap_err();
    says(&error, Fault::Lab, &["there is no program `/opt/no/jig`", "install Jig on 127.0.0.1"]);
    let script = "echo out; echo first >&2; echo 'it broke' >&2; exit 1";
    let (output, end) = site.talk(site.options(&["sh", "-c", script]), "");
    assert_eq!((output.as_str(), end.stderr.as_str()), ("out\n", "first\nit broke\n"));
    let error = end.result().unwrap_err();
    says(&error, Fault::Lab, &["sh ended with code 1: it broke"]);
    let (_, end) = site.talk(site.options(&["sh", "-c", "kill -KILL $$"]), "");
    let error = end.result().unwrap_err();
    says(&error, Fault::Lab, &["sh was ended by SIGKILL"]);
    // Much on standard error holds up nothing, and its last lines are kept.
    let script = "seq 200000 >&2; echo out";
    let (output, end) = site.talk(site.options(&["sh", "-c", script]), "");
    assert_eq!(output, "out\n");
    assert!(end.stderr.ends_with("\n199999\n200000\n") && end.stderr.len() <= 64 << 10);
    // A program may close its output and go on.
    let script = "exec >&-; cat >&2; exit 3";
    let (output, end) = site.talk(site.options(&["sh", "-c", script]), "late\n");
    assert_eq!((output.as_str(), end.stderr.as_str()), ("", "late\n"));
    assert!(matches!(end.ending, SshEnding::Exited(3)), "{end:?}");
}

/// Returns bytes that no compression shortens (xorshift).
fn random(mut seed: u64, count: usize) -> Vec<u8> {
    let next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed.to_le_bytes()
    };
    std::iter::repeat_with(next).take(count / 8).flatten().collect()
}

/// Sends bytes while others are read; returns what came, and the end.
fn exchange(site: &Site, pipe: SshPipe, sent: &[u8]) -> (Vec<u8>, SshEnd) {
    let (mut reader, mut writer) = tokio::io::split(pipe);
    site.wait(async {
        let write = async {
            writer.write_all(sent).await.unwrap();
            writer.shutdown().await.unwrap();
        };
        let mut came = Vec::new();
        let (read, ()) = tokio::join!(reader.read_to_end(&mut came), write);
        read.unwrap();
        (came, reader.unsplit(writer).ended().await)
    })
}

#[test]
fn many_bytes_both_ways_at_once_arrive_as_they_were_sent() {
    let site = Site::new();
    let sent = random(7, MANY);
    let (came, end) = exchange(&site, site.open(site.options(&["cat"])).unwrap(), &sent);
    end.result().unwrap();
    assert!(came == sent, "{} of {} bytes, or others", came.len(), sent.len());
    // Both directions on their own: neither waits for the other.
    let file = site.workshop.write("file", random(11, MANY));
    let script = format!("cat {} & sha256sum >&2; wait", file.display());
    let (came, end) =
        exchange(&site, site.open(site.options(&["sh", "-c", &script])).unwrap(), &sent);
    assert!(came == fs::read(file).unwrap(), "{} bytes, or others", came.len());
    let mut sum = Command::new("sha256sum");
    let sum = ran(sum.arg(site.workshop.write("sent", &sent))).unwrap().out();
    assert_eq!(end.stderr.get(..64), sum.get(..64));
    assert_eq!(end.received, u64::try_from(MANY).unwrap());
    site.no_thread_is_left();
}

#[test]
fn new_keys_in_mid_stream_lose_no_byte() {
    let site = Site::with("RekeyLimit 1M\n");
    let sent = random(19, MANY);
    let (came, end) = exchange(&site, site.open(site.options(&["cat"])).unwrap(), &sent);
    end.result().unwrap();
    assert!(came == sent, "{} of {} bytes, or others", came.len(), sent.len());
}

#[test]
fn a_reader_that_waits_gets_all_in_the_end() {
    let site = Site::new();
    let mut pipe = site.open(site.options(&["seq", "100000"])).unwrap();
    // The far program has ended long before its output is read.
    site.wait(async {
        let mut first = [0; 2];
        pipe.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"1\n");
    });
    let (output, end) = site.finish(pipe, "");
    assert!(output.starts_with("2\n") && output.ends_with("\n99999\n100000\n"));
    end.result().unwrap();
}

#[test]
fn a_connection_that_breaks_is_an_error_and_no_end() {
    let site = Site::new();
    let broken = |breaks: &dyn Fn()| {
        let mut pipe = site.open(site.options(&["cat", "/dev/zero"])).unwrap();
        site.wait(async {
            let mut some = vec![0; 1 << 20];
            pipe.read_exact(&mut some).await.unwrap();
            breaks();
            let error = pipe.read_to_end(&mut some).await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
            pipe.ended().await.result().unwrap_err()
        })
    };
    let error = broken(&|| {
        site.sshd.connections().signal(Signal::SIGKILL);
        // The test holds the connection, too.
        site.sshd.connections().cut();
    });
    says(&error, Fault::Lab, &["127.0.0.1", "the connection was lost"]);
    let error = broken(&|| site.sshd.connections().cut());
    says(&error, Fault::Lab, &["the connection was lost"]);
    assert_eq!(site.sshd.connections().count(), 2);
    site.no_thread_is_left();
}

#[test]
fn a_far_side_that_falls_silent_is_noticed() {
    let site = Site::new();
    let mut options = site.options(&["cat"]);
    options.keepalive = Some(Duration::from_secs(2));
    options.config = SshConfigFile::Path(site.workshop.write("config", "ServerAliveCountMax 1\n"));
    let mut pipe = site.open(options.clone()).unwrap();
    let error = site.wait(async {
        pipe.write_all(b"x").await.unwrap();
        assert_eq!(pipe.read_u8().await.unwrap(), b'x');
        site.sshd.connections().signal(Signal::SIGSTOP);
        let error = pipe.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
        pipe.ended().await.result().unwrap_err()
    });
    says(&error, Fault::Lab, &["the far side has not answered for 4 s"]);
    // A server's process that is stopped would not end with its connection.
    site.sshd.connections().signal(Signal::SIGCONT);
    // One that has nothing to say answers. Its program runs for longer than it may be silent.
    options.command = ["sleep", "9"].map(str::to_owned).to_vec();
    let (_, end) = site.talk(options.clone(), "");
    end.result().unwrap();
    options.command = ["sh", "-c", "exec >&- 2>&-; sleep 9"].map(str::to_owned).to_vec();
    let (_, end) = site.talk(options, "");
    end.result().unwrap();
    site.no_thread_is_left();
}

#[test]
fn a_program_that_closes_its_output_before_its_input_ends_is_waited_for() {
    let site = Site::new();
    let script = "exec >&- 2>&-; cat >/dev/null; exit 7";
    let mut pipe = site.open(site.options(&["sh", "-c", script])).unwrap();
    let end = site.wait(async {
        pipe.write_all(b"x").await.unwrap();
        assert_eq!(pipe.read_to_end(&mut Vec::new()).await.unwrap(), 0);
        pipe.shutdown().await.unwrap();
        pipe.ended().await
    });
    assert!(matches!(end.ending, SshEnding::Exited(7)), "{:?}", end.ending);
    site.no_thread_is_left();
}

#[test]
fn a_pipe_that_is_dropped_leaves_no_thread_and_no_program() {
    let site = Site::new();
    let mark = site.workshop.path("mark");
    let lives = || site.workshop.processes().iter().any(|(_, line)| line.starts_with("cat "));
    fs::write(&mark, "").unwrap();
    let mut pipe = site.open(site.options(&["cat", "/dev/zero", &mark.to_string_lossy()])).unwrap();
    let mut some = vec![0; 1 << 20];
    site.wait(pipe.read_exact(&mut some)).unwrap();
    assert!(lives() && site.threads() == 1);
    drop(pipe);
    site.no_thread_is_left();
    until("the end of the far program", || (!lives()).then_some(()));
    // The same with both halves shut, while the far program goes on.
    let script = format!("exec >/dev/null 2>&1; cat; exec tail -f {}", mark.display());
    let mut pipe = site.open(site.options(&["sh", "-c", &script])).unwrap();
    site.wait(async {
        pipe.shutdown().await.unwrap();
        assert_eq!(pipe.read_to_end(&mut some).await.unwrap(), 0);
    });
    assert_eq!(site.threads(), 1);
    drop(pipe);
    site.no_thread_is_left();
    // The same while the far side does not read, and nothing fits into the pipe any more.
    let mut pipe = site.open(site.options(&["tail", "-f", &mark.to_string_lossy()])).unwrap();
    site.wait(async {
        let zeros = vec![0; 1 << 20];
        let mut sent = 0;
        let pause = Duration::from_secs(1);
        while let Ok(written) = tokio::time::timeout(pause, pipe.write_all(&zeros)).await {
            written.unwrap();
            sent += zeros.len();
            assert!(sent < 64 << 20, "the pipe has no bound");
        }
    });
    drop(pipe);
    site.no_thread_is_left();
    // A server leaves programs alone whose output it does not hold any more.
    for (pid, line) in site.workshop.processes() {
        if line.starts_with("tail ") {
            let _ = kill(pid, Signal::SIGKILL);
        }
    }
}

#[test]
fn a_jump_host_leads_to_the_target() {
    let gate = Site::new();
    let site = Site::new();
    let port = |site: &Site| site.sshd.port();
    let config = format!(
        "Host rig7\n HostName 127.0.0.1\n Port {}\n ProxyJump gate\n\
         Host gate\n HostName 127.0.0.1\n Port {}\n IdentityFile {}\n",
        port(&site),
        port(&gate),
        gate.sshd.file("user").display()
    );
    fs::write(site.home(".ssh/config"), &config).unwrap();
    let both = gate.sshd.known_line("host.pub") + &site.sshd.known_line("host.pub");
    site.knows(&both);
    let mut options = site.options(&["cat"]);
    options.target = "ssh://rig7".parse().unwrap();
    options.identities = vec![site.sshd.file("user")];
    let sent = random(13, MANY / 4);
    let (came, end) = exchange(&site, site.open(options.clone()).unwrap(), &sent);
    assert!(came == sent && end.result().is_ok(), "{} bytes", came.len());
    site.no_thread_is_left();
    gate.no_thread_is_left();
    // What is dropped ends both.
    let pipe = site.open(options.clone()).unwrap();
    assert_eq!((site.threads(), gate.threads()), (1, 1));
    drop(pipe);
    site.no_thread_is_left();
    gate.no_thread_is_left();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = listener.local_addr().unwrap().port().to_string();
    drop(listener);
    fs::write(site.home(".ssh/config"), config.replace(&port(&site).to_string(), &closed)).unwrap();
    let words = [&closed, "cannot connect through 127.0.0.1:", &*port(&gate).to_string()];
    site.refused(options.clone(), Fault::Lab, &words);
    site.knows(&site.sshd.known_line("host.pub"));
    let at = format!("127.0.0.1:{}: the host is not known", port(&gate));
    site.refused(options, Fault::Usage, &[&at]);
    gate.no_thread_is_left();
}

#[test]
fn client_of_openssh_is_the_same_pipe() {
    let site = Site::new();
    let config = site.workshop.write(
        "client config",
        format!(
            "Host rig7\n HostName 127.0.0.1\n Port {}\n IdentityFile {}\n IdentitiesOnly yes\n\
             UserKnownHostsFile {}\n",
            site.sshd.port(),
            site.sshd.file("user").display(),
            site.home(".ssh/known_hosts").display()
        ),
    );
    let client = split_words(&format!("ssh -F '{}'", config.display())).unwrap();
    let target: SshTarget = "ssh://rig7".parse().unwrap();
    let open = |client: &[String], command: &[&str]| {
        let command: Vec<_> = command.iter().map(|&word| word.to_owned()).collect();
        site.wait(SshPipe::open_with_client(client, &target, &command, Arc::new(NoLedger)))
    };
    let (output, end) = site.finish(open(&client, &["printf", "%s\n", "a  b"]).unwrap(), "");
    assert_eq!(output, "a  b\n");
    end.result().unwrap();
    let sent = random(17, MANY);
    let (came, end) = exchange(&site, open(&client, &["cat"]).unwrap(), &sent);
    assert!(came == sent, "{} bytes", came.len());
    end.result().unwrap();
    let (_, end) = site.finish(open(&client, &["/opt/no/jig", "rpc"]).unwrap(), "");
    let error = end.result().unwrap_err();
    says(&error, Fault::Lab, &["ssh://rig7: there is no program `/opt/no/jig`"]);
    site.knows("");
    let (_, end) = site.finish(open(&client, &["true"]).unwrap(), "");
    let error = end.result().unwrap_err();
    says(&error, Fault::Lab, &["ended with code 255: Host key verification failed."]);
    let missing = open(&["no-such-ssh".to_owned()], &["true"]).err().unwrap();
    says(&missing, Fault::Usage, &["no-such-ssh", "PATH"]);
    // Dropped, it leaves no process.
    site.knows(&site.sshd.known_line("host.pub"));
    let mut pipe = open(&client, &["cat"]).unwrap();
    site.wait(async {
        pipe.write_all(b"x").await.unwrap();
        assert_eq!(pipe.read_u8().await.unwrap(), b'x');
    });
    drop(pipe);
    until("the end of the client", || {
        let all = site.workshop.processes();
        all.iter().all(|(_, line)| !line.starts_with("ssh ")).then_some(())
    });
}
