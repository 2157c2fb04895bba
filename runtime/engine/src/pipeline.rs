//! One call from its name to its result: resolve, validate, queue, run, one shape.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plugd_protocol::control::{CallParams, Event, UnixMillis};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::result::{Meta, NextAction};
use plugd_protocol::{CallError, CallId, CallResult, OperationId, Outcome, PluginName, Status};
use plugd_supervisor::driver::{Answered, CallRequest, Deadline, Lease, Lineage, Patience};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::asks::Asker;
use crate::config::{Limits, TIMEOUT_DEFAULT, TIMEOUT_MAX};
use crate::engine::{Engine, Shared};
use crate::events::happening;
use crate::failure::{not_admitted, removed_meanwhile, run_failure};
use crate::registry::{RegisteredOperation, Snapshot};
use plugd_supervisor::driver::unix_now;

/// A call as it arrives.
pub(crate) struct Request {
    pub(crate) operation: String,
    pub(crate) arguments: Option<Box<RawValue>>,
    /// What the caller allows for everything together.
    pub(crate) timeout: Option<Duration>,
    pub(crate) hard_deadline: Option<Instant>,
    /// When the call that waits for it must have ended.
    pub(crate) inherited: Option<Deadline>,
    /// Whom its questions go to.
    pub(crate) asker: Option<Asker>,
    pub(crate) session: Option<Arc<str>>,
    pub(crate) traceparent: Option<Arc<str>>,
    pub(crate) origin: Origin,
}

/// Where a call comes from.
pub(crate) enum Origin {
    /// A script, a program, a person.
    Caller,
    /// Another plugin, through these.
    Plugin { name: PluginName, lineage: Lineage },
}

/// What is learnt on the way, for the result and for whoever watches.
struct Trail<'a> {
    shared: &'a Shared,
    call_id: CallId,
    operation: Option<OperationId>,
    plugin_version: Option<Arc<str>>,
    generation: Option<u64>,
    arrived: Instant,
    arrived_at: UnixMillis,
    /// When a run got it.
    handed_over: Option<Instant>,
    argument_bytes: u64,
    finished: bool,
}

impl Engine {
    /// Runs one call; it always ends in one result.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call: the plugin is told once.
    pub async fn call(&self, params: CallParams) -> CallResult {
        self.call_asking(params, None).await
    }

    /// Runs one call whose questions go to whoever made it; without that they fail at once.
    ///
    /// # Cancel safety
    /// As [`Engine::call`].
    pub async fn call_asking(&self, params: CallParams, asker: Option<Asker>) -> CallResult {
        self.run(Request {
            operation: params.operation,
            arguments: params.arguments,
            timeout: params.timeout_ms.map(Duration::from_millis),
            hard_deadline: None,
            inherited: None,
            asker,
            session: params.session.map(Into::into),
            traceparent: params.traceparent.map(Into::into),
            origin: Origin::Caller,
        })
        .await
    }

    pub(crate) async fn run(&self, request: Request) -> CallResult {
        let mut trail = Trail::begin(self.shared(), &request);
        let outcome = self.run_stages(request, &mut trail).await;
        trail.finish(outcome)
    }

    async fn run_stages(&self, mut request: Request, trail: &mut Trail<'_>) -> Result<Answered, CallError> {
        if request.timeout.is_some_and(|timeout| timeout.is_zero() || timeout > TIMEOUT_MAX) {
            let message = "the timeout must be more than nothing and at most an hour, such as 5s";
            return Err(CallError::new(ErrorKind::MalformedRequest, message));
        }
        // What the caller allows covers everything, finding out what there is included.
        let asked = request.timeout.map(|timeout| trail.arrived + timeout);
        request.hard_deadline = [asked, request.hard_deadline].into_iter().flatten().min();
        let operation = self.resolve(&request.operation, request.hard_deadline).await?;
        let declared = self.shared().registry.snapshot();
        trail.resolved(&operation);
        if let Origin::Plugin { name, lineage } = &request.origin {
            self.admit_plugin(name, lineage, &operation).await?;
        }
        let arguments = arguments(request.arguments.take())?;
        let operation = self.checked(operation, &arguments, request.hard_deadline).await?;

        let (_listed, cancelled) = self.shared().calls.enter(
            &trail.call_id,
            operation.id.clone(),
            trail.arrived_at,
            request.asker.take(),
        );
        let delivered = AtomicBool::new(false);
        let run =
            self.queue_and_run(Resolved { operation, declared }, arguments, &request, trail, &delivered);
        let cancelled = async {
            // An entry that is taken out without a word was not cancelled.
            if cancelled.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            outcome = run => outcome,
            () = cancelled => {
                let outcome = if delivered.load(Ordering::Relaxed) { Outcome::Unknown } else { Outcome::NotRun };
                Err(CallError::new(ErrorKind::Cancelled, "the call was cancelled").outcome(outcome))
            }
        }
    }

