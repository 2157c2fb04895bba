//! The daemon or the engine in this process: the same answers either way.

use std::time::{Duration, Instant};

use plugd_daemon::client::Client;
use plugd_engine::config::Config;
use plugd_engine::{Asker, Engine, Opening, Via};
use plugd_protocol::control::{
    AddParams, AddReport, AnswerParams, AnswerReport, CallDetail, CallParams, CallsParams, CallsReport,
    CallsShowParams, CallsStatsParams, CallsStatsReport, ChangeReport, DescribeParams, Description,
    DoctorReport, Explanation, GraphReport, JobsParams, JobsReport, JobsWaitParams, LintParams, LintReport,
    ListParams, ListReport, LogEntry, LogsParams, PluginsParams, ResultParams, ResultReport, StatusParams,
    ToolsParams, ToolsReport,
};
use plugd_protocol::{CallError, CallResult, ErrorKind};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;
use crate::output::complain;
use crate::render::visible_line;

/// How long a plugin may take to leave after its call was cancelled.
const MOMENT: Duration = Duration::from_secs(1);

/// What calls of this process to its own engine are made through: there is nothing else.
const HERE: u64 = 0;

/// Where a command's work is done.
pub(crate) enum Runtime {
    /// In the daemon.
    Daemon(Client),
    /// Here.
    Embedded {
        engine: Engine,
        /// How long opening took.
        opened_in: Duration,
    },
}

impl Runtime {
    /// Opens an engine in this process.
    pub(crate) async fn embedded(config: Config, opening: Opening) -> Result<Runtime, Failure> {
        Runtime::embedded_within(config, opening, None).await
    }

    /// The same, where the record of calls is waited for no longer than that.
    pub(crate) async fn embedded_within(
        config: Config,
        opening: Opening,
        record: Option<Duration>,
    ) -> Result<Runtime, Failure> {
        prepare_for_plugins();
        let began = Instant::now();
        let engine = Engine::open_within(config, opening, record).await?;
        Ok(Runtime::Embedded { engine, opened_in: began.elapsed() })
    }

