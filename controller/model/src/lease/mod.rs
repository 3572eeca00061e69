//! Leases: the exclusive use of a place for a time, and what callers ask of them.
//!
//! Owns the words: what a caller asks ([`LeaseOrder`]), what is answered ([`LeaseAnswer`]), which
//! places are meant ([`PlaceSelector`]) and the rules of the rig ([`LeasePolicy`]). Who gets which
//! place, and when, is decided by `jig_rig::leases`.

mod order;
mod policy;
mod selector;
#[cfg(test)]
mod tests;

pub use order::{
    LeaseAnswer, LeaseAsk, LeaseEnd, LeaseNamed, LeaseOrder, LeaseState, LeaseView, LeasedPlace,
    RigUser,
};
pub use policy::{LeaseClass, LeasePolicy};
pub use selector::{PlaceSelector, PlaceTraits, SelectorError};
