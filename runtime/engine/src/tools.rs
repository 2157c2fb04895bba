//! What is offered to models, what is not and why, and by which names each operation is found.

use std::collections::BTreeMap;
use std::sync::Arc;

use plugd_contract::export::{self, category, declaration, spelling};
use plugd_contract::nearest;
use plugd_protocol::control::{
    Category, Dialect, Exported, NotOffered, PluginState, Tool, ToolsParams, ToolsReport,
};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::manifest::Audience;
use plugd_protocol::{CallError, PluginName};
use plugd_supervisor::driver::PluginView;

use crate::callers::sees;
use crate::config::{Config, Profile};
use crate::engine::Engine;
use crate::failure::{down, word};
use crate::listing::shown_state;
use crate::outcome::builtin;
use crate::registry::{RegisteredOperation, Snapshot};

/// How everything stood when it was asked for.
struct Standing {
    config: Arc<Config>,
    snapshot: Arc<Snapshot>,
    views: BTreeMap<PluginName, PluginView>,
}

/// Of all operations, those that are offered to somebody, and the others.
struct Offer {
    offered: Vec<Arc<RegisteredOperation>>,
    not_offered: Vec<NotOffered>,
}

impl Engine {
    /// What is offered to models; waits until every plugin was described or cannot be.
    ///
    /// What cannot run is not offered: a model that sees it promises it, and fails.
    ///
    /// # Errors
    /// An unknown caller, tool or category, with the nearest name; a tool that was asked for by name and is
    /// not offered, unless all are asked for.
    pub async fn tools(&self, params: ToolsParams) -> Result<ToolsReport, CallError> {
        let profile = self.profile(params.caller.as_deref())?;
        self.await_described(None, None).await;
        let (engine, standing) = (self.clone(), self.standing().await);
        // A hundred schemas take a while to be written, and calls are not to wait for that.
        let made = tokio::task::spawn_blocking(move || {
            let offer = standing.offer(profile.as_deref());
            engine.report(&standing, offer, &params, profile.as_deref())
        });
        made.await.unwrap_or_else(|error| Err(CallError::new(ErrorKind::Internal, error.to_string())))
    }

    async fn standing(&self) -> Standing {
        Standing {
            config: self.config(),
            snapshot: self.shared().registry.snapshot(),
            views: self.views_by_name().await,
        }
    }

    fn report(
        &self,
        standing: &Standing,
        mut offer: Offer,
        params: &ToolsParams,
        profile: Option<&Profile>,
    ) -> Result<ToolsReport, CallError> {
        if let Some(name) = &params.tool {
            self.keep_only(name, standing, &mut offer, params.all, profile)?;
        }
        if let Some(wanted) = &params.category {
            offer.keep_category(wanted)?;
        }
        let mut tools: Vec<Tool> =
            offer.offered.iter().map(|operation| tool(operation, params.dialect)).collect();
        tools.sort_by(|one, other| one.id.cmp(&other.id));
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for tool in tools.iter().filter(|_| params.categories) {
            *counts.entry(tool.category.clone()).or_default() += 1;
        }
        Ok(ToolsReport {
            categories: counts.into_iter().map(|(name, tools)| Category { name, tools }).collect(),
            bytes: tools.iter().map(|tool| tool.bytes).sum(),
            tools: if params.categories { Vec::new() } else { tools },
            not_offered: if params.all { offer.not_offered } else { Vec::new() },
        })
    }

