//! `cargo xtask images`: builds what emulated machines boot, into a cache outside the repository.
//!
//! Owns when to build, where the result lives and how it gets there: built beside its place under
//! a lock, then renamed, so that a reader sees a whole image or none, and two builders build once.

mod build;
mod packages;
mod recipe;
mod tree;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Instant;

use xtask::failure::TaskFailure;
use xtask::process;

use build::{DESCRIPTION, ImageDescription};
use recipe::Recipe;

/// What `cargo xtask images` can be told.
#[derive(clap::Args, Default)]
pub(crate) struct ImageOptions {
    /// Images to build, by their folder below qemu-images; all of them by default.
    names: Vec<String>,
    /// Builds even what is up to date, with today's package versions.
    #[arg(long)]
    force: bool,
}

/// Builds what is not up to date.
pub(crate) fn run(options: &ImageOptions) -> Result<(), TaskFailure> {
    let recipes = process::repository().join("qemu-images");
    let known = names(&recipes)?;
    let chosen = if options.names.is_empty() { &known } else { &options.names };
    if let Some(name) = chosen.iter().find(|name| !known.contains(name)) {
        let known = known.join(", ");
        return Err(TaskFailure::Because(format!("there is no image {name}; there are: {known}")));
    }
    let cache = cache_folder(set_variable)?;
    for name in chosen {
        ensure(name, &Recipe::read(&recipes.join(name))?, &cache, options.force)?;
    }
    Ok(())
}

