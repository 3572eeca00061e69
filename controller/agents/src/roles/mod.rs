//! Roles: what a model is asked for. Four functions over one shared state; none of them keeps anything.
//!
//! A role makes a question out of the state, and reads an answer into a change of the state. What asks the model
//! stands between the two. Prompts are data with versions ([`RoleBook`]).
//!
//! # Design
//! *A role claims, the rig decides.* Results of tests enter the state from the rig alone. A role that answers
//! `finish` while a test has not passed is answered by `escalate`: see [`RoleState::read_analysis`].
//!
//! *Guardrails stand outside of the model.* What a prompt forbids is checked on each answer as well: commands and
//! paths by [`crate::guard`], tools by the reach of a role, secrets by the redactor of who asks.

mod book;
mod read;
mod state;

pub use book::{RoleBook, RoleBookError, RolePrompt, RoleReach, RoleTask};
pub use read::{
    AnalysisAnswer, NextAction, PersonQuestion, RoleAnswerError, StepAnswer, json_of,
    read_person_questions, read_question, read_step,
};
pub use state::RoleState;

jig_model::words! {
    /// Names what a model is asked for.
    AgentRole, "role" {
        /// Understands and changes code.
        Code = "code",
        /// Plans work on the rig.
        Test = "test",
        /// Explains results, and says what should come next.
        Analysis = "analysis",
        /// Asks what the lab knows.
        Knowledge = "knowledge",
    }
}
