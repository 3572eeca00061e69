//! The one door to the rig: a command in, events meanwhile, a reply out.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jig_drivers::inject::{GrammarError, Injection};
use jig_drivers::qemu::CollectedCode;
use jig_model::command::{
    Command, CommandEvent, EventSink, PlanText, RecoverCommand, RecoverExtent, RecoverySteps,
    RecoveryStepsReply, Reply, RunCommand, RunOptions, ShellCommand, ShellTask, TestCommand,
};
use jig_model::plan::{ActionKind, Plan, RunWaits, command_plan, default_plan};
use jig_model::shell::ShellWay;
use jig_model::{ConsoleName, Fault, Problems, RunEvent, RunId};
use jig_rig::audit::AuditError;
use jig_rig::console::ConsoleHandle;
use jig_rig::leases::LeaseError;
use jig_rig::session::{Extent, Observer, SessionRequest};
use jig_rig::workflow::CancelToken;
use tokio::sync::mpsc;

use crate::audit::AuditedEvents;
use crate::beside::BoundPlace;
use crate::console_name::beside_primary;
use crate::coverage::measured;
use crate::{
    AccessError, AttachError, CatalogueError, CheckError, HoldError, Lab, NoConsole, NoCoverage,
    PowerCommandError, ProbeCommandError, RunError,
};

