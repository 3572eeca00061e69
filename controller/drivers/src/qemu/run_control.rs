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
//! guest that keeps its emulator busy does not make the host look starved.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jig_model::Cause;
use jig_model::protocol::{BoxFuture, DriverError, RunControl};
use tokio::time::{Instant, sleep, timeout};

use super::emulator::{EmulatorHandle, EmulatorOwner, Running};
use super::instance::ANSWER;
use super::monitor::{Arrival, MonitorError};
use super::order::EmulatorOrder;

/// How long the fault watch may hold the machine, which must not be taken for one that is halted
/// here. It copies registers and RAM in a few milliseconds, and on a host with far too much to do in
/// a second.
const COPIED: Duration = Duration::from_secs(2);

/// Pause between two looks at a machine that the fault watch holds.
const MOMENT: Duration = Duration::from_millis(2);

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
        let stopped = match running.let_copy().await {
            Ok(()) => running.stop().await,
            Err(error) => Err(error),
        };
        match stopped {
            Ok(()) => {
                running.pulse = None;
                running.halted = true;
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
        running.halted = false;
        running.pulse = None;
        running.copied().await;
        match running.instance.monitor.call("cont", ANSWER).await {
            Ok(_) => Ok(()),
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
        let running = self.instance.as_mut()?;
        running.look();
        Some(running.lost.saturating_add(running.instance.monitor.pauses().total()))
    }
}

impl Running {
    fn can_be_halted(&self) -> bool {
        !self.debugged && !self.instance.process.is_stopped()
    }

    /// Stops the machine, and again if the fault watch has let it go meanwhile: a breakpoint may be
    /// hit at this very moment, and a copy that has begun ends by letting the machine run.
    pub(super) async fn stop(&mut self) -> Result<(), MonitorError> {
        let deadline = Instant::now() + COPIED;
        loop {
            self.instance.monitor.call("stop", ANSWER).await?;
            if self.halted || Instant::now() >= deadline {
                return Ok(());
            }
            let answer = self.instance.monitor.call("query-status", ANSWER).await?;
            let at_breakpoint = answer.get("status").and_then(|s| s.as_str()) == Some("debug");
            if !at_breakpoint && !self.instance.copying.load(Ordering::Acquire) {
                return Ok(());
            }
            sleep(MOMENT).await;
        }
    }

    /// Waits until a copy of the fault watch has ended: it executes code of its own, from which a
    /// machine that is let run meanwhile would go on.
    async fn copied(&self) {
        let deadline = Instant::now() + COPIED;
        while self.instance.copying.load(Ordering::Acquire) && Instant::now() < deadline {
            sleep(MOMENT).await;
        }
    }

    /// Waits until the fault watch, if it holds the machine, has let it go.
    async fn let_copy(&mut self) -> Result<(), MonitorError> {
        let copied = async {
            while !self.halted && self.instance.monitor.pauses().stands() {
                sleep(MOMENT).await;
                // Its answer comes behind the event that the machine runs again.
                self.instance.monitor.call("query-status", ANSWER).await?;
            }
            Ok(())
        };
        timeout(COPIED, copied).await.unwrap_or(Ok(()))
    }
}
