//! Progress of a deployment, as one percentage.

use jig_model::event::BoardEvent;
use jig_model::protocol::SharedSink;

use crate::{FlashPhase, FlashProgress};

/// Makes percentages of the phases of a deployment.
pub(super) struct DeployProgress {
    sink: SharedSink,
    told: Option<u8>,
}

/// Steps in which progress is told: a record holds twenty of them for a deployment.
const STEP: u8 = 5;

impl DeployProgress {
    pub(super) fn new(sink: SharedSink) -> Self {
        Self { sink, told: None }
    }

    pub(super) fn show(&mut self, at: FlashProgress) {
        let percent = percent(at);
        let due = self.told.is_none_or(|told| percent >= told.saturating_add(STEP));
        if due || (percent == 100 && self.told != Some(100)) {
            self.told = Some(percent);
            self.sink.event(BoardEvent::Deploying { percent });
        }
    }
}

/// Weighs the phases as they take time on common chips; each may be left out.
fn percent(at: FlashProgress) -> u8 {
    let (from, to) = match at.phase {
        FlashPhase::Compare => (0, 10),
        FlashPhase::Erase => (10, 40),
        FlashPhase::Program | FlashPhase::Load => (40, 90),
        FlashPhase::Verify => (90, 100),
    };
    let (done, total) = (u128::from(at.done.min(at.total)), u128::from(at.total));
    // A phase with nothing to do is done.
    let part = (done * (to - from)).checked_div(total).unwrap_or(to - from);
    u8::try_from(from + part).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_only_grow_and_end_at_a_hundred() {
        use FlashPhase::{Compare, Erase, Load, Program, Verify};
        for phases in [vec![Compare, Erase, Program, Verify], vec![Load, Verify], vec![Compare]] {
            let mut last = 0;
            for &phase in &phases {
                for (done, total) in [(0, 4), (1, 4), (4, 4), (9, 4), (0, 0)] {
                    let now = percent(FlashProgress { phase, done, total });
                    assert!(now <= 100 && (now >= last || done == 0), "{phase:?} {done}: {now}");
                    last = last.max(now);
                }
            }
        }
        let end = FlashProgress { phase: Verify, done: u64::MAX, total: u64::MAX };
        assert_eq!(percent(end), 100);
    }
}
