//! What `plugd new` writes: a plugin in one of the languages, with a copy of its SDK.

mod embedded;
mod folder;
mod language;

pub(crate) use folder::{Made, make, renew_sdk};
pub(crate) use language::Language;
