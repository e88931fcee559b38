//! The terminal: drawing, keys, and that it is afterwards what it was.

use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use ft_agent::signals;
use ft_agent::top::draw::{Screen, draw};
use ft_agent::top::{Top, View};

use super::recorder::Recording;
use super::{LOOK, Result};

/// How long a message stays.
const MESSAGE: Duration = Duration::from_secs(30);

/// Draws until the user quits, or a signal comes.
pub(super) fn watch(top: Top, recording: &mut Recording, interval: Duration) -> Result<()> {
    // Also when this panics: the hook that this sets is the first to run.
    let mut terminal = ratatui::try_init()?;
    let watched = run(&mut terminal, top, recording, interval);
    if ratatui::try_restore().is_err() {
        // It is gone, and there is nowhere to say so; its destructor would try, and panic.
        std::mem::forget(terminal);
    }
    watched
}

fn run(
    terminal: &mut DefaultTerminal,
    mut top: Top,
    recording: &mut Recording,
    interval: Duration,
) -> Result<()> {
    let mut screen = Screen {
        subject: recording.subject.clone(),
        has_snapshots: recording.has_snapshots(),
        is_coloured: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        ..Screen::default()
    };
    let mut view = View::default();
    let mut told = Instant::now();
    let mut next = Instant::now();
    let mut is_dirty = true;
    while signals::came() == 0 {
        if Instant::now() >= next {
            next = Instant::now() + interval;
            if !screen.is_frozen && !view.is_over {
                view = top.refresh()?;
                is_dirty = true;
            }
        }
        if let Some(message) = recording.messages().last() {
            (screen.message, told, is_dirty) = (message, Instant::now(), true);
        }
        if !screen.message.is_empty() && told.elapsed() > MESSAGE {
            screen.message.clear();
            is_dirty = true;
        }
        if std::mem::take(&mut is_dirty) {
            terminal.draw(|frame| draw(frame, &view, &screen))?;
        }
        let wait = next.saturating_duration_since(Instant::now()).min(LOOK);
        if !event::poll(wait)? {
            continue;
        }
        is_dirty = true;
        let Event::Key(key) = event::read()? else { continue };
        if key.kind != KeyEventKind::Press {
            continue;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => break,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => break,
            KeyCode::Char(' ' | 'f') => screen.is_frozen = !screen.is_frozen,
            KeyCode::Char('s') if !view.is_over => {
                recording.take_snapshot()?;
                (screen.message, told) = ("taking a snapshot".into(), Instant::now());
            }
            _ => {}
        }
    }
    Ok(())
}
