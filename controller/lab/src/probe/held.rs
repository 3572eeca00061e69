//! A board that this process holds for the commands of other processes.
//!
//! Owns the place's lock, the board's power, and the one session with its debug port, which all
//! commands share. A command that stops the core has it for itself meanwhile ([`HeldPlace::turn`]).
//!
//! # Design
//! *One session.* A probe has one user, and of two sessions with one core each would let it run behind
//! the other's back. So a command that ends leaves the session open; only
//! [`HeldPlace::start_again`] makes a new one, where the power was gone.

use std::sync::{Arc, Mutex as StdMutex, MutexGuard as StdMutexGuard, PoisonError};

use jig_model::image::{DeployReport, Image};
use jig_model::protocol::SharedSink;
use jig_model::{BoardId, PlaceName};
use jig_probe::{
    AttachOptions, Attached, ChipDescription, Leave, ProbeError, ProbeHandle, ProbeSource,
    ResetInto, ServeAt, ServerHandle, VirtualBoardError,
};
use jig_rig::store::PlaceLock;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

use super::ProbeCommandError;
use super::local::LocalBoard;
use super::plain::PlainBoard;
use super::target::{CommandLocks, CommandTarget};

/// Why a held board has no power any more; none while it has some.
pub(crate) type BoardEnd = watch::Sender<Option<String>>;

/// A place that this process holds.
pub(crate) struct HeldPlace {
    place: PlaceName,
    profile: BoardId,
    board: Mutex<PoweredBoard>,
    has_debug_port: bool,
    ended: BoardEnd,
    turn: Arc<Mutex<()>>,
    /// Of a real board: its place, and those that lose their power with it.
    locks: Arc<Mutex<Vec<PlaceLock>>>,
    served: StdMutex<Option<String>>,
}

enum PoweredBoard {
    /// Emulated, with a debug port.
    Probed(ProbedBoard),
    /// Emulated, without one.
    Plain(PlainBoard),
    /// Real; its parts are bound by each command, but for its probe.
    Real(Option<ProbeSession>),
}

struct ProbedBoard {
    board: Box<LocalBoard>,
    session: Option<ProbeSession>,
}

/// A session with a board's debug port.
#[derive(Clone)]
pub(super) struct ProbeSession {
    pub(super) handle: ProbeHandle,
    pub(super) attached: Attached,
}

impl HeldPlace {
    /// Gets hold of an emulated board. One with a debug port has power, and its core stands before its first
    /// instruction; another one has none yet. `sink` tells `ended` when the power is gone.
    pub(super) async fn start(
        target: &CommandTarget<'_>,
        lock: PlaceLock,
        sink: SharedSink,
        ended: BoardEnd,
    ) -> Result<Self, ProbeCommandError> {
        let emulation = target.profile.emulation.as_ref();
        let has_debug_port = emulation.is_some_and(|emulation| emulation.debug.is_some());
        let place = target.place.name.clone();
        let board = if has_debug_port {
            let board = Box::new(LocalBoard::start_whole(target, lock, sink).await?);
            let mut board = ProbedBoard { board, session: None };
            if let Err(error) = board.attach(&place).await {
                board.board.release().await;
                return Err(error);
            }
            PoweredBoard::Probed(board)
        } else {
            PoweredBoard::Plain(PlainBoard::bind(target, lock, sink)?)
        };
        Ok(Self::of(target, board, has_debug_port, Vec::new(), ended))
    }

    /// Holds a real board, whose power is left as it is.
    pub(super) fn real(target: &CommandTarget<'_>, locks: Vec<PlaceLock>, ended: BoardEnd) -> Self {
        Self::of(target, PoweredBoard::Real(None), target.place.has_probe(), locks, ended)
    }

    fn of(
        target: &CommandTarget<'_>,
        board: PoweredBoard,
        has_debug_port: bool,
        locks: Vec<PlaceLock>,
        ended: BoardEnd,
    ) -> Self {
        Self {
            place: target.place.name.clone(),
            profile: target.profile.id.clone(),
            board: Mutex::new(board),
            has_debug_port,
            ended,
            turn: Arc::default(),
            locks: Arc::new(Mutex::new(locks)),
            served: StdMutex::default(),
        }
    }

    /// Returns the place.
    pub(crate) fn place(&self) -> &PlaceName {
        &self.place
    }

    /// Tells whether the board has a debug port.
    pub(crate) fn has_debug_port(&self) -> bool {
        self.has_debug_port
    }

