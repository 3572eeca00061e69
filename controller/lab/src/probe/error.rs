//! Why a command behind a debug probe was not carried out.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use jig_model::image::ImageError;
use jig_model::profile::FormatNotTaken;
use jig_model::protocol::DriverError;
use jig_model::rig_file::MissingPart;
use jig_model::{BoardId, Fault, PlaceName, chain};
use jig_probe::{
    DefmtError, GdbServerError, ProbeError, RttError, SymbolsError, VirtualBoardError,
};
use jig_rig::store::{FlashFileError, PlaceLockError, StoreError};

use crate::{BindError, CatalogueError, SwitchError};

/// Says why a command behind a debug probe, or one that flashes or resets, was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ProbeCommandError {
    /// The place or its board is not known.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The place lacks what the command needs.
    #[error(transparent)]
    Missing(#[from] MissingPart),
    /// Another process uses the place.
    #[error(transparent)]
    Held(#[from] PlaceLockError),
    /// The caller cancelled the command while it waited for a place.
    #[error("gave up waiting for place {0}")]
    Waiting(PlaceName),
    /// The caller cancelled the command.
    #[error("cancelled at {0}")]
    Cancelled(PlaceName),
    /// The holder of the place cannot be found out.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The kept flash of an emulated board cannot be used.
    #[error("{}", chain(error))]
    FlashFile {
        /// The place.
        place: PlaceName,
        /// Whether the file was being read, and not written or removed.
        reading: bool,
        /// Why not.
        error: FlashFileError,
    },
    /// The command needs a board that outlives it.
    #[error("`{verb}` reaches nothing: {place} is emulated, and no process keeps it running")]
    NotKept {
        /// The verb.
        verb: String,
        /// The place.
        place: PlaceName,
    },
    /// Only an emulated board can be served.
    #[error("{place} is a real board{}", behind(.selector.as_deref()))]
    NotEmulated {
        /// The place.
        place: PlaceName,
        /// Its probe.
        selector: Option<String>,
    },
    /// There is no room for what drivers leave as evidence.
    #[error("could not make a folder for the board")]
    Folder(#[source] io::Error),
    /// A task of this process panicked.
    #[error(transparent)]
    Task(#[from] tokio::task::JoinError),
    /// The board cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// What switches the power of the place did not do as asked.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// A part of the board did not do as asked.
    #[error(transparent)]
    Driver(DriverError),
    /// The program that flashes the board failed.
    #[error("{}", chain(error))]
    Flasher {
        /// Why.
        error: DriverError,
        /// The folder with its output.
        evidence: PathBuf,
    },
    /// The caller cancelled the program that flashes the board.
    #[error("cancelled while {place} was flashed")]
    FlashCancelled {
        /// The place.
        place: PlaceName,
        /// The folder with the output of the program.
        evidence: PathBuf,
    },
    /// A part of the place is missing from its binding.
    #[error("place {0} was bound without the part for this")]
    NotBound(PlaceName),
    /// The emulated board cannot be used.
    #[error(transparent)]
    VirtualBoard(#[from] VirtualBoardError),
    /// A file cannot be read.
    #[error("could not read {}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("could not write {}", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The image does not fit the board, or is none.
    #[error("image {} cannot be used", .image.display())]
    Image {
        /// The image, as it was named.
        image: PathBuf,
        /// Why not.
        #[source]
        source: ImageError,
    },
    /// The program that flashes the board takes no such image.
    #[error("image {} cannot be flashed here: {refused}", .image.display())]
    ImageFormat {
        /// The image, as it was named.
        image: PathBuf,
        /// Why.
        refused: FormatNotTaken,
    },
    /// An ELF file has no names.
    #[error("no names can be read from {}", .image.display())]
    NoNames {
        /// The file.
        image: PathBuf,
        /// Why not.
        #[source]
        source: SymbolsError,
    },
    /// An ELF file lacks a function.
    #[error("{} has no function {name:?}", .image.display())]
    NoFunction {
        /// The file.
        image: PathBuf,
        /// The function.
        name: String,
    },
    /// The defmt table of an ELF file cannot be read.
    #[error(transparent)]
    Defmt(#[from] DefmtError),
    /// The probe did not do as asked.
    #[error("{}", chain(error))]
    Probe {
        /// The place.
        place: PlaceName,
        /// What it said.
        error: ProbeError,
    },
    /// The probe was not attached to, because the board has no power.
    #[error("{place} has no power: {outlet} is off; {}", chain(error))]
    Unpowered {
        /// The place.
        place: PlaceName,
        /// Its outlet.
        outlet: String,
        /// What the probe said.
        error: ProbeError,
    },
    /// The RTT channel cannot be used; may hold any text.
    #[error(transparent)]
    Rtt(RttError),
    /// The program has no such RTT channel.
    #[error("the program has no RTT channel {channel}")]
    NoRttChannel {
        /// The number that was asked for.
        channel: usize,
        /// Numbers and names of the channels that it has: hostile text.
        known: Vec<(usize, String)>,
    },
    /// A plain write does not change flash.
    #[error("{address:#010x} is in the flash of {place}, which a write to memory does not change")]
    WritesFlash {
        /// The place.
        place: PlaceName,
        /// The first address in flash.
        address: u64,
    },
    /// The program has no RTT control block.
    #[error("the target has no RTT control block")]
    NoRtt,
    /// The board has no flash.
    #[error("{0} has no flash that could be erased")]
    NoFlash(PlaceName),
    /// Nothing answers at an address that the caller named.
    #[error("{}", chain(error))]
    NoSuchMemory {
        /// The board.
        board: BoardId,
        /// What the probe said.
        error: ProbeError,
    },
    /// None of the memory that was named can be read.
    #[error("none of the memory that was named can be read")]
    NoMemory,
    /// More memory is asked for than one command reads.
    #[error("more than 64 MiB, or behind the last address, cannot be read at once")]
    TooMuch,
    /// The core has no such register.
    #[error("{chip} has no register {name:?}")]
    NoRegister {
        /// The chip.
        chip: String,
        /// The register.
        name: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// The GDB server cannot listen.
    #[error("could not listen on {listen}")]
    Listen {
        /// Where.
        listen: SocketAddr,
        /// Why not.
        #[source]
        source: GdbServerError,
    },
    /// GDB's protocol gives full control of a board, and knows no password.
    #[error(
        "a machine that reaches {0} would control the board: the protocol of gdb has no password"
    )]
    Exposed(SocketAddr),
    /// A debug port gives full control of a board, and its protocol knows no password.
    #[error("a debug port is only served to this machine")]
    NotLoopback,
    /// The board that is held has no power any more.
    #[error("{place} has no power any more: {why}")]
    BoardOff {
        /// The place.
        place: PlaceName,
        /// What ended it; may hold any text.
        why: String,
    },
    /// The emulator of a board without a debug port loads an image at each launch.
    #[error("{0} keeps no image: its emulator has to be given one")]
    NothingToBoot(PlaceName),
    /// A board that is held is flashed by a command of its own.
    #[error("{0} is held: it is flashed first, and then served")]
    ImageOfHeld(PlaceName),
    /// The debug port of the held board is served already.
    #[error("the debug port of {place} is served already: {selector}")]
    ServedAlready {
        /// The place.
        place: PlaceName,
        /// By which selector; may hold any text.
        selector: String,
    },
    /// The emulated board ended while it was served; the words may hold any text.
    #[error("the emulated board {place} is gone: {words}")]
    BoardLost {
        /// The place.
        place: PlaceName,
        /// What its driver said.
        words: String,
    },
}

fn behind(selector: Option<&str>) -> String {
    selector.map(|selector| format!(" behind probe {selector}")).unwrap_or_default()
}

impl ProbeCommandError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Catalogue(error) => error.fault(),
            Self::Held(error) => error.fault(),
            Self::Store(error) => error.fault(),
            Self::FlashFile { error, .. } => error.fault(),
            Self::Bind(error) => error.fault(),
            Self::Switch(error) => error.fault(),
            Self::Driver(error) | Self::Flasher { error, .. } => {
                error.cause.fault().unwrap_or(Fault::Lab)
            }
            Self::Probe { error, .. } | Self::Unpowered { error, .. } => error.fault(),
            Self::VirtualBoard(error) => match error {
                VirtualBoardError::NotDescribed { .. } | VirtualBoardError::Description(_) => {
                    Fault::Profile
                }
                VirtualBoardError::Launch(_)
                | VirtualBoardError::Channel(_)
                | VirtualBoardError::NoMemoryMap
                | VirtualBoardError::Board(_)
                | VirtualBoardError::Serve { .. } => Fault::Lab,
            },
            Self::Rtt(RttError::Memory(error)) => error.fault(),
            // A file that cannot be where the caller wants it.
            Self::Unwritable { source, .. }
                if matches!(
                    source.kind(),
                    io::ErrorKind::NotFound
                        | io::ErrorKind::NotADirectory
                        | io::ErrorKind::IsADirectory
                        | io::ErrorKind::PermissionDenied
                ) =>
            {
                Fault::Usage
            }
            // An address that this machine does not have.
            Self::Listen { source: GdbServerError::Listen { source, .. }, .. }
                if source.kind() == io::ErrorKind::AddrNotAvailable =>
            {
                Fault::Usage
            }
            Self::Missing(_) => Fault::Profile,
            Self::Waiting(_) | Self::Cancelled(_) | Self::FlashCancelled { .. } => Fault::Cancelled,
            Self::ImageOfHeld(_)
            | Self::NothingToBoot(_)
            | Self::NotKept { .. }
            | Self::NotEmulated { .. }
            | Self::Unreadable { .. }
            | Self::Image { .. }
            | Self::ImageFormat { .. }
            | Self::NoNames { .. }
            | Self::NoFunction { .. }
            | Self::Defmt(_)
            | Self::NoFlash(_)
            | Self::TooMuch
            | Self::NoRegister { .. }
            | Self::NotLoopback
            | Self::Exposed(_)
            | Self::NoSuchMemory { .. }
            | Self::NoRttChannel { .. }
            | Self::WritesFlash { .. }
            | Self::NoMemory => Fault::Usage,
            Self::Rtt(RttError::Corrupted { .. } | RttError::NoChannel { .. }) | Self::NoRtt => {
                Fault::Target
            }
            Self::BoardOff { .. } => Fault::Target,
            Self::Folder(_)
            | Self::ServedAlready { .. }
            | Self::Unwritable { .. }
            | Self::Listen { .. }
            | Self::BoardLost { .. } => Fault::Lab,
            Self::Task(_) | Self::NotBound(_) => Fault::Bug,
        }
    }
}
