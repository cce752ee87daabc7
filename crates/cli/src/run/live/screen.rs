//! The terminal's second screen.

use std::{
    io::{self, Stderr},
    time::Duration,
};

use ratatui::{
    Terminal,
    backend::CrosstermBackend,
    crossterm::{
        event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
        execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
    },
};

use super::view;
use crate::run::running::RunningStep;

/// A key that means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyPress {
    /// End the step, and keep what it measured.
    EndStep,
    /// End the command.
    Quit,
}

/// The second screen of the terminal at standard error; the first is back when it is dropped.
#[derive(Debug)]
pub(super) struct Screen(Terminal<CrosstermBackend<Stderr>>);

impl Screen {
    /// Changes to the second screen, and has keys sent at once.
    pub(super) fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        let entered = execute!(io::stderr(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stderr())))
            .and_then(|mut terminal| terminal.hide_cursor().map(|()| Self(terminal)));
        if entered.is_err() {
            leave();
        }
        entered
    }

    pub(super) fn draw(&mut self, step: &RunningStep, balances: &[String]) {
        // A picture that did not get out is followed by the next.
        let _ = self.0.draw(|frame| view::draw(frame, step, balances));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing better can be done for a terminal that does not take this.
        let _ = self.0.show_cursor();
        leave();
    }
}

fn leave() {
    let _ = execute!(io::stderr(), LeaveAlternateScreen);
    let _ = disable_raw_mode();
}

/// Returns the next key that means something, if one was pressed.
pub(super) fn pressed() -> Option<KeyPress> {
    while event::poll(Duration::ZERO).ok()? {
        if let Event::Key(key) = event::read().ok()?
            && let Some(key) = meaning(key)
        {
            return Some(key);
        }
    }
    None
}

fn meaning(key: KeyEvent) -> Option<KeyPress> {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        _ if key.kind != KeyEventKind::Press => None,
        KeyCode::Char('c') if is_control => Some(KeyPress::Quit),
        KeyCode::Char('q') => Some(KeyPress::Quit),
        KeyCode::Char('n') => Some(KeyPress::EndStep),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_c_is_a_key_in_raw_mode() {
        let key = |code, modifiers| meaning(KeyEvent::new(code, modifiers));
        assert_eq!(
            key(KeyCode::Char('c'), KeyModifiers::CONTROL),
            Some(KeyPress::Quit)
        );
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), None);
        assert_eq!(
            key(KeyCode::Char('n'), KeyModifiers::NONE),
            Some(KeyPress::EndStep)
        );
    }
}
