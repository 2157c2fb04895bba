//! What is measured: every contender and every life, in one run.

use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use plugd_bench::daemon::Daemon;
use plugd_bench::host::{Host, plugin_config};

use crate::bare::{self, Raw};
use crate::contender::{
    Case, Contender, ENGINE, ENGINE_SDK, Heat, Pair, RAW, RMCP_BEST, RMCP_DEFAULT, SOCKET, SOCKETPAIR,
    Samples, UNRECORDED, take_turns,
};
use crate::crowd::{self, CROWD, Known};
use crate::embedded::EngineEcho;
use crate::lives::{self, Victim};
use crate::one_core;
use crate::peer::Peer;
use crate::programs::Programs;
use crate::record::{self, Record};
use crate::sdks::{self, Sdks};
use crate::socket::Socket;

/// The payloads, in bytes.
pub(crate) const PAYLOADS: [usize; 4] = [32, 1024, 64 * 1024, 1024 * 1024];

/// Calls under way at once where there are many.
pub(crate) const MANY_IN_FLIGHT: usize = 64;

/// How much to measure.
pub(crate) struct Plan {
    heats: Vec<Heat>,
    /// Turns of every contender in every case, the warm-up not counted.
    pub(crate) call_repetitions: usize,
    /// How long a turn takes.
    pub(crate) slice: Duration,
    /// Repetitions of all else.
    pub(crate) life_repetitions: usize,
    /// Repetitions of what hundreds of plugins do.
    pub(crate) crowd_repetitions: usize,
    /// Repetitions of questions to a million recorded calls; none, and they are not recorded.
    pub(crate) record_repetitions: usize,
    /// Whether calls are made on one core, too.
    pub(crate) with_one_core: bool,
    /// Whether programs in other languages are started and called.
    pub(crate) with_sdks: bool,
    /// How often a command, a crash and a start is timed in each of them.
    pub(crate) each: usize,
}

/// What was measured.
pub(crate) struct Findings {
    pub(crate) samples: Samples,
    /// `plugd call` and `curl`, whole processes.
    pub(crate) command: Pair,
    /// A kill to the next answer, and a bare start to the first answer.
    pub(crate) crash: Pair,
    /// The same with a spare.
    pub(crate) crash_with_spare: Pair,
    /// Many plugins to ready, and as many bare starts to the first answer.
    pub(crate) many_starts: Pair,
    /// Hundreds of plugins to their first answers, and as many bare starts.
    pub(crate) crowd: Pair,
    /// An engine that knows hundreds of plugins, and one that must describe them.
    pub(crate) known: Pair,
    /// Host memory per idle plugin, in KiB.
    pub(crate) rss_kib: Vec<f64>,
    /// Host memory of an idle run alone, in KiB.
    pub(crate) run_rss_kib: Vec<f64>,
    /// Round trips with both sides on one core, where they were measured.
    pub(crate) one_core: Option<Samples>,
    /// Handlers in each language, where they were measured.
    pub(crate) sdks: Option<Sdks>,
    /// A million recorded calls, where they were.
    pub(crate) record: Option<Record>,
}

pub(crate) const fn alone(payload: usize) -> Case {
    Case { payload, in_flight: 1 }
}

pub(crate) const fn crowded(payload: usize) -> Case {
    Case { payload, in_flight: MANY_IN_FLIGHT }
}

impl Plan {
    /// Only the figures that programs watch.
    pub(crate) fn quick() -> Plan {
        let heats = vec![
            Heat { case: alone(32), contenders: vec![RAW, ENGINE, UNRECORDED, SOCKET] },
            Heat { case: alone(1024 * 1024), contenders: vec![RAW, ENGINE, SOCKETPAIR] },
            Heat { case: crowded(32), contenders: vec![ENGINE, UNRECORDED, RMCP_DEFAULT] },
        ];
        Plan {
            heats,
            call_repetitions: 15,
            slice: Duration::from_millis(150),
            life_repetitions: 7,
            crowd_repetitions: 3,
            record_repetitions: 0,
            with_one_core: false,
            with_sdks: false,
            each: 11,
        }
    }

    /// Everyone in every case.
    pub(crate) fn full() -> Plan {
        let everyone = vec![RAW, ENGINE, SOCKETPAIR, UNRECORDED, ENGINE_SDK, SOCKET, RMCP_DEFAULT, RMCP_BEST];
        let cases = PAYLOADS.map(alone).into_iter().chain(PAYLOADS.map(crowded));
        let heats = cases.map(|case| Heat { case, contenders: everyone.clone() }).collect();
        Plan {
            heats,
            call_repetitions: 9,
            slice: Duration::from_millis(300),
            life_repetitions: 9,
            crowd_repetitions: 5,
            record_repetitions: 9,
            with_one_core: true,
            with_sdks: true,
            each: 15,
        }
    }

    fn names(&self, name: &str) -> bool {
        self.heats.iter().any(|heat| heat.contenders.contains(&name))
    }
}

