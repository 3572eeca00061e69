//! A core's registers as gdb wants them described: features, names, numbers.
//!
//! Source: gdb manual, "ARM Features" and "RISC-V Features"; numbers are those that gdb gives
//! these registers itself.

use crate::{CoreKind, RegisterValue};

/// One register of a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DescribedRegister {
    /// Its name, in gdb's and our words.
    pub(crate) name: String,
    /// Its number in the protocol.
    pub(crate) number: usize,
    /// How wide it is, in bits.
    pub(crate) bits: u16,
}

/// What gdb is told about a core: the registers in the order of their numbers, and the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TargetDescription {
    pub(crate) registers: Vec<DescribedRegister>,
    pub(crate) xml: String,
}

/// Registers that every Cortex-M has, by gdb's numbers; 16 to 24 are those of a floating point
/// unit that no core has any more.
const ARM: [(&str, usize, &str); 17] = [
    ("r0", 0, "int"),
    ("r1", 1, "int"),
    ("r2", 2, "int"),
    ("r3", 3, "int"),
    ("r4", 4, "int"),
    ("r5", 5, "int"),
    ("r6", 6, "int"),
    ("r7", 7, "int"),
    ("r8", 8, "int"),
    ("r9", 9, "int"),
    ("r10", 10, "int"),
    ("r11", 11, "int"),
    ("r12", 12, "int"),
    ("sp", 13, "data_ptr"),
    ("lr", 14, "int"),
    ("pc", 15, "code_ptr"),
    ("xpsr", 25, "int"),
];

/// Registers of the system: the two stacks are a feature that gdb knows, the masks are not.
const ARM_SYSTEM: [(&str, usize, &str); 2] = [("msp", 26, "data_ptr"), ("psp", 27, "data_ptr")];
const ARM_MASKS: [(&str, usize); 4] =
    [("primask", 28), ("basepri", 29), ("faultmask", 30), ("control", 31)];
const ARM_FLOAT: usize = 32;

const RISCV: [&str; 33] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "fp", "s1", "a0", "a1", "a2", "a3", "a4",
    "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
    "t5", "t6", "pc",
];

/// Describes a core of a kind, with those of the optional registers that `has` says it has.
pub(crate) fn describe(kind: CoreKind, has: impl Fn(&str) -> bool) -> TargetDescription {
    let mut text = Text::default();
    if kind == CoreKind::Riscv32 {
        text.open("org.gnu.gdb.riscv.cpu");
        for (number, name) in RISCV.iter().enumerate() {
            text.add(name, number, 32, if *name == "pc" { "code_ptr" } else { "int" }, "");
        }
        text.close();
        return text.finish("riscv:rv32");
    }
    text.open("org.gnu.gdb.arm.m-profile");
    for (name, number, kind) in ARM {
        text.add(name, number, 32, kind, "");
    }
    text.close();
    if ARM_SYSTEM.iter().all(|(name, ..)| has(name)) {
        text.open("org.gnu.gdb.arm.m-system");
        for (name, number, kind) in ARM_SYSTEM {
            text.add(name, number, 32, kind, "");
        }
        text.close();
    }
    if ARM_MASKS.iter().any(|(name, _)| has(name)) {
        text.open("jig.arm.masks");
        for (name, number) in ARM_MASKS.into_iter().filter(|(name, _)| has(name)) {
            text.add(name, number, 32, "int", "system");
        }
        text.close();
    }
    // gdb knows double registers; cores name the singles they are made of.
    if (0..32).all(|number| has(&format!("s{number}"))) {
        text.open("org.gnu.gdb.arm.vfp");
        for number in 0..16 {
            text.add(&format!("d{number}"), ARM_FLOAT + number, 64, "ieee_double", "");
        }
        text.add("fpscr", ARM_FLOAT + 16, 32, "int", "float");
        text.close();
    }
    text.finish("arm")
}

/// Finds a register by gdb's name for it, or by the number that other tools call it by.
pub(crate) fn find<'a>(registers: &'a [RegisterValue], name: &str) -> Option<&'a RegisterValue> {
    let by = |name: &str| registers.iter().find(|register| register.name == name);
    by(name).or_else(|| {
        let number = RISCV[..32].iter().position(|&known| known == name)?;
        by(&format!("x{number}"))
    })
}

#[derive(Default)]
struct Text {
    registers: Vec<DescribedRegister>,
    xml: String,
}

impl Text {
    fn open(&mut self, feature: &str) {
        self.xml.push_str(&format!("<feature name=\"{feature}\">"));
    }

    fn close(&mut self) {
        self.xml.push_str("</feature>");
    }

    fn add(&mut self, name: &str, number: usize, bits: u16, kind: &str, group: &str) {
        self.xml.push_str(&format!(
            "<reg name=\"{name}\" bitsize=\"{bits}\" regnum=\"{number}\" type=\"{kind}\""
        ));
        if !group.is_empty() {
            self.xml.push_str(&format!(" group=\"{group}\""));
        }
        self.xml.push_str("/>");
        self.registers.push(DescribedRegister { name: name.to_owned(), number, bits });
    }

    fn finish(self, architecture: &str) -> TargetDescription {
        let Self { mut registers, xml } = self;
        registers.sort_by_key(|register| register.number);
        let xml = format!(
            "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\">\
             <target version=\"1.0\"><architecture>{architecture}</architecture>{xml}</target>"
        );
        TargetDescription { registers, xml }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_registers_that_are_there_are_described() {
        let plain = describe(CoreKind::Armv6m, |name| matches!(name, "msp" | "psp" | "primask"));
        let names: Vec<_> = plain.registers.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names[13..], ["sp", "lr", "pc", "xpsr", "msp", "psp", "primask"]);
        assert!(!plain.xml.contains("fpscr"));
        let all = describe(CoreKind::Armv7m, |_| true);
        assert_eq!(all.registers.len(), 17 + 2 + 4 + 17);
        let bare = describe(CoreKind::Armv7m, |_| false);
        assert_eq!(bare.registers.len(), 17);
    }

    #[test]
    fn numbers_are_unique_and_ascend() {
        for kind in [CoreKind::Armv7m, CoreKind::Riscv32] {
            let all = describe(kind, |_| true).registers;
            assert!(all.windows(2).all(|pair| pair[0].number < pair[1].number), "{all:?}");
        }
    }
}
