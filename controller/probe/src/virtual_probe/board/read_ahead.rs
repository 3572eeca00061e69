//! Memory of a machine that stands, read before it is asked for.

/// Memory that was read while the machine stood. It holds until a debugger writes or the core
/// moves: no timer and no device of a machine that stands goes on either.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    pub(super) start: u32,
    pub(super) bytes: Vec<u8>,
}

impl ReadAhead {
    /// Forgets what was read.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Copies what lies at an address; false if not all of it was read.
    pub(super) fn get(&self, address: u32, out: &mut [u8]) -> bool {
        let found = address
            .checked_sub(self.start)
            .and_then(|from| self.bytes.get(from as usize..)?.get(..out.len()));
        found.map(|bytes| out.copy_from_slice(bytes)).is_some()
    }
}
