//! A caller of a healthy plugin, who must notice nothing of what happens beside it.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plugd_daemon::client::Client;
use plugd_protocol::Status;
use plugd_protocol::control::CallParams;
use serde_json::Value;

use crate::daemon::Daemon;

/// Between two of its calls, so that many tests can have one at once.
const PAUSE: Duration = Duration::from_millis(5);

/// Far above what a loaded machine needs for a call, far below every deadline.
const PATIENCE: Duration = Duration::from_secs(5);

/// Calls one operation again and again until it is told to end.
pub struct Neighbour {
    end: Sender<()>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Neighbour {
    /// Waits for the first answer, then goes on beside the test.
    ///
    /// The operation takes no arguments and gives `{"pid": …}`, as `pid` of the fixtures does.
    #[track_caller]
    pub fn begin(daemon: &Daemon<'_>, operation: &str) -> Neighbour {
        let (socket, operation) = (daemon.socket(), operation.to_owned());
        let (end, ended) = mpsc::channel();
        let (begun, first) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime");
            let client = runtime.block_on(Client::connect(&socket)).expect("the daemon is reachable");
            let mut took = Vec::new();
            let mut pid = Value::Null;
            loop {
                let began = Instant::now();
                let result = runtime.block_on(client.call(&CallParams::new(&*operation)));
                let result = result.expect("the daemon answers");
                assert_eq!(result.status, Status::Ok, "{operation}, which is healthy: {:?}", result.error);
                let data: Value = serde_json::from_str(result.data.expect("data").get()).expect("JSON");
                if took.is_empty() {
                    // The first call starts the plugin, which may take a while.
                    pid = data["pid"].clone();
                    let _test_is_over = begun.send(());
                } else {
                    let waited = began.elapsed();
                    assert!(waited < PATIENCE, "{operation}, which is healthy, took {waited:?}");
                    assert_eq!(data["pid"], pid, "{operation}, which is healthy, was restarted");
                }
                took.push(began.elapsed());
                match ended.recv_timeout(PAUSE) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return took,
                }
            }
        });
        first.recv_timeout(Duration::from_secs(20)).expect("the neighbour is answered");
        Neighbour { end, thread }
    }

    /// Ends it, and checks that each of its calls was answered well and soon; how long each took.
    #[track_caller]
    pub fn end(self) -> Vec<Duration> {
        let _failed_already = self.end.send(());
        let mut took = self.thread.join().expect("the neighbour noticed nothing");
        took.remove(0);
        took
    }
}
