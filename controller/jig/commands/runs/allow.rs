//! `jig runs allow`: patterns for the lines of a run that nothing accounts for.

use std::fmt::Write as _;

use jig_model::{Fault, RunId, exit};
use jig_rig::store::{RunDir, UnaccountedKind, UnaccountedOutput};
use serde_json::json;

use super::source::OpenedRun;
use crate::failure::{Failure, chain};
use crate::render::{Screen, one_line};

/// Proposes `allow_output` for the last attempt of a run that has lines nothing accounts for. JSON:
/// `{"run","attempt","lines","kinds"}`, the kinds as in the run's `unaccounted.json`; without such lines
/// `attempt` is null.
pub(super) fn allow(screen: &Screen, run: &OpenedRun) -> Result<u8, Failure> {
    let dir = &run.entry.dir;
    let found = last_list(dir)?;
    if screen.json() {
        let (attempt, output) = found.unzip();
        let UnaccountedOutput { lines, kinds } = output.unwrap_or_default();
        let run = dir.id();
        screen.out_json(&json!({ "run": run, "attempt": attempt, "lines": lines, "kinds": kinds }));
        return Ok(exit::PASS);
    }
    match found {
        Some((attempt, output)) => screen.out(proposal(dir.id(), attempt, &output).trim_end()),
        None => screen.say(&format!(
            "run {} has no list of lines that nothing accounts for. A run has one if it passed, or if such \
             a line alone kept it from that: with --strict of all output, else of what stands behind the \
             report",
            dir.id(),
        )),
    }
    Ok(exit::PASS)
}

/// Reads the list of the last attempt that has one.
fn last_list(dir: &RunDir) -> Result<Option<(u32, UnaccountedOutput)>, Failure> {
    for attempt in dir.attempts().into_iter().rev() {
        let path = dir.unaccounted_path(attempt);
        let read = UnaccountedOutput::read(&path);
        let read = read.map_err(|error| {
            Failure::new(Fault::Lab, format!("{}: {}", path.display(), chain(&error)))
        })?;
        if let Some(output) = read {
            return Ok(Some((attempt, output)));
        }
    }
    Ok(None)
}

fn proposal(run: &RunId, attempt: u32, output: &UnaccountedOutput) -> String {
    let UnaccountedOutput { lines, kinds } = output;
    let mut text = format!(
        "# lines of run {run}, attempt {attempt}, that nothing accounts for: {lines}. Keep what is harmless.\n\
         allow_output = [\n"
    );
    for UnaccountedKind { pattern, doubtful, lines, file, start, text: line, .. } in kinds {
        let place = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".raw");
        let times = if *lines == 1 { String::new() } else { format!(", {lines} lines") };
        let (off, why) = if *doubtful { ("# ", "looks like trouble: ") } else { ("", "") };
        let _ = writeln!(text, "    # {place} @{start}{times}: {why}{}", one_line(line));
        let _ = writeln!(text, "    {off}{},", toml::Value::from(pattern.as_str()));
    }
    let more = lines.saturating_sub(kinds.iter().map(|kind| kind.lines).sum());
    if more > 0 {
        let _ = writeln!(text, "    # and {more} more lines, of kinds that are not listed");
    }
    text + "]\n"
}

#[cfg(test)]
mod tests {
    use jig_rig::store::pattern_of_kind;

    use super::*;

    #[test]
    fn a_proposal_is_toml_whatever_a_target_has_printed() {
        let kind = |text: &str| UnaccountedKind {
            pattern: pattern_of_kind(text),
            doubtful: text.starts_with("oops"),
            lines: 2,
            file: "consoles/1/uart0.raw".to_owned(),
            start: 7,
            end: 9,
            text: text.to_owned(),
        };
        let lines = ["it's \"5\" o'clock", "\u{1b}[31m x\r\ny = 1", "''' \\ \"\"\"", "oops 1"];
        let kinds: Vec<_> = lines.map(kind).into();
        let run = serde_json::from_str("\"20260101-000000-0000\"").unwrap();
        let text = proposal(&run, 1, &UnaccountedOutput { lines: 9, kinds: kinds.clone() });
        let read: toml::Table = text.parse().unwrap();
        let read: Vec<_> =
            read["allow_output"].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
        let proposed: Vec<_> = kinds[..3].iter().map(|kind| kind.pattern.as_str()).collect();
        assert_eq!(read, proposed, "{text}");
        assert!(
            text.contains("# uart0 @7, 2 lines: looks like trouble: oops 1\n    # \""),
            "{text}"
        );
        assert!(text.contains("and 1 more lines"), "{text}");
    }
}
