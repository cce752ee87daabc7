//! The terminal's second screen.

use std::{
    env,
    fmt::Write as _,
    fs::File,
    io::{self, IsTerminal, Read, Write},
    os::fd::AsFd,
};

use netping_report::table::is_unicode;
use nix::{
    libc::{VMIN, VTIME},
    sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr},
};
use terminal_size::{Height, Width, terminal_size_of};

use super::view;
use crate::run::running::RunningStep;

/// The second screen without a cursor, and the first one with it again (xterm's "Control Sequences").
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";

const CLEAR: &str = "\x1b[2J";

/// The byte of Ctrl-C where it is no signal.
const CONTROL_C: u8 = 3;
const ESCAPE: u8 = 0x1b;

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
pub(super) struct Screen {
    keyboard: File,
    /// The settings of the terminal before.
    before: Termios,
    /// Columns and rows.
    size: [u16; 2],
    shown: Vec<String>,
}

impl Screen {
    /// Changes to the second screen, and has keys sent at once.
    pub(super) fn enter() -> io::Result<Self> {
        let stdin = io::stdin();
        let keyboard = if stdin.is_terminal() {
            File::from(stdin.as_fd().try_clone_to_owned()?)
        } else {
            File::open("/dev/tty")?
        };
        let before = tcgetattr(&keyboard)?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        // A read returns at once, also if no key was pressed.
        (raw.control_chars[VMIN], raw.control_chars[VTIME]) = (0, 0);
        tcsetattr(&keyboard, SetArg::TCSANOW, &raw)?;
        let screen = Self {
            keyboard,
            before,
            size: [0; 2],
            shown: Vec::new(),
        };
        put(ENTER)?;
        Ok(screen)
    }

    /// Draws a step on a screen of the size that the terminal has now.
    pub(super) fn draw(&mut self, step: &RunningStep, balances: &[String]) {
        let Some((Width(width), Height(height))) = terminal_size_of(io::stderr()) else {
            return;
        };
        let mut canvas = view::draw(width.into(), height.into(), step, balances);
        if !is_unicode() {
            canvas.spell();
        }
        let mut text = String::new();
        if self.size != [width, height] {
            self.size = [width, height];
            self.shown.clear();
            text += CLEAR;
        }
        let rows = canvas.rows(env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()));
        text += &update(&self.shown, &rows);
        // A picture that did not get out is followed by a whole one.
        self.shown = put(&text).map_or_else(|_| Vec::new(), |()| rows);
    }

    /// Returns the meaning of the keys that were pressed since it was asked last.
    pub(super) fn pressed(&mut self) -> Option<KeyPress> {
        let mut typed = [0; 256];
        let count = self.keyboard.read(&mut typed).ok()?;
        meaning(&typed[..count])
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing better can be done for a terminal that does not take this.
        let _ = put(LEAVE);
        let _ = tcsetattr(&self.keyboard, SetArg::TCSANOW, &self.before);
    }
}

/// Writes to the terminal in one go.
fn put(text: &str) -> io::Result<()> {
    io::stderr().write_all(text.as_bytes())
}

/// Returns what changes the rows of the screen: those that are the same are not sent again.
fn update(shown: &[String], rows: &[String]) -> String {
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        if shown.get(index) != Some(row) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\x1b[{};1H{row}", index + 1);
        }
    }
    text
}

/// Returns the meaning of keys: if one ends the command, no other counts.
fn meaning(mut typed: &[u8]) -> Option<KeyPress> {
    let mut meant = None;
    loop {
        typed = match typed {
            [] => return meant,
            // Arrows and the like send `ESC [ 1 ; 5 A` or `ESC O A`: no letter of that was typed.
            [ESCAPE, b'[' | b'O', rest @ ..] => {
                let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte));
                end.map_or(&[], |end| &rest[end + 1..])
            }
            [CONTROL_C | b'q', ..] => return Some(KeyPress::Quit),
            [b'n', rest @ ..] => {
                meant = Some(KeyPress::EndStep);
                rest
            }
            [_, rest @ ..] => rest,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_a_meaning_and_parts_of_other_keys_have_none() {
        let (end_step, quit) = (Some(KeyPress::EndStep), Some(KeyPress::Quit));
        for (typed, meant) in [
            ("\x03", quit),
            ("q", quit),
            ("n", end_step),
            ("xn ", end_step),
            ("nq", quit),
            ("\x1bn", end_step),
            ("\x1b[A\x1b[1;5Cq", quit),
            ("\x1bOBn", end_step),
            ("\x1b[n\x1bOq\x1b[1;5n", None),
            ("\x1b[1;5", None),
            ("cNQ\x1b", None),
            ("", None),
        ] {
            assert_eq!(meaning(typed.as_bytes()), meant, "{typed:?}");
        }
    }

    #[test]
    fn only_rows_that_change_are_sent() {
        let rows = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(update(&[], &rows("a b")), "\x1b[1;1Ha\x1b[2;1Hb");
        assert_eq!(update(&rows("a b c"), &rows("a x c")), "\x1b[2;1Hx");
        assert_eq!(update(&rows("a b"), &rows("a b")), "");
    }
}
