//! Debian packages of another architecture, by a private apt: the host's stays as it is.
//!
//! Owns a folder with its own package state, lists and downloads; nothing is ever installed. It
//! takes the host's mirror, keys and transport settings (proxies) where the host is of the same
//! release of Debian, and Debian's own mirror where not.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::failure::TaskFailure;
use xtask::process;

use super::recipe::Debian;

/// Debian's mirror, by the name that leads to the nearest one.
const MIRROR: &str = "http://deb.debian.org";
/// Where the package `debian-archive-keyring` puts Debian's keys.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// What tells the release of a host.
const RELEASE: &str = "/etc/os-release";

/// The private apt.
#[derive(Debug)]
pub(crate) struct Apt {
    folder: PathBuf,
    /// What `apt-get update` complained about, should a download fail later.
    complaint: Option<TaskFailure>,
}

/// A downloaded package.
#[derive(Debug)]
pub(crate) struct DebianPackage {
    pub(crate) name: String,
    pub(crate) version: String,
    file: PathBuf,
}

impl Apt {
    /// Makes or reuses the folder and refreshes the lists of packages.
    pub(crate) fn refresh(folder: &Path, debian: &Debian) -> Result<Self, TaskFailure> {
        for part in ["lists/partial", "cache/archives/partial", "debs"] {
            let path = folder.join(part);
            std::fs::create_dir_all(&path).map_err(TaskFailure::io("create", &path))?;
        }
        write(&folder.join("status"), "")?;
        let release = std::fs::read_to_string(RELEASE).unwrap_or_default();
        let own = (!is_release(&release, &debian.release)).then(|| debians_own(&debian.release));
        if let Some(sources) = &own {
            write(&folder.join("sources.list"), sources)?;
        }
        let settings = settings(folder, &debian.architecture, own.is_some());
        write(&folder.join("apt.conf"), &settings)?;
        let mut apt = Self { folder: folder.to_owned(), complaint: None };
        // One bad index (a mirror in mid-sync, a third party without this architecture) makes apt
        // fail although the lists will do; so does a missing network although last time's will.
        let mut update = apt.command("apt-get");
        apt.complaint = process::capture(update.args(["-q", "update"])).err();
        Ok(apt)
    }

    /// Finds the dependency of a package whose name begins with a prefix.
    pub(crate) fn dependency(&self, package: &str, prefix: &str) -> Result<String, TaskFailure> {
        let mut depends = self.command("apt-cache");
        let text = process::capture(depends.args(["depends", "--important", package]))
            .map_err(|failure| self.explain(failure.to_string()))?;
        first_dependency(&String::from_utf8_lossy(&text), prefix).ok_or_else(|| {
            self.explain(format!("{package} depends on no package named {prefix}..."))
        })
    }

    /// Downloads packages; those that are here already are only checked.
    pub(crate) fn download(&self, names: &[&str]) -> Result<Vec<DebianPackage>, TaskFailure> {
        let debs = self.folder.join("debs");
        let mut fetch = self.command("apt-get");
        fetch.current_dir(&debs).args(["-q", "download"]).args(names);
        // What is here already is not listed.
        let mut list = self.command("apt-get");
        list.current_dir(&debs).args(["-q", "download", "--print-uris"]).args(names);
        let fetched = process::capture(&mut list)
            .and_then(|uris| process::capture(&mut fetch).map(|_| uris))
            .map_err(|failure| self.explain(failure.to_string()))?;
        let fetched = String::from_utf8_lossy(&fetched);
        let fetched: Vec<&str> = fetched.lines().filter_map(file_of_uri).collect();
        let mut packages = Vec::new();
        for file in std::fs::read_dir(&debs).map_err(TaskFailure::io("list", &debs))?.flatten() {
            let path = file.path();
            // Downloads of earlier builds go, or a year of kernels would pile up.
            if is_stale(&file.file_name().to_string_lossy(), names, &fetched) {
                std::fs::remove_file(&path).map_err(TaskFailure::io("remove", &path))?;
            } else {
                packages.push(DebianPackage::read(path)?);
            }
        }
        Ok(packages)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.arg("-c").arg(self.folder.join("apt.conf")).env("LC_ALL", "C.UTF-8");
        command
    }

    /// Adds the reason the lists may be bad to a failure that bad lists may have caused.
    fn explain(&self, what: String) -> TaskFailure {
        TaskFailure::Because(match &self.complaint {
            None => what,
            Some(complaint) => format!("{what}\nbefore that, {complaint}"),
        })
    }
}

impl DebianPackage {
    fn read(file: PathBuf) -> Result<Self, TaskFailure> {
        let mut show = Command::new("dpkg-deb");
        show.args(["--showformat", "${Package} ${Version}", "--show"]).arg(&file);
        let shown = process::capture(&mut show)?;
        let shown = String::from_utf8_lossy(&shown);
        let (name, version) = shown.split_once(' ').unwrap_or((&shown, ""));
        Ok(Self { name: name.to_owned(), version: version.to_owned(), file })
    }

    /// Unpacks the package's files into a folder.
    pub(crate) fn unpack(&self, folder: &Path) -> Result<(), TaskFailure> {
        let mut extract = Command::new("dpkg-deb");
        process::capture(extract.arg("--extract").arg(&self.file).arg(folder)).map(drop)
    }
}