fn names(recipes: &Path) -> Result<Vec<String>, TaskFailure> {
    let folders = std::fs::read_dir(recipes).map_err(TaskFailure::io("list", recipes))?;
    let mut names: Vec<String> = folders
        .flatten()
        .filter(|folder| folder.path().join("image.toml").is_file())
        .map(|folder| folder.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// Returns the folder of the images, if it can be told.
pub(crate) fn folder() -> Option<PathBuf> {
    cache_folder(set_variable).ok()
}

/// Returns a variable of the environment; an empty one counts as missing.
fn set_variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the folder that holds one folder per image; `jig` looks in the same one.
fn cache_folder(
    variable: impl Fn(&str) -> Option<std::ffi::OsString>,
) -> Result<PathBuf, TaskFailure> {
    let below = |name: &str, path: &str| variable(name).map(|base| PathBuf::from(base).join(path));
    let folder = below("JIG_IMAGES", "")
        .or_else(|| below("XDG_CACHE_HOME", "jig/images"))
        .or_else(|| below("HOME", ".cache/jig/images"))
        .ok_or_else(|| {
            TaskFailure::Because("set JIG_IMAGES or HOME: no place for images".into())
        })?;
    std::path::absolute(&folder).map_err(TaskFailure::io("find", &folder))
}

fn ensure(name: &str, recipe: &Recipe, cache: &Path, force: bool) -> Result<(), TaskFailure> {
    let home = cache.join(name);
    if !force && is_current(&home, recipe) {
        println!("images: {name} is up to date in {}", home.display());
        return Ok(());
    }
    std::fs::create_dir_all(cache).map_err(TaskFailure::io("create", cache))?;
    let _lock = lock(name, &cache.join(format!(".{name}.lock")))?;
    if !force && is_current(&home, recipe) {
        println!("images: {name} was just built by another");
        return Ok(());
    }
    println!("images: building {name} ({})", recipe.spec.summary);
    let start = Instant::now();
    // Fixed names, so that the holder of the lock can remove what a killed build left.
    let fresh = cache.join(format!(".{name}.new"));
    let stale = cache.join(format!(".{name}.old"));
    clear(&fresh)?;
    std::fs::create_dir(&fresh).map_err(TaskFailure::io("create", &fresh))?;
    let description = build::build(recipe, &cache.join(format!(".{name}.apt")), &fresh)?;
    publish(&fresh, &home, &stale)?;
    for (file, identity) in &description.files {
        println!("  {} ({} KiB)", home.join(file).display(), identity.bytes / 1024);
    }
    println!("images: built {name} in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Tells whether an image comes from this recipe and is all there. Only sizes are compared:
/// hashing 30 MB would cost more than the whole check, and a rename cannot tear a file.
fn is_current(home: &Path, recipe: &Recipe) -> bool {
    let Ok(json) = std::fs::read(home.join(DESCRIPTION)) else { return false };
    let Ok(description) = serde_json::from_slice::<ImageDescription>(&json) else { return false };
    description.recipe_sha256 == recipe.sha256
        && !description.files.is_empty()
        && description.files.iter().all(|(file, identity)| {
            std::fs::metadata(home.join(file)).is_ok_and(|meta| meta.len() == identity.bytes)
        })
}

/// Takes the lock of an image; the kernel gives it back however this process ends.
fn lock(name: &str, path: &Path) -> Result<File, TaskFailure> {
    let file = File::create(path).map_err(TaskFailure::io("create", path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            println!("images: another build of {name} is running; waiting for it");
            file.lock().map_err(TaskFailure::io("lock", path))?;
        }
        Err(TryLockError::Error(error)) => return Err(TaskFailure::io("lock", path)(error)),
    }
    Ok(file)
}

/// Puts a finished folder in place of an older one. Between the two renames there is no image
/// for an instant; there is never half of one.
fn publish(fresh: &Path, home: &Path, stale: &Path) -> Result<(), TaskFailure> {
    clear(stale)?;
    if home.exists() {
        std::fs::rename(home, stale).map_err(TaskFailure::io("move away", home))?;
    }
    std::fs::rename(fresh, home).map_err(TaskFailure::io("move into place", home))?;
    clear(stale)
}

fn clear(folder: &Path) -> Result<(), TaskFailure> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(TaskFailure::io("remove", folder)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_cache_is_where_the_most_specific_variable_says() {
        let with = |set: &[(&str, &str)]| {
            let set: Vec<_> = set.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
            cache_folder(move |name| set.iter().find(|(k, _)| k == name).map(|(_, v)| v.into()))
        };
        let all = [("JIG_IMAGES", "/i"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(with(&all).unwrap(), Path::new("/i"));
        assert_eq!(with(&all[1..]).unwrap(), Path::new("/x/jig/images"));
        assert_eq!(with(&all[2..]).unwrap(), Path::new("/h/.cache/jig/images"));
        assert!(with(&[]).is_err());
    }

    #[test]
    fn publishing_replaces_the_old_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for version in ["one", "two"] {
            fs::create_dir(at("new")).unwrap();
            fs::write(at("new/file"), version).unwrap();
            // What a builder killed between the renames leaves.
            fs::create_dir_all(at("old/junk")).unwrap();
            publish(&at("new"), &at("home"), &at("old")).unwrap();
            assert_eq!(fs::read_to_string(at("home/file")).unwrap(), version);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_image_is_current_only_whole_and_of_this_recipe() {
        let repository = process::repository();
        let mut recipe = Recipe::read(&repository.join("qemu-images/arm64-virt")).unwrap();
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_current(dir.path(), &recipe), "nothing there");
        let json = serde_json::json!({
            "format": 1, "summary": "", "cmdline": "", "packages": {},
            "recipe_sha256": recipe.sha256, "files": {"initrd": {"bytes": 3, "sha256": ""}},
        });
        fs::write(dir.path().join(DESCRIPTION), json.to_string()).unwrap();
        assert!(!is_current(dir.path(), &recipe), "a file is missing");
        fs::write(dir.path().join("initrd"), "ab").unwrap();
        assert!(!is_current(dir.path(), &recipe), "a file is short");
        fs::write(dir.path().join("initrd"), "abc").unwrap();
        assert!(is_current(dir.path(), &recipe));
        recipe.sha256.replace_range(..1, "x");
        assert!(!is_current(dir.path(), &recipe), "another recipe");
    }
}
