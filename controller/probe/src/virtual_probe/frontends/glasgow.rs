//! The commands of the remote probe's protocol, applied to a debug port. Pure over the bus.
//!
//! Two endpoints, told apart by the first byte of a packet. An endpoint sees a stream: a
//! command may come in two packets. Access port reads are posted: each is answered by what
//! the one before found.

use crate::glasgow::{IDENTIFIER, RDBUFF, ROOT, SWD, root, swd};
use crate::virtual_probe::adi::{AdiPort, MAX_BLOCK};
use crate::virtual_probe::bus::{Bus, BusError};

/// The clock that a client's divisor divides, in Hz.
const REFERENCE_CLOCK: u32 = 48_000_000;

/// Bytes of a transfer or sequence that carries a word.
const WITH_WORD: usize = 5;

/// A client's view of the probe.
pub(super) struct Endpoints<B> {
    port: AdiPort<B>,
    posted: u32,
    divisor: u16,
    /// Beginnings of commands whose rest has not come: shorter than a command each.
    root_rest: Vec<u8>,
    swd_rest: Vec<u8>,
    lost: bool,
}

impl<B: Bus> Endpoints<B> {
    pub(super) fn new(port: AdiPort<B>) -> Self {
        let (root_rest, swd_rest) = (Vec::new(), Vec::new());
        Self { port, posted: 0, divisor: 0, root_rest, swd_rest, lost: false }
    }

    /// Tells whether an access has found the board gone. The protocol has no word for that, and
    /// a fault, its only refusal, would blame the target.
    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Gives the debug port back, as the next client finds it.
    pub(super) fn into_port(self) -> AdiPort<B> {
        self.port
    }

    /// Does what a packet says; returns the packet to answer with, if there is anything to
    /// say. What cannot be understood is dropped.
    pub(super) fn packet(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let (&endpoint, commands) = packet.split_first()?;
        let mut answer = vec![endpoint];
        match endpoint {
            ROOT => {
                let mut bytes = std::mem::take(&mut self.root_rest);
                bytes.extend_from_slice(commands);
                let used = self.root(&bytes, &mut answer);
                self.root_rest = bytes.split_off(used);
            }
            SWD => {
                let mut bytes = std::mem::take(&mut self.swd_rest);
                bytes.extend_from_slice(commands);
                let used = self.swd(&bytes, &mut answer);
                self.swd_rest = bytes.split_off(used);
            }
            _ => return None,
        }
        (answer.len() > 1).then_some(answer)
    }

    /// Does the commands of the root endpoint; returns how many bytes they were.
    fn root(&mut self, bytes: &[u8], answer: &mut Vec<u8>) -> usize {
        let mut at = 0;
        while let Some(&command) = bytes.get(at) {
            match command {
                root::IDENTIFY => answer.extend_from_slice(IDENTIFIER),
                root::REFERENCE_CLOCK => answer.extend_from_slice(&REFERENCE_CLOCK.to_le_bytes()),
                root::DIVISOR => answer.extend_from_slice(&self.divisor.to_le_bytes()),
                root::SET_DIVISOR => {
                    let Some(&[low, high]) = bytes.get(at + 1..at + 3) else { return at };
                    self.divisor = u16::from_le_bytes([low, high]);
                    at += 2;
                }
                // The protocol has no answer to a reset; a lost board shows at the next access.
                root::ASSERT_RESET => drop(self.port.bus().drive_reset(false)),
                root::CLEAR_RESET => drop(self.port.bus().drive_reset(true)),
                _ => {}
            }
            at += 1;
        }
        at
    }

