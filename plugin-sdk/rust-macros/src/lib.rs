//! The attribute that makes a function an operation of a plugin.
//!
//! Used through `plugd-sdk`, whose `operation` says all about it.
#![deny(missing_docs)]

mod expand;
mod named;
mod options;
mod parameters;

use proc_macro::TokenStream;

/// Makes a function an operation; `plugd_sdk::operation` says how.
#[proc_macro_attribute]
pub fn operation(options: TokenStream, function: TokenStream) -> TokenStream {
    let expanded = expand::operation(options.into(), function.into());
    expanded.unwrap_or_else(|error| error.into_compile_error()).into()
}
