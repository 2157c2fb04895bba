//! Reads of what a plugin writes that hold no buffer while there is nothing to read.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Poll, ready};

use plugd_protocol::Decoder;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe;

use super::log_lines::LineSplitter;
use super::stdio::FromPlugin;

/// What a plugin writes to, and what of it is not handled yet.
pub(super) struct Streams {
    pub(super) stdout: FromPlugin,
    pub(super) stdout_open: bool,
    pub(super) frames: Decoder,
    pub(super) stderr: pipe::Receiver,
    pub(super) stderr_open: bool,
    pub(super) lines: LineSplitter,
    /// Bytes of stderr that were read and not split yet.
    pub(super) stderr_read: Vec<u8>,
}

/// What there is to handle.
pub(super) enum Read {
    Stdout,
    Stderr,
}

impl Streams {
    pub(super) fn new(stdout: FromPlugin, stderr: pipe::Receiver, frame_limit: usize) -> Streams {
        Streams {
            stdout,
            stdout_open: true,
            frames: Decoder::new(frame_limit),
            stderr,
            stderr_open: true,
            lines: LineSplitter::default(),
            stderr_read: Vec::new(),
        }
    }

    /// Waits for either stream, as long as one is open; at its end a stream counts as closed.
    ///
    /// # Cancel safety
    /// Safe: what was read is kept here.
    pub(super) async fn read(&mut self) -> Read {
        let Streams { stdout, frames, stderr, stderr_read, .. } = self;
        tokio::select! {
            read = read_frames_from(stdout, frames), if self.stdout_open => {
                self.stdout_open = matches!(read, Ok(count) if count > 0);
                Read::Stdout
            }
            read = read_some(stderr, |bytes| stderr_read.extend_from_slice(bytes)), if self.stderr_open => {
                self.stderr_open = matches!(read, Ok(count) if count > 0);
                Read::Stderr
            }
        }
    }

    pub(super) fn open(&self) -> bool {
        self.stdout_open || self.stderr_open
    }

    /// Reads what stands in stdout, without waiting; false where there is nothing.
    pub(super) fn read_stdout_now(&mut self) -> bool {
        self.stdout.try_read_buf(self.frames.room()).is_ok_and(|count| count > 0)
    }

    /// Takes what stands in stderr, up to a turn's worth, without waiting.
    pub(super) fn read_stderr_now(&mut self) -> bool {
        let mut piece = [0; STDERR_PIECE];
        while self.stderr_read.len() < STDERR_TURN {
            match self.stderr.try_read(&mut piece) {
                Ok(count) if count > 0 => self.stderr_read.extend_from_slice(&piece[..count]),
                // At its end or empty; `read` learns which.
                _ => break,
            }
        }
        !self.stderr_read.is_empty()
    }
}

/// How much is taken from stderr in one turn.
const STDERR_TURN: usize = 16 * 1024;

/// How much of it at a time, on the stack: mostly there is nothing.
const STDERR_PIECE: usize = 1024;

/// Room for one read, on the stack of the thread: most messages fit.
const SCRATCH: usize = 8 * 1024;

/// Reads what is there into the decoder; 0 at the end of the stream.
///
/// # Cancel safety
/// Safe: nothing is read unless it is also returned.
async fn read_frames_from(stdout: &mut FromPlugin, decoder: &mut Decoder) -> io::Result<usize> {
    if !decoder.has_buffer() {
        return read_some(stdout, |bytes| decoder.push(bytes)).await;
    }
    tokio::io::AsyncReadExt::read_buf(stdout, decoder.room()).await
}

/// Reads what is there, up to [`SCRATCH`] bytes, and hands it over; 0 at the end of the stream.
///
/// # Cancel safety
/// Safe: nothing is read unless it is also handed over.
async fn read_some(stream: &mut (impl AsyncRead + Unpin), mut take: impl FnMut(&[u8])) -> io::Result<usize> {
    poll_fn(|context| {
        let mut scratch = [MaybeUninit::uninit(); SCRATCH];
        let mut buffer = ReadBuf::uninit(&mut scratch);
        ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer))?;
        take(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    })
    .await
}
