//! Recognises faults, boot loops, floods and silence in the output of a console.
//!
//! Pure: bytes and times come from the caller, recognitions go back. The outcome does not
//! depend on how the bytes were cut. What a recognition means for a verdict is decided
//! elsewhere.

use std::time::Duration;

use jig_model::Cause;
use jig_model::pattern::Pattern;
use jig_model::profile::{FaultSignature, FaultText, Limits};

use super::fault_lines::{FaultLine, FaultLines};
use super::scan::{PatternSet, PatternSetError, Scanner};

/// Bytes before a match's end within which its start is looked for. Fault banners are
/// lines; a longer range is cut at its front.
const WINDOW: usize = 4 << 10;
/// Bytes of a range that a recognition quotes.
const QUOTE: usize = 200;
/// Bytes that are always kept of what was passed.
const KEPT: usize = WINDOW + QUOTE;
/// Recognitions of one signature in one boot. The first decides; a target that prints
/// faults for ever must not fill memory or the event stream.
const TOLD_PER_BOOT: u32 = 16;

/// Something that was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recognition {
    /// The cause it stands for.
    pub cause: Cause,
    /// What recognised it: a signature's name, `boot-banner`, `flood` or `silence`.
    pub by: String,
    /// Offset of the first byte of the range.
    pub start: u64,
    /// Offset one past its last byte.
    pub end: u64,
    /// The range from the start of its line on, lossy, at most 200 bytes; hostile text.
    pub text: String,
}

/// Recognises failures in the output of one console in one attempt.
///
/// Compiling takes milliseconds; clone a fresh one for each attempt.
#[derive(Debug, Clone)]
pub struct Recogniser {
    set: PatternSet,
    scanner: Scanner,
    signatures: Vec<Signature>,
    lines: FaultLines,
    /// Signatures of lines, by the indices of `lines`.
    of_lines: Vec<LineSignature>,
    /// Where the last line with a fault begins, and the causes told of it.
    last_line: (u64, Vec<Cause>),
    limits: Limits,
    /// The last bytes before `position`.
    tail: Vec<u8>,
    position: u64,
    boot_start: u64,
    boots_asked: u32,
    boots_seen: u32,
    loop_told: bool,
    flood_told: bool,
    /// When the board last printed or booted, and whether its silence was reported since.
    alive_at: Option<Duration>,
    silence_told: bool,
}

#[derive(Debug, Clone)]
struct Signature {
    name: String,
    /// `None` for the boot banner.
    cause: Option<Cause>,
    told: u32,
    /// Reported on the current line already.
    muted: bool,
    /// Offset behind its last match; the next one must not overlap it.
    matched_to: u64,
}

#[derive(Debug, Clone)]
struct LineSignature {
    name: String,
    cause: Cause,
    told: u32,
}

impl Recogniser {
    /// Compiles a profile's signatures.
    ///
    /// # Errors
    /// Names the pattern that is too large.
    pub fn new(
        faults: &[FaultSignature],
        boot_banner: Option<&Pattern>,
        limits: &Limits,
    ) -> Result<Self, PatternSetError> {
        let (mut patterns, mut signatures) = (Vec::new(), Vec::new());
        let (mut lines, mut of_lines) = (Vec::new(), Vec::new());
        let signature = |name: &str, cause| Signature {
            name: name.to_owned(),
            cause,
            told: 0,
            muted: false,
            matched_to: 0,
        };
        for fault in faults {
            match &fault.text {
                FaultText::Pattern(pattern) => {
                    patterns.push(pattern.clone());
                    signatures.push(signature(&fault.name, Some(fault.cause)));
                }
                FaultText::Line(line) => {
                    lines.push(line.clone());
                    let name = fault.name.clone();
                    of_lines.push(LineSignature { name, cause: fault.cause, told: 0 });
                }
            }
        }
        if let Some(banner) = boot_banner {
            patterns.push(banner.clone());
            signatures.push(signature("boot-banner", None));
        }
        let set = PatternSet::new(&patterns)?;
        Ok(Self {
            scanner: Scanner::new(&set, None),
            set,
            signatures,
            lines: FaultLines::new(&lines)?,
            of_lines,
            last_line: (0, Vec::new()),
            limits: limits.clone(),
            tail: Vec::new(),
            position: 0,
            boot_start: 0,
            boots_asked: 0,
            boots_seen: 0,
            loop_told: false,
            flood_told: false,
            alive_at: None,
            silence_told: false,
        })
    }

