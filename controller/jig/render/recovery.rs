//! What is done to recover the rig, in words.

use jig_model::recovery::RecoveryEvent;

use super::{Style, seconds};

/// Says an event of a ladder; may quote devices: escape before printing.
pub(crate) fn repair_words(event: &RecoveryEvent) -> (String, Style) {
    match event {
        RecoveryEvent::Began { cause, ladder, timeout_ms } => {
            let steps = ladder.iter().filter(|rung| rung.skip.is_none());
            let steps: Vec<_> = steps.map(|rung| rung.step.as_str()).collect();
            let steps = if steps.is_empty() { "no step".to_owned() } else { steps.join(", ") };
            let timeout = seconds(*timeout_ms);
            (format!("{cause}: the rig is recovered, within {timeout}: {steps}"), Style::Warn)
        }
        RecoveryEvent::Step { step } => {
            let meaning = step.meaning().trim_end_matches('.');
            (format!("{step}: {}", lower_first(meaning)), Style::Dim)
        }
        RecoveryEvent::Proof { step, ok: true, detail, took_ms } => {
            (format!("{step} helped, in {}: {detail}", seconds(*took_ms)), Style::Good)
        }
        RecoveryEvent::Proof { step, ok: false, detail, took_ms } => {
            (format!("{step} did not help, in {}: {detail}", seconds(*took_ms)), Style::Warn)
        }
        RecoveryEvent::Ended { recovered_by: Some(step), took_ms, .. } => {
            (format!("the rig works again, by {step}, after {}", seconds(*took_ms)), Style::Good)
        }
        RecoveryEvent::Ended { recovered_by: None, took_ms, detail } => {
            (format!("the rig was not recovered in {}: {detail}", seconds(*took_ms)), Style::Bad)
        }
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
