//! Bytes on their way to a plugin: written straight through while it reads, kept while it does not.

use std::io;

use super::stdio::ToPlugin;

/// While more than this waits to be written, no further calls are taken on.
const BACKLOG_MAX: usize = 256 * 1024;

/// A buffer that has grown beyond this is given back once it is empty.
const CAPACITY_KEPT: usize = 64 * 1024;

/// How writing went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// All is written, or waits for the plugin to read.
    Fine,
    /// The plugin has closed its stdin.
    Broken,
}

/// The stdin of a plugin and what is still to be written to it.
#[derive(Debug)]
pub(crate) struct Outbound {
    /// `None` once it was closed, by us or by the plugin.
    stdin: Option<ToPlugin>,
    buffer: Vec<u8>,
    written: usize,
}

impl Outbound {
    pub(crate) fn new(stdin: ToPlugin) -> Outbound {
        Outbound { stdin: Some(stdin), buffer: Vec::new(), written: 0 }
    }

    /// Where to append whole frames.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    pub(crate) fn has_room(&self) -> bool {
        self.backlog() < BACKLOG_MAX
    }

    /// Whether [`Outbound::writable`] is worth waiting for.
    pub(crate) fn waits(&self) -> bool {
        self.stdin.is_some() && self.backlog() > 0
    }

    /// Waits until the plugin has read some of what was written.
    ///
    /// # Cancel safety
    /// Safe: it only waits.
    pub(crate) async fn writable(&self) {
        if let Some(stdin) = &self.stdin {
            // An error shows again at the next write.
            let _ready = stdin.writable().await;
        }
    }

    /// Writes what can be written without waiting.
    pub(crate) fn flush(&mut self) -> Flushed {
        let Some(stdin) = &mut self.stdin else {
            self.forget();
            return Flushed::Fine;
        };
        while self.written < self.buffer.len() {
            match stdin.try_write(&self.buffer[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Flushed::Fine,
                Err(_closed) => {
                    // The plugin reads no more; that it ended, or did not, is learnt elsewhere.
                    self.stdin = None;
                    self.forget();
                    return Flushed::Broken;
                }
            }
        }
        self.forget();
        Flushed::Fine
    }

    /// Closes stdin, after what is already on its way if the plugin reads it now.
    pub(crate) fn close(&mut self) {
        self.flush();
        self.stdin = None;
        self.forget();
    }

    fn backlog(&self) -> usize {
        self.buffer.len() - self.written
    }

    fn forget(&mut self) {
        self.buffer.clear();
        self.written = 0;
        if self.buffer.capacity() > CAPACITY_KEPT {
            self.buffer = Vec::new();
        }
    }
}
