//! Converts a recipe and downloaded packages into the files an emulator boots.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use xtask::failure::TaskFailure;
use xtask::hex;

use super::packages::{Apt, DebianPackage};
use super::recipe::Recipe;
use super::tree::{Mode, Tree};

/// The kernel, in the image's folder.
const KERNEL: &str = "vmlinuz";
/// The initial file system, in the image's folder.
const INITRD: &str = "initrd";
/// The description, in the image's folder; written last.
pub(crate) const DESCRIPTION: &str = "image.json";
/// Version of the description's format.
const FORMAT: u32 = 1;

/// What `image.json` says about the files beside it. It holds no date and no path of the host:
/// two builds of the same packages give the same description.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ImageDescription {
    format: u32,
    summary: String,
    /// The recipe this was built from.
    pub(crate) recipe_sha256: String,
    /// The kernel command line the image is meant for.
    cmdline: String,
    /// Debian package to version.
    packages: BTreeMap<String, String>,
    /// File name to identity.
    pub(crate) files: BTreeMap<String, FileIdentity>,
}

/// Size and hash of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileIdentity {
    pub(crate) bytes: u64,
    sha256: String,
}

/// Downloads what the recipe needs and writes the image into an empty folder.
pub(crate) fn build(
    recipe: &Recipe,
    apt: &Path,
    out: &Path,
) -> Result<ImageDescription, TaskFailure> {
    let spec = &recipe.spec;
    println!("  packages: refreshing the lists of {}", spec.debian.architecture);
    let apt = Apt::refresh(apt, &spec.debian)?;
    let kernel = apt.dependency(&spec.kernel.metapackage, &spec.kernel.depends_on)?;
    let mut names: Vec<&str> = spec.packages.iter().map(|package| package.name.as_str()).collect();
    names.push(&kernel);
    println!("  packages: {}", names.join(" "));
    let packages = apt.download(&names)?;

    let scratch = out.join("scratch");
    let tree = Tree::create(&scratch.join("root"))?;
    let unpacked = Unpacked::of(package(&packages, &kernel)?, &scratch.join("kernel"))?;
    let image = add_kernel(&tree, recipe, &unpacked)?;
    std::fs::copy(&image, out.join(KERNEL)).map_err(TaskFailure::io("copy", &image))?;
    for wanted in &spec.packages {
        let unpacked =
            Unpacked::of(package(&packages, &wanted.name)?, &scratch.join(&wanted.name))?;
        for (from, to) in &wanted.files {
            tree.copy(&unpacked.file(from)?, to, Mode::Executable)?;
        }
    }
    add_own_files(&tree, recipe)?;
    println!("  packing {INITRD}");
    tree.pack(&out.join(INITRD))?;
    std::fs::remove_dir_all(&scratch).map_err(TaskFailure::io("remove", &scratch))?;

    let mut files = BTreeMap::new();
    for name in [KERNEL, INITRD] {
        files.insert(name.to_owned(), identify(&out.join(name))?);
    }
    let description = ImageDescription {
        format: FORMAT,
        summary: spec.summary.clone(),
        recipe_sha256: recipe.sha256.clone(),
        cmdline: spec.kernel.cmdline.clone(),
        packages: packages.into_iter().map(|one| (one.name, one.version)).collect(),
        files,
    };
    let mut json = serde_json::to_vec_pretty(&description).map_err(|error| TaskFailure::Io {
        doing: format!("write {DESCRIPTION}"),
        source: error.into(),
    })?;
    json.push(b'\n');
    let path = out.join(DESCRIPTION);
    std::fs::write(&path, json).map_err(TaskFailure::io("write", &path))?;
    sync(&path)?;
    Ok(description)
}

/// A package's files in a folder.
struct Unpacked<'a> {
    package: &'a DebianPackage,
    folder: PathBuf,
}

