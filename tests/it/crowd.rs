//! Many places that print, and many clients of one service, at the same time: no byte of a console is lost on
//! its way to the log or to who follows it, no command fails, no place has two holders, and clients that never
//! read hold up themselves only.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::callers::memory_kib;
use crate::capture_service::{CaptureService, captured, named};
use crate::console_attach::Shown;
use crate::dice::Dice;
use crate::manifest::elf;
use crate::remote::HELLO;
use crate::remote_hostile::{call, clogged};
use crate::workshop::{DEADLINE, Ran, Slot, Started, Workshop, ran, until};

/// Bytes that each console prints in a second: a line at 115,200 baud.
const RATE: u64 = 11_520;

/// Pause between two pieces of a console.
const PIECE: Duration = Duration::from_millis(10);

/// Most memory of the service, in KiB: an unoptimised build with 50 places and 40 clients had 120 MB.
const MOST_MEMORY: u64 = 200 << 10;

/// How many there are.
struct CrowdSize {
    places: usize,
    clients: usize,
    seconds: u64,
}

impl CrowdSize {
    /// Takes `JIG_TEST_CROWD=50x40x60`: places, clients, and seconds for which each console prints.
    fn of_environment() -> Self {
        let text = std::env::var("JIG_TEST_CROWD").unwrap_or_else(|_| "8x8x4".to_owned());
        let numbers: Vec<u32> = text.split('x').map(|part| part.parse().unwrap()).collect();
        let &[places, clients, seconds] = &numbers[..] else {
            panic!("JIG_TEST_CROWD={text} is not PLACESxCLIENTSxSECONDS")
        };
        let (places, clients) = (places as usize, clients as usize);
        assert!(clients <= places, "each client leases a place of its own");
        Self { places, clients, seconds: seconds.into() }
    }
}

/// What a console prints: numbered lines, and between them bytes of any value.
fn printed(place: usize, length: u64) -> Vec<u8> {
    let (mut dice, mut bytes) = (Dice::of(place as u64), Vec::new());
    let length = usize::try_from(length).unwrap();
    for number in 0.. {
        match dice.below(4) {
            0 => bytes.extend((0..dice.below(64)).map(|_| dice.below(256) as u8)),
            _ => write!(bytes, "[{number:08}] bench-{place} temperature 21.5 C\r\n").unwrap(),
        }
        if bytes.len() >= length {
            break;
        }
    }
    bytes.truncate(length);
    bytes
}

/// Prints into a terminal at [`RATE`]; returns by how much it was late at most because the terminal was full.
fn print(mut board: &File, bytes: &[u8]) -> Duration {
    let (began, mut done, mut latest) = (Instant::now(), 0, Duration::ZERO);
    while done < bytes.len() {
        assert!(began.elapsed() < DEADLINE, "a console takes no more behind {done} bytes");
        let due = began.elapsed().as_secs_f64() * RATE as f64;
        let due = (due as usize).clamp(done, bytes.len());
        match board.write(&bytes[done..due]) {
            Ok(len) => done += len,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => panic!("{error}"),
        }
        let late = Duration::from_secs_f64((due - done) as f64 / RATE as f64);
        latest = latest.max(late);
        thread::sleep(PIECE);
    }
    latest
}

/// Follows a console from its first byte.
fn follower(workshop: &Workshop, place: usize, socket: Option<&Path>) -> Started {
    let bench = format!("bench-{place}");
    let console = ["--quiet", "console", "-b", &bench, "--raw", "--listen-only"];
    let mut command = workshop.jig(console.iter().chain(&["--since", "1h", "--follow"]));
    if let Some(socket) = socket {
        command.env("JIG_RIG", format!("unix:{}", socket.display()));
    }
    Started::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
}

/// How long each command took, by its first words.
#[derive(Default)]
struct Latencies(Mutex<Vec<(&'static str, Duration)>>);

impl Latencies {
    fn add(&self, what: &'static str, took: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((what, took));
    }

    /// Returns the times of one kind, or of all.
    fn of(&self, what: Option<&str>) -> Vec<Duration> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut times: Vec<_> = all
            .iter()
            .filter(|(kind, _)| what.is_none_or(|what| what == *kind))
            .map(|(_, took)| *took)
            .collect();
        times.sort();
        times
    }

    fn median(&self, what: &str) -> Duration {
        let times = self.of(Some(what));
        times.get(times.len() / 2).copied().unwrap_or_else(|| panic!("{what}: nothing measured"))
    }

    fn told(&self) -> String {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kinds: BTreeSet<&str> = all.iter().map(|(kind, _)| *kind).collect();
        drop(all);
        let mut text = String::new();
        for kind in kinds {
            let times = self.of(Some(kind));
            let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
            let _ = writeln!(
                text,
                "  {kind}: {} times, p50 {:?}, p99 {:?}",
                times.len(),
                at(50),
                at(99)
            );
        }
        text
    }
}

/// What the clients share.
struct Crowd<'w> {
    workshop: &'w Workshop,
    socket: &'w Path,
    latencies: Latencies,
    /// Places that are leased now.
    held: Mutex<BTreeSet<String>>,
    over: AtomicBool,
}

