//! Telnet (RFC 854) with control of a serial port (RFC 2217), the client's side. Pure.
//!
//! Whatever the server says, what is kept is bounded: an option is refused once, and a
//! sub-negotiation longer than any that means something is cut.

use jig_model::protocol::LineControl;

const IAC: u8 = 255;
const DONT: u8 = 254;
const DO: u8 = 253;
const WONT: u8 = 252;
const WILL: u8 = 251;
const SB: u8 = 250;
const SE: u8 = 240;

/// Options: eight bits as they are (RFC 856), no go-ahead (RFC 858), the port (RFC 2217).
const BINARY: u8 = 0;
const NO_GO_AHEAD: u8 = 3;
const COM_PORT: u8 = 44;

/// Commands to the port (RFC 2217, 3); the server's answer is 100 more.
const SET_BAUDRATE: u8 = 1;
const SET_DATASIZE: u8 = 2;
const SET_PARITY: u8 = 3;
const SET_STOPSIZE: u8 = 4;
const SET_CONTROL: u8 = 5;
const SET_LINESTATE_MASK: u8 = 10;
const ANSWER: u8 = 100;
const NOTIFY_LINESTATE: u8 = 106;
const FLOW_SUSPEND: u8 = 108;
const FLOW_RESUME: u8 = 109;

/// Bits of the line's state: the receiver had no room; a character came with a wrong parity or
/// stop bit.
const OVERRUN: u8 = 2;
const GARBLED: u8 = 4 | 8;

/// The longest sub-negotiation that is understood has seven bytes.
const MOST_SUB: usize = 64;

/// What a server has said beside the port's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TelnetSaid {
    /// It lets the port be controlled.
    Controls,
    /// It does not do what a console needs.
    Refuses(&'static str),
    /// The port has this speed now, in bits per second.
    Baud(u32),
    /// The port's receiver had no room, or got a character that may be another.
    Errors {
        /// It had no room.
        overrun: bool,
        /// It got such a character.
        garbled: bool,
    },
    /// Nothing may be sent (or again may).
    Suspended(bool),
}

#[derive(Debug, Default)]
enum TelnetState {
    #[default]
    Data,
    Command,
    Option(u8),
    Sub,
    SubCommand,
}

/// Takes a server's bytes apart.
#[derive(Debug, Default)]
pub(super) struct Telnet {
    state: TelnetState,
    sub: Vec<u8>,
    /// What was refused: `DO` and `WILL` of each option.
    refused: Vec<(u8, u8)>,
}

/// Returns what a client says first.
pub(super) fn hello() -> Vec<u8> {
    let wishes =
        [(WILL, COM_PORT), (DO, BINARY), (WILL, BINARY), (DO, NO_GO_AHEAD), (WILL, NO_GO_AHEAD)];
    wishes.into_iter().flat_map(|(verb, option)| [IAC, verb, option]).collect()
}

/// Returns what sets up a port: its speed, 8N1, and that errors are to be told. Modem lines
/// are not spoken of.
pub(super) fn set_up(baud: u32) -> Vec<u8> {
    let mut bytes = command(SET_BAUDRATE, &baud.to_be_bytes());
    let errors = OVERRUN | GARBLED;
    for (what, value) in
        [(SET_DATASIZE, 8), (SET_PARITY, 1), (SET_STOPSIZE, 1), (SET_LINESTATE_MASK, errors)]
    {
        bytes.extend(command(what, &[value]));
    }
    bytes
}

/// Returns what does something to the line. A break begins with it, and ends with
/// [`end_of_break`].
pub(super) fn control(what: LineControl) -> Vec<u8> {
    let value = match what {
        LineControl::Break => 5,
        LineControl::Dtr(true) => 8,
        LineControl::Dtr(false) => 9,
        LineControl::Rts(true) => 11,
        LineControl::Rts(false) => 12,
    };
    command(SET_CONTROL, &[value])
}

/// Returns what ends a break.
pub(super) fn end_of_break() -> Vec<u8> {
    command(SET_CONTROL, &[6])
}

