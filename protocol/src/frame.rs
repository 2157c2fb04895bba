//! Bytes to frames: one message per line, split on 0x0A before anything is decoded.

/// A frame is at most this long by default, its newline not counted.
pub const DEFAULT_FRAME_LIMIT: usize = 16 * 1024 * 1024;

/// How much of an oversized frame is kept, to look for its id.
const HEAD_KEPT: usize = 4 * 1024;

/// The least room offered to a read.
const READ_ROOM: usize = 8 * 1024;

/// An emptied buffer larger than this is given back.
const CAPACITY_KEPT: usize = 2 * 1024 * 1024;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Splits a byte stream into frames of bounded length.
///
/// Read into [`Decoder::room`], then take frames with [`Decoder::next_frame`] until it returns
/// `None`. `\r\n` line ends and a byte order mark before the first message are taken off; blank
/// lines are passed over. A line above the limit is reported as soon as it is, and the rest of it
/// skipped in bounded memory.
#[derive(Debug)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Where the first frame not yet handed out begins.
    start: usize,
    /// Up to where no newline was found.
    scanned: usize,
    limit: usize,
    /// Inside an oversized line whose end has not been seen.
    skipping: bool,
    /// Holds the head that the last `TooLong` lends out.
    head: Vec<u8>,
    at_stream_start: bool,
}

/// One line of the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line without its line end; never blank.
    Line(&'a [u8]),
    /// A line above the limit, of which only the beginning was kept.
    TooLong {
        /// The first bytes of the line, at most 4 KiB.
        head: &'a [u8],
    },
}

impl Decoder {
    /// A decoder that refuses lines of more than `limit` bytes.
    pub fn new(limit: usize) -> Decoder {
        Decoder {
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            limit,
            skipping: false,
            head: Vec::new(),
            at_stream_start: true,
        }
    }

    /// The buffer to append bytes to, with room for a read.
    ///
    /// Invalidates nothing: frames already complete stay available.
    pub fn room(&mut self) -> &mut Vec<u8> {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            if self.buffer.capacity() > CAPACITY_KEPT {
                self.buffer.shrink_to(READ_ROOM);
            }
            self.start = 0;
            self.scanned = 0;
        } else if self.start > 0 && self.buffer.capacity() - self.buffer.len() < READ_ROOM {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        if self.buffer.capacity() - self.buffer.len() < READ_ROOM {
            self.buffer.reserve(READ_ROOM);
        }
        &mut self.buffer
    }

    /// Whether every byte that came has been handed out.
    pub fn is_empty(&self) -> bool {
        self.start == self.buffer.len()
    }

    /// Whether it holds room for bytes.
    pub fn has_buffer(&self) -> bool {
        self.buffer.capacity() > 0
    }

    /// How many bytes have come and were not handed out.
    pub fn buffered(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Gives the buffer back while nothing is in it.
    pub fn release(&mut self) {
        if self.is_empty() {
            self.buffer = Vec::new();
            (self.start, self.scanned) = (0, 0);
            self.head = Vec::new();
        }
    }

    /// Appends bytes that were read elsewhere.
    pub fn push(&mut self, bytes: &[u8]) {
        self.room().extend_from_slice(bytes);
    }

    /// The next complete frame, or `None` until more bytes come.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        loop {
            let Some(offset) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                return self.give_up_if_too_long();
            };
            let end = self.scanned + offset;
            let start = self.start;
            self.start = end + 1;
            self.scanned = end + 1;