impl Crowd<'_> {
    /// Calls jig: as a user of this host who names no service, or as one who names it.
    fn jig(&self, number: usize, what: &'static str, args: &[&str]) -> Ran {
        let mut command = self.workshop.jig(args);
        if number % 2 == 1 {
            command.env("JIG_RIG", format!("unix:{}", self.socket.display()));
        }
        let began = Instant::now();
        let ran = ran(&mut command).unwrap_or_else(|why| panic!("{why}"));
        self.latencies.add(what, began.elapsed());
        ran.says(0, &[]);
        ran
    }

    /// Looks at the rig and has a place for itself, again and again.
    fn client(&self, number: usize) {
        while !self.over.load(Ordering::SeqCst) {
            self.jig(number, "jig boards", &["boards"]);
            let acquire = ["--json", "lease", "acquire", "-b", "tag=crowd", "--by-id"];
            let lease = self.jig(number, "jig lease acquire", &acquire).json().unwrap();
            let text =
                |value: &Value| value.as_str().unwrap_or_else(|| panic!("{lease}")).to_owned();
            let (place, lease) = (text(&lease["state"]["place"]), text(&lease["id"]));
            let held = || self.held.lock().unwrap_or_else(PoisonError::into_inner);
            assert!(held().insert(place.clone()), "{place} has two holders");
            self.jig(number, "jig health", &["health", "-b", &place]);
            let listed =
                self.jig(number, "jig lease ls", &["--json", "lease", "ls"]).json().unwrap();
            assert!(listed.to_string().contains(&lease), "{lease} is not in {listed}");
            held().remove(&place);
            self.jig(number, "jig lease release", &["lease", "release", &lease]);
            self.jig(number, "jig runs list", &["runs", "list"]);
        }
    }

    /// Runs a firmware on an emulated board, again and again.
    fn runs(&self) {
        let image = elf("microbit", "unity-pass");
        while !self.over.load(Ordering::SeqCst) {
            self.jig(1, "jig run", &["run", "-b", "emulated", &image]).says(0, &["PASS emulated"]);
        }
    }

    /// Asks the service by a connection that stays, and so without the time that a program needs to start.
    fn calls(&self, is_clogged: &AtomicBool) {
        let stream = UnixStream::connect(self.socket).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let (mut to, mut from) = (stream.try_clone().unwrap(), BufReader::new(stream));
        let mut ask = |line: &str| -> Value {
            writeln!(to, "{line}").unwrap();
            let mut line = String::new();
            from.read_line(&mut line).unwrap();
            serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line:?}"))
        };
        ask(HELLO);
        for id in 2.. {
            if self.over.load(Ordering::SeqCst) {
                return;
            }
            let what = match is_clogged.load(Ordering::SeqCst) {
                false => CALL,
                true => CALL_BESIDE,
            };
            let began = Instant::now();
            let answer = ask(&call(id, "rig.view", json!({"query": {"about": "boards"}})));
            self.latencies.add(what, began.elapsed());
            assert!(answer["result"].is_object(), "{answer}");
            thread::sleep(PIECE);
        }
    }
}

const CALL: &str = "a call";
const CALL_BESIDE: &str = "a call beside clients that never read";

/// Processor time of a process in seconds.
fn processor_time(pid: Pid) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // Behind the name, which may hold anything: user and system time are fields 14 and 15 of 100 ticks a second.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / 100.0
}