fn command(what: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![IAC, SB, COM_PORT, what];
    escape(value, &mut bytes);
    bytes.extend([IAC, SE]);
    bytes
}

/// Writes bytes of the port so that none is taken for a command.
pub(super) fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.push(byte);
        if byte == IAC {
            out.push(IAC);
        }
    }
}

impl Telnet {
    /// Takes bytes of the server: those of the port go to `port`, what has to be answered to
    /// `answer`.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        port: &mut Vec<u8>,
        answer: &mut Vec<u8>,
        said: &mut Vec<TelnetSaid>,
    ) {
        for &byte in bytes {
            self.state = match (std::mem::take(&mut self.state), byte) {
                (TelnetState::Data, IAC) => TelnetState::Command,
                (TelnetState::Data, byte) => {
                    port.push(byte);
                    TelnetState::Data
                }
                (TelnetState::Command, IAC) => {
                    port.push(IAC);
                    TelnetState::Data
                }
                (TelnetState::Command, verb @ (DO | DONT | WILL | WONT)) => {
                    TelnetState::Option(verb)
                }
                (TelnetState::Command, SB) => {
                    self.sub.clear();
                    TelnetState::Sub
                }
                // Breaks, attention and the like mean nothing to a client.
                (TelnetState::Command, _) => TelnetState::Data,
                (TelnetState::Option(verb), option) => {
                    self.option(verb, option, answer, said);
                    TelnetState::Data
                }
                (TelnetState::Sub, IAC) => TelnetState::SubCommand,
                (TelnetState::Sub, byte) | (TelnetState::SubCommand, byte @ IAC) => {
                    if self.sub.len() < MOST_SUB {
                        self.sub.push(byte);
                    }
                    TelnetState::Sub
                }
                (TelnetState::SubCommand, SE) => {
                    said.extend(self.told());
                    TelnetState::Data
                }
                (TelnetState::SubCommand, _) => TelnetState::Sub,
            };
        }
    }

    fn option(&mut self, verb: u8, option: u8, answer: &mut Vec<u8>, said: &mut Vec<TelnetSaid>) {
        match (verb, option) {
            (DO, COM_PORT) => said.push(TelnetSaid::Controls),
            (DONT, COM_PORT) => said.push(TelnetSaid::Refuses("does not speak RFC 2217")),
            (DONT | WONT, BINARY) => {
                said.push(TelnetSaid::Refuses("does not pass bytes on as they are"));
            }
            // Each was asked for, so this is the answer; a server may announce its own part.
            (DO | WILL, BINARY | NO_GO_AHEAD) | (WILL, COM_PORT) | (DONT | WONT, _) => {}
            (verb, option) => {
                if !self.refused.contains(&(verb, option)) {
                    self.refused.push((verb, option));
                    answer.extend([IAC, if verb == DO { WONT } else { DONT }, option]);
                }
            }
        }
    }

    fn told(&self) -> Option<TelnetSaid> {
        Some(match self.sub[..] {
            [COM_PORT, what, a, b, c, d] if what == SET_BAUDRATE + ANSWER => {
                TelnetSaid::Baud(u32::from_be_bytes([a, b, c, d]))
            }
            [COM_PORT, NOTIFY_LINESTATE, state] if state & (OVERRUN | GARBLED) != 0 => {
                TelnetSaid::Errors { overrun: state & OVERRUN != 0, garbled: state & GARBLED != 0 }
            }
            [COM_PORT, FLOW_SUSPEND] => TelnetSaid::Suspended(true),
            [COM_PORT, FLOW_RESUME] => TelnetSaid::Suspended(false),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Feeds bytes in pieces of a size; returns the port's bytes, the answer and what was said.
    fn fed(bytes: &[u8], size: usize) -> (Vec<u8>, Vec<u8>, Vec<TelnetSaid>) {
        let (mut port, mut answer, mut said) = (Vec::new(), Vec::new(), Vec::new());
        let mut telnet = Telnet::default();
        for piece in bytes.chunks(size) {
            telnet.feed(piece, &mut port, &mut answer, &mut said);
        }
        (port, answer, said)
    }

    #[test]
    fn bytes_and_commands_are_told_apart_however_they_are_cut() {
        let mut bytes = b"a\r\n\xff\xffb".to_vec();
        bytes.extend([
            IAC, DO, COM_PORT, IAC, WILL, BINARY, IAC, WILL, 1, IAC, WILL, 1, IAC, DO, 24,
        ]);
        // 65280 baud has a byte that must be doubled.
        bytes.extend([IAC, SB, COM_PORT, 101, 0, 0, IAC, IAC, 0, IAC, SE]);
        bytes
            .extend([IAC, SB, COM_PORT, 106, 0x60, IAC, SE, IAC, SB, COM_PORT, 106, 0x62, IAC, SE]);
        bytes.extend([
            IAC, 241, b'c', IAC, SB, COM_PORT, 108, IAC, SE, IAC, SB, COM_PORT, 109, IAC, SE,
        ]);
        bytes.extend([IAC, DONT, COM_PORT, IAC, WONT, BINARY]);
        for size in 1..bytes.len() {
            let (port, answer, said) = fed(&bytes, size);
            assert_eq!(port, b"a\r\n\xffbc");
            assert_eq!(answer, [IAC, DONT, 1, IAC, WONT, 24]);
            assert_eq!(
                said[..3],
                [
                    TelnetSaid::Controls,
                    TelnetSaid::Baud(65_280),
                    TelnetSaid::Errors { overrun: true, garbled: false }
                ]
            );
            assert_eq!(said[3..5], [TelnetSaid::Suspended(true), TelnetSaid::Suspended(false)]);
            assert!(
                matches!(said[5..], [TelnetSaid::Refuses(_), TelnetSaid::Refuses(_)]),
                "{said:?}"
            );
        }
    }

    #[test]
    fn what_is_sent_is_escaped() {
        let mut out = Vec::new();
        escape(b"\xff\0\xff", &mut out);
        assert_eq!(out, b"\xff\xff\0\xff\xff");
        let set_up = set_up(65_280);
        assert_eq!(set_up[..11], [IAC, SB, COM_PORT, 1, 0, 0, IAC, IAC, 0, IAC, SE]);
        // No command to the modem lines.
        assert!(!set_up.windows(3).any(|three| three == [SB, COM_PORT, 5]));
        assert_eq!(fed(&hello(), 1).2, []);
    }

    /// Bytes of which many are commands.
    fn transport() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(IAC), 240..=254_u8, Just(COM_PORT), 100..=110_u8, any::<u8>()];
        proptest::collection::vec(byte, 0..80)
    }

    proptest! {
        #[test]
        fn whatever_a_server_sends_means_the_same_however_it_is_cut(bytes in transport(), size in 1..9_usize) {
            prop_assert_eq!(fed(&bytes, size), fed(&bytes, usize::MAX));
        }

        #[test]
        fn what_is_escaped_comes_out_as_it_was(bytes in transport(), size in 1..9_usize) {
            let mut escaped = Vec::new();
            escape(&bytes, &mut escaped);
            prop_assert_eq!(fed(&escaped, size), (bytes, Vec::new(), Vec::new()));
        }
    }

    #[test]
    fn a_hostile_server_takes_no_memory() {
        let mut telnet = Telnet::default();
        let (mut port, mut answer, mut said) = (Vec::new(), Vec::new(), Vec::new());
        telnet.feed(&[IAC, SB], &mut port, &mut answer, &mut said);
        telnet.feed(&[b'x'; 1 << 16], &mut port, &mut answer, &mut said);
        assert!(telnet.sub.len() == MOST_SUB && port.is_empty());
        telnet.feed(&[IAC, SE], &mut port, &mut answer, &mut said);
        for round in 0..=u16::MAX {
            let option = round.to_be_bytes()[1];
            telnet.feed(&[IAC, WILL, option], &mut port, &mut answer, &mut said);
        }
        assert!(telnet.refused.len() <= 256 && answer.len() <= 3 * 256);
        assert!(said.is_empty() && port.is_empty());
    }
}
