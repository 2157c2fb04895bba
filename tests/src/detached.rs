//! Daemons in the background, and the shell scripts that start them.

use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::sandbox::{Ran, Sandbox};
use crate::wait::alive;

/// A daemon nobody waits for, ended with its test.
pub struct Detached(u32);

impl Detached {
    /// The one that serves a sandbox.
    #[track_caller]
    pub fn of(sandbox: &Sandbox) -> Detached {
        let status = sandbox.json(&["status"]);
        let pid = status["daemon"]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        Detached(pid.unwrap_or_else(|| panic!("no daemon serves here: {status:#}")))
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.0
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0).ok().and_then(Pid::from_raw).expect("a pid");
        if alive(self.0) {
            let _gone = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// Runs `sh -c` in the sandbox, `$0` being the program, until nobody holds its output any more; gives
/// up after 20 s.
#[track_caller]
pub fn shell(sandbox: &Sandbox, script: &str) -> Ran {
    let program = sandbox.command(&[]).get_program().to_owned();
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(program).current_dir(sandbox.path()).stdin(Stdio::null());
    command.env_remove("PLUGD_CONFIG").env_remove("PLUGD_LOG").stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("sh runs");
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || done.send(child.wait_with_output()));
    match ended.recv_timeout(Duration::from_secs(20)) {
        Ok(output) => output.expect("sh ends").into(),
        Err(_) => panic!("somebody still holds the output of: {script}"),
    }
}
