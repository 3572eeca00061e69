//! The plan that runs where nobody wrote one.

use std::time::Duration;

use super::action::defaults;
use super::lower::MAX_WAIT;
use super::types::{Action, ActionKind, Behavior, Plan, PowerOp, Requirements, Stage, Step};
use crate::ActionName;
use crate::pattern::Pattern;

/// Builds the plan of `jig run`: deploy the image if there is one, power cycle, then wait
/// for a test report, or for a text where one is given.
///
/// The time-out is held between a millisecond and a day, so that the plan always ends.
pub fn default_plan(has_image: bool, until: Option<Pattern>, timeout: Duration) -> Plan {
    let timeout = timeout.clamp(Duration::from_millis(1), MAX_WAIT);
    let action = |name: &str, limit: Duration, kind| Action {
        name: ActionName::made(name.to_owned()),
        timeout: limit.min(timeout),
        kind,
    };
    let mut actions = Vec::new();
    if has_image {
        actions.push(action("deploy-1", defaults::DEPLOY, ActionKind::Deploy { image: None }));
    }
    let cycle = ActionKind::Power { op: PowerOp::Cycle };
    actions.push(action("power-1", defaults::POWER, cycle));
    actions.push(match until {
        Some(pattern) => {
            let any = vec![pattern];
            let kind = ActionKind::Expect { console: None, any, reject: Vec::new() };
            action("expect-1", timeout, kind)
        }
        None => {
            let kind = ActionKind::WaitForResults { console: None, format: None };
            action("wait-for-results-1", timeout, kind)
        }
    });
    let name = |text: &str| ActionName::made(text.to_owned());
    let behaviors = vec![Behavior { name: name("run"), actions }];
    let step = Step { name: name("run"), goal: String::new(), attempts: 1, behaviors };
    let stage = Stage { name: name("run"), goal: String::new(), steps: vec![step] };
    Plan {
        name: name("run"),
        goal: "the firmware boots and reports".to_owned(),
        requires: Requirements::default(),
        timeout,
        markers: None,
        stages: vec![stage],
        origin: "built-in".to_owned(),
    }
}
