//! What a flash operation does, while it does it and afterwards.

use std::sync::Mutex;
use std::sync::PoisonError;

use jig_model::byte_size;
use jig_probe::{FlashPhase, FlashProgress, FlashReport};

use super::one_line;
use super::progress::ProgressView;
use super::screen::{Screen, stderr_line};

/// Shows progress: one line that rewrites itself on a terminal, one line per phase in a pipe.
#[derive(Debug)]
pub(crate) struct FlashView {
    line: ProgressView,
    /// Whether phases are printed one by one, because there is no progress line.
    plain: bool,
    /// The phases that were told; erasing and programming alternate.
    told: Mutex<Vec<FlashPhase>>,
}

impl FlashView {
    /// Begins.
    pub(crate) fn new(screen: &Screen) -> Self {
        let plain = !screen.is_terminal() && !screen.quiet() && !screen.json();
        Self { line: screen.progress(), plain, told: Mutex::default() }
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        self.line.clear();
    }

    /// Shows how far a program is.
    pub(crate) fn deploying(&self, program: &str, percent: Option<u8>) {
        let program = one_line(program);
        match percent {
            Some(percent) => self.line.set(&format!("{program} flashes {percent:3} %")),
            None => self.line.set(&format!("{program} flashes")),
        }
        if self.plain && percent.is_none() {
            stderr_line(&format!("flashing by {program}"));
        }
    }

    /// Shows how far it is.
    pub(crate) fn show(&self, at: FlashProgress) {
        let percent = (at.done * 100).checked_div(at.total).unwrap_or(100);
        let size = byte_size(at.total);
        self.line.set(&format!("{} {percent:3} % of {size}", phase_word(at.phase)));
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if self.plain && at.total > 0 && !told.contains(&at.phase) {
            told.push(at.phase);
            stderr_line(&format!("{} {size}", phase_word(at.phase)));
        }
    }
}

/// Names a phase to people.
fn phase_word(phase: FlashPhase) -> &'static str {
    match phase {
        FlashPhase::Compare => "comparing",
        FlashPhase::Erase => "erasing",
        FlashPhase::Program => "programming",
        FlashPhase::Load => "loading",
        FlashPhase::Verify => "verifying",
    }
}

/// Writes what was done, in one line.
pub(crate) fn flash_line(report: &FlashReport) -> String {
    let took: std::time::Duration = report.phases.iter().map(|(_, took)| *took).sum();
    let mut parts = vec![byte_size(report.bytes)];
    match (report.sectors_erased, report.sectors_equal) {
        (0, 0) => {}
        (0, equal) => parts.push(format!("all {equal} sectors were equal already")),
        (erased, 0) => parts.push(format!("{erased} sectors")),
        (erased, equal) => parts.push(format!("{erased} sectors, {equal} were equal already")),
    }
    if report.verified {
        parts.push("verified".to_owned());
    }
    let seconds = took.as_secs_f64();
    if report.written > 0 && seconds > 0.0 {
        let speed = report.written as f64 / 1024.0 / seconds;
        parts.push(format!("{seconds:.2} s, {speed:.0} KiB/s"));
    } else {
        parts.push(format!("{seconds:.2} s"));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_line_says_what_was_done_and_how_fast() {
        let report = FlashReport {
            bytes: 131_072,
            written: 131_072,
            sectors_erased: 128,
            sectors_equal: 0,
            verified: true,
            read_back_sha256: None,
            phases: vec![(FlashPhase::Program, Duration::from_millis(250))],
        };
        assert_eq!(flash_line(&report), "128.0 KiB, 128 sectors, verified, 0.25 s, 512 KiB/s");
        let equal = FlashReport { written: 0, sectors_erased: 0, sectors_equal: 128, ..report };
        assert_eq!(
            flash_line(&equal),
            "128.0 KiB, all 128 sectors were equal already, verified, 0.25 s"
        );
    }
}
