//! A flash behind the fake probe, and a flash algorithm that has no code: the fake core lets
//! these functions do its work.
//!
//! Why: no emulated board has flash outside the address space, pages that are no multiple of a
//! sector, or cells that stay what they are.

use std::collections::{BTreeMap, BTreeSet};

/// Where the flash is: the fake's bus refuses accesses there.
pub(crate) const BASE: u32 = 0x9000_0000;
pub(crate) const SECTOR: u32 = 0x200;

/// Entry points of the algorithm, behind the start of its code.
const ERASE: u32 = 0x10;
const PROGRAM: u32 = 0x20;
const READ: u32 = 0x30;
const VERIFY: u32 = 0x40;

/// What the flash holds, and what was done to it.
#[derive(Default)]
pub(crate) struct FakeFlash {
    bytes: BTreeMap<u32, u8>,
    /// Cells that cannot be programmed.
    pub(crate) stuck: BTreeSet<u32>,
    /// Addresses of sectors that were erased, in order.
    pub(crate) erased: Vec<u32>,
    /// Called before a sector is erased.
    pub(crate) before_erase: Option<Box<dyn FnMut(u32) + Send>>,
}

impl FakeFlash {
    pub(crate) fn read(&self, start: u32, len: usize) -> Vec<u8> {
        (start..).take(len).map(|at| self.bytes.get(&at).copied().unwrap_or(0xff)).collect()
    }

    pub(crate) fn hold(&mut self, start: u32, bytes: &[u8]) {
        self.bytes.extend((start..).zip(bytes.iter().copied()));
    }

    /// Does what a function of the algorithm does, and returns its result.
    pub(crate) fn call(&mut self, entry: u32, registers: &[u32], ram: &mut Ram) -> u32 {
        let (address, len, buffer) = (registers[0], registers[1] as usize, registers[2]);
        match entry {
            ERASE => {
                if let Some(before) = &mut self.before_erase {
                    before(address);
                }
                self.erased.push(address);
                self.bytes.retain(|at, _| !(address..address + SECTOR).contains(at));
                0
            }
            PROGRAM => {
                // Programming clears bits, and sets none.
                let both = ram.read(buffer, len).into_iter().zip(self.read(address, len));
                let bytes = (address..).zip(both.map(|(new, old)| new & old));
                let stuck = |at: &u32| self.stuck.contains(at);
                let taken: Vec<_> = bytes.filter(|(at, _)| !stuck(at)).collect();
                self.bytes.extend(taken);
                0
            }
            READ => {
                ram.write(buffer, &self.read(address, len));
                0
            }
            VERIFY => {
                let both = ram.read(buffer, len).into_iter().zip(self.read(address, len));
                let equal = both.take_while(|(one, other)| one == other).count();
                address + equal as u32
            }
            other => panic!("the algorithm has no function at {other:#x}"),
        }
    }
}

/// The fake core's RAM.
pub(crate) struct Ram<'a>(pub(crate) &'a mut BTreeMap<u32, u32>);

impl Ram<'_> {
    fn read(&self, start: u32, len: usize) -> Vec<u8> {
        let byte = |at: u32| {
            let word = self.0.get(&(at & !3)).copied().unwrap_or_default();
            word.to_le_bytes()[(at & 3) as usize]
        };
        (start..).take(len).map(byte).collect()
    }

    fn write(&mut self, start: u32, bytes: &[u8]) {
        for (at, byte) in (start..).zip(bytes) {
            let word = self.0.entry(at & !3).or_default();
            let mut all = word.to_le_bytes();
            all[(at & 3) as usize] = *byte;
            *word = u32::from_le_bytes(all);
        }
    }
}

/// How a chip with such a flash is described.
#[derive(Debug, Clone)]
pub(crate) struct Described {
    /// Whether the algorithm has these functions.
    pub(crate) reads: bool,
    pub(crate) verifies: bool,
    pub(crate) page: u32,
    /// Ends of the regions, which begin where the one before ends.
    pub(crate) ends: Vec<u32>,
    /// Whether there is an algorithm.
    pub(crate) served: bool,
}

impl Default for Described {
    fn default() -> Self {
        let ends = vec![BASE + 0x4_0000];
        Self { reads: true, verifies: false, page: 0x100, ends, served: true }
    }
}

impl Described {
    /// Writes the description; the chip is called `fake`.
    pub(crate) fn text(&self) -> String {
        let mut text = "name: fake family\nvariants:\n- name: fake\n  cores:\n  - name: main\n    \
                        type: armv6m\n    core_access_options: !Arm\n      ap: !v1 0\n  \
                        memory_map:\n  - !Ram\n    range: { start: 0x20000000, end: 0x20004000 \
                        }\n    cores: [ main ]\n"
            .to_owned();
        let mut start = BASE;
        for end in &self.ends {
            text.push_str(&format!(
                "  - !Nvm\n    range: {{ start: {start:#x}, end: {end:#x} }}\n    cores: [ main ]\n"
            ));
            start = *end;
        }
        if !self.served {
            return text + "  flash_algorithms: []\nflash_algorithms: []\n";
        }
        let optional = |name, has, entry| match has {
            true => format!("  {name}: {entry:#x}\n"),
            false => String::new(),
        };
        // The regions share their algorithm. Its code is words without meaning.
        text + &format!(
            "  flash_algorithms: [ fake ]\nflash_algorithms:\n- name: fake\n  description: ''\n  \
             default: true\n  instructions: {code}\n  pc_erase_sector: {ERASE:#x}\n  \
             pc_program_page: {PROGRAM:#x}\n{reads}{verifies}  data_section_offset: 0x0\n  \
             flash_properties:\n    address_range: {{ start: {BASE:#x}, end: {start:#x} }}\n    \
             page_size: {page:#x}\n    erased_byte_value: 0xff\n    program_page_timeout: 100\n    \
             erase_sector_timeout: 100\n    sectors:\n    - {{ size: {SECTOR:#x}, address: 0x0 }}\n",
            code = "A".repeat(88),
            reads = optional("pc_read", self.reads, READ),
            verifies = optional("pc_verify", self.verifies, VERIFY),
            page = self.page,
        )
    }
}
