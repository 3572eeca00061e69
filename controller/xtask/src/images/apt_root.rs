//! A private apt: downloads packages of another architecture without touching the host's.
//!
//! Owns a folder with its own package state, lists and downloads. It takes from the host the
//! mirror, the keys and the transport settings (proxies), and refuses the host's hooks, which
//! would run for a download the host never made. Nothing is ever installed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::sources::Sources;
use crate::failure::Failure;
use crate::process;

/// A downloaded package.
#[derive(Debug)]
pub(crate) struct Download {
    /// The `.deb` file.
    pub(crate) path: PathBuf,
    /// Debian's version of it.
    pub(crate) version: String,
}

/// The private apt.
#[derive(Debug)]
pub(crate) struct AptRoot {
    folder: PathBuf,
    /// What `apt-get update` complained about, should a download fail later.
    complaint: Option<Failure>,
}

impl AptRoot {
    /// Makes or reuses the folder and refreshes the package lists.
    pub(crate) fn refresh(
        folder: &Path,
        architecture: &str,
        suites: &[String],
    ) -> Result<Self, Failure> {
        let mut root = Self { folder: folder.to_path_buf(), complaint: None };
        for part in ["lists/partial", "cache/archives/partial", "sources", "none", "debs"] {
            let path = folder.join(part);
            std::fs::create_dir_all(&path).map_err(Failure::io("create", &path))?;
        }
        root.write("status", "")?;
        let sources = Sources::of_host(Path::new("/etc/apt"), suites);
        root.write("sources/host.list", &sources.one_line)?;
        root.write("sources/host.sources", &sources.deb822)?;
        let transport = process::capture(Command::new("apt-config").args(["dump"]))?;
        let transport = String::from_utf8_lossy(&transport);
        root.write("apt.conf", &configuration(folder, architecture, &transport))?;
        // One bad index (a mirror in mid-sync) makes apt fail although the lists will do; so
        // does a missing network although the lists of last time will do.
        root.complaint = process::capture(root.command("apt-get").args(["-q", "update"])).err();
        Ok(root)
    }

    /// Finds the dependency of a package whose name begins with a prefix.
    pub(crate) fn dependency(&self, package: &str, prefix: &str) -> Result<String, Failure> {
        let records = self.show(&[package])?;
        let depends = records.get(package).and_then(|record| record.get("Depends"));
        depends.and_then(|depends| first_dependency(depends, prefix)).ok_or_else(|| {
            self.explain(format!("{package} depends on no package named {prefix}..."))
        })
    }

    /// Downloads packages; those that are here already are only checked.
    pub(crate) fn download(&self, names: &[&str]) -> Result<BTreeMap<String, Download>, Failure> {
        let debs = self.folder.join("debs");
        let mut command = self.command("apt-get");
        command.current_dir(&debs).args(["-q", "download"]).args(names);
        process::capture(&mut command).map_err(|failure| self.explain(failure.to_string()))?;
        let records = self.show(names)?;
        let mut downloads = BTreeMap::new();
        for name in names {
            let field = |field| records.get(*name).and_then(|record| record.get(field));
            let (Some(version), Some(architecture)) = (field("Version"), field("Architecture"))
            else {
                return Err(self.explain(format!("apt knows no package {name}")));
            };
            // The name apt gives a download: the epoch's colon is escaped.
            let file = format!("{name}_{}_{architecture}.deb", version.replace(':', "%3a"));
            let download = Download { path: debs.join(file), version: version.clone() };
            downloads.insert((*name).to_owned(), download);
        }
        forget_others(&debs, &downloads)?;
        Ok(downloads)
    }

    fn show(&self, names: &[&str]) -> Result<BTreeMap<String, BTreeMap<String, String>>, Failure> {
        let mut command = self.command("apt-cache");
        command.args(["show", "--no-all-versions"]).args(names);
        let text = process::capture(&mut command).map_err(|e| self.explain(e.to_string()))?;
        Ok(records(&String::from_utf8_lossy(&text)))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", self.folder.join("apt.conf")).env("LC_ALL", "C.UTF-8");
        command
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).map_err(Failure::io("write", &path))
    }

    /// Adds the reason the lists may be bad to a failure that bad lists may have caused.
    fn explain(&self, what: String) -> Failure {
        Failure::Because(match &self.complaint {
            None => what,
            Some(complaint) => format!("{what}\nbefore that, {complaint}"),
        })
    }
}

