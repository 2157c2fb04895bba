//! The engine as the supervisor's host: takes manifests, logs and events, routes `host/call`s and `host/ask`s.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use plugd_contract::{Contract, fill_defaults};
use plugd_protocol::control::LogEntry;
use plugd_protocol::error::{Cause, ErrorData, ErrorKind, rpc_code};
use plugd_protocol::plugin::HostAskResult;
use plugd_protocol::{CallError, CallResult, OperationId, PluginName, RpcError};
use plugd_supervisor::driver::{Accepted, Host, HostAsk, HostCall, HostReply, RunEvent, Standing};
use plugd_supervisor::machine::Generation;
use serde_json::value::{RawValue, to_raw_value};

use crate::call::{Origin, Request, in_words};
use crate::calls::Via;
use crate::config::PluginConfig;
use crate::engine::{Engine, Shared};
use crate::events::happening;
use crate::failure::word;
use crate::pin;
use crate::registry::Registered;
use crate::spec;

/// Larger params are not kept with an event: a thousand events are.
const DETAIL_MAX: usize = 16 * 1024;

/// What the supervisor talks to.
pub(crate) struct EngineHost {
    pub(crate) shared: Arc<Shared>,
    /// Set once the engine stands; weak, so that an engine nobody holds can go.
    pub(crate) engine: OnceLock<Weak<crate::engine::Inner>>,
}

/// Why a spare is none.
const OTHER_SPARE: &str = "it declares something else than the run that serves, so it cannot take its place: `plugd \
                           reload NAME` takes up what its program says now";

impl EngineHost {
    /// Registers what the serving run declares, and keeps it for the next start.
    fn take_up(&self, plugin: &PluginName, generation: Generation, declared: &Arc<Registered>) {
        let manifest = &declared.manifest;
        self.shared.look_at_claims(plugin, Some(generation), &declared.written);
        if self.shared.registry.register(plugin, declared) {
            self.shared.outcomes.cache.forget(plugin);
            self.shared.events.emit(plugd_protocol::control::Event {
                plugin: Some(plugin.clone()),
                generation: Some(generation.0),
                ..happening("registry.changed")
            });
            if manifest.name != plugin.as_str() {
                tracing::warn!(%plugin, own = manifest.name, "its manifest has another name; the configured one counts");
            }
            for bad in &manifest.quarantined {
                tracing::warn!(%plugin, operation = bad.name, reason = bad.reason, "an operation is quarantined");
            }
        }
        if let Some(configured) = self.shared.config.borrow().plugins.get(plugin) {
            self.shared.manifests.look_behind(configured);
        }
        let agreed = self.shared.claims.agreed(plugin);
        self.shared.manifests.note(plugin, Arc::clone(&declared.written), &manifest.quarantined, agreed);
    }
}

impl EngineHost {
    /// Whether the run that serves declares the same, in whatever order.
    fn is_declared_already(&self, plugin: &PluginName, manifest: &RawValue) -> bool {
        self.shared.registry.snapshot().plugin(plugin).is_some_and(|registered| {
            registered.written.get() == manifest.get()
                || pin::digest(&registered.written) == pin::digest(manifest)
        })
    }

    /// Why a plugin may not declare this, where the configuration pins something else.
    fn not_pinned(&self, plugin: &PluginConfig, manifest: &RawValue) -> Option<String> {
        if pin::allows(plugin, manifest) {
            return None;
        }
        let snapshot = self.shared.registry.snapshot();
        let registered = snapshot.plugin(&plugin.name).map(|registered| Arc::clone(&registered.written));
        let kept = self.shared.manifests.declared_before(plugin);
        pin::refusal(plugin, manifest, registered.iter().chain(&kept).map(|known| &**known))
    }
}