    /// Finds the operation; a plugin that was never described is described first.
    async fn resolve(
        &self,
        name: &str,
        deadline: Option<Instant>,
    ) -> Result<Arc<RegisteredOperation>, CallError> {
        let registry = &self.shared().registry;
        if let Some(operation) = registry.snapshot().operation(name) {
            return Ok(Arc::clone(operation));
        }
        let Some((plugin, _)) = name.split_once('.') else {
            self.await_described(None, deadline).await;
            if registry.snapshot().bare(name).is_err() {
                self.remember_others();
            }
            return registry.snapshot().bare(name).cloned();
        };
        let Some(plugin) = self.configured(plugin) else {
            return Err(self.unknown_plugin(plugin));
        };
        self.await_described(Some(&plugin), deadline).await;
        if registry.snapshot().operation(name).is_none() {
            self.described_anew(&plugin, deadline).await;
        }
        let snapshot = registry.snapshot();
        if let Some(operation) = snapshot.operation(name) {
            return Ok(Arc::clone(operation));
        }
        match snapshot.plugin(&plugin) {
            Some(registered) => Err(registered
                .manifest
                .quarantined
                .iter()
                .find(|bad| name.ends_with(&format!(".{}", bad.name)))
                .map(|bad| {
                    let message = format!("{name} is quarantined: {}", bad.reason);
                    CallError::new(ErrorKind::UnknownOperation, message)
                        .hint("the plugin's author must mend it")
                })
                .unwrap_or_else(|| snapshot.unknown(name))),
            None => Err(self.undescribed(&plugin).await),
        }
    }

    /// Whether a plugin may use another one's operation.
    async fn admit_plugin(
        &self,
        plugin: &PluginName,
        lineage: &Lineage,
        operation: &RegisteredOperation,
    ) -> Result<(), CallError> {
        let target = &operation.id.plugin;
        let config = self.config();
        let configured = config.plugins.get(plugin);
        let declared = self.shared().registry.snapshot().plugin(plugin).cloned();
        let requires = configured.is_some_and(|configured| configured.requires.contains_key(target))
            || declared.is_some_and(|declared| declared.manifest.requires.contains_key(target));
        if target != plugin && !requires {
            let message = format!("{plugin} does not require {target}, so it may not call {}", operation.id);
            return Err(CallError::new(ErrorKind::UndeclaredDependency, message));
        }
        let depth_max =
            configured.map_or(Limits::default().call_depth, |configured| configured.limits.call_depth);
        if lineage.depth() >= depth_max as usize {
            let message = format!("this call has come through {} plugins already", lineage.depth());
            return Err(CallError::new(ErrorKind::CallTooDeep, message));
        }
        let lanes = self.lanes(target);
        if lineage.times_through(target) >= lanes as usize {
            let message = match lanes {
                1 => format!("{target} has one lane, and a call that waits for this one holds it"),
                lanes => {
                    format!("{target} has {lanes} lanes, and calls that wait for this one hold them all")
                }
            };
            return Err(CallError::new(ErrorKind::ReentrantCall, message));
        }
        Ok(())
    }

    /// How many calls a plugin takes at once, by manifest and configuration.
    fn lanes(&self, plugin: &PluginName) -> u32 {
        let snapshot = self.shared().registry.snapshot();
        let declared = snapshot.plugin(plugin).map_or(1, |plugin| plugin.manifest.features.concurrency);
        let configured = self.config().plugins.get(plugin).and_then(|plugin| plugin.concurrency);
        configured.map_or(declared, |configured| configured.min(declared))
    }

