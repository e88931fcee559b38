//! The terminal: drawing, keys, and that it is afterwards what it was.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use tokio::time::{MissedTickBehavior, interval};

use ft_agent::control::watched;
use ft_agent::top::draw::{Screen, draw};
use ft_agent::top::{Top, View};

use super::Result;
use super::recorder::Recording;

/// How long a message stays.
const MESSAGE: Duration = Duration::from_secs(30);

/// How long a key that is there may take to be read; for no time at all crossterm does not look.
const KEY: Duration = Duration::from_millis(1);

/// The terminal as it was, also when what draws on it is dropped or panics.
struct Restored(Option<DefaultTerminal>);

impl Drop for Restored {
    fn drop(&mut self) {
        if ratatui::try_restore().is_err() {
            // It is gone, and there is nowhere to say so; its destructor would try, and panic.
            std::mem::forget(self.0.take());
        }
    }
}

/// What a key asks for.
enum Key {
    Quit,
    Freeze,
    Snapshot,
    /// The terminal has changed, or the key means nothing.
    Other,
}

/// Draws until the user quits.
pub(super) async fn watch(top: Top, recording: &mut Recording, interval: Duration) -> Result<()> {
    let mut terminal = Restored(Some(ratatui::try_init()?));
    match &mut terminal.0 {
        Some(terminal) => run(terminal, top, recording, interval).await,
        None => Ok(()),
    }
}

async fn run(
    terminal: &mut DefaultTerminal,
    mut top: Top,
    recording: &mut Recording,
    distance: Duration,
) -> Result<()> {
    // Another descriptor of the same terminal: the reader of keys has its own.
    let input = watched(io::stdin().as_fd().try_clone_to_owned()?)?;
    let mut looks = interval(distance);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut screen = Screen {
        subject: recording.subject.clone(),
        is_coloured: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        ..Screen::default()
    };
    let mut view = View::default();
    // A recorder may be too busy to answer at once.
    let mut has_snapshots = None;
    let mut told = Instant::now();
    loop {
        tokio::select! {
            _ = looks.tick() => {
                if !screen.is_frozen && !view.is_over {
                    view = top.refresh()?;
                }
                has_snapshots = has_snapshots.or_else(|| recording.has_snapshots());
                screen.has_snapshots = has_snapshots.unwrap_or(false);
            }
            message = recording.message() => (screen.message, told) = (message, Instant::now()),
            ready = input.readable() => {
                // Before what is there is read: what comes meanwhile makes it ready again.
                ready?.clear_ready();
                while event::poll(KEY)? {
                    match key(&event::read()?) {
                        Key::Quit => return Ok(()),
                        Key::Freeze => screen.is_frozen = !screen.is_frozen,
                        Key::Snapshot if !view.is_over => {
                            recording.take_snapshot();
                            (screen.message, told) = ("taking a snapshot".into(), Instant::now());
                        }
                        Key::Snapshot | Key::Other => {}
                    }
                }
            }
        }
        if told.elapsed() > MESSAGE {
            screen.message.clear();
        }
        terminal.draw(|frame| draw(frame, &view, &screen))?;
    }
}

fn key(event: &Event) -> Key {
    let Event::Key(key) = event else { return Key::Other };
    if key.kind != KeyEventKind::Press {
        return Key::Other;
    }
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Key::Quit,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Key::Quit,
        KeyCode::Char(' ' | 'f') => Key::Freeze,
        KeyCode::Char('s') => Key::Snapshot,
        _ => Key::Other,
    }
}
