//! The figures as text.

use super::measures::Interval;
use super::run::BenchTable;
use super::timing::{Percentiles, Timing};

/// Writes both tables.
pub fn table(table: &BenchTable, times: &Timing) -> String {
    let mut text = format!(
        "{} documents; {} newer questions measured, {} older ones learnt from, {} without an older answer\n\
         {:<52} {:<19}{:<19}{:<19}{}\n",
        table.documents,
        table.questions,
        table.learnt_from,
        table.unanswerable,
        "system (mean, interval of 95 %)",
        "R@1",
        "R@10",
        "nDCG@10",
        "MRR"
    );
    let share = |of: Interval| format!("{:.3} {:.3}-{:.3}  ", of.mean, of.low, of.high);
    for row in &table.systems {
        let quality = row.quality;
        text.push_str(&format!(
            "{:<52} {}{}{}{}\n",
            row.system,
            share(quality.r1),
            share(quality.r10),
            share(quality.ndcg10),
            share(quality.mrr).trim_end()
        ));
    }
    let took = |name: &str, of: Percentiles| {
        format!(
            "{name:<52} p50 {:8.2} ms   p99 {:8.2} ms   of {}\n",
            of.p50_ms, of.p99_ms, of.count
        )
    };
    text.push_str(&format!("\n{} units\n", times.units));
    text.push_str(&took("search, 40 words", times.short));
    text.push_str(&took("search, 400 words", times.long));
    text.push_str(&took("capture of one unit, durable", times.insert));
    text.push_str(&took("4 KiB appended and flushed, to compare with that", times.bare_flush));
    text.push_str(&took("opening", times.open));
    let resident = times
        .resident_bytes
        .map_or_else(String::new, |bytes| format!("; process {} MiB", bytes >> 20));
    text.push_str(&format!("{:<52} {} MiB{resident}", "index in memory", times.index_bytes >> 20));
    text
}
