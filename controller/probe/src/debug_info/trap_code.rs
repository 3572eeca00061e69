//! The functions that only a trap handler calls.
//!
//! Each function of the image is read once from its first to its last byte. A jump, a call or the
//! computation of a function's address is an edge between two functions; what passes through
//! pointers in memory is not seen. Assembly may have no symbols of functions: such code is a function
//! where the handler leads to it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::context::CoreMachine;
use super::symbols::Symbols;
use crate::riscv::{CodeFlow, Sweep};

/// Most bytes of code that are read, and the longest code whose length no symbol tells.
const MAX_CODE: u64 = 16 << 20;
const MAX_NAMELESS: u64 = 4 << 10;

/// How often code without symbols that leads to other such code is followed: a vector table, an entry
/// and a dispatcher are three.
const MOST_NAMELESS: usize = 8;

/// Addresses of functions that run only in a trap handler.
#[derive(Debug, Default)]
pub(crate) struct TrapCode {
    functions: Vec<Range<u64>>,
    /// Functions that only the handler calls, but whose address others compute.
    pointed_to: Vec<Range<u64>>,
    /// Functions that the handler runs and others, too.
    shared: Vec<Range<u64>>,
    edges: BTreeSet<CallEdge>,
}

impl TrapCode {
    /// Tells whether the address lies in such a function.
    pub(crate) fn holds(&self, address: u64) -> bool {
        self.functions.iter().any(|range| range.contains(&address))
    }

    /// Tells whether the address lies in a function that others can run by a pointer only: it is the
    /// handler's if the core shows the entry of a trap.
    pub(crate) fn may_hold(&self, address: u64) -> bool {
        self.pointed_to.iter().any(|range| range.contains(&address))
    }

    /// Tells whether the handler has jumped to a function that others call: what was called last
    /// before the address to which it would return is not what leads to it.
    pub(crate) fn jumped_to(&self, symbols: &Symbols, pc: u64, return_to: u64) -> bool {
        let Some(function) = self.shared.iter().find(|range| range.contains(&pc)) else {
            return false;
        };
        call_before(symbols, return_to).is_some_and(|called| !self.leads(called, function.start))
    }

    /// Tells whether a function that was called jumps to another one, which then returns to the same
    /// address.
    fn leads(&self, from: u64, to: u64) -> bool {
        let mut reached = BTreeSet::from([from]);
        let mut open = vec![from];
        while let Some(from) = open.pop() {
            let jumps = edges_of(&self.edges, from).filter(|edge| edge.kind == EdgeKind::Jump);
            open.extend(jumps.map(|edge| edge.to).filter(|&to| reached.insert(to)));
        }
        reached.contains(&to)
    }

    /// Code of which one function is the handler's own, and another also pointed to.
    #[cfg(test)]
    pub(crate) fn with(own: Range<u64>, pointed_to: Range<u64>) -> Self {
        Self { functions: vec![own], pointed_to: vec![pointed_to], ..Self::default() }
    }

    /// Finds the function of a RISC-V image at the handler's address, and those that are called
    /// from it and from each other only.
    pub(crate) fn find(symbols: &Symbols, handler: u32) -> Self {
        if symbols.machine() != CoreMachine::Riscv {
            return Self::default();
        }
        let handler = u64::from(handler);
        let mut ranges: BTreeMap<u64, u64> = symbols.function_ranges().collect();
        let root = symbols.function_start(handler).unwrap_or(handler);
        if !symbols.is_executable(root) {
            return Self::default();
        }
        if root == handler {
            add_nameless(&mut ranges, handler);
        }
        let (mut edges, mut touched) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..MOST_NAMELESS {
            let nameless;
            (edges, nameless) = self::edges(symbols, &ranges);
            touched = run_from(&edges, root);
            let reached = nameless.iter().filter(|edge| touched.contains(&edge.from));
            let code: Vec<u64> =
                reached.map(|edge| edge.to).filter(|&to| symbols.is_executable(to)).collect();
            if code.is_empty() {
                break;
            }
            code.into_iter().for_each(|start| add_nameless(&mut ranges, start));
        }
        // A reset runs what it enters, too: a handler may begin the program anew there.
        let mut alone = touched.clone();
        alone.retain(|&start| start == root || !symbols.is_entry(start));
        let called = without_users(&edges, root, &alone, |kind| kind != EdgeKind::Address);
        let own = without_users(&edges, root, &alone, |_| true);
        let range = |&start: &u64| Some(start..*ranges.get(&start)?);
        Self {
            functions: own.iter().filter_map(range).collect(),
            pointed_to: called.difference(&own).filter_map(range).collect(),
            shared: touched.difference(&called).filter_map(range).collect(),
            edges,
        }
    }
}