/// Says why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The place or its board is not known.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The plan is wrong.
    #[error("the plan is wrong")]
    Plan(Box<Problems>),
    /// No fault is written like this.
    #[error("{text:?} is no fault to inject: {}", error.message)]
    NoFault {
        /// What was written.
        text: String,
        /// What is wrong with it.
        error: GrammarError,
    },
    /// The board has no such console.
    #[error(transparent)]
    NoConsole(#[from] NoConsole),
    /// Coverage cannot be measured there.
    #[error(transparent)]
    NoCoverage(#[from] NoCoverage),
    /// The command did not attach to a console, or was broken off.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// There was no run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The power was not switched.
    #[error(transparent)]
    Power(#[from] PowerCommandError),
    /// The place was not looked at.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The board was not flashed, reset or debugged.
    #[error(transparent)]
    Probe(#[from] ProbeCommandError),
    /// Another user has a lease for the place, or that of the command has ended.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The user has not the right.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// It cannot be noted in the audit log, and comes from elsewhere.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The board was not held, or not reached where another process holds it.
    #[error(transparent)]
    Hold(#[from] HoldError),
}

impl CommandError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Catalogue(error) => error.fault(),
            Self::Plan(_) => Fault::Profile,
            Self::NoFault { .. } | Self::NoConsole(_) | Self::NoCoverage(_) => Fault::Usage,
            Self::Attach(error) => error.fault(),
            Self::Run(error) => error.fault(),
            Self::Power(error) => error.fault(),
            Self::Check(error) => error.fault(),
            Self::Probe(error) => error.fault(),
            Self::Lease(error) => error.fault(),
            Self::Access(error) => error.fault(),
            Self::Audit(error) => error.fault(),
            Self::Hold(error) => error.fault(),
        }
    }
}

impl Lab {
    /// Carries out a command that takes no input.
    ///
    /// Dropping the future is no way to end a run: what is under way is broken off, and the next
    /// command cleans up after it. `cancel` ends it in order.
    ///
    /// # Errors
    /// The command was not carried out. What went wrong in a run is in its verdict.
    pub async fn execute(
        &self,
        command: Command,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, CommandError> {
        let (_, none) = mpsc::channel(1);
        self.execute_with_input(command, none, events, cancel).await
    }

    /// Carries out a command; `input` goes to the console or channel that the command is about.
    ///
    /// # Errors
    /// As [`Lab::execute`].
    pub async fn execute_with_input(
        &self,
        command: Command,
        input: mpsc::Receiver<Vec<u8>>,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, CommandError> {
        let catalogue = self.catalogue();
        let basis = match catalogue.authorise(&command) {
            Ok(basis) => basis,
            Err(error) => {
                catalogue.note_refused(&command, error.to_string());
                if let (AccessError::Hidden(_), Err(unknown)) =
                    (&error, catalogue.place(command.place()))
                {
                    // Told in the words for a place that is not there.
                    return Err(unknown.into());
                }
                return Err(error.into());
            }
        };
        let permit = self.permit(&command, &*events, &cancel).await.inspect_err(|error| {
            catalogue.note_refused(&command, error.to_string());
        })?;
        // Of a place that is not there nothing is noted; the command says so.
        let events = match basis {
            Some(basis) => {
                let line = catalogue.note_accepted(&command, basis.to_string(), permit.noted())?;
                AuditedEvents::of(catalogue, &command, line, permit.noted(), events)
            }
            None => events,
        };
        let work = apart(|| self.carry_out(command, input, Arc::clone(&events), cancel.clone()));
        permit.during(work, &*events, &cancel).await
    }

    async fn carry_out(
        &self,
        command: Command,
        input: mpsc::Receiver<Vec<u8>>,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, CommandError> {
        if let Some(holder) = self.holder_of(&command).await? {
            return match command {
                Command::Shell(shell) => {
                    apart(|| self.shell_of_held(holder, shell, events, cancel)).await
                }
                command => Ok(holder.carry_out(command, input, events, cancel).await?),
            };
        }
        Ok(match command {
            Command::Run(run) => {
                let RunCommand {
                    place,
                    image,
                    resets,
                    next_boot,
                    until,
                    console,
                    reject,
                    allow,
                    timeout_ms,
                    options,
                } = run;
                let here = self.bind(&place)?;
                let console = beside_primary(&here.profile, console)?;
                let timeout = Duration::from_millis(timeout_ms);
                let waits = RunWaits { resets, next_boot, until, console, timeout };
                let plan = Plan {
                    reject,
                    allow_output: allow,
                    strict: here.place.strict,
                    ..default_plan(image.is_some(), waits)
                };
                apart(|| self.run_with(here, plan, image, options, events, cancel)).await?
            }
            Command::Test(TestCommand { place, plan, image, options }) => {
                let PlanText { origin, text } = plan;
                let plan = Plan::parse(&origin, &text)
                    .map_err(|problems| CommandError::Plan(Box::new(problems)))?;
                let here = self.bind(&place)?;
                let plan = Plan { strict: plan.strict.max(here.place.strict), ..plan };
                apart(|| self.run_with(here, plan, image, options, events, cancel)).await?
            }
            Command::Shell(shell) => {
                let here = self.bind(&shell.place)?;
                let plan = shell_plan(&here, shell, true);
                // The user of a command sees that it fails, so the rig is not recovered meanwhile.
                let options = RunOptions { recoveries: Some(0), ..RunOptions::default() };
                apart(|| self.run_with(here, plan, None, options, events, cancel)).await?
            }
            Command::Console(console) => {
                apart(|| self.converse(console, input, events, cancel)).await?
            }
            Command::Attach(mut attach) => {
                let boot = attach.boot.take();
                let mut input = Some(input);
                let attached = apart(|| self.attach(attach, &mut input, &*events, &cancel)).await;
                match (attached, boot, input) {
                    (
                        Err(AttachError::NotCaptured { held: false, .. }),
                        Some(boot),
                        Some(input),
                    ) => apart(|| self.converse(boot, input, events, cancel)).await?,
                    (attached, ..) => attached?,
                }
            }
            Command::LineControl(line) => {
                apart(|| self.control_line(line, &*events, &cancel)).await?
            }
            Command::Recover(RecoverCommand { place, extent }) => {
                let extent = match extent {
                    RecoverExtent::Prove => Extent::Ask,
                    RecoverExtent::Recover => Extent::Recover,
                    RecoverExtent::From(step) => Extent::From(step),
                };
                let observer = Arc::new(Forward(Arc::clone(&events)));
                let ended =
                    apart(|| self.recover(&place, extent, observer, &*events, cancel)).await?;
                Reply::Run(ended)
            }
            Command::RecoverySteps(RecoverySteps { place, from }) => {
                let (steps, timeout) = self.recovery_ladder(&place, from)?;
                let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
                Reply::RecoverySteps(RecoveryStepsReply { place, steps, timeout_ms })
            }
            Command::Power(power) => apart(|| self.power(power, &*events, &cancel)).await?,
            Command::Check(check) => {
                Reply::Checked(apart(|| self.check(check, &*events, &cancel)).await?)
            }
            Command::Hold(hold) => apart(|| self.hold_board(hold, events, cancel)).await?,
            Command::Flash(_)
            | Command::Erase(_)
            | Command::Reset(_)
            | Command::Debug(_)
            | Command::ServeProbe(_) => {
                apart(|| self.board_command(command, input, events, cancel)).await?
            }
        })
    }

    pub(crate) async fn run_with(
        &self,
        here: BoundPlace,
        plan: Plan,
        image: Option<PathBuf>,
        options: RunOptions,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, CommandError> {
        let RunOptions {
            repeat,
            recoveries: max_recoveries,
            settle_ms,
            strict,
            inject,
            coverage,
            coverage_by_test,
            asked,
        } = options;
        if let Some(image) = &image {
            self.check_image(&here, image)?;
        }
        let what =
            if coverage_by_test { CollectedCode::Spans } else { CollectedCode::Instructions };
        let here = if coverage || coverage_by_test { measured(here, what)? } else { here };
        let settle = settle_ms.map(Duration::from_millis).or(plan.settle);
        let plan = Plan { settle, strict: plan.strict.max(strict), ..plan };
        let parse = |text: String| {
            text.parse::<Injection>().map_err(|error| CommandError::NoFault { text, error })
        };
        let inject = inject.into_iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        let request = SessionRequest { plan, image, repeat, max_recoveries, asked };
        let observer = Arc::new(Forward(Arc::clone(&events)));
        let run = apart(|| self.run(here, request, inject, observer, &*events, cancel));
        Ok(Reply::Run(run.await?))
    }
}

/// Makes a future in memory of its own, and in a stack frame that is gone when it is polled. The future of a run
/// is large: without optimisation, a function that awaits it has room for it in its own frame several times, and
/// for that of each arm of a match.
pub(crate) fn apart<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::pin(make())
}

/// Builds the plan of a command. A board that no process holds (`free`) is booted for it where it is
/// emulated, and where its consoles are captured only from its boot on.
pub(crate) fn shell_plan(here: &BoundPlace, shell: ShellCommand, free: bool) -> Plan {
    let ShellCommand { what, via, timeout_ms, .. } = shell;
    let way = here.profile.shell_at(&here.place).and_then(|shell| shell.way(via));
    let boots = free
        && (here.place.is_emulated()
            || (way == Some(ShellWay::Serial) && here.place.starts_boots()));
    let kind = match what {
        ShellTask::Exec { argv } => ActionKind::Exec { argv, exit_code: None, via },
        ShellTask::Upload { from, to, mode } => {
            ActionKind::Upload { from, to, mode: Some(mode), via }
        }
        ShellTask::Download { from, to } => ActionKind::Download { from, to, via },
    };
    command_plan(boots, kind, Duration::from_millis(timeout_ms))
}

/// Passes on what happens in a run.
pub(crate) struct Forward(pub(crate) Arc<dyn EventSink>);

impl Observer for Forward {
    fn began(&self, run: &RunId, dir: &std::path::Path) {
        self.0.event(CommandEvent::RunBegan { run: run.clone(), dir: dir.to_owned() });
    }

    fn event(&self, event: &RunEvent) {
        self.0.event(CommandEvent::Run { event: event.clone() });
    }

    fn console(&self, console: &ConsoleName, handle: &ConsoleHandle) {
        let log = handle.log().to_owned();
        self.0.event(CommandEvent::Console { console: console.clone(), log });
    }
}
