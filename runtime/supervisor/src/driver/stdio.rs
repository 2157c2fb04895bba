//! What a plugin's stdin and stdout are: pipes, or a pair of connected sockets each.
//!
//! A pipe holds 64 KiB, so that a large message goes through it in many turns of writing and waiting; a
//! socket holds more, by default some 200 KiB. Measured with 1 MiB, no other size was better. Each stream
//! has a pair of its own: with one for both, a plugin that makes its stdin non-blocking would find its stdout
//! so too, and neither could be closed alone.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Socket;
use std::os::unix::process::CommandExt;
use std::pin::Pin;
use std::process::{Child, Command, Stdio as Handed};
use std::task::{Context, Poll};

use rustix::process::Pid;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::procfs;

/// What a plugin's stdin and stdout are; its stderr is always a pipe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stdio {
    /// A pipe each.
    #[default]
    Pipes,
    /// A pair of connected sockets each, faster with large messages.
    Socketpair,
}

/// A process in a group of its own, and our ends of what it reads and writes.
pub(super) struct Connected {
    pub(super) child: Child,
    pub(super) pid: Pid,
    pub(super) ends: Ends,
}

/// Our ends of what a process reads and writes, before a runtime has them.
pub(super) struct Ends {
    stdio: Stdio,
    stdin: File,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Connected {
    /// Starts a command.
    ///
    /// # Errors
    /// When the operating system gives no process, or nothing to connect it with.
    pub(super) fn start(mut command: Command, stdio: Stdio) -> io::Result<Connected> {
        let sockets = match stdio {
            Stdio::Pipes => {
                command.stdin(Handed::piped()).stdout(Handed::piped());
                None
            }
            Stdio::Socketpair => {
                let ((stdin, its_stdin), (stdout, its_stdout)) = (Socket::pair()?, Socket::pair()?);
                command.stdin(OwnedFd::from(its_stdin)).stdout(OwnedFd::from(its_stdout));
                Some((OwnedFd::from(stdin), OwnedFd::from(stdout)))
            }
        };
        let mut child = command.process_group(0).stderr(Handed::piped()).spawn()?;
        // Its ends are its own now: as long as the command held them, they would never be at their end.
        drop(command);
        let pid = procfs::raw(child.id());
        let pid = pid.ok_or_else(|| io::Error::other("the operating system gave an impossible pid"))?;
        let mut pipes = || Some((child.stdin.take()?.into(), child.stdout.take()?.into()));
        let missing = || io::Error::other("a pipe is missing");
        let (stdin, stdout) = sockets.or_else(&mut pipes).ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?.into();
        Ok(Connected { child, pid, ends: Ends { stdio, stdin: stdin.into(), stdout, stderr } })
    }
}

impl Ends {
    /// Writes to its stdin, and waits until that is done.
    pub(super) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.stdin).write_all(bytes)
    }

    /// Gives them to the runtime.
    ///
    /// # Errors
    /// When the operating system will not have them watched.
    pub(super) fn watched(self) -> io::Result<Pipes> {
        let Ends { stdio, stdin, stdout, stderr } = self;
        let stdin = OwnedFd::from(stdin);
        let (stdin, stdout) = match stdio {
            Stdio::Pipes => (
                Writer::Pipe(pipe::Sender::from_owned_fd(stdin)?),
                Reader::Pipe(pipe::Receiver::from_owned_fd(stdout)?),
            ),
            Stdio::Socketpair => {
                let (stdin, stdout) = (Socket::from(stdin), Socket::from(stdout));
                stdin.set_nonblocking(true)?;
                stdout.set_nonblocking(true)?;
                (Writer::Socket(Socketed::Idle(stdin)), Reader::Socket(UnixStream::from_std(stdout)?))
            }
        };
        let stderr = pipe::Receiver::from_owned_fd(stderr)?;
        Ok(Pipes { stdin: ToPlugin(stdin), stdout: FromPlugin(stdout), stderr })
    }
}

/// Our ends of what a plugin reads and writes.
#[derive(Debug)]
pub struct Pipes {
    /// For what it reads.
    pub stdin: ToPlugin,
    /// For what it writes.
    pub stdout: FromPlugin,
    /// For what it writes beside that.
    pub stderr: pipe::Receiver,
}

/// Where a plugin's stdin is written to; dropped, the plugin is at the end of it.
#[derive(Debug)]
pub struct ToPlugin(Writer);

/// Where a plugin's stdout is read from.
#[derive(Debug)]
pub struct FromPlugin(Reader);

#[derive(Debug)]
enum Writer {
    Pipe(pipe::Sender),
    Socket(Socketed),
}

#[derive(Debug)]
enum Reader {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
}

/// A socket that the runtime watches only while it is full.
///
/// A socket says that it can be written to whenever its other end reads, full or not: watched all the
/// time, each message would wake this program once more.
#[derive(Debug)]
enum Socketed {
    Idle(Socket),
    Full(UnixStream),
    /// It could not be watched, or no longer.
    Lost,
}

impl ToPlugin {
    /// Writes what can be written without waiting.
    ///
    /// # Errors
    /// `WouldBlock` when nothing can; anything else when the plugin reads no more.
    pub fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Writer::Pipe(pipe) => pipe.try_write(bytes),
            Writer::Socket(socket) => socket.try_write(bytes),
        }
    }

    /// Waits until more can be written, after it could not.
    ///
    /// # Cancel safety
    /// Safe: it only waits.
    ///
    /// # Errors
    /// When the runtime is gone.
    pub async fn writable(&self) -> io::Result<()> {
        match &self.0 {
            Writer::Pipe(pipe) => pipe.writable().await,
            Writer::Socket(Socketed::Full(socket)) => socket.writable().await,
            Writer::Socket(Socketed::Idle(_) | Socketed::Lost) => Ok(()),
        }
    }

    /// Writes some of it, as soon as that can be.
    ///
    /// # Cancel safety
    /// Safe: nothing is written unless it is also returned.
    ///
    /// # Errors
    /// When the plugin reads no more.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                written => return written,
            }
        }
    }
}

impl Socketed {
    fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match self {
            Socketed::Idle(socket) => socket.write(bytes),
            Socketed::Full(socket) => socket.try_write(bytes),
            Socketed::Lost => Err(io::ErrorKind::BrokenPipe.into()),
        };
        match (&written, std::mem::replace(self, Socketed::Lost)) {
            (Err(error), Socketed::Idle(socket)) if error.kind() == io::ErrorKind::WouldBlock => {
                *self = Socketed::Full(UnixStream::from_std(socket)?);
            }
            (Ok(count), Socketed::Full(socket)) if *count == bytes.len() => {
                *self = Socketed::Idle(socket.into_std()?);
            }
            (_, unchanged) => *self = unchanged,
        }
        written
    }
}

impl FromPlugin {
    /// Reads what is there into a buffer, without waiting.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is.
    pub fn try_read_buf(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        match &self.0 {
            Reader::Pipe(pipe) => pipe.try_read_buf(buffer),
            Reader::Socket(socket) => socket.try_read_buf(buffer),
        }
    }
}

impl AsyncRead for FromPlugin {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Reader::Pipe(pipe) => Pin::new(pipe).poll_read(context, buffer),
            Reader::Socket(socket) => Pin::new(socket).poll_read(context, buffer),
        }
    }
}
