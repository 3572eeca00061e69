//! From the plan as written to the plan that can run, with every problem found on the way.
//!
//! Owns what the levels of a plan must have, and the order that makes sense in time.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::action;
use super::check::{MAX_WAIT, Names, nothing_to_do, wait_ends};
use super::raw::{RawAction, RawBehavior, RawMarkers, RawPlan, RawRequires, RawStage, RawStep};
use super::types::{
    Action, ActionKind, Behavior, Markers, Plan, PowerOp, Requirements, Stage, Step,
};
use crate::document::{Findings, Located, document_schema, open};
use crate::result::ResultFormat;
use crate::{ActionName, ConsoleName, Problems};

/// Version of the plan language that is read.
pub(super) const VERSION: u32 = 1;

/// Most attempts of a step: a thousand tries measure how flaky a thing is; more only
/// keep a board busy.
pub const MAX_ATTEMPTS: u32 = 1000;

impl Plan {
    /// Returns the text of the plan language's JSON Schema file.
    pub fn json_schema() -> String {
        document_schema::<RawPlan>("Jig test plan")
    }

    /// Reads a plan. `origin` says where it came from, for messages.
    ///
    /// # Errors
    /// All problems of the document, in its order.
    pub fn parse(origin: &str, text: &str) -> Result<Self, Problems> {
        let findings = Findings::new();
        let plan = open::<RawPlan>("plan", VERSION, text, &findings)
            .and_then(|raw| lower_plan(raw.value, origin, &findings));
        findings.finish("plan", origin, text, plan)
    }
}

fn lower_plan(raw: RawPlan, origin: &str, findings: &Findings) -> Option<Plan> {
    if let Some(timeout) = &raw.timeout {
        wait_ends("timeout", timeout.value, timeout.at(), findings);
    }
    if let Some(settle) = &raw.settle {
        wait_ends("settle", settle.value, settle.at(), findings);
    }
    // Without a time-out of its own, which was reported, the plan is still looked at.
    let timeout = raw.timeout.map_or(MAX_WAIT, |t| t.value);
    let mut lowering = Lowering::new(timeout, findings);
    let markers = raw.markers.as_ref().and_then(|m| lower_markers(m.value.clone()));
    let stages = raw.stage.map(|stages| {
        if stages.value.is_empty() {
            nothing_to_do("the plan", "a `[[stage]]`", stages.at(), findings);
        }
        lowering.stages(stages.value, Names::default())
    });
    lowering.markers_are_used(raw.markers.as_ref());
    Some(Plan {
        name: raw.name?.value,
        goal: raw.goal.map(|g| g.value).unwrap_or_default(),
        requires: raw.requires.map(|r| lower_requires(r.value)).unwrap_or_default(),
        timeout,
        markers,
        allow_output: values(raw.allow_output),
        strict: raw.strict.map(|strict| strict.value).unwrap_or_default(),
        reject: values(raw.reject),
        ignore_reports_on: values(raw.ignore_reports_on),
        settle: raw.settle.map(|settle| settle.value),
        stages: stages?,
        origin: origin.to_owned(),
    })
}

fn values<T, C: FromIterator<T> + Default>(list: Option<Located<Vec<Located<T>>>>) -> C {
    list.map(|l| l.value.into_iter().map(|item| item.value).collect()).unwrap_or_default()
}

fn lower_requires(raw: RawRequires) -> Requirements {
    Requirements {
        boards: values(raw.boards),
        arch: values(raw.arch),
        features: values::<_, BTreeSet<String>>(raw.features),
        consoles: values(raw.consoles),
    }
}

fn lower_markers(raw: RawMarkers) -> Option<Markers> {
    Some(Markers {
        start: raw.start.map(|p| p.value),
        pass: raw.pass?.value,
        fail: raw.fail?.value,
        skip: raw.skip.map(|p| p.value),
        planned: raw.planned.map(|p| p.value),
        end: raw.end?.value,
    })
}

/// Lowers stages and what is in them, and remembers what the order of actions tells.
#[derive(Debug)]
pub(super) struct Lowering<'f> {
    timeout: Duration,
    findings: &'f Findings,
    /// Whether an action so far has made the board run.
    has_run: bool,
    /// Whether an action accepts results by markers.
    accepts_markers: bool,
    /// Where results by markers are asked for by name.
    names_markers: Vec<std::ops::Range<usize>>,
    /// The console that the first wait for results reads.
    results_console: Option<Option<ConsoleName>>,
}

