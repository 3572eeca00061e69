//! The state of the view: which places are shown, which one is selected, what a key does.
//!
//! Pure: no terminal, no files, no clock.

use jig_lab::{PlaceView, RigSnapshot};
use jig_model::PlaceName;

/// What the view shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TopModel {
    pub(super) snapshot: RigSnapshot,
    pub(super) filter: String,
    /// Keys go into the filter.
    pub(super) typing: bool,
    /// Kept by name, because places come and go.
    selected: Option<PlaceName>,
    /// The console that is shown in place of the list.
    pub(super) console: Option<OpenConsole>,
}

/// A console that is read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OpenConsole {
    pub(super) place: PlaceName,
    pub(super) lines: Vec<String>,
}

/// A key, as far as the view knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TopKey {
    Up,
    Down,
    Enter,
    Escape,
    Backspace,
    Char(char),
    /// Ctrl-C.
    Interrupt,
}

/// What the owner of the view has to do after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TopEffect {
    /// Draw it.
    Draw,
    /// Read the console that was opened.
    Read,
    /// End.
    Quit,
}

/// Longest filter.
const MOST_FILTER: usize = 64;

impl TopModel {
    /// Shows the places that a filter lets through.
    pub(super) fn new(snapshot: RigSnapshot, filter: String) -> Self {
        Self { snapshot, filter, ..Self::default() }
    }

    /// Returns the places that the filter lets through.
    pub(super) fn shown(&self) -> Vec<&PlaceView> {
        let wanted = self.filter.to_lowercase();
        let places = self.snapshot.places.iter();
        places.filter(|place| wanted.is_empty() || has_text(place, &wanted)).collect()
    }

    /// Takes in all places; tells whether the view differs, apart from the time of day where nothing
    /// counts it.
    pub(super) fn take_places(&mut self, now: RigSnapshot) -> bool {
        let counts = |snapshot: &RigSnapshot| {
            snapshot.places.iter().any(|place| place.run.is_some() || place.lease.is_some())
        };
        let known = &self.snapshot;
        let same =
            now.places == known.places && now.queue == known.queue && now.missing == known.missing;
        let changed = !same || counts(&now);
        self.snapshot = now;
        changed
    }

    /// Takes in the lines of a console; tells whether the view differs. Those of another console than the
    /// open one are left out.
    pub(super) fn take_console(&mut self, place: &PlaceName, lines: Vec<String>) -> bool {
        match self.console.as_mut().filter(|open| open.place == *place && open.lines != lines) {
            Some(open) => {
                open.lines = lines;
                true
            }
            None => false,
        }
    }

    /// Returns the position of the selected place among those shown.
    pub(super) fn cursor(&self) -> Option<usize> {
        let shown = self.shown();
        let found = shown.iter().position(|at| Some(&at.place) == self.selected.as_ref());
        found.or_else(|| (!shown.is_empty()).then_some(0))
    }

    /// Returns the place that is selected.
    fn current(&self) -> Option<&PlaceView> {
        self.shown().get(self.cursor()?).copied()
    }

    fn step(&mut self, by: isize) {
        let Some(at) = self.cursor() else { return };
        let shown = self.shown();
        let to = at.saturating_add_signed(by).min(shown.len().saturating_sub(1));
        self.selected = shown.get(to).map(|place| place.place.clone());
    }

