//! What switches the power of boards, one module per kind of device.
//!
//! Owns talking to a device in its own words, keeping commands to one device apart, and
//! telling whether the device did as it was told. Refuses to know what hangs on an outlet.
//!
//! # Design
//! *Two layers.* A driver ([`Outlets`]) sets and reads one outlet of one device, opens what it
//! needs for each command and closes it afterwards, and judges every answer. Above it, the
//! [`OpenDevice`] is the one owner: commands come one after the other, with the device's minimum
//! interval between them, in this process and against all others of this user. [`OutletPower`]
//! makes the protocol of a board out of an outlet.
//!
//! *A new kind* is declared in `jig_model::power`, whose `# Design` says how. Here it gets a file
//! that implements `OpenOutlets` for its description and [`Outlets`] for its driver, and one line in
//! `open.rs`, which the compiler demands.
//!
//! *No command is believed.* What can be read back is read back, until it is so or the
//! device's time to settle is over; a device that goes on claiming the old state has lied.
//!
//! *Secrets* are read when a device is opened, are never arguments of a program, and print
//! as `***`.

mod binding;
mod command;
mod context;
mod device;
mod error;
mod gpio;
mod http;
mod human;
mod ipmi;
mod judge;
mod line;
mod manual;
mod modbus;
mod open;
mod outlet_power;
mod outlets;
mod pdudaemon;
mod place;
mod program;
mod redfish;
mod relay;
mod secret;
mod sense;
mod snmp;
mod template;
mod templated;
mod usb_hub;
mod web;

pub use binding::OutletFactory;
pub use context::{Between, PowerContext};
pub use device::OpenDevice;
pub use error::PowerError;
pub use human::{AskError, AskHuman, NoHuman};
pub use open::open;
pub use outlet_power::{OutletPower, Verified};
pub use outlets::Outlets;
pub use place::{open_outlet, open_sensed};
pub(crate) use program::run as run_program;
pub use secret::{Secret, SecretError};

#[cfg(test)]
mod tests;
