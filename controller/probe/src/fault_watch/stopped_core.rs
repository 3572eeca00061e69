//! What is told of a Cortex-M that was stopped though nothing has failed, and is in a fault.

use jig_model::Cause;
use jig_model::post_mortem::PostMortem;
use jig_model::protocol::PostMortemRequest;

use super::fault_stand::{FaultShape, fault_shape};
use super::telling::{RequestSymbols, told_with};
use crate::debug_info::exception_name;
use crate::{CoreSnapshot, Why};

/// What is added to what is told of a fault that repeats.
pub(super) const REPEATS: &str = "; its handler returns, and the fault repeats";

/// A core that was stopped.
pub(crate) struct StoppedCore {
    pub(crate) snapshot: CoreSnapshot,
    /// Whether an interrupt is active there.
    pub(crate) irq_active: bool,
}

/// Tells of the fault in which a core is; nothing if it is in none. `caught` is the core at the only
/// fault that it took.
pub(crate) fn standing_fault(
    core: &StoppedCore,
    caught: Option<&CoreSnapshot>,
    request: &PostMortemRequest,
) -> Option<PostMortem> {
    let image = RequestSymbols::load(request);
    let shape = fault_shape(&core.snapshot, core.irq_active, image.symbols.as_ref())?;
    Some(story_of(shape, &core.snapshot, caught, &image, request))
}

/// Tells of a core that stands in a fault.
pub(super) fn story_of(
    shape: FaultShape,
    snapshot: &CoreSnapshot,
    caught: Option<&CoreSnapshot>,
    image: &RequestSymbols,
    request: &PostMortemRequest,
) -> PostMortem {
    let best = match shape {
        FaultShape::InHandler | FaultShape::Below { .. } => caught.unwrap_or(snapshot),
        FaultShape::Repeats => snapshot,
    };
    let mut story = told_with(image, best, Why::Fault, request);
    story.proves = Some(Cause::CoreFault);
    match shape {
        FaultShape::InHandler => {}
        FaultShape::Below { fault, running } => {
            let (fault, running) = (exception_name(fault), exception_name(running));
            story.summary = format!("{running} above the handler of {fault}: {}", story.summary);
        }
        FaultShape::Repeats => story.summary += REPEATS,
    }
    story
}
