//! The handle of a probe: sends requests to its worker and waits for the answers.

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use jig_drivers::OwnTimeout;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::attach::attach;
use super::flash::{self, Cancel, FlashStop, Interest};
use super::leash::Leash;
use super::open_session::{Flow, OpenSession, WorkerJob, WorkerPulse, WorkerShared, serve};
use super::options::{AttachOptions, Attached};
use super::selector::{Address, Selector};
use super::semihost::Semihosted;
use super::source::{ProbeSource, Resolved};
use super::target_memory::SessionMemory;
use crate::fault_watch::windows;
use crate::{
    CoreSnapshot, CoreState, EraseReport, EraseScope, FlashProgress, FlashReport, FlashRequest,
    MemoryWidth, ProbeError, RegisterValue, ResetInto, RttError, TargetMemory, listing,
};

/// What a core is left doing when a session is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// It runs, or goes on running.
    Running,
    /// It stands still. A probe that cannot be cut off from its target stays open until the
    /// process ends, since to close it would let the core run.
    Halted,
}

/// A probe that is attached to a target. Clones share the one session; requests are served
/// in the order in which they are made. The session ends when the last handle is dropped, and
/// the core then runs; [`close`](Self::close) also waits for the end.
///
/// Every method fails with [`ProbeError::Hung`] when the probe shows no sign of progress for the
/// deadline of its [`AttachOptions`], and with [`ProbeError::Gone`] after that. Dropping the future
/// of a request takes back the interest in the answer, not the request; but a flash operation stops
/// at the next batch of sectors.
#[derive(Clone)]
pub struct ProbeHandle {
    requests: mpsc::Sender<WorkerJob>,
    shared: Arc<WorkerShared>,
    deadline: Duration,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl fmt::Debug for ProbeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProbeHandle").field(&self.shared.name).finish()
    }
}

impl ProbeHandle {
    /// Opens a probe, attaches it to its target and says what that took.
    ///
    /// # Errors
    /// [`ProbeError::NotFound`], `Ambiguous` and `Held` say why there is no probe;
    /// `UnknownChip`, `Protected` and `NoTarget` why it finds no target.
    pub async fn attach(
        source: ProbeSource,
        options: AttachOptions,
    ) -> Result<(Self, Attached), ProbeError> {
        let source = Resolved::from_source(source)?;
        let name = source.name();
        let remote = match &source {
            Resolved::Selector(Selector::Remote(address)) => Some(address.clone()),
            _ => None,
        };
        let shared = Arc::new(WorkerShared {
            name: name.clone(),
            pulse: WorkerPulse::new(),
            lost: false.into(),
            leash: Leash::default(),
        });
        let (requests, received) = mpsc::channel::<WorkerJob>();
        let (answer, answered) = oneshot::channel();
        let (deadline, wait) = (options.deadline, options.wait);
        let (worker, mut source) = (Arc::clone(&shared), source);
        let thread = Builder::new().name(format!("probe {name}")).spawn(move || {
            let attached = catch_unwind(AssertUnwindSafe(|| {
                attach(&mut source, &options, &worker.leash, &worker.pulse)
            }));
            let (open_session, attached) = match attached {
                Ok(Ok(both)) => both,
                failed => {
                    worker.lost.store(true, std::sync::atomic::Ordering::Release);
                    worker.leash.release();
                    // The caller has gone if that took too long.
                    let _ = answer.send(match failed {
                        Ok(Ok(_)) => Err(ProbeError::Gone),
                        Ok(Err(error)) => Err(error),
                        Err(panic) => Err(panicked("attach", &*panic)),
                    });
                    return;
                }
            };
            if answer.send(Ok(attached)).is_ok() {
                serve(open_session, &received, &worker);
            }
        });
        let thread = thread.map_err(|error| ProbeError::Failed {
            what: "the probe's thread could not be started".to_owned(),
            source: Box::new(error),
        })?;
        let handle =
            Self { requests, shared, deadline, thread: Arc::new(Mutex::new(Some(thread))) };
        let answer = match remote {
            Some(address) => handle.queue(&address, answered, wait).await,
            None => handle.watch("attach", answered).await,
        };
        match answer {
            Ok(attached) => Ok((handle, attached)),
            Err(error) => {
                if !matches!(error, ProbeError::Hung { .. } | ProbeError::Held { .. }) {
                    handle.join().await;
                }
                Err(error)
            }
        }
    }

