//! An image's symbols, source lines and unwind tables.

use std::sync::Arc;

use gimli::{LittleEndian, SectionId};
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _};

use jig_model::post_mortem::StackFrame;

use super::cfi::UnwindTables;
use super::context::CoreMachine;
use super::dead_code::{SectionBytes, SectionReader, Tombstones};
use super::layouts::Layouts;
use super::names::{readable, shorten};
use super::variable_parts;
use crate::MemoryRange;
use crate::code_map::CodeMap;
use crate::image_ranges::ImageRanges;
use crate::stack_overrun::{StackPlace, Variables};

/// The largest image that is read. Firmware images with debug information are a few MiB,
/// those of big Rust programs some tens.
const MAX_IMAGE: usize = 256 << 20;

/// How deep debug information may nest. Compilers stay below 40; the reader below us
/// recurses once a level, so an image must not choose the depth of our stack.
const MAX_NESTING: isize = 256;

/// How many inlined calls one address may lie in; compilers stay below 30.
const MAX_INLINED: usize = 64;

/// Says why an image tells nothing.
#[derive(Debug, thiserror::Error)]
pub enum SymbolsError {
    /// It is bigger than any firmware.
    #[error("the image has {len} bytes, more than the {MAX_IMAGE} that are read")]
    TooLarge {
        /// Its size.
        len: usize,
    },
    /// It is not an ELF file, or a broken one.
    #[error("the image is not a readable ELF file")]
    NotElf(#[source] object::Error),
    /// It is for another kind of machine.
    #[error("the image is for {machine}, not for a 32-bit little-endian Arm or RISC-V core")]
    WrongMachine {
        /// What it is for.
        machine: String,
    },
}

/// A function as the symbol table knows it.
struct Function {
    start: u64,
    end: u64,
    name: String,
    /// Whether it has no other name, and the table tells how long it is.
    is_sure: bool,
}

impl Function {
    /// Returns its name if the linker knows it by another one than the source does, as `asm` labels in C
    /// cause.
    fn renamed(&self, in_source: &str) -> Option<&str> {
        /// What compilers append to a function of which they made another one.
        const MADE: [&str; 6] = ["constprop", "isra", "part", "cold", "lto_priv", "llvm"];
        let is_plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let is_made =
            |part: &str| MADE.contains(&part) || part.bytes().all(|byte| byte.is_ascii_digit());
        let mut parts = self.name.split('.');
        let name = parts.next()?;
        let is_other = self.is_sure && name != in_source && is_plain(name);
        (is_other && parts.all(is_made)).then_some(name)
    }
}

/// A call at an address: a function, and the line that is executed in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodePlace {
    /// Function, or nothing if no name is known.
    pub(crate) function: Option<String>,
    /// Source file.
    pub(crate) file: Option<String>,
    /// Line in it.
    pub(crate) line: Option<u32>,
}

/// A piece of code that belongs to one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineRow {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) file: String,
    pub(crate) line: u32,
}

/// Most pieces of code that are read; a firmware of 16 MiB has as many.
const MAX_ROWS: usize = 4 << 20;

/// What an image says about its addresses: functions, source lines, how to unwind, code.
///
/// Owns copies of what it needs; addresses are those the code runs at. It can be sent to
/// another thread, but not shared: line tables are parsed when they are first asked for.
pub struct Symbols {
    machine: CoreMachine,
    entry: u64,
    functions: Vec<Function>,
    /// Addresses that hold instructions.
    executable: Vec<std::ops::Range<u64>>,
    /// Content of read-only memory: stands in for flash that was not captured.
    constant: Vec<MemoryRange>,
    /// Content of executable memory, also where the image lets it be written.
    code: Vec<MemoryRange>,
    ranges: ImageRanges,
    lines: Option<addr2line::Context<SectionReader>>,
    dwarf: Option<Arc<gimli::Dwarf<SectionReader>>>,
    tables: UnwindTables,
    layouts: Layouts,
    limits: Vec<String>,
}

