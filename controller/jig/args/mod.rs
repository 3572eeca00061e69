//! The command line: parsed in [`low`], lowered to commands of the rig in [`command`], carried out
//! in [`crate::commands`].

mod access;
mod ask;
mod command;
mod common;
mod console;
mod exec;
mod flashers;
mod found_service;
mod health;
mod hold;
mod inject;
mod knowledge;
mod lease;
mod low;
mod mcp;
mod power;
mod probe;
mod repair;
mod rig_name;
mod run;
mod serve;
mod target;
mod top;

pub(crate) use access::*;
pub(crate) use ask::*;
pub(crate) use command::ms;
pub(crate) use common::{Common, LogFormat, own_name};
pub(crate) use console::*;
pub(crate) use exec::*;
pub(crate) use flashers::*;
pub(crate) use found_service::*;
pub(crate) use health::*;
pub(crate) use hold::*;
pub(crate) use inject::*;
#[cfg(test)]
pub(crate) use jig_lab::ChipAtProbe;
pub(crate) use knowledge::*;
pub(crate) use lease::*;
pub(crate) use low::*;
pub(crate) use mcp::*;
pub(crate) use power::*;
pub(crate) use probe::*;
pub(crate) use repair::*;
pub(crate) use rig_name::RigName;
pub(crate) use run::*;
pub(crate) use serve::*;
pub(crate) use top::*;
