//! Requests in words, without a model: a small grammar for what people ask of a rig every day.
//!
//! **Owns** the forms that are understood, and what each of them means. **Refuses** a request of which one
//! word is not accounted for: a word that was skipped could be the `not` of the sentence. Pure.
//!
//! # Design
//! *Verbs act, questions look.* A verb that acts has to stand in the words, as one of the synonyms in
//! [`forms`]. A sentence that begins with a question word leads to steps that only read, whatever verbs
//! follow: "how do I erase a board" erases none. Negations and conditions are not understood.
//!
//! *Names are names.* A word that is no verb, preposition, filler or file is the name of a board. The rig
//! decides whether it has such a board, and an unknown one is asked about.

mod forms;
mod lex;
mod named;
mod outcomes;
mod parse;
mod parts;
mod questions;
mod request;
mod vocabulary;
mod when;

pub use forms::{FORMS, RequestForm, nearest_forms};
pub use named::names_call;
pub use parse::{NotUnderstood, parse};
pub use request::{
    ActionVerb, Amount, PowerWord, RequestAction, RequestQuestion, RunName, RunsWanted, TargetWord,
    UserRequest,
};
pub use when::SinceWord;

#[cfg(test)]
mod tests;
