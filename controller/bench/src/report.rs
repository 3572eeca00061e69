//! The table for people, and the figures behind it.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::sample::BenchRow;
use super::setting::BenchSetting;
use xtask::failure::TaskFailure;

/// Returns the load averages as the kernel words them; empty where it does not.
pub(super) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Returns how many processors there are.
pub(super) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the time of the wall's clock in seconds, by which numbers are filed.
pub(super) fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// Keeps all numbers in `<target>/bench/<seconds>.json`.
pub(super) fn keep(
    setting: &BenchSetting,
    rows: &[BenchRow],
    before: &str,
) -> Result<PathBuf, TaskFailure> {
    let seconds = seconds();
    let path = setting.numbers().join(format!("{seconds}.json"));
    let document = json!({
        "format": "jig-bench",
        "version": 1,
        "unix_time": seconds,
        "processors": processors(),
        "load_before": before,
        "load_after": load(),
        "rows": rows,
    });
    fs::write(&path, format!("{document:#}\n")).map_err(TaskFailure::io("write", &path))?;
    Ok(path)
}

/// Draws the table.
pub(super) fn table(rows: &[BenchRow]) -> String {
    let head = ["measurement", "floor", "ours", "ratio", "goal", ""].map(str::to_owned);
    let mut cells = vec![head];
    for row in rows {
        let number = |value: f64| format!("{value:.1} {}", row.unit);
        let floor = row.ratio().map_or_else(String::new, |_| {
            format!("{} ({})", number(row.floor.median()), row.floor_is)
        });
        let ratio = row.ratio().map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        let met = row.met().map_or("", |met| if met { "ok" } else { "MISSED" });
        cells.push([
            row.what.clone(),
            floor,
            number(row.ours.median()),
            ratio,
            row.goal.to_string(),
            met.to_owned(),
        ]);
    }
    let widths: Vec<usize> = (0..6)
        .map(|column| cells.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in &cells {
        let padded = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(text, "{}", padded.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Goal, Samples};

    #[test]
    fn a_missed_goal_is_shouted() {
        let row = BenchRow {
            what: "cycle".into(),
            unit: "ms",
            floor_is: "bare".into(),
            floor: Samples(vec![10.0]),
            ours: Samples(vec![25.0]),
            goal: Goal::Within { factor: 1.1, plus: 0.0 },
        };
        let quick = BenchRow::alone("start", "ms", vec![2.0], 10.0);
        let text = table(&[row, quick]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[1], "cycle        10.0 ms (bare)  25.0 ms  2.50   <= 1.10x  MISSED");
        assert_eq!(lines[2], "start                        2.0 ms          < 10      ok");
    }
}