impl<'a> Unpacked<'a> {
    fn of(package: &'a DebianPackage, folder: &Path) -> Result<Self, TaskFailure> {
        std::fs::create_dir_all(folder).map_err(TaskFailure::io("create", folder))?;
        package.unpack(folder)?;
        let folder = folder.canonicalize().map_err(TaskFailure::io("find", folder))?;
        Ok(Self { package, folder })
    }

    /// Finds a file by its path in the package, through links that stay in the package.
    fn file(&self, path: &str) -> Result<PathBuf, TaskFailure> {
        let found = self.folder.join(path).canonicalize().ok();
        let found = found.filter(|file| file.starts_with(&self.folder) && file.is_file());
        found.ok_or_else(|| self.absent(path))
    }

    /// Finds the one file of a folder whose name a pattern names; the pattern may end in `*`.
    fn matching(&self, pattern: &str) -> Result<PathBuf, TaskFailure> {
        let Some(prefix) = pattern.strip_suffix('*') else { return self.file(pattern) };
        let (folder, prefix) = prefix.rsplit_once('/').unwrap_or(("", prefix));
        let names = entries(&self.folder.join(folder))?;
        let found = names.into_iter().find(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
        });
        found.ok_or_else(|| self.absent(pattern))
    }

    /// Finds the file with a name, in whatever folder.
    fn named(&self, name: &str) -> Result<PathBuf, TaskFailure> {
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            for path in entries(&folder)? {
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                } else if path.ends_with(name) {
                    return Ok(path);
                }
            }
        }
        Err(self.absent(name))
    }

    fn absent(&self, file: &str) -> TaskFailure {
        let name = &self.package.name;
        TaskFailure::Because(format!(
            "package {name} holds no {file}: Debian moved it, so the recipe's image.toml must follow"
        ))
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, TaskFailure> {
    let entries = std::fs::read_dir(folder).map_err(TaskFailure::io("list", folder))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Adds the modules to the tree and returns the bootable kernel.
fn add_kernel(
    tree: &Tree,
    recipe: &Recipe,
    package: &Unpacked<'_>,
) -> Result<PathBuf, TaskFailure> {
    let kernel = &recipe.spec.kernel;
    for name in &kernel.modules {
        let file = format!("{name}.ko");
        tree.copy(&package.named(&file)?, &format!("lib/modules/{file}"), Mode::Plain)?;
    }
    let order: String = kernel.modules.iter().map(|name| format!("{name}\n")).collect();
    tree.write("lib/modules/order", order.as_bytes(), Mode::Plain)?;
    package.matching(&kernel.file)
}

fn add_own_files(tree: &Tree, recipe: &Recipe) -> Result<(), TaskFailure> {
    let initrd = &recipe.spec.initrd;
    for directory in &initrd.directories {
        tree.directory(directory)?;
    }
    for (path, target) in &initrd.links {
        tree.link(path, target)?;
    }
    for (path, text) in &initrd.text {
        tree.write(path, text.as_bytes(), Mode::Plain)?;
    }
    tree.write("init", &recipe.init, Mode::Executable)
}

fn package<'a>(
    packages: &'a [DebianPackage],
    name: &str,
) -> Result<&'a DebianPackage, TaskFailure> {
    let found = packages.iter().find(|package| package.name == name);
    found.ok_or_else(|| TaskFailure::Because(format!("{name} was not downloaded")))
}

/// Returns the identity of a file that has reached the disk: a power cut after the rename that
/// publishes it must not leave an image that looks complete and is not.
fn identify(path: &Path) -> Result<FileIdentity, TaskFailure> {
    sync(path)?;
    let bytes = std::fs::read(path).map_err(TaskFailure::io("read", path))?;
    Ok(FileIdentity { bytes: bytes.len() as u64, sha256: hex(&Sha256::digest(&bytes)) })
}

fn sync(path: &Path) -> Result<(), TaskFailure> {
    File::open(path).and_then(|file| file.sync_all()).map_err(TaskFailure::io("write", path))
}
