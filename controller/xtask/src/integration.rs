//! The integration tests in an order that no test can lean on, in a bare root.
//!
//! # Design
//! libtest shuffles by itself, but calls the option unstable and refuses it in a stable build
//! unless `RUSTC_BOOTSTRAP` is set. The other ways lose: one process for each test loses the limit
//! on emulators at a time, and groups of tests wait for the slowest test of each group.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use xtask::failure::TaskFailure;
use xtask::process;

use crate::{bare_root, images};

/// Target of the integration tests.
const TARGET: &str = "it";

/// Fewest tests at a time. A test waits for most of its time: two at a time leave two cores idle for a
/// third of it. How many emulators run at a time is limited by the tests themselves.
const THREADS: usize = 4;

/// A message of cargo's, as far as it matters here.
#[derive(Deserialize)]
struct BuildMessage {
    executable: Option<PathBuf>,
    target: Option<BuildTarget>,
}

#[derive(Deserialize)]
struct BuildTarget {
    name: String,
}

/// Returns the test program among the messages of a build.
fn executable(messages: &[u8]) -> Option<PathBuf> {
    let lines = messages.split(|byte| *byte == b'\n');
    let built = lines.filter_map(|line| serde_json::from_slice::<BuildMessage>(line).ok());
    let mut ours =
        built.filter(|message| message.target.as_ref().is_some_and(|t| t.name == TARGET));
    ours.find_map(|message| message.executable)
}

/// Returns a seed that differs from run to run.
pub(crate) fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis() as u64 % 1_000_000
}

/// Runs the integration tests in the order that the seed gives.
pub(crate) fn run(seed: u64) -> Result<(), TaskFailure> {
    println!("integration tests in order {seed}; the same order: cargo xtask test --seed {seed}");
    // Some tests run the examples as programs of a user.
    process::run(&mut process::cargo(&["build", "--workspace", "--examples"]))?;
    let args = ["test", "--workspace", "--test", TARGET, "--no-run", "--message-format=json"];
    let mut build = process::cargo(&args);
    let messages = process::capture(&mut build)?;
    let Some(program) = executable(&messages) else {
        let words = format!("`{}` built no test program {TARGET}", process::line(&build));
        return Err(TaskFailure::Because(words));
    };
    let mut tests = Command::new(program);
    tests.args(["-Z", "unstable-options", "--shuffle-seed", &seed.to_string()]);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    tests.args(["--test-threads", &cores.max(THREADS).to_string()]);
    tests.current_dir(process::repository()).env("RUSTC_BOOTSTRAP", "1");
    let images = images::folder();
    if let Some(folder) = &images {
        tests.env("JIG_IMAGES", folder);
    }
    let mut keep = vec![process::repository(), process::target_dir()];
    keep.extend(images);
    let tmp = empty_folder()?;
    let outcome = match bare_root::wrap(&tests, &keep, &tmp) {
        Some(mut wrapped) => process::run(&mut wrapped),
        None => {
            eprintln!(
                "WARNING: this host permits no mount namespace, so the integration tests run with \
                 its own /run, /tmp and home: a test that leans on something there is not found. \
                 Run as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)."
            );
            process::run(&mut tests)
        }
    };
    // What a test that was killed has left goes with it.
    let _ = fs::remove_dir_all(&tmp);
    outcome
}

/// Makes an empty folder that any user may write to, on the disk of the build.
fn empty_folder() -> Result<PathBuf, TaskFailure> {
    let folder = process::target_dir().join("bare-root-tmp");
    let made = || {
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777))
    };
    made().map_err(|error| {
        TaskFailure::Because(format!("could not make {}: {error}", folder.display()))
    })?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_program_is_found_among_the_messages_of_a_build() {
        let messages =
            br#"{"reason":"compiler-artifact","target":{"name":"jig"},"executable":"/t/jig"}
{"reason":"compiler-artifact","target":{"name":"it"},"executable":null}
no json
{"reason":"compiler-artifact","target":{"name":"it"},"executable":"/t/it-1"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages), Some("/t/it-1".into()));
        assert_eq!(executable(b""), None);
    }
}
