//! Halting an emulated machine, letting it run on, and the time that it has lost.
//!
//! # Design
//! *Lost time is what the kernel counted, and what the monitor said.* A machine's own clock goes on
//! while its threads wait for a processor, so the processor time that they used says nothing; the
//! time that they spent ready and waiting does. The kernel adds a wait when it is over, and `stop`
//! returns when the thread of the core has stood still, so the account of a halted machine is
//! complete.
//!
//! *Waits of threads are added up.* A timer fires in one thread, and its interrupt is taken in
//! another: they wait one after the other. Where they waited side by side the sum is too long, and
//! a quiet period is longer than it has to be. Time in which one of them ran is never lost, so a
//! guest that keeps its emulator busy does not make the host look starved. Nor does a machine that is
//! halted often: no more is lost than has passed; see `pauses.rs`.
//!
//! *Owner and fault watch take turns*; see `control_lock.rs`.

use std::time::{Duration, Instant};

use jig_model::Cause;
use jig_model::protocol::{BoxFuture, DriverError, RunControl};
use serde_json::Value;

use super::emulator::{EmulatorHandle, EmulatorOwner, Running};
use super::instance::ANSWER;
use super::monitor::{Arrival, MonitorError};
use super::order::EmulatorOrder;
use crate::process::StillnessWatch;

impl RunControl for EmulatorHandle {
    fn halt(&mut self) -> BoxFuture<'_, Result<bool, DriverError>> {
        Box::pin(self.ask(EmulatorOrder::Halt))
    }
    fn resume(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(self.ask(EmulatorOrder::Resume))
    }
    fn lost_time(&mut self) -> BoxFuture<'_, Result<Option<Duration>, DriverError>> {
        Box::pin(self.ask(EmulatorOrder::LostTime))
    }
}

impl EmulatorOwner {
    /// Stops the machine, and takes in what it printed and what its monitor said.
    pub(super) async fn halt(&mut self) -> Result<bool, DriverError> {
        let running = self.instance.as_mut().filter(|running| running.can_be_halted());
        let Some(running) = running else { return Ok(false) };
        match running.stop().await {
            Ok(()) => {
                running.pulse = None;
                running.stands();
                for event in running.instance.monitor.take_early() {
                    running.hear(Arrival::Event(event), &self.context);
                }
                self.context.sink.drained().await;
                Ok(true)
            }
            // Its end tells the story.
            Err(MonitorError::Closed) => {
                self.monitor_failed(MonitorError::Closed).await;
                Ok(false)
            }
            Err(error) => {
                let message = "halt the emulated machine";
                Err(DriverError::new(Cause::EmulatorStuck, message).with_source(error))
            }
        }
    }

    pub(super) async fn resume(&mut self) -> Result<(), DriverError> {
        let running = self.instance.as_mut().filter(|running| running.halted);
        let Some(running) = running else { return Ok(()) };
        running.runs_on();
        running.pulse = None;
        match running.go_on().await {
            Ok(()) => {
                running.turns();
                Ok(())
            }
            Err(MonitorError::Closed) => {
                self.monitor_failed(MonitorError::Closed).await;
                Ok(())
            }
            Err(error) => {
                let message = "let the halted machine run on";
                Err(DriverError::new(Cause::EmulatorStuck, message).with_source(error))
            }
        }
    }

    pub(super) fn lost_time(&mut self) -> Option<Duration> {
        Some(self.instance.as_mut()?.lost_time())
    }
}

impl Running {
    /// Returns for how long the machine has not run.
    fn lost_time(&mut self) -> Duration {
        self.look();
        self.lost.total(Instant::now(), self.counted())
    }

    /// Notes that the machine stands now.
    fn stands(&mut self) {
        self.turns();
        self.halted = true;
    }

    /// Notes that the machine is about to be let run on.
    pub(super) fn runs_on(&mut self) {
        self.turns();
        self.halted = false;
        // How long its threads have slept until now says nothing about what it loses from now on.
        self.watch = StillnessWatch::new(&self.instance.process);
    }

    /// Begins a part of the sum of lost time, of which no more is lost than passes.
    ///
    /// While the machine is let run on, both its threads wait and the monitor says that it stands.
    pub(super) fn turns(&mut self) {
        self.look();
        self.lost.turn(Instant::now(), self.counted());
    }

    /// Adds up what the kernel and the monitor have counted.
    fn counted(&self) -> Duration {
        self.starved.saturating_add(self.instance.monitor.pauses().total())
    }

    fn can_be_halted(&self) -> bool {
        !self.debugged && !self.instance.process.is_stopped()
    }

    /// Asks how the machine is, between two turns of the fault watch.
    pub(super) async fn ask_status(&mut self) -> Result<Value, MonitorError> {
        let _turn = self.instance.control.own().await?;
        self.instance.monitor.call("query-status", ANSWER).await
    }

    /// Stops the machine, unless it stands already. The fault watch leaves it so from here on.
    pub(super) async fn stop(&mut self) -> Result<(), MonitorError> {
        let mut halted = self.instance.control.own().await?;
        if !*halted {
            self.instance.monitor.call("stop", ANSWER).await?;
            *halted = true;
        }
        Ok(())
    }

    /// Lets the machine run. One that stands at a breakpoint stops there at once, and the fault watch
    /// hears of it.
    pub(super) async fn go_on(&mut self) -> Result<(), MonitorError> {
        let mut halted = self.instance.control.own().await?;
        self.instance.monitor.call("cont", ANSWER).await?;
        *halted = false;
        Ok(())
    }
}
