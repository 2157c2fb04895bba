//! The files that the build put into the program: templates, and SDKs as they are shipped.

use super::Language;

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// What every folder's page of three steps says.
pub(super) const README: &str = include_str!("../../templates/README.md");

/// Files by their paths, as they were when this program was built.
pub(super) type Files = &'static [(&'static str, &'static str)];

/// The licences of all that is copied.
pub(super) fn licences() -> Files {
    LICENCES
}

/// The files of a plugin's own.
pub(super) fn template(language: Language) -> Files {
    match language {
        Language::Rust => TEMPLATE_RUST,
        Language::Python => TEMPLATE_PYTHON,
        Language::Node => TEMPLATE_NODE,
        Language::Go => TEMPLATE_GO,
        Language::Sh => TEMPLATE_SH,
    }
}

/// The SDK; none in sh.
pub(super) fn sdk(language: Language) -> Files {
    match language {
        Language::Rust => SDK_RUST,
        Language::Python => SDK_PYTHON,
        Language::Node => SDK_NODE,
        Language::Go => SDK_GO,
        Language::Sh => &[],
    }
}
