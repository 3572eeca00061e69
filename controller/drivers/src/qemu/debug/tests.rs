//! The channels with a real machine, and with ends that misbehave.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::*;

fn answering(script: &'static [u8]) -> (UnixStream, std::thread::JoinHandle<Vec<u8>>) {
    let (near, mut far) = UnixStream::pair().unwrap();
    let thread = std::thread::spawn(move || {
        far.write_all(script).unwrap();
        far.shutdown(std::net::Shutdown::Write).unwrap();
        let mut asked = Vec::new();
        drop(far.read_to_end(&mut asked));
        asked
    });
    (near, thread)
}

/// A channel whose other end answers after it was asked.
fn asked_first(answers: &'static [u8]) -> UnixStream {
    let (near, mut far) = UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        let mut byte = [0];
        if far.read_exact(&mut byte).is_ok() {
            drop(far.write_all(answers));
            // What else is asked is read, or the near end would see its writes fail.
            while far.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {}
        }
    });
    near
}

#[test]
fn registers_are_sent_and_read_as_the_stub_has_them() {
    let mut gdb = Gdb::new(asked_first(b"+$78563412efbeadde#00")).unwrap();
    assert_eq!(gdb.registers::<2>().unwrap(), [0x1234_5678, 0xdead_beef]);
    let mut packets = Packets::default();
    packets.write_register(25, 0x0100_0000);
    packets.insert_breakpoint(0x200);
    let (near, far) = answering(b"");
    let mut gdb = Gdb::new(near).unwrap();
    gdb.perform(&packets).unwrap_err();
    drop(gdb);
    let _ = far.join().unwrap();
}

#[test]
fn a_stop_that_races_with_a_command_is_not_its_answer() {
    let mut gdb = Gdb::new(asked_first(b"$T02thread:01;#00+$OK#9a+$E22#a9")).unwrap();
    let mut packets = Packets::default();
    packets.insert_breakpoint(0x200);
    packets.remove_breakpoint(0x300);
    let refused = gdb.perform(&packets).unwrap_err();
    assert!(matches!(refused, ChannelError::Refused { .. }), "{refused}");
    assert_eq!((gdb.stats().stray_stops, gdb.stats().packets), (1, 2));
}

/// A channel whose other end gives one of these answers to each write.
fn asked_in_turn(answers: &'static [&'static [u8]]) -> UnixStream {
    let (near, mut far) = UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        for answer in answers {
            if !far.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {
                return;
            }
            drop(far.write_all(answer));
        }
        while far.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {}
    });
    near
}

#[test]
fn a_stop_before_a_run_does_not_end_it() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let mut gdb = Gdb::new(near).unwrap();
    let mut packets = Packets::default();
    packets.insert_breakpoint(0x200);
    gdb.resume(packets).unwrap();
    // Another channel had let the machine run: it is stopped, and runs on when `c` is taken in.
    far.write_all(b"$T02thread:01;#00+$OK#9a").unwrap();
    assert_eq!(gdb.wait(Duration::from_millis(5)).unwrap(), None);
    far.write_all(b"+$T05thread:01;#00").unwrap();
    assert_eq!(gdb.wait(ANSWER).unwrap(), Some(Stop::Trapped));
    assert_eq!(gdb.stats().stray_stops, 1);
}

#[test]
fn a_damaged_packet_does_not_shift_the_answers() {
    let answers: &[&[u8]] = &[b"-+$OK#9a", b"+$55000000#00"];
    let mut gdb = Gdb::new(asked_in_turn(answers)).unwrap();
    let mut packets = Packets::default();
    packets.insert_breakpoint(0x200);
    packets.remove_breakpoint(0x300);
    let damaged = gdb.perform(&packets).unwrap_err();
    assert!(matches!(damaged, ChannelError::Garbled { .. }), "{damaged}");
    assert_eq!(gdb.register(3).unwrap(), [0x55, 0, 0, 0]);
}