/// Adds code that no symbol names: it ends where a function begins.
fn add_nameless(ranges: &mut BTreeMap<u64, u64>, start: u64) {
    let next = ranges.range(start + 1..).next().map(|(&next, _)| next);
    let end = start + MAX_NAMELESS;
    ranges.entry(start).or_insert(next.map_or(end, |next| next.min(end)));
}

/// Lists a function and all that it runs.
fn run_from(edges: &BTreeSet<CallEdge>, root: u64) -> BTreeSet<u64> {
    let mut reached = BTreeSet::from([root]);
    let mut open = vec![root];
    while let Some(from) = open.pop() {
        let runs = edges_of(edges, from).filter(|edge| edge.kind != EdgeKind::Address);
        open.extend(runs.map(|edge| edge.to).filter(|&to| reached.insert(to)));
    }
    reached
}

/// Leaves out the functions that something else uses, and what these run; `counts` says which edges
/// are a use. The root stays.
fn without_users(
    edges: &BTreeSet<CallEdge>,
    root: u64,
    functions: &BTreeSet<u64>,
    counts: impl Fn(EdgeKind) -> bool,
) -> BTreeSet<u64> {
    let mut left = functions.clone();
    loop {
        let shared: Vec<u64> = edges
            .iter()
            .filter(|edge| counts(edge.kind) && edge.to != root && left.contains(&edge.to))
            .filter(|edge| !left.contains(&edge.from))
            .map(|edge| edge.to)
            .collect();
        if shared.is_empty() {
            return left;
        }
        left.retain(|start| !shared.contains(start));
    }
}

/// Lists the edges from a function.
fn edges_of(edges: &BTreeSet<CallEdge>, from: u64) -> impl Iterator<Item = &CallEdge> {
    let first = CallEdge { from, to: 0, kind: EdgeKind::Call };
    edges.range(first..).take_while(move |edge| edge.from == from)
}

/// Finds the function that is called right before an address; nothing if none is, or one by a
/// pointer.
pub(super) fn call_before(symbols: &Symbols, address: u64) -> Option<u64> {
    let mut at = symbols.function_start(address.checked_sub(1)?)?;
    let mut sweep = Sweep::default();
    if address - at > MAX_CODE {
        return None;
    }
    let mut called = None;
    while at < address {
        let first = half(symbols, at)?;
        let (len, flow) = sweep.read(at as u32, first, half(symbols, at + 2).unwrap_or(0));
        at += u64::from(len);
        called = match flow {
            CodeFlow::Call(to) if at == address => symbols.function_start(u64::from(to)),
            _ => None,
        };
    }
    called
}

