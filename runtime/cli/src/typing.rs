//! Lines typed at the terminal, read only while somebody waits for one.

use std::io::{self, PipeReader, PipeWriter};
use std::sync::mpsc as std_mpsc;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::mpsc;

/// Bytes taken off the terminal at once; a line is at most so long there.
const CHUNK: usize = 4096;

/// A terminal that lines are read from. What nobody waited for is left for whoever reads next.
pub(crate) struct Typist {
    wanted: std_mpsc::Sender<()>,
    lines: mpsc::Receiver<Option<String>>,
    /// Whether a line was asked for and has not come yet.
    waits: bool,
    /// Closed with this, whereupon the thread stops reading.
    _stays: PipeWriter,
}

impl Typist {
    /// Takes a thread for it, since reading a terminal waits; without one no line ever comes.
    pub(crate) fn begin() -> io::Result<Typist> {
        let (gone, stays) = io::pipe()?;
        let (wanted, orders) = std_mpsc::channel();
        let (sender, lines) = mpsc::channel(1);
        thread::Builder::new().name("plugd-typed".to_owned()).spawn(move || {
            let mut typed = Vec::new();
            while orders.recv().is_ok() {
                let Some(line) = read_line(&gone, &mut typed) else { return };
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        })?;
        Ok(Typist { wanted, lines, waits: false, _stays: stays })
    }

    /// The next line without its end; `None` is the end of input, which may be followed by more.
    ///
    /// Cancel safe: a line that comes later is the next one's.
    pub(crate) async fn line(&mut self) -> Option<String> {
        if !self.waits && self.wanted.send(()).is_err() {
            return None;
        }
        self.waits = true;
        let line = self.lines.recv().await;
        self.waits = false;
        line.flatten()
    }
}

/// Reads on to the end of a line; `None` once nobody waits any more.
fn read_line(gone: &PipeReader, typed: &mut Vec<u8>) -> Option<Option<String>> {
    let stdin = io::stdin();
    loop {
        if let Some(end) = typed.iter().position(|byte| *byte == b'\n') {
            let rest = typed.split_off(end + 1);
            return Some(Some(text(&std::mem::replace(typed, rest))));
        }
        let mut either = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(gone, PollFlags::IN)];
        match poll(&mut either, None) {
            Ok(_) if !either[1].revents().is_empty() => return None,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Some(None),
        }
        if either[0].revents().is_empty() {
            continue;
        }
        let mut chunk = [0; CHUNK];
        match rustix::io::read(&stdin, &mut chunk) {
            // Ctrl-D after text ends that as a line.
            Ok(0) if !typed.is_empty() => return Some(Some(text(&std::mem::take(typed)))),
            Ok(0) => return Some(None),
            Ok(count) => typed.extend(chunk.iter().take(count)),
            Err(Errno::INTR) => {}
            Err(_) => return Some(None),
        }
    }
}

fn text(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let line = line.strip_suffix('\n').unwrap_or(&line);
    line.strip_suffix('\r').unwrap_or(line).to_owned()
}