    /// Returns the probe's selector, or a virtual probe's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Brings the flash, and RAM where the payload reaches into it, to hold a payload. Only
    /// sectors that hold something else are erased. The core stands still afterwards, unless
    /// nothing had to be written; RAM outside the payload is overwritten. Reset it to start.
    ///
    /// `progress` is called on the probe's thread and must not block. `cancel` is looked at
    /// between reads and between batches of 64 KiB that are erased and programmed, never inside
    /// one; what it leaves is a session that works, and a flash of whole sectors.
    ///
    /// # Errors
    /// [`ProbeError::DoesNotFit`], `NoFlashAlgorithm` and `PreserveOverlaps` before anything is
    /// touched; `FlashFailed` and `VerifyFailed` after; `Cancelled` says what it left.
    pub async fn flash(
        &self,
        request: FlashRequest,
        progress: impl FnMut(FlashProgress) + Send + 'static,
        cancel: Cancel,
    ) -> Result<FlashReport, ProbeError> {
        let shared = Arc::clone(&self.shared);
        let stop = FlashStop { asked: cancel, abandoned: Cancel::default() };
        let _interest = Interest(stop.abandoned.clone());
        self.call("flash", move |open_session| {
            flash::flash(open_session, &request, Box::new(progress), &stop, &shared.pulse)
        })
        .await
    }

    /// Erases flash. The core stands still afterwards. `cancel` is looked at between batches of
    /// 64 KiB, and not at all while a chip erases itself.
    ///
    /// # Errors
    /// [`ProbeError::DoesNotFit`] where there is no flash, `NoFlashAlgorithm`, `FlashFailed`,
    /// `Cancelled`.
    pub async fn erase(
        &self,
        scope: EraseScope,
        cancel: Cancel,
    ) -> Result<EraseReport, ProbeError> {
        let shared = Arc::clone(&self.shared);
        let stop = FlashStop { asked: cancel, abandoned: Cancel::default() };
        let _interest = Interest(stop.abandoned.clone());
        self.call("erase", move |open_session| {
            flash::erase(open_session, &scope, &stop, &shared.pulse)
        })
        .await
    }

    /// Resets the chip.
    pub async fn reset(&self, into: ResetInto) -> Result<(), ProbeError> {
        self.call("reset", move |open_session| open_session.reset(into)).await
    }

    /// Halts the core and returns its program counter.
    pub async fn halt(&self) -> Result<u64, ProbeError> {
        self.call("halt", OpenSession::halt).await
    }

    /// Lets the core run.
    pub async fn run(&self) -> Result<(), ProbeError> {
        self.call("run", OpenSession::run).await
    }

    /// Executes one instruction and returns the program counter after it.
    ///
    /// # Errors
    /// [`ProbeError::NotHalted`].
    pub async fn step(&self) -> Result<u64, ProbeError> {
        self.call("step", OpenSession::step).await
    }

    /// Returns what the core does.
    pub async fn state(&self) -> Result<CoreState, ProbeError> {
        self.call("state", OpenSession::state).await
    }

    /// Reads all registers, in the order in which debuggers show them.
    ///
    /// # Errors
    /// [`ProbeError::NotHalted`].
    pub async fn registers(&self) -> Result<Vec<RegisterValue>, ProbeError> {
        self.call("registers", OpenSession::registers).await
    }

    /// Writes a register; its name as [`registers`](Self::registers) spells it, or `r13`..`r15`.
    ///
    /// # Errors
    /// [`ProbeError::NotHalted`], [`ProbeError::UnknownRegister`].
    pub async fn write_register(&self, name: &str, value: u128) -> Result<(), ProbeError> {
        let name = name.to_owned();
        self.call("write a register", move |open_session| open_session.write_register(&name, value))
            .await
    }

    /// Reads memory, the core running or not.
    ///
    /// # Errors
    /// [`ProbeError::BusFault`] names the word that the bus refused; the session goes on.
    pub async fn read(&self, address: u64, len: usize) -> Result<Vec<u8>, ProbeError> {
        self.read_as(MemoryWidth::Any, address, len).await
    }

