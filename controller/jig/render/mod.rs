//! What people and programs see.
//!
//! **Owns** the two streams: what was asked for goes to standard output, everything else
//! to standard error. **Refuses** to decide what there is to say.

mod attach_view;
mod diagnostics;
mod events;
mod evidence;
mod flashing;
mod live;
mod log_view;
mod memory;
mod paint;
mod progress;
mod recovery;
mod screen;
mod seen;
mod table;
mod verdict;

pub(crate) use attach_view::AttachView;
pub(crate) use diagnostics::{failure_json, one_line};
pub(crate) use evidence::quote;
pub(crate) use flashing::{FlashView, flash_line};
pub(crate) use live::LiveView;
pub(crate) use log_view::{LogPrinter, LogViews};
pub(crate) use memory::{hex_dump, register_table};
pub(crate) use paint::{Paint, Style};
pub(crate) use progress::ProgressView;
pub(crate) use recovery::repair_words;
pub(crate) use screen::Screen;
pub(crate) use seen::{line_of, seen_words, show_seen};
pub(crate) use table::TextTable;
pub(crate) use verdict::{rest, seconds, show_verdict, verdict_text, verdict_word};
