//! What surrounds the run of a call: earlier answers, keys, background jobs, retries, shape, record.

pub(crate) mod builtin;
pub(crate) mod cache;
pub(crate) mod jobs;
mod keyed;
pub(crate) mod keys;
mod pages;
pub(crate) mod record;
pub(crate) mod recording;
pub(crate) mod redact;
pub(crate) mod results;
pub(crate) mod retry;
mod scrub;
mod stack;
mod summary;
mod untold;

use std::sync::Arc;

pub(crate) use recording::{Recording, set_aside};

/// What is known of calls that run or ran, for those to come.
#[derive(Default)]
pub(crate) struct Outcomes {
    pub(crate) cache: Arc<cache::AnswerCache>,
    pub(crate) keys: Arc<keys::Keys>,
    pub(crate) jobs: Arc<jobs::Jobs>,
    pub(crate) redactors: redact::Redactors,
}
