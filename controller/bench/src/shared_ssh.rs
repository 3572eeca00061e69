//! A test at the rig of another host beside the same test at this one: what the way by SSH costs.
//!
//! The other host is this one, behind OpenSSH's server on the loopback interface. It has folders of its
//! own, so each run is copied as between two hosts. Its account has an empty home: what the shell of an
//! account does at its start is in no row (on one host, 130 ms of a `~/.bashrc`).

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::BenchOptions;
use super::cycle::pass;
use super::rounds::{in_turns, milliseconds};
use super::sample::{BenchRow, Goal, Samples};
use super::setting::BenchSetting;
use xtask::failure::TaskFailure;
use xtask::process;

/// What the goal lets a run at another rig cost more, in milliseconds.
const MORE: f64 = 150.0;

/// How long the server may take to listen.
const START: Duration = Duration::from_secs(10);

/// The server's program. It starts itself again, so it wants its whole path.
const SSHD: &str = "/usr/sbin/sshd";

/// Measures a test here and there, in turns.
pub(super) fn measure(
    setting: &BenchSetting,
    options: &BenchOptions,
) -> Result<Vec<BenchRow>, TaskFailure> {
    let folder = setting.scratch.join("ssh");
    let host = LoopbackHost::start(setting, &folder)?;
    let desk = folder.join("desk");
    let rows = setting.cycles.iter().map(|cycle| {
        let state = |mut command: Command| {
            command.env("XDG_STATE_HOME", desk.join("state")).env("HOME", &desk);
            command.env_remove("SSH_AUTH_SOCK");
            command
        };
        let (here, there) = in_turns(
            options.rounds,
            || milliseconds(|| pass(state(setting.jig_test(cycle, 1)))),
            || {
                let mut command = state(setting.jig_test(cycle, 1));
                command.args(["--rig", &host.target]);
                milliseconds(|| pass(command))
            },
        )?;
        Ok(BenchRow {
            what: format!("the same test over SSH, {} on {}", cycle.fixture, cycle.board),
            unit: "ms",
            floor_is: "`jig test` here".to_owned(),
            floor: Samples(here),
            ours: Samples(there),
            goal: Goal::Within { factor: 1.0, plus: MORE },
        })
    });
    rows.collect()
}

/// A rig behind an SSH server of this host, which ends with it.
struct LoopbackHost {
    server: Child,
    target: String,
}

impl LoopbackHost {
    fn start(setting: &BenchSetting, folder: &Path) -> Result<Self, TaskFailure> {
        // The server accepts no key in a folder that others may write to.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder.join("desk/.ssh"));
        made.map_err(TaskFailure::io("create", folder))?;
        let home = folder.join("home");
        fs::create_dir_all(&home).map_err(TaskFailure::io("create", &home))?;
        for key in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(key));
            process::run(&mut keygen)?;
        }
        // The server of root ends without this folder, which Debian makes when the service starts. That
        // of another user does without.
        let _ = fs::create_dir_all("/run/sshd");
        let port = free_port().map_err(TaskFailure::io("listen in", folder))?;
        let (ssh, shown) =
            (folder.join("desk/.ssh"), |name: &str| folder.join(name).display().to_string());
        symlink(folder.join("user"), ssh.join("id_ed25519"))
            .map_err(TaskFailure::io("create", &ssh))?;
        let host_key = folder.join("host.pub");
        let host_key = fs::read_to_string(&host_key).map_err(TaskFailure::io("read", &host_key))?;
        let known = format!("[127.0.0.1]:{port} {host_key}");
        fs::write(ssh.join("known_hosts"), known).map_err(TaskFailure::io("write", &ssh))?;
        let config = folder.join("config");
        let text = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nUsePAM no\n\
             StrictModes no\nPidFile none\nPasswordAuthentication no\n\
             PermitRootLogin prohibit-password\nSetEnv HOME={}\n",
            shown("host"),
            shown("user.pub"),
            shown("home")
        );
        fs::write(&config, text).map_err(TaskFailure::io("write", &config))?;
        let far = far_jig(setting, folder).map_err(TaskFailure::io("write", folder))?;
        let mut command = Command::new(SSHD);
        command.args(["-D", "-f"]).arg(&config);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = command.spawn().map_err(process::start_failure(&command))?;
        let host = Self { server, target: format!("ssh://127.0.0.1:{port}{}", far.display()) };
        let end = Instant::now() + START;
        while let Err(error) = TcpStream::connect(("127.0.0.1", port)) {
            if error.kind() != ErrorKind::ConnectionRefused || Instant::now() > end {
                return Err(TaskFailure::io("reach the SSH server of", folder)(error));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(host)
    }
}

impl Drop for LoopbackHost {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Finds a port that no program has.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Writes the program that is jig at the other host: with a state of its own.
fn far_jig(setting: &BenchSetting, folder: &Path) -> std::io::Result<PathBuf> {
    let (far, state) = (folder.join("jig"), folder.join("far"));
    let runs = state.join("runs");
    let text = format!(
        "#!/bin/sh\nexport XDG_STATE_HOME='{}' JIG_RUNS='{}'\nexec '{}' \"$@\"\n",
        state.display(),
        runs.display(),
        setting.program("jig").display()
    );
    fs::write(&far, text)?;
    fs::set_permissions(&far, fs::Permissions::from_mode(0o755))?;
    Ok(far)
}
