//! What is declared of an operation in its attribute.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::{Error, LitStr, Result};

use crate::named::Named;

/// All there is to be said.
const KNOWN: &[&str] = &[
    "name",
    "title",
    "description",
    "when_to_use",
    "when_not_to_use",
    "examples",
    "category",
    "audience",
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
    "long_running",
    "cache_ttl",
    "timeout_ms",
    "stall_timeout_ms",
    "confirm",
    "scope",
    "result_limit",
    "input_schema",
    "output_schema",
];

/// What was said.
#[derive(Default)]
pub(crate) struct Options {
    /// The operation's name, where it is not the function's.
    pub(crate) name: Option<LitStr>,
    /// The calls on an `Operation` that declare the rest.
    pub(crate) declared: TokenStream,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Options> {
        let mut options = Options::default();
        let mut effects = TokenStream::new();
        let mut seen: Vec<String> = Vec::new();
        for named in Named::all(input)? {
            let name = named.name();
            if seen.contains(&name) {
                return Err(Error::new(named.span(), format!("`{name}` is said twice")));
            }
            match name.as_str() {
                "name" => options.name = Some(named.text()?.clone()),
                "read_only" | "destructive" | "idempotent" | "open_world" => {
                    let (effect, value) = (syn::Ident::new(&name, named.span()), named.flag()?);
                    effects.extend(quote!(#effect: ::core::option::Option::Some(#value),));
                }
                _ => options.declared.extend(declare(&named)?),
            }
            seen.push(name);
        }
        if !effects.is_empty() {
            options.declared.extend(quote! {
                .effects(::plugd_sdk::Effects { #effects ..::core::default::Default::default() })
            });
        }
        Ok(options)
    }
}

/// The call that declares one option.
fn declare(named: &Named) -> Result<TokenStream> {
    let name = named.name();
    let method = syn::Ident::new(&name, named.span());
    Ok(match name.as_str() {
        "title" | "description" | "when_to_use" | "when_not_to_use" | "category" | "scope"
        | "result_limit" | "input_schema" | "output_schema" => {
            let value = named.value()?;
            quote_spanned!(named.span()=> .#method(#value))
        }
        "examples" => {
            let sentences = named.list()?;
            quote!(.examples([#(#sentences),*]))
        }
        "long_running" => {
            if named.flag()? {
                quote!(.long_running())
            } else {
                TokenStream::new()
            }
        }
        "cache_ttl" => within(named, "cache_ttl", "from_secs")?,
        "timeout_ms" => within(named, "timeout", "from_millis")?,
        "stall_timeout_ms" => within(named, "stall_timeout", "from_millis")?,
        "audience" => one_of(named, &[("callers", TokenStream::new()), ("plugins", quote!(.for_plugins()))])?,
        "confirm" => one_of(
            named,
            &[
                ("auto", TokenStream::new()),
                ("always", quote!(.confirm(::plugd_sdk::Confirm::Always))),
                ("never", quote!(.confirm(::plugd_sdk::Confirm::Never))),
            ],
        )?,
        _ => return Err(named.unknown(KNOWN)),
    })
}

fn within(named: &Named, method: &str, unit: &str) -> Result<TokenStream> {
    let value = named.value()?;
    let [method, unit] = [method, unit].map(|name| syn::Ident::new(name, named.span()));
    Ok(quote_spanned!(named.span()=> .#method(::core::time::Duration::#unit(#value))))
}

fn one_of(named: &Named, choices: &[(&str, TokenStream)]) -> Result<TokenStream> {
    let text = named.text()?;
    let chosen = choices.iter().find(|(word, _)| *word == text.value());
    chosen.map(|(_, tokens)| tokens.to_token_stream()).ok_or_else(|| {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        Error::new(text.span(), format!("expected one of \"{}\"", words.join("\", \"")))
    })
}