    /// Does transfers; returns how many bytes they were. After a fault the client gives the
    /// rest of its batch up and would take further answers for those of its next.
    fn swd(&mut self, bytes: &[u8], answer: &mut Vec<u8>) -> usize {
        let mut at = 0;
        while let Some(&command) = bytes.get(at) {
            let carries_word = command & swd::SEQUENCE != 0 || command & swd::READ == 0;
            if carries_word && bytes.len() < at + WITH_WORD {
                return at;
            }
            let run = &bytes[at..];
            let done = if command & swd::SEQUENCE != 0 {
                // Line resets and protocol switches: there is no line.
                Ok(WITH_WORD)
            } else if command & swd::AP == 0 {
                self.debug_port(command, run, answer)
            } else if command & swd::READ != 0 {
                self.read_access_port(command, run, answer)
            } else {
                self.write_access_port(command, run, answer)
            };
            match done {
                Ok(used) => at += used,
                Err(error) => {
                    self.lost |= matches!(error, BusError::Lost(_));
                    answer.push(swd::FAULT);
                    // The client knows no way to clear it.
                    self.port.clear_sticky();
                    return bytes.len();
                }
            }
        }
        at
    }

    fn debug_port(
        &mut self,
        command: u8,
        run: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<usize, BusError> {
        let offset = command & swd::OFFSET;
        if command & swd::READ != 0 {
            let value = if offset == RDBUFF { self.posted } else { self.port.read_dp(offset) };
            push_data(answer, value);
            return Ok(1);
        }
        self.port.write_dp(offset, word(run));
        answer.push(swd::WRITTEN);
        Ok(WITH_WORD)
    }

    fn read_access_port(
        &mut self,
        command: u8,
        run: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<usize, BusError> {
        let offset = command & swd::OFFSET;
        // A run of reads of the data register is one access to the bus.
        let count = match self.port.is_data(offset) {
            true => run.iter().take(MAX_BLOCK).take_while(|&&next| next == command).count(),
            false => 1,
        };
        let mut values = vec![0; count];
        let read = match count {
            1 => self.port.read_ap(offset).map(|value| values[0] = value),
            _ => self.port.read_data(&mut values),
        };
        // A failed read is told by the transfer after it.
        push_data(answer, self.posted);
        read?;
        for pair in values.windows(2) {
            push_data(answer, pair[0]);
        }
        self.posted = values[count - 1];
        Ok(count)
    }

    fn write_access_port(
        &mut self,
        command: u8,
        run: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<usize, BusError> {
        let offset = command & swd::OFFSET;
        if !self.port.is_data(offset) {
            self.port.write_ap(offset, word(run))?;
            answer.push(swd::WRITTEN);
            return Ok(WITH_WORD);
        }
        let transfers = run.chunks_exact(WITH_WORD).take(MAX_BLOCK);
        let values: Vec<u32> = transfers.take_while(|t| t[0] == command).map(word).collect();
        self.port.write_data(&values)?;
        answer.resize(answer.len() + values.len(), swd::WRITTEN);
        Ok(values.len() * WITH_WORD)
    }
}

fn push_data(answer: &mut Vec<u8>, value: u32) {
    answer.push(swd::DATA);
    answer.extend_from_slice(&value.to_le_bytes());
}

/// Returns the word that follows a command byte.
fn word(transfer: &[u8]) -> u32 {
    transfer.get(1..WITH_WORD).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtual_probe::adi::tests::{FakeBus, port};
    use proptest::prelude::*;

    fn endpoints() -> Endpoints<FakeBus> {
        Endpoints::new(port())
    }

    fn data(values: &[u32]) -> Vec<u8> {
        let mut bytes = vec![SWD];
        values.iter().for_each(|&value| push_data(&mut bytes, value));
        bytes
    }

    /// Write of an access port register.
    fn write(offset: u8, value: u32) -> Vec<u8> {
        let mut bytes = vec![swd::AP | offset];
        bytes.extend(value.to_le_bytes());
        bytes
    }

    /// Packet that reads the word at an address.
    fn read_at(address: u32) -> Vec<u8> {
        let mut packet = vec![SWD];
        packet.extend(write(TAR, address));
        packet.extend([READ_DRW, READ_RDBUFF]);
        packet
    }

    const TAR: u8 = 4;
    const READ_DRW: u8 = swd::AP | swd::READ | 0xc;
    const READ_RDBUFF: u8 = swd::READ | RDBUFF;

    #[test]
    fn the_root_says_who_it_is() {
        let mut endpoints = endpoints();
        assert_eq!(endpoints.packet(&[ROOT, root::IDENTIFY]).unwrap(), b"\0probe-rs,v01");
        // The divisor comes in two packets.
        assert_eq!(endpoints.packet(&[ROOT, root::SET_DIVISOR, 0x34]), None);
        let answer = endpoints.packet(&[ROOT, 0x12, root::DIVISOR, root::ASSERT_RESET]);
        assert_eq!(answer.unwrap(), [ROOT, 0x34, 0x12]);
        assert!(!endpoints.port.bus().reset_level());
        assert_eq!(endpoints.packet(&[ROOT, root::CLEAR_RESET]), None);
        assert!(endpoints.port.bus().reset_level());
        assert_eq!(endpoints.packet(&[7, 1, 2]), None);
        assert_eq!(endpoints.packet(&[]), None);
    }

    #[test]
    fn access_port_reads_are_posted() {
        let mut endpoints = endpoints();
        let mut packet = vec![SWD];
        packet.extend(write(0, 0x12));
        packet.extend(write(TAR, 0x10));
        packet.extend([READ_DRW, READ_DRW, READ_DRW, READ_RDBUFF]);
        let mut expected = vec![SWD, swd::WRITTEN, swd::WRITTEN];
        expected.extend(&data(&[0, 0x1312_1110, 0x1716_1514, 0x1b1a_1918])[1..]);
        assert_eq!(endpoints.packet(&packet).unwrap(), expected);
        assert_eq!(endpoints.port.bus().accesses, 1);
    }

    #[test]
    fn a_fault_ends_a_batch_and_only_that() {
        let mut endpoints = endpoints();
        let mut expected = vec![SWD, swd::WRITTEN];
        expected.extend(&data(&[0])[1..]);
        expected.push(swd::FAULT);
        assert_eq!(endpoints.packet(&read_at(0x1000)).unwrap(), expected);
        let mut expected = vec![SWD, swd::WRITTEN];
        expected.extend(&data(&[0, 0x1312_1110])[1..]);
        assert_eq!(endpoints.packet(&read_at(0x10)).unwrap(), expected);
    }

    #[test]
    fn a_board_that_is_gone_is_no_fault() {
        let mut endpoints = endpoints();
        endpoints.packet(&read_at(0x1000));
        assert!(!endpoints.is_lost(), "a fault passes");
        endpoints.port.bus().memory.clear();
        endpoints.packet(&read_at(0x1000));
        assert!(endpoints.is_lost());
    }

    proptest! {
        #[test]
        fn any_packets_are_taken_without_harm(
            packets in proptest::collection::vec(
                proptest::collection::vec(prop_oneof![0_u8..0x40, any::<u8>()], 0..40), 0..20),
        ) {
            let mut endpoints = endpoints();
            for packet in packets {
                endpoints.packet(&packet);
                prop_assert!(endpoints.root_rest.len() < WITH_WORD);
                prop_assert!(endpoints.swd_rest.len() < WITH_WORD);
            }
        }

        /// An endpoint is a stream: where its packets are cut makes no difference.
        #[test]
        fn cuts_make_no_difference(
            words in proptest::collection::vec((0_u8..3, 0_u32..16), 1..20),
            cut in 1_usize..60,
        ) {
            let mut stream = Vec::new();
            for (kind, value) in words {
                match kind {
                    0 => stream.extend(write(TAR, value * 4)),
                    1 => stream.extend(write(0xc, value)),
                    _ => stream.push(READ_DRW),
                }
            }
            let answers_to = |pieces: &[&[u8]]| {
                let mut endpoints = endpoints();
                let mut answers = Vec::new();
                for piece in pieces {
                    if let Some(answer) = endpoints.packet(&[&[SWD], *piece].concat()) {
                        answers.extend_from_slice(&answer[1..]);
                    }
                }
                (answers, endpoints.port.bus().memory.clone())
            };
            let (first, second) = stream.split_at(cut.min(stream.len()));
            let (answers, memory) = answers_to(&[&stream]);
            let (cut_answers, cut_memory) = answers_to(&[first, second]);
            prop_assert_eq!(answers, cut_answers);
            prop_assert_eq!(memory, cut_memory);
        }
    }
}