fn half(symbols: &Symbols, at: u64) -> Option<u16> {
    let bytes = symbols.code(at, 2)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

/// A function that another one runs, or whose address it computes.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CallEdge {
    from: u64,
    to: u64,
    kind: EdgeKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EdgeKind {
    Call,
    Jump,
    /// The other function's address is computed.
    Address,
}

/// Lists the edges between functions, and those that lead to code without a symbol.
fn edges(
    symbols: &Symbols,
    ranges: &BTreeMap<u64, u64>,
) -> (BTreeSet<CallEdge>, BTreeSet<CallEdge>) {
    let holder = |address: u64| {
        let (&start, &end) = ranges.range(..=address).next_back()?;
        (address < end).then_some(start)
    };
    let (mut edges, mut nameless) = (BTreeSet::new(), BTreeSet::new());
    let mut budget = MAX_CODE;
    for (&from, &end) in ranges {
        budget = budget.saturating_sub(end - from);
        if budget == 0 {
            break;
        }
        let mut add = |target: u64, kind: EdgeKind| {
            match holder(target) {
                Some(to) if to != from => edges.insert(CallEdge { from, to, kind }),
                None if kind != EdgeKind::Address => {
                    nameless.insert(CallEdge { from, to: target, kind })
                }
                _ => false,
            };
        };
        let mut sweep = Sweep::default();
        let (mut at, mut falls_through, mut computed) = (from, false, None);
        while at < end
            && let Some(first) = half(symbols, at)
        {
            let (len, flow) = sweep.read(at as u32, first, half(symbols, at + 2).unwrap_or(0));
            // The address of a trap handler is computed in order to set the trap vector: no use of it.
            if let Some(to) = computed.take().filter(|_| flow != CodeFlow::TrapVector) {
                add(to, EdgeKind::Address);
            }
            match flow {
                CodeFlow::Call(to) => add(u64::from(to), EdgeKind::Call),
                CodeFlow::Branch(to) | CodeFlow::Jump(to) => add(u64::from(to), EdgeKind::Jump),
                CodeFlow::Address(to) => computed = Some(u64::from(to)),
                CodeFlow::Next | CodeFlow::Away | CodeFlow::TrapVector => {}
            }
            falls_through =
                matches!(flow, CodeFlow::Next | CodeFlow::Branch(_) | CodeFlow::TrapVector)
                    && !is_end(first);
            at += u64::from(len);
        }
        if let Some(to) = computed {
            add(to, EdgeKind::Address);
        }
        // Assembly may go on under another name.
        if falls_through && at == end {
            add(end, EdgeKind::Jump);
        }
    }
    (edges, nameless)
}

/// Tells whether an instruction is one that compilers put where a program must not come: the
/// illegal one of all zeros, or a breakpoint.
fn is_end(first: u16) -> bool {
    const EBREAK: u16 = 0x0073;
    const SHORT_EBREAK: u16 = 0x9002;
    matches!(first, 0 | EBREAK | SHORT_EBREAK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug_info::tests::emulated::{RISCV, fixture};

    #[test]
    fn an_address_for_the_trap_vector_is_no_use_of_a_function() {
        let elf = std::fs::read(fixture(RISCV, "fault-silent")).unwrap();
        let symbols = Symbols::load(&elf).unwrap();
        let ranges = symbols.function_ranges().collect();
        let (edges, _) = edges(&symbols, &ranges);
        let used = |from: &str, to: &str| {
            let to = symbols.address_of(to).unwrap();
            edges_of(&edges, symbols.address_of(from).unwrap()).any(|edge| edge.to == to)
        };
        assert!(used("reset_handler", "runtime_start"));
        assert!(!used("reset_handler", "trap_entry"));
    }

    /// As assembly does that says nothing of its symbols.
    #[test]
    fn code_without_a_symbol_is_the_handlers_where_the_handler_leads_to_it() {
        let mut elf = std::fs::read(fixture(RISCV, "fault-silent")).unwrap();
        let addresses = |elf: &[u8]| {
            let symbols = Symbols::load(elf).unwrap();
            let address = |name: &str| symbols.address_of(name);
            ["trap_entry", "trap_report", "on_fault", "print"].map(address)
        };
        let [entry, report, fault, print] = addresses(&elf);
        forget_type(&mut elf, "trap_report");
        assert_eq!(addresses(&elf), [entry, None, fault, print]);
        let symbols = Symbols::load(&elf).unwrap();
        let code = TrapCode::find(&symbols, entry.unwrap() as u32);
        let held = [entry, report, fault, print].map(|start| code.holds(start.unwrap()));
        assert_eq!(held, [true, true, true, false]);
    }

    /// Makes the symbol of a function one without a type.
    fn forget_type(elf: &mut [u8], name: &str) {
        use object::read::elf::{ElfFile32, SectionHeader as _};
        const ENTRY: usize = 16;
        const INFO: usize = 12;
        let (offset, index) = {
            let file: ElfFile32<'_> = ElfFile32::parse(&*elf).unwrap();
            let (end, headers) = (file.endian(), file.elf_section_table());
            let symbols = headers.symbols(end, &*elf, object::elf::SHT_SYMTAB).unwrap();
            let is_named = |symbol: &object::elf::Sym32<_>| {
                use object::read::elf::Sym as _;
                symbol.name(end, symbols.strings()).is_ok_and(|found| found == name.as_bytes())
            };
            let index = symbols.iter().position(is_named).unwrap();
            let section = headers.section(symbols.section()).unwrap();
            (section.sh_offset(end) as usize, index)
        };
        elf[offset + index * ENTRY + INFO] &= 0xf0;
    }

    /// A vector table that jumps to a handler, which calls one of its functions and ends in another.
    #[test]
    fn a_handler_is_its_own_unless_others_call_it() {
        let [table, trap, report, halt, start, setup] = [1, 2, 3, 4, 5, 6];
        let handler = [
            (table, trap, EdgeKind::Jump),
            (trap, report, EdgeKind::Call),
            (report, halt, EdgeKind::Jump),
            (start, setup, EdgeKind::Call),
        ];
        let split = |others: &[(u64, u64, EdgeKind)]| {
            let all = handler.iter().chain(others);
            let edges = all.map(|&(from, to, kind)| CallEdge { from, to, kind }).collect();
            let touched = run_from(&edges, table);
            let list = |set: BTreeSet<u64>| -> Vec<u64> { set.into_iter().collect() };
            let called = without_users(&edges, table, &touched, |kind| kind != EdgeKind::Address);
            (list(without_users(&edges, table, &touched, |_| true)), list(called))
        };
        let whole = vec![table, trap, report, halt];
        assert_eq!(split(&[]), (whole.clone(), whole.clone()));
        // The start code hands the handler's address to another function.
        assert_eq!(split(&[(start, trap, EdgeKind::Address)]), (vec![table], whole));
        let common = vec![table, trap, report];
        for kind in [EdgeKind::Call, EdgeKind::Jump] {
            assert_eq!(split(&[(start, halt, kind)]), (common.clone(), common.clone()));
            assert_eq!(split(&[(start, trap, kind)]), (vec![table], vec![table]));
        }
    }
}