    /// Leaves the one tool of that name, in any of its spellings.
    fn keep_only(
        &self,
        name: &str,
        standing: &Standing,
        offer: &mut Offer,
        all: bool,
        profile: Option<&Profile>,
    ) -> Result<(), CallError> {
        let snapshot = &standing.snapshot;
        let known = snapshot.operation(name).or_else(|| builtin::operation(name));
        let id = match known.map_or_else(|| snapshot.bare(name), Ok) {
            Ok(operation) => {
                if let Some(profile) = profile {
                    profile.may_use(&operation.id, &operation.operation)?;
                }
                operation.id.to_string()
            }
            // What cannot be called may still be known by its name.
            Err(error) if offer.not_offered.iter().all(|one| one.id != name) => {
                let plugin = name.split_once('.').map(|(plugin, _)| plugin);
                let unknown = plugin.filter(|plugin| self.configured(plugin).is_none() && profile.is_none());
                return Err(unknown.map_or(error, |plugin| self.unknown_plugin(plugin)));
            }
            Err(_) => name.to_owned(),
        };
        offer.offered.retain(|operation| operation.id.to_string() == id);
        offer.not_offered.retain(|one| one.id == id);
        match (all, offer.offered.is_empty(), offer.not_offered.first()) {
            (false, true, Some(one)) => Err(refusal(one)),
            (_, _, _) => Ok(()),
        }
    }

    /// By which names each operation of a plugin is found, and whether it can be called; or only that one.
    pub(crate) async fn exported(&self, plugin: &PluginName, only: Option<&str>) -> Vec<Exported> {
        let standing = self.standing().await;
        let Some(registered) = standing.snapshot.plugin(plugin) else { return Vec::new() };
        let down = standing.down(plugin).map(|(_, reason)| reason);
        let wanted = |name: &str| only.is_none_or(|only| only == name);
        let usable =
            registered.operations().iter().filter(|operation| wanted(operation.id.operation.as_str()));
        let usable = usable.map(|operation| standing.exported(operation, down.as_deref()));
        let unusable = registered.manifest.quarantined.iter().filter(|bad| wanted(&bad.name));
        let unusable = unusable.map(|bad| Exported {
            id: format!("{plugin}.{}", bad.name),
            name: None,
            description: String::new(),
            bytes: 0,
            found_by: Vec::new(),
            unreachable: Some(bad.reason.clone()),
        });
        usable.chain(unusable).collect()
    }
}

impl Standing {
    /// Why nothing of a plugin can be called, where that is so: it would be refused at once.
    fn down(&self, plugin: &PluginName) -> Option<(PluginState, String)> {
        let view = self.views.get(plugin)?;
        let state = shown_state(view);
        down(state)?;
        let reason = match &view.reason_for_callers {
            // Such as: disabled in plugd.toml.
            Some(reason) if reason.starts_with(word(state)) => format!("{plugin} is {reason}"),
            Some(reason) => format!("{plugin} is {}: {reason}", word(state)),
            None => format!("{plugin} is {}", word(state)),
        };
        Some((state, reason))
    }

    /// Sorts what there is for whoever calls.
    fn offer(&self, profile: Option<&Profile>) -> Offer {
        let mut offer = Offer { offered: Vec::new(), not_offered: Vec::new() };
        for plugin in self.config.plugins.keys() {
            let down = self.down(plugin);
            let state = self.views.get(plugin).map_or(PluginState::Registered, shown_state);
            let Some(registered) = self.snapshot.plugin(plugin) else {
                let reason =
                    down.map_or_else(|| format!("{plugin} is not described yet"), |(_, reason)| reason);
                offer.refuse(plugin.to_string(), state, reason, profile);
                continue;
            };
            for operation in registered.operations().iter().filter(|operation| sees(profile, operation)) {
                match self.why_not(operation, down.as_ref()) {
                    None => offer.offered.push(Arc::clone(operation)),
                    Some(reason) => {
                        offer.not_offered.push(NotOffered { id: operation.id.to_string(), state, reason })
                    }
                }
            }
            for bad in &registered.manifest.quarantined {
                offer.refuse(format!("{plugin}.{}", bad.name), state, bad.reason.clone(), profile);
            }
        }
        // Without any tool there is no result to read on.
        if !offer.offered.is_empty() {
            let own = builtin::all().iter().filter(|operation| sees(profile, operation));
            offer.offered.extend(own.cloned());
        }
        offer
    }

    fn why_not(
        &self,
        operation: &RegisteredOperation,
        down: Option<&(PluginState, String)>,
    ) -> Option<String> {
        match operation.operation.audience {
            Audience::Plugins => return Some("it is a service: for plugins and operators".to_owned()),
            Audience::Callers => {}
        }
        if let Some((_, reason)) = down {
            return Some(reason.clone());
        }
        (!self.is_spelled_alone(operation))
            .then(|| "another operation has the same name in the dialects of models".to_owned())
    }

