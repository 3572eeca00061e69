//! `jig top`: all places at a glance, live.
//!
//! # Design
//! *Everything is read from files*, once a second, at the rig's host, so it works with and without a
//! service and disturbs neither. What did not change is not drawn: an idle view costs one look a second.

mod draw;
mod model;
#[cfg(test)]
mod sample;
mod source;

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use jig_model::{Fault, exit};
use jig_rig::workflow::CancelToken;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use self::draw::{AROUND, draw, plain};
use self::model::{TopEffect, TopKey, TopModel};
use self::source::TopSource;
use super::rig::{elsewhere, stopped};
use super::runtime::until_signalled;
use crate::args::{Common, TopArgs};
use crate::failure::Failure;
use crate::render::Screen;

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
    let rig = elsewhere(common)?;
    until_signalled(async |cancel| {
        let opened = tokio::select! {
            opened = TopSource::open(common, rig) => opened,
            () = cancel.cancelled() => Err(stopped()),
        };
        let (source, snapshot) = opened?;
        let model = TopModel::new(snapshot, args.filter.unwrap_or_default());
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
        let colour = screen.out_paint().on;
        let watched = tokio::task::spawn_blocking(move || {
            // Left on any way out of here.
            let mut terminal = ratatui::try_init().map_err(no_terminal)?;
            let ended = watch(&mut terminal, source, model, colour, &cancel);
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
    mut source: TopSource,
    mut model: TopModel,
    colour: bool,
    cancel: &CancelToken,
) -> Result<(), Failure> {
    let (mut drawn, mut stale) = (None::<Instant>, true);
    while !cancel.is_cancelled() {
        stale |= source.look(&mut model)?;
        let rested = drawn.is_none_or(|at: Instant| at.elapsed() >= FRAME);
        if stale && rested {
            terminal.draw(|frame| draw(frame, &model, colour)).map_err(no_terminal)?;
            (drawn, stale) = (Some(Instant::now()), false);
        }
        let wait = if stale { FRAME } else { source.rests().min(KEY_WAIT) };
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
                source.read(&mut model);
                stale = true;
            }
            Some(TopEffect::Draw) => stale = true,
            None => {}
        }
    }
    Ok(())
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