/// Counts the open sockets of a process. It opens further files once, such as those of leases.
fn sockets(pid: Pid) -> usize {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().filter_map(Result::ok);
    let targets = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

/// Returns what the log of a console holds, and how many gaps it has.
fn logged(workshop: &Workshop, place: usize) -> (Vec<u8>, usize) {
    let bench = format!("bench-{place}");
    let args = ["--json", "console", "-b", &bench, "--listen-only", "--since", "1h"];
    let told = workshop.run(args).says(0, &[]).out();
    let gaps = told.lines().filter(|line| !line.contains("\"text\"")).count();
    let folder = format!("../home/STATE/jig/places/{bench}.consoles/uart0");
    let files = fs::read_dir(workshop.path(&folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut raw: Vec<_> = files.filter(|path| path.extension() == Some("raw".as_ref())).collect();
    raw.sort();
    (raw.into_iter().flat_map(|path| fs::read(path).unwrap()).collect(), gaps)
}

#[test]
fn many_clients_lose_no_byte_of_many_consoles() {
    let _slot = Slot::take();
    let CrowdSize { places, clients, seconds } = CrowdSize::of_environment();
    let workshop = Workshop::new();
    let ports: Vec<_> = (0..places).map(|at| named(&workshop, &format!("port-{at}"))).collect();
    let mut file =
        "version = 1\n[[place]]\nname = \"emulated\"\nboard = \"microbit\"\nemulator = {}\n"
            .to_owned();
    for (at, (far, _, link)) in ports.iter().enumerate() {
        fcntl(far, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        let _ = write!(
            file,
            "[[place]]\nname = \"bench-{at}\"\nboard = \"microbit\"\ntags = [\"crowd\"]\n\
             console = [{{ name = \"uart0\", tty = \"{}\" }}]\n",
            link.display()
        );
    }
    workshop.write("rig.toml", file);
    let service = CaptureService::with(&workshop, |command| {
        command.args(["--check-every", "0s"]);
    });
    for at in 0..places {
        service.state(&format!("bench-{at}"), "captured");
    }
    let (pid, socket) = (service.pid(), workshop.path("../home/STATE/jig/rig.sock"));
    let (before, length) = (sockets(pid), RATE * seconds);
    let (used, began) = (processor_time(pid), Instant::now());
    // Half of the clients see the files of the rig, half of them are told by the service.
    let follow = |number: usize| {
        let by_service = (number % 2 == 1).then_some(&*socket);
        follower(&workshop, number, by_service)
    };
    let followers: Vec<_> = (0..clients)
        .map(|number| {
            let mut session = follow(number);
            let shown = Shown::of(session.child().stdout.take().unwrap());
            (number, session, shown)
        })
        .collect();
    let unread = [follow(0), follow(1)];
    let crowd = Crowd {
        workshop: &workshop,
        socket: &socket,
        latencies: Latencies::default(),
        held: Mutex::default(),
        over: AtomicBool::new(false),
    };
    let is_clogged = AtomicBool::new(false);
    let late = thread::scope(|scope| {
        let over = Over(&crowd.over);
        scope.spawn(|| crowd.calls(&is_clogged));
        scope.spawn(|| crowd.runs());
        for number in 0..clients {
            let crowd = &crowd;
            scope.spawn(move || crowd.client(number));
        }
        let printers: Vec<_> = ports
            .iter()
            .enumerate()
            .map(|(at, (far, ..))| scope.spawn(move || print(far, &printed(at, length))))
            .collect();
        // From the middle on, some clients ask or follow and never read.
        let half = length / 2;
        until("half of the output", || (captured(&workshop, "bench-0") >= half).then_some(()));
        let _clogged = [clogged(&socket), clogged(&socket)];
        is_clogged.store(true, Ordering::SeqCst);
        let late = printers.into_iter().map(|printer| printer.join().unwrap()).max().unwrap();
        for at in 0..places {
            let bench = format!("bench-{at}");
            until(&format!("all of {bench}"), || {
                (captured(&workshop, &bench) >= length).then_some(())
            });
        }
        // Until there are enough calls to be compared.
        let compared = || crowd.latencies.of(Some(CALL_BESIDE)).len() >= 20;
        until("calls beside clients that never read", || compared().then_some(()));
        drop(over);
        late
    });
    for (number, session, mut shown) in followers {
        let wanted = printed(number, length);
        let got =
            shown.at_least(wanted.len()).unwrap_or_else(|why| panic!("client {number}: {why}"));
        assert!(got == wanted, "client {number}: {} bytes, and others than printed", got.len());
        session.signal(Signal::SIGINT);
        session.finish();
    }
    for session in unread {
        session.signal(Signal::SIGINT);
        session.finish();
    }
    let share = 100.0 * (processor_time(pid) - used) / began.elapsed().as_secs_f64();
    let memory = memory_kib(pid);
    eprintln!(
        "{places} places at {RATE} B/s, {clients} clients, {seconds} s: service {:.1} MB, {share:.1} % of a core; \
         full terminals delayed a console by {late:?} at most\n{}",
        memory as f64 / 1024.0,
        crowd.latencies.told(),
    );
    for at in 0..places {
        let (log, gaps) = logged(&workshop, at);
        assert!(
            log == printed(at, length),
            "bench-{at}: {} bytes, and others than printed",
            log.len()
        );
        assert_eq!(gaps, 0, "bench-{at}");
    }
    assert!(memory < MOST_MEMORY, "{memory} KiB");
    let (alone, beside) = (crowd.latencies.median(CALL), crowd.latencies.median(CALL_BESIDE));
    // A service that waits for such a client answers nothing; what remains is a busy host.
    assert!(beside < alone * 10 + Duration::from_millis(500), "{alone:?}, then {beside:?}");
    until("the connections are closed", || (sockets(pid) <= before).then_some(()));
    workshop.run(["audit", "verify"]).says(0, &[]);
    service.stop().says(0, &[]);
    workshop.nothing_lives(DEADLINE).unwrap();
}

/// Ends the clients, also where the test fails before.
struct Over<'c>(&'c AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
