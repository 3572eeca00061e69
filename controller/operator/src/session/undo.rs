//! What a session has changed, and how it is put back: files by inverse patches, images by what records tell.
//!
//! # Design
//! *Files are compared before and behind each call that may change some.* A tool of the rig changes none. One of
//! another server may do anything that a person has confirmed, so the folder is noted before and compared
//! behind, also where the call has failed or was cut off.
//!
//! *Only what a failed call has left half done is put back by itself*: its changes serve nothing. What a call has
//! done whole stays until a person asks for the undoing of it. An image is never put back by itself, because a
//! flash is dangerous: the command is named.

use std::collections::BTreeSet;

use jig_model::protocol::BoxFuture;
use serde_json::{Value, json};

use super::fold::Session;
use crate::error::OperatorError;
use crate::journal::{ChangedFiles, EarlierImage};
use crate::tools::{ToolCall, ToolList, ToolResult};

/// Most runs of a place that are looked at for the image that it had.
pub(super) const EARLIER_RUNS: usize = 3;

/// Notes and puts back the files of a session's folder. The program binds it.
pub trait SessionUndo: Send + Sync {
    /// Notes how the files are before a call.
    ///
    /// # Errors
    /// The folder cannot be noted. The call is made all the same, and cannot be undone.
    fn note(&self, call: u32) -> BoxFuture<'_, Result<(), OperatorError>>;

    /// Compares the files with how they were before a call, and keeps the patch that undoes it. Nothing where
    /// nothing was noted or has changed.
    ///
    /// # Errors
    /// The folder cannot be compared.
    fn changed(&self, call: u32) -> BoxFuture<'_, Result<Option<ChangedFiles>, OperatorError>>;

    /// Puts the files back as they were before a call. Done twice it does nothing more.
    ///
    /// # Errors
    /// They were changed since by others: nothing is put back then.
    fn undo(&self, call: u32) -> BoxFuture<'_, Result<(), OperatorError>>;
}

/// Notes nothing: for a session whose folder is no work tree of git.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoUndo;

impl SessionUndo for NoUndo {
    fn note(&self, _: u32) -> BoxFuture<'_, Result<(), OperatorError>> {
        Box::pin(async { Ok(()) })
    }

    fn changed(&self, _: u32) -> BoxFuture<'_, Result<Option<ChangedFiles>, OperatorError>> {
        Box::pin(async { Ok(None) })
    }

    fn undo(&self, _: u32) -> BoxFuture<'_, Result<(), OperatorError>> {
        Box::pin(async { Ok(()) })
    }
}

/// Tells whether a call may change files of the folder.
pub(super) fn may_change_files(tools: &ToolList, call: &ToolCall) -> bool {
    let tool = tools.find(&call.name).filter(|tool| tool.server.is_some());
    tool.is_some_and(|tool| !tool.risk(&call.arguments).read_only)
}

/// Names the places whose image a wave replaces, and of which it was not looked up what they had. No
/// run tells what the file has that is the flash of an emulated board.
pub(super) fn places_to_look_up<'c>(
    session: &Session,
    calls: impl Iterator<Item = &'c ToolCall>,
) -> BTreeSet<String> {
    let place = |call: &ToolCall| call.arguments.get("place")?.as_str().map(str::to_owned);
    let writes = |call: &&ToolCall| {
        let emulated = place(call)
            .and_then(|place| session.context.boards.get(&place))
            .is_some_and(|board| board.nature.emulated);
        match call.name.as_str() {
            "flash" | "erase" => !emulated,
            "run" | "test" => call.arguments.get("image").is_some() && !emulated,
            _ => false,
        }
    };
    let places = calls.filter(writes).filter_map(place);
    places.filter(|place| !session.earlier_images.contains_key(place)).collect()
}

/// The call that lists the runs of a place.
pub(super) fn runs_of(place: &str) -> ToolCall {
    ToolCall::new("runs_list", json!({ "place": place, "limit": EARLIER_RUNS }))
}

/// Names the runs of a listing, the newest first.
pub(super) fn listed(result: &ToolResult) -> Vec<String> {
    let runs = result.data.get("runs").and_then(Value::as_array);
    let ids = runs.into_iter().flatten().filter_map(|run| run.get("id")?.as_str());
    ids.take(EARLIER_RUNS).map(str::to_owned).collect()
}

/// Reads out of the answer about a run which image it left on its board. Of several images no record tells
/// which was the last one.
pub(super) fn image_of(result: &ToolResult) -> Option<EarlierImage> {
    let one = |at: &str| match result.data.pointer(at)?.as_array()?.as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    };
    let (image, kept) = (one("/record/images")?, one("/images_kept")?);
    Some(EarlierImage {
        run: result.data.pointer("/record/id")?.as_str()?.to_owned(),
        file: kept.as_str()?.to_owned(),
        sha256: image.get("sha256")?.as_str()?.to_owned(),
    })
}
