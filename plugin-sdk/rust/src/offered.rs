//! What the host does for a plugin that asks, and whether this one offers it.

use std::sync::atomic::{AtomicU8, Ordering};

use plugd_protocol::plugin::method;

use crate::error::Error;

/// Something a host may do on behalf of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    /// Call another plugin.
    Calls,
    /// Ask the person behind the call.
    Asks,
    /// Keep variables of the session.
    Vars,
    /// Tell others what happened.
    Events,
}

impl Service {
    const ALL: [Service; 4] = [Service::Calls, Service::Asks, Service::Vars, Service::Events];

    /// The request's method.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Service::Calls => method::HOST_CALL,
            Service::Asks => method::HOST_ASK,
            Service::Vars => "host/vars",
            Service::Events => "host/emit",
        }
    }

    /// The host's word for it in `describe`.
    fn feature(self) -> &'static str {
        match self {
            Service::Calls => "host_calls",
            Service::Asks => "host_asks",
            Service::Vars => "host_vars",
            Service::Events => "host_emit",
        }
    }

    /// What it is, for people.
    fn what(self) -> &'static str {
        match self {
            Service::Calls => "calls of other plugins",
            Service::Asks => "questions",
            Service::Vars => "session variables",
            Service::Events => "events",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The services that a host offers.
pub(crate) struct Offered(AtomicU8);

impl Offered {
    /// Those of a host that has not said: the services that hosts have had from the beginning.
    pub(crate) fn unknown() -> Offered {
        Offered(AtomicU8::new(Service::Calls.bit() | Service::Asks.bit()))
    }

    /// All.
    pub(crate) fn all() -> Offered {
        Offered(AtomicU8::new(u8::MAX))
    }

    /// Those that the host names.
    pub(crate) fn set(&self, features: &[String]) {
        let named = |service: &Service| features.iter().any(|feature| feature == service.feature());
        let bits = Service::ALL.into_iter().filter(named).fold(0, |bits, service| bits | service.bit());
        self.0.store(bits, Ordering::Relaxed);
    }

    /// Whether the host offers it.
    ///
    /// # Errors
    /// Named `not_offered` where it does not.
    pub(crate) fn check(&self, service: Service) -> Result<(), Error> {
        if self.0.load(Ordering::Relaxed) & service.bit() != 0 {
            return Ok(());
        }
        let error = Error::new("not_offered", format!("this host offers no {}", service.what()));
        Err(error.hint(match service {
            Service::Vars => "do without, or keep it in data_dir",
            Service::Calls | Service::Asks | Service::Events => "do without",
        }))
    }
}