    pub(crate) async fn call(&self, params: CallParams, asker: Option<Asker>) -> Result<CallResult, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.call(&params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.call_via(params, via(asker)).await),
        }
    }

    /// How long it took to open what works in this process.
    pub(crate) fn opened_in(&self) -> Duration {
        match self {
            Runtime::Daemon(_) => Duration::ZERO,
            Runtime::Embedded { opened_in, .. } => *opened_in,
        }
    }

    /// Stops what was called from here and has not ended; whether there was anything.
    pub(crate) async fn cancel_mine(&self) -> Result<bool, Failure> {
        let stopped = match self {
            Runtime::Daemon(client) => client.cancel_mine().await?.call_ids,
            Runtime::Embedded { engine, .. } => engine.cancel_made_through(HERE),
        };
        Ok(!stopped.is_empty())
    }

    pub(crate) async fn explain(&self, params: CallParams) -> Result<Explanation, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.explain(&params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.explain(params).await?),
        }
    }

    pub(crate) async fn answer(
        &self,
        params: AnswerParams,
        asker: Option<Asker>,
    ) -> Result<AnswerReport, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.answer(&params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.answer(params, via(asker)).await?),
        }
    }

    pub(crate) async fn calls(&self, params: &CallsParams) -> Result<CallsReport, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.calls(params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.calls(params.clone()).await?),
        }
    }

    pub(crate) async fn call_detail(&self, params: &CallsShowParams) -> Result<CallDetail, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.call_detail(params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.call_detail(params.clone()).await?),
        }
    }

    pub(crate) async fn calls_stats(&self, params: &CallsStatsParams) -> Result<CallsStatsReport, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.calls_stats(params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.calls_stats(params.clone()).await?),
        }
    }

    pub(crate) async fn jobs(&self, params: &JobsParams) -> Result<JobsReport, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.jobs(params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.jobs(params.clone()).await?),
        }
    }

    pub(crate) async fn jobs_wait(&self, params: &JobsWaitParams) -> Result<CallResult, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.jobs_wait(params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.jobs_wait(params.clone()).await),
        }
    }

    pub(crate) async fn result(&self, params: &ResultParams) -> Result<ResultReport, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.result(params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.result(params.clone()).await?),
        }
    }

    pub(crate) async fn list(&self, params: &ListParams) -> Result<ListReport, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.list(params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.list(params).await?),
        }
    }

    pub(crate) async fn describe(&self, params: &DescribeParams) -> Result<Description, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.describe(params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.describe(params).await?),
        }
    }

    pub(crate) async fn tools(&self, params: &ToolsParams) -> Result<ToolsReport, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.tools(params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.tools(params.clone()).await?),
        }
    }

    pub(crate) async fn lint(&self, params: &LintParams) -> Result<LintReport, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.lint(params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.lint(params.clone()).await?),
        }
    }

    pub(crate) async fn graph(&self) -> Result<GraphReport, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.graph().await?),
            Runtime::Embedded { engine, .. } => Ok(engine.graph().await),
        }
    }

    pub(crate) async fn doctor(&self, params: &StatusParams) -> Result<DoctorReport, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.doctor(params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.doctor(params).await?),
        }
    }

    pub(crate) async fn logs(&self, params: &LogsParams) -> Result<Vec<LogEntry>, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.logs(params).await?),
            Runtime::Embedded { engine, .. } => {
                let entries = engine.logs(params).await;
                if entries.is_empty() {
                    engine.expect_plugin(params.plugin.as_ref())?;
                }
                Ok(entries)
            }
        }
    }

    pub(crate) async fn add(&self, params: &AddParams) -> Result<AddReport, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.add(params).await?),
            Runtime::Embedded { engine, .. } => match engine.add(params).await {
                Ok(report) => Ok(report),
                Err(error) => Ok(instead(engine, error).await?.add(params).await?),
            },
        }
    }

    pub(crate) async fn remove(&self, params: &PluginsParams) -> Result<ChangeReport, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.remove(params).await?),
            Runtime::Embedded { engine, .. } => match engine.remove(params).await {
                Ok(report) => Ok(report),
                Err(error) => Ok(instead(engine, error).await?.remove(params).await?),
            },
        }
    }

    pub(crate) async fn enable(&self, params: &PluginsParams) -> Result<ChangeReport, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.enable(params).await?),
            Runtime::Embedded { engine, .. } => match engine.enable(params).await {
                Ok(report) => Ok(report),
                Err(error) => Ok(instead(engine, error).await?.enable(params).await?),
            },
        }
    }

    pub(crate) async fn disable(&self, params: &PluginsParams) -> Result<ChangeReport, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.disable(params).await?),
            Runtime::Embedded { engine, .. } => match engine.disable(params).await {
                Ok(report) => Ok(report),
                Err(error) => Ok(instead(engine, error).await?.disable(params).await?),
            },
        }
    }

    /// Ends what was begun here soon, when nobody waits for a call of it any more.
    ///
    /// A plugin has a moment to see that the call is cancelled, and is then ended.
    pub(crate) async fn finish_soon(self) {
        let Runtime::Embedded { engine, .. } = self else { return };
        warn(&engine);
        let first = engine.shutdown();
        tokio::pin!(first);
        if tokio::time::timeout(MOMENT, &mut first).await.is_err() {
            tokio::join!(first, engine.shutdown());
        }
    }

    /// Ends what was begun here: an embedded engine's plugins stop, a connection closes.
    ///
    /// What came up that an operator is to know of is said first. A signal meanwhile skips the graces.
    pub(crate) async fn finish(self) {
        if let Runtime::Embedded { engine, .. } = &self {
            warn(engine);
        }
        self.end().await;
    }

    /// The same where a log was shown all along.
    pub(crate) async fn end(self) {
        let Runtime::Embedded { engine, .. } = self else { return };
        let first = engine.shutdown();
        tokio::pin!(first);
        let interrupted = tokio::select! {
            _ = &mut first => return,
            interrupted = interrupted() => interrupted,
        };
        if interrupted {
            tokio::join!(first, engine.shutdown());
        } else {
            first.await;
        }
    }
}

/// Says on stderr what else only the daemon's log and `plugd doctor` would.
fn warn(engine: &Engine) {
    for remark in engine.remarks() {
        complain(&format!("warning: {}", visible_line(&remark)));
    }
}

/// What a call to an engine in this process is made through.
fn via(asker: Option<Asker>) -> Via {
    Via { asker, connection: Some(HERE) }
}

/// The daemon that has started since none was found, where it is the reason for the error.
async fn instead(engine: &Engine, error: CallError) -> Result<Client, Failure> {
    if error.code != ErrorKind::AlreadyRunning.code() {
        return Err(error.into());
    }
    Ok(Client::connect(&engine.config().socket).await?)
}

/// Makes this process one that plugins can be spawned from and leave nothing behind.
pub(crate) fn prepare_for_plugins() {
    // Whatever our caller left open must not reach the plugins.
    close_fds::set_fds_cloexec(3, &[]);
    if let Err(error) = plugd_engine::launcher::adopt_orphans() {
        tracing::warn!(%error, "orphans of plugins go elsewhere");
    }
}

/// SIGINT and SIGTERM from now on: none is lost between two waits for them.
pub(crate) struct Interruptions(Option<(Signal, Signal)>);

impl Interruptions {
    pub(crate) fn watch() -> Interruptions {
        let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
        Interruptions(match signals {
            (Ok(interrupt), Ok(terminate)) => Some((interrupt, terminate)),
            _ => None,
        })
    }

    /// Resolves at the next one; never where they cannot be caught.
    pub(crate) async fn next(&mut self) {
        match &mut self.0 {
            Some((interrupt, terminate)) => tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            },
            None => std::future::pending().await,
        }
    }
}

/// Resolves at SIGINT or SIGTERM; false if they cannot be caught.
pub(crate) async fn interrupted() -> bool {
    let mut signals = Interruptions::watch();
    if signals.0.is_some() {
        signals.next().await;
    }
    signals.0.is_some()
}
