//! One thread as an operating system knows it, and the memory that tells of it.

use super::saved::SavedRegisters;
use crate::debug_info::{KnownMemory, Layouts};

/// Most threads that are listed.
pub(super) const MAX_THREADS: usize = 64;

/// Longest name of a thread in bytes; the systems' own limits are 16 and 32.
const MAX_NAME: u32 = 32;

/// A thread as an operating system knows it.
#[derive(Debug)]
pub(super) struct ThreadEntry {
    pub(super) name: String,
    pub(super) state: &'static str,
    /// Where its registers are; nothing for the one that the core executes.
    pub(super) saved: Option<SavedRegisters>,
}

/// State of a thread that waits for something, as opposed to one that could run.
pub(crate) const WAITING: &str = "waits";
pub(super) const RUNNING: &str = "runs";
pub(super) const READY: &str = "ready";
pub(super) const DELAYED: &str = "delayed";
pub(super) const SUSPENDED: &str = "suspended";

/// What the walk through threads reads.
pub(super) struct ThreadMemory<'a> {
    pub(super) layouts: &'a Layouts,
    pub(super) memory: KnownMemory<'a>,
}

impl ThreadMemory<'_> {
    pub(super) fn word(&self, address: u32) -> Option<u32> {
        self.memory.word(address)
    }

    /// Reads a member of one word.
    pub(super) fn member(&self, at: u32, structure: &str, member: &str) -> Option<u32> {
        self.word(at.checked_add(self.layouts.offset(structure, member)?)?)
    }

    /// Reads a member of one byte.
    pub(super) fn byte(&self, at: u32, structure: &str, member: &str) -> Option<u8> {
        self.memory.byte(at.checked_add(self.layouts.offset(structure, member)?)?)
    }

    /// Reads text that ends with a zero. It comes from the target: what cannot be shown is not.
    pub(super) fn text(&self, at: u32) -> Option<String> {
        let bytes = (0..MAX_NAME).map_while(|offset| {
            let byte = self.memory.byte(at.checked_add(offset)?)?;
            (byte != 0).then_some(byte)
        });
        let text: String = bytes
            .map(
                |byte| if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '?' },
            )
            .collect();
        (!text.is_empty()).then_some(text)
    }
}
