//! Who calls: the profile a call is made as, and what that leaves of what there is.

use std::sync::Arc;

use plugd_contract::nearest;
use plugd_protocol::CallError;
use plugd_protocol::error::ErrorKind;

use crate::config::Profile;
use crate::engine::Engine;
use crate::registry::RegisteredOperation;

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
}

/// Whether an operation is there for whoever calls: what cannot be called is not listed.
pub(crate) fn sees(profile: Option<&Profile>, operation: &RegisteredOperation) -> bool {
    profile.is_none_or(|profile| profile.may_use(&operation.id, &operation.operation).is_ok())
}
