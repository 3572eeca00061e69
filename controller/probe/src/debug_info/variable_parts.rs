//! The parts of a variable: the stacks of an array of stacks, and the members of structures.
//!
//! # Design
//! The symbol table knows one range for a variable. A program that keeps the stacks of all its threads in
//! one array, or each beside the control block of its thread, needs the type of it. The variable is found
//! by the bytes that name its address in the debug information, so only its own unit is read.
//!
//! A part is an array of what has no parts itself, or anything else that is no array or structure. Members of a
//! union lie over each other, and are one part.

use std::ops::Range;

use gimli::{AttributeValue, DwTag, Reader as _, Section as _, UnitOffset};
use memchr::memmem;

use super::dead_code::SectionReader;

type Unit = gimli::Unit<SectionReader>;
type Entry = gimli::DebuggingInformationEntry<SectionReader>;

/// Most parts of a variable; one of more is taken as a whole.
pub(super) const MOST: usize = 4096;

/// Most types that are followed from a variable to a part, and most dimensions of an array.
const DEEPEST: usize = 32;

/// Most elements and members that are looked at. Those of no size make no part.
const MOST_LOOKS: usize = 4 * MOST;

/// Lists the parts of the variable at an address; nothing where its type is not known.
pub(super) fn parts_of(
    dwarf: &gimli::Dwarf<SectionReader>,
    address: u32,
) -> Option<Vec<Range<u64>>> {
    let mut place = vec![gimli::DW_OP_addr.0];
    place.extend(address.to_le_bytes());
    let info = dwarf.debug_info.reader().to_slice().ok()?;
    let mut headers = dwarf.units();
    while let Some(header) = headers.next().ok()? {
        let start = header.debug_info_offset()?.0;
        let bytes = info.get(start..start.checked_add(header.length_including_self())?)?;
        if memmem::find(bytes, &place).is_none() {
            continue;
        }
        let unit = dwarf.unit(header).ok()?;
        if let Some(parts) = parts_in(&unit, &place, address) {
            return Some(parts);
        }
    }
    None
}

fn parts_in(unit: &Unit, place: &[u8], address: u32) -> Option<Vec<Range<u64>>> {
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs().ok()? {
        let is_here = entry.tag() == gimli::DW_TAG_variable
            && match entry.attr_value(gimli::DW_AT_location) {
                Some(AttributeValue::Exprloc(at)) => at.0.to_slice().is_ok_and(|at| *at == *place),
                _ => false,
            };
        if is_here {
            let mut parts = Parts { unit, found: Vec::new(), looks: 0 };
            parts.add(type_of_variable(unit, entry)?, address.into(), 0)?;
            return Some(parts.found);
        }
    }
    None
}

/// Returns the type of a variable, which may stand where it is declared.
fn type_of_variable(unit: &Unit, entry: &Entry) -> Option<UnitOffset> {
    type_of(entry).or_else(|| match entry.attr_value(gimli::DW_AT_specification)? {
        AttributeValue::UnitRef(declared) => type_of(&unit.entry(declared).ok()?),
        _ => None,
    })
}

fn type_of(entry: &Entry) -> Option<UnitOffset> {
    match entry.attr_value(gimli::DW_AT_type)? {
        AttributeValue::UnitRef(offset) => Some(offset),
        _ => None,
    }
}

fn number(entry: &Entry, name: gimli::DwAt) -> Option<u64> {
    entry.attr_value(name)?.udata_value()
}

/// Tells whether a type only renames or qualifies another one.
fn is_transparent(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type
    )
}

fn is_structure(tag: DwTag) -> bool {
    matches!(tag, gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type)
}

struct Parts<'a> {
    unit: &'a Unit,
    found: Vec<Range<u64>>,
    /// How many elements and members were looked at.
    looks: usize,
}

