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
use super::held_crash::{Excusable, ExcusedCrash, HeldCrashes, Sight};
use super::recognition::Recognition;
use super::scan::{PatternSet, PatternSetError, Scanner};
use super::shown_text::{ShownMatch, ShownSearch};

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

/// The signature of output that a plan rejects.
const REJECTED: &str = "rejected";

/// Recognises failures in the output of one console in one attempt.
///
/// Compiling takes milliseconds; clone a fresh one for each attempt.
#[derive(Debug, Clone)]
pub struct Recogniser {
    set: PatternSet,
    scanner: Scanner,
    signatures: Vec<Signature>,
    lines: FaultLines,
    rejected: RejectedText,
    /// Signatures of lines, by the indices of `lines`; behind them come the excuses.
    of_lines: Vec<LineSignature>,
    held: HeldCrashes,
    /// Where the last line with a fault begins, and the causes told of it.
    last_line: (u64, Vec<Cause>),
    limits: Limits,
    /// The last bytes before `position`.
    tail: Vec<u8>,
    position: u64,
    boot_start: u64,
    boots_asked: u32,
    boots_seen: u32,
    /// Where the boot banners stand that were seen, until a boot loop is told.
    banners: Vec<u64>,
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

/// What a plan rejects, as a terminal shows it.
#[derive(Debug, Clone)]
struct RejectedText {
    shown: ShownSearch,
    /// Where rejected text ends that stands in the bytes, too.
    spelled: Vec<u64>,
    told: u32,
}

#[derive(Debug, Clone)]
struct LineSignature {
    name: String,
    cause: Cause,
    excusable: Option<Excusable>,
    told: u32,
}

impl Recogniser {
    /// Compiles a profile's signatures, and what a plan rejects.
    ///
    /// # Errors
    /// Names the pattern that is too large.
    pub fn new(
        faults: &[FaultSignature],
        rejected: &[Pattern],
        boot_banner: Option<&Pattern>,
        limits: &Limits,
    ) -> Result<Self, PatternSetError> {
        let (mut patterns, mut signatures) = (Vec::new(), Vec::new());
        let signature = |name: &str, cause| Signature {
            name: name.to_owned(),
            cause,
            told: 0,
            muted: false,
            matched_to: 0,
        };
        for fault in faults {
            if let FaultText::Pattern(pattern) = &fault.text {
                patterns.push(pattern.clone());
                signatures.push(signature(&fault.name, Some(fault.cause)));
            }
        }
        for pattern in rejected {
            patterns.push(pattern.clone());
            signatures.push(signature(REJECTED, Some(Cause::AssertFailed)));
        }
        if let Some(banner) = boot_banner {
            patterns.push(banner.clone());
            signatures.push(signature("boot-banner", None));
        }
        let set = PatternSet::new(&patterns)?;
        let (lines, of_lines) = of_lines(faults)?;
        let shown = ShownSearch::new(&PatternSet::new(rejected)?, 0);
        Ok(Self {
            scanner: Scanner::new(&set, None),
            set,
            signatures,
            lines,
            rejected: RejectedText { shown, spelled: Vec::new(), told: 0 },
            of_lines,
            held: HeldCrashes::default(),
            last_line: (0, Vec::new()),
            limits: limits.clone(),
            tail: Vec::new(),
            position: 0,
            boot_start: 0,
            boots_asked: 0,
            boots_seen: 0,
            banners: Vec::new(),
            loop_told: false,
            flood_told: false,
            alive_at: None,
            silence_told: false,
        })
    }

    /// Begins a new boot of the plan, whose output starts at an offset of the log. What waited for
    /// an excuse is forgotten: see [`give_up`](Self::give_up). The output from there on may have been
    /// seen already, and is fed again.
    pub fn expect_boot(&mut self, offset: u64, now: Duration) {
        self.boots_asked = self.boots_asked.saturating_add(1);
        let before = self.banners.len();
        self.banners.retain(|&banner| banner < offset);
        let again = u32::try_from(before - self.banners.len()).unwrap_or(u32::MAX);
        self.boots_seen = self.boots_seen.saturating_sub(again);
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
        self.rejected.restart(offset);
        self.held = HeldCrashes::default();
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

    /// Returns the offset up to which the log was looked at.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Looks at the next bytes of the log.
    pub fn feed(&mut self, bytes: &[u8], now: Duration) -> Vec<Recognition> {
        if bytes.is_empty() {
            return Vec::new();
        }
        self.alive_at = Some(now);
        self.silence_told = false;
        let mut seen = Vec::new();
        let mut rest = bytes;
        // Piece by piece, so that the tail stays small whatever the chunk.
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(rest.len().min(WINDOW));
            self.feed_piece(piece, &mut seen);
            rest = behind;
        }
        let shown = self.rejected.shown.feed(bytes);
        self.rejected.tell(shown, &mut seen);
        let mut hits = Vec::new();
        self.lines.feed(bytes, |hit| hits.push(hit));
        self.conclude(hits, seen)
    }

