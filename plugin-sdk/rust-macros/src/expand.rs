//! The function with its declaration beside it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, ExprLit, GenericParam, ItemFn, Lit, Meta, PathArguments, Result, ReturnType,
    Signature, Type,
};

use crate::options::Options;
use crate::parameters::{self, Argument, Parameter};

/// The longest name that an operation may have.
const NAME_MAX: usize = 64;

/// Expands the attribute.
pub(crate) fn operation(options: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let options: Options = syn::parse2(options)?;
    let mut function: ItemFn = syn::parse2(function)
        .map_err(|error| Error::new(error.span(), "`operation` goes before a function, which becomes one"))?;
    check(&function.sig)?;
    let parameters = parameters::read(&mut function.sig.inputs)?;
    let companion = companion(&options, &function, &parameters)?;
    Ok(quote! {
        // There are as many as the operation has.
        #[allow(clippy::too_many_arguments)]
        #function
        #companion
    })
}

fn check(signature: &Signature) -> Result<()> {
    let generic = signature.generics.params.iter().find(|it| !matches!(it, GenericParam::Lifetime(_)));
    if let Some(generic) = generic {
        let text = "an operation has no type parameters: its schema is that of the types it names";
        return Err(Error::new(generic.span(), text));
    }
    if signature.asyncness.is_some() && !cfg!(feature = "async") {
        let text = "an `async` operation needs the feature `async` of plugd-sdk: \
                    plugd-sdk = { …, features = [\"async\"] }";
        return Err(Error::new(signature.asyncness.span(), text));
    }
    Ok(())
}

