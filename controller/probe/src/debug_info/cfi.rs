//! Call frame information: how to get from a function to its caller.

use std::sync::Arc;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EvaluationResult, FrameDescriptionEntry,
    LittleEndian, Location, Register, RegisterRule, UnwindContext, UnwindSection, Value,
};

use super::context::{Context, CoreMachine};
use super::dead_code::SectionBytes;
use crate::CoreSnapshot;

/// How many operations an expression may take; real ones take under twenty.
const MAX_OPERATIONS: u32 = 1000;

/// Says why a frame has no caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CfiError {
    /// There is no entry for the address.
    Missing,
    /// The entry makes no sense.
    Malformed,
    /// The stack is not in the snapshot.
    Unreadable(u32),
    /// It depends on a register whose value is lost.
    Unknown(u16),
    /// The entry says that the function has no caller.
    Outermost,
}

/// Where a function's entry is.
#[derive(Debug, Clone, Copy)]
struct UnwindEntry {
    start: u64,
    end: u64,
    offset: usize,
}

/// The tables of one image.
pub(super) struct UnwindTables {
    debug_frame: DebugFrame<SectionBytes>,
    eh_frame: EhFrame<SectionBytes>,
    /// Functions of each section, in ascending order.
    debug_entries: Vec<UnwindEntry>,
    eh_entries: Vec<UnwindEntry>,
    bases: BaseAddresses,
    machine: CoreMachine,
    unreadable: Vec<String>,
}

impl UnwindTables {
    pub(super) fn new(
        machine: CoreMachine,
        code_at_zero: bool,
        debug_frame: Arc<[u8]>,
        eh_frame: Arc<[u8]>,
        eh_frame_address: u64,
        text_address: u64,
    ) -> Self {
        let mut debug_frame = DebugFrame::from(SectionBytes::new(debug_frame, LittleEndian));
        debug_frame.set_address_size(4);
        let mut eh_frame = EhFrame::from(SectionBytes::new(eh_frame, LittleEndian));
        eh_frame.set_address_size(4);
        let bases = BaseAddresses::default().set_eh_frame(eh_frame_address).set_text(text_address);
        let (debug_entries, debug_error) = index(&debug_frame, &bases, code_at_zero);
        let (eh_entries, eh_error) = index(&eh_frame, &bases, code_at_zero);
        let unreadable = [(".debug_frame", debug_error), (".eh_frame", eh_error)];
        let unreadable = unreadable.into_iter().filter_map(|(name, error)| {
            Some(format!("the image's unwind information in {name} is unreadable ({})", error?))
        });
        let unreadable = unreadable.collect();
        Self { debug_frame, eh_frame, debug_entries, eh_entries, bases, machine, unreadable }
    }

    /// Says what of them could not be read.
    pub(super) fn unreadable(&self) -> impl Iterator<Item = &str> {
        self.unreadable.iter().map(String::as_str)
    }

    /// Tells whether any entry speaks of the address.
    pub(super) fn covers(&self, address: u64) -> bool {
        find(&self.debug_entries, address).is_some() || find(&self.eh_entries, address).is_some()
    }

    /// Computes the caller's registers. `lookup` is an address inside the instruction that
    /// is executed or called; the result's program counter is the return address as it was
    /// saved, with the Thumb bit or the pattern of an exception return still in it.
    pub(super) fn caller(
        &self,
        context: &Context,
        lookup: u64,
        captured: &CoreSnapshot,
    ) -> Result<Context, CfiError> {
        if let Some(entry) = find(&self.debug_entries, lookup) {
            return self.caller_by(&self.debug_frame, entry, context, lookup, captured);
        }
        let entry = find(&self.eh_entries, lookup).ok_or(CfiError::Missing)?;
        self.caller_by(&self.eh_frame, entry, context, lookup, captured)
    }