    /// Says that the output is over: what waited for a further byte, or for an excuse, is decided.
    pub fn finish(&mut self) -> Vec<Recognition> {
        let mut seen = Vec::new();
        for hit in self.scanner.finish() {
            self.hit(hit, self.tail.len(), &mut seen);
        }
        self.rejected.tell(self.rejected.shown.begun(true), &mut seen);
        let mut hits = Vec::new();
        self.lines.finish(|hit| hits.push(hit));
        let mut found = self.conclude(hits, seen);
        found.append(&mut self.give_up_held());
        found
    }

    /// Returns where the output begins that may show a crash, if that is not decided yet: its
    /// headline has only begun, or may still be excused.
    pub fn undecided_from(&self) -> Option<u64> {
        self.held.held_from().into_iter().chain(self.lines.undecided_from()).min()
    }

    /// Decides what is undecided, as if nothing more were printed.
    pub fn give_up(&mut self) -> Vec<Recognition> {
        let mut hits = Vec::new();
        self.lines.decide(|hit| hits.push(hit));
        let mut found = self.conclude(hits, Vec::new());
        found.append(&mut self.give_up_held());
        found
    }

    /// Says that a boot begins here: the begun line is as long as it gets.
    pub fn cut_line(&mut self) -> Vec<Recognition> {
        let mut seen = Vec::new();
        self.rejected.tell(self.rejected.shown.begun(false), &mut seen);
        self.conclude(Vec::new(), seen)
    }

    fn give_up_held(&mut self) -> Vec<Recognition> {
        let mut found = Vec::new();
        self.held.give_up(&mut found);
        self.bounded(found)
    }

    /// Returns the crashes that were excused since the last call.
    pub fn take_excused(&mut self) -> Vec<ExcusedCrash> {
        self.held.take_excused()
    }

    /// Brings what was seen into the order of the output, and returns what counts.
    fn conclude(&mut self, hits: Vec<FaultLine>, mut seen: Vec<Sight>) -> Vec<Recognition> {
        if !hits.is_empty() {
            hits.into_iter().for_each(|hit| self.line_hit(hit, &mut seen));
            seen.sort_by_key(Sight::start);
        }
        let mut found = Vec::new();
        let signatures = &self.of_lines;
        let excusable = |index: usize| signatures.get(index)?.excusable.clone();
        self.held.take(seen, self.position, excusable, &mut found);
        self.bounded(found)
    }