#[test]
fn a_refusal_before_a_run_is_told_by_the_next_call_only() {
    let answers: &[&[u8]] = &[b"+$E22#a9+", b"+$55000000#00"];
    let mut gdb = Gdb::new(asked_in_turn(answers)).unwrap();
    let mut packets = Packets::default();
    packets.insert_breakpoint(0x200);
    gdb.resume(packets).unwrap();
    let refused = gdb.wait(ANSWER).unwrap_err();
    assert!(matches!(refused, ChannelError::Refused { .. }), "{refused}");
    assert_eq!(gdb.register(3).unwrap(), [0x55, 0, 0, 0]);
}

#[test]
fn breakpoints_are_set_once_and_removed_once() {
    let answers: &[&[u8]] = &[b"+$OK#9a", b"+$E22#a9", b"+$55000000#00"];
    let mut gdb = Gdb::new(asked_in_turn(answers)).unwrap();
    let mut packets = Packets::default();
    packets.insert_breakpoint(0x200);
    packets.insert_breakpoint(0x200);
    gdb.perform(&packets).unwrap();
    gdb.remove_breakpoints().unwrap();
    // None is left, whatever the stub says: this sends nothing.
    gdb.remove_breakpoints().unwrap();
    assert_eq!(gdb.register(3).unwrap(), [0x55, 0, 0, 0]);
}

#[test]
fn silence_has_an_end() {
    let (near, _far) = UnixStream::pair().unwrap();
    let mut gdb = Gdb::new(near).unwrap();
    assert_eq!(gdb.wait(Duration::from_millis(5)).unwrap(), None);
    gdb.drain().unwrap();
}

#[test]
fn an_end_is_told_from_nonsense() {
    let mut gdb = Gdb::new(answering(b"").0).unwrap();
    assert!(matches!(gdb.wait(ANSWER), Err(ChannelError::Closed { channel: "gdb" })));
    let mut gdb = Gdb::new(asked_first(b"+$what#00")).unwrap();
    assert!(matches!(gdb.registers::<17>(), Err(ChannelError::Garbled { .. })));
    let mut qtest = Qtest::new(asked_first(b"OK 0xzz\n")).unwrap();
    assert!(matches!(qtest.read(0, Access::Word), Err(ChannelError::Garbled { .. })));
    let mut qtest = Qtest::new(asked_first(b"FAIL what\n")).unwrap();
    assert!(matches!(qtest.read(0, Access::Word), Err(ChannelError::Refused { .. })));
    let mut qtest = Qtest::new(asked_first(b"OK AAAA\n")).unwrap();
    assert!(matches!(qtest.read_bytes(0, &mut [0; 4]), Err(ChannelError::Garbled { .. })));
    let mut monitor = DebugMonitor::new(asked_first(b"{}\nnot json\n")).unwrap();
    assert!(matches!(monitor.ask("info"), Err(ChannelError::Garbled { .. })));
}

#[test]
fn endless_answers_are_given_up() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let flood = std::thread::spawn(move || while far.write_all(&[b'x'; 4096]).is_ok() {});
    let mut gdb = Gdb::new(near).unwrap();
    let error = gdb.registers::<17>().unwrap_err();
    assert!(matches!(error, ChannelError::Garbled { .. }), "{error}");
    drop(gdb);
    flood.join().unwrap();
}

#[test]
fn resets_are_told_apart_and_once() {
    let (near, mut far) = UnixStream::pair().unwrap();
    let said = "{\"QMP\": {}}\n{\"event\": \"STOP\"}\n\
        {\"event\": \"RESET\", \"data\": {\"guest\": true}}\n";
    far.write_all(said.as_bytes()).unwrap();
    let mut monitor = DebugMonitor::new(near).unwrap();
    let seen = monitor.resets().unwrap();
    assert_eq!(seen, ResetSeen { by_target: true, by_host: false });
    assert_eq!(monitor.resets().unwrap(), ResetSeen::default());
}
