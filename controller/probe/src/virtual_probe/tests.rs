//! The virtual probe with probe-rs on one side and a real emulator on the other.

mod boards;
mod firmware;
mod hostile;
mod nrf51;
mod rig;

use std::time::{Duration, Instant};

use probe_rs::probe::{DebugProbeSelector, Probe};
use probe_rs::{Core, CoreStatus, MemoryInterface as _, Permissions, Session};

use super::{ServeAt, ServerHandle, VirtualBoard};
pub(crate) use rig::Rig;
use rig::TIMEOUT;

/// Through which frontend a test reaches the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frontend {
    InProcess,
    UnixServer,
    TcpServer,
}

const FACES: [Frontend; 2] = [Frontend::InProcess, Frontend::UnixServer];

/// A board and the probe that was opened for it.
struct Bench {
    server: Option<ServerHandle>,
    board: VirtualBoard,
    rig: Rig,
}

impl Bench {
    fn new(board: &str, frontend: Frontend) -> Self {
        let rig = Rig::new(board);
        let board = rig.board();
        let at = match frontend {
            Frontend::InProcess => None,
            Frontend::UnixServer => Some(ServeAt::Unix(rig.path("probe"))),
            Frontend::TcpServer => Some(ServeAt::Loopback(0)),
        };
        let server = at.map(|at| board.serve(at).unwrap());
        Self { server, board, rig }
    }

    fn probe(&self) -> Probe {
        match &self.server {
            None => self.board.open_probe(),
            Some(server) => {
                let selector: DebugProbeSelector = server.selector().parse().unwrap();
                probe_rs::probe::list::Lister::new().open(selector).unwrap()
            }
        }
    }

    fn attach(&self) -> Session {
        self.probe().attach(self.board.target().unwrap(), Permissions::default()).unwrap()
    }
}

/// Flashes bytes with whatever algorithm the target has, and verifies them.
fn flash(session: &mut Session, start: u64, bytes: &[u8]) {
    let mut loader = session.target().flash_loader();
    loader.add_data(start, bytes).unwrap();
    let mut options = probe_rs::flashing::DownloadOptions::default();
    options.verify = true;
    loader.commit(session, options).unwrap();
}

/// Waits for something about a core to become true.
fn wait_until(core: &mut Core<'_>, what: &str, mut holds: impl FnMut(&mut Core<'_>) -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !holds(core) {
        assert!(Instant::now() < deadline, "{what}: {:?}", core.status());
    }
}

fn wait_halted(core: &mut Core<'_>) -> CoreStatus {
    wait_until(core, "it does not halt", |core| core.status().unwrap().is_halted());
    core.status().unwrap()
}

fn pc(core: &mut Core<'_>) -> u64 {
    core.read_core_reg::<u64>(core.program_counter().id()).unwrap()
}

/// How long a halt may take on a host that is busy with other things.
const HALT: Duration = Duration::from_secs(5);

fn command(core: &mut Core<'_>, command: u32) {
    core.write_word_32(firmware::COMMAND, command).unwrap();
}
