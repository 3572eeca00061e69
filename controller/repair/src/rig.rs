//! The door to the rig: commands in, replies out.

use jig_model::command::{Command, Refusal, Reply};
use jig_model::protocol::BoxFuture;

/// Carries out commands at a rig.
pub trait RigDoor: Send + Sync {
    /// Carries out a command. Dropping the future asks for its end, which is still brought about in
    /// order.
    fn execute(&self, command: Command) -> BoxFuture<'_, Result<Reply, Refusal>>;

    /// Tells whether the place of the task is a real board, which wears out and costs to flash.
    fn is_real(&self) -> bool;

    /// Tells whether the place of the task can tell which lines of the firmware it executes.
    fn measures_coverage(&self) -> bool;
}
