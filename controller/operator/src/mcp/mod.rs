//! The Model Context Protocol: the tools of a door for clients, and the tools of other servers.
//!
//! **Owns** what of the protocol concerns tools and resources. **Refuses** to know a transport: the
//! caller hands in the pipe. The crate of the protocol changes often, so only `server.rs` and `client.rs`
//! name it.

mod client;
#[cfg(test)]
mod client_tests;
mod progress;
mod resources;
mod server;
#[cfg(test)]
mod tests;

pub use client::{McpPipe, McpPrograms, McpServerConfig, McpToolDoor, ToolDoors, server_of_tool};
pub use server::{McpServed, serve_mcp};
