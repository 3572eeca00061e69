//! Tools: what a planner, an agent or an editor can ask of a rig, as one list.
//!
//! **Owns** the list of tools with the schemas of their arguments, the check of a call, the bounds of a
//! result, and the protocol by which a call is carried out. **Refuses** a call whose arguments do not fit
//! the schema, or whose right was not allowed, before anything is touched.
//!
//! # Design
//! *A tool is a command or a question.* Arguments are lowered to a [`Command`](jig_model::command::Command)
//! of the rig or to a [`RigQuestion`], which changes nothing. So a tool can do nothing that a verb of the
//! command line cannot, and the access rules of the rig apply to it as to any other caller.
//!
//! *Rights are the rig's.* What a call needs is the [`AccessRight`](jig_model::access::AccessRight) of its
//! command: the tools have no table of rights of their own that could differ.

mod bound;
mod call;
mod door;
mod rig;
mod schema;
mod tool;

pub(crate) use bound::bound;
pub use bound::escaped;
pub use call::{CutPart, LogRange, ToolCall, ToolResult};
pub use door::{RigCalls, RigQuestion, RigRequest, ToolDoor};
pub use rig::{RigToolDoor, ToolPolicy, rig_tools};
pub use tool::{Danger, Tool, ToolList, ToolRisk};
