//! Time as the console sees it: handed in, never read from the system here.

/// A moment on both clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Nanoseconds on the monotonic clock, since an origin the clock's owner chose.
    pub mono_ns: u64,
    /// Nanoseconds since the Unix epoch; jumps when the clock is set.
    pub wall_ns: i64,
}

/// Held while bytes are on their way to the disk.
pub type UnderWay = Box<dyn Send>;

/// Tells the time.
pub trait ConsoleClock: Send + Sync + 'static {
    /// Returns the moment of the call.
    fn stamp(&self) -> Stamp;

    /// Called when bytes are on their way to the disk. Dropping the guard means that they are in
    /// the log, and that tasks waiting for them were woken.
    ///
    /// The disk thread is no task, so a virtual clock, which advances when no task is ready, must
    /// stop meanwhile. A real clock ignores the call.
    fn under_way(&self) -> Option<UnderWay> {
        None
    }
}

impl<F: Fn() -> Stamp + Send + Sync + 'static> ConsoleClock for F {
    fn stamp(&self) -> Stamp {
        self()
    }
}
