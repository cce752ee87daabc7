//! Output in a terminal, which is a pseudoterminal here.

mod common;

use std::{
    fs::File,
    io::{Read, Write},
    path::Path,
    process::Stdio,
};

use common::{Server, netping};
use nix::{
    pty::{Winsize, openpty},
    sys::termios::tcgetattr,
};

/// Runs netping in a terminal so many characters wide; returns its exit code and all that it wrote.
/// `answer` gets what there is so far, and returns keys to press. At the end the terminal has its settings again.
fn in_terminal(
    columns: u16,
    folder: &Path,
    args: &[&str],
    mut answer: impl FnMut(&str) -> Option<&'static str>,
) -> (Option<i32>, String) {
    let size = Winsize {
        ws_row: 30,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let terminal = openpty(Some(&size), None).unwrap();
    let settings = tcgetattr(&terminal.slave).unwrap();
    let other = || Stdio::from(terminal.slave.try_clone().unwrap());
    let mut child = netping()
        .args(args)
        .current_dir(folder)
        .env_remove("COLUMNS")
        .stdin(other())
        .stdout(other())
        .stderr(other())
        .spawn()
        .unwrap();
    drop(terminal.slave);
    let mut master = File::from(terminal.master);
    let (mut text, mut part) = (String::new(), [0; 4096]);
    // At the end of the last process that has the other side, reading is an error.
    while let Ok(count @ 1..) = master.read(&mut part) {
        text += &String::from_utf8_lossy(&part[..count]);
        if let Some(keys) = answer(&text) {
            master.write_all(keys.as_bytes()).unwrap();
        }
    }
    assert_eq!(tcgetattr(&master).unwrap(), settings, "{text}");
    (child.wait().unwrap().code(), text)
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let server = Server::start("tokio", &[]);
    let folder = tempfile::tempdir().unwrap();
    for columns in [40, 57, 80, 200] {
        let run = |args: &[&str]| {
            let (code, text) = in_terminal(columns, folder.path(), args, |_| None);
            assert_eq!(code, Some(0), "{text}");
            for line in text.lines().filter(|line| !line.contains('\r')) {
                let styles = ["\x1b[1m", "\x1b[31m", "\x1b[0m"];
                let shown = styles
                    .iter()
                    .fold(line.to_owned(), |line, style| line.replace(style, ""));
                let width = shown.chars().count();
                assert!(width <= usize::from(columns), "{columns}: {width}\n{text}");
            }
        };
        let fixed = ["-d", "300ms", "--warmup", "0s", "--progress", "none"];
        let trials = ["throughput", &server.url, "-c", "1,2", "--trials", "2"];
        run(&[&trials, &fixed[..], &["--json", "run.json"]].concat());
        run(&["report", "run.json"]);
        run(&["compare", "run.json", "run.json"]);
    }
}

/// Runs a step on the full screen, and presses a key once it measures.
fn on_the_full_screen(key: &'static str) -> (Option<i32>, String) {
    let server = Server::start("tokio", &[]);
    let folder = tempfile::tempdir().unwrap();
    let load = ["throughput", &server.url, "-d", "60s", "--warmup", "0s"];
    let args = [&load[..], &["--live"]].concat();
    let mut is_pressed = false;
    let (code, text) = in_terminal(100, folder.path(), &args, |text| {
        let is_due = text.contains("measuring") && !std::mem::replace(&mut is_pressed, true);
        is_due.then_some(key)
    });
    let (_, after) = text
        .split_once("\x1b[?1049h\x1b[?25l")
        .expect("the second screen");
    let (_, results) = after
        .split_once("\x1b[?25h\x1b[?1049l")
        .expect("the first again, with a cursor");
    (code, results.to_owned())
}

#[test]
fn the_full_screen_ends_a_step_at_a_key_and_leaves() {
    let (code, results) = on_the_full_screen("n");
    assert_eq!(code, Some(0), "{results}");
    assert!(results.contains("req/s"), "{results}");
}

#[test]
fn the_full_screen_ends_the_command_at_a_key_and_leaves() {
    for key in ["q", "\x03"] {
        let (code, results) = on_the_full_screen(key);
        assert_eq!(code, Some(130), "{results}");
    }
}