impl std::fmt::Debug for Symbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbols")
            .field("machine", &self.machine)
            .field("functions", &self.functions.len())
            .field("lines", &self.lines.is_some())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Symbols {
    /// Reads an ELF image. Debug information that is missing or unreadable is no error: the
    /// backtrace names what it lacks.
    ///
    /// # Errors
    /// The bytes are no ELF file, too many, or for another kind of core.
    pub fn load(elf: &[u8]) -> Result<Self, SymbolsError> {
        if elf.len() > MAX_IMAGE {
            return Err(SymbolsError::TooLarge { len: elf.len() });
        }
        let file = object::File::parse(elf).map_err(SymbolsError::NotElf)?;
        let machine = match file.architecture() {
            object::Architecture::Arm if file.is_little_endian() => CoreMachine::Arm,
            object::Architecture::Riscv32 if file.is_little_endian() => CoreMachine::Riscv,
            other => {
                return Err(SymbolsError::WrongMachine {
                    machine: format!("{other:?}").to_lowercase(),
                });
            }
        };
        let mut limits = Vec::new();
        // Section headers may overlap; together they may not multiply the file.
        let mut budget = elf.len().saturating_mul(2);
        let mut section = |name: &str| -> Arc<[u8]> {
            let Some(section) = file.section_by_name(name) else { return Arc::from([]) };
            match section.uncompressed_data() {
                Ok(data) if data.len() <= budget => {
                    budget -= data.len();
                    Arc::from(data.as_ref())
                }
                Ok(_) => {
                    limits.push(format!("the image's {name} overlaps other sections: ignored"));
                    Arc::from([])
                }
                Err(error) => {
                    limits.push(format!("the image's {name} is unreadable: {error}"));
                    Arc::from([])
                }
            }
        };
        let thumb = if machine == CoreMachine::Arm { !1 } else { !0 };
        let functions = read_functions(&file, thumb);
        let code_at_zero = functions.first().is_some_and(|function| function.start == 0);
        let tables = UnwindTables::new(
            machine,
            code_at_zero,
            section(".debug_frame"),
            section(".eh_frame"),
            file.section_by_name(".eh_frame").map_or(0, |section| section.address()),
            file.section_by_name(".text").map_or(0, |section| section.address()),
        );
        let lines = read_lines(&file, &mut section, code_at_zero);
        limits.extend(tables.unreadable().map(str::to_owned));
        let (mut layouts, mut dwarf) = (Layouts::default(), None);
        let lines = match lines {
            Ok(DebugInformation { lines, dwarf: sections, broken: lacks, layouts: found }) => {
                (layouts, dwarf) = (found, Some(sections));
                limits.extend(lacks.map(|lacks| format!("some of the image's {lacks}")));
                Some(lines)
            }
            Err(limit) => {
                limits.push(limit.to_string());
                None
            }
        };
        Ok(Self {
            machine,
            entry: file.entry() & thumb,
            functions,
            executable: executable_ranges(&file),
            constant: content(&file, elf.len(), |permissions| !permissions.writable()),
            code: content(&file, elf.len(), |permissions| permissions.executable()),
            ranges: ImageRanges::of(&file, elf.len()),
            lines,
            dwarf,
            tables,
            layouts,
            limits,
        })
    }

    /// Returns why this image tells less than it might.
    pub fn limits(&self) -> &[String] {
        &self.limits
    }

    /// Returns where a function begins.
    pub fn address_of(&self, name: &str) -> Option<u64> {
        self.functions.iter().find(|function| function.name == name).map(|f| f.start)
    }

    /// Returns where the functions begin that have one of some names, each place once.
    pub(crate) fn entries_of(&self, names: &[String]) -> Vec<u64> {
        let named = self.functions.iter().filter(|function| names.contains(&function.name));
        let mut entries: Vec<_> = named.map(|function| function.start).collect();
        entries.dedup();
        entries
    }

    pub(super) fn machine(&self) -> CoreMachine {
        self.machine
    }

    pub(super) fn tables(&self) -> &UnwindTables {
        &self.tables
    }

    /// Returns the function of the symbol table that holds the address.
    pub(crate) fn function_at(&self, address: u64) -> Option<&str> {
        self.function(address).map(|function| function.name.as_str())
    }

    fn function(&self, address: u64) -> Option<&Function> {
        let after = self.functions.partition_point(|function| function.start <= address);
        self.functions[..after].last().filter(|function| address < function.end)
    }

    /// Returns where the function that holds the address begins.
    pub(crate) fn function_start(&self, address: u64) -> Option<u64> {
        self.function(address).map(|function| function.start)
    }

    /// Tells whether the address lies in the function that a reset enters.
    pub(super) fn is_entry(&self, address: u64) -> bool {
        match self.function(address) {
            Some(function) => (function.start..function.end).contains(&self.entry),
            None => address == self.entry,
        }
    }

    /// Tells whether a frame is the one that a reset entered.
    pub(crate) fn is_entry_frame(&self, frame: &StackFrame) -> bool {
        self.is_entry(frame.pc) || self.is_entry(frame.pc.wrapping_sub(1))
    }

    /// Tells whether there is code at the address. Vector tables and constants lie between
    /// functions, so the symbol table's word counts where there is one.
    pub(crate) fn is_code(&self, address: u64) -> bool {
        if self.functions.is_empty() {
            self.executable.iter().any(|range| range.contains(&address))
        } else {
            self.function(address).is_some() || self.tables.covers(address)
        }
    }

    /// Copies the content of read-only memory from the image.
    pub(super) fn constant(&self, start: u64, len: usize) -> Option<&[u8]> {
        self.constant.iter().find_map(|range| {
            let offset = usize::try_from(start.checked_sub(range.start)?).ok()?;
            range.bytes.get(offset..offset.checked_add(len)?)
        })
    }

    /// Returns what the image says of addresses without its debug information.
    pub(crate) fn ranges(&self) -> &ImageRanges {
        &self.ranges
    }

    /// Returns where the image has code and where data.
    pub(crate) fn code_map(&self) -> &CodeMap {
        &self.ranges.code
    }

    /// Returns the stack pointer of a thread that has grown out of its variable, or of the part of it that is
    /// its stack, by its frames, innermost first.
    pub(crate) fn overrun_stack(&self, frames: &[StackPlace]) -> Option<u32> {
        let stack = u64::from(frames.first()?.pointer);
        self.ranges.variables.overrun(frames).or_else(|| {
            let variable = self.ranges.variables.of_stack(stack)?;
            let address = u32::try_from(variable.start).ok()?;
            Variables::new(self.parts_of(address)?).overrun(frames)
        })
    }

    /// Lists the parts of the variable at an address; nothing where its type is not known.
    pub(super) fn parts_of(&self, address: u32) -> Option<Vec<std::ops::Range<u64>>> {
        variable_parts::parts_of(self.dwarf.as_deref()?, address)
    }

    /// Returns where the variables of an operating system are.
    pub(crate) fn layouts(&self) -> &Layouts {
        &self.layouts
    }

    /// Copies instructions from the image.
    pub(crate) fn code(&self, start: u64, len: usize) -> Option<&[u8]> {
        self.code.iter().find_map(|range| {
            let offset = usize::try_from(start.checked_sub(range.start)?).ok()?;
            range.bytes.get(offset..offset.checked_add(len)?)
        })
    }

    /// Tells whether the image lets the address be executed.
    pub(super) fn is_executable(&self, address: u64) -> bool {
        self.executable.iter().any(|range| range.contains(&address))
    }

    /// Returns start and end of each function, in ascending order.
    pub(super) fn function_ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.functions.iter().map(|function| (function.start, function.end))
    }

    /// Lists the lines of all code, and tells whether there are more than are read.
    pub(crate) fn line_rows(&self) -> (Vec<LineRow>, bool) {
        let Some(Ok(rows)) =
            self.lines.as_ref().map(|lines| lines.find_location_range(0, u64::MAX))
        else {
            return (Vec::new(), false);
        };
        let mut read = rows.take(MAX_ROWS + 1).filter_map(|(start, len, location)| {
            let (file, line) = (shorten(location.file?), location.line?);
            let end = start.checked_add(len)?;
            (line > 0 && len > 0).then_some(LineRow { start, end, file, line })
        });
        let rows: Vec<_> = read.by_ref().take(MAX_ROWS).collect();
        let cut = read.next().is_some();
        (rows, cut)
    }

    /// Returns the calls the address lies in, innermost first: more than one where the
    /// compiler put functions into each other. At least one.
    pub(crate) fn places(&self, address: u64) -> Vec<CodePlace> {
        let mut places = self.lines.as_ref().map_or_else(Vec::new, |lines| {
            // No loader of split debug information: what is not in the image is not read.
            let Ok(mut frames) = lines.find_frames(address).skip_all_loads() else {
                return Vec::new();
            };
            let mut places = Vec::new();
            while let Ok(Some(frame)) = frames.next()
                && places.len() < MAX_INLINED
            {
                let name = frame.function.as_ref();
                let name = name.and_then(|name| Some(readable(&name.raw_name().ok()?)));
                let (file, line) = frame.location.map_or((None, None), |l| (l.file, l.line));
                places.push(CodePlace {
                    function: name,
                    file: file.map(shorten),
                    line: line.filter(|&line| line > 0),
                });
            }
            places
        });
        let known = self.function(address);
        if places.is_empty() {
            places.push(CodePlace { function: None, file: None, line: None });
        }
        if let (Some(outermost), Some(known)) = (places.last_mut(), known) {
            let name = match &outermost.function {
                Some(name) => known.renamed(name),
                None => Some(known.name.as_str()),
            };
            if let Some(name) = name {
                outermost.function = Some(name.to_owned());
            }
        }
        places
    }
}

