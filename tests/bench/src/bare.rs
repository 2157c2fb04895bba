//! A child on bare pipes: the baseline of round trips and of starts.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use plugd_bench::lines::Lines;

use crate::contender::{Case, Contender, Figures, RAW, TripTimes};

/// What a bare start of the echo plugin is asked, to see it answer.
const FIRST_REQUEST: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"call\",\"params\":{\"arguments\":{\"payload\":\"x\"}}}\n";

/// A running child and its pipes; dropping it kills and reaps it.
pub(crate) struct Bare {
    child: Child,
    to: ChildStdin,
    from: Lines<ChildStdout>,
}

impl Bare {
    pub(crate) fn spawn(program: &Path) -> io::Result<Bare> {
        Bare::spawn_command(&mut Command::new(program))
    }

    /// Starts a program with arguments and an environment of its own.
    pub(crate) fn spawn_command(command: &mut Command) -> io::Result<Bare> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (to, from) = child.stdin.take().zip(child.stdout.take()).expect("both were piped");
        Ok(Bare { child, to, from: Lines::new(from) })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes one line, newline included.
    pub(crate) fn send(&mut self, line: &[u8]) -> io::Result<()> {
        self.to.write_all(line)
    }

    /// Waits for one line.
    pub(crate) fn receive(&mut self) -> io::Result<&[u8]> {
        self.from.next_line()?.ok_or_else(|| io::Error::other("the child ended instead of answering"))
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // Failing means that it is dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// From nothing to the first answer of one bare child.
pub(crate) fn time_to_first_answer(plugin: &Path) -> io::Result<Duration> {
    let begun = Instant::now();
    let mut bare = Bare::spawn(plugin)?;
    bare.send(FIRST_REQUEST)?;
    bare.receive()?;
    Ok(begun.elapsed())
}

/// From nothing to the first answers of `count` bare children: spawned first, then asked.
pub(crate) fn time_to_first_answers(plugin: &Path, count: usize) -> io::Result<Duration> {
    let begun = Instant::now();
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        let mut bare = Bare::spawn(plugin)?;
        bare.send(FIRST_REQUEST)?;
        all.push(bare);
    }
    for bare in &mut all {
        bare.receive()?;
    }
    Ok(begun.elapsed())
}

/// The baseline: blocking reads and writes over two pipes, no JSON.
pub(crate) struct Raw(Bare);

impl Raw {
    pub(crate) fn start(program: &Path) -> io::Result<Raw> {
        Bare::spawn(program).map(Raw)
    }
}

impl Contender for Raw {
    fn name(&self) -> &'static str {
        RAW
    }

    /// One at a time only: many in flight over blocking pipes would measure batching, not calls.
    fn takes(&self, case: Case) -> bool {
        case.in_flight == 1
    }

    fn measure(&mut self, case: Case, slice: Duration) -> io::Result<Figures> {
        let mut line = vec![b'x'; case.payload];
        line.push(b'\n');
        let mut trips = TripTimes::begin(slice);
        while !trips.over() {
            let sent = Instant::now();
            self.0.send(&line)?;
            let came = self.0.receive()?.len();
            trips.add(sent.elapsed());
            if came != line.len() {
                return Err(io::Error::other(format!("sent {} bytes, got {came} back", line.len())));
            }
        }
        Ok(trips.figures())
    }
}