/// Measures all of the plan; every process it starts has ended when it returns.
pub(crate) fn measure(plan: &Plan, programs: &Programs) -> io::Result<Findings> {
    crowd::allow_many_files()?;
    let daemon = Rc::new(Daemon::start(&programs.plugd, &programs.echo_plugin)?);
    let samples = {
        let mut contenders = enter(plan, programs, &daemon)?;
        take_turns(&mut contenders, &plan.heats, plan.call_repetitions, plan.slice)?
    };
    let (repetitions, each) = (plan.life_repetitions, plan.each);
    let command =
        Pair::measure("commands", repetitions, each, || daemon.time_plugd_call(), || daemon.time_curl())?;
    drop(daemon);

    let plugin = &programs.echo_plugin;
    let crash = measure_crashes(plugin, false, repetitions, each)?;
    let crash_with_spare = measure_crashes(plugin, true, repetitions, each)?;

    let many_starts = Pair::measure(
        "starts",
        repetitions,
        1,
        || lives::time_many_starts(plugin),
        || bare::time_to_first_answers(plugin, lives::MANY),
    )?;
    let repetitions = plan.crowd_repetitions;
    let crowd = measure_crowd(plugin, repetitions)?;
    let everything = Known::new(plugin, CROWD)?;
    let known = Pair::measure(
        "hundreds of known plugins",
        repetitions,
        1,
        || everything.time_open(CROWD),
        || everything.time_open_forgotten(CROWD),
    )?;
    let rss_kib = lives::rss_per_idle_plugin_kib(plugin, repetitions)?;
    let run_rss_kib = crowd::rss_running_idle_kib(plugin, repetitions)?;
    let one_core = if plan.with_one_core { Some(one_core::measure(programs)?) } else { None };
    let sdks = if plan.with_sdks { Some(sdks::measure()?) } else { None };
    let record = match plan.record_repetitions {
        0 => None,
        repetitions => Some(record::measure(repetitions)?),
    };
    Ok(Findings {
        samples,
        command,
        crash,
        crash_with_spare,
        many_starts,
        crowd,
        known,
        rss_kib,
        run_rss_kib,
        one_core,
        sdks,
        record,
    })
}

/// One call in flight over pipes and over sockets, in every size.
pub(crate) fn measure_streams(programs: &Programs) -> io::Result<Samples> {
    let host = Rc::new(Host::open(&echo_config(programs))?);
    let mut contenders: Vec<Box<dyn Contender>> = vec![
        Box::new(Raw::start(&programs.raw_echo)?),
        Box::new(EngineEcho { name: ENGINE, host: Rc::clone(&host), plugin: "echo" }),
        Box::new(EngineEcho { name: SOCKETPAIR, host, plugin: "pair" }),
    ];
    let heats =
        PAYLOADS.map(|payload| Heat { case: alone(payload), contenders: vec![RAW, ENGINE, SOCKETPAIR] });
    take_turns(&mut contenders, &heats, 15, Duration::from_millis(150))
}

/// A kill to the next answer, with a spare or without, and a bare start to the first answer.
pub(crate) fn measure_crashes(
    plugin: &Path,
    spared: bool,
    repetitions: usize,
    each: usize,
) -> io::Result<Pair> {
    let victim = Victim::start(plugin, spared)?;
    let what = if spared { "crashes with a spare" } else { "crashes" };
    let kill = || victim.time_kill_to_answer();
    Pair::measure(what, repetitions, each, kill, || bare::time_to_first_answer(plugin))
}

/// Hundreds of plugins started and answered.
pub(crate) fn measure_crowd(plugin: &Path, repetitions: usize) -> io::Result<Pair> {
    crowd::allow_many_files()?;
    let known = Known::new(plugin, CROWD)?;
    Pair::measure(
        "hundreds of starts",
        repetitions,
        1,
        || known.time_starts_and_answers(),
        || bare::time_to_first_answers(plugin, CROWD),
    )
}

/// The plugins that echo: over pipes, over sockets, and with the SDK.
fn echo_config(programs: &Programs) -> String {
    let echo = |name, program| plugin_config(name, program) + "concurrency = 64\n";
    [
        echo("echo", &programs.echo_plugin),
        echo("pair", &programs.echo_plugin),
        "stdio = \"socketpair\"\n".to_owned(),
        echo("sdk", &programs.sdk_echo),
    ]
    .concat()
}

/// Starts the contenders that the plan names.
fn enter(plan: &Plan, programs: &Programs, daemon: &Rc<Daemon>) -> io::Result<Vec<Box<dyn Contender>>> {
    let config = echo_config(programs);
    let host = Rc::new(Host::open(&config)?);
    let unrecorded = Rc::new(Host::open(&format!("[record]\nenabled = false\n{config}"))?);
    let mut contenders: Vec<Box<dyn Contender>> = vec![
        Box::new(Raw::start(&programs.raw_echo)?),
        Box::new(EngineEcho { name: ENGINE, host: Rc::clone(&host), plugin: "echo" }),
        Box::new(EngineEcho { name: SOCKETPAIR, host: Rc::clone(&host), plugin: "pair" }),
        Box::new(EngineEcho { name: UNRECORDED, host: unrecorded, plugin: "echo" }),
        Box::new(EngineEcho { name: ENGINE_SDK, host, plugin: "sdk" }),
        Box::new(Socket::connect(Rc::clone(daemon))?),
    ];
    if plan.names(RMCP_DEFAULT) {
        contenders.push(Box::new(Peer::start_default(&programs.rmcp_peer)?));
    }
    if plan.names(RMCP_BEST) {
        contenders.push(Box::new(Peer::start_best(&programs.rmcp_peer)?));
    }
    Ok(contenders)
}