fn read_functions(file: &object::File<'_>, thumb: u64) -> Vec<Function> {
    let mut functions: Vec<Function> = file
        .symbols()
        .filter(|symbol| symbol.kind() == object::SymbolKind::Text && symbol.is_definition())
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            // Mapping symbols say what kind of code follows; they name nothing.
            if name.starts_with('$') {
                return None;
            }
            let start = symbol.address() & thumb;
            Some(Function {
                start,
                end: start.checked_add(symbol.size())?,
                name: readable(name),
                is_sure: symbol.size() > 0,
            })
        })
        .collect();
    functions.sort_by(|a, b| a.start.cmp(&b.start).then_with(|| b.end.cmp(&a.end)));
    functions.dedup_by(|other, first| {
        let is_same = other.start == first.start;
        first.is_sure &= !is_same;
        is_same
    });
    // Assembly may not say how long a function is: it lasts until the next.
    let starts: Vec<u64> = functions.iter().map(|function| function.start).collect();
    let section_end = |address: u64| {
        file.sections()
            .filter(|section| section.kind() == object::SectionKind::Text)
            .map(|section| (section.address(), section.address().saturating_add(section.size())))
            .find(|&(start, end)| (start..end).contains(&address))
            .map_or(address, |(_, end)| end)
    };
    for (index, function) in functions.iter_mut().enumerate() {
        let next = starts.get(index + 1).copied();
        if function.end == function.start {
            function.end = next.unwrap_or_else(|| section_end(function.start));
        } else if let Some(next) = next {
            function.end = function.end.min(next);
        }
    }
    functions
}