impl Host for EngineHost {
    fn described(
        &self,
        plugin: &PluginName,
        generation: Generation,
        manifest: &RawValue,
        standing: Standing,
    ) -> Result<Accepted, String> {
        let config = self.shared.config.borrow().clone();
        if let Some(reason) = config.plugins.get(plugin).and_then(|own| self.not_pinned(own, manifest)) {
            return Err(reason);
        }
        let declared = self.shared.registry.look_at(plugin, manifest)?;
        match standing {
            Standing::Serving => self.take_up(plugin, generation, &declared),
            // Callers go on with what the run that serves declares.
            Standing::Candidate => {}
            Standing::Spare if self.is_declared_already(plugin, &declared.written) => {}
            Standing::Spare => return Err(OTHER_SPARE.to_owned()),
        }
        let configured = config.plugins.get(plugin).and_then(|plugin| plugin.concurrency);
        let features = &declared.manifest.features;
        let lanes = configured.map_or(features.concurrency, |lanes| lanes.min(features.concurrency));
        Ok(Accepted {
            declared: spec::declared(&declared.manifest),
            concurrency: lanes.max(1),
            ping: features.ping,
        })
    }

    fn init_config(
        &self,
        plugin: &PluginName,
        written: &serde_json::Value,
        manifest: Option<&RawValue>,
    ) -> Result<Box<RawValue>, String> {
        let declared = match manifest {
            Some(manifest) => Some(self.shared.registry.look_at(plugin, manifest)?),
            None => self.shared.registry.snapshot().plugin(plugin).cloned(),
        };
        let schema = declared.as_ref().and_then(|declared| declared.manifest.config_schema.as_deref());
        let Some(schema) = schema else {
            return to_raw_value(written).map_err(|error| error.to_string());
        };
        let filled = fill_defaults(schema, written);
        let contract = Contract::compile(schema).map_err(|error| format!("config_schema: {error}"))?;
        let raw = to_raw_value(&filled).map_err(|error| error.to_string())?;
        contract.check(&raw).map_err(|problems| {
            let told: Vec<String> =
                problems.iter().map(|problem| format!("config.{}", in_words(problem))).collect();
            told.join("; ")
        })?;
        Ok(raw)
    }

    fn log(&self, entry: LogEntry) {
        self.shared.logs.append(entry);
    }

    fn event(&self, plugin: &PluginName, generation: Generation, event: RunEvent) {
        let (kind, reason, call_id, detail): (Cow<'static, str>, _, _, _) = match event {
            RunEvent::Entered { state, reason } => {
                (format!("plugin.{}", word(state)).into(), reason, None, None)
            }
            RunEvent::Progress { call_id, params } => {
                self.shared.outcomes.jobs.progress(&call_id, &params);
                if let Some((operation, Some(asker))) = self.shared.calls.behind(&call_id) {
                    asker.tell_progress(&call_id, operation, &params);
                }
                ("call.progress".into(), None, Some(call_id), Some(detail(&params)))
            }
            RunEvent::Partial { call_id, params } => {
                ("call.partial".into(), None, Some(call_id), Some(detail(&params)))
            }
            RunEvent::ManifestChanged => ("plugin.manifest_changed".into(), None, None, None),
            RunEvent::Replaced { from } => {
                self.shared.outcomes.cache.forget(plugin);
                ("run.replaced".into(), Some(format!("run {} served until now", from.0)), None, None)
            }
            RunEvent::TookOver { from } => {
                ("run.took_over".into(), Some(format!("run {} failed", from.0)), None, None)
            }
            RunEvent::SpareReady => ("run.spare_ready".into(), None, None, None),
            RunEvent::SpareFailed { reason } => ("run.spare_failed".into(), Some(reason), None, None),
            RunEvent::Reconfigured => {
                self.shared.outcomes.cache.forget(plugin);
                ("run.reconfigured".into(), None, None, None)
            }
            RunEvent::Refused { reason } => ("run.refused".into(), Some(reason), None, None),
            RunEvent::Forgotten => {
                if self.shared.registry.forget(plugin) {
                    self.shared.events.emit(plugd_protocol::control::Event {
                        plugin: Some(plugin.clone()),
                        ..happening("registry.changed")
                    });
                }
                self.shared.outcomes.cache.forget(plugin);
                self.shared.manifests.forget(plugin);
                self.shared.claims.forget(plugin);
                ("plugin.removed".into(), None, None, None)
            }
        };
        self.shared.events.emit(plugd_protocol::control::Event {
            plugin: Some(plugin.clone()),
            generation: Some(generation.0),
            reason,
            call_id,
            detail,
            ..happening(kind)
        });
    }