/// Spells the settings that differ from the host's.
fn settings(folder: &Path, architecture: &str, own_sources: bool) -> String {
    let at = |part: &str| folder.join(part).display().to_string();
    let mut settings = vec![
        ("APT::Architecture", architecture.to_owned()),
        // The folder may lie in a home that apt's own download user cannot enter.
        ("APT::Sandbox::User", "root".to_owned()),
        ("Dir::State::status", at("status")),
        ("Dir::State::lists", at("lists")),
        ("Dir::Cache", at("cache")),
        // The host's pinning is about the host's packages.
        ("Dir::Etc::preferences", "/dev/null".to_owned()),
        ("Dir::Etc::preferencesparts", "/dev/null".to_owned()),
        ("Acquire::Languages", "none".to_owned()),
        // Else apt calls an unreachable mirror a success, and the failure comes later without it.
        ("APT::Update::Error-Mode", "any".to_owned()),
    ];
    if own_sources {
        settings.push(("Dir::Etc::sourcelist", at("sources.list")));
        settings.push(("Dir::Etc::sourceparts", "/dev/null".to_owned()));
    }
    // The host's hooks would run for an update that the host never made.
    let mut text = String::new();
    for hook in ["Pre-Invoke", "Post-Invoke", "Post-Invoke-Success"] {
        let _ = writeln!(text, "#clear APT::Update::{hook};");
    }
    let _ = writeln!(text, "#clear APT::Architectures;\nAPT::Architectures:: \"{architecture}\";");
    for (key, value) in settings {
        let _ = writeln!(text, "{key} \"{value}\";");
    }
    text
}

/// Tells whether an os-release(5) is that of a release of Debian.
fn is_release(text: &str, release: &str) -> bool {
    let is = |key: &str, value: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.is_some_and(|line| line.trim_matches('"') == value)
    };
    is("ID", "debian") && is("VERSION_CODENAME", release)
}

/// Spells the sources of a release at Debian's own mirror.
fn debians_own(release: &str) -> String {
    let signed_by = match Path::new(KEYRING).exists() {
        true => format!("[signed-by={KEYRING}] "),
        false => String::new(),
    };
    let line =
        |archive: &str, suite: &str| format!("deb {signed_by}{MIRROR}/{archive} {suite} main\n");
    line("debian", release)
        + &line("debian", &format!("{release}-updates"))
        + &line("debian-security", &format!("{release}-security"))
}

/// Finds the first dependency with a prefix in what `apt-cache depends` prints.
fn first_dependency(text: &str, prefix: &str) -> Option<String> {
    let names = text.lines().filter_map(|line| line.trim_start().strip_prefix("Depends: "));
    names.map(str::trim).find(|name| name.starts_with(prefix)).map(str::to_owned)
}

/// Reads the name of the file out of a line of `--print-uris`: a quoted URI, the name, and more.
fn file_of_uri(line: &str) -> Option<&str> {
    line.strip_prefix('\'')?.split_whitespace().nth(1)
}

/// Tells whether a download is of another package than `names`, or was just `fetched` in another
/// version.
fn is_stale(file: &str, names: &[&str], fetched: &[&str]) -> bool {
    let package = |file: &str| file.split('_').next().unwrap_or_default().to_owned();
    let name = package(file);
    !names.contains(&name.as_str())
        || fetched.iter().any(|other| *other != file && package(other) == name)
}

fn write(path: &Path, text: &str) -> Result<(), TaskFailure> {
    std::fs::write(path, text).map_err(TaskFailure::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_found_whatever_its_number() {
        let text = "linux-image-cloud-arm64\n  Depends: kmod\n  PreDepends: linux-image-x\n  \
                    Depends: linux-image-6.1.0-99-cloud-arm64\n";
        let found = first_dependency(text, "linux-image-");
        assert_eq!(found.as_deref(), Some("linux-image-6.1.0-99-cloud-arm64"));
        assert_eq!(first_dependency(text, "linux-headers-"), None);
    }

    #[test]
    fn the_name_of_a_download_is_apts_own() {
        let line = "'http://m/pool/g/gmp/libgmp10_6.2.1+dfsg1-1.1_arm64.deb' \
                    libgmp10_2%3a6.2.1+dfsg1-1.1_arm64.deb 242652 SHA256:00";
        assert_eq!(file_of_uri(line), Some("libgmp10_2%3a6.2.1+dfsg1-1.1_arm64.deb"));
        assert_eq!(file_of_uri("Reading package lists..."), None);
    }

    #[test]
    fn downloads_of_earlier_builds_are_stale() {
        let stale = |file| is_stale(file, &["zlib1g", "libc6"], &["zlib1g_2_arm64.deb"]);
        assert!(stale("zlib1g_1_arm64.deb") && stale("linux-image-1_1_arm64.deb"));
        assert!(!stale("zlib1g_2_arm64.deb") && !stale("libc6_1_arm64.deb"));
    }

    #[test]
    fn only_a_host_of_the_same_release_lends_its_mirror() {
        let host = "PRETTY_NAME=\"x\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert!(is_release(host, "bookworm") && !is_release(host, "trixie"));
        assert!(!is_release(&host.replace("debian", "\"ubuntu\""), "bookworm"));
        assert!(debians_own("bookworm").contains("http://deb.debian.org/debian bookworm main\n"));
        assert!(debians_own("bookworm").contains("/debian-security bookworm-security main\n"));
    }

    #[test]
    fn settings_stay_in_the_folder_and_run_no_hook_of_the_host() {
        let text = settings(Path::new("/cache/apt"), "arm64", true);
        assert!(text.contains("#clear APT::Update::Post-Invoke;\n"), "{text}");
        assert!(text.contains("Dir::State::status \"/cache/apt/status\";\n"), "{text}");
        assert!(text.contains("Dir::Etc::sourcelist \"/cache/apt/sources.list\";\n"), "{text}");
        assert!(!settings(Path::new("/c"), "arm64", false).contains("sourcelist"));
    }
}
