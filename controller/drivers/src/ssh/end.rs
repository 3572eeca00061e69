//! How a far side's program ended, and the last of what it printed to standard error.

use std::collections::VecDeque;

use super::error::SshError;

/// Most bytes of standard error that are kept: the last ones.
const MOST: usize = 64 << 10;

/// The code by which a shell says that there is no such program.
const NOT_FOUND: i32 = 127;

/// How the program on the far side ended.
#[derive(Debug, Clone)]
pub enum SshEnding {
    /// It ended by itself with this code.
    Exited(i32),
    /// This signal ended it.
    Signalled(String),
    /// The connection was lost before the end was known.
    Lost(SshError),
}

/// The end of a pipe.
#[derive(Debug, Clone)]
pub struct SshEnd {
    /// How the program ended.
    pub ending: SshEnding,
    /// The last lines that the far side printed to standard error, 64 KiB at most.
    pub stderr: String,
    /// Bytes that came from the far side.
    pub received: u64,
    /// Host and port.
    pub(super) at: String,
    /// The program.
    pub(super) program: String,
}

impl SshEnd {
    /// Tells whether the program ended well.
    ///
    /// # Errors
    /// It did not; the error has what it printed.
    pub fn result(&self) -> Result<(), SshError> {
        let (at, program) = (self.at.clone(), self.program.clone());
        let stderr = self.stderr.clone();
        let how = match &self.ending {
            SshEnding::Exited(0) => return Ok(()),
            SshEnding::Exited(NOT_FOUND) if self.received == 0 => {
                return Err(SshError::NoProgram { at, program, stderr });
            }
            SshEnding::Exited(code) => format!("ended with code {code}"),
            SshEnding::Signalled(signal) => format!("was ended by {signal}"),
            SshEnding::Lost(error) => return Err(error.clone()),
        };
        Err(SshError::Ended { at, program, how, stderr })
    }
}

/// The last bytes of a text, from the beginning of a line on.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: VecDeque<u8>,
    is_cut: bool,
}

impl Tail {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let surplus = self.bytes.len().saturating_sub(MOST);
        self.is_cut |= surplus > 0;
        self.bytes.drain(..surplus);
    }

    pub(super) fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        // A line without its beginning is left out, unless it is all there is.
        let from = match bytes.iter().position(|&byte| byte == b'\n') {
            Some(end) if self.is_cut && end + 1 < bytes.len() => end + 1,
            _ => 0,
        };
        String::from_utf8_lossy(&bytes[from..]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_lines_are_kept() {
        let mut tail = Tail::default();
        tail.add(b"first\n");
        assert_eq!(tail.text(), "first\n");
        for number in 0..20_000 {
            tail.add(format!("line {number}\n").as_bytes());
        }
        let text = tail.text();
        assert!(text.len() <= MOST && text.starts_with("line "), "{}", text.len());
        assert!(text.ends_with("line 19999\n"));
    }
}
