//! What can be wrong with an image.

use crate::profile::Arch;

/// Says why an image cannot be read, or cannot run on a board.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// Neither of the formats that say where their bytes belong.
    #[error(
        "it is neither an ELF file nor Intel HEX ({}); a raw binary needs its address: {name}@0x8000",
        beginning(head)
    )]
    UnknownFormat {
        /// The file's name without its folder.
        name: String,
        /// The first bytes, at most four.
        head: Vec<u8>,
    },
    /// The text after the name's last `@` begins like an address but is none.
    #[error("{text:?} is no address (write it like app.bin@0x8000 or app.bin@32768)")]
    BadAddress {
        /// The text.
        text: String,
    },
    /// An address was given for a file that has its own.
    #[error("it is {format} and says itself where its bytes belong (leave the @ADDRESS out)")]
    AddressNotTaken {
        /// `an ELF file` or `Intel HEX`.
        format: &'static str,
    },
    /// An ELF file that cannot be read.
    #[error("its ELF structure is broken: {0}")]
    Broken(String),
    /// A line of an Intel HEX file that cannot be read.
    #[error("its Intel HEX is broken: line {line}: {problem}")]
    BadHex {
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        problem: HexProblem,
    },
    /// Two parts claim the same address.
    #[error("two of its parts overlap: {first} and {second}")]
    Overlap {
        /// The one at the lower address: what it is and where it lies.
        first: String,
        /// The other one.
        second: String,
    },
    /// A part reaches beyond the last address there is.
    #[error("its part at {start:#x} reaches beyond the 64-bit address space")]
    BeyondEnd {
        /// First address of the part.
        start: u64,
    },
    /// More bytes than any board holds.
    #[error("it has {bytes} bytes to load, more than any board holds")]
    TooLarge {
        /// How many.
        bytes: u64,
    },
    /// Built for another processor.
    #[error("it is built for {found}, but board {board} is {wanted}")]
    WrongArch {
        /// What the file says.
        found: String,
        /// What the board is.
        wanted: Arch,
        /// The board.
        board: String,
    },
    /// Nothing to load.
    #[error("it has no loadable segment")]
    Empty,
    /// The board's profile declares no memory, so any address is unknown to it.
    #[error(
        "the profile of board {board} declares no memory, so nothing says whether its segment at \
         {start:#x}..{end:#x} fits (add `[[memory]]` tables with name, kind, start and size to the \
         profile, whose file `jig profile show {board}` names)"
    )]
    NoMemory {
        /// First address of the segment.
        start: u64,
        /// One past its last address.
        end: u64,
        /// The board.
        board: String,
    },
    /// Lies outside the board's memory.
    #[error(
        "its segment at {start:#x}..{end:#x} does not fit board {board}, whose memory is {memory}"
    )]
    OutsideMemory {
        /// First address of the segment.
        start: u64,
        /// One past its last address.
        end: u64,
        /// The board.
        board: String,
        /// The regions, for people.
        memory: String,
    },
}

fn beginning(head: &[u8]) -> String {
    if head.is_empty() {
        "it is empty".to_owned()
    } else {
        format!("it starts with \"{}\"", head.escape_ascii())
    }
}

/// Says what is wrong with a line of an Intel HEX file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HexProblem {
    /// Not a record at all.
    #[error("a record begins with `:`")]
    NoColon,
    /// Something that is no hex digit.
    #[error("{0:?} is no hex digit")]
    NoDigit(char),
    /// Half a byte at the end.
    #[error("the record ends within a byte")]
    HalfByte,
    /// Too short to be a record.
    #[error("the record is cut short")]
    TooShort,
    /// The count of bytes does not match the bytes.
    #[error("the record announces {announced} bytes of data and holds {found}")]
    WrongLength {
        /// What its first byte says.
        announced: u8,
        /// What there is.
        found: usize,
    },
    /// The bytes do not add up.
    #[error("bad checksum: it is {found:#04x} and should be {wanted:#04x}")]
    BadChecksum {
        /// What the line says.
        found: u8,
        /// What its bytes amount to.
        wanted: u8,
    },
    /// A kind of record that does not exist.
    #[error("there is no record type {0:#04x}")]
    UnknownType(u8),
    /// A record whose kind has another length.
    #[error("a record of type {kind:#04x} has {wanted} bytes of data, not {found}")]
    LengthOfType {
        /// Its type.
        kind: u8,
        /// How many it must have.
        wanted: usize,
        /// How many it has.
        found: usize,
    },
    /// Data that runs out of the 64 KiB its address can count; loaders disagree on whether
    /// it then wraps around.
    #[error("the data at offset {offset:#06x} runs over the end of its 64 KiB")]
    OverEdge {
        /// Offset of its first byte.
        offset: u16,
    },
    /// Text after the record that ends the file.
    #[error("there is more after the end record of line {end}")]
    AfterEnd {
        /// Where the end record stands.
        end: u64,
    },
    /// The file stops without saying so: it may have been cut.
    #[error("the file ends without an end record (:00000001FF): it may be cut")]
    NoEndRecord,
}
