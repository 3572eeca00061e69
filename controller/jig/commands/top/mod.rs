//! `jig top`: all places at a glance, live.
//!
//! # Design
//! *Everything is read from files*, once a second, so it works with and without a service and disturbs
//! neither. What did not change is not drawn: an idle view costs one look a second.

mod console_tail;
mod draw;
mod model;
#[cfg(test)]
mod sample;
mod snapshot;

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use jig_lab::Catalogue;
use jig_model::{Fault, exit};
use jig_rig::workflow::CancelToken;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use self::draw::{AROUND, draw, plain};
use self::model::{TopEffect, TopKey, TopModel};
use self::snapshot::SnapshotReader;
use super::runtime::until_signalled;
use super::serve::RigWatch;
use crate::args::{Common, TopArgs};
use crate::failure::Failure;
use crate::render::Screen;

/// Interval of the looks at the files.
const LOOK: Duration = Duration::from_secs(1);

/// Shortest time between two frames.
const FRAME: Duration = Duration::from_millis(100);

/// Longest wait for a key: after it a signal is noticed.
const KEY_WAIT: Duration = Duration::from_millis(500);

/// Width of a view that goes to no terminal.
const PLAIN_WIDTH: u16 = 160;

/// Shows all places until `q`; once with `--once`.
///
/// JSON: `{"at","places":[{"place","board","health","why","lease":{"owner","comment","until"},
/// "waiting","in_use_by","run":{"id","plan","started"},"console"}],"queue","missing"}`, once.
pub(crate) fn top(common: &Common, screen: &Screen, args: TopArgs) -> Result<u8, Failure> {
    let catalogue = Catalogue::load(&common.lab()?)?;
    let mut reader = SnapshotReader::default();
    let filter = args.filter.unwrap_or_default();
    let snapshot = reader.read(&catalogue);
    let model = TopModel::new(snapshot, filter);
    if screen.json() {
        let mut shown = model.snapshot.clone();
        shown.places = model.shown().into_iter().cloned().collect();
        screen.out_json(&shown);
        return Ok(exit::PASS);
    }
    if args.once {
        screen.out(&once(&model)?);
        return Ok(exit::PASS);
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let failure = Failure::new(Fault::Usage, "standard input and output are no terminal");
        return Err(failure.help("jig top --once prints the view, --json the facts"));
    }
    let common = common.clone();
    let colour = screen.out_paint().on;
    until_signalled(async move |cancel| {
        let watched = tokio::task::spawn_blocking(move || {
            // Left on any way out of here.
            let mut terminal = ratatui::try_init().map_err(no_terminal)?;
            let ended = watch(&mut terminal, &common, catalogue, reader, model, colour, &cancel);
            let restored = ratatui::try_restore().map_err(no_terminal);
            ended.and(restored)
        });
        watched.await.map_err(|error| Failure::of(Fault::Bug, &error))??;
        Ok(exit::PASS)
    })
}

fn no_terminal(error: io::Error) -> Failure {
    Failure::new(Fault::Lab, format!("the terminal cannot be used: {error}"))
}

/// Draws and takes in keys until the user or a signal ends it.
fn watch(
    terminal: &mut ratatui::DefaultTerminal,
    common: &Common,
    mut catalogue: Catalogue,
    mut reader: SnapshotReader,
    mut model: TopModel,
    colour: bool,
    cancel: &CancelToken,
) -> Result<(), Failure> {
    let mut rig_files = RigWatch::of(common);
    let (mut looked, mut drawn, mut stale) = (Instant::now(), None::<Instant>, true);
    while !cancel.is_cancelled() {
        if looked.elapsed() >= LOOK {
            if rig_files.has_changed(common) {
                // A broken file leaves the places that were known; `jig profile check` tells.
                catalogue = Catalogue::load(&common.own_lab()).unwrap_or(catalogue);
            }
            stale |= refresh(&mut model, &mut reader, &catalogue);
            looked = Instant::now();
        }
        let rested = drawn.is_none_or(|at: Instant| at.elapsed() >= FRAME);
        if stale && rested {
            terminal.draw(|frame| draw(frame, &model, colour)).map_err(no_terminal)?;
            (drawn, stale) = (Some(Instant::now()), false);
        }
        let wait = match stale {
            true => FRAME,
            false => LOOK.saturating_sub(looked.elapsed()).min(KEY_WAIT),
        };
        if !event::poll(wait).map_err(no_terminal)? {
            continue;
        }
        let effect = match event::read().map_err(no_terminal)? {
            Event::Key(key) => key_of(key).map(|key| model.key(key)),
            Event::Resize(..) => Some(TopEffect::Draw),
            Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Paste(_) => None,
        };
        match effect {
            Some(TopEffect::Quit) => return Ok(()),
            Some(TopEffect::Read) => {
                refresh(&mut model, &mut reader, &catalogue);
                stale = true;
            }
            Some(TopEffect::Draw) => stale = true,
            None => {}
        }
    }
    Ok(())
}

/// Reads what is shown anew; returns whether it differs, apart from the time of day where nothing
/// counts it.
fn refresh(model: &mut TopModel, reader: &mut SnapshotReader, catalogue: &Catalogue) -> bool {
    if let Some(console) = &mut model.console {
        let lines = reader.console(catalogue, &console.place);
        let changed = lines != console.lines;
        console.lines = lines;
        return changed;
    }
    let now = reader.read(catalogue);
    let counts = |snapshot: &snapshot::RigSnapshot| {
        snapshot.places.iter().any(|place| place.run.is_some() || place.lease.is_some())
    };
    let same = now.places == model.snapshot.places
        && now.queue == model.snapshot.queue
        && now.missing == model.snapshot.missing;
    let changed = !same || counts(&now);
    model.snapshot = now;
    changed
}

/// Reads a key; none if the view has no use for it.
fn key_of(key: KeyEvent) -> Option<TopKey> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if control => TopKey::Interrupt,
        KeyCode::Char(c) if !control => TopKey::Char(c),
        KeyCode::Up => TopKey::Up,
        KeyCode::Down => TopKey::Down,
        KeyCode::Enter => TopKey::Enter,
        KeyCode::Esc => TopKey::Escape,
        KeyCode::Backspace => TopKey::Backspace,
        _ => return None,
    })
}

/// Draws one frame as plain text, as high as the list is.
fn once(model: &TopModel) -> Result<String, Failure> {
    let width = match io::stdout().is_terminal() {
        true => ratatui::crossterm::terminal::size().map_or(PLAIN_WIDTH, |(width, _)| width),
        false => PLAIN_WIDTH,
    };
    let rows = u16::try_from(model.shown().len()).unwrap_or(u16::MAX - AROUND);
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width, rows.saturating_add(AROUND)));
    let Ok(_) = terminal.draw(|frame| draw(frame, model, false));
    let text = plain(terminal.backend().buffer());
    // The last line lists keys.
    Ok(text.trim_end().rsplit_once('\n').map_or("", |(text, _)| text).to_owned())
}
