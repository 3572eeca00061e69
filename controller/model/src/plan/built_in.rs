//! The plan that runs where none was written.

use std::collections::BTreeSet;
use std::time::Duration;

use super::action::defaults;
use super::check::MAX_WAIT;
use super::types::{Action, ActionKind, Behavior, Plan, PowerOp, Requirements, Stage, Step};
use crate::pattern::Pattern;
use crate::{ActionName, ConsoleName, Strictness};

/// What `jig run` waits for.
#[derive(Debug, Clone, Default)]
pub struct RunWaits {
    /// How often the target is expected to reset itself first.
    pub resets: u8,
    /// The first line of the boot behind each of these resets.
    pub next_boot: Option<Pattern>,
    /// A text that is waited for in place of a test report.
    pub until: Option<Pattern>,
    /// Where all of it is waited for; on the primary console if none is named.
    pub console: Option<ConsoleName>,
    /// How long each wait may take; it is held between a millisecond and a day, so that the plan
    /// always ends.
    pub timeout: Duration,
}

impl RunWaits {
    /// Waits for a test report, or for a text, on the primary console.
    pub fn new(until: Option<Pattern>, timeout: Duration) -> Self {
        Self { until, timeout, ..Self::default() }
    }
}

/// Builds the plan of `jig run`: deploy the image if there is one, power cycle, and wait.
pub fn default_plan(has_image: bool, waits: RunWaits) -> Plan {
    let RunWaits { resets, next_boot, until, console, timeout } = waits;
    let timeout = timeout.clamp(Duration::from_millis(1), MAX_WAIT);
    let reset = ActionKind::ExpectReset { console: console.clone(), begins: next_boot };
    let mut waits = vec![(reset, timeout); resets.into()];
    let kind = match until {
        Some(pattern) => {
            ActionKind::Expect { console, any: vec![pattern], reject: Vec::new(), echo: false }
        }
        None => ActionKind::WaitForResults { console, format: None },
    };
    let goal = "the firmware boots and reports";
    waits.push((kind, timeout));
    boot_and("run", goal, has_image, waits)
}

/// Builds the plan of `jig console`: deploy the image if there is one, power cycle, and leave the
/// board running until the user ends the session, for a day at most.
pub fn console_plan(has_image: bool) -> Plan {
    let kind = ActionKind::Sleep { duration: MAX_WAIT };
    boot_and("console", "somebody talks to the board", has_image, vec![(kind, MAX_WAIT)])
}

/// Builds the plan of `jig exec` and `jig cp`: boot the board if it has to be booted for that, and carry
/// out one action.
pub fn command_plan(boots: bool, kind: ActionKind, timeout: Duration) -> Plan {
    let timeout = timeout.clamp(Duration::from_millis(1), MAX_WAIT);
    let goal = "a command is carried out on the target";
    let boot = (ActionKind::Boot { until: None }, defaults::BOOT);
    let last = (kind, timeout);
    let mut plan = boot_and("command", goal, false, vec![boot, last]);
    if !boots {
        for behavior in
            plan.stages.iter_mut().flat_map(|s| &mut s.steps).flat_map(|s| &mut s.behaviors)
        {
            behavior.actions.drain(..behavior.actions.len().saturating_sub(1));
        }
    }
    plan
}

fn boot_and(text: &str, goal: &str, has_image: bool, last: Vec<(ActionKind, Duration)>) -> Plan {
    let mut kinds = Vec::new();
    if has_image {
        kinds.push((ActionKind::Deploy { image: None }, defaults::DEPLOY));
    }
    kinds.push((ActionKind::Power { op: PowerOp::Cycle }, defaults::POWER));
    kinds.extend(last);
    // Each action keeps to its own time; together they cannot take longer.
    let timeout = kinds.iter().map(|(_, timeout)| *timeout).sum();
    let mut resets = 0;
    let action = |(kind, timeout): (ActionKind, Duration)| {
        let name = match &kind {
            ActionKind::Deploy { .. } => "deploy".to_owned(),
            ActionKind::Power { .. } => "power".to_owned(),
            ActionKind::Boot { .. } => "boot".to_owned(),
            ActionKind::ExpectReset { .. } => {
                resets += 1;
                format!("expect-reset-{resets}")
            }
            _ => text.to_owned(),
        };
        Action { name: ActionName::made(name), timeout, kind }
    };
    let name = || ActionName::made(text.to_owned());
    let actions = kinds.into_iter().map(action).collect();
    let behaviors = vec![Behavior { name: name(), actions }];
    let step = Step { name: name(), goal: String::new(), attempts: 1, behaviors };
    let stage = Stage { name: name(), goal: String::new(), steps: vec![step] };
    Plan {
        name: name(),
        goal: goal.to_owned(),
        requires: Requirements::default(),
        timeout,
        markers: None,
        allow_output: Vec::new(),
        strict: Strictness::Off,
        reject: Vec::new(),
        ignore_reports_on: BTreeSet::new(),
        settle: None,
        stages: vec![stage],
        origin: "built-in".to_owned(),
    }
}