            if std::mem::take(&mut self.skipping) {
                continue;
            }
            let (from, to) = self.trimmed(start, end);
            // Before it is looked at whether it is blank: above the limit that is not known of all lines.
            if to - from > self.limit {
                self.at_stream_start = false;
                self.head = self.buffer[from..from + HEAD_KEPT.min(to - from)].to_vec();
                return Some(Frame::TooLong { head: &self.head });
            }
            if self.buffer[from..to].iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
                continue;
            }
            self.at_stream_start = false;
            return Some(Frame::Line(&self.buffer[from..to]));
        }
    }

    /// What is left over when the stream has ended: a last line without a newline.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        if self.start == self.buffer.len() {
            return None;
        }
        self.buffer.push(b'\n');
        self.next_frame()
    }

    /// Takes a byte order mark off the start and a carriage return off the end of a line.
    fn trimmed(&self, start: usize, end: usize) -> (usize, usize) {
        let line = &self.buffer[start..end];
        let from = if self.at_stream_start && line.starts_with(BOM) { start + BOM.len() } else { start };
        let to = if line.ends_with(b"\r") && end > from { end - 1 } else { end };
        (from, to)
    }

    /// Drops what has come of a line that is already above the limit, and reports it once.
    fn give_up_if_too_long(&mut self) -> Option<Frame<'_>> {
        let pending = self.buffer.len() - self.start;
        // One more than the limit may still be the carriage return of a line that just fits.
        let too_long = !self.skipping && pending > self.limit + BOM.len() + 1;
        if too_long {
            let (from, to) = self.trimmed(self.start, self.buffer.len());
            self.head = self.buffer[from..from + HEAD_KEPT.min(to - from)].to_vec();
            self.skipping = true;
            self.at_stream_start = false;
        }
        if self.skipping {
            self.buffer.clear();
            self.start = 0;
            self.scanned = 0;
        }
        if too_long { Some(Frame::TooLong { head: &self.head }) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(limit: usize, chunks: &[&[u8]], expected: &[&str]) {
        let mut decoder = Decoder::new(limit);
        let mut seen = Vec::new();
        let show = |frame: Frame<'_>| match frame {
            Frame::Line(line) => String::from_utf8_lossy(line).into_owned(),
            Frame::TooLong { head } => format!("too long: {}", String::from_utf8_lossy(head)),
        };
        for chunk in chunks {
            decoder.push(chunk);
            while let Some(frame) = decoder.next_frame() {
                seen.push(show(frame));
            }
        }
        if let Some(frame) = decoder.finish() {
            seen.push(show(frame));
        }
        assert_eq!(seen, expected);
    }

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        check(99, &[b"one\ntwo\n"], &["one", "two"]);
        check(99, &[b"o", b"n", b"e\nt", b"wo", b"\n"], &["one", "two"]);
        check(99, &["三é🙂\n".as_bytes()], &["三é🙂"]);
        let bytes = "三é🙂\n".as_bytes();
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        check(99, &single, &["三é🙂"]);
    }

    #[test]
    fn blank_lines_carriage_returns_and_a_bom_are_tolerated() {
        check(99, &[b"\n   \n\r\none\r\n\t\ntwo\n"], &["one", "two"]);
        check(99, &[b"\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo\n"], &["one", "\u{feff}two"]);
        check(99, &[b"\xEF\xBB", b"\xBFone\n"], &["one"]);
    }

    #[test]
    fn a_line_above_the_limit_is_skipped_and_the_next_one_read() {
        check(4, &[b"12345\nok\n"], &["too long: 12345", "ok"]);
        check(4, &[b"1234\r\nok\n"], &["1234", "ok"]);
        check(4, &[b"123456789", b"0123456789", b"\nok\n"], &["too long: 123456789", "ok"]);
        check(4, &[b"123456789"], &["too long: 123456789"]);
        // Blank or after a mark, in one piece or in two: it is the same line.
        check(4, &[b"         \nok\n"], &["too long:          ", "ok"]);
        check(4, &[b"         ", b"\nok\n"], &["too long:          ", "ok"]);
        check(4, &[b"\xEF\xBB\xBF12345678", b"9\nok\n"], &["too long: 12345678", "ok"]);
        check(4, &[b"\xEF\xBB\xBF12345678\nok\n"], &["too long: 12345678", "ok"]);
    }

    #[test]
    fn an_endless_line_is_reported_once_and_does_not_fill_memory() {
        let mut decoder = Decoder::new(64 * 1024);
        let mut reported = 0;
        for _ in 0..1_000 {
            decoder.push(&[b'a'; 10_000]);
            while let Some(frame) = decoder.next_frame() {
                assert!(matches!(frame, Frame::TooLong { head } if head.len() == HEAD_KEPT));
                reported += 1;
            }
        }
        assert_eq!(reported, 1);
        assert!(decoder.buffer.capacity() < 512 * 1024, "{}", decoder.buffer.capacity());
        decoder.push(b"\nok\n");
        assert_eq!(decoder.next_frame(), Some(Frame::Line(b"ok")));
    }

    #[test]
    fn a_last_line_without_newline_is_not_lost() {
        check(99, &[b"one\ntwo"], &["one", "two"]);
    }
}
