//! The recipe of an image: what `qemu-images/<name>/image.toml` may say.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use xtask::failure::TaskFailure;
use xtask::hex;

/// The only schema this builder reads.
const SCHEMA: u32 = 1;

/// A parsed recipe with the script it names.
#[derive(Debug)]
pub(crate) struct Recipe {
    /// What `image.toml` says.
    pub(crate) spec: Spec,
    /// The `/init` of the image.
    pub(crate) init: Vec<u8>,
    /// Hash over everything the build depends on in this repository.
    pub(crate) sha256: String,
}

/// The shape of `image.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spec {
    schema: u32,
    /// One line for people.
    pub(crate) summary: String,
    pub(crate) debian: Debian,
    pub(crate) kernel: Kernel,
    pub(crate) initrd: Initrd,
    #[serde(rename = "package")]
    pub(crate) packages: Vec<RecipePackage>,
}

/// Which Debian to take packages from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Debian {
    pub(crate) architecture: String,
    /// Code name, as "bookworm".
    pub(crate) release: String,
}

/// The kernel and what goes with it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kernel {
    /// A package that always depends on the current kernel.
    pub(crate) metapackage: String,
    /// How the name of that dependency begins.
    pub(crate) depends_on: String,
    /// The bootable file in the package; may end in `*`.
    pub(crate) file: String,
    /// The command line the image is meant to be booted with.
    pub(crate) cmdline: String,
    /// Module names in the order they must be loaded.
    pub(crate) modules: Vec<String>,
}

/// What is in the initial file system besides package files and modules.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Initrd {
    init: String,
    pub(crate) directories: Vec<String>,
    /// Path to link target.
    pub(crate) links: BTreeMap<String, String>,
    /// Path to content.
    pub(crate) text: BTreeMap<String, String>,
}

/// A package and the files to take from it: path in the package to path in the image.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecipePackage {
    pub(crate) name: String,
    pub(crate) files: BTreeMap<String, String>,
}

impl Recipe {
    /// Reads the recipe in a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self, TaskFailure> {
        let path = folder.join("image.toml");
        let text = std::fs::read_to_string(&path).map_err(TaskFailure::io("read", &path))?;
        let spec = parse(&text)
            .map_err(|error| TaskFailure::Recipe { path: path.clone(), source: Box::new(error) })?;
        if spec.schema != SCHEMA {
            return Err(TaskFailure::Because(format!(
                "{} has schema {}, and this builder reads schema {SCHEMA} only",
                path.display(),
                spec.schema
            )));
        }
        let init_path = folder.join(&spec.initrd.init);
        let init = std::fs::read(&init_path).map_err(TaskFailure::io("read", &init_path))?;
        let sha256 = fingerprint(&[text.as_bytes(), &init[..]]);
        Ok(Self { spec, init, sha256 })
    }
}

fn parse(text: &str) -> Result<Spec, toml::de::Error> {
    toml::from_str(text)
}

fn fingerprint(parts: &[&[u8]]) -> String {
    // Raise when the builder makes something else of the same recipe, so that old images are
    // not taken for current ones.
    const BUILDER: u64 = 2;
    let mut hash = Sha256::new();
    hash.update(BUILDER.to_le_bytes());
    for part in parts {
        // Lengths keep a byte from wandering between parts unnoticed.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::process;

    #[test]
    fn every_recipe_of_the_repository_reads() {
        let images = process::repository().join("qemu-images");
        let mut count = 0;
        for entry in std::fs::read_dir(images).unwrap() {
            let folder = entry.unwrap().path();
            if folder.is_dir() {
                let recipe = Recipe::read(&folder).unwrap();
                assert!(recipe.init.starts_with(b"#!/bin/sh\n"), "{}", folder.display());
                count += 1;
            }
        }
        assert!(count > 0);
    }

    #[test]
    fn unknown_keys_are_refused_by_name() {
        let error = parse("schema = 1\nsumary = \"x\"\n").unwrap_err().to_string();
        assert!(error.contains("sumary"), "{error}");
    }

    #[test]
    fn the_fingerprint_sees_every_part_and_its_borders() {
        let all = [
            fingerprint(&[b"ab", b"c"]),
            fingerprint(&[b"a", b"bc"]),
            fingerprint(&[b"abc"]),
            fingerprint(&[b"ab", b"d"]),
        ];
        for (index, one) in all.iter().enumerate() {
            assert_eq!(one.len(), 64);
            assert!(!all[..index].contains(one));
        }
    }
}
