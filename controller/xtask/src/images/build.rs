//! RetryPolicy a recipe and downloaded packages into the files an emulator boots.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use flate2::{Compression, GzBuilder};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::apt_root::{AptRoot, Download};
use super::cpio::{Entry, Tree};
use super::deb::Contents;
use super::recipe::{Recipe, hex};
use crate::failure::Failure;

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
pub(crate) struct Description {
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
pub(crate) fn build(recipe: &Recipe, apt: &Path, out: &Path) -> Result<Description, Failure> {
    let spec = &recipe.spec;
    println!("  packages: refreshing the lists of {}", spec.debian.architecture);
    let apt = AptRoot::refresh(apt, &spec.debian.architecture, &spec.debian.suites)?;
    let kernel = apt.dependency(&spec.kernel.metapackage, &spec.kernel.depends_on)?;
    let mut names: Vec<&str> = spec.packages.iter().map(|package| package.name.as_str()).collect();
    names.push(&kernel);
    println!("  packages: {}", names.join(" "));
    let downloads = apt.download(&names)?;

    let mut tree = Tree::default();
    let image = add_kernel(&mut tree, recipe, package(&downloads, &kernel)?)?;
    for wanted in &spec.packages {
        let mut contents = Contents::read(&package(&downloads, &wanted.name)?.path, |_| true)?;
        for (from, to) in &wanted.files {
            let bytes = contents.take(from).ok_or_else(|| absent(from, &wanted.name))?;
            tree.insert(to, Entry::File { bytes, executable: true });
        }
    }
    add_own_files(&mut tree, recipe);

    let mut files = BTreeMap::new();
    files.insert(KERNEL.to_owned(), write(out, KERNEL, &image)?);
    files.insert(INITRD.to_owned(), write(out, INITRD, &compress(&tree.to_cpio())?)?);
    let description = Description {
        format: FORMAT,
        summary: spec.summary.clone(),
        recipe_sha256: recipe.sha256.clone(),
        cmdline: spec.kernel.cmdline.clone(),
        packages: downloads.into_iter().map(|(name, one)| (name, one.version)).collect(),
        files,
    };
    let mut json = serde_json::to_vec_pretty(&description).map_err(|error| Failure::Io {
        doing: format!("write {DESCRIPTION}"),
        source: error.into(),
    })?;
    json.push(b'\n');
    write(out, DESCRIPTION, &json)?;
    Ok(description)
}

/// Adds the modules to the tree and answers the bootable kernel.
fn add_kernel(tree: &mut Tree, recipe: &Recipe, package: &Download) -> Result<Vec<u8>, Failure> {
    let kernel = &recipe.spec.kernel;
    let files: Vec<String> = kernel.modules.iter().map(|name| format!("{name}.ko")).collect();
    // The package holds thousands of modules; a handful is kept in memory.
    let boot = kernel.file.trim_end_matches('*');
    let wanted = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        path.starts_with(boot) || files.iter().any(|file| file == name)
    };
    let mut contents = Contents::read(&package.path, wanted)?;
    for file in &files {
        let bytes = contents.take_named(file).ok_or_else(|| absent(file, &kernel.metapackage))?;
        tree.insert(&format!("lib/modules/{file}"), Entry::File { bytes, executable: false });
    }
    let order: String = kernel.modules.iter().map(|name| format!("{name}\n")).collect();
    let order = Entry::File { bytes: order.into_bytes(), executable: false };
    tree.insert("lib/modules/order", order);
    contents.take_matching(&kernel.file).ok_or_else(|| absent(&kernel.file, &kernel.metapackage))
}

fn add_own_files(tree: &mut Tree, recipe: &Recipe) {
    let initrd = &recipe.spec.initrd;
    for directory in &initrd.directories {
        tree.insert(directory, Entry::Directory);
    }
    for (path, target) in &initrd.links {
        tree.insert(path, Entry::Link { target: target.clone() });
    }
    for (path, text) in &initrd.text {
        let bytes = text.clone().into_bytes();
        tree.insert(path, Entry::File { bytes, executable: false });
    }
    tree.insert("init", Entry::File { bytes: recipe.init.clone(), executable: true });
}

fn package<'a>(
    downloads: &'a BTreeMap<String, Download>,
    name: &str,
) -> Result<&'a Download, Failure> {
    downloads.get(name).ok_or_else(|| Failure::Because(format!("{name} was not downloaded")))
}

fn absent(file: &str, package: &str) -> Failure {
    Failure::Because(format!(
        "package {package} holds no {file}: Debian moved it, so the recipe's image.toml must follow"
    ))
}

/// Compresses without a name or a date in the header.
fn compress(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let failed = |source| Failure::Io { doing: "compress the initrd".to_owned(), source };
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    gzip.write_all(bytes).map_err(failed)?;
    gzip.finish().map_err(failed)
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<FileIdentity, Failure> {
    let path = folder.join(name);
    let failed = Failure::io("write", &path);
    // Reaches the disk before the rename that publishes it: a power cut must not leave an image
    // that looks complete and is not.
    let written = std::fs::File::create(&path)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
    written.map_err(failed)?;
    Ok(FileIdentity { bytes: bytes.len() as u64, sha256: hex(&Sha256::digest(bytes)) })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn compression_is_reproducible_and_reads_back() {
        let bytes = b"the same bytes, whoever packs them".repeat(99);
        let packed = compress(&bytes).unwrap();
        assert_eq!(packed, compress(&bytes).unwrap());
        assert_eq!(&packed[4..8], &[0; 4], "no date in the header");
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut back).unwrap();
        assert_eq!(back, bytes);
    }
}
