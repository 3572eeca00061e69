//! Waits for what happens to a file (inotify(7)).

use std::io;
use std::path::Path;
use std::task::{Context, Poll, ready};
use std::thread;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::Interest;

use crate::descriptor::Descriptor;

/// Room for a few events without a name: 16 bytes each (inotify(7)).
const ROOM: usize = 512;

/// A watch of one file.
///
/// The kernel closes one only when all processors have passed a certain point: 13 ms on an idle host and
/// 400 ms on a busy one when measured. So a thread of its own does that.
#[derive(Debug)]
pub(crate) struct FileWatch(Option<Descriptor>);

impl FileWatch {
    /// Watches a file. Call within a tokio runtime that has I/O enabled.
    pub(crate) fn of(path: &Path, what: WatchFlags) -> io::Result<Self> {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        inotify::add_watch(&events, path, what)?;
        Ok(Self(Some(Descriptor::new(events, Interest::READABLE)?)))
    }

    /// Ready when it has happened since the last look.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let Some(events) = &mut self.0 else { return Poll::Ready(Err(ended())) };
        let mut room = [0; ROOM];
        match ready!(events.poll_read(cx, &mut room)) {
            Ok(0) => Poll::Ready(Err(ended())),
            Ok(_) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        let events = self.0.take();
        let closes = thread::Builder::new().name("jig-close".to_owned());
        // Without a thread it is closed here.
        let _ = closes.spawn(move || drop(events));
    }
}
