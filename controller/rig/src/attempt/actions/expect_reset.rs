//! A reset by the target that the plan expects: waiting for it, and finding where the boot behind it
//! begins.
//!
//! # Design
//! *The output tells where a boot begins.* A driver tells of a reset while the target prints on, so
//! the moment of its event divides no log. The boot behind the reset begins where the text that the
//! plan names or the boot banner of the profile comes again, or where the output begins as it began
//! before: with the same two lines, or with one line that is the banner of a known boot loader. The
//! same bytes give the same place, however they arrived. A shell
//! prints one line and a prompt, behind which it waits: the part of the second line that was printed
//! is enough where the driver has told of the reset and nothing follows for a while.
//!
//! *A driver is believed where it tells all.* Where the board can be halted, its driver reports each
//! reset, and no text replaces that. On other boards the text is the evidence.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jig_model::pattern::Pattern;
use jig_model::{Cause, ConsoleName, chain};
use tokio::time::{Instant, sleep_until};

use super::{Actions, compile};
use crate::attempt::abort_condition::abort_condition;
use crate::attempt::board_timeout::BoardTimeout;
use crate::attempt::expected_resets::SeenReset;
use crate::console::{BannerStage, Follower, PAUSE, PatternSet, boot_banner, find_all, readable};
use crate::judge::{ByteRange, ExpectedCrash};
use crate::workflow::ActionFailure;

/// Most output of a boot in which the beginning of the next one is looked for.
const LOOKED_AT: u64 = 1 << 20;

/// Longest beginning of a boot that is compared.
const HEAD: usize = 4 << 10;

impl Actions<'_> {
    /// Waits for a reset by the target and for the first output behind it; what follows belongs to a
    /// new boot.
    pub(super) async fn expect_reset(
        &mut self,
        console: Option<&ConsoleName>,
        begins: Option<&Pattern>,
        board_timeout: BoardTimeout,
    ) -> Result<String, ActionFailure> {
        let board = Arc::clone(&self.board);
        let console = self.console(console);
        let begins = begins.or(self.profile.boot_banner.as_ref());
        let begins = begins.map(|pattern| compile(std::slice::from_ref(pattern))).transpose()?;
        let (named, driver_tells) = (begins.is_some(), self.protocols.control.is_some());
        let follower = self.cursor(&console)?.clone();
        let mut changes = board.changes();
        let mut state = board.lines[&console].handle.state();
        let (mut heard, mut pauses) = (Instant::now(), false);
        let start = loop {
            changes.borrow_and_update();
            let len = state.borrow_and_update().len;
            let seen = board.facts().resets.unclaimed().cloned();
            let told = seen.as_ref().is_some_and(|seen| seen.told.is_some());
            if seen.is_some() || (!driver_tells && begins.is_some()) {
                let file = &board.lines[&console].file;
                let sought = (seen.as_ref(), begins.as_ref(), file.as_str());
                let complete = !(told && pauses);
                if let Some(start) = next_boot(&follower, (len, complete), sought).await? {
                    break start;
                }
            }
            tokio::select! {
                biased;
                failure = abort_condition(&board) => return Err(failure),
                _ = changes.changed() => {}
                Ok(()) = state.changed() => (heard, pauses) = (Instant::now(), false),
                () = sleep_until(heard + PAUSE), if told && !pauses => pauses = true,
                () = board_timeout.run_out(&board) => {
                    let failure = self.missed_reset(&console, named, board_timeout.asked());
                    return Err(board_timeout.judged(&board, failure));
                }
            }
        };
        board.claim_reset();
        self.fail_if_crashed().await?;
        self.begin_boot_at(&console, start)?;
        Ok(format!("the target reset itself; its next boot begins at offset {start}"))
    }

    /// Says what did not come within this time: the reset, or the boot behind it. A reset that came was
    /// expected nevertheless.
    fn missed_reset(
        &mut self,
        console: &ConsoleName,
        named: bool,
        within: Duration,
    ) -> ActionFailure {
        let came = self.board.facts().resets.unclaimed().is_some();
        if came {
            self.board.claim_reset();
        }
        missed((came, self.protocols.control.is_some()), named, console, within)
    }

    /// Says what the expectation of a reset has missed that was cut off after this time.
    pub(super) fn cut_off_reset(
        &mut self,
        console: Option<&ConsoleName>,
        begins: Option<&Pattern>,
        after: Duration,
    ) -> ActionFailure {
        let console = self.console(console);
        let named = begins.is_some() || self.profile.boot_banner.is_some();
        let after = Duration::from_millis(after.as_millis() as u64);
        self.missed_reset(&console, named, after)
    }

    /// Fails if the target was reset in the handler of a fault, and the plan expects no crash of that
    /// boot. The handler may have printed nothing, and another boot may be fine.
    async fn fail_if_crashed(&mut self) -> Result<(), ActionFailure> {
        let fault = self.protocols.debug.as_mut().and_then(|debug| debug.reset_in_fault());
        let Some(fault) = fault else { return Ok(()) };
        // A text that the plan expects is a crash once it is recognised as one. A failure that is found
        // meanwhile fails the run anyway.
        drop(self.looked_at_everything().await);
        if self.expected_crash() != ExpectedCrash::None {
            return Ok(());
        }
        let detail = format!(
            "the target was reset in its handler of {fault}: it crashed (if that is wanted, expect the \
             headline of the crash in front of expect_reset)"
        );
        Err(ActionFailure::new(Cause::CoreFault, detail))
    }

    /// Begins the boot whose output begins at an offset of a console.
    fn begin_boot_at(&mut self, console: &ConsoleName, start: u64) -> Result<(), ActionFailure> {
        let board = Arc::clone(&self.board);
        let waited_to = self.cursor(console)?.cursor();
        if start < waited_to {
            let file = board.lines[console].file.clone();
            let range = ByteRange { file, start, end: waited_to, text: String::new() };
            let detail = "the target reset itself before the text that the plan expected before";
            let (cause, detail) = (Cause::UnexpectedReset, detail.to_owned());
            return Err(ActionFailure { cause, detail, evidence: vec![range.evidence()] });
        }
        let mut boot = BTreeMap::from([(console.clone(), start)]);
        for (other, line) in board.lines.iter().filter(|(name, _)| *name != console) {
            let len = line.handle.state().borrow().len;
            let again = match self.is_of_commands(other) {
                // Two commands may print the same.
                true => None,
                false => begins_again(self.cursor(other)?, (len, true))?,
            };
            boot.insert(other.clone(), again.unwrap_or(len));
        }
        board.begin_boot_at(boot);
        Ok(())
    }
}

