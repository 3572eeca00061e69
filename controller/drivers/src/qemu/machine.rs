//! A debugger's handle on an emulated machine.

use jig_model::event::BoardEvent;
use jig_model::protocol::DriverError;
use tokio::sync::{mpsc, oneshot};

use super::debug::DebugChannels;
use super::exceptions::Exceptions;
use super::order::{AtLaunch, EmulatorOrder, EmulatorReply, Shown, Watcher, ask_owner, owner_gone};

/// Speaks to the owner of one board's emulator from a plain thread.
///
/// Every call that is not `async` blocks until the owner has done it, for some 20 s at most; none of
/// these may be made from a task of an async runtime. While a debugger works, the board's other
/// handles still do: its power can be taken, and that ends the channels.
#[derive(Clone)]
pub struct Machine {
    orders: mpsc::Sender<EmulatorOrder>,
}

impl Machine {
    pub(super) fn new(orders: mpsc::Sender<EmulatorOrder>) -> Self {
        Self { orders }
    }

    /// Launches the machine anew and leaves it halted before its first instruction, with
    /// debug channels. If it had power, that is cut first.
    ///
    /// # Errors
    /// The emulator cannot be launched.
    pub fn launch_halted(&self, what: AtLaunch) -> Result<DebugChannels, DriverError> {
        self.ask(|reply| EmulatorOrder::LaunchHalted(what, reply))
    }

    /// Shows each later launch that runs at once to a watcher, before its first instruction.
    /// The watcher is called on the owner's task: it hands the launch on and returns. A debugger
    /// that keeps the channels for long calls [`super::debug::Gdb::drain`] now and then: each stop
    /// of the machine is told there, and it waits for a reader once the socket is full.
    ///
    /// # Errors
    /// The owner has ended.
    pub async fn watch(&self, watcher: Watcher) -> Result<(), DriverError> {
        ask_owner(&self.orders, |reply| EmulatorOrder::Watch(watcher, reply)).await
    }

    /// Returns the registers of the machine's first core, as the emulator prints them, without
    /// stopping it; nothing if the machine has ended.
    ///
    /// # Errors
    /// The emulator does not answer or is stopped, or its owner has ended.
    pub async fn registers(&self) -> Result<Option<String>, DriverError> {
        ask_owner(&self.orders, |reply| EmulatorOrder::Show(Shown::Registers, reply)).await
    }

    /// Returns words of memory as the machine's first core sees them, without stopping it: as many
    /// as can be read up to a count, and none if the machine has ended.
    ///
    /// # Errors
    /// The emulator does not answer or is stopped, or its owner has ended.
    pub async fn words(&self, address: u32, count: usize) -> Result<Vec<u32>, DriverError> {
        let what = Shown::Words(address, count);
        let text = ask_owner(&self.orders, |reply| EmulatorOrder::Show(what, reply)).await?;
        Ok(words(&text.unwrap_or_default()))
    }

    /// Takes the machine's power.
    ///
    /// # Errors
    /// The owner has ended.
    pub fn power_off(&self) -> Result<(), DriverError> {
        self.ask(EmulatorOrder::Off)
    }

    /// Takes the machine's power without waiting for it; for use in `Drop`.
    pub fn let_go(&self) {
        let (reply, _nobody) = oneshot::channel();
        // A full mailbox means that others still use the board; a closed one that it is off.
        let _ = self.orders.try_send(EmulatorOrder::Off(reply));
    }

    /// Says how the last launch ended by itself: a lock-up with the emulator's register dump,
    /// an exit, a loss. Nothing if its power was taken. Ask when a channel has closed.
    ///
    /// # Errors
    /// The owner has ended.
    pub fn how_it_ended(&self) -> Result<Option<BoardEvent>, DriverError> {
        self.ask(EmulatorOrder::HowEnded)
    }

    /// Returns what the last launch has reported of its core, if it has ended by itself and its
    /// monitor was told to log exceptions.
    ///
    /// # Errors
    /// The owner has ended.
    pub async fn last_exceptions(&self) -> Result<Option<Exceptions>, DriverError> {
        ask_owner(&self.orders, EmulatorOrder::LastExceptions).await
    }

    fn ask<T>(
        &self,
        order: impl FnOnce(EmulatorReply<T>) -> EmulatorOrder,
    ) -> Result<T, DriverError> {
        let (reply, answer) = oneshot::channel();
        self.orders.blocking_send(order(reply)).map_err(|_| owner_gone())?;
        answer.blocking_recv().map_err(|_| owner_gone())?
    }
}

/// Reads the words out of the text of a monitor: `000000002000ff80: 0x00000000 0x00000123 ...`.
fn words(text: &str) -> Vec<u32> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let words = lines.flat_map(|(_, words)| words.split_whitespace());
    words.map_while(|word| u32::from_str_radix(word.strip_prefix("0x")?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_end_where_memory_ends() {
        // As QEMU 7.2 prints them.
        let text = "000000002000fff0: 0x00000001 0x0800011d\r\nCannot access memory\r\n";
        assert_eq!(super::words(text), [1, 0x0800_011d]);
        assert_eq!(super::words("Cannot access memory\r\n"), [0; 0]);
    }
}