    fn is_spelled_alone(&self, operation: &RegisteredOperation) -> bool {
        self.snapshot.spelled(&spelling(&operation.id)).is_some_and(|found| found.id == operation.id)
    }

    fn exported(&self, operation: &RegisteredOperation, down: Option<&str>) -> Exported {
        let id = operation.id.to_string();
        let spelled = spelling(&operation.id);
        let bare = operation.id.operation.to_string();
        let leads_here = |name: &&String| {
            let found = self.snapshot.operation(name).map_or_else(|| self.snapshot.bare(name), Ok);
            found.is_ok_and(|found| found.id == operation.id)
        };
        let found_by: Vec<String> = [&id, &spelled, &bare].into_iter().filter(leads_here).cloned().collect();
        let is_service = match operation.operation.audience {
            Audience::Plugins => true,
            Audience::Callers => false,
        };
        let name = Some(spelled).filter(|_| !is_service && self.is_spelled_alone(operation));
        let unusable = || operation.contract().err().map(|error| error.message);
        let unreachable = match (down, unusable()) {
            (Some(reason), _) => Some(reason.to_owned()),
            (None, Some(reason)) => Some(reason),
            (None, None) if !found_by.contains(&id) || (name.is_none() && !is_service) => {
                Some("another operation has the same name in the dialects of models".to_owned())
            }
            (None, None) => None,
        };
        Exported {
            id,
            name,
            description: export::description(&operation.operation),
            bytes: tool(operation, Some(Dialect::Openai)).bytes,
            found_by,
            unreachable,
        }
    }
}

impl Offer {
    /// Notes what nobody can call; a profile learns nothing of it.
    fn refuse(&mut self, id: String, state: PluginState, reason: String, profile: Option<&Profile>) {
        if profile.is_none() {
            self.not_offered.push(NotOffered { id, state, reason });
        }
    }

    fn keep_category(&mut self, wanted: &str) -> Result<(), CallError> {
        let all: Vec<String> = self.offered.iter().map(|operation| category(&operation.operation)).collect();
        self.offered.retain(|operation| category(&operation.operation) == wanted);
        if !self.offered.is_empty() {
            return Ok(());
        }
        let error =
            CallError::new(ErrorKind::UnknownOperation, format!("no tool has the category {wanted:?}"));
        Err(match nearest(wanted, all.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean {near}? `plugd tools --categories` shows all")),
            None => error.hint("`plugd tools --categories` shows the categories there are"),
        })
    }
}

fn tool(operation: &RegisteredOperation, dialect: Option<Dialect>) -> Tool {
    let in_form = |dialect| declaration(&operation.id, &operation.operation, dialect);
    let size =
        |declaration: &serde_json::Value| u64::try_from(declaration.to_string().len()).unwrap_or(u64::MAX);
    let declaration = in_form(dialect);
    let bytes = match dialect {
        Some(_) => size(&declaration),
        // No model gets plugd's own form; everywhere it is the size of one of theirs that is told.
        None => size(&in_form(Some(Dialect::Openai))),
    };
    Tool {
        id: operation.id.clone(),
        name: export::name(&operation.id, dialect),
        category: category(&operation.operation),
        declaration,
        bytes,
    }
}

/// The error for a tool that was asked for and is not offered.
fn refusal(one: &NotOffered) -> CallError {
    let kind = down(one.state).unwrap_or(ErrorKind::UnknownOperation);
    let error = CallError::new(kind, format!("{} is not offered: {}", one.id, one.reason));
    match kind {
        ErrorKind::UnknownOperation => error.hint("`plugd tools --all` shows what is not offered, and why"),
        // Of a plugin that is not described yet it is the name alone.
        _ => match PluginName::new(one.id.split('.').next().unwrap_or_default()) {
            Ok(plugin) => error.about(&plugin),
            Err(_) => error,
        },
    }
}