    fn caller_by<S: UnwindSection<SectionBytes>>(
        &self,
        section: &S,
        entry: UnwindEntry,
        context: &Context,
        lookup: u64,
        captured: &CoreSnapshot,
    ) -> Result<Context, CfiError> {
        let entry = self.read(section, entry).ok_or(CfiError::Malformed)?;
        let mut scratch = UnwindContext::new();
        let row = entry
            .unwind_info_for_address(section, &self.bases, &mut scratch, lookup)
            .map_err(|_| CfiError::Malformed)?;
        let machine = Evaluator { context, captured, encoding: entry.cie().encoding() };
        let cfa = match row.cfa().clone() {
            CfaRule::RegisterAndOffset { register, offset } => {
                let base = context.get(register.0).ok_or(CfiError::Unknown(register.0))?;
                add(base, offset)
            }
            CfaRule::Expression(expression) => {
                machine.evaluate(expression.get(section).map_err(|_| CfiError::Malformed)?, None)?
            }
        };
        let mut caller = context.clone();
        caller.xpsr = None;
        for number in 0..32 {
            let rule = row.register(Register(number));
            let value = match rule {
                None => self.default(context, number),
                Some(RegisterRule::Undefined) => None,
                Some(RegisterRule::SameValue) => context.get(number),
                Some(RegisterRule::Offset(offset)) => {
                    let address = add(cfa, offset);
                    match captured.word(address) {
                        Some(word) => Some(word),
                        // Other registers may be lost; without these two there is no caller.
                        None if number == context.lr_number() => {
                            return Err(CfiError::Unreadable(address));
                        }
                        None => None,
                    }
                }
                Some(RegisterRule::ValOffset(offset)) => Some(add(cfa, offset)),
                Some(RegisterRule::Register(other)) => context.get(other.0),
                Some(RegisterRule::Expression(expression)) => {
                    let expression = expression.get(section).map_err(|_| CfiError::Malformed)?;
                    captured.word(machine.evaluate(expression, Some(cfa))?)
                }
                Some(RegisterRule::ValExpression(expression)) => {
                    let expression = expression.get(section).map_err(|_| CfiError::Malformed)?;
                    Some(machine.evaluate(expression, Some(cfa))?)
                }
                Some(RegisterRule::Constant(value)) => u32::try_from(value).ok(),
                Some(_) => None,
            };
            caller.set(number, value);
        }
        if row.register(Register(context.sp_number())).is_none() {
            caller.set_sp(Some(cfa));
        }
        let column = entry.cie().return_address_register();
        if matches!(row.register(column), Some(RegisterRule::Undefined)) {
            return Err(CfiError::Outermost);
        }
        caller.pc = caller.get(column.0).ok_or(CfiError::Unknown(column.0))?;
        Ok(caller)
    }

    /// Returns where below its caller's stack pointer a function keeps its return address,
    /// once its prologue is over; nothing if it keeps it in a register throughout.
    pub(super) fn return_slot(&self, function: u64) -> Option<u32> {
        if let Some(entry) = find(&self.debug_entries, function) {
            return self.slot_by(&self.debug_frame, entry);
        }
        self.slot_by(&self.eh_frame, find(&self.eh_entries, function)?)
    }

    /// Tells whether a function has allocated so many bytes of its stack at an address or on the way to it.
    pub(super) fn allocates(&self, address: u64, bytes: u32) -> bool {
        if let Some(entry) = find(&self.debug_entries, address) {
            return self.allocates_by(&self.debug_frame, entry, address, bytes);
        }
        find(&self.eh_entries, address)
            .is_some_and(|entry| self.allocates_by(&self.eh_frame, entry, address, bytes))
    }

    fn allocates_by<S: UnwindSection<SectionBytes>>(
        &self,
        section: &S,
        entry: UnwindEntry,
        address: u64,
        bytes: u32,
    ) -> bool {
        let Some(entry) = self.read(section, entry) else { return false };
        let mut scratch = UnwindContext::new();
        let Ok(mut rows) = entry.rows(section, &self.bases, &mut scratch) else { return false };
        let allocated = CfaRule::RegisterAndOffset {
            register: Register(self.machine.sp_number()),
            offset: i64::from(bytes),
        };
        while let Ok(Some(row)) = rows.next_row() {
            if row.start_address() <= address && *row.cfa() == allocated {
                return true;
            }
        }
        false
    }

    fn read<S: UnwindSection<SectionBytes>>(
        &self,
        section: &S,
        entry: UnwindEntry,
    ) -> Option<FrameDescriptionEntry<SectionBytes>> {
        section.fde_from_offset(&self.bases, entry.offset.into(), S::cie_from_offset).ok()
    }

    fn slot_by<S: UnwindSection<SectionBytes>>(
        &self,
        section: &S,
        entry: UnwindEntry,
    ) -> Option<u32> {
        let entry = self.read(section, entry)?;
        let mut scratch = UnwindContext::new();
        let mut rows = entry.rows(section, &self.bases, &mut scratch).ok()?;
        let column = entry.cie().return_address_register();
        // A row is a range of addresses: there are at most as many as bytes of code.
        while let Ok(Some(row)) = rows.next_row() {
            if let Some(RegisterRule::Offset(offset)) = row.register(column) {
                return u32::try_from(offset.checked_neg()?).ok();
            }
        }
        None
    }

