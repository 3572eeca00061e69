//! Lines of bounded length.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};

/// Longest line in bytes, its end included: a command of the longest kind, within its message.
pub const MOST_LINE: usize = (2 << 20) + (64 << 10);

/// Says why no line could be read.
#[derive(Debug, thiserror::Error)]
pub enum LineReadError {
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The line is too long.
    #[error("a line of more than {MOST_LINE} bytes")]
    TooLong,
    /// The connection ended within a line.
    #[error("the connection ended within a line")]
    Torn,
}

/// Reads lines.
pub struct LineReader<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads lines of `from`.
    pub fn new(from: R) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, from), line: Vec::new() }
    }

    /// Reads the next line without its end; nothing at the end of the connection. Cancel-safe.
    ///
    /// # Errors
    /// The connection failed, or the line is too long or torn.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, LineReadError> {
        loop {
            let piece = self.reader.fill_buf().await?;
            if piece.is_empty() {
                return if self.line.is_empty() { Ok(None) } else { Err(LineReadError::Torn) };
            }
            let end = memchr::memchr(b'\n', piece);
            let taken = end.map_or(piece.len(), |end| end + 1);
            let kept = end.unwrap_or(piece.len());
            if self.line.len() + kept >= MOST_LINE {
                return Err(LineReadError::TooLong);
            }
            self.line.extend_from_slice(&piece[..kept]);
            self.reader.consume(taken);
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }
}

/// Writes a line that ends with `\n`, and sends it.
///
/// # Errors
/// The connection failed.
pub async fn write_line(to: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> io::Result<()> {
    to.write_all(line).await?;
    to.flush().await
}