impl<'f> Lowering<'f> {
    pub(super) fn new(timeout: Duration, findings: &'f Findings) -> Self {
        Self {
            timeout,
            findings,
            has_run: false,
            accepts_markers: false,
            names_markers: Vec::new(),
            results_console: None,
        }
    }

    /// Says that earlier actions, which are not lowered here, have made the board run.
    pub(super) fn already_running(mut self) -> Self {
        self.has_run = true;
        self
    }

    pub(super) fn stages(&mut self, raw: Vec<Located<RawStage>>, mut names: Names) -> Vec<Stage> {
        raw.into_iter().filter_map(|stage| self.stage(stage, &mut names)).collect()
    }

    fn stage(&mut self, raw: Located<RawStage>, names: &mut Names) -> Option<Stage> {
        let RawStage { name, goal, step } = raw.value;
        if let Some(name) = &name {
            names.take(name, "stage of the plan", self.findings);
        }
        let steps = step.map(|steps| {
            if steps.value.is_empty() {
                nothing_to_do("the stage", "a `[[stage.step]]`", steps.at(), self.findings);
            }
            self.steps(steps.value, Names::default())
        });
        Some(Stage { name: name?.value, goal: text(goal), steps: steps? })
    }

    pub(super) fn steps(&mut self, raw: Vec<Located<RawStep>>, mut names: Names) -> Vec<Step> {
        raw.into_iter().filter_map(|step| self.step(step, &mut names)).collect()
    }

    fn step(&mut self, raw: Located<RawStep>, names: &mut Names) -> Option<Step> {
        let place = raw.at();
        let RawStep { name, goal, attempts, actions, behavior } = raw.value;
        if let Some(name) = &name {
            names.take(name, "step of the stage", self.findings);
        }
        let attempts = self.attempts(attempts);
        let behaviors = match (actions, behavior) {
            (Some(_), Some(behavior)) => {
                self.findings.add(
                    "plan::actions-twice",
                    behavior.at(),
                    "the step has both `actions` and behaviours",
                    "move the actions into a `[[stage.step.behavior]]`",
                );
                None
            }
            (Some(actions), None) => {
                let actions = self.actions(actions, "the step");
                // One behaviour, unnamed by the author, is called as its step.
                let name = name.as_ref().map(|n| n.value.clone());
                name.map(|name| vec![Behavior { name, actions }])
            }
            (None, Some(behaviors)) if !behaviors.value.is_empty() => {
                Some(self.behaviors(behaviors.value))
            }
            (None, given) => {
                let place = given.map_or(place, |list| list.at());
                let add = "`actions = [...]` or a `[[stage.step.behavior]]`";
                nothing_to_do("the step", add, place, self.findings);
                None
            }
        };
        Some(Step { name: name?.value, goal: text(goal), attempts, behaviors: behaviors? })
    }

    fn attempts(&self, raw: Option<Located<u32>>) -> u32 {
        let Some(attempts) = raw else { return 1 };
        if attempts.value == 0 {
            self.findings.add(
                "plan::attempts",
                attempts.at(),
                "a step with no attempt is never run",
                "write 1 or more, or remove the step",
            );
        } else if attempts.value > MAX_ATTEMPTS {
            self.findings.add(
                "plan::endless",
                attempts.at(),
                format!("{} attempts are more than {MAX_ATTEMPTS}", attempts.value),
                "use fewer; `jig test --repeat` measures how often a plan fails",
            );
        }
        attempts.value
    }

    fn behaviors(&mut self, raw: Vec<Located<RawBehavior>>) -> Vec<Behavior> {
        let mut names = Names::default();
        let mut behaviors = Vec::new();
        for RawBehavior { name, actions } in raw.into_iter().map(|b| b.value) {
            if let Some(name) = &name {
                names.take(name, "behaviour of the step", self.findings);
            }
            let actions = actions.map(|actions| self.actions(actions, "the behaviour"));
            if let (Some(name), Some(actions)) = (name, actions) {
                behaviors.push(Behavior { name: name.value, actions });
            }
        }
        behaviors
    }

