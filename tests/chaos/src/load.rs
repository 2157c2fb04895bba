//! Clients that call without end, and a note of how every single call ended.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use plugd_daemon::client::{Client, ClientError};
use plugd_protocol::control::CallParams;
use plugd_protocol::{CallResult, Outcome, Status};
use tokio::time::{sleep, timeout};

use crate::daemon::connect;
use crate::numbers::Numbers;
use crate::sandbox::Sandbox;
use crate::tempers::{self, COUNTER, Temper};

/// What every call is given for everything together.
const DEADLINE: Duration = Duration::from_secs(4);

/// A call that is not over so long after its deadline hangs; generous, for a machine that is busy.
const SLACK: Duration = Duration::from_secs(6);

/// How often a client that finds no daemon looks again.
const GLANCE: Duration = Duration::from_millis(5);

/// One client in so many calls goes away in the middle of one.
const VANISHES_ONE_IN: u64 = 150;

/// The name of the ending of a call that the daemon's death cut off.
pub(crate) const LOST: &str = "lost";

/// The name of the ending of a call whose client went away.
pub(crate) const VANISHED: &str = "vanished";

/// How a stretch of load is made.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) sandbox: Rc<Sandbox>,
    pub(crate) seed: u64,
    pub(crate) clients: usize,
    pub(crate) ends: Instant,
    /// Whether clients go away in the middle of calls.
    pub(crate) vanishing: bool,
}

/// From when to when, and how it ended.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    pub(crate) ending: String,
}

/// One call that must not run twice.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) token: String,
    pub(crate) said: Said,
}

/// What the caller was told about whether it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Ran,
    NotRun,
    Unknown,
}

/// All that the clients noted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) calls: u64,
    /// By name of the ending.
    pub(crate) endings: BTreeMap<String, u64>,
    /// The calls to plugins that nobody touches.
    pub(crate) calm: Vec<Span>,
    /// The calls that ended because the connection did.
    pub(crate) lost: Vec<Span>,
    pub(crate) entries: Vec<Entry>,
    /// Calls without an ending, or with one that has no name.
    pub(crate) broken: Vec<String>,
}

impl Tally {
    pub(crate) fn join(&mut self, other: Tally) {
        self.calls += other.calls;
        for (ending, count) in other.endings {
            *self.endings.entry(ending).or_default() += count;
        }
        self.calm.extend(other.calm);
        self.lost.extend(other.lost);
        self.entries.extend(other.entries);
        self.broken.extend(other.broken);
    }

    fn note(&mut self, temper: &Temper, token: String, began: Instant, ending: Ending) {
        let Ending { name, said } = ending;
        let span = Span { began, ended: Instant::now(), ending: name.clone() };
        if temper.calm && name != VANISHED {
            self.calm.push(span.clone());
        }
        if name == LOST {
            self.lost.push(span);
        }
        if temper.name == COUNTER {
            self.entries.push(Entry { token, said });
        }
        *self.endings.entry(name).or_default() += 1;
    }
}

struct Ending {
    name: String,
    said: Said,
}

impl Ending {
    fn unknown(name: &str) -> Ending {
        Ending { name: name.to_owned(), said: Said::Unknown }
    }
}

/// Runs all clients until the load ends and every call is over.
pub(crate) async fn load(load: Load) -> Tally {
    let clients: Vec<_> =
        (0..load.clients).map(|number| tokio::task::spawn_local(client(load.clone(), number))).collect();
    let mut all = Tally::default();
    for client in clients {
        all.join(client.await.expect("a client does not panic"));
    }
    all
}

async fn client(load: Load, number: usize) -> Tally {
    let mut numbers = Numbers::of(load.seed, number as u64);
    let mut tally = Tally::default();
    let mut connection: Option<Client> = None;
    while Instant::now() < load.ends {
        let Some(client) = connection.take() else {
            connection = connect(&load.sandbox).await;
            if connection.is_none() {
                sleep(GLANCE).await;
            }
            continue;
        };
        let temper = tempers::any(&mut numbers);
        let token = format!("{}-{number}-{}", load.seed, tally.calls);
        let call = call(temper, &token, &mut numbers);
        let vanishes = load.vanishing && numbers.one_in(VANISHES_ONE_IN);
        let began = Instant::now();
        let patience = if vanishes { numbers.millis(1, 20) } else { DEADLINE + SLACK };
        let ended = timeout(patience, client.call(&call)).await;
        tally.calls += 1;
        let ending = match ended {
            Ok(ended) => match ending_of(ended) {
                Ok(ending) => ending,
                Err(why) => {
                    tally.broken.push(format!("{}: {why}", call.operation));
                    Ending::unknown("unnamed")
                }
            },
            Err(_late) if vanishes => Ending::unknown(VANISHED),
            Err(_late) => {
                tally.broken.push(format!("{} hung: no ending within {patience:?}", call.operation));
                Ending::unknown("hung")
            }
        };
        if !vanishes && ending.name != LOST {
            connection = Some(client);
        }
        tally.note(temper, token, began, ending);
        sleep(numbers.millis(10, 60)).await;
    }
    tally
}

fn call(temper: &Temper, token: &str, numbers: &mut Numbers) -> CallParams {
    let arguments = (temper.arguments)(numbers, token);
    let mut call = CallParams::new(format!("{}.work", temper.name))
        .arguments(&arguments)
        .expect("the tempers write their arguments as JSON");
    call.timeout_ms = u64::try_from(DEADLINE.as_millis()).ok();
    call
}

/// The name of an ending, and what it says about whether the call ran.
///
/// # Errors
/// When it has no name, or is none that a call of ours can have.
fn ending_of(ended: Result<CallResult, ClientError>) -> Result<Ending, String> {
    let result = match ended {
        Ok(result) => result,
        Err(ClientError::Lost(_)) => return Ok(Ending::unknown(LOST)),
        Err(ClientError::Command(error)) => {
            return Ok(Ending { name: error.name.clone(), said: said(error.outcome) });
        }
        Err(ClientError::Malformed { code, message }) => {
            return Err(format!("malformed ({code}): {message}"));
        }
    };
    match (result.status, &result.error) {
        (Status::Ok, None) => Ok(Ending { name: "ok".to_owned(), said: Said::Ran }),
        (Status::Cancelled, _) => Ok(Ending::unknown("cancelled")),
        (Status::Error, Some(error)) if !error.name.is_empty() => {
            Ok(Ending { name: error.name.clone(), said: said(error.outcome) })
        }
        (status, error) => Err(format!("ended as {status:?} with {error:?}")),
    }
}

fn said(outcome: Outcome) -> Said {
    match outcome {
        Outcome::NotRun => Said::NotRun,
        Outcome::Unknown => Said::Unknown,
        Outcome::Completed => Said::Ran,
    }
}
