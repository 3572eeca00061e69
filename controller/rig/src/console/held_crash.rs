//! Crashes that the firmware may have expected: the headline is held until the lines behind it say
//! so, or do not.
//!
//! # Design
//! A test that provokes a crash prints the same headline as a crash that nobody wanted, and a line
//! behind it that says that the test expected it. That line excuses the crash directly in front of
//! it only: a headline that does not belong to the same crash, a boot banner, or [`REACH`] bytes
//! between them end the wait, and the crash counts. So does silence, which only the caller measures.
//! Whether the excuse is accepted is decided elsewhere, by the report that follows it: a result
//! of a case between the two rejects it, because the line excuses a crash of the next case.

use super::recognition::Recognition;

/// Bytes between the last headline of a crash and its excuse: a dump of all registers, of floating
/// point and vectors too, with a backtrace needs 4 KiB.
const REACH: u64 = 16 << 10;

/// A signature of lines, as far as it matters here.
#[derive(Debug, Clone)]
pub(super) struct Excusable {
    /// Index of what excuses it.
    pub(super) excuse: usize,
    /// Signatures whose crash it goes on with.
    pub(super) continues: Vec<usize>,
}

/// What the output showed at a place.
#[derive(Debug, Clone)]
pub(super) enum Sight {
    /// Something was recognised, by a signature of lines if it has an index.
    Told(Recognition, Option<usize>),
    /// A line that may excuse a crash: which one, and its range.
    Excuse(usize, u64, u64),
    /// The board has booted.
    Boot(u64),
}

impl Sight {
    pub(super) fn start(&self) -> u64 {
        match self {
            Self::Told(recognition, _) => recognition.start,
            Self::Excuse(_, start, _) | Self::Boot(start) => *start,
        }
    }
}

/// A crash whose excuse was printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcusedCrash {
    /// Its headlines, which count where the excuse is not accepted.
    pub headlines: Vec<Recognition>,
    /// Offset one past the last byte of the excuse.
    pub end: u64,
}

/// A crash that waits for its excuse.
#[derive(Debug, Clone)]
struct Held {
    excuse: usize,
    /// The signature of its last headline, and where that begins.
    last: (usize, u64),
    headlines: Vec<Recognition>,
}

/// Sorts what was recognised into what counts, what waits and what is excused.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldCrashes {
    held: Option<Held>,
    excused: Vec<ExcusedCrash>,
}

impl HeldCrashes {
    /// Takes what was seen, in the order of the output, up to an offset; adds what counts to
    /// `found`.
    pub(super) fn take(
        &mut self,
        sights: impl IntoIterator<Item = Sight>,
        position: u64,
        excusable: impl Fn(usize) -> Option<Excusable>,
        found: &mut Vec<Recognition>,
    ) {
        for sight in sights {
            self.expire(sight.start(), found);
            match sight {
                Sight::Boot(_) => self.give_up(found),
                Sight::Excuse(index, _, end) => {
                    if let Some(held) = self.held.take_if(|held| held.excuse == index) {
                        self.excused.push(ExcusedCrash { headlines: held.headlines, end });
                    }
                }
                Sight::Told(recognition, line) => {
                    let known = line.and_then(|index| Some((index, excusable(index)?)));
                    let Some((index, Excusable { excuse, continues })) = known else {
                        self.give_up(found);
                        found.push(recognition);
                        continue;
                    };
                    let same =
                        |held: &Held| held.excuse == excuse && continues.contains(&held.last.0);
                    if !self.held.as_ref().is_some_and(same) {
                        self.give_up(found);
                    }
                    let last = (index, recognition.start);
                    let none = Held { excuse, last, headlines: Vec::new() };
                    let held = self.held.get_or_insert(none);
                    held.last = last;
                    held.headlines.push(recognition);
                }
            }
        }
        self.expire(position, found);
    }

    /// Gives up a crash whose excuse cannot be in reach at an offset any more.
    fn expire(&mut self, position: u64, found: &mut Vec<Recognition>) {
        let far = |held: &Held| position.saturating_sub(held.last.1) > REACH;
        if self.held.as_ref().is_some_and(far) {
            self.give_up(found);
        }
    }

    /// No excuse comes: what waits for it counts.
    pub(super) fn give_up(&mut self, found: &mut Vec<Recognition>) {
        found.extend(self.held.take().into_iter().flat_map(|held| held.headlines));
    }

    /// Returns where the first headline of a crash that waits begins.
    pub(super) fn held_from(&self) -> Option<u64> {
        Some(self.held.as_ref()?.headlines.first()?.start)
    }

    /// Returns the crashes excused since the last call.
    pub(super) fn take_excused(&mut self) -> Vec<ExcusedCrash> {
        std::mem::take(&mut self.excused)
    }
}

#[cfg(test)]
#[path = "held_crash_tests.rs"]
mod tests;