    /// Waits for a lane and runs the call there; a run that ends before it got the call is passed over.
    async fn queue_and_run(
        &self,
        mut resolved: Resolved,
        arguments: Box<RawValue>,
        request: &Request,
        trail: &mut Trail<'_>,
        delivered: &AtomicBool,
    ) -> Result<Answered, CallError> {
        let plugin = resolved.operation.id.plugin.clone();
        let times = Times::of(self, request, &resolved.operation);
        let lineage = match &request.origin {
            Origin::Caller => Lineage::default(),
            Origin::Plugin { lineage, .. } => lineage.clone(),
        };
        let caller = match &request.origin {
            Origin::Caller => None,
            Origin::Plugin { name, .. } => Some(format!("plugin:{name}").into()),
        };
        let call = Arc::new(CallRequest {
            operation: resolved.operation.id.operation.clone(),
            arguments,
            call_id: trail.call_id.clone(),
            session: request.session.clone(),
            traceparent: request.traceparent.clone(),
            caller,
            attempt: 1,
            timeout: times.run,
            stall_timeout: times.stall,
            hard_deadline: if request.inherited.is_none() { times.patience.hard } else { None },
            inherited: request.inherited.clone(),
            lineage,
        });
        loop {
            let admitted = self.plugins().admit(&plugin, times.patience).await;
            let lease =
                admitted.map_err(|failure| self.unless_removed(&plugin, not_admitted(&plugin, failure)))?;
            self.check_again_where_changed(&mut resolved, &call.arguments)?;
            trail.hand_over(&lease, &resolved.operation);
            delivered.store(true, Ordering::Relaxed);
            match lease.run(Arc::clone(&call)).await {
                Ok(answered) => return Ok(answered),
                Err(failure) => {
                    if let Some(error) = run_failure(&plugin, failure) {
                        return Err(self.unless_removed(&plugin, error));
                    }
                    delivered.store(false, Ordering::Relaxed);
                    trail.handed_over = None;
                }
            }
        }
    }

    /// The error, or a truer one where the plugin is configured no more.
    fn unless_removed(&self, plugin: &PluginName, error: CallError) -> CallError {
        match self.config().plugins.contains_key(plugin) {
            true => error,
            false => removed_meanwhile(plugin, error),
        }
    }

    /// Takes the operation as it is declared now; where that has changed, the arguments are checked again.
    fn check_again_where_changed(
        &self,
        resolved: &mut Resolved,
        arguments: &RawValue,
    ) -> Result<(), CallError> {
        let now = self.shared().registry.snapshot();
        if Arc::ptr_eq(&now, &resolved.declared) {
            return Ok(());
        }
        let identity = resolved.operation.id.to_string();
        let operation = now.operation(&identity).ok_or_else(|| now.unknown(&identity))?;
        if !Arc::ptr_eq(operation, &resolved.operation) {
            check(operation, arguments)?;
            resolved.operation = Arc::clone(operation);
        }
        resolved.declared = now;
        Ok(())
    }
}

/// An operation and the declarations it was found in.
struct Resolved {
    operation: Arc<RegisteredOperation>,
    declared: Arc<Snapshot>,
}

/// How long a call may take for what.
struct Times {
    run: Duration,
    stall: Option<Duration>,
    patience: Patience,
}

impl Times {
    /// The most specific wins: the caller, then the configuration, then the manifest.
    fn of(engine: &Engine, request: &Request, operation: &RegisteredOperation) -> Times {
        let config = engine.config();
        let limits = config.plugins.get(&operation.id.plugin).map_or(config.limits, |plugin| plugin.limits);
        let declared = operation.operation.timeout_ms.map(Duration::from_millis);
        let run = request.timeout.or(limits.timeout).or(declared).unwrap_or(TIMEOUT_DEFAULT).min(TIMEOUT_MAX);
        let declared_stall = operation.operation.stall_timeout_ms.map(Duration::from_millis);
        Times {
            run,
            stall: limits.stall_timeout.unwrap_or(declared_stall),
            patience: Patience { hard: request.hard_deadline, unavailable: run, queue: limits.queue_timeout },
        }
    }
}

/// The arguments as given; none is an empty object.
fn arguments(given: Option<Box<RawValue>>) -> Result<Box<RawValue>, CallError> {
    match given {
        Some(given) if given.get() != "null" => Ok(given),
        _ => RawValue::from_string("{}".to_owned())
            .map_err(|error| CallError::new(ErrorKind::Internal, error.to_string())),
    }
}

/// Whether the arguments fit the operation's schema.
pub(crate) fn check(operation: &RegisteredOperation, arguments: &RawValue) -> Result<(), CallError> {
    operation.contract()?.check(arguments).map_err(|problems| {
        let told: Vec<String> = problems.iter().take(3).map(in_words).collect();
        let more = problems.len().saturating_sub(3);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        let message = format!("the arguments do not fit {}: {}{more}", operation.id, told.join("; "));
        let mut error = CallError::new(ErrorKind::InvalidArguments, message);
        error.details = problems;
        error
    })
}

/// One problem with arguments or configuration, as a sentence has it.
pub(crate) fn in_words(problem: &plugd_protocol::error::ArgumentProblem) -> String {
    let place = if problem.path.is_empty() { "arguments" } else { problem.path.trim_start_matches('/') };
    let got = problem.got.as_deref().map(|got| format!(", got {got}")).unwrap_or_default();
    let near =
        problem.suggestion.as_deref().map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
    let missing = if problem.problem == "required" { "missing, " } else { "" };
    format!("{place}: {missing}expected {}{got}{near}", problem.expected)
}

