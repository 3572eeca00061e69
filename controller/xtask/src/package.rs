//! `cargo xtask package`: the Debian package of Jig.
//!
//! Owns what the package holds and where. Installs nothing of it, and nothing of it starts or
//! enables the service: that is the choice of the host's owner.
//!
//! # Design
//! *`dpkg-deb` builds it.* cargo-deb would have the same files listed in a manifest, at the cost of
//! a program of 200 crates to build first. Every Debian host has `dpkg-deb`.

mod notices;
mod tree;

use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::failure::TaskFailure;
use xtask::process;

use self::tree::PackageTree;
use crate::apt::Conflicts;
use crate::packages::Task;
use crate::{dist, setup};

/// Version of the package: that of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Files of the repository: from `controller/packaging/deb`, to the path in the package.
const FILES: &[(&str, &str)] = &[
    ("jig.service", "usr/lib/systemd/system/jig.service"),
    ("jig.sysusers", "usr/lib/sysusers.d/jig.conf"),
    ("jig.tmpfiles", "usr/lib/tmpfiles.d/jig.conf"),
    ("60-jig-probes.rules", "usr/lib/udev/rules.d/60-jig-probes.rules"),
    ("copyright", "usr/share/doc/jig/copyright"),
    ("lintian-overrides", "usr/share/lintian/overrides/jig"),
];

/// Shells with completions, and where each looks for those of packages.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "usr/share/bash-completion/completions/jig"),
    ("zsh", "usr/share/zsh/vendor-completions/_jig"),
    ("fish", "usr/share/fish/vendor_completions.d/jig.fish"),
];

/// What the package manager runs.
const SCRIPTS: &[&str] = &["postinst", "prerm", "postrm"];

/// What `cargo xtask package` can be told.
#[derive(clap::Args)]
pub(crate) struct PackageOptions {
    /// Packages a program that was built before, for trials: without the notices of its libraries,
    /// hardly compressed.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Folder of the package, instead of target/package.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Skips the check by lintian, and its installation.
    #[arg(long)]
    unchecked: bool,
    #[command(flatten)]
    conflicts: Conflicts,
}

/// Builds the package and checks it.
pub(crate) fn run(options: &PackageOptions) -> Result<(), TaskFailure> {
    if !options.unchecked {
        setup::run(Task::Package, options.conflicts)?;
    }
    // Programs are run in other folders.
    let whole = |path: &PathBuf| std::path::absolute(path).map_err(TaskFailure::io("find", path));
    let output = match &options.output {
        Some(output) => whole(output)?,
        None => process::target_dir().join("package"),
    };
    let program = match &options.program {
        Some(program) => whole(program)?,
        None => dist::build()?,
    };
    let root = output.join("root");
    let mut tree = PackageTree::begin(&root)?;
    fill(&mut tree, &program, &output, options.program.is_none())?;
    let arch = text_of(Command::new("dpkg").arg("--print-architecture"))?;
    let control = control(&mut tree, &output, &arch)?;
    tree.control("control", &control, 0o644)?;
    let package = output.join(format!("jig_{VERSION}_{arch}.deb"));
    let mut build = Command::new("dpkg-deb");
    // The same commit gives the same bytes.
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]).current_dir(process::repository());
    if let Ok(time) = text_of(&mut git) {
        build.env("SOURCE_DATE_EPOCH", time);
    }
    if options.program.is_some() {
        build.args(["-Zgzip", "-z1"]);
    }
    build.args(["--root-owner-group", "--build"]).arg(&root).arg(&package);
    process::capture(&mut build)?;
    std::fs::remove_dir_all(&root).map_err(TaskFailure::io("remove", &root))?;
    let size = std::fs::metadata(&package).map_err(TaskFailure::io("read", &package))?.len();
    println!("package: {} ({:.1} MB)", package.display(), size as f64 / 1e6);
    if !options.unchecked {
        let mut lintian = Command::new("lintian");
        // Refuses to work for root in a folder of another user otherwise.
        lintian.args(["--allow-root", "--fail-on", "error,warning"]).arg(&package);
        process::run(&mut lintian)?;
        println!("package: lintian has no errors and no warnings");
    }
    Ok(())
}

