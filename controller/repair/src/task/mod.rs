//! The task file: what a repair run is to reach, and what it may use. A contract with its users.
//!
//! Owns the keys, their defaults and what must fit together. Looks at no file that it names.

mod limits;
mod lower;
mod lower_agents;
mod raw;
mod types;

pub use jig_agents::{HttpDialect, TokenPrices};
pub use limits::RepairLimits;
pub use types::{AgentCommand, AgentHttp, AgentRef, BuildTask, RepairTask};

#[cfg(test)]
mod tests;
