//! Where structures have their members, and where variables are: what an image says about data.
//!
//! Only what the walk through an operating system's threads needs is read, and only of images
//! that have its variables: the debug information of large images has millions of entries.

use std::collections::BTreeMap;

use gimli::Reader as _;
use object::{Object as _, ObjectSymbol as _};

use super::dead_code::SectionReader;

/// Variables that operating systems keep their threads in.
const VARIABLES: [&str; 10] = [
    "pxCurrentTCB",
    "pxCurrentTCBs",
    "pxReadyTasksLists",
    "xDelayedTaskList1",
    "xDelayedTaskList2",
    "xPendingReadyList",
    "xSuspendedTaskList",
    "_kernel",
    "sched_threads",
    "sched_active_thread",
];

/// Structures that these variables lead to.
const STRUCTURES: [&str; 9] = [
    "tskTaskControlBlock",
    "xLIST",
    "xLIST_ITEM",
    "z_kernel",
    "_cpu",
    "k_thread",
    "_thread_base",
    "_callee_saved",
    "_thread",
];

/// A variable of the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Variable {
    /// Its address.
    pub(crate) address: u32,
    /// Its length in bytes.
    pub(crate) size: u32,
}

/// Variables by name, and offsets of members by the name of their structure.
#[derive(Debug, Default)]
pub(crate) struct Layouts {
    variables: BTreeMap<&'static str, Variable>,
    structures: BTreeMap<&'static str, Structure>,
}

#[derive(Debug, Default)]
struct Structure {
    size: u32,
    members: BTreeMap<String, u32>,
}

impl Layouts {
    /// Finds the variables, and their structures where there are any.
    pub(super) fn read(file: &object::File<'_>, dwarf: &gimli::Dwarf<SectionReader>) -> Self {
        let mut variables = BTreeMap::new();
        for symbol in file.symbols() {
            let Ok(name) = symbol.name() else { continue };
            let Some(&name) = VARIABLES.iter().find(|known| **known == name) else { continue };
            let (Ok(address), Ok(size)) =
                (u32::try_from(symbol.address()), u32::try_from(symbol.size()))
            else {
                continue;
            };
            if symbol.is_definition() {
                variables.entry(name).or_insert(Variable { address, size });
            }
        }
        let mut found = Self { variables, structures: BTreeMap::new() };
        if !found.variables.is_empty() {
            // What was read before a broken entry counts.
            let _ = found.read_structures(dwarf);
        }
        found
    }

    /// Returns a variable.
    pub(crate) fn variable(&self, name: &str) -> Option<Variable> {
        self.variables.get(name).copied()
    }

    /// Returns the offset of a member.
    pub(crate) fn offset(&self, structure: &str, member: &str) -> Option<u32> {
        self.structures.get(structure)?.members.get(member).copied()
    }

    /// Returns the length of a structure.
    pub(crate) fn size(&self, structure: &str) -> Option<u32> {
        self.structures.get(structure).map(|known| known.size)
    }

    fn read_structures(&mut self, dwarf: &gimli::Dwarf<SectionReader>) -> gimli::Result<()> {
        let mut headers = dwarf.units();
        while let Some(header) = headers.next()? {
            let unit = dwarf.unit(header)?;
            let mut entries = unit.entries_raw(None)?;
            // The structure whose members follow, and its depth.
            let mut open: Option<(isize, &'static str)> = None;
            while !entries.is_empty() {
                let depth = entries.next_depth();
                let Some(abbreviation) = entries.read_abbreviation()? else { continue };
                if open.is_some_and(|(at, _)| depth <= at) {
                    open = None;
                }
                let structure = abbreviation.tag() == gimli::DW_TAG_structure_type;
                let member = abbreviation.tag() == gimli::DW_TAG_member
                    && open.is_some_and(|(at, _)| depth == at + 1);
                if !structure && !member {
                    entries.skip_attributes(abbreviation.attributes())?;
                    continue;
                }
                let (mut name, mut number, mut declared) = (None, None, false);
                for &specification in abbreviation.attributes() {
                    let attribute = entries.read_attribute(specification)?;
                    match attribute.name() {
                        gimli::DW_AT_name => {
                            name = dwarf.attr_string(&unit, attribute.value()).ok();
                        }
                        gimli::DW_AT_declaration => declared = true,
                        gimli::DW_AT_byte_size if structure => number = attribute.udata_value(),
                        gimli::DW_AT_data_member_location if member => {
                            number = attribute.udata_value();
                        }
                        _ => {}
                    }
                }
                let number = number.and_then(|number| u32::try_from(number).ok());
                let (Some(name), Some(number)) = (name, number) else { continue };
                let name = name.to_string_lossy()?;
                if structure {
                    let known = STRUCTURES.iter().find(|known| **known == name);
                    if let Some(&known) = known.filter(|_| !declared)
                        && !self.structures.contains_key(known)
                    {
                        let members = BTreeMap::new();
                        self.structures.insert(known, Structure { size: number, members });
                        open = Some((depth, known));
                    }
                } else if let Some(structure) =
                    open.and_then(|(_, open)| self.structures.get_mut(open))
                {
                    structure.members.insert(name.into_owned(), number);
                }
            }
        }
        Ok(())
    }
}
