//! The protocol of probe-rs' applet for the Glasgow interface explorer: the one protocol by which
//! published probe-rs reaches a probe behind a socket.
//!
//! Packets are framed by [`cobs`]; the first byte names an endpoint. An endpoint sees a stream: a
//! command may come in two packets.

pub(crate) mod cobs;

/// What a probe says it is.
pub(crate) const IDENTIFIER: &[u8] = b"probe-rs,v01";

/// First bytes of packets.
pub(crate) const ROOT: u8 = 0;
pub(crate) const SWD: u8 = 1;

/// Commands of the root endpoint.
pub(crate) mod root {
    pub(crate) const IDENTIFY: u8 = 0x00;
    pub(crate) const REFERENCE_CLOCK: u8 = 0x10;
    pub(crate) const DIVISOR: u8 = 0x11;
    pub(crate) const SET_DIVISOR: u8 = 0x12;
    pub(crate) const ASSERT_RESET: u8 = 0x20;
    pub(crate) const CLEAR_RESET: u8 = 0x21;
}

/// Commands and answers of the SWD endpoint.
pub(crate) mod swd {
    /// A line sequence: its length in the low bits, four bytes follow.
    pub(crate) const SEQUENCE: u8 = 0x20;
    pub(crate) const AP: u8 = 1;
    pub(crate) const READ: u8 = 1 << 1;
    pub(crate) const OFFSET: u8 = 0xc;
    /// Answers: read done, written, busy, fault.
    pub(crate) const DATA: u8 = 0x01;
    pub(crate) const WRITTEN: u8 = 0x11;
    pub(crate) const WAIT: u8 = 0x12;
    pub(crate) const FAULT: u8 = 0x14;
}

/// Debug port register that repeats the last access port read.
pub(crate) const RDBUFF: u8 = 0xc;
