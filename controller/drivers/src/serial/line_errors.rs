//! What a port's driver has counted, told as transport events.
//!
//! # Design
//! The counters are read when the port is opened, and then whenever it has been read empty:
//! an error comes with a character, which wakes the reader, so no timer is needed, a silent port
//! costs nothing, and the event stands right behind the bytes it is about. One call of the kernel
//! per wake-up is what that costs.

use std::io;
use std::os::fd::BorrowedFd;

use jig_model::protocol::TransportEvent;

use super::tty_ioctl::{Counters, error_counters};

/// How the counters of a port are read.
type Read = Box<dyn FnMut(BorrowedFd<'_>) -> io::Result<Counters> + Send>;

/// Watches the counters of one open port.
pub(super) struct LineErrors {
    /// Nothing where the driver does not count.
    read: Option<Read>,
    before: Counters,
    /// Told behind the overruns of the same look.
    garbled: u64,
}

impl std::fmt::Debug for LineErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineErrors").field("before", &self.before).finish_non_exhaustive()
    }
}

impl LineErrors {
    /// Begins with a port that was just opened: errors counted before that are not reported.
    pub(super) fn of(port: BorrowedFd<'_>) -> Self {
        Self::read_by(Box::new(error_counters), port)
    }

    fn read_by(mut read: Read, port: BorrowedFd<'_>) -> Self {
        let (read, before) = match read(port) {
            Ok(before) => (Some(read), before),
            Err(error) => {
                tracing::debug!(%error, "the port's driver counts no errors");
                (None, Counters::default())
            }
        };
        Self { read, before, garbled: 0 }
    }

    /// Drops the errors counted since the last look: they are not reported.
    pub(super) fn forget(&mut self, port: BorrowedFd<'_>) {
        if let Some(Ok(now)) = self.read.as_mut().map(|read| read(port)) {
            self.before = now;
        }
    }

    /// Looks at the counters; each growth is told once.
    pub(super) fn event(&mut self, port: BorrowedFd<'_>) -> Option<TransportEvent> {
        if self.garbled > 0 {
            return Some(TransportEvent::Garbled(std::mem::take(&mut self.garbled)));
        }
        // One that has gone says so when it is read.
        let now = self.read.as_mut()?(port).ok()?;
        let grown = Growth::between(std::mem::replace(&mut self.before, now), now);
        let overrun = grown.overrun();
        if overrun.is_some() {
            self.garbled = grown.garbled;
            return overrun;
        }
        (grown.garbled > 0).then_some(TransportEvent::Garbled(grown.garbled))
    }
}

/// What came to a port between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Growth {
    /// Overruns of the port: each has cost a character or more.
    overruns: u32,
    /// Characters that the kernel has dropped.
    dropped: u32,
    /// Characters that came with an error.
    garbled: u64,
}

impl Growth {
    fn between(before: Counters, now: Counters) -> Self {
        let (frame, parity) = (grown(before.frame, now.frame), grown(before.parity, now.parity));
        Self {
            overruns: grown(before.overrun, now.overrun),
            dropped: grown(before.buf_overrun, now.buf_overrun),
            garbled: u64::from(frame) + u64::from(parity),
        }
    }

    /// Tells of lost characters, and how many where only the kernel has lost some.
    fn overrun(self) -> Option<TransportEvent> {
        match (self.overruns, self.dropped) {
            (0, 0) => None,
            (0, dropped) => Some(TransportEvent::Overrun(Some(dropped.into()))),
            _ => Some(TransportEvent::Overrun(None)),
        }
    }
}

/// Returns how far a counter has come. One that went back was begun anew.
fn grown(before: u32, now: u32) -> u32 {
    let more = now.wrapping_sub(before);
    if more <= i32::MAX.cast_unsigned() { more } else { now }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::sync::{Arc, Mutex};

    use proptest::prelude::*;

    use super::*;

    /// A port whose counters a test sets.
    struct Port {
        counters: Arc<Mutex<Counters>>,
        file: std::fs::File,
        errors: LineErrors,
    }

    impl Port {
        fn with(counters: Counters) -> Self {
            let counters = Arc::new(Mutex::new(counters));
            let (seen, file) = (Arc::clone(&counters), tempfile::tempfile().unwrap());
            let read = Box::new(move |_: BorrowedFd<'_>| Ok(*seen.lock().unwrap()));
            let errors = LineErrors::read_by(read, file.as_fd());
            Self { counters, file, errors }
        }

        fn count(&self, change: impl FnOnce(&mut Counters)) {
            change(&mut self.counters.lock().unwrap());
        }

        fn event(&mut self) -> Option<TransportEvent> {
            self.errors.event(self.file.as_fd())
        }
    }

    #[test]
    fn each_growth_is_told_once_and_what_was_before_never() {
        let before = Counters { overrun: 7, buf_overrun: 7, frame: 7, parity: 7 };
        let mut port = Port::with(before);
        assert_eq!(port.event(), None);
        port.count(|c| c.buf_overrun += 3);
        assert_eq!(port.event(), Some(TransportEvent::Overrun(Some(3))));
        assert_eq!(port.event(), None);
        port.count(|c| (c.overrun, c.buf_overrun) = (c.overrun + 1, c.buf_overrun + 1));
        assert_eq!(port.event(), Some(TransportEvent::Overrun(None)), "at least two, nobody knows");
        port.count(|c| (c.frame, c.parity) = (c.frame + 2, c.parity + 1));
        assert_eq!(port.event(), Some(TransportEvent::Garbled(3)));
        port.count(|c| (c.frame, c.overrun) = (c.frame + 1, c.overrun + 1));
        assert_eq!(port.event(), Some(TransportEvent::Overrun(None)));
        assert_eq!(port.event(), Some(TransportEvent::Garbled(1)));
        assert_eq!(port.event(), None);
    }

    #[test]
    fn what_is_forgotten_is_not_told() {
        let mut port = Port::with(Counters::default());
        port.count(|c| c.overrun = 5);
        port.errors.forget(port.file.as_fd());
        assert_eq!(port.event(), None);
        port.count(|c| c.overrun = 6);
        assert_eq!(port.event(), Some(TransportEvent::Overrun(None)));
    }

    #[test]
    fn a_driver_that_does_not_count_is_asked_once() {
        let asked = Arc::new(Mutex::new(0));
        let count = Arc::clone(&asked);
        let read = move |_: BorrowedFd<'_>| {
            *count.lock().unwrap() += 1;
            Err(io::Error::from_raw_os_error(nix::libc::ENOTTY))
        };
        let file = tempfile::tempfile().unwrap();
        let mut errors = LineErrors::read_by(Box::new(read), file.as_fd());
        assert_eq!(errors.event(file.as_fd()), None);
        assert_eq!(errors.event(file.as_fd()), None);
        assert_eq!(*asked.lock().unwrap(), 1);
    }

    proptest! {
        #[test]
        fn a_counter_counts_round(before: u32, more in 0..=i32::MAX.cast_unsigned()) {
            prop_assert_eq!(grown(before, before.wrapping_add(more)), more);
        }

        #[test]
        fn no_two_looks_are_a_panic(a: [u32; 4], b: [u32; 4]) {
            let of = |[overrun, buf_overrun, frame, parity]: [u32; 4]| {
                Counters { overrun, buf_overrun, frame, parity }
            };
            let grown = Growth::between(of(a), of(b));
            prop_assert_eq!(grown.overrun().is_some(), a[..2] != b[..2]);
            prop_assert_eq!(grown.garbled > 0, a[2..] != b[2..]);
        }
    }
}