    /// What a register holds that no rule speaks of: the calling convention decides.
    fn default(&self, context: &Context, number: u16) -> Option<u32> {
        let kept = match self.machine {
            CoreMachine::Arm => matches!(number, 4..=11 | 14),
            CoreMachine::Riscv => matches!(number, 0 | 1 | 3 | 4 | 8 | 9 | 18..=27),
        };
        context.get(number).filter(|_| kept)
    }
}

/// Finds the innermost entry that speaks of an address.
fn find(entries: &[UnwindEntry], address: u64) -> Option<UnwindEntry> {
    let after = entries.partition_point(|entry| entry.start <= address);
    entries[..after].last().copied().filter(|entry| address < entry.end)
}

/// Lists a section's functions. Those at 0 are the dropped ones, unless code begins there.
/// An unreadable entry ends the list: the start of the next one is unknown.
fn index<S: UnwindSection<SectionBytes>>(
    section: &S,
    bases: &BaseAddresses,
    code_at_zero: bool,
) -> (Vec<UnwindEntry>, Option<gimli::Error>) {
    let (mut found, mut broken) = (Vec::new(), None);
    let mut entries = section.entries(bases);
    loop {
        let entry = match entries.next() {
            Ok(Some(CieOrFde::Fde(partial))) => partial.parse(S::cie_from_offset),
            Ok(Some(CieOrFde::Cie(_))) => continue,
            Ok(None) => break,
            Err(error) => {
                broken.get_or_insert(error);
                break;
            }
        };
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                broken.get_or_insert(error);
                continue;
            }
        };
        let start = entry.initial_address();
        let end = start.saturating_add(entry.len());
        if start < end && (start != 0 || code_at_zero) {
            found.push(UnwindEntry { start, end, offset: entry.offset() });
        }
    }
    found.sort_by_key(|entry| entry.start);
    (found, broken)
}

/// Adds as the core does. Offsets that do not fit a word are nonsense of the same kind as
/// any other wrong offset.
fn add(base: u32, offset: i64) -> u32 {
    base.wrapping_add(offset as u32)
}

struct Evaluator<'a> {
    context: &'a Context,
    captured: &'a CoreSnapshot,
    encoding: gimli::Encoding,
}

impl Evaluator<'_> {
    fn evaluate(
        &self,
        expression: gimli::Expression<SectionBytes>,
        initial: Option<u32>,
    ) -> Result<u32, CfiError> {
        let malformed = |_| CfiError::Malformed;
        let mut evaluation = expression.evaluation(self.encoding);
        evaluation.set_max_iterations(MAX_OPERATIONS);
        if let Some(initial) = initial {
            evaluation.set_initial_value(u64::from(initial));
        }
        let mut state = evaluation.evaluate().map_err(malformed)?;
        // Each round asks for one word or register, so rounds are operations too.
        let mut rounds = 0;
        while !matches!(state, EvaluationResult::Complete) {
            rounds += 1;
            if rounds > MAX_OPERATIONS {
                return Err(CfiError::Malformed);
            }
            state = match state {
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let address = u32::try_from(address).map_err(|_| CfiError::Malformed)?;
                    let word = self.captured.word(address).ok_or(CfiError::Unreadable(address))?;
                    let kept = match size {
                        1 => word & 0xff,
                        2 => word & 0xffff,
                        _ => word,
                    };
                    evaluation.resume_with_memory(Value::Generic(u64::from(kept)))
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value =
                        self.context.get(register.0).ok_or(CfiError::Unknown(register.0))?;
                    evaluation.resume_with_register(Value::Generic(u64::from(value)))
                }
                _ => return Err(CfiError::Malformed),
            }
            .map_err(malformed)?;
        }
        let pieces = evaluation.as_result();
        match pieces.first().map(|piece| piece.location.clone()) {
            Some(Location::Address { address }) => {
                u32::try_from(address).map_err(|_| CfiError::Malformed)
            }
            Some(Location::Register { register }) => {
                self.context.get(register.0).ok_or(CfiError::Unknown(register.0))
            }
            Some(Location::Value { value }) => value
                .to_u64(u64::from(u32::MAX))
                .ok()
                .and_then(|value| u32::try_from(value).ok())
                .ok_or(CfiError::Malformed),
            _ => Err(CfiError::Malformed),
        }
    }
}
