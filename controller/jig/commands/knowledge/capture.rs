//! `jig kb capture`: learns from runs that nothing was learnt from yet.

use jig_knowledge::Observed;
use jig_lab::{CaughtUp, KnowledgeOrder, KnowledgeReply, LearnError};
use jig_model::{Fault, exit};
use serde_json::json;

use super::{KbDesk, shown};
use crate::args::{Common, KbCaptureArgs};
use crate::commands::execute::unexpected;
use crate::commands::repair::capture_repair;
use crate::failure::Failure;
use crate::render::one_line;

/// Learns from one run, or from the latest ones. JSON: of one run `{"run","kept",...}`, of several
/// `{"runs","new_units","queued","damaged"}`.
pub(super) fn capture(
    common: &Common,
    at: &KbDesk<'_>,
    args: &KbCaptureArgs,
) -> Result<u8, Failure> {
    let Some(wanted) = &args.run else { return all(at) };
    let (run, observed) = if wanted.starts_with('r') {
        if at.is_elsewhere() {
            let words = "a repair run is learnt from at the host on which it was begun";
            return Err(Failure::new(Fault::Usage, words).help(format!(
                "leave out --rig and JIG_RIG: jig kb capture {}",
                one_line(wanted)
            )));
        }
        capture_repair(common, wanted)?
    } else {
        match at.ask(KnowledgeOrder::Capture { wanted: Some(wanted.clone()) })? {
            KnowledgeReply::Learnt { run, observed } => (run, observed),
            _ => return Err(unexpected()),
        }
    };
    if at.screen.json() {
        let mut told = json!(observed);
        told["run"] = json!(run);
        at.screen.out_json(&told);
        return Ok(exit::PASS);
    }
    match &observed {
        Observed::Learnt(learnt) if learnt.known => {
            at.screen.out(&format!("{run}: learnt from before"));
        }
        Observed::Learnt(learnt) if learnt.units.is_empty() => {
            at.screen.out(&format!("{run}: noted; it teaches nothing by itself"));
        }
        Observed::Learnt(learnt) => {
            for unit in &learnt.units {
                let what = if unit.new { "new" } else { "renewed" };
                at.screen.out(&format!("{run}: {} {what}", unit.id));
            }
        }
        Observed::Queued { file, why } => at.screen.insist(&format!(
            "{run}: the store did not take it ({}); it waits in {}",
            one_line(why),
            shown(file)
        )),
    }
    Ok(exit::PASS)
}

fn all(at: &KbDesk<'_>) -> Result<u8, Failure> {
    let KnowledgeReply::CaughtUp(caught_up) = at.ask(KnowledgeOrder::Capture { wanted: None })?
    else {
        return Err(unexpected());
    };
    let CaughtUp { runs, new_units, queued, damaged, more: _ } = caught_up;
    if at.screen.json() {
        let damaged: Vec<_> = damaged.iter().map(|path| path.display().to_string()).collect();
        at.screen.out_json(&json!({
            "runs": runs, "new_units": new_units, "queued": queued, "damaged": damaged,
        }));
        return Ok(exit::PASS);
    }
    at.screen.out(&format!(
        "learnt from {runs} runs, and from {queued} that had waited in the outbox; new units: {new_units}"
    ));
    for path in damaged {
        at.screen.insist(&format!("{} is damaged and was left where it is", shown(&path)));
    }
    Ok(exit::PASS)
}

impl From<LearnError> for Failure {
    fn from(error: LearnError) -> Self {
        let of = |fault, help: &str| Self::of(fault, &error).help(help);
        match error {
            LearnError::Unended(_) => {
                of(Fault::Usage, "jig runs attach shows what it does; repeat this then")
            }
            LearnError::Elsewhere(_) => of(
                Fault::Usage,
                "type this at the host of the rig, or add a unit: jig kb add --title WORDS",
            ),
            LearnError::Run(error) => error.into(),
            LearnError::Knowledge(error) => error.into(),
        }
    }
}