/// Says what did not come; `came` and `told` say whether the reset came and whether the driver tells of
/// resets. Where neither plan nor profile names the beginning of a boot, that it is not recognised is
/// no failure of the target.
fn missed(
    (came, told): (bool, bool),
    named: bool,
    console: &ConsoleName,
    time: Duration,
) -> ActionFailure {
    if came && named {
        let detail = format!(
            "the target reset itself, and behind that the first line of its next boot was not seen \
             on console {console} within {time:?}"
        );
        return ActionFailure::new(Cause::ExpectMissed, detail);
    }
    if came {
        let detail = format!(
            "the target reset itself, and where its next boot begins is not known: behind the reset \
             no boot that begins as the one before was seen on console {console} within {time:?} \
             (name its first line: `jig run --next-boot REGEX`, expect_reset = 'REGEX' in a plan, or \
             boot_banner of the profile)"
        );
        return ActionFailure::new(Cause::Unconfirmed, detail);
    }
    let detail = if told {
        format!("the target did not reset itself within {time:?}")
    } else {
        format!(
            "no reset of the target was seen on console {console} within {time:?} (this board does \
             not tell of resets: name the first line behind it by `jig run --next-boot REGEX`, by \
             expect_reset = 'REGEX' in a plan, or by boot_banner of the profile)"
        )
    };
    ActionFailure::new(Cause::ExpectMissed, detail)
}

/// Returns where the boot behind a reset begins, if the output shows it already.
async fn next_boot(
    follower: &Follower,
    (len, complete): (u64, bool),
    (seen, begins, file): (Option<&SeenReset>, Option<&PatternSet>, &str),
) -> Result<Option<u64>, ActionFailure> {
    if let Some(line) = seen.and_then(|seen| seen.line.as_ref()).filter(|line| line.file == file) {
        return Ok(Some(line.start));
    }
    let Some(begins) = begins else { return begins_again(follower, (len, complete)) };
    let Some(head) = head(follower, len)? else { return Ok(None) };
    // The boot before may have begun with the same line.
    let from = head.first_line_end.max(len.saturating_sub(LOOKED_AT));
    let found = find_all(follower, begins, from..len, 1).await.map_err(|error| unread(&error))?;
    Ok(found.first().map(|matched| matched.start))
}

/// Returns where the output of a boot begins again as it began. Unless both lines must be `complete`, a
/// part of the second one is enough at the end.
fn begins_again(
    follower: &Follower,
    (len, complete): (u64, bool),
) -> Result<Option<u64>, ActionFailure> {
    let Some(head) = head(follower, len)? else { return Ok(None) };
    let from = head.first_line_end.max(len.saturating_sub(LOOKED_AT));
    let mut text = vec![0; len.saturating_sub(from) as usize];
    let read = follower.read_at(from, &mut text).map_err(|error| unread(&error))?;
    text.truncate(read);
    let printed = from - head.start;
    let at = repeated(&head.lines, &text, (printed as usize, complete));
    Ok(at.map(|at| from + at as u64))
}

/// The first two lines of a boot, or the first one alone where it is a banner.
#[derive(Debug, PartialEq, Eq)]
struct BootHead {
    /// Where the first one begins.
    start: u64,
    first_line_end: u64,
    /// Both, as far as they are printed.
    lines: Vec<u8>,
}