    fn call(&self, call: HostCall) -> Pin<Box<dyn Future<Output = Result<HostReply, RpcError>> + Send>> {
        let engine = self.engine.get().and_then(Weak::upgrade).map(Engine::of);
        Box::pin(async move {
            let Some(engine) = engine else {
                return Err(RpcError::new(rpc_code::HOST_CALL_FAILED, "plugd is shutting down"));
            };
            // Even where there is no such operation, it is told which failed.
            let named = OperationId::parse(&call.operation).ok();
            reply(engine.call_for_plugin(call).await, named)
        })
    }

    fn ask(&self, ask: HostAsk) -> Pin<Box<dyn Future<Output = Result<HostAskResult, RpcError>> + Send>> {
        let engine = self.engine.get().and_then(Weak::upgrade).map(Engine::of);
        Box::pin(async move {
            match engine {
                Some(engine) => engine.ask_for_plugin(ask).await,
                None => Err(RpcError::new(rpc_code::HOST_ASK_FAILED, "plugd is shutting down")),
            }
        })
    }
}

/// What a plugin tells of a call, as far as an event carries it.
fn detail(params: &str) -> serde_json::Value {
    if params.len() > DETAIL_MAX {
        return serde_json::json!({ "clipped_bytes": params.len() });
    }
    serde_json::from_str(params).unwrap_or_default()
}

impl Engine {
    /// Runs one plugin's use of another, if it declared that it would.
    async fn call_for_plugin(&self, call: HostCall) -> CallResult {
        let calls = &self.shared().calls;
        let behind = call.belongs_to.as_ref().and_then(|outer| calls.behind(outer));
        let asker = behind.and_then(|(_, asker)| asker);
        let now = Instant::now();
        let request = Request {
            operation: call.operation,
            arguments: call.arguments,
            known: None,
            timeout: None,
            hard_deadline: call.deadline.as_ref().map(|deadline| deadline.moment(now)),
            inherited: call.deadline,
            // It ends with the call it is made for.
            via: Via { asker, connection: None },
            session: call.session,
            traceparent: call.traceparent,
            key: None,
            caller: Some(format!("plugin:{}", call.plugin).into()),
            parent: call.belongs_to,
            // Whoever made the outermost call has agreed to that.
            confirmed: false,
            wait: true,
            whole: true,
            origin: Origin::Plugin { name: call.plugin, lineage: call.lineage },
        };
        self.run(request).await
    }
}

/// The result of a call to what was `named` so, in the form a plugin gets.
fn reply(result: CallResult, named: Option<OperationId>) -> Result<HostReply, RpcError> {
    let Some(call_id) = result.meta.call_id else {
        return Err(RpcError::new(rpc_code::INTERNAL, "the call ended without an id"));
    };
    match (result.data, result.error) {
        (Some(data), None) => Ok(HostReply { data, summary: result.summary, call_id }),
        (_, error) => {
            let error = error
                .unwrap_or_else(|| CallError::new(ErrorKind::Internal, "the call ended without a result"));
            let message = error.message.clone();
            let data = ErrorData {
                name: Some(error.name.clone()),
                hint: error.hint.clone(),
                retryable: error.retryable,
                cause: result
                    .meta
                    .operation
                    .or(named)
                    .map(|operation| Box::new(Cause { operation, call_id, error })),
            };
            Err(RpcError { code: rpc_code::HOST_CALL_FAILED, message, data: to_raw_value(&data).ok() })
        }
    }
}
