//! What a call would do, told without doing it.

use plugd_contract::Prepared;
use plugd_protocol::CallError;
use plugd_protocol::control::{CallParams, Confirmation, Explanation, KeyPlan, PluginState, Source};
use plugd_supervisor::driver::NotAdmitted;
use serde_json::value::RawValue;

use super::arguments::object;
use super::{Request, Times, confirm};
use crate::calls::Via;
use crate::engine::Engine;
use crate::failure::not_admitted;
use crate::listing::{millis, shown_state};
use crate::outcome::{cache, results, retry};
use crate::registry::RegisteredOperation;
use crate::spec::plugin_file;

impl Engine {
    /// What a call would do: which operation would run, with what, and what comes before it.
    ///
    /// A plugin that was never described is described; nothing else is started, and nothing runs.
    ///
    /// # Errors
    /// What the call would end with where nothing of that name exists, or may not be used.
    pub async fn explain(&self, params: CallParams) -> Result<Explanation, CallError> {
        let mut request = Request::of_caller(params, Via::default());
        request.take_up_deadline()?;
        let given = object(request.arguments.take());
        let profile = self.profile_of(&request)?;
        let operation = self.resolve(&request, profile.as_deref()).await?;
        self.authorise(&request, profile.as_deref(), &operation)?;

        let contract = operation.contract()?;
        let masked = |value: &RawValue| -> Result<Box<RawValue>, CallError> {
            RawValue::from_string(contract.mask(value).into_owned())
                .map_err(|error| CallError::new(plugd_protocol::ErrorKind::Internal, error.to_string()))
        };
        let mut explanation = self.explained(&request, &operation, masked(&given)?).await;
        match contract.prepare(&given) {
            Prepared::Fits => {
                explanation.arguments = Some(masked(&given)?);
                explanation.unchanged = true;
            }
            Prepared::Ready { arguments, .. } => {
                explanation.arguments = Some(masked(&arguments)?);
                // Masked, what was read as another value may look the same.
                explanation.unchanged = arguments.get() == given.get();
            }
            Prepared::Wrong(problems) => explanation.problems = problems,
            Prepared::Missing { questions, .. } => explanation.missing = questions,
        }
        Ok(explanation)
    }

    /// All of it but what becomes of the arguments.
    async fn explained(
        &self,
        request: &Request,
        operation: &RegisteredOperation,
        given: Box<RawValue>,
    ) -> Explanation {
        let plugin = &operation.id.plugin;
        let config = self.config();
        // What is configured nowhere is built in, and always there.
        let configured = config.plugins.get(plugin);
        let view = self.views_by_name().await.remove(plugin);
        let state = view.as_ref().map_or(PluginState::Ready, shown_state);
        let reason = view.and_then(|view| view.reason_for_callers);
        let refused =
            is_shut(state).then(|| not_admitted(plugin, NotAdmitted::Shut { state, reason: reason.clone() }));
        let times = Times::of(self, request, operation);
        let declared = &operation.operation;
        let id = operation.id.to_string();
        Explanation {
            operation: operation.id.clone(),
            asked_for: (request.operation != id).then(|| request.operation.clone()),
            plugin_version: operation.plugin_version.to_string(),
            source: configured.map_or(Source::Embedded, |plugin| plugin.source.clone()),
            path: configured.map_or_else(String::new, |plugin| plugin_file(plugin).display().to_string()),
            state,
            reason,
            caller: request.caller.as_deref().map(ToOwned::to_owned),
            refused,
            given,
            arguments: None,
            unchanged: false,
            problems: Vec::new(),
            missing: Vec::new(),
            effects: declared.effects,
            confirmation: match (confirm::is_due(declared), request.confirmed) {
                (false, _) => Confirmation::NotNeeded,
                (true, true) => Confirmation::Given,
                (true, false) => Confirmation::Needed,
            },
            cache_ttl: cache::time_to_live(operation).map(|ttl| ttl.as_secs()),
            key: request.key.as_ref().map(|_| match retry::repeatable(declared) {
                true => KeyPlan::NotedAfter,
                false => KeyPlan::NotedBefore,
            }),
            retried: retry::repeatable(declared),
            background: declared.long_running && !request.wait,
            timeout_ms: millis(times.run),
            stall_timeout_ms: times.stall.map(millis),
            queue_timeout_ms: millis(times.patience.queue),
            result_limit: (!request.whole).then(|| results::limit_of(operation) as u64),
        }
    }
}

/// Whether a plugin in this state takes no calls, however long they wait.
fn is_shut(state: PluginState) -> bool {
    match state {
        PluginState::Blocked | PluginState::Disabled | PluginState::Failed | PluginState::Stopped => true,
        PluginState::Registered
        | PluginState::Starting
        | PluginState::Ready
        | PluginState::Busy
        | PluginState::Idle
        | PluginState::Backoff
        | PluginState::Stopping => false,
    }
}
