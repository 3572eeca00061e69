//! Flashing for long: neither the client's nor the server's memory and handles grow.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use crate::dice::Dice;
use crate::manifest::elf;
use crate::served::{Served, bytes_of};
use crate::stranger::example;
use crate::workshop::{Slot, Started, Workshop, tied, until};

/// How often one client flashes through one server.
const CYCLES: usize = 200;

/// After how many of them the verb flashes too, from a process of its own.
const VERB_EVERY: usize = 5;

/// When both have warmed up: their allocators, their pools of threads.
const WARM: usize = 40;

/// One sector: what may leak does so per session, not per byte.
const SECTOR: usize = 1 << 10;

/// What allocators may still move by. A copy of the chip's flash, or of the descriptions of
/// all chips, kept in each cycle would be more than ten times as much.
const SETTLES: u64 = 2 << 10;

/// How long a thread may take to end that has nothing left to do.
const ENDS: Duration = Duration::from_secs(60);

/// What a process has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Possessions {
    threads: usize,
    files: usize,
    sockets: usize,
    /// Resident memory in KiB.
    rss: u64,
}

impl Possessions {
    fn of(pid: u32) -> Self {
        let list = |what: &str| fs::read_dir(format!("/proc/{pid}/{what}")).unwrap().flatten();
        let files: Vec<_> = list("fd").filter_map(|fd| fs::read_link(fd.path()).ok()).collect();
        let is_socket = |path: &&std::path::PathBuf| path.to_string_lossy().starts_with("socket:");
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        Self {
            threads: list("task").count(),
            files: files.len(),
            sockets: files.iter().filter(is_socket).count(),
            rss: rss.trim().trim_end_matches(" kB").trim().parse().unwrap(),
        }
    }

    /// Tells whether it is no more than before, of what is counted.
    fn is_within(self, before: Self) -> bool {
        self.threads <= before.threads
            && self.files <= before.files
            && self.sockets <= before.sockets
    }

    /// Waits until a process has no more than before, and then weighs it.
    fn check(pid: u32, who: &str, before: Self) {
        let end = Instant::now() + ENDS;
        // What served the last client may be on its way out.
        let now = until(&format!("the last look at the {who}"), || {
            let now = Self::of(pid);
            (now.is_within(before) || Instant::now() > end).then_some(now)
        });
        eprintln!("{who}: {before:?} became {now:?}");
        assert!(now.is_within(before), "{who}: {before:?} became {now:?}");
        assert!(now.rss < before.rss + SETTLES, "{who}: {before:?} became {now:?}");
    }
}

/// The client; killed when dropped.
struct Client {
    child: Started,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Client {
    fn start(selector: &str, images: &[std::path::PathBuf]) -> Self {
        let mut command = tied(example("tireless"));
        command.args([selector, "nRF51822_xxAA", "0x8000"]).args(images);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Started::of(&mut command);
        let orders = child.child().stdin.take().unwrap();
        let answers = BufReader::new(child.child().stdout.take().unwrap());
        Self { child, orders, answers }
    }

    /// Flashes an image; returns how many sectors were erased for it.
    fn flash(&mut self, image: usize) -> Option<u32> {
        let mut answer = String::new();
        writeln!(self.orders, "{image}").ok()?;
        self.answers.read_line(&mut answer).ok()?;
        answer.trim().parse().ok()
    }
}

#[test]
fn two_hundred_flashes_grow_neither_client_nor_server() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = |nth: u64| {
        let mut dice = Dice::of(nth);
        (0..SECTOR).map(|_| dice.below(255) as u8).collect::<Vec<u8>>()
    };
    let images = [image(1), image(2), image(3)];
    let paths: Vec<_> =
        (0..images.len()).map(|nth| workshop.write(&format!("{nth}.bin"), &images[nth])).collect();
    // A program of its own, that sleeps when it is done: a core that spins takes the time of all.
    let program = elf("microbit", "unity-pass");
    let mut served = Served::start(&workshop, "microbit", &["--image", &program]);
    let mut client = Client::start(&served.selector, &paths);
    let pids = [served.pid(), client.child.child().id()];
    let mut warm = None;
    for cycle in 1..=CYCLES {
        let Some(erased) = client.flash(cycle % 2) else {
            drop(client.orders);
            panic!("cycle {cycle}: {}", client.child.finish());
        };
        assert_eq!(erased, 1, "cycle {cycle} found another image than the one before");
        if cycle % VERB_EVERY == 0 {
            let done = served.json(&["flash"], &["2.bin@0x8000"]);
            assert_eq!(done["report"]["sectors_erased"], 1, "cycle {cycle}");
        }
        if cycle == WARM {
            warm = Some(pids.map(Possessions::of));
        }
    }
    let [server, own] = warm.unwrap();
    Possessions::check(pids[0], "server", server);
    Possessions::check(pids[1], "client", own);
    drop(client.orders);
    client.child.finish().says(0, &[]);
    let last = served.json(&["mem", "read"], &["0x8000", "1K"]);
    assert!(bytes_of(&last) == images[2], "the last one was the verb");
    served.stop().says(0, &[]);
}
