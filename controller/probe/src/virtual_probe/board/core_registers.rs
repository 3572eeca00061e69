//! What is known of a halted core's registers, and how the stub numbers them.

use std::collections::HashMap;

pub(super) const R0: usize = 0;
pub(super) const SP: usize = 13;
pub(super) const LR: usize = 14;
pub(super) const PC: usize = 15;
pub(super) const XPSR: usize = 16;

/// Numbers of floating-point registers in the stub, by name. Empty without the unit.
#[derive(Debug, Clone, Default)]
pub(super) struct StubNumbers(HashMap<String, u32>);

impl StubNumbers {
    /// Counts through register descriptions, in the order they are included.
    pub(super) fn parse(documents: &[String]) -> Self {
        let mut numbers = HashMap::new();
        let mut next: u32 = 0;
        for document in documents {
            for tag in document.split("<reg ").skip(1) {
                let tag = tag.split('>').next().unwrap_or_default();
                if let Some(number) = attribute(tag, "regnum").and_then(|n| n.parse().ok()) {
                    next = number;
                }
                if let Some(name) = attribute(tag, "name") {
                    numbers.insert(name.to_owned(), next);
                }
                next = next.saturating_add(1);
            }
        }
        Self(numbers)
    }

    pub(super) fn get(&self, name: &str) -> Option<u32> {
        self.0.get(name).copied()
    }
}

/// Lists the documents that a register description includes.
pub(super) fn included(document: &str) -> impl Iterator<Item = &str> {
    document.split("xi:include").skip(1).filter_map(|tag| attribute(tag, "href")).take(16)
}

fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let from = tag.find(&format!("{name}=\""))? + name.len() + 2;
    tag[from..].split('"').next()
}

/// What a halted core's registers hold: r0 to r15, then xPSR.
#[derive(Debug, Default)]
pub(super) struct Registers {
    pub(super) values: Option<[u32; 17]>,
    /// Which were written and not told to the core yet, a bit each.
    pub(super) dirty: u32,
    /// Registers that only instructions reach, read once a halt.
    pub(super) special: Option<Special>,
    /// A step that was reported done and is yet to be executed; see [`EmulatedBoard::owe_step`].
    pub(super) owed: bool,
}

impl Registers {
    pub(super) fn set_from(&mut self, values: [u32; 17]) {
        *self = Self { values: Some(values), ..Self::default() };
    }
}

/// Stack pointers and masks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Special {
    pub(super) msp: u32,
    pub(super) psp: u32,
    pub(super) primask: u32,
    pub(super) basepri: u32,
    pub(super) faultmask: u32,
    pub(super) control: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_over_documents() {
        let target = "<target><xi:include href=\"core.xml\"/><xi:include href=\"vfp.xml\"/>";
        assert_eq!(included(target).collect::<Vec<_>>(), ["core.xml", "vfp.xml"]);
        let documents = [
            "<reg name=\"r0\" bitsize=\"32\"/><reg name=\"xpsr\" bitsize=\"32\" regnum=\"25\"/>",
            "<reg name=\"d0\"/><reg name=\"d1\"/><reg name=\"fpscr\"/>",
        ];
        let numbers = StubNumbers::parse(&documents.map(str::to_owned));
        let found = ["xpsr", "d1", "fpscr", "d2"].map(|name| numbers.get(name));
        assert_eq!(found, [Some(25), Some(27), Some(28), None]);
    }
}