    /// Drops what was told too often of a signature that may be excused: only what counts is
    /// counted.
    fn bounded(&mut self, mut found: Vec<Recognition>) -> Vec<Recognition> {
        found.retain(|recognition| {
            let mut excusable = self.of_lines.iter_mut().filter(|s| s.excusable.is_some());
            let Some(signature) = excusable.find(|s| s.name == recognition.by) else { return true };
            signature.told = signature.told.saturating_add(1);
            signature.told <= TOLD_PER_BOOT
        });
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

    fn feed_piece(&mut self, piece: &[u8], seen: &mut Vec<Sight>) {
        let base = self.tail.len();
        self.tail.extend_from_slice(piece);
        let mut at = 0;
        while at <= piece.len() {
            let scanned = self.scanner.scan(&piece[at..]);
            let end = at + scanned.used;
            self.pass(&piece[at..end], seen);
            for &hit in &scanned.hits {
                self.hit(hit, base + end, seen);
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
    fn pass(&mut self, bytes: &[u8], seen: &mut Vec<Sight>) {
        if self.signatures.iter().any(|s| s.muted) && memchr::memchr(b'\n', bytes).is_some() {
            self.signatures.iter_mut().for_each(|s| s.muted = false);
        }
        self.position += bytes.len() as u64;
        if !self.flood_told && self.printed() > self.limits.flood_bytes {
            self.flood_told = true;
            let limit = self.limits.flood_bytes;
            let flood = Recognition {
                cause: Cause::OutputFlood,
                by: "flood".to_owned(),
                start: self.boot_start,
                end: self.boot_start.saturating_add(limit).saturating_add(1),
                text: format!("more than {limit} bytes in one boot"),
            };
            seen.push(Sight::Told(flood, None));
        }
    }

    /// Handles a line that begins with a signature or an excuse; each cause is told once per line.
    fn line_hit(&mut self, hit: FaultLine, seen: &mut Vec<Sight>) {
        let FaultLine { index, start, end, mut text } = hit;
        let Some(signature) = self.of_lines.get_mut(index) else {
            return seen.push(Sight::Excuse(index - self.of_lines.len(), start, end));
        };
        if self.last_line.0 != start {
            self.last_line = (start, Vec::new());
        }
        if signature.told >= TOLD_PER_BOOT || self.last_line.1.contains(&signature.cause) {
            return;
        }
        signature.told += u32::from(signature.excusable.is_none());
        self.last_line.1.push(signature.cause);
        text.truncate(text.floor_char_boundary(QUOTE));
        let (cause, by) = (signature.cause, signature.name.clone());
        seen.push(Sight::Told(Recognition { cause, by, start, end, text }, Some(index)));
    }

    /// Handles a match that ends at an index of the tail.
    fn hit(&mut self, index: usize, end: usize, seen: &mut Vec<Sight>) {
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
                let banner = self.position - (end - start) as u64;
                seen.push(Sight::Boot(banner));
                self.boots_seen = self.boots_seen.saturating_add(1);
                if !self.loop_told {
                    self.banners.push(banner);
                }
                let unasked = self.boots_seen.saturating_sub(self.boots_asked);
                if self.loop_told || unasked < self.limits.boot_loop.max(1) {
                    return;
                }
                self.loop_told = true;
                Cause::BootLoop
            }
        };
        if signature.name == REJECTED {
            self.rejected.spelled.push(self.position);
        }
        let by = signature.name.clone();
        let line = memchr::memrchr(b'\n', &self.tail[..start]).map_or(0, |at| at + 1);
        let quote = line.max(start.saturating_sub(QUOTE / 2));
        let range = &self.tail[quote..end.min(quote + QUOTE)];
        let found = Recognition {
            cause,
            by,
            start: self.position - (end - start) as u64,
            end: self.position,
            text: String::from_utf8_lossy(range).trim_end().to_owned(),
        };
        seen.push(Sight::Told(found, None));
    }
}

impl RejectedText {
    fn restart(&mut self, offset: u64) {
        self.shown.restart(offset);
        self.spelled.clear();
        self.told = 0;
    }

    /// Tells of rejected text in lines whose bytes do not spell it.
    fn tell(&mut self, found: Vec<ShownMatch>, seen: &mut Vec<Sight>) {
        for ShownMatch { printed, line, row, .. } in found {
            let known = self.spelled.iter().any(|end| line.start < *end && *end <= line.end);
            if known || self.told >= TOLD_PER_BOOT {
                continue;
            }
            self.told += 1;
            let text = row.get(..row.floor_char_boundary(QUOTE)).unwrap_or_default();
            let recognition = Recognition {
                cause: Cause::AssertFailed,
                by: REJECTED.to_owned(),
                start: printed.start,
                end: printed.end,
                text: text.trim_end().to_owned(),
            };
            seen.push(Sight::Told(recognition, None));
        }
    }
}

/// Compiles the signatures of lines, those with an excuse first: where several match a line, theirs
/// counts. Behind them come the excuses, each once.
fn of_lines(
    faults: &[FaultSignature],
) -> Result<(FaultLines, Vec<LineSignature>), PatternSetError> {
    let with_line = |fault: &'_ FaultSignature| matches!(fault.text, FaultText::Line(_));
    let mut ordered: Vec<_> = faults.iter().filter(|fault| with_line(fault)).collect();
    ordered.sort_by_key(|fault| fault.excuse.is_none());
    let mut excuses: Vec<&Pattern> = Vec::new();
    let mut signatures = Vec::new();
    for fault in &ordered {
        let excusable = fault.excuse.as_ref().map(|pattern| {
            let known = excuses.iter().position(|excuse| excuse.as_str() == pattern.as_str());
            let excuse = known.unwrap_or_else(|| {
                excuses.push(pattern);
                excuses.len() - 1
            });
            let named = |name: &String| ordered.iter().position(|other| other.name == *name);
            Excusable { excuse, continues: fault.continues.iter().filter_map(named).collect() }
        });
        let (name, cause) = (fault.name.clone(), fault.cause);
        signatures.push(LineSignature { name, cause, excusable, told: 0 });
    }
    let mut lines = Vec::new();
    for fault in &ordered {
        if let FaultText::Line(line) = &fault.text {
            lines.push(line.clone());
        }
    }
    lines.extend(excuses.into_iter().cloned());
    let excusable = signatures.iter().filter(|signature| signature.excusable.is_some()).count();
    Ok((FaultLines::new(&lines, excusable)?, signatures))
}

#[cfg(test)]
#[path = "recognise_tests.rs"]
mod tests;