/// Puts all files of the package into its tree.
fn fill(
    tree: &mut PackageTree,
    program: &Path,
    output: &Path,
    with_notices: bool,
) -> Result<(), TaskFailure> {
    dist::split(program, output)?;
    // The line tables stay beside the package: most hosts never need them.
    let stripped = output.join(dist::PROGRAM);
    tree.file(&stripped, "usr/bin/jig", 0o755)?;
    std::fs::remove_file(&stripped).map_err(TaskFailure::io("remove", &stripped))?;

    let repository = process::repository();
    let ours = repository.join("controller/packaging/deb");
    for (from, to) in FILES {
        tree.file(&ours.join(from), to, 0o644)?;
    }
    let changelog = read(&ours.join("changelog"))?;
    let head = format!("jig ({VERSION}) ");
    if !changelog.starts_with(&head) {
        return Err(TaskFailure::Because(format!(
            "controller/packaging/deb/changelog does not begin with {head:?}; add what is new"
        )));
    }
    tree.compressed("usr/share/doc/jig/changelog.gz", changelog.as_bytes())?;
    tree.file(&repository.join("README.md"), "usr/share/doc/jig/README.md", 0o644)?;
    tree.folder(&repository.join("controller/guide"), "usr/share/doc/jig/guide", "md")?;
    let ci = repository.join("controller/packaging/ci");
    tree.file(&ci.join("jig-ci.sh"), "usr/share/jig/ci/jig-ci.sh", 0o755)?;
    tree.file(&ci.join("jig.gitlab-ci.yml"), "usr/share/jig/ci/jig.gitlab-ci.yml", 0o644)?;
    let (boards, to) = (repository.join("board-profiles"), "usr/share/jig/board-profiles");
    tree.folder(&boards, to, "toml")?;
    tree.folder(&boards.join("faults"), &format!("{to}/faults"), "toml")?;

    let jig = tree.path("usr/bin/jig");
    let pages = output.join("man");
    process::capture(Command::new(&jig).arg("man").arg(&pages))?;
    for page in xtask::project::listed(&pages)? {
        let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let to = format!("usr/share/man/man1/{name}.gz");
        tree.compressed(&to, read(&page)?.as_bytes())?;
    }
    std::fs::remove_dir_all(&pages).map_err(TaskFailure::io("remove", &pages))?;
    for (shell, to) in COMPLETIONS {
        let text = process::capture(Command::new(&jig).args(["completions", shell]))?;
        tree.text(to, &text, 0o644)?;
    }
    if with_notices {
        let text = notices::text()?;
        tree.compressed("usr/share/doc/jig/third-party.txt.gz", text.as_bytes())?;
    }
    for script in SCRIPTS {
        tree.control(script, &read(&ours.join(script))?, 0o755)?;
    }
    let sums = tree.checksums()?;
    tree.control("md5sums", &sums, 0o644)
}

/// Fills in the package's description.
fn control(tree: &mut PackageTree, output: &Path, arch: &str) -> Result<String, TaskFailure> {
    let form = read(&process::repository().join("controller/packaging/deb/control.in"))?;
    let libraries = libraries(&tree.path("usr/bin/jig"), output)?;
    let size = tree.kilobytes().to_string();
    let values = [("VERSION", VERSION), ("ARCH", arch), ("SIZE", &size), ("LIBRARIES", &libraries)];
    Ok(values.iter().fold(form, |text, (name, value)| text.replace(&format!("@{name}@"), value)))
}

/// Returns the packages of the libraries that a program is linked with.
fn libraries(program: &Path, work: &Path) -> Result<String, TaskFailure> {
    // It wants the description of a source package, and reads its name only.
    let folder = work.join("debian");
    std::fs::create_dir_all(&folder).map_err(TaskFailure::io("create", &folder))?;
    let control = folder.join("control");
    std::fs::write(&control, "Source: jig\n\nPackage: jig\nArchitecture: any\n")
        .map_err(TaskFailure::io("write", &control))?;
    let mut command = Command::new("dpkg-shlibdeps");
    command.current_dir(work).arg("-O").arg(format!("-e{}", program.display()));
    let found = text_of(&mut command);
    std::fs::remove_dir_all(&folder).map_err(TaskFailure::io("remove", &folder))?;
    let found = found?;
    found
        .lines()
        .find_map(|line| line.strip_prefix("shlibs:Depends="))
        .map(str::to_owned)
        .ok_or_else(|| {
            TaskFailure::Because(format!("dpkg-shlibdeps names no libraries: {found:?}"))
        })
}

fn text_of(command: &mut Command) -> Result<String, TaskFailure> {
    Ok(String::from_utf8_lossy(&process::capture(command)?).trim().to_owned())
}

fn read(path: &Path) -> Result<String, TaskFailure> {
    std::fs::read_to_string(path).map_err(TaskFailure::io("read", path))
}