/// The type of the function's name, whose `operation` is the declaration.
fn companion(options: &Options, function: &ItemFn, parameters: &[Parameter]) -> Result<TokenStream> {
    let ItemFn { vis, sig, attrs, .. } = function;
    let companion = &sig.ident;
    let name = name(options, companion)?;
    let doc = doc_of(attrs);
    let conditions = attrs.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    let conditions = quote!(#(#conditions)*);

    let members = arguments(parameters).map(|argument| argument.member(companion));
    let defaults = arguments(parameters).filter_map(Argument::default_function);
    let whole = parameters.iter().find_map(|parameter| match parameter {
        Parameter::Arguments(whole) => Some(quote!(#whole)),
        _ => None,
    });
    let derives = whole.is_none().then(|| {
        quote! {
            #[derive(::plugd_sdk::serde::Deserialize, ::plugd_sdk::schemars::JsonSchema)]
            #[serde(crate = "::plugd_sdk::serde")]
            #[schemars(crate = "::plugd_sdk::schemars")]
        }
    });
    let taken = whole.unwrap_or_else(|| quote!(#companion));
    let handler = handler(sig, parameters, &taken);
    let (generics, state) = match state_of(parameters) {
        Some(state) => (None, quote!(#state)),
        // Whatever the plugin's is; the name is nobody's else.
        None => (Some(quote!(<PluginState: 'static>)), quote!(PluginState)),
    };
    let new = if sig.asyncness.is_some() { quote!(new_async) } else { quote!(new) };
    let declared = &options.declared;
    Ok(quote! {
        #conditions
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #derives
        #vis struct #companion { #(#members,)* }

        #conditions
        // `Ok(…?)` is for the conversion of any error.
        #[allow(clippy::needless_question_mark)]
        impl #companion {
            /// The operation that runs the function of this name.
            #vis fn operation #generics () -> ::plugd_sdk::Operation<#state> {
                ::plugd_sdk::Operation::#new(#name, #handler).documented(#doc) #declared
            }

            #(#defaults)*
        }
    })
}

/// The closure that calls the function with what it wants, in its order.
fn handler(signature: &Signature, parameters: &[Parameter], taken: &TokenStream) -> TokenStream {
    // No name of the author's can be meant by these, and they mean none of the author's.
    let [arguments, state, context] =
        ["arguments", "state", "context"].map(|name| Ident::new(name, Span::mixed_site()));
    let given = parameters.iter().map(|parameter| match parameter {
        Parameter::Context => quote!(#context),
        Parameter::State(_) => quote!(#state),
        Parameter::Arguments(_) => quote!(#arguments),
        Parameter::Argument(argument) => {
            let name = &argument.name;
            quote!(#arguments.#name)
        }
    });
    let (function, given) = (&signature.ident, quote!(#(#given),*));
    let is_async = signature.asyncness.is_some();
    let awaited = is_async.then(|| quote!(.await));
    let (tried, given_back) = answer(&signature.output);
    let (asyncness, context_type) = match &signature.asyncness {
        Some(asyncness) => (Some(asyncness), quote!(AsyncContext)),
        None => (None, quote!(Context)),
    };
    let state = state_of(parameters).map(|ty| quote!(#state: &#ty,));
    quote! {
        #asyncness |#arguments: #taken, #state #context: &::plugd_sdk::#context_type|
            -> ::core::result::Result<_, ::plugd_sdk::Error>
        {
            let _ = (&#arguments, #context);
            #given_back
            ::core::result::Result::Ok(#function(#given) #awaited #tried)
        }
    }
}

fn state_of(parameters: &[Parameter]) -> Option<&Type> {
    parameters.iter().find_map(|parameter| match parameter {
        Parameter::State(state) => Some(&**state),
        _ => None,
    })
}

/// What follows the call where it gives a `Result`, and a line that does not compile unless the data is some.
///
/// Both are told of where the type stands, rather than of the attribute.
fn answer(output: &ReturnType) -> (Option<TokenStream>, Option<TokenStream>) {
    let ReturnType::Type(_, ty) = output else { return (None, None) };
    let last = match &**ty {
        Type::Path(path) => path.path.segments.last().filter(|segment| segment.ident == "Result"),
        _ => None,
    };
    let Some(result) = last else {
        return (None, Some(quote_spanned!(ty.span()=> ::plugd_sdk::is_given_back::<#ty>();)));
    };
    let data = match &result.arguments {
        PathArguments::AngleBracketed(arguments) => arguments.args.first(),
        _ => None,
    };
    let given_back = data.map(|data| quote_spanned!(data.span()=> ::plugd_sdk::is_given_back::<#data>();));
    (Some(quote_spanned!(ty.span()=> ?)), given_back)
}

fn arguments(parameters: &[Parameter]) -> impl Iterator<Item = &Argument> {
    parameters.iter().filter_map(|parameter| match parameter {
        Parameter::Argument(argument) => Some(&**argument),
        _ => None,
    })
}

/// The operation's name: the one given, or the function's.
fn name(options: &Options, function: &Ident) -> Result<String> {
    let (name, span) = match &options.name {
        Some(name) => (name.value(), name.span()),
        None => (function.unraw().to_string(), function.span()),
    };
    let fits = |character: char| matches!(character, 'a'..='z' | '0'..='9' | '_');
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(fits) {
        let text = format!(
            "an operation's name is made of 1 to {NAME_MAX} of a-z, 0-9 and _: say `name = \"…\"`, got {name:?}"
        );
        return Err(Error::new(span, text));
    }
    Ok(name)
}

/// The text of the doc comment, line by line.
fn doc_of(attributes: &[Attribute]) -> String {
    let line = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(doc) if doc.path.is_ident("doc") => match &doc.value {
            Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => Some(line.value()),
            _ => None,
        },
        _ => None,
    };
    attributes.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Why it is no operation.
    #[track_caller]
    fn refused(options: &str, function: &str) -> String {
        let [options, function] = [options, function].map(|text| text.parse().expect("tokens"));
        operation(options, function).expect_err("it is refused").to_string()
    }

    #[test]
    fn what_is_misspelt_is_told_with_what_there_is() {
        let said = refused("readonly", "fn f() {}");
        assert!(
            said.starts_with("unknown option `readonly`: did you mean `read_only`? there are `name`"),
            "{said}"
        );
        let said = refused("", "fn f(#[arg(min = 1)] a: u8, b: u8) {}");
        assert!(said.starts_with("unknown option `min`: there are `default`, `description`"), "{said}");
        let said = refused("", "fn f(#[arg(defalt = 1)] a: u8, b: u8) {}");
        assert!(said.starts_with("unknown option `defalt`: did you mean `default`? there are"), "{said}");
        let said = refused("idempotnet", "fn f() {}");
        assert!(said.starts_with("unknown option `idempotnet`: did you mean `idempotent`?"), "{said}");
        assert_eq!(refused("title", "fn f() {}"), "expected `title = …`");
        assert_eq!(refused("name = 1", "fn f() {}"), "expected `name = \"…\"`");
        assert_eq!(refused("examples", "fn f() {}"), "expected `examples(…, …)`");
        assert_eq!(refused("read_only = 1", "fn f() {}"), "expected `read_only or = false`");
        assert_eq!(refused("title = \"a\", title = \"b\"", "fn f() {}"), "`title` is said twice");
        assert_eq!(
            refused("confirm = \"maybe\"", "fn f() {}"),
            "expected one of \"auto\", \"always\", \"never\""
        );
    }

    #[test]
    fn a_parameter_that_is_none_is_told_what_to_be() {
        let cases = [
            ("fn f(name: &str) {}", "arguments are taken by value: use `String`"),
            ("fn f(names: &[String]) {}", "arguments are taken by value: use `Vec<…>`"),
            ("fn f(state: &mut S) {}", "take it as `&State`, with a `Mutex`"),
            ("fn f(a: &S, b: &T) {}", "an operation has one state"),
            ("fn f(a: &Context, b: &Context) {}", "an operation has one context"),
            ("fn f(a: u8, cx: Context) {}", "taken by reference: use `&Context`"),
            ("fn f(cx: plugd_sdk::Context) {}", "taken by reference: use `&Context`"),
            ("fn f(#[arg(default = 20, range = 1..=7)] a: u8, b: u8) {}", "not within the range"),
            ("fn f(#[arg(range = 1.5.., default = -2)] a: f64, b: u8) {}", "not within the range"),
            ("fn f(&self) {}", "it takes no `self`"),
            ("fn f((a, b): (u8, u8), c: u8) {}", "expected a name"),
            ("fn f(#[doc = \"x\"] args: A) {}", "a struct of arguments has it on its fields"),
            ("fn f(#[arg(default)] cx: &Context) {}", "only an argument is described here"),
            ("fn f(#[arg(range = 1..9)] a: u8) {}", "expected `..=`"),
            ("fn f(#[arg(range = 9)] a: u8) {}", "expected `range = 1..=10`"),
        ];
        for (function, why) in cases {
            let said = refused("", function);
            assert!(said.contains(why), "{function}: {said}");
        }
    }

    #[test]
    fn only_a_plain_function_becomes_an_operation() {
        assert!(refused("", "struct S;").contains("goes before a function"));
        assert!(refused("", "fn f<T>(a: T) {}").contains("no type parameters"));
        assert!(refused("", "fn fÜ() {}").contains("a-z, 0-9 and _"));
        assert!(refused("name = \"do it\"", "fn f() {}").contains("\"do it\""));
        if !cfg!(feature = "async") {
            assert!(refused("", "async fn f() {}").contains("features = [\"async\"]"));
        }
    }
}
