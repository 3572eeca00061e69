//! Time as the console sees it: handed in, never read from the system here.

/// A moment on both clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Nanoseconds on the monotonic clock, since an origin the clock's owner chose.
    pub mono_ns: u64,
    /// Nanoseconds since the Unix epoch; may jump when somebody sets the clock.
    pub wall_ns: i64,
}

/// Held while bytes are on their way to the disk.
pub type UnderWay = Box<dyn Send>;

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// Returns the moment of the call.
    fn stamp(&self) -> Stamp;

    /// Is told that bytes are on their way to the disk, until the guard is dropped: then
    /// they are in the log, and whoever waits for them was woken.
    ///
    /// A thread of its own carries them, and an ordinary clock goes on meanwhile. One that
    /// leaps as soon as a runtime has nothing to do, as in tests, must stand still.
    fn under_way(&self) -> Option<UnderWay> {
        None
    }
}

impl<F: Fn() -> Stamp + Send + Sync + 'static> Clock for F {
    fn stamp(&self) -> Stamp {
        self()
    }
}
