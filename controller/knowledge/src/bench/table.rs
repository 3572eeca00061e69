//! The figures as text.

use super::measures::Interval;
use super::run::BenchTable;
use super::scale::{ScaleBuild, ScaleTiming};
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
    if let Some(model) = &table.model {
        text.insert_str(0, &format!("embedding model: {model}\n"));
    }
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
    text.push_str(&format!("\n{} units\n", times.units));
    text.push_str(&took("search, 40 words", times.short));
    text.push_str(&took("search, 400 words", times.long));
    if let Some(with_model) = times.with_model {
        text.push_str(&took("search, 40 words, with the embedding model", with_model));
    }
    text.push_str(&took("capture of one unit, durable", times.insert));
    text.push_str(&took("4 KiB appended and flushed, to compare with that", times.bare_flush));
    text.push_str(&took("opening", times.open));
    let resident = times
        .resident_bytes
        .map_or_else(String::new, |bytes| format!("; process {} MiB", bytes >> 20));
    text.push_str(&format!("{:<52} {} MiB{resident}", "index in memory", times.index_bytes >> 20));
    text
}

/// Writes the table of a store of many units.
pub fn scale_table(build: &ScaleBuild, times: &ScaleTiming) -> String {
    let seconds = |name: &str, of: f64| format!("{name:<52} {of:12.1} s\n");
    let mut text = format!("\n{} units with vectors of their words\n", build.units);
    text.push_str(&seconds("storing, a thousand in a transaction", build.store_s));
    text.push_str(&seconds("reindex", build.reindex_s));
    text.push_str(&seconds("making vectors, without the time of a model", build.vectors_s));
    text.push_str(&took("opening", times.open));
    let loaded = times.open_with_vectors_ms;
    text.push_str(&format!("{:<52}     {loaded:8.2} ms\n", "opening and reading the vectors"));
    text.push_str(&took("search with vectors, 40 words", times.short));
    text.push_str(&took("search with vectors, 400 words", times.long));
    text.push_str(&took("capture of one unit, durable", times.insert));
    text.push_str(&took("4 KiB appended and flushed, to compare with that", times.bare_flush));
    if let Some(bytes) = times.resident_bytes {
        text.push_str(&format!("{:<52} {} MiB\n", "memory of the process", bytes >> 20));
    }
    text
}

fn took(name: &str, of: Percentiles) -> String {
    let Percentiles { count, p50_ms, p99_ms } = of;
    format!("{name:<52} p50 {p50_ms:8.2} ms   p99 {p99_ms:8.2} ms   of {count}\n")
}
