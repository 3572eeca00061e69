//! Shows console logs while they grow.
//!
//! Each log is followed by a thread of its own, so a terminal that is slow or stopped holds up
//! nothing but itself. A log is a file that another part of the program, or another process,
//! appends to.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use jig_model::ConsoleName;

/// Bytes shown at once.
const STRIDE: usize = 16 << 10;

/// Pause before a log is looked at again: an answer seems immediate below some 50 ms.
const PAUSE: Duration = Duration::from_millis(20);

/// Shows what a log holds.
pub(crate) trait LogPrinter: Send + 'static {
    /// Shows bytes.
    ///
    /// # Errors
    /// The reader has gone; the log is not shown any further.
    fn print(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Shows what is left when the log has ended.
    fn finish(&mut self) {}
}

/// The logs that are shown now.
#[derive(Default)]
pub(crate) struct LogViews(Mutex<BTreeMap<ConsoleName, View>>);

struct View {
    end: Arc<LogEnd>,
    thread: JoinHandle<()>,
}

/// Whether a log has ended.
#[derive(Default)]
struct LogEnd(Mutex<bool>, Condvar);

impl LogEnd {
    fn set(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.1.notify_all();
    }

    fn is_set(&self) -> bool {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self) {
        let ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !*ended {
            drop(self.1.wait_timeout(ended, PAUSE));
        }
    }
}

impl LogViews {
    /// Begins to show a log of a console, once an earlier one of it has been shown to its end.
    pub(crate) fn show(&self, console: &ConsoleName, log: &Path, mut printer: impl LogPrinter) {
        let mut views = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = views.remove(console);
        let end = Arc::new(LogEnd::default());
        let (ends, log, name) = (Arc::clone(&end), log.to_owned(), console.clone());
        let thread = std::thread::Builder::new().name("jig-view".to_owned()).spawn(move || {
            join(before);
            if let Err(error) = follow(&log, &ends, &mut printer) {
                tracing::warn!(console = %name, %error, "console not shown any further");
            }
            printer.finish();
        });
        if let Ok(thread) = thread {
            views.insert(console.clone(), View { end, thread });
        }
    }

    /// Waits until everything has been shown. The logs have ended.
    pub(crate) fn finish(&self) {
        let views = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for view in views.into_values() {
            join(Some(view));
        }
    }
}

fn join(view: Option<View>) {
    if let Some(View { end, thread }) = view {
        end.set();
        // A view that panicked has shown what it could.
        let _ = thread.join();
    }
}

/// Shows a log until it has ended or its reader has gone.
fn follow(path: &Path, end: &LogEnd, printer: &mut impl LogPrinter) -> io::Result<()> {
    let mut log = File::open(path)?;
    let mut buf = vec![0; STRIDE];
    loop {
        // Asked first: what was written before the end is read behind it.
        let ended = end.is_set();
        match log.read(&mut buf) {
            Ok(0) if ended => return Ok(()),
            Ok(0) => end.wait(),
            Ok(len) if printer.print(&buf[..len]).is_err() => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::mpsc;

    use super::*;

    struct Sent(mpsc::Sender<Vec<u8>>);

    impl LogPrinter for Sent {
        fn print(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.0.send(bytes.to_vec()).map_err(io::Error::other)
        }

        fn finish(&mut self) {
            let _ = self.0.send(b"end".to_vec());
        }
    }

    #[test]
    fn all_of_a_log_is_shown_before_the_next_one_of_its_console() {
        let folder = tempfile::tempdir().unwrap();
        let (sender, shown) = mpsc::channel();
        let (views, console) = (LogViews::default(), "uart0".parse().unwrap());
        let log = |name: &str| {
            (folder.path().join(name), File::create(folder.path().join(name)).unwrap())
        };
        let ((first, mut file), (second, mut next)) = (log("1"), log("2"));
        views.show(&console, &first, Sent(sender.clone()));
        file.write_all(b"one").unwrap();
        assert_eq!(shown.recv().unwrap(), b"one");
        file.write_all(b"two").unwrap();
        next.write_all(b"three").unwrap();
        views.show(&console, &second, Sent(sender));
        views.finish();
        let all: Vec<_> = shown.iter().collect();
        assert_eq!(all, [&b"two"[..], b"end", b"three", b"end"]);
    }
}