    /// Waits until the board has lost its power by itself; returns why, which may be any text.
    pub(crate) async fn lost_power(&self) -> String {
        let mut ended = self.ended.subscribe();
        match ended.wait_for(Option::is_some).await.map(|why| why.clone()) {
            Ok(why) => why.unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits until the board has power again.
    pub(crate) async fn has_power(&self) {
        let mut ended = self.ended.subscribe();
        if ended.wait_for(Option::is_none).await.is_err() {
            std::future::pending().await
        }
    }

    fn off(&self, why: String) -> ProbeCommandError {
        ProbeCommandError::BoardOff { place: self.place.clone(), why }
    }

    /// Says that the board has no power any more, if so.
    pub(super) fn is_off(&self) -> Option<ProbeCommandError> {
        self.ended.borrow().clone().map(|why| self.off(why))
    }

    /// Waits until no other command stops the core, and keeps them from it.
    pub(super) async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }

    /// Waits until no other command uses the parts of a real board, and takes them.
    pub(super) async fn locks(&self) -> CommandLocks {
        CommandLocks::Held(Arc::clone(&self.locks).lock_owned().await)
    }

    /// Returns the session with the board.
    ///
    /// # Errors
    /// The board has no power any more, or no debug port, or its probe does not answer.
    pub(super) async fn session(
        &self,
        target: &CommandTarget<'_>,
    ) -> Result<ProbeSession, ProbeCommandError> {
        if let Some(off) = self.is_off() {
            return Err(off);
        }
        match &mut *self.board.lock().await {
            PoweredBoard::Real(session) => self.session_by_probe(session, target).await,
            PoweredBoard::Probed(ProbedBoard { session: Some(session), .. }) => Ok(session.clone()),
            PoweredBoard::Probed(_) => Err(self.off("it could not be started again".to_owned())),
            PoweredBoard::Plain(_) => Err(self.no_debug_port()),
        }
    }

    /// Returns the session with a real board; one that does not answer any more is made anew.
    async fn session_by_probe(
        &self,
        session: &mut Option<ProbeSession>,
        target: &CommandTarget<'_>,
    ) -> Result<ProbeSession, ProbeCommandError> {
        if let Some(session) = session
            && session.handle.state().await.is_ok()
        {
            return Ok(session.clone());
        }
        if let Some(lost) = session.take() {
            // What is broken says no good-bye that could be waited for.
            let _ = lost.handle.close(Leave::Running).await;
        }
        let Some(bound) = &target.place.probe else {
            return Err(ProbeCommandError::NotBound(self.place.clone()));
        };
        let described = ChipDescription::at_place(&target.profile, bound);
        let options = target.options(bound, described.as_ref());
        let source = ProbeSource::Selector(bound.selector.clone());
        let attached = ProbeHandle::attach(source, options).await;
        let (handle, attached) = attached
            .map_err(|error| ProbeCommandError::Probe { place: self.place.clone(), error })?;
        Ok(session.insert(ProbeSession { handle, attached }).clone())
    }

    /// Lets go of the probe of a real board, for a program that needs it or a power that is cut.
    pub(crate) async fn let_go_of_probe(&self) {
        if let PoweredBoard::Real(session) = &mut *self.board.lock().await
            && let Some(session) = session.take()
            && let Err(error) = session.handle.close(Leave::Running).await
        {
            tracing::debug!(%error, "the probe was not let go in order");
        }
    }

    fn no_debug_port(&self) -> ProbeCommandError {
        VirtualBoardError::NotDescribed { board: self.profile.to_string() }.into()
    }

    /// Returns the session with the board; one that has no power any more is given some, and its core
    /// stands then.
    pub(super) async fn start_again(
        &self,
        target: &CommandTarget<'_>,
    ) -> Result<ProbeSession, ProbeCommandError> {
        let mut board = self.board.lock().await;
        let probed = match &mut *board {
            PoweredBoard::Probed(probed) => probed,
            PoweredBoard::Plain(_) => return Err(self.no_debug_port()),
            PoweredBoard::Real(session) => return self.session_by_probe(session, target).await,
        };
        if self.ended.borrow().is_none()
            && let Some(session) = &probed.session
        {
            return Ok(session.clone());
        }
        probed.end_session().await;
        probed.board.cycle().await?;
        self.ended.send_replace(None);
        probed.attach(&self.place).await
    }

    /// Reads an image for a board without a debug port; none for one that has one.
    pub(super) async fn take_image(
        &self,
        target: &CommandTarget<'_>,
        named: &std::path::Path,
    ) -> Result<Option<Image>, ProbeCommandError> {
        match &*self.board.lock().await {
            PoweredBoard::Probed(_) | PoweredBoard::Real(_) => Ok(None),
            PoweredBoard::Plain(board) => board.take(target, named).map(Some),
        }
    }

    /// Puts an image on a board without a debug port, and boots it.
    pub(super) async fn flash(&self, image: &Image) -> Result<DeployReport, ProbeCommandError> {
        match &mut *self.board.lock().await {
            PoweredBoard::Probed(_) | PoweredBoard::Real(_) => {
                Err(ProbeCommandError::NotBound(self.place.clone()))
            }
            PoweredBoard::Plain(board) => {
                self.ended.send_replace(None);
                board.flash(image).await
            }
        }
    }

    /// Resets a board without a debug port; one that has no power is given some.
    /// Returns whether it was: the others are reset by their parts.
    pub(super) async fn reset(&self) -> Result<bool, ProbeCommandError> {
        let mut board = self.board.lock().await;
        let PoweredBoard::Plain(board) = &mut *board else { return Ok(false) };
        let has_power = self.ended.borrow().is_none();
        self.ended.send_replace(None);
        // Does nothing to a board that has power.
        board.on().await?;
        if has_power {
            board.reset().await?;
        }
        Ok(true)
    }

    /// Keeps what the flash holds.
    pub(super) async fn keep(&self) -> Result<(), ProbeCommandError> {
        match &*self.board.lock().await {
            PoweredBoard::Probed(probed) => probed.board.keep().await,
            PoweredBoard::Plain(_) | PoweredBoard::Real(_) => Ok(()),
        }
    }

    /// Serves the debug port to other programs, and tells of the selector. [`Self::served_no_more`]
    /// takes that back.
    pub(super) async fn serve(
        &self,
        at: impl FnOnce() -> Result<ServeAt, ProbeCommandError>,
    ) -> Result<ServerHandle, ProbeCommandError> {
        let mut board = self.board.lock().await;
        let PoweredBoard::Probed(ProbedBoard { board, .. }) = &mut *board else {
            return Err(self.no_debug_port());
        };
        let mut served = self.served();
        if let Some(selector) = served.clone() {
            return Err(ProbeCommandError::ServedAlready { place: self.place.clone(), selector });
        }
        let server = board.board.serve(at()?)?;
        board.lock.serves(Some(server.selector()));
        *served = Some(server.selector().to_owned());
        Ok(server)
    }

    /// Notes that the debug port is served no more.
    pub(super) async fn served_no_more(&self) {
        self.served().take();
        if let PoweredBoard::Probed(ProbedBoard { board, .. }) = &mut *self.board.lock().await {
            board.lock.serves(None);
        }
    }

    fn served(&self) -> StdMutexGuard<'_, Option<String>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the flash, takes the power and gives the place up.
    pub(crate) async fn release(self) -> Result<(), ProbeCommandError> {
        match self.board.into_inner() {
            PoweredBoard::Plain(board) => {
                board.release().await;
                Ok(())
            }
            // Its probe was let go before its power was taken.
            PoweredBoard::Real(_) => Ok(()),
            PoweredBoard::Probed(mut probed) => {
                let kept = probed.board.keep().await;
                // First the power: a session that is closed lets the core run.
                probed.board.off().await;
                probed.end_session().await;
                drop(probed.board.release().await);
                // Of a board without power it was kept before.
                if self.ended.borrow().is_some() { Ok(()) } else { kept }
            }
        }
    }
}

impl ProbedBoard {
    /// Opens the session; the core stands before its first instruction.
    async fn attach(&mut self, place: &PlaceName) -> Result<ProbeSession, ProbeCommandError> {
        let told = |error: ProbeError| ProbeCommandError::Probe { place: place.clone(), error };
        let attached = ProbeHandle::attach(self.board.source()?, AttachOptions::default()).await;
        let (handle, attached) = attached.map_err(told)?;
        // A chip takes its vectors from the flash at a reset.
        handle.reset(ResetInto::Halt).await.map_err(told)?;
        let session = ProbeSession { handle, attached };
        self.session = Some(session.clone());
        Ok(session)
    }

    /// Ends the session of a board without power.
    async fn end_session(&mut self) {
        if let Some(session) = self.session.take() {
            // The board has gone, so this cannot go well; it ends the session's thread.
            let _ = session.handle.close(Leave::Running).await;
        }
    }
}
