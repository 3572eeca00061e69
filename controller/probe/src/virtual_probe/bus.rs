//! What a memory access port sees of a board.

pub(crate) use jig_drivers::qemu::debug::Access;

/// Says why the bus did not do as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BusError {
    /// The bus answered with an error; the next access may work.
    #[error("the bus answered with a fault")]
    Fault,
    /// The board is gone and stays gone.
    #[error("the virtual board is lost: {0}")]
    Lost(String),
}

/// A board's bus, and the one pin beside it.
pub(crate) trait Bus {
    /// Reads consecutive values of one width; `out` holds a whole number of them.
    fn read(&mut self, address: u32, access: Access, out: &mut [u8]) -> Result<(), BusError>;
    /// Writes consecutive values of one width; `bytes` holds a whole number of them.
    fn write(&mut self, address: u32, access: Access, bytes: &[u8]) -> Result<(), BusError>;
    /// Drives the reset pin: false holds the board in reset.
    fn drive_reset(&mut self, level: bool) -> Result<(), BusError>;
    /// Returns the level of the reset pin.
    fn reset_level(&self) -> bool;
}
