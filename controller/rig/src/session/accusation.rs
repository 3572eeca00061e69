//! What the runs of a place's known-good image prove, and what is run next to know it. Pure.
//!
//! # Design
//! An image that fails accuses the rig, so the image itself is doubted first. What it takes depends
//! on where the image comes from:
//!
//! | image | it passes | it fails |
//! |---|---|---|
//! | Jig's own | the rig works | the rig fails |
//! | declared by a real place | the rig works | the rig fails |
//! | declared by an emulated place | the rig works | Jig's own image decides; without one, the rig fails |
//! | kept after passes in a row | the rig works | the checks decide first, then the image runs again |
//!
//! A kept image that fails while every check passes is run again. One pass is enough to show that
//! the image fails now and then: it says nothing about the rig and is no longer used. Only an image
//! that fails each time accuses.

/// Where a known-good image comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImageOrigin {
    /// Jig brings it along for the kind of board.
    Shipped,
    /// The place declares it.
    Declared,
    /// A user's image that has passed on the place several times in a row.
    Kept,
}

/// How often a kept image is run before it accuses: an image that passes half of its runs passes
/// three in a row and then fails three in a row once in 64.
pub(super) const TRIES: usize = 3;

/// What is known so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ImageRuns {
    pub(super) origin: ImageOrigin,
    /// Whether each run of the image passed, in order.
    pub(super) passed: Vec<bool>,
    /// Whether Jig has an image of its own for the place.
    pub(super) has_shipped: bool,
    /// Whether Jig's own image passed, if it was run to decide on another one.
    pub(super) shipped: Option<bool>,
    /// Whether the checks of host and board pass, if they were made.
    pub(super) checks: Option<bool>,
}

/// What is done next to know whether the rig works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextProof {
    /// The image is run.
    Run,
    /// Jig's own image is run.
    RunShipped,
    /// Host and board are checked.
    Check,
    /// Enough is known.
    Known(Proven),
}

/// What the runs prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proven {
    /// The rig works.
    RigWorks,
    /// The rig does not work.
    RigFails,
    /// The rig works by Jig's own image, and the declared one fails.
    OnlyShippedPasses,
    /// The image passes and fails: it proves nothing.
    ImageUnreliable,
}

impl ImageRuns {
    pub(super) fn new(origin: ImageOrigin, has_shipped: bool) -> Self {
        Self { origin, passed: Vec::new(), has_shipped, shipped: None, checks: None }
    }

    /// Returns what is done next, or what is proven.
    pub(super) fn next(&self) -> NextProof {
        use ImageOrigin::{Declared, Kept, Shipped};
        use NextProof::{Check, Known, Run, RunShipped};
        match self.passed.as_slice() {
            [] => return Run,
            [true, ..] => return Known(Proven::RigWorks),
            [false, ..] => {}
        }
        match (self.origin, self.shipped, self.checks) {
            (Shipped, ..) => Known(Proven::RigFails),
            (Declared, None, _) if self.has_shipped => RunShipped,
            (Declared, Some(true), _) => Known(Proven::OnlyShippedPasses),
            (Declared, ..) => Known(Proven::RigFails),
            (Kept, _, None) => Check,
            (Kept, _, Some(false)) => Known(Proven::RigFails),
            (Kept, _, Some(true)) if self.passed.contains(&true) => Known(Proven::ImageUnreliable),
            (Kept, _, Some(true)) if self.passed.len() < TRIES => Run,
            (Kept, _, Some(true)) => Known(Proven::RigFails),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_doubted_before_it_accuses_the_rig() {
        use ImageOrigin::{Declared, Kept, Shipped};
        use NextProof::{Check, Known, Run, RunShipped};
        use Proven::{ImageUnreliable, OnlyShippedPasses, RigFails, RigWorks};
        type Row = (ImageOrigin, &'static [bool], bool, Option<bool>, Option<bool>, NextProof);
        let table: &[Row] = &[
            // The first run.
            (Shipped, &[], true, None, None, Run),
            (Declared, &[], false, None, None, Run),
            (Kept, &[], false, None, None, Run),
            // A pass is a pass, whatever the origin of the image.
            (Shipped, &[true], true, None, None, Known(RigWorks)),
            (Declared, &[true], true, None, None, Known(RigWorks)),
            (Kept, &[true], false, None, None, Known(RigWorks)),
            // A failure.
            (Shipped, &[false], true, None, None, Known(RigFails)),
            (Declared, &[false], false, None, None, Known(RigFails)),
            (Declared, &[false], true, None, None, RunShipped),
            (Declared, &[false], true, Some(true), None, Known(OnlyShippedPasses)),
            (Declared, &[false], true, Some(false), None, Known(RigFails)),
            (Kept, &[false], false, None, None, Check),
            (Kept, &[false], false, None, Some(false), Known(RigFails)),
            (Kept, &[false], false, None, Some(true), Run),
            (Kept, &[false, true], false, None, Some(true), Known(ImageUnreliable)),
            (Kept, &[false, false], false, None, Some(true), Run),
            (Kept, &[false, false, true], false, None, Some(true), Known(ImageUnreliable)),
            (Kept, &[false, false, false], false, None, Some(true), Known(RigFails)),
        ];
        for &(origin, passed, has_shipped, shipped, checks, wanted) in table {
            let runs = ImageRuns { origin, passed: passed.to_vec(), has_shipped, shipped, checks };
            assert_eq!(runs.next(), wanted, "{runs:?}");
        }
    }

    #[test]
    fn every_answer_leads_to_an_end_and_only_a_constant_failure_accuses() {
        for origin in [ImageOrigin::Shipped, ImageOrigin::Declared, ImageOrigin::Kept] {
            for bits in 0..64_u32 {
                let mut answers = (0..6).map(|bit| bits >> bit & 1 == 1);
                let has_shipped = origin != ImageOrigin::Kept && answers.next().unwrap();
                let mut runs = ImageRuns::new(origin, has_shipped);
                let proven = loop {
                    match runs.next() {
                        NextProof::Run => runs.passed.push(answers.next().unwrap()),
                        NextProof::RunShipped => runs.shipped = answers.next(),
                        NextProof::Check => runs.checks = answers.next(),
                        NextProof::Known(proven) => break proven,
                    }
                };
                if proven == Proven::RigFails {
                    assert!(!runs.passed.contains(&true) && runs.shipped != Some(true), "{runs:?}");
                }
            }
        }
    }
}
