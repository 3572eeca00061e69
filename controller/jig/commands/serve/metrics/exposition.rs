//! The text format of Prometheus, version 0.0.4.
//!
//! Written here: it is one kind of line, and a registry of shared counters would be a second copy of
//! what the stores already hold.

use std::fmt::{Display, Write as _};

/// Kind of a family of samples.
#[derive(Debug, Clone, Copy)]
pub(super) enum FamilyKind {
    /// Only grows, until the service is restarted.
    Counter,
    /// May go up and down.
    Gauge,
    /// Counts of values below bounds.
    Histogram,
}

/// Samples as text.
#[derive(Debug, Default)]
pub(super) struct Exposition(String);

impl Exposition {
    /// Begins a family; its samples follow.
    pub(super) fn family(&mut self, name: &str, kind: FamilyKind, help: &str) {
        let kind = match kind {
            FamilyKind::Counter => "counter",
            FamilyKind::Gauge => "gauge",
            FamilyKind::Histogram => "histogram",
        };
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Adds a sample. Values of labels may hold any text.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (number, (label, text)) in labels.iter().enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"");
            for c in text.chars() {
                match c {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    c => self.0.push(c),
                }
            }
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// Adds a family of one sample.
    pub(super) fn single(&mut self, name: &str, kind: FamilyKind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_labels_stay_in_their_quotes() {
        let mut text = Exposition::default();
        text.family("a", FamilyKind::Counter, "What it is");
        text.sample("a", &[("x", "q\"} 7\nb 8 \\"), ("y", "")], 1);
        text.single("b", FamilyKind::Gauge, "Another", 0.5);
        assert_eq!(
            text.into_text(),
            "# HELP a What it is\n# TYPE a counter\n\
             a{x=\"q\\\"} 7\\nb 8 \\\\\",y=\"\"} 1\n\
             # HELP b Another\n# TYPE b gauge\nb 0.5\n"
        );
    }
}
