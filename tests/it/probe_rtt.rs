//! RTT through a probe: bytes both ways without loss, and defmt's frames as lines.

use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::thread;

use nix::sys::signal::Signal;

use crate::manifest::elf;
use crate::served::{Served, bytes_of};
use crate::workshop::{Slot, Started, Workshop};

/// How much is sent, and comes back.
const ECHOED: usize = 1 << 20;

const READY: &str = "rtt-echo ready\n";

/// Numbered lines, so that a byte that is lost, doubled or moved shows.
fn lines(len: usize) -> String {
    let mut text = String::with_capacity(len + 64);
    for number in 0.. {
        if text.len() >= len {
            break;
        }
        text.push_str(&format!("{number:06} the quick brown fox jumps over the lazy dog\n"));
    }
    text
}

#[test]
fn everything_that_is_sent_comes_back() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("microbit", "rtt-echo");
    let served = Served::start(&workshop, "microbit", &["--image", &image]);
    served.prints("ok 1");
    let mut command = workshop.jig(["rtt", "-b", "microbit", "--elf", &image]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut rtt = Started::of(&mut command);
    let mut input = rtt.child().stdin.take().unwrap();
    let mut output = rtt.child().stdout.take().unwrap();
    let sent = lines(ECHOED);
    let copy = sent.clone();
    let writer = thread::spawn(move || input.write_all(copy.as_bytes()));
    // If this takes too long the child is told to end, which ends both threads.
    let due = READY.len() + sent.len();
    let (done, end) = std::sync::mpsc::channel();
    let reader = thread::spawn(move || {
        let mut got = vec![0; due];
        let read = output.read_exact(&mut got);
        let _ = done.send(());
        (got, read)
    });
    let in_time = end.recv_timeout(crate::workshop::DEADLINE).is_ok();
    rtt.signal(Signal::SIGINT);
    let ran = rtt.finish();
    assert!(in_time, "the echo did not come back: {ran}");
    ran.says(0, &["up 0: echo (4096 bytes)", "down 0: input (2048 bytes)"]);
    let (got, read) = reader.join().unwrap();
    read.unwrap();
    writer.join().unwrap().unwrap();
    let got = String::from_utf8(got).unwrap();
    let (head, echo) = got.split_at(READY.len());
    assert_eq!(head, READY);
    if echo != sent {
        let at = echo.bytes().zip(sent.bytes()).position(|(a, b)| a != b).unwrap();
        panic!("the echo differs at byte {at}: {:?}", &echo[at..(at + 80).min(echo.len())]);
    }
    served.stop().says(0, &[]);
}

#[test]
fn defmt_is_decoded_and_a_broken_frame_is_a_gap() {
    let _slot = Slot::take();
    for board in ["microbit", "mps2-an385", "netduinoplus2"] {
        let workshop = Workshop::new();
        let image = elf(board, "defmt-log");
        workshop.run(["flash", "-b", board, &image]).says(0, &[]);
        // The board is switched on for the verb, so it shows the program from its start.
        let mut command = workshop.jig(["rtt", "-b", board, "--elf", &image, "--timeout", "5m"]);
        let mut rtt = Started::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let mut out = std::io::BufReader::new(rtt.child().stdout.take().unwrap());
        let mut said = Vec::new();
        while said.len() < 4 {
            let mut line = String::new();
            if std::io::BufRead::read_line(&mut out, &mut line).unwrap() == 0 {
                panic!("{board} said {said:?}: {}", rtt.finish());
            }
            said.push(line.trim_end().to_owned());
        }
        rtt.signal(Signal::SIGINT);
        rtt.finish().says(0, &["up 0: defmt (512 bytes)"]);
        let [boot, voltage, broken, error] = said.as_slice() else { unreachable!() };
        assert!(boot.contains("INFO") && boot.contains("boot 7"), "{said:?}");
        assert!(voltage.contains("WARN") && voltage.contains("voltage is 3300 mV"), "{said:?}");
        assert_eq!(broken, "[2 bytes are no frame]", "{said:?}");
        assert!(error.contains("ERROR") && error.contains("cannot open config.bin"), "{said:?}");
        workshop.nothing_lives(crate::workshop::DEADLINE).unwrap();
    }
}

#[test]
fn json_is_a_line_for_each_event() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    workshop.run(["flash", "-b", "microbit", &elf("microbit", "rtt-echo")]).says(0, &[]);
    let mut command = workshop.jig(["--json", "rtt", "-b", "microbit", "--timeout", "5m"]);
    let mut rtt = Started::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let out = std::io::BufReader::new(rtt.child().stdout.take().unwrap());
    let mut lines = std::io::BufRead::lines(out).map_while(Result::ok);
    let mut event = || {
        let line = lines.next().expect("another event");
        serde_json::from_str::<serde_json::Value>(&line).unwrap()
    };
    let channels = event();
    assert_eq!(channels["kind"], "rtt_channels");
    assert_eq!(channels["up"][0], serde_json::json!({"number": 0, "name": "echo", "size": 4096}));
    let mut bytes = Vec::new();
    while bytes.len() < READY.len() {
        let piece = event();
        assert_eq!(piece["kind"], "rtt_bytes", "{piece}");
        bytes.extend(bytes_of(&piece));
    }
    assert_eq!(bytes, READY.as_bytes());
    rtt.signal(Signal::SIGINT);
    rtt.finish().says(0, &[]);
}

#[test]
fn without_a_channel_there_is_nothing_to_show() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    workshop.run(["flash", "-b", "microbit", &elf("microbit", "rtt-echo")]).says(0, &[]);
    // Found by its sign in RAM, without the image.
    let found = ["rtt", "-b", "microbit", "--channel", "7", "--timeout", "60s"];
    workshop.run(found).says(2, &["no RTT channel 7", "it has: 0 (echo)"]);
}
