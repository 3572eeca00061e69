//! The known-good image: what of a run can become one, and how it is run. Pure.
//!
//! # Design
//! An emulated place has the last quick image that passed there. A real place has only the one
//! that it declares, because the flash of a board belongs to its user. An image that fails after
//! every recovery, while every check passes, is no longer believed.

use std::time::Duration;

use jig_model::pattern::Pattern;
use jig_model::plan::{ActionKind, Plan, PowerOp, default_plan};

use crate::store::KnownGood;

/// Longest a run may have taken for its image to become the canary: who waits for the rig to
/// be proven waits that long each time.
pub const LONGEST: Duration = Duration::from_secs(10);

/// A canary has ten times as long as it took when it passed: on a busy host it is slower.
const TIMEOUT: u32 = 10;
const LEAST: Duration = Duration::from_secs(5);
const MOST: Duration = Duration::from_secs(60);

/// Says what a plan waits for, if it is one that [`default_plan`] repeats faithfully: it puts
/// the image of the command line on the board, powers it, and waits for a report or one text.
/// `Some(None)` is a report.
pub fn repeatable(plan: &Plan) -> Option<Option<Pattern>> {
    if plan.markers.is_some() {
        return None;
    }
    let behaviors = plan.stages.iter().flat_map(|s| &s.steps).flat_map(|s| &s.behaviors);
    let kinds: Vec<_> = behaviors.flat_map(|b| &b.actions).map(|action| &action.kind).collect();
    let (last, first) = kinds.split_last()?;
    let boots = matches!(
        first,
        [
            ActionKind::Deploy { image: None },
            ActionKind::Power { op: PowerOp::Cycle | PowerOp::On }
        ]
    );
    match last {
        _ if !boots => None,
        ActionKind::WaitForResults { console: None, .. } => Some(None),
        ActionKind::Expect { console: None, any, reject } if reject.is_empty() => {
            let [pattern] = any.as_slice() else { return None };
            Some(Some(pattern.clone()))
        }
        _ => None,
    }
}

/// Returns the plan by which a place's known-good image is run.
pub fn canary_plan(known: &KnownGood) -> Plan {
    // A pattern that an earlier version could compile and this one cannot: the report decides.
    let until = known.until.as_deref().and_then(|text| Pattern::new(text).ok());
    let took = Duration::from_millis(known.took_ms);
    declared_plan(until, took.saturating_mul(TIMEOUT))
}

/// Returns the plan by which a declared canary is run.
pub fn declared_plan(until: Option<Pattern>, timeout: Duration) -> Plan {
    default_plan(true, until, timeout.clamp(LEAST, MOST))
}

/// Returns the plan that puts a plan's images on a board and does nothing else; none if it
/// has none to put.
pub fn deploy_plan(plan: &Plan) -> Option<Plan> {
    let mut only = plan.clone();
    for stage in &mut only.stages {
        for step in &mut stage.steps {
            for behavior in &mut step.behaviors {
                behavior.actions.retain(|action| matches!(action.kind, ActionKind::Deploy { .. }));
            }
            step.behaviors.retain(|behavior| !behavior.actions.is_empty());
        }
        stage.steps.retain(|step| !step.behaviors.is_empty());
    }
    only.stages.retain(|stage| !stage.steps.is_empty());
    (!only.stages.is_empty()).then_some(only)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::fake::{parse, plan};

    #[test]
    fn only_what_the_default_plan_repeats_becomes_a_canary() {
        let built_in = default_plan(true, None, Duration::from_secs(3));
        assert_eq!(repeatable(&built_in), Some(None));
        let until = Pattern::new("ready").unwrap();
        let built_in = default_plan(true, Some(until.clone()), Duration::from_secs(3));
        assert_eq!(repeatable(&built_in), Some(Some(until)));
        assert_eq!(repeatable(&default_plan(false, None, Duration::from_secs(3))), None);
        let good = "{ deploy = true }, { power = 'cycle' }";
        let written = |actions: &str| repeatable(&parse(&plan(actions)));
        assert_eq!(written(&format!("{good}, {{ wait_for_results = true }}")), Some(None));
        assert!(written(&format!("{good}, {{ expect = 'x' }}")).unwrap().is_some());
        for other in [
            "{ power = 'cycle' }, { wait_for_results = true }".to_owned(),
            format!("{good}, {{ send = 'x' }}, {{ wait_for_results = true }}"),
            format!("{good}, {{ expect = 'x', console = 'uart1' }}"),
            format!("{good}, {{ sleep = '1s' }}"),
        ] {
            assert_eq!(written(&other), None, "{other}");
        }
    }
}
