//! Why the boards and places of this host could not be read, or one was not found.

use std::io;
use std::path::PathBuf;

use jig_model::chip::UnknownChip;
use jig_model::rig_file::UnknownPlace;
use jig_model::{BoardId, Fault, PlaceName, Problems};
use jig_probe::ProbeError;
use jig_rig::store::is_the_hosts;

use super::devices::SharedPort;

/// Says why the catalogue could not be read, or what it does not have.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The rig file that the configuration names cannot be read.
    #[error("could not read rig file {}", path.display())]
    RigFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The folder of profiles that the configuration names is none.
    #[error("{} is not a folder", path.display())]
    NoFolder {
        /// What should be one.
        path: PathBuf,
    },
    /// A file or a folder that was found cannot be read.
    #[error("could not read {}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Documents do not say what they should.
    #[error("{}", counted(.0))]
    Problems(Vec<Problems>),
    /// No place has the name.
    #[error("{unknown}")]
    UnknownPlace {
        /// The name, and the nearest one.
        unknown: UnknownPlace,
        /// Whether a board has the name.
        is_board: bool,
        /// The rig file that lacks such a place, if there is one.
        rig_file: Option<PathBuf>,
    },
    /// Two consoles of the rig end at the same port.
    #[error(transparent)]
    SharedPort(#[from] Box<SharedPort>),
    /// No chip, or no single chip, has the name.
    #[error(transparent)]
    UnknownChip(#[from] UnknownChip),
    /// A chip is to be used, and no probe is attached.
    #[error("no debug probe is attached to this host")]
    NoProbe,
    /// A chip is to be used, and several probes are attached.
    #[error("several debug probes are attached: {}", .0.join(", "))]
    Probes(Vec<String>),
    /// The probe that a chip is to be used by belongs to a place.
    #[error("probe {selector} belongs to place {place}")]
    ProbeOfPlace {
        /// The probe.
        selector: String,
        /// The place.
        place: PlaceName,
    },
    /// The probes could not be listed.
    #[error(transparent)]
    Listing(#[from] ProbeError),
    /// No board has the name.
    #[error("there is no board profile {:?}", board.as_str())]
    UnknownBoard {
        /// The name.
        board: BoardId,
        /// Those that there are.
        known: Vec<BoardId>,
    },
}

impl CatalogueError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::RigFile { .. }
            | Self::NoFolder { .. }
            | Self::UnknownPlace { .. }
            | Self::UnknownChip(_)
            | Self::Probes(_)
            | Self::ProbeOfPlace { .. }
            | Self::UnknownBoard { .. } => Fault::Usage,
            Self::NoProbe => Fault::Lab,
            Self::Listing(error) => error.fault(),
            Self::Unreadable { source, .. } if is_the_hosts(source) => Fault::Lab,
            Self::Unreadable { .. } => Fault::Usage,
            Self::Problems(_) | Self::SharedPort(_) => Fault::Profile,
        }
    }
}

fn counted(problems: &[Problems]) -> String {
    let count: usize = problems.iter().map(|document| document.list.len()).sum();
    let s = if count == 1 { "" } else { "s" };
    format!("{count} problem{s} found")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_is_a_mistake_unless_the_host_fails() {
        // EMFILE and EIO are failures of the host.
        for (source, fault) in [
            (io::Error::from(io::ErrorKind::PermissionDenied), Fault::Usage),
            (io::Error::from(io::ErrorKind::IsADirectory), Fault::Usage),
            (io::Error::other("it is a FIFO, no file"), Fault::Usage),
            (io::Error::from_raw_os_error(24), Fault::Lab),
            (io::Error::from_raw_os_error(5), Fault::Lab),
        ] {
            let error = CatalogueError::Unreadable { path: PathBuf::from("rig.toml"), source };
            assert_eq!(error.fault(), fault, "{error:?}");
        }
    }
}
