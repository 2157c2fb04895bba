//! Lines from a blocking stream, handed out without a copy.

use std::io::{self, Read};

/// Room for one read; as much as a pipe holds by default.
const READ_ROOM: usize = 64 * 1024;

/// Splits what a blocking stream gives into lines.
///
/// Lines may be of any length: only programs of our own write them.
pub struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    scanned: usize,
    end: usize,
}

impl<R: Read> Lines<R> {
    /// Lines of this stream.
    pub fn new(source: R) -> Lines<R> {
        Lines { source, buffer: vec![0; 2 * READ_ROOM], start: 0, scanned: 0, end: 0 }
    }

    /// The next line with its newline, or `None` when the stream has ended.
    ///
    /// # Errors
    /// Whatever reading gave.
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            if let Some(offset) = memchr::memchr(b'\n', &self.buffer[self.scanned..self.end]) {
                let line = self.start..self.scanned + offset + 1;
                self.start = line.end;
                self.scanned = line.end;
                return Ok(Some(&self.buffer[line]));
            }
            self.scanned = self.end;
            if self.fill()? == 0 {
                return Ok(None);
            }
        }
    }

    /// Whether a whole line has already been read.
    pub fn has_line(&self) -> bool {
        memchr::memchr(b'\n', &self.buffer[self.scanned..self.end]).is_some()
    }

    fn fill(&mut self) -> io::Result<usize> {
        if self.start > 0 && (self.start == self.end || self.buffer.len() - self.end < READ_ROOM) {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.scanned -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < READ_ROOM {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes in pieces of `piece`.
    struct Pieces<'a> {
        bytes: &'a [u8],
        piece: usize,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let count = self.piece.min(room.len()).min(self.bytes.len());
            room[..count].copy_from_slice(&self.bytes[..count]);
            self.bytes = &self.bytes[count..];
            Ok(count)
        }
    }

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let long = "y".repeat(300_000);
        let long = format!("{long}\n");
        let text = format!("a\nbc\n\n{long}last\n");
        for piece in [1, 7, 65_536, 1_000_000] {
            let mut lines = Lines::new(Pieces { bytes: text.as_bytes(), piece });
            for expected in ["a\n", "bc\n", "\n", &long, "last\n"] {
                assert_eq!(lines.next_line().expect("readable"), Some(expected.as_bytes()));
            }
            assert_eq!(lines.next_line().expect("readable"), None);
        }
    }

    #[test]
    fn a_line_already_read_is_known() {
        let mut lines = Lines::new(Pieces { bytes: b"one\ntwo\nthr", piece: 99 });
        assert!(!lines.has_line(), "nothing was read yet");
        lines.next_line().expect("readable");
        assert!(lines.has_line());
        lines.next_line().expect("readable");
        assert!(!lines.has_line());
    }
}
