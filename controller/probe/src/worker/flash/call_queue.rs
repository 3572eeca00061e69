//! Calls of a flash algorithm, queued in the chip's RAM.
//!
//! A Cortex-M core runs a [dispatcher](DISPATCHER) of eleven words beside the algorithm and
//! never halts between calls. A *lot* is a list of calls with the pages they program, written
//! to one of two trays while the core works off the other. One word starts it; it is over when
//! that word reads as zero. What a call costs on the wire is shared by all of its lot, be that
//! the latency of USB or the scheduler of the host that emulates the chip.

use std::ops::Range;

use probe_rs::{Core, Error, MemoryInterface};

use super::algorithm::{DHCSR, GO};

/// The dispatcher, in Thumb code that every Cortex-M has. It may stand anywhere; the word
/// behind it is the address of the mail box: the slot that is called, or zero, and the result
/// of the last call. Four words are a slot: function, three arguments. A slot without a
/// function ends a lot; a result that is not zero ends all calls.
///
/// ```text
/// 00  ldr  r4, [pc, #40]    ; the mail box
/// 02  ldr  r7, [r4]         ; a slot?
/// 04  cmp  r7, #0
/// 06  beq  02
/// 08  ldr  r5, [r7]         ; its function
/// 0a  cmp  r5, #0
/// 0c  beq  24
/// 0e  ldr  r0, [r7, #4]
/// 10  ldr  r1, [r7, #8]
/// 12  ldr  r2, [r7, #12]
/// 14  blx  r5
/// 16  ldr  r4, [pc, #20]
/// 18  str  r0, [r4, #4]     ; the result
/// 1a  cmp  r0, #0
/// 1c  bne  1c               ; has failed: the mail box names the slot
/// 1e  ldr  r7, [r4]
/// 20  adds r7, #16          ; the next slot
/// 22  b    26
/// 24  movs r7, #0           ; the lot is done
/// 26  str  r7, [r4]
/// 28  b    02
/// 2a  nop
/// ```
pub(crate) const DISPATCHER: [u32; 11] = [
    0x6827_4c0a,
    0xd0fc_2f00,
    0x2d00_683d,
    0x6878_d00a,
    0x68fa_68b9,
    0x4c05_47a8,
    0x2800_6060,
    0x6827_d1fe,
    0xe000_3710,
    0x6027_2700,
    0xbf00_e7eb,
];

/// Where the mail box is behind the start of the dispatcher, and where both end.
const MAIL_BOX: u64 = 0x30;
const TRAYS: u64 = 0x40;
/// Words of a slot.
const SLOT: usize = 4;
/// Most calls of a lot. Enough for their cost to vanish, and few enough for small RAM.
pub(crate) const MOST: usize = 16;
/// The slots of a lot, and the one that ends it.
const SLOTS: u64 = ((MOST + 1) * SLOT * 4) as u64;

/// One call of a function of the algorithm.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Call<'a> {
    /// The function's address.
    pub(crate) entry: u64,
    pub(crate) arguments: [u64; 3],
    /// The page it programs, if it does; where that is in RAM becomes the third argument.
    pub(crate) page: Option<&'a [u8]>,
}

/// How a lot is getting on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Busy,
    Done,
    /// A call has failed: which of the lot, and what it returned.
    Failed {
        nth: usize,
        code: u32,
    },
}

/// The queue's place in RAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallQueue {
    start: u64,
    tray: u64,
    page: u64,
    /// Most pages of a lot.
    pub(crate) pages: usize,
}

impl CallQueue {
    /// Lays a queue out in spare RAM, if lots of at least one page fit.
    pub(crate) fn within(room: &Range<u64>, page: u32) -> Option<Self> {
        let page = u64::from(page.max(1)).next_multiple_of(4);
        let start = room.start.next_multiple_of(8);
        let tray = (room.end.checked_sub(start + TRAYS)? / 2) & !7;
        let pages = (tray.checked_sub(SLOTS)? / page).min(MOST as u64);
        (pages > 0).then_some(Self {
            start,
            tray: SLOTS + pages * page,
            page,
            pages: pages as usize,
        })
    }

    fn tray(&self, number: usize) -> u64 {
        self.start + TRAYS + (number as u64 & 1) * self.tray
    }

    /// Writes the dispatcher, and lets a halted core run it.
    pub(crate) fn begin(&self, core: &mut Core<'_>) -> Result<(), Error> {
        let mut words = DISPATCHER.to_vec();
        words.extend([(self.start + MAIL_BOX) as u32, 0, 0]);
        core.write_32(self.start, &words)?;
        core.write_core_reg(core.program_counter().id(), self.start)?;
        core.write_word_32(DHCSR, GO)?;
        core.flush()
    }

    /// Writes a lot to a tray that the core is not working on.
    pub(crate) fn carry(
        &self,
        core: &mut Core<'_>,
        tray: usize,
        calls: &[Call<'_>],
    ) -> Result<(), Error> {
        let start = self.tray(tray);
        let mut slots = Vec::with_capacity(SLOTS as usize);
        let mut pages = Vec::new();
        for call in calls {
            let mut slot = call.arguments;
            if let Some(page) = call.page {
                slot[2] = start + SLOTS + pages.len() as u64;
                pages.extend(page);
                pages.resize(pages.len().next_multiple_of(self.page as usize), 0);
            }
            let words = [call.entry | 1, slot[0], slot[1], slot[2]];
            slots.extend(words.iter().flat_map(|word| (*word as u32).to_le_bytes()));
        }
        // The slot that ends the lot; the pages are behind all slots there could be.
        let end = if pages.is_empty() { slots.len() + SLOT * 4 } else { SLOTS as usize };
        slots.resize(end, 0);
        slots.append(&mut pages);
        core.write(start, &slots)
    }

    /// Lets the core work off what a tray holds.
    pub(crate) fn start(&self, core: &mut Core<'_>, tray: usize) -> Result<(), Error> {
        core.write_word_32(self.start + MAIL_BOX, self.tray(tray) as u32)?;
        core.flush()
    }

    /// Looks how the lot of a tray is getting on.
    pub(crate) fn look(&self, core: &mut Core<'_>, tray: usize) -> Result<Progress, Error> {
        let mut words = [0; 2];
        // In this order: a result is there before the mail box is empty.
        core.read_32(self.start + MAIL_BOX, &mut words)?;
        let [slot, result] = words;
        if result != 0 {
            let nth = u64::from(slot).saturating_sub(self.tray(tray)) as usize / (SLOT * 4);
            return Ok(Progress::Failed { nth, code: result });
        }
        Ok(if slot == 0 { Progress::Done } else { Progress::Busy })
    }
}