impl<'a> Trail<'a> {
    fn begin(shared: &'a Shared, request: &Request) -> Trail<'a> {
        let uuid = Uuid::now_v7();
        Trail {
            shared,
            call_id: CallId::new(&*uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer())),
            operation: None,
            plugin_version: None,
            generation: None,
            arrived: Instant::now(),
            arrived_at: arrival(&uuid),
            handed_over: None,
            argument_bytes: request.arguments.as_ref().map_or(0, |arguments| arguments.get().len() as u64),
            finished: false,
        }
    }

    fn resolved(&mut self, operation: &RegisteredOperation) {
        self.operation = Some(operation.id.clone());
        self.plugin_version = Some(Arc::clone(&operation.plugin_version));
        self.emit("call.started", Duration::ZERO, None, None);
    }

    /// A run gets it, with what it declares of the operation.
    fn hand_over(&mut self, lease: &Lease, operation: &RegisteredOperation) {
        self.generation = Some(lease.generation().0);
        self.plugin_version = Some(Arc::clone(&operation.plugin_version));
        self.handed_over = Some(Instant::now());
    }

    /// How long it waited, and how long it ran.
    fn times(&self, outcome: &Result<Answered, CallError>) -> (Duration, Duration) {
        let ended = Instant::now();
        let not_run = outcome.as_ref().is_err_and(|error| error.outcome == Outcome::NotRun);
        let Some(handed_over) = self.handed_over.filter(|_| !not_run) else {
            return (ended.saturating_duration_since(self.arrived), Duration::ZERO);
        };
        let ran = ended.saturating_duration_since(handed_over);
        let ran = outcome.as_ref().map_or(ran, |answered| answered.took);
        (handed_over.saturating_duration_since(self.arrived), ran)
    }

    fn finish(mut self, outcome: Result<Answered, CallError>) -> CallResult {
        let status = match &outcome {
            Ok(_) => Status::Ok,
            Err(error) if error.code == ErrorKind::Cancelled.code() => Status::Cancelled,
            Err(_) => Status::Error,
        };
        self.emit("call.finished", self.arrived.elapsed(), Some(status), outcome.as_ref().err());
        self.finished = true;
        let (queue, run) = self.times(&outcome);
        let meta = Meta {
            call_id: Some(self.call_id.clone()),
            operation: self.operation.take(),
            plugin_version: self.plugin_version.as_deref().map(ToOwned::to_owned),
            generation: self.generation,
            attempt: 1,
            queue_us: micros(queue),
            run_us: micros(run),
            argument_bytes: self.argument_bytes,
            data_bytes: outcome.as_ref().map_or(0, |answered| answered.data.get().len() as u64),
            ..Meta::default()
        };
        match outcome {
            Ok(answered) => CallResult {
                status,
                data: Some(answered.data),
                summary: answered.summary,
                error: None,
                next_actions: answered.next_actions.as_deref().map(next_actions).unwrap_or_default(),
                pending: None,
                page: None,
                meta,
            },
            Err(error) => CallResult {
                status,
                data: None,
                summary: None,
                error: Some(error),
                next_actions: Vec::new(),
                pending: None,
                page: None,
                meta,
            },
        }
    }

    fn emit(&self, kind: &'static str, after: Duration, status: Option<Status>, error: Option<&CallError>) {
        let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        self.shared.events.emit(Event {
            at: UnixMillis(self.arrived_at.0.saturating_add(millis)),
            plugin: self.operation.as_ref().map(|operation| operation.plugin.clone()),
            generation: self.generation,
            reason: error.map(|error| format!("{} {}", error.code, error.name)),
            call_id: Some(self.call_id.clone()),
            operation: self.operation.clone(),
            status,
            duration_us: status.map(|_| micros(after)),
            ..happening(kind)
        });
    }
}

impl Drop for Trail<'_> {
    /// A caller that went away leaves no call without its end.
    fn drop(&mut self) {
        if !self.finished && self.operation.is_some() {
            self.emit("call.finished", self.arrived.elapsed(), Some(Status::Cancelled), None);
        }
    }
}

/// What a plugin suggests; anything else in its place is not handed on.
fn next_actions(written: &RawValue) -> Vec<NextAction> {
    serde_json::from_str(written.get()).unwrap_or_default()
}

/// When a call arrived: a UUIDv7 begins with the time it was made.
fn arrival(uuid: &Uuid) -> UnixMillis {
    let made = uuid.get_timestamp().map(|timestamp| timestamp.to_unix());
    made.map_or_else(unix_now, |(seconds, nanos)| UnixMillis(seconds * 1_000 + u64::from(nanos) / 1_000_000))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