fn executable_ranges(file: &object::File<'_>) -> Vec<std::ops::Range<u64>> {
    file.segments()
        .filter(|segment| segment.permissions().executable())
        .filter_map(|segment| {
            Some(segment.address()..segment.address().checked_add(segment.size())?)
        })
        .collect()
}

fn content(
    file: &object::File<'_>,
    mut budget: usize,
    wanted: impl Fn(object::Permissions) -> bool,
) -> Vec<MemoryRange> {
    file.segments()
        .filter(|segment| wanted(segment.permissions()))
        .filter_map(|segment| {
            let data = segment.data().ok().filter(|data| !data.is_empty())?;
            budget = budget.checked_sub(data.len())?;
            Some(MemoryRange { start: segment.address(), bytes: data.to_vec() })
        })
        .collect()
}

/// What of an image's debug information could not be read.
#[derive(Debug, thiserror::Error)]
#[error("debug information is unreadable ({0}): no source lines")]
struct BrokenDwarf(gimli::Error);

/// Says why an image has no source lines.
#[derive(Debug, thiserror::Error)]
enum NoLines {
    #[error("the image has no debug information: no source lines")]
    Absent,
    #[error("the image's {0}")]
    Unreadable(BrokenDwarf),
    #[error("the image's debug information nests more than {MAX_NESTING} deep: ignored")]
    Nested,
}

