//! A file that grows while it is read.
//!
//! # Design
//! *Looks, not notices.* inotify tells nothing on network file systems, and its watches are few. A look at a
//! file that has not grown costs a system call; looks follow each other closely behind news, and then
//! ever more slowly.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use tokio::time::sleep;

use crate::protocol::MOST_CHUNK;

/// Pauses between looks at something that grows.
#[derive(Debug, Clone)]
pub(crate) struct LookPauses {
    shortest: Duration,
    longest: Duration,
    next: Duration,
}

impl LookPauses {
    /// For one file: short for the answer to a command that takes some milliseconds, long for one that
    /// takes minutes.
    pub(crate) const OF_FILE: Self = Self::new(1, 20);

    /// For the files of a run, which are looked for in its folders each time.
    pub(crate) const OF_RUN: Self = Self::new(2, 50);

    const fn new(shortest_ms: u64, longest_ms: u64) -> Self {
        let shortest = Duration::from_millis(shortest_ms);
        Self { shortest, longest: Duration::from_millis(longest_ms), next: shortest }
    }

    /// Begins with the shortest pause again: there was news.
    pub(crate) fn news(&mut self) {
        self.next = self.shortest;
    }

    /// Waits for the next look. Cancel-safe.
    pub(crate) async fn wait(&mut self) {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        sleep(pause).await;
    }
}

/// A file that is read as it grows, by position.
#[derive(Debug)]
pub(crate) struct GrowingFile {
    file: File,
    offset: u64,
    pauses: LookPauses,
}

impl GrowingFile {
    /// Reads a file from an offset on.
    pub(crate) fn new(file: File, offset: u64) -> Self {
        Self { file, offset, pauses: LookPauses::OF_FILE }
    }

    /// Returns the position of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads what there is by now, [`MOST_CHUNK`] bytes at most.
    pub(crate) fn read_on(&mut self) -> io::Result<Vec<u8>> {
        let bytes = read_at(&self.file, self.offset)?;
        self.offset = self.offset.saturating_add(u64::try_from(bytes.len()).unwrap_or(0));
        Ok(bytes)
    }

    /// Looks again soon: something has happened.
    pub(crate) fn look_soon(&mut self) {
        self.pauses.news();
    }

    /// Waits for the next bytes; none once all is read that was written while `grows` was true.
    /// Cancel-safe.
    pub(crate) async fn next(&mut self, grows: impl Fn() -> bool) -> io::Result<Option<Vec<u8>>> {
        loop {
            // Asked first: what was written before the end is read behind it.
            let growing = grows();
            let bytes = self.read_on()?;
            if !bytes.is_empty() {
                self.pauses.news();
                return Ok(Some(bytes));
            }
            if !growing {
                return Ok(None);
            }
            self.pauses.wait().await;
        }
    }
}

/// Reads bytes of a file from an offset on, [`MOST_CHUNK`] at most; none at its end.
pub(crate) fn read_at(file: &File, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MOST_CHUNK).unwrap_or(u64::MAX);
    AtOffset { file, offset }.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A reader with a position of its own.
struct AtOffset<'a> {
    file: &'a File,
    offset: u64,
}

impl io::Read for AtOffset<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read_at(buf, self.offset)?;
        self.offset = self.offset.saturating_add(u64::try_from(len).unwrap_or(0));
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_written_before_the_end_is_read_behind_it() {
        let mut writer = tempfile::NamedTempFile::new().unwrap();
        writer.write_all(b"...one").unwrap();
        let mut file = GrowingFile::new(writer.reopen().unwrap(), 3);
        let looks = Cell::new(0);
        // The last bytes are written while the question whether there is more to come is answered.
        let write = |bytes: &[u8]| writer.as_file().write_all_at(bytes, 6).unwrap();
        let grows = || {
            looks.set(looks.get() + 1);
            if looks.get() == 4 {
                write(b" and two");
            }
            looks.get() < 4
        };
        assert_eq!(file.next(grows).await.unwrap().unwrap(), b"one");
        assert_eq!(file.next(grows).await.unwrap().unwrap(), b" and two");
        assert_eq!((file.next(grows).await.unwrap(), file.offset()), (None, 14));
    }

    #[tokio::test(start_paused = true)]
    async fn looks_become_rarer_until_there_is_news() {
        let (mut pauses, began) = (LookPauses::OF_FILE, tokio::time::Instant::now());
        let mut took = Vec::new();
        for round in 0..8 {
            if round == 7 {
                pauses.news();
            }
            pauses.wait().await;
            took.push(began.elapsed().as_millis());
        }
        assert_eq!(took, [1, 3, 7, 15, 31, 51, 71, 72]);
    }

    #[test]
    fn a_piece_has_a_limit() {
        let mut writer = tempfile::NamedTempFile::new().unwrap();
        writer.write_all(&vec![7; MOST_CHUNK + 1]).unwrap();
        let mut file = GrowingFile::new(writer.reopen().unwrap(), 0);
        let lens = [(); 3].map(|()| file.read_on().unwrap().len());
        assert_eq!(lens, [MOST_CHUNK, 1, 0]);
    }
}