fn configuration(folder: &Path, architecture: &str, host: &str) -> String {
    let mut text = String::new();
    // Proxies, time-outs, checks: whatever makes downloads work on this host. What the host
    // wants to download besides packages (icons, translations) is left behind.
    let transport = |line: &&str| {
        line.starts_with("Acquire::")
            && !line.starts_with("Acquire::IndexTargets")
            && !line.starts_with("Acquire::Changelogs")
            && !line.ends_with(" \"\";")
    };
    for line in host.lines().filter(transport) {
        text += line;
        text.push('\n');
    }
    let at = |part: &str| folder.join(part).display().to_string();
    let settings = [
        ("APT::Architecture", architecture.to_owned()),
        // The folder may lie in a home that apt's own download user cannot enter.
        ("APT::Sandbox::User", "root".to_owned()),
        ("Dir::State::status", at("status")),
        ("Dir::State::lists", at("lists")),
        ("Dir::Cache", at("cache")),
        ("Dir::Etc::sourcelist", at("none/sources.list")),
        ("Dir::Etc::sourceparts", at("sources")),
        // Empty: the host's hooks and preferences stay out.
        ("Dir::Etc::parts", at("none")),
        ("Dir::Etc::main", at("none/apt.conf")),
        ("Dir::Etc::preferences", at("none/preferences")),
        ("Dir::Etc::preferencesparts", at("none")),
        ("Acquire::Languages", "none".to_owned()),
        // Without it apt calls an unreachable mirror a success, and nobody learns why a
        // package is unknown.
        ("APT::Update::Error-Mode", "any".to_owned()),
    ];
    for (key, value) in settings {
        let _ = writeln!(text, "{key} \"{value}\";");
    }
    let _ = writeln!(text, "APT::Architectures {{ \"{architecture}\"; }};");
    text
}

/// Reads `Field: value` records by package name, first record of each package; continuation
/// lines are not needed by anyone here.
fn records(text: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut records = BTreeMap::new();
    for stanza in text.split("\n\n") {
        let fields: BTreeMap<String, String> = stanza
            .lines()
            .filter(|line| !line.starts_with(' '))
            .filter_map(|line| line.split_once(": "))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        if let Some(name) = fields.get("Package") {
            records.entry(name.clone()).or_insert(fields);
        }
    }
    records
}

fn first_dependency(depends: &str, prefix: &str) -> Option<String> {
    depends
        .split([',', '|'])
        .filter_map(|one| one.split_whitespace().next())
        .find(|name| name.starts_with(prefix))
        .map(str::to_owned)
}

/// Removes downloads of earlier builds, or a year of kernels would pile up.
fn forget_others(debs: &Path, keep: &BTreeMap<String, Download>) -> Result<(), Failure> {
    for file in std::fs::read_dir(debs).map_err(Failure::io("list", debs))?.flatten() {
        let path = file.path();
        if !keep.values().any(|download| download.path == path) {
            std::fs::remove_file(&path).map_err(Failure::io("remove", &path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_found_whatever_its_number() {
        let depends = "kmod, linux-image-6.1.0-99-cloud-arm64 (= 6.1.200-1), linux-image-x";
        let found = first_dependency(depends, "linux-image-");
        assert_eq!(found.as_deref(), Some("linux-image-6.1.0-99-cloud-arm64"));
        assert_eq!(first_dependency(depends, "linux-headers-"), None);
    }

    #[test]
    fn records_keep_the_first_of_each_package() {
        let text = "Package: a\nVersion: 2\nDescription: x\n more: y\n\nPackage: a\nVersion: 1\n\n\
                    Package: b\nVersion: 1:3\n";
        let records = records(text);
        assert_eq!(records["a"]["Version"], "2");
        assert_eq!(records["b"]["Version"], "1:3");
        assert!(!records["a"].contains_key(" more"));
    }

    #[test]
    fn the_hosts_proxy_comes_along_and_its_hooks_do_not() {
        let host = "APT::Update::Post-Invoke:: \"rm -f /var/cache/apt/*.bin || true\";\n\
                    Acquire::http::Proxy \"http://proxy.example:3128\";\n\
                    Acquire::IndexTargets::deb::DEP-11::MetaKey \"x\";\nAcquire::cdrom \"\";\n";
        let text = configuration(Path::new("/cache/apt"), "arm64", host);
        assert!(text.contains("Acquire::http::Proxy \"http://proxy.example:3128\";\n"));
        assert!(!text.contains("Post-Invoke") && !text.contains("DEP-11"), "{text}");
        assert!(text.contains("Dir::State::status \"/cache/apt/status\";\n"));
        assert!(text.contains("APT::Architectures { \"arm64\"; };\n"));
    }
}