/// What an image's debug information was read into, and what it lacks.
struct DebugInformation {
    lines: addr2line::Context<SectionReader>,
    dwarf: Arc<gimli::Dwarf<SectionReader>>,
    broken: Option<BrokenDwarf>,
    layouts: Layouts,
}

/// Reads the debug information of an image; or why there is none.
fn read_lines(
    file: &object::File<'_>,
    section: &mut impl FnMut(&str) -> Arc<[u8]>,
    code_at_zero: bool,
) -> Result<DebugInformation, NoLines> {
    let sections = gimli::DwarfSections::load(|id: SectionId| {
        let bytes = SectionBytes::new(section(id.name()), LittleEndian);
        Ok::<_, std::convert::Infallible>((id, bytes))
    });
    let Ok(sections) = sections;
    let plain = sections.borrow(|(_, bytes)| SectionReader::new(bytes.clone(), Tombstones::none()));
    let Survey { units, broken } = survey(&plain)?;
    let broken = broken.map(BrokenDwarf);
    if units.is_empty() {
        return Err(broken.map_or(NoLines::Absent, NoLines::Unreadable));
    }
    let layouts = Layouts::read(file, &plain);
    let dwarf = if code_at_zero {
        plain
    } else {
        let units = Arc::from(units);
        sections
            .borrow(|(id, bytes)| SectionReader::new(bytes.clone(), Tombstones::of(*id, &units)))
    };
    let dwarf = Arc::new(dwarf);
    match addr2line::Context::from_arc_dwarf(Arc::clone(&dwarf)) {
        Ok(lines) => Ok(DebugInformation { lines, dwarf, broken, layouts }),
        Err(error) => Err(NoLines::Unreadable(BrokenDwarf(error))),
    }
}

/// What a walk through all debug information found.
struct Survey {
    /// Where in the section each unit describes itself.
    units: Vec<std::ops::Range<usize>>,
    /// The first thing that could not be read.
    broken: Option<gimli::Error>,
}

/// Walks all entries once without recursion. What cannot be read ends the walk of its unit:
/// the reader below us stops there too.
fn survey(dwarf: &gimli::Dwarf<SectionReader>) -> Result<Survey, NoLines> {
    let mut units = Vec::new();
    let mut broken = None;
    let mut headers = dwarf.units();
    loop {
        let header = match headers.next() {
            Ok(Some(header)) => header,
            Ok(None) => break,
            Err(error) => {
                broken.get_or_insert(error);
                break;
            }
        };
        let unit = match dwarf.unit(header) {
            Ok(unit) => unit,
            Err(error) => {
                broken.get_or_insert(error);
                continue;
            }
        };
        let mut entries = match unit.entries_raw(None) {
            Ok(entries) => entries,
            Err(error) => {
                broken.get_or_insert(error);
                continue;
            }
        };
        let mut first = true;
        while !entries.is_empty() {
            if entries.next_depth() > MAX_NESTING {
                return Err(NoLines::Nested);
            }
            let start = entries.next_offset();
            match entries.read_abbreviation() {
                Ok(Some(abbreviation)) => {
                    if let Err(error) = entries.skip_attributes(abbreviation.attributes()) {
                        broken.get_or_insert(error);
                        break;
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    broken.get_or_insert(error);
                    break;
                }
            }
            if std::mem::take(&mut first) {
                let in_section = |offset: gimli::UnitOffset| {
                    offset.to_debug_info_offset(&unit.header).map(|offset| offset.0)
                };
                if let (Some(start), Some(end)) =
                    (in_section(start), in_section(entries.next_offset()))
                {
                    units.push(start..end);
                }
            }
        }
    }
    units.sort_by_key(|unit| unit.start);
    Ok(Survey { units, broken })
}