impl Parts<'_> {
    /// Adds the parts of what has a type and begins at an address; nothing where that is not known.
    fn add(&mut self, of_type: UnitOffset, start: u64, depth: usize) -> Option<()> {
        self.look()?;
        let entry = self.resolve(of_type)?;
        if depth > DEEPEST {
            return None;
        }
        if entry.tag() == gimli::DW_TAG_array_type {
            let (lengths, element) = (self.lengths(&entry)?, type_of(&entry)?);
            return self.add_array(start, &lengths, element, depth);
        }
        if !is_structure(entry.tag()) {
            return self.push(start, number(&entry, gimli::DW_AT_byte_size)?);
        }
        for member in self.children(&entry, gimli::DW_TAG_member)? {
            let offset = number(&member, gimli::DW_AT_data_member_location);
            // Members of single bits, and those that are no data of the structure.
            let (Some(offset), Some(of_type)) = (offset, type_of(&member)) else { continue };
            self.add(of_type, start.checked_add(offset)?, depth + 1)?;
        }
        Some(())
    }

    fn add_array(
        &mut self,
        start: u64,
        lengths: &[u64],
        element: UnitOffset,
        depth: usize,
    ) -> Option<()> {
        let (&length, inner) = lengths.split_first()?;
        let size = self.size(element, depth + 1)?;
        let step = inner.iter().try_fold(size, |size, length| size.checked_mul(*length))?;
        let tag = self.resolve(element)?.tag();
        let has_parts = is_structure(tag) || tag == gimli::DW_TAG_array_type;
        if inner.is_empty() && !has_parts {
            return self.push(start, step.checked_mul(length)?);
        }
        for index in 0..length {
            self.look()?;
            let at = start.checked_add(index.checked_mul(step)?)?;
            match inner {
                [] => self.add(element, at, depth + 1)?,
                inner => self.add_array(at, inner, element, depth + 1)?,
            }
        }
        Some(())
    }

    /// Counts a look; nothing where there were too many.
    fn look(&mut self) -> Option<()> {
        self.looks += 1;
        (self.looks <= MOST_LOOKS).then_some(())
    }

    fn push(&mut self, start: u64, size: u64) -> Option<()> {
        if self.found.len() >= MOST {
            return None;
        }
        if size > 0 {
            self.found.push(start..start.checked_add(size)?);
        }
        Some(())
    }

    fn size(&self, of_type: UnitOffset, depth: usize) -> Option<u64> {
        let entry = self.resolve(of_type)?;
        if depth > DEEPEST {
            return None;
        }
        if entry.tag() != gimli::DW_TAG_array_type {
            return number(&entry, gimli::DW_AT_byte_size);
        }
        let element = self.size(type_of(&entry)?, depth + 1)?;
        self.lengths(&entry)?.into_iter().try_fold(element, |size, length| size.checked_mul(length))
    }

    /// Returns the type that stands behind names and qualifiers.
    fn resolve(&self, mut of_type: UnitOffset) -> Option<Entry> {
        for _ in 0..DEEPEST {
            let entry = self.unit.entry(of_type).ok()?;
            if !is_transparent(entry.tag()) {
                return Some(entry);
            }
            of_type = type_of(&entry)?;
        }
        None
    }

    /// Returns how many elements an array has in each of its dimensions.
    fn lengths(&self, array: &Entry) -> Option<Vec<u64>> {
        let ranges = self.children(array, gimli::DW_TAG_subrange_type)?;
        if ranges.len() > DEEPEST {
            return None;
        }
        let length = |range: &Entry| {
            let last = || number(range, gimli::DW_AT_upper_bound)?.checked_add(1);
            number(range, gimli::DW_AT_count).or_else(last)
        };
        ranges.iter().map(length).collect()
    }

    fn children(&self, of: &Entry, tag: DwTag) -> Option<Vec<Entry>> {
        let mut tree = self.unit.entries_tree(Some(of.offset())).ok()?;
        let mut children = tree.root().ok()?.children();
        let mut found = Vec::new();
        while let Some(child) = children.next().ok()? {
            if child.entry().tag() == tag {
                found.push(child.entry().clone());
            }
        }
        Some(found)
    }
}