    fn actions(&mut self, raw: Located<Vec<Located<RawAction>>>, whose: &str) -> Vec<Action> {
        if raw.value.is_empty() {
            let add = "an action, such as `{ power = \"cycle\" }`";
            nothing_to_do(whose, add, raw.at(), self.findings);
        }
        let mut names = Names::default();
        for name in raw.value.iter().filter_map(|a| a.value.keys.name.as_ref()) {
            names.take(name, "action of the behaviour", self.findings);
        }
        let mut counters = HashMap::<&'static str, u32>::new();
        let lowered = raw.value.into_iter().filter_map(|raw| {
            let place = raw.span.clone();
            let given: Option<ActionName> = raw.value.keys.name.as_ref().map(|n| n.value.clone());
            let Some(action) = action::lower(raw, self.timeout, self.findings) else {
                // It may be the one that others need; once recovered, order is checked.
                self.has_run = true;
                self.accepts_markers = true;
                return None;
            };
            self.order(&action.kind, place);
            let counter = counters.entry(action.word).or_default();
            let name = given.unwrap_or_else(|| names.make(action.word, counter));
            Some(Action { name, timeout: action.timeout, kind: action.kind })
        });
        lowered.collect()
    }

    /// Checks that an action comes after what it looks at.
    fn order(&mut self, kind: &ActionKind, place: std::ops::Range<usize>) {
        let key = match kind {
            ActionKind::Power { op: PowerOp::On | PowerOp::Cycle }
            | ActionKind::Reset
            // What carries out a command runs.
            | ActionKind::Exec { .. }
            | ActionKind::Upload { .. }
            | ActionKind::Download { .. }
            | ActionKind::Reboot { .. }
            | ActionKind::Boot { .. } => {
                self.has_run = true;
                return;
            }
            ActionKind::Power { op: PowerOp::Off }
            | ActionKind::Deploy { .. }
            | ActionKind::Send { .. }
            | ActionKind::HostCommand { .. }
            | ActionKind::Sleep { .. } => return,
            ActionKind::Expect { .. } => "expect",
            ActionKind::ExpectReset { .. } => "expect_reset",
            ActionKind::Assert { .. } => "assert",
            ActionKind::WaitForResults { console, format } => {
                self.one_results_console(console, &place);
                match format {
                    None => self.accepts_markers = true,
                    Some(ResultFormat::Markers) => {
                        self.accepts_markers = true;
                        self.names_markers.push(place.clone());
                    }
                    Some(_) => {}
                }
                "wait_for_results"
            }
        };
        if !self.has_run {
            self.findings.add(
                "plan::too-early",
                Some(place),
                format!("`{key}` comes before the board runs, when nothing can have been printed"),
                "put `{ power = \"cycle\" }`, a reset or a boot before it",
            );
            // Once is enough: what follows has the same reason.
            self.has_run = true;
        }
    }

    /// Checks that all waits for results read the same console.
    fn one_results_console(
        &mut self,
        console: &Option<ConsoleName>,
        place: &std::ops::Range<usize>,
    ) {
        let first = self.results_console.get_or_insert_with(|| console.clone());
        if first != console {
            self.findings.add(
                "plan::two-results-consoles",
                Some(place.clone()),
                "results are awaited on another console than before",
                "wait for results on one console; use `expect` for the other",
            );
        }
    }

    /// Checks that markers and the waits that use them come together.
    fn markers_are_used(&self, markers: Option<&Located<RawMarkers>>) {
        match markers {
            Some(markers) if !self.accepts_markers => self.findings.add(
                "plan::unused-markers",
                markers.at(),
                "the plan declares markers but never waits for results",
                "add `{ wait_for_results = true }`, or remove the markers",
            ),
            None => {
                for place in &self.names_markers {
                    self.findings.add(
                        "plan::no-markers",
                        Some(place.clone()),
                        "results by markers are awaited, but the plan declares none",
                        "add a `[markers]` table with pass, fail and end",
                    );
                }
            }
            Some(_) => {}
        }
    }
}

fn text(goal: Option<Located<String>>) -> String {
    goal.map(|g| g.value).unwrap_or_default()
}
