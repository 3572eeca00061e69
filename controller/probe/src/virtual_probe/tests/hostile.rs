//! Clients that are none, and clients at the wrong time.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::thread;

use probe_rs::{MemoryInterface as _, Permissions};

use super::*;

fn connect(bench: &Bench) -> UnixStream {
    let client = UnixStream::connect(bench.rig.path("probe")).unwrap();
    client.set_read_timeout(Some(TIMEOUT)).unwrap();
    client.set_write_timeout(Some(TIMEOUT)).unwrap();
    client
}

/// `identify` and its answer, framed.
const IDENTIFY: &[u8] = &[1, 1, 1, 0];
const IDENTITY: &[u8] = b"\x01\x0dprobe-rs,v01\0";

#[test]
fn nonsense_is_dropped_and_the_next_client_served() {
    let bench = Bench::new("microbit", Frontend::UnixServer);
    // Bytes that no client sends: every value in all kinds of places.
    let mut client = connect(&bench);
    let mut state = 1_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(100_000)
    .collect();
    // The server may drop this client, so its writes may fail.
    let _ = client.write_all(&noise);
    drop(client);
    // A packet without an end is not collected for ever.
    let mut client = connect(&bench);
    let endless = thread::spawn(move || while client.write_all(&[1; 4096]).is_ok() {});
    endless.join().unwrap();
    // A client that vanishes in the middle of a packet.
    connect(&bench).write_all(&IDENTIFY[..2]).unwrap();
    let mut client = connect(&bench);
    client.write_all(IDENTIFY).unwrap();
    let mut answer = vec![0; IDENTITY.len()];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(answer, IDENTITY);
    drop(client);
    let mut session = bench.attach();
    assert_eq!(session.core(0).unwrap().read_word_32(0xe00f_fff0).unwrap(), 0x0d);
}

#[test]
fn a_second_client_waits_for_the_first() {
    let bench = Bench::new("microbit", Frontend::UnixServer);
    let mut first = connect(&bench);
    first.write_all(IDENTIFY).unwrap();
    first.read_exact(&mut vec![0; IDENTITY.len()]).unwrap();
    let mut second = connect(&bench);
    second.write_all(IDENTIFY).unwrap();
    second.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
    second.read_exact(&mut [0]).unwrap_err();
    second.set_read_timeout(Some(TIMEOUT)).unwrap();
    drop(first);
    let mut answer = vec![0; IDENTITY.len()];
    second.read_exact(&mut answer).unwrap();
    assert_eq!(answer, IDENTITY);
}

#[test]
fn a_server_ends_with_its_handle_whatever_its_clients_do() {
    let mut bench = Bench::new("microbit", Frontend::UnixServer);
    // One that asks and never reads, until the server waits for it.
    let mut deaf = connect(&bench);
    deaf.set_nonblocking(true).unwrap();
    let mut asked = 0;
    let deadline = Instant::now() + Duration::from_secs(2);
    while Instant::now() < deadline {
        match deaf.write(IDENTIFY) {
            Ok(count) => asked += count,
            Err(_) => break,
        }
    }
    assert!(asked > 0);
    let waiting = connect(&bench);
    drop(bench.server.take());
    assert!(!bench.rig.path("probe").exists());
    drop((deaf, waiting));
    // The board goes on, for the other frontend.
    let target = bench.board.target().unwrap();
    let mut session = bench.board.open_probe().attach(target, Permissions::default()).unwrap();
    session.core(0).unwrap().read_word_32(0).unwrap();
}

#[test]
fn a_socket_that_is_there_is_not_taken() {
    let bench = Bench::new("microbit", Frontend::InProcess);
    std::fs::write(bench.rig.path("probe"), "mine").unwrap();
    let refused = bench.board.serve(ServeAt::Unix(bench.rig.path("probe"))).unwrap_err();
    assert!(refused.to_string().contains("probe"), "{refused}");
    assert_eq!(std::fs::read_to_string(bench.rig.path("probe")).unwrap(), "mine");
}

#[test]
fn both_frontends_see_one_board() {
    let bench = Bench::new("microbit", Frontend::UnixServer);
    let mut outside = bench.attach();
    let target = bench.board.target().unwrap();
    let mut inside = bench.board.open_probe().attach(target, Permissions::default()).unwrap();
    outside.core(0).unwrap().write_word_32(0x2000_0000, 0x1234).unwrap();
    assert_eq!(inside.core(0).unwrap().read_word_32(0x2000_0000).unwrap(), 0x1234);
}
