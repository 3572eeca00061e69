//! Time as the console sees it: handed in, never read from the system here.

/// A moment on both clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Nanoseconds on the monotonic clock, since an origin the clock's owner chose.
    pub mono_ns: u64,
    /// Nanoseconds since the Unix epoch; may jump when somebody sets the clock.
    pub wall_ns: i64,
}

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// Returns the moment of the call.
    fn stamp(&self) -> Stamp;
}

impl<F: Fn() -> Stamp + Send + Sync + 'static> Clock for F {
    fn stamp(&self) -> Stamp {
        self()
    }
}