fn head(follower: &Follower, len: u64) -> Result<Option<BootHead>, ActionFailure> {
    let from = follower.floor();
    let mut text = vec![0; HEAD.min(len.saturating_sub(from) as usize)];
    let read = follower.read_at(from, &mut text).map_err(|error| unread(&error))?;
    text.truncate(read);
    Ok(first_lines(&text).map(|(start, first_end, end)| BootHead {
        start: from + start as u64,
        first_line_end: from + first_end as u64,
        lines: text[start..end].to_vec(),
    }))
}

/// Returns where the first line that is not blank begins, and where it and the second one end. A first line that
/// is the banner of a known boot loader needs no second one. Those of systems may come twice in a boot: a loader
/// is built on one of them, too.
fn first_lines(text: &[u8]) -> Option<(usize, usize, usize)> {
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let line_end = |at: usize| memchr::memchr(b'\n', &text[at..]).map(|end| at + end + 1);
    let first_end = line_end(start)?;
    let banner = boot_banner(readable(&text[start..first_end]).trim_ascii());
    if banner.is_some_and(|banner| banner.stage <= BannerStage::Loader) {
        return Some((start, first_end, first_end));
    }
    let second = text[first_end..].iter().position(|byte| !byte.is_ascii_whitespace());
    let end = second.and_then(|at| line_end(first_end + at)).unwrap_or(text.len());
    Some((start, first_end, end))
}

/// Returns where a text that follows `before` bytes of a boot repeats the first lines of that boot.
/// A boot that printed less before it was reset is repeated as far as it went, and one whose lines need
/// not be `complete` as far as the text goes, if that is more than the first line.
fn repeated(lines: &[u8], text: &[u8], (before, complete): (usize, bool)) -> Option<usize> {
    let (first, second) = lines.split_at(memchr::memchr(b'\n', lines)? + 1);
    if first == second && !first.iter().any(u8::is_ascii_alphabetic) {
        // Two rulers.
        return None;
    }
    memchr::memmem::find_iter(text, first).find(|&at| {
        let behind = text.len() - at;
        let printed = if complete || behind == first.len() { lines.len() } else { behind };
        let compared = lines.len().min(before + at).min(printed);
        text[at..].starts_with(&lines[..compared])
    })
}

fn unread(error: &crate::console::FollowError) -> ActionFailure {
    ActionFailure::new(Cause::StorageFailed, chain(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_behind_a_reset_begins_as_the_boot_before() {
        for (text, at) in [
            ("app 1\nready\nok a\napp 1\nready\nok b\n", Some(17)),
            // Cut in the middle of a line, and before its second line.
            ("app 1\nready\nok app 1\nready\n", Some(15)),
            ("app 1\napp 1\nready\n", Some(6)),
            ("app 1\nreaapp 1\nready\n", Some(9)),
            ("\r\napp 1\r\nready\r\n\r\napp 1\r\nready\r\n", Some(18)),
            // What follows a banner may differ from boot to boot.
            (
                "*** Booting MCUboot v2.1 ***\r\nI: swap\r\n*** Booting MCUboot v2.1 ***\r\nI: jump\r\n",
                Some(39),
            ),
            (
                "*** Booting Zephyr OS 2.3 ***\r\nI: swap\r\n*** Booting Zephyr OS 2.3 ***\r\napp\r\n",
                None,
            ),
            // One line alone is no boot, nor are two lines that are not complete yet.
            ("app 1\nready\napp 1\nok\n", None),
            ("app 1\nready\napp 1\nrea", None),
            ("app 1\nready\nok a\n", None),
            ("=====\n=====\nok 1\n=====\n=====\n", None),
            ("=====\nsuite\n=====\nok 1\n", None),
            ("", None),
        ] {
            assert_eq!(begins_again_at(text, true), at, "{text:?}");
        }
    }

    #[test]
    fn a_prompt_behind_the_first_line_is_enough_where_the_target_waits() {
        for (text, at) in [
            ("shell 1\r\n> reboot\r\nshell 1\r\n> ", Some(19)),
            ("app 1\nready\napp 1\nrea", Some(12)),
            ("app 1\nready\nok a\napp 1\nready\nok b\n", Some(17)),
            ("app 1\nready\napp 1\nrex", None),
            ("app 1\nready\napp 1\n", None),
            ("app 1\nready\nok a\n", None),
        ] {
            assert_eq!(begins_again_at(text, false), at, "{text:?}");
        }
    }

    fn begins_again_at(text: &str, complete: bool) -> Option<usize> {
        let (start, first_end, end) = first_lines(text.as_bytes())?;
        let lines = &text.as_bytes()[start..end];
        let (behind, before) = (&text.as_bytes()[first_end..], first_end - start);
        Some(first_end + repeated(lines, behind, (before, complete))?)
    }
}
