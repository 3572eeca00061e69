//! Reads the images of a plan, before anything else is touched.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use jig_model::Fault;
use jig_model::image::{Image, ImageError, ImageSource};
use jig_model::plan::{ActionKind, Plan};
use jig_model::profile::{BoardProfile, Deploy, FormatNotTaken};
use jig_model::rig_file::Place;

use super::storage_retry::Passing;
use crate::store::{is_the_hosts, lacks, read_whole};

/// Says what is wrong with the images of a run.
#[derive(Debug, thiserror::Error)]
pub enum ImagesError {
    /// The plan deploys the command line's image, but there is none.
    #[error("plan {plan} deploys an image, but none was given (add: --image FILE)")]
    NotGiven {
        /// The plan.
        plan: String,
    },
    /// The command line's image would never be used.
    #[error(
        "plan {plan} never deploys the image that was given (add an action: {{ deploy = true }})"
    )]
    NotDeployed {
        /// The plan.
        plan: String,
    },
    /// The board boots nothing by itself.
    #[error(
        "board {board} has nothing to boot without an image (add the path of one: ELF, Intel HEX, or FILE.bin@ADDRESS)"
    )]
    Needed {
        /// The board.
        board: String,
    },
    /// The board takes no image.
    #[error("board {board} boots its own image set and takes no image (leave it out)")]
    NotTaken {
        /// The board.
        board: String,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] UnreadableImage),
    /// The program that flashes the board takes no such image.
    #[error("image {} cannot be flashed here: {refused}", path.display())]
    NotTakenByFlasher {
        /// The file, as it was named.
        path: PathBuf,
        /// Why.
        refused: FormatNotTaken,
    },
    /// An image does not fit.
    #[error("image {} does not fit: {source}", path.display())]
    Unfit {
        /// The file, as it was named.
        path: PathBuf,
        /// Why.
        source: ImageError,
    },
}

impl ImagesError {
    /// Says who is to blame: the user who named the image, or the host if it cannot read files.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Unreadable(error) if is_the_hosts(&error.source) => Fault::Lab,
            Self::NotGiven { .. }
            | Self::NotDeployed { .. }
            | Self::Needed { .. }
            | Self::NotTaken { .. }
            | Self::NotTakenByFlasher { .. }
            | Self::Unreadable(_)
            | Self::Unfit { .. } => Fault::Usage,
        }
    }
}

impl Passing for ImagesError {
    fn may_pass(&self) -> bool {
        matches!(self, Self::Unreadable(error) if lacks(&error.source))
    }
}

/// Says why an image file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("read image {}", path.display())]
pub struct UnreadableImage {
    /// The file.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// An image with the bytes that were checked.
pub(super) struct ReadImage {
    pub(super) image: Image,
    pub(super) bytes: Vec<u8>,
}

/// Images by the name the plan gives them; `None` is the command line's.
pub(super) type ReadImages = BTreeMap<Option<PathBuf>, ReadImage>;

/// Reads and checks every image that the plan deploys.
pub(super) fn read(
    plan: &Plan,
    given: Option<&Path>,
    board: &BoardProfile,
    place: &Place,
) -> Result<ReadImages, ImagesError> {
    // The flash of a real board keeps the image of an earlier run; that of an emulated board is
    // blank at the start of each run.
    let deploy = board.deploy_at(place);
    let boots_alone = !place.is_emulated() || deploy == Some(Deploy::ImageSet);
    let takes_images = !board.memory.is_empty();
    let name = || board.id.to_string();
    if given.is_some() && !takes_images {
        return Err(ImagesError::NotTaken { board: name() });
    }
    let actions = plan.stages.iter().flat_map(|s| &s.steps).flat_map(|s| &s.behaviors);
    let mut images = ReadImages::new();
    for action in actions.flat_map(|b| &b.actions) {
        let ActionKind::Deploy { image } = &action.kind else { continue };
        let path = match (image, given) {
            (Some(path), _) => path.as_path(),
            (None, Some(path)) => path,
            (None, None) => return Err(ImagesError::NotGiven { plan: plan.name.to_string() }),
        };
        if !images.contains_key(image) {
            let read = read_one(path, board)?;
            if let Some(Deploy::Command(command)) = &deploy {
                command.takes(read.image.format.kind()).map_err(|refused| {
                    ImagesError::NotTakenByFlasher { path: path.to_owned(), refused }
                })?;
            }
            images.insert(image.clone(), read);
        }
    }
    if given.is_some() && !images.contains_key(&None) {
        return Err(ImagesError::NotDeployed { plan: plan.name.to_string() });
    }
    if images.is_empty() && !boots_alone {
        return Err(ImagesError::Needed { board: name() });
    }
    Ok(images)
}

/// Reads and checks one image.
pub(super) fn read_one(named: &Path, board: &BoardProfile) -> Result<ReadImage, ImagesError> {
    let unfit = |source| ImagesError::Unfit { path: named.to_owned(), source };
    let source = ImageSource::of(named, Path::exists).map_err(unfit)?;
    let path = &source.path;
    let unreadable = |source| UnreadableImage { path: path.clone(), source };
    let bytes = read_whole(path, board.image_file_limit()).map_err(unreadable)?;
    let image = Image::parse_from(&source, &bytes, board).map_err(unfit)?;
    Ok(ReadImage { image, bytes })
}

/// Checks an image whose bytes are at hand; nothing if it does not fit the board.
pub(super) fn of_bytes(name: &str, bytes: Vec<u8>, board: &BoardProfile) -> Option<ReadImage> {
    let source = ImageSource::of(Path::new(name), |_| false).ok()?;
    let image = Image::parse_from(&source, &bytes, board).ok()?;
    Some(ReadImage { image, bytes })
}
