//! Chooses which of several reports of one boot counts.
//!
//! Pure: sees only how each report stands. A failure wins over everything, so that no green report
//! hides it; then a complete report wins over one that was only begun.
//! One that was begun, and not only resembled by a line of a log, leaves the other in doubt.

use std::cmp::Reverse;

/// How much a report proves by what was read of it so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Credibility {
    /// Prose may look like it: it is no report unless more follows.
    Guess,
    /// A report where there is no other one; a log line may look like it.
    Weak,
    /// Only this format can have printed it, though a line of a log may look like one of it.
    Report,
    /// No log has such a line: one of them begins a report.
    Certain,
}

/// How one report stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) credibility: Credibility,
    /// The plan declares its markers, so they come first.
    pub(super) declared: bool,
    /// A case failed, or the summary claims a failure.
    pub(super) failed: bool,
    /// An overlong line that would have been a result was ignored.
    pub(super) distrusted: bool,
    /// The stream ends in the middle of what would be a result.
    pub(super) broke_off: bool,
    /// How many lines were read that no other report has.
    pub(super) lines: u64,
    pub(super) planned: u64,
    pub(super) begun: usize,
    pub(super) decided: usize,
    pub(super) opened_at: u64,
    pub(super) ended_at: Option<u64>,
}

impl Standing {
    /// Tells whether the report ended and says something.
    pub(super) fn complete(&self) -> bool {
        self.ended_at.is_some() && (self.decided > 0 || self.failed)
    }

    /// Tells whether all that was read is a line that a log may hold by accident: `1..5`,
    /// `running 2 tests`.
    pub(super) fn is_stray(&self) -> bool {
        let empty = self.begun == 0 && self.ended_at.is_none() && !self.failed;
        empty && self.credibility < Credibility::Report && !self.distrusted && !self.broke_off
    }

    /// Tells whether more was read than lines that a log may hold by accident: a result, or lines of
    /// two kinds, as the head of a report and the start of a case. Starts of several cases are lines
    /// of one kind.
    fn substantial(&self) -> bool {
        let open = self.ended_at.is_none();
        let two_kinds = open && self.lines > 1 && self.lines > self.begun as u64;
        let goes_on = self.decided > 0 || (self.begun > 0 && self.planned > 0) || two_kinds;
        let proven = match self.credibility {
            Credibility::Guess | Credibility::Weak => false,
            Credibility::Report => goes_on,
            Credibility::Certain => goes_on || open,
        };
        self.failed || self.distrusted || proven
    }

    /// Tells whether the report announces results that did not come.
    pub(super) fn breaks_off(&self) -> bool {
        self.begun > self.decided || self.planned > self.decided as u64
    }

    /// Tells whether all that was read may be lines of a log, so that nothing need follow them.
    pub(super) fn may_be_log(&self) -> bool {
        !self.substantial() && !self.broke_off && self.ended_at.is_none()
    }

    /// Orders reports: the greatest one counts. Of equals the one that was opened first.
    pub(super) fn rank(&self) -> impl Ord + use<> {
        (
            self.failed,
            self.complete(),
            self.substantial(),
            self.decided,
            self.ended_at.is_some(),
            self.declared,
            self.begun,
            Reverse(self.opened_at),
        )
    }

    /// Tells whether a report makes another one, which counts, doubtful.
    ///
    /// In front of its end, a line that resembles an opening is part of the log, and two that belong
    /// together are a report that broke off. Behind it one may be the beginning of a second report, unless they only repeat that all is well.
    pub(super) fn casts_doubt_on(&self, counted: &Standing) -> bool {
        let agrees = self.ended_at.is_some() && self.begun == 0;
        let behind = counted.ended_at.is_some_and(|end| self.opened_at >= end);
        self.substantial() || (behind && !agrees && self.credibility != Credibility::Guess)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Standing = Standing {
        credibility: Credibility::Report,
        declared: false,
        failed: false,
        distrusted: false,
        broke_off: false,
        lines: 0,
        planned: 0,
        begun: 0,
        decided: 0,
        opened_at: 0,
        ended_at: None,
    };
    const GREEN: Standing =
        Standing { begun: 3, decided: 3, opened_at: 100, ended_at: Some(200), ..PLAIN };

    #[test]
    fn failure_wins_then_complete_then_cases() {
        let red = Standing { failed: true, begun: 1, decided: 1, ..PLAIN };
        let long = Standing { begun: 9, decided: 9, ..PLAIN };
        let stray = Standing { begun: 1, ..PLAIN };
        let empty_end = Standing { ended_at: Some(10), ..PLAIN };
        let order = [red, GREEN, long, empty_end];
        for (n, better) in order.iter().enumerate() {
            for worse in &order[n + 1..] {
                assert!(better.rank() > worse.rank(), "{better:?} {worse:?}");
            }
        }
        assert!(GREEN.rank() > stray.rank());
        let later = Standing { opened_at: 5, ..stray };
        assert!(stray.rank() > later.rank());
    }

    #[test]
    fn opening_without_a_case_is_stray_only_where_a_log_may_hold_it() {
        let weak = Standing { credibility: Credibility::Weak, planned: 5, ..PLAIN };
        for (what, standing, stray) in [
            ("plan", weak, true),
            ("head of one format alone", PLAIN, false),
            ("case", Standing { begun: 1, ..weak }, false),
            ("end", Standing { ended_at: Some(9), ..weak }, false),
            ("failure", Standing { failed: true, ..weak }, false),
            ("overlong line", Standing { distrusted: true, ..weak }, false),
            ("unfinished line", Standing { broke_off: true, ..weak }, false),
        ] {
            assert_eq!(standing.is_stray(), stray, "{what}");
        }
    }

    #[test]
    fn doubt_needs_cases_or_lines_behind_the_end() {
        let after = 300;
        let one = Standing { begun: 1, decided: 1, ..PLAIN };
        for (what, other, doubt) in [
            ("stray head", Standing { planned: 5, ..PLAIN }, false),
            ("stray start of a case", Standing { begun: 1, ..PLAIN }, false),
            ("weak point", Standing { credibility: Credibility::Weak, ..one }, false),
            ("decided case", one, true),
            ("failure", Standing { failed: true, ..PLAIN }, true),
            ("head and start", Standing { planned: 2, begun: 1, ..PLAIN }, true),
            ("two lines of a head", Standing { lines: 2, ..PLAIN }, true),
            ("suite and start", Standing { lines: 2, begun: 1, ..PLAIN }, true),
            ("two starts", Standing { lines: 2, begun: 2, ..PLAIN }, false),
            ("line of no log", Standing { credibility: Credibility::Certain, ..PLAIN }, true),
            ("overlong line", Standing { distrusted: true, ..PLAIN }, true),
            ("head behind", Standing { planned: 5, opened_at: after, ..PLAIN }, true),
            ("start behind", Standing { begun: 1, opened_at: after, ..PLAIN }, true),
            (
                "verdict behind",
                Standing { opened_at: after, ended_at: Some(after), ..PLAIN },
                false,
            ),
            (
                "guess behind",
                Standing { credibility: Credibility::Guess, opened_at: after, ..PLAIN },
                false,
            ),
        ] {
            assert_eq!(other.casts_doubt_on(&GREEN), doubt, "{what}");
        }
    }
}