    /// Takes in a key.
    pub(super) fn key(&mut self, key: TopKey) -> TopEffect {
        if key == TopKey::Interrupt {
            return TopEffect::Quit;
        }
        if self.typing {
            match key {
                TopKey::Char(c) if self.filter.chars().count() < MOST_FILTER => self.filter.push(c),
                TopKey::Backspace => drop(self.filter.pop()),
                TopKey::Enter => self.typing = false,
                TopKey::Escape => (self.typing, self.filter) = (false, String::new()),
                TopKey::Char(_) | TopKey::Up | TopKey::Down | TopKey::Interrupt => {}
            }
            return TopEffect::Draw;
        }
        match (key, self.console.is_some()) {
            (TopKey::Char('q') | TopKey::Escape, true) => self.console = None,
            (_, true) => {}
            (TopKey::Char('q'), false) => return TopEffect::Quit,
            (TopKey::Escape, false) => self.filter.clear(),
            (TopKey::Up | TopKey::Char('k'), false) => self.step(-1),
            (TopKey::Down | TopKey::Char('j'), false) => self.step(1),
            (TopKey::Char('/'), false) => self.typing = true,
            (TopKey::Enter, false) => {
                if let Some(place) = self.current().map(|at| at.place.clone()) {
                    self.console = Some(OpenConsole { place, lines: Vec::new() });
                    return TopEffect::Read;
                }
            }
            (TopKey::Char(_) | TopKey::Backspace | TopKey::Interrupt, false) => {}
        }
        TopEffect::Draw
    }
}

/// Tells whether any column of a place has a text, in lower case.
fn has_text(place: &PlaceView, wanted: &str) -> bool {
    let run = place.run.as_ref().map(|run| run.id.as_str());
    let lease = place.lease.as_ref().map(|lease| lease.owner.as_str());
    let health = place.health.map(jig_rig::health::HealthState::as_str);
    let columns = [
        Some(place.place.as_str()),
        Some(&place.board),
        health,
        lease,
        place.in_use_by.as_deref(),
        run,
        place.console.as_deref(),
    ];
    columns.iter().flatten().any(|text| text.to_lowercase().contains(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::top::sample::sample_model;

    fn selected(model: &TopModel) -> String {
        model.current().map(|place| place.place.to_string()).unwrap_or_default()
    }

    #[test]
    fn arrows_move_within_the_list_and_follow_the_place() {
        let mut model = sample_model();
        assert_eq!(selected(&model), "bench-1");
        model.key(TopKey::Up);
        assert_eq!(selected(&model), "bench-1");
        for _ in 0..5 {
            model.key(TopKey::Down);
        }
        assert_eq!(selected(&model), "radio");
        model.snapshot.places.remove(0);
        assert_eq!((selected(&model).as_str(), model.cursor()), ("radio", Some(1)));
        model.snapshot.places.clear();
        assert_eq!(model.key(TopKey::Enter), TopEffect::Draw);
        assert_eq!(model.cursor(), None);
    }

    #[test]
    fn a_filter_is_typed_kept_and_cleared() {
        let mut model = sample_model();
        for key in "/RADIO".chars().map(TopKey::Char) {
            assert_eq!(model.key(key), TopEffect::Draw);
        }
        assert_eq!(model.shown().len(), 1);
        // A letter of the filter is no command.
        assert_eq!(model.key(TopKey::Char('q')), TopEffect::Draw);
        assert!(model.shown().is_empty());
        model.key(TopKey::Backspace);
        model.key(TopKey::Enter);
        assert_eq!((model.shown().len(), model.typing), (1, false));
        model.key(TopKey::Escape);
        assert_eq!(model.shown().len(), 3);
        model.filter = "anna".to_owned();
        assert_eq!(selected(&model), "bench-2");
    }

    #[test]
    fn enter_opens_a_console_and_q_closes_it_first() {
        let mut model = sample_model();
        assert_eq!(model.key(TopKey::Enter), TopEffect::Read);
        assert_eq!(model.console.as_ref().unwrap().place.as_str(), "bench-1");
        // It is read only: keys do nothing.
        assert_eq!(model.key(TopKey::Char('x')), TopEffect::Draw);
        assert_eq!(model.key(TopKey::Char('q')), TopEffect::Draw);
        assert!(model.console.is_none());
        assert_eq!(model.key(TopKey::Char('q')), TopEffect::Quit);
        assert_eq!(model.key(TopKey::Interrupt), TopEffect::Quit);
    }
}
