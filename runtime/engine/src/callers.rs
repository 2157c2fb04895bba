//! Who calls: the profile a call is made as, and what that leaves of what there is.

use std::sync::Arc;

use plugd_contract::nearest;
use plugd_protocol::control::CancelParams;
use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, OperationId};

use crate::config::Profile;
use crate::engine::Engine;
use crate::registry::{RegisteredOperation, Snapshot};

impl Engine {
    /// The profile of that name; without a name it is the owner who calls, and may use everything.
    ///
    /// # Errors
    /// 1010, with the nearest name there is.
    pub(crate) fn profile(&self, caller: Option<&str>) -> Result<Option<Arc<Profile>>, CallError> {
        let Some(name) = caller else { return Ok(None) };
        let config = self.config();
        match config.callers.get(name) {
            Some(profile) => Ok(Some(Arc::clone(profile))),
            None => {
                let error = CallError::new(ErrorKind::UnknownCaller, format!("there is no caller {name:?}"));
                Err(match nearest(name, config.callers.keys().map(String::as_str)) {
                    Some(near) => error
                        .hint(format!("did you mean {near}? The profiles are under [callers] in plugd.toml")),
                    None => error,
                })
            }
        }
    }

    /// Stops a call that the caller may see; true when it was still running.
    ///
    /// # Errors
    /// 1010 for an unknown caller; 7004 or 7005 for a call of what the caller may not call.
    pub fn cancel(&self, params: &CancelParams) -> Result<bool, CallError> {
        let profile = self.profile(params.caller.as_deref())?;
        let calls = &self.shared().calls;
        if let Some(profile) = profile.as_deref() {
            // Of one that has just arrived it is not known yet what it calls.
            let Some((operation, _)) = calls.behind(&params.call_id) else { return Ok(false) };
            self.may_see(Some(profile), &operation.to_string())?;
        }
        Ok(calls.cancel(&params.call_id))
    }

    /// Whether whoever calls may see calls of that operation, and read what they gave: who could make them.
    ///
    /// # Errors
    /// 7004 or 7005.
    pub(crate) fn may_see(&self, profile: Option<&Profile>, operation: &str) -> Result<(), CallError> {
        profile.map_or(Ok(()), |profile| may_see(profile, &self.shared().registry.snapshot(), operation))
    }
}

/// The same by what is declared now; what is not is judged by its name.
pub(crate) fn may_see(profile: &Profile, declared: &Snapshot, operation: &str) -> Result<(), CallError> {
    match (declared.operation(operation), OperationId::parse(operation)) {
        (Some(known), _) => profile.may_use(&known.id, &known.operation),
        (None, Ok(id)) => profile.allows(&id, None),
        (None, Err(_)) => profile.allows_name(operation),
    }
}

/// Whether an operation is there for whoever calls: what cannot be called is not listed.
pub(crate) fn sees(profile: Option<&Profile>, operation: &RegisteredOperation) -> bool {
    profile.is_none_or(|profile| profile.may_use(&operation.id, &operation.operation).is_ok())
}