    /// Reads memory in accesses of one width.
    pub async fn read_as(
        &self,
        width: MemoryWidth,
        address: u64,
        len: usize,
    ) -> Result<Vec<u8>, ProbeError> {
        let shared = Arc::clone(&self.shared);
        self.call("read", move |open_session| open_session.read(width, address, len, &shared.pulse))
            .await
    }

    /// Writes memory, the core running or not. Flash is not written this way.
    pub async fn write(&self, address: u64, bytes: Vec<u8>) -> Result<(), ProbeError> {
        self.write_as(MemoryWidth::Any, address, bytes).await
    }

    /// Writes memory in accesses of one width.
    pub async fn write_as(
        &self,
        width: MemoryWidth,
        address: u64,
        bytes: Vec<u8>,
    ) -> Result<(), ProbeError> {
        let shared = Arc::clone(&self.shared);
        self.call("write", move |open_session| {
            open_session.write(width, address, &bytes, &shared.pulse)
        })
        .await
    }

    /// Sets a hardware breakpoint; one that is set already stays.
    ///
    /// # Errors
    /// [`ProbeError::NoBreakpointLeft`], [`ProbeError::NoBreakpointAt`].
    pub async fn set_breakpoint(&self, address: u64) -> Result<(), ProbeError> {
        self.call("set a breakpoint", move |open_session| open_session.set_breakpoint(address))
            .await
    }

    /// Clears a hardware breakpoint, if there is one at the address.
    pub async fn clear_breakpoint(&self, address: u64) -> Result<(), ProbeError> {
        self.call("clear a breakpoint", move |open_session| open_session.clear_breakpoint(address))
            .await
    }

    /// Reads registers, the given memory and the fault status registers of a halted core. A
    /// range that the bus refuses is kept up to the first address that it refuses.
    ///
    /// # Errors
    /// [`ProbeError::NotHalted`].
    pub async fn snapshot(&self, memory: Vec<Range<u64>>) -> Result<CoreSnapshot, ProbeError> {
        let shared = Arc::clone(&self.shared);
        self.call("snapshot", move |open_session| open_session.snapshot(&memory, &shared.pulse))
            .await
    }

    /// Copies what explains where a halted core stands: its registers, all of small RAM, and of
    /// large RAM where data and stacks are. A probe carries some 100 KiB a second.
    ///
    /// # Errors
    /// [`ProbeError::NotHalted`].
    pub async fn snapshot_of_stacks(&self, ram: &[Range<u64>]) -> Result<CoreSnapshot, ProbeError> {
        let registers = self.registers().await?;
        let stacks = registers.iter().filter(|one| matches!(&*one.name, "sp" | "msp" | "psp"));
        let stacks: Vec<u32> = stacks.filter_map(|one| u32::try_from(one.value).ok()).collect();
        let wanted = ram.iter().flat_map(|range| windows(range.start, range.end, &stacks));
        self.snapshot(wanted.map(|(start, end)| start..end).collect()).await
    }

