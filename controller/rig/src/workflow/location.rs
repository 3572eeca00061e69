//! Where in the plan the workflow stands.
//!
//! Owns the indices, and turns them into the names and lists that the record shows.

use jig_model::ActionName;
use jig_model::plan::{Behavior, Plan, Stage, Step};

use super::record::{Current, Goals, Location, PlanProgress, Track};
use super::state::State;

/// How deep in the plan the workflow stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Outside: not begun, or all done.
    #[default]
    Workflow,
    /// In a stage.
    Stage,
    /// In a step.
    Step,
    /// In a behaviour.
    Behavior,
}

/// A place in a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// How many of the indices mean something.
    pub depth: Depth,
    /// Index of the stage.
    pub stage: usize,
    /// Index of the step.
    pub step: usize,
    /// Index of the behaviour.
    pub behavior: usize,
    /// How many behaviours were started in this step, repetitions included.
    pub iteration: u32,
}

impl Position {
    /// Returns the stage, whether or not it has begun.
    pub fn stage<'p>(&self, plan: &'p Plan) -> Option<&'p Stage> {
        plan.stages.get(self.stage)
    }

    /// Returns the step, whether or not it has begun.
    pub fn step<'p>(&self, plan: &'p Plan) -> Option<&'p Step> {
        self.stage(plan)?.steps.get(self.step)
    }

    /// Returns the behaviour, whether or not it has begun.
    pub fn behavior<'p>(&self, plan: &'p Plan) -> Option<&'p Behavior> {
        self.step(plan)?.behaviors.get(self.behavior)
    }

    /// Tells whether a stage follows.
    pub fn has_next_stage(&self, plan: &Plan) -> bool {
        self.stage + 1 < plan.stages.len()
    }

    /// Tells whether a step follows in this stage.
    pub fn has_next_step(&self, plan: &Plan) -> bool {
        self.stage(plan).is_some_and(|stage| self.step + 1 < stage.steps.len())
    }

    /// Tells whether a behaviour follows in this step.
    pub fn has_next_behavior(&self, plan: &Plan) -> bool {
        self.step(plan).is_some_and(|step| self.behavior + 1 < step.behaviors.len())
    }

    pub(super) fn enter_stage(&mut self, index: usize) {
        *self = Self { depth: Depth::Stage, stage: index, ..Self::default() };
    }

    pub(super) fn enter_step(&mut self, index: usize) {
        *self = Self { depth: Depth::Step, stage: self.stage, step: index, ..Self::default() };
    }

    pub(super) fn enter_behavior(&mut self, index: usize) {
        self.depth = Depth::Behavior;
        self.behavior = index;
        self.iteration = self.iteration.saturating_add(1);
    }

    /// Goes back up to a level that was completed.
    pub(super) fn leave_to(&mut self, depth: Depth) {
        self.depth = self.depth.min(depth);
    }

    /// Returns the path of an action of the current behaviour.
    pub(super) fn path(&self, plan: &Plan, action: &ActionName) -> String {
        let stage = self.stage(plan).map_or("-", |s| s.name.as_str());
        let step = self.step(plan).map_or("-", |s| s.name.as_str());
        let behavior = self.behavior(plan).map_or("-", |b| b.name.as_str());
        format!("{stage}/{step}/{behavior}/{action}")
    }

    /// Computes names, progress and goals.
    pub(super) fn location(&self, plan: &Plan, state: State) -> Location {
        let stage = self.stage(plan).filter(|_| self.depth >= Depth::Stage);
        let step = self.step(plan).filter(|_| self.depth >= Depth::Step);
        let behavior = self.behavior(plan).filter(|_| self.depth >= Depth::Behavior);
        let text = |name: &ActionName| name.as_str().to_owned();
        let current = Current {
            stage_id: stage.map(|s| text(&s.name)),
            step_id: step.map(|s| text(&s.name)),
            behavior_id: behavior.map(|b| text(&b.name)),
            behavior_iteration: self.iteration,
        };
        let all_done = state == State::WorkflowCompleted;
        let stages = plan.stages.iter().map(|s| text(&s.name)).collect();
        let stages = match (all_done, stage) {
            (true, _) => Track { completed: stages, current: None, remaining: Vec::new() },
            (false, None) => Track { completed: Vec::new(), current: None, remaining: stages },
            (false, Some(_)) => track(stages, self.stage, state == State::StageCompleted),
        };
        let steps = match (stage, step) {
            (None, _) => Track::default(),
            (Some(stage), step) => {
                let names: Vec<_> = stage.steps.iter().map(|s| text(&s.name)).collect();
                match step {
                    Some(_) => track(names, self.step, state == State::StepCompleted),
                    None if state == State::StageCompleted => {
                        Track { completed: names, current: None, remaining: Vec::new() }
                    }
                    None => Track { completed: Vec::new(), current: None, remaining: names },
                }
            }
        };
        let behaviors = match (step, behavior) {
            (Some(step), Some(_)) => {
                let names = step.behaviors.iter().map(|b| text(&b.name)).collect();
                track(names, self.behavior, state == State::BehaviorCompleted)
            }
            _ => Track::default(),
        };
        let goals = Goals {
            workflow: plan.goal.clone(),
            stage: stage.map(|s| s.goal.clone()).unwrap_or_default(),
            step: step.map(|s| s.goal.clone()).unwrap_or_default(),
        };
        Location { current, progress: PlanProgress { stages, steps, behaviors }, goals }
    }
}

/// Splits names at the current one.
fn track(mut names: Vec<String>, current: usize, is_completed: bool) -> Track {
    let remaining = names.split_off((current + 1).min(names.len()));
    let current = if is_completed { None } else { names.pop() };
    Track { completed: names, current, remaining }
}
