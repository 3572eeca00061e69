//! The driver with a server that has its answers ready.

use std::io::Read as _;
use std::thread::JoinHandle;

use super::*;

const CSW: RegisterAddress = RegisterAddress::ApRegister(0x00);
const TAR: RegisterAddress = RegisterAddress::ApRegister(0x04);
const DRW: RegisterAddress = RegisterAddress::ApRegister(0x0c);

/// Answers one packet after the other, whatever they say, and returns them at the end.
fn answering(answers: Vec<Vec<u8>>) -> (RemoteProbe, JoinHandle<Vec<Vec<u8>>>) {
    let (near, mut far) = UnixStream::pair().unwrap();
    let greeting = [[&[ROOT], IDENTIFIER].concat(), vec![ROOT, 0, 0x6c, 0xdc, 0x02]];
    let served = std::thread::spawn(move || {
        let (mut packets, mut arrived) = (Vec::new(), Vec::new());
        for answer in greeting.into_iter().chain(answers) {
            let mut chunk = [0; 4096];
            while !arrived.contains(&0) {
                match far.read(&mut chunk).unwrap() {
                    0 => return packets,
                    count => arrived.extend_from_slice(&chunk[..count]),
                }
            }
            let end = arrived.iter().position(|&byte| byte == 0).unwrap();
            let frame: Vec<u8> = arrived.drain(..=end).collect();
            packets.push(cobs::decode(&frame[..end]).unwrap());
            let mut framed = Vec::new();
            cobs::encode(&answer, &mut framed);
            far.write_all(&framed).unwrap();
        }
        packets.drain(..2);
        packets
    });
    (RemoteProbe::greet(Arc::new(Server::Unix(near))).unwrap(), served)
}

fn data(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| [&[swd::DATA], &value.to_le_bytes()[..]].concat()).collect()
}

#[test]
fn register_writes_go_out_with_the_next_read() {
    let answer = [&[SWD, swd::WRITTEN, swd::WRITTEN], &data(&[7, 0x1234])[..]].concat();
    let (mut probe, served) = answering(vec![answer]);
    probe.raw_write_register(CSW, 2).unwrap();
    probe.raw_write_register(TAR, 0x2000_0000).unwrap();
    assert_eq!(probe.raw_read_register(DRW).unwrap(), 0x1234);
    let packet = [SWD, 0x01, 2, 0, 0, 0, 0x05, 0, 0, 0, 0x20, 0x0f, 0x0e];
    assert_eq!(served.join().unwrap(), [packet]);
}

#[test]
fn a_refused_write_is_told_by_a_flush_and_the_next_access_works() {
    let answers = vec![
        vec![SWD, swd::WRITTEN, swd::FAULT],
        [&[SWD], &data(&[0, 1, 2])[..]].concat(),
        vec![SWD, swd::WAIT],
    ];
    let (mut probe, served) = answering(answers);
    probe.raw_write_register(TAR, 0x6000_0000).unwrap();
    probe.raw_write_register(DRW, 1).unwrap();
    let refused = probe.raw_flush().unwrap_err();
    assert!(matches!(refused, ArmError::Dap(DapError::FaultResponse)), "{refused:?}");
    let mut values = [0; 2];
    probe.raw_read_block(DRW, &mut values).unwrap();
    assert_eq!(values, [1, 2]);
    let busy = probe.raw_write_block(DRW, &[1, 2]).unwrap_err();
    assert!(matches!(busy, ArmError::Dap(DapError::WaitResponse)), "{busy:?}");
    // Nothing is left to send.
    probe.raw_flush().unwrap();
    assert_eq!(served.join().unwrap().len(), 3);
}

#[test]
fn long_blocks_go_out_in_several_packets() {
    let written = |count| [&[SWD][..], &vec![swd::WRITTEN; count]].concat();
    let (mut probe, served) = answering(vec![written(MAX_TRANSFERS), written(1)]);
    probe.raw_write_block(DRW, &[0; MAX_TRANSFERS + 1]).unwrap();
    let lens: Vec<_> = served.join().unwrap().iter().map(Vec::len).collect();
    assert_eq!(lens, [1 + 5 * MAX_TRANSFERS, 6]);
}

#[test]
fn a_probe_that_was_cut_off_fails_at_once() {
    let (mut probe, served) = answering(Vec::new());
    assert_eq!(probe.speed_khz(), 48_000);
    served.join().unwrap();
    let server = Arc::clone(&probe.server);
    server.cut();
    probe.raw_write_register(TAR, 0).unwrap();
    let error = probe.raw_read_register(DRW).unwrap_err();
    assert!(matches!(error, ArmError::Probe(DebugProbeError::ProbeSpecific(_))), "{error:?}");
    // From now on, calls that would only collect fail too.
    assert!(probe.raw_write_register(TAR, 0).is_err());
    assert!(probe.swj_sequence(8, 0xff).is_err());
}