    /// Begins a new boot of the plan, whose output starts at an offset of the log.
    pub fn expect_boot(&mut self, offset: u64, now: Duration) {
        self.boots_asked = self.boots_asked.saturating_add(1);
        self.boot_start = offset;
        self.position = offset;
        self.tail.clear();
        self.scanner.restart(None);
        self.flood_told = false;
        for signature in &mut self.signatures {
            signature.told = 0;
            signature.muted = false;
        }
        self.lines.restart(offset);
        self.last_line = (offset, Vec::new());
        for signature in &mut self.of_lines {
            signature.told = 0;
        }
        self.alive_at = Some(now);
        self.silence_told = false;
    }

    /// Returns how many boot banners were seen so far.
    pub fn boots_seen(&self) -> u32 {
        self.boots_seen
    }

    /// Returns how many bytes this boot has printed.
    pub fn printed(&self) -> u64 {
        self.position - self.boot_start
    }

    /// Looks at the next bytes of the log.
    pub fn feed(&mut self, bytes: &[u8], now: Duration) -> Vec<Recognition> {
        if bytes.is_empty() {
            return Vec::new();
        }
        self.alive_at = Some(now);
        self.silence_told = false;
        let mut found = Vec::new();
        let mut rest = bytes;
        // Piece by piece, so that the tail stays small whatever the chunk.
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(rest.len().min(WINDOW));
            self.feed_piece(piece, &mut found);
            rest = behind;
        }
        let mut hits = Vec::new();
        self.lines.feed(bytes, |hit| hits.push(hit));
        if !hits.is_empty() {
            hits.into_iter().for_each(|hit| self.line_hit(hit, &mut found));
            found.sort_by_key(|recognition| recognition.start);
        }
        found
    }

    /// Says that the output is over: what waited for a further byte is decided.
    pub fn finish(&mut self) -> Vec<Recognition> {
        let mut found = Vec::new();
        for hit in self.scanner.finish() {
            self.hit(hit, self.tail.len(), &mut found);
        }
        let mut hits = Vec::new();
        self.lines.finish(|hit| hits.push(hit));
        hits.into_iter().for_each(|hit| self.line_hit(hit, &mut found));
        found
    }

    /// Returns for how long the board has printed nothing, from its boot on.
    pub fn silent_for(&self, now: Duration) -> Duration {
        now.saturating_sub(self.alive_at.unwrap_or_default())
    }

    /// Reports once that the board has been silent for as long as the profile allows.
    ///
    /// Only the caller knows whether anything is being waited for.
    pub fn check_silence(&mut self, now: Duration) -> Option<Recognition> {
        let quiet = now.saturating_sub(*self.alive_at.get_or_insert(now));
        if self.silence_told || quiet < self.limits.silence {
            return None;
        }
        self.silence_told = true;
        let cause = if self.printed() == 0 { Cause::NoOutput } else { Cause::Hang };
        let text = format!("nothing was printed for {:.1} s", quiet.as_secs_f64());
        let (start, end) = (self.position, self.position);
        Some(Recognition { cause, by: "silence".to_owned(), start, end, text })
    }

    fn feed_piece(&mut self, piece: &[u8], found: &mut Vec<Recognition>) {
        let base = self.tail.len();
        self.tail.extend_from_slice(piece);
        let mut at = 0;
        while at <= piece.len() {
            let scanned = self.scanner.scan(&piece[at..]);
            let end = at + scanned.used;
            self.pass(&piece[at..end], found);
            for &hit in &scanned.hits {
                self.hit(hit, base + end, found);
            }
            at = end;
            if scanned.hits.is_empty() {
                break;
            }
        }
        // More than the window, for `^` at its front and for the start of a quoted line;
        // and only now and then, or a target that prints byte by byte would make this costly.
        if self.tail.len() > 2 * KEPT {
            self.tail.drain(..self.tail.len() - KEPT);
        }
    }

    /// Counts bytes that were passed, and ends the muting at line ends.
    fn pass(&mut self, bytes: &[u8], found: &mut Vec<Recognition>) {
        if self.signatures.iter().any(|s| s.muted) && memchr::memchr(b'\n', bytes).is_some() {
            self.signatures.iter_mut().for_each(|s| s.muted = false);
        }
        self.position += bytes.len() as u64;
        if !self.flood_told && self.printed() > self.limits.flood_bytes {
            self.flood_told = true;
            let limit = self.limits.flood_bytes;
            found.push(Recognition {
                cause: Cause::OutputFlood,
                by: "flood".to_owned(),
                start: self.boot_start,
                end: self.boot_start.saturating_add(limit).saturating_add(1),
                text: format!("more than {limit} bytes in one boot"),
            });
        }
    }

    /// Handles a line that begins with a signature; each cause is told once per line.
    fn line_hit(&mut self, hit: FaultLine, found: &mut Vec<Recognition>) {
        let FaultLine { index, start, end, mut text } = hit;
        let Some(signature) = self.of_lines.get_mut(index) else { return };
        if self.last_line.0 != start {
            self.last_line = (start, Vec::new());
        }
        if signature.told >= TOLD_PER_BOOT || self.last_line.1.contains(&signature.cause) {
            return;
        }
        signature.told += 1;
        self.last_line.1.push(signature.cause);
        text.truncate(text.floor_char_boundary(QUOTE));
        let (cause, by) = (signature.cause, signature.name.clone());
        found.push(Recognition { cause, by, start, end, text });
    }

    /// Handles a match that ends at an index of the tail.
    fn hit(&mut self, index: usize, end: usize, found: &mut Vec<Recognition>) {
        let Some(signature) = self.signatures.get_mut(index) else { return };
        // One per line: `fault.*` matches again at each byte of the line.
        if std::mem::replace(&mut signature.muted, true) {
            return;
        }
        let before = std::mem::replace(&mut signature.matched_to, self.position);
        let fresh = usize::try_from(self.position.saturating_sub(before)).unwrap_or(usize::MAX);
        let front = end.saturating_sub(WINDOW.min(fresh));
        let start = match self.set.locate(index, &self.tail, front..end) {
            Some(located) => located.start,
            // Goes on from the match before: `fault[\s\S]*` is one fault, not one a line.
            None if fresh < WINDOW && before > self.boot_start => return,
            None => front,
        };
        let cause = match signature.cause {
            Some(cause) => {
                if signature.told >= TOLD_PER_BOOT {
                    return;
                }
                signature.told += 1;
                cause
            }
            None => {
                self.boots_seen = self.boots_seen.saturating_add(1);
                let unasked = self.boots_seen.saturating_sub(self.boots_asked);
                if self.loop_told || unasked < self.limits.boot_loop.max(1) {
                    return;
                }
                self.loop_told = true;
                Cause::BootLoop
            }
        };
        let by = signature.name.clone();
        let line = memchr::memrchr(b'\n', &self.tail[..start]).map_or(0, |at| at + 1);
        let quote = line.max(start.saturating_sub(QUOTE / 2));
        let range = &self.tail[quote..end.min(quote + QUOTE)];
        found.push(Recognition {
            cause,
            by,
            start: self.position - (end - start) as u64,
            end: self.position,
            text: String::from_utf8_lossy(range).trim_end().to_owned(),
        });
    }
}

#[cfg(test)]
#[path = "recognise_tests.rs"]
mod tests;