    /// Works on RTT channels: the job runs on the probe's thread, with the target's memory.
    ///
    /// # Errors
    /// What the job says, or that the probe is gone.
    pub async fn rtt<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut dyn TargetMemory) -> Result<T, RttError> + Send + 'static,
    ) -> Result<T, RttError> {
        let shared = Arc::clone(&self.shared);
        self.call("use RTT", move |open_session| {
            Ok(job(&mut SessionMemory { open_session, pulse: &shared.pulse }))
        })
        .await?
    }

    /// Answers the calls by semihosting that the core stands at, if it does.
    pub(crate) async fn semihost(&self) -> Result<Semihosted, ProbeError> {
        let shared = Arc::clone(&self.shared);
        self.call("serve semihosting", move |open_session| open_session.semihost(&shared.pulse))
            .await
    }

    /// Closes the session, for all handles, and waits until its thread has ended.
    pub async fn close(self, leave: Leave) -> Result<(), ProbeError> {
        let shared = Arc::clone(&self.shared);
        let closed = self
            .ask("close", move |open_session| {
                let Some(mut open_session) = open_session.take() else {
                    return (Ok(()), Flow::Break);
                };
                let left = match leave {
                    Leave::Running => open_session.run(),
                    Leave::Halted => open_session.halt().map(drop),
                };
                match leave {
                    Leave::Running => drop(open_session),
                    Leave::Halted => open_session.close_halted(&shared.leash),
                }
                (left, Flow::Break)
            })
            .await;
        if !matches!(closed, Err(ProbeError::Hung { .. })) {
            self.join().await;
        }
        closed
    }

    /// Waits for the thread, which is known to end.
    async fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // The thread catches its panics; a runtime that shuts down waits for nothing.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }

    /// Asks for something that leaves the session open.
    async fn call<T: Send + 'static>(
        &self,
        during: &'static str,
        job: impl FnOnce(&mut OpenSession) -> Result<T, ProbeError> + Send + 'static,
    ) -> Result<T, ProbeError> {
        self.ask(during, move |open_session| match open_session {
            Some(open_session) => (job(open_session), Flow::Continue),
            None => (Err(ProbeError::Gone), Flow::Break),
        })
        .await
    }

    async fn ask<T: Send + 'static>(
        &self,
        during: &'static str,
        job: impl FnOnce(&mut Option<OpenSession>) -> (Result<T, ProbeError>, Flow) + Send + 'static,
    ) -> Result<T, ProbeError> {
        if self.shared.is_lost() {
            return Err(ProbeError::Gone);
        }
        let (answer, answered) = oneshot::channel();
        let job: WorkerJob = Box::new(move |open_session| {
            let (result, flow) = catch_unwind(AssertUnwindSafe(|| job(open_session)))
                .unwrap_or_else(|panic| (Err(panicked(during, &*panic)), Flow::Break));
            // The caller may have gone.
            let _ = answer.send(result);
            flow
        });
        self.requests.send(job).map_err(|_| ProbeError::Gone)?;
        self.watch(during, answered).await
    }

    /// Waits for an answer as long as the worker shows that it is alive.
    async fn watch<T>(
        &self,
        during: &str,
        mut answered: oneshot::Receiver<Result<T, ProbeError>>,
    ) -> Result<T, ProbeError> {
        let asked = Instant::now();
        loop {
            let alive = Instant::from_std(self.shared.pulse.last()).max(asked);
            let left = (alive + self.deadline).saturating_duration_since(Instant::now());
            // The worker had no time either while this process stood.
            if let Some(answer) = OwnTimeout::new(left).limit(&mut answered).await {
                return answer.unwrap_or(Err(ProbeError::Gone));
            }
            if Instant::from_std(self.shared.pulse.last()).max(asked) > alive {
                continue;
            }
            self.shared.give_up();
            return Err(ProbeError::Hung { during: during.to_owned(), timeout: self.deadline });
        }
    }

    /// Waits for the answer to an attach at a remote probe: as long as may be while another
    /// client is served there, and then as for every answer.
    async fn queue<T>(
        &self,
        address: &Address,
        mut answered: oneshot::Receiver<Result<T, ProbeError>>,
        wait: Duration,
    ) -> Result<T, ProbeError> {
        /// How often the served client is looked up.
        const LOOK: Duration = Duration::from_millis(100);
        /// A client that is leaving takes so long.
        const LEAVING: Duration = Duration::from_secs(1);
        let asked = Instant::now();
        let mut alone = asked;
        while Instant::from_std(self.shared.pulse.last()) <= asked {
            if let Ok(answer) = tokio::time::timeout(LOOK, &mut answered).await {
                return answer.unwrap_or(Err(ProbeError::Gone));
            }
            // Looked up before the transport is cut, while the other client can still be seen.
            let error = match listing::other_client(address) {
                Some(holder) if asked.elapsed() >= wait.max(LEAVING) => {
                    ProbeError::Held { selector: self.shared.name.clone(), holder }
                }
                None if alone.elapsed() >= self.deadline => {
                    ProbeError::Hung { during: "attach".to_owned(), timeout: self.deadline }
                }
                None => continue,
                Some(_) => {
                    alone = Instant::now();
                    continue;
                }
            };
            self.shared.give_up();
            return Err(error);
        }
        self.watch("attach", answered).await
    }
}

/// Makes an answer of a driver's panic.
fn panicked(during: &str, panic: &(dyn std::any::Any + Send)) -> ProbeError {
    let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
    let words = words.or_else(|| panic.downcast_ref::<String>().cloned());
    let words = words.unwrap_or_else(|| "the driver panicked".to_owned());
    ProbeError::ProbeLost { during: during.to_owned(), source: words.into() }
}
