//! Draws the view: a function of its state.

use jig_lab::PlaceView;
use jig_rig::health::HealthState;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};

use super::model::{OpenConsole, TopModel};
use crate::render::rest;

/// Height of what stands around the list: title, heads of the columns, keys.
pub(super) const AROUND: u16 = 3;

/// Draws the view.
pub(super) fn draw(frame: &mut Frame<'_>, model: &TopModel, colour: bool) {
    let [title, middle, keys] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(Line::from(heading(model)).style(Modifier::BOLD), title);
    match &model.console {
        Some(console) => draw_console(frame, middle, console),
        None => draw_places(frame, middle, model, colour),
    }
    frame.render_widget(Line::from(help(model)), keys);
}

fn heading(model: &TopModel) -> String {
    let snapshot = &model.snapshot;
    if let Some(console) = &model.console {
        return format!("{}: console, read only", console.place);
    }
    let count = |state| snapshot.places.iter().filter(|at| at.health == Some(state)).count();
    let mut text = format!("{} places", snapshot.places.len());
    for state in HealthState::ALL {
        match count(*state) {
            0 => {}
            n => text.push_str(&format!(", {n} {state}")),
        }
    }
    let running = snapshot.places.iter().filter(|at| at.run.is_some()).count();
    text.push_str(&format!("; {running} running; {} wait for a lease", snapshot.queue));
    for missing in &snapshot.missing {
        text.push_str(&format!("; not read: {missing}"));
    }
    text
}

fn help(model: &TopModel) -> String {
    match (&model.console, model.typing, model.filter.as_str()) {
        (Some(_), ..) => "q: back".to_owned(),
        (None, true, filter) => format!("/{filter}_  Enter: keep, Esc: all places"),
        (None, false, "") => "arrows: select, Enter: console, /: filter, q: quit".to_owned(),
        (None, false, filter) => format!("/{filter}  Esc: all places, Enter: console, q: quit"),
    }
}

fn draw_places(frame: &mut Frame<'_>, area: Rect, model: &TopModel, colour: bool) {
    let rows = model.shown().into_iter().map(|place| row(place, model, colour));
    let widths = [
        Constraint::Max(18),
        Constraint::Max(16),
        Constraint::Length(11),
        Constraint::Max(22),
        Constraint::Length(11),
        Constraint::Length(2),
        Constraint::Length(28),
        Constraint::Fill(1),
    ];
    let heads =
        ["PLACE", "BOARD", "HEALTH", "LEASED OR USED BY", "FOR", "Q", "RUN", "LAST CONSOLE LINE"];
    let table = Table::new(rows, widths)
        .header(Row::new(heads).style(Modifier::BOLD))
        .row_highlight_style(Modifier::REVERSED);
    let mut state = TableState::default().with_selected(model.cursor());
    frame.render_stateful_widget(table, area, &mut state);
}

fn row<'m>(place: &'m PlaceView, model: &TopModel, colour: bool) -> Row<'m> {
    let now = model.snapshot.at;
    let (user, left) = match (&place.lease, &place.in_use_by) {
        (Some(lease), _) => {
            let comment = lease.comment.iter().map(|comment| format!(" ({comment})"));
            let user = lease.owner.clone() + &comment.collect::<String>();
            (user, lease.until.map_or_else(String::new, |until| rest(now, until)))
        }
        (None, Some(by)) => (by.clone(), String::new()),
        (None, None) => (String::new(), String::new()),
    };
    let run = place.run.as_ref().map_or_else(String::new, |run| {
        let time = run.started.map(|started| format!(" {}", rest(started, now)));
        format!("{}{}", run.id, time.unwrap_or_default())
    });
    let health = place.health.map_or("unknown", HealthState::as_str);
    let look = match place.health.filter(|_| colour) {
        Some(HealthState::Healthy) => Style::new().fg(Color::Green),
        Some(HealthState::Suspect) => Style::new().fg(Color::Yellow),
        Some(HealthState::Unhealthy | HealthState::Quarantined) => Style::new().fg(Color::Red),
        None => Style::new(),
    };
    let waiting = if place.waiting == 0 { String::new() } else { place.waiting.to_string() };
    // Why a place is out of service says more than what it printed.
    let last = match place.health.is_none_or(HealthState::usable) {
        false if !place.why.is_empty() => place.why.as_str(),
        _ => place.console.as_deref().unwrap_or_default(),
    };
    Row::new([
        Cell::new(place.place.as_str()),
        Cell::new(place.board.as_str()),
        Cell::new(Span::styled(health, look)),
        Cell::new(user),
        Cell::new(left),
        Cell::new(waiting),
        Cell::new(run),
        Cell::new(last),
    ])
}

/// Shows the last lines, the newest at the bottom.
fn draw_console(frame: &mut Frame<'_>, area: Rect, console: &OpenConsole) {
    let room = usize::from(area.height);
    let from = console.lines.len().saturating_sub(room);
    let shown = console.lines.get(from..).unwrap_or_default();
    let lines: Vec<Line<'_>> = match shown {
        [] => vec![Line::from("nothing is logged of this console")],
        shown => shown.iter().map(|line| Line::from(line.as_str())).collect(),
    };
    frame.render_widget(Paragraph::new(lines), area);
}

/// Returns what a frame shows, a line each, without spaces at their ends.
pub(super) fn plain(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width).max(1);
    let lines = buffer.content.chunks(width).map(|line| {
        let text: String = line.iter().map(|cell| cell.symbol()).collect();
        text.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::commands::top::model::TopKey;
    use crate::commands::top::sample::sample_model;

    fn drawn(model: &TopModel, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, model, false)).unwrap();
        plain(terminal.backend().buffer())
    }

    #[test]
    fn a_frame_shows_health_leases_runs_and_consoles() {
        let text = drawn(&sample_model(), 160, 6);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "3 places, 1 healthy, 1 suspect, 1 quarantined; 1 running; 2 wait for a lease"
        );
        assert!(lines[1].starts_with("PLACE"), "{text}");
        assert!(lines[2].contains("20231114-221320-aaaa 65 s"), "{text}");
        assert!(lines[2].ends_with("3 Tests 0 Failures \\x1b[31m"), "{text}");
        for word in ["bench-2", "suspect", "anna (antenna)", "60 min", "  2"] {
            assert!(lines[3].contains(word), "{word}: {text}");
        }
        assert!(lines[4].ends_with("three proofs failed"), "{text}");
        assert_eq!(lines[5], "arrows: select, Enter: console, /: filter, q: quit");
    }

    #[test]
    fn a_filter_and_a_console_take_their_place() {
        let mut model = sample_model();
        for key in "/radio".chars().map(TopKey::Char) {
            model.key(key);
        }
        let text = drawn(&model, 160, 6);
        assert!(!text.contains("bench-1") && text.contains("/radio_"), "{text}");
        model.key(TopKey::Escape);
        model.key(TopKey::Enter);
        assert!(drawn(&model, 160, 6).contains("nothing is logged"));
        let lines = (0..100).map(|number| format!("line {number}")).collect();
        model.console.as_mut().unwrap().lines = lines;
        let text = drawn(&model, 160, 6);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "bench-1: console, read only");
        assert_eq!(lines[1..5], ["line 96", "line 97", "line 98", "line 99"]);
    }

    #[test]
    fn a_terminal_of_any_size_is_drawn() {
        let model = sample_model();
        for (width, height) in [(1, 1), (1, 50), (10, 2), (300, 1), (20, 3)] {
            drawn(&model, width, height);
        }
    }
}
