//! The parameters of a function: arguments of the call, the plugin's state, the call's context.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, ExprLit, ExprRange, ExprUnary, FnArg, Lit, Pat, PatType, RangeLimits, Result,
    Type, TypeReference, UnOp,
};

use crate::named::Named;

/// What may be said of an argument.
const KNOWN: &[&str] = &[
    "default",
    "description",
    "example",
    "examples",
    "format",
    "length",
    "pattern",
    "range",
    "rename",
    "secret",
];

/// What a parameter stands for.
pub(crate) enum Parameter {
    /// The call's context.
    Context,
    /// What the plugin's operations share.
    State(Box<Type>),
    /// All arguments in one struct.
    Arguments(Box<Type>),
    /// One argument.
    Argument(Box<Argument>),
}

/// One argument, as the member of a struct.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    /// Doc comments and what serde and schemars are told.
    attributes: Vec<TokenStream>,
    default: Option<Expr>,
    /// The bounds of its value, where they are said.
    range: Option<ExprRange>,
}

/// Reads the parameters, and takes off them what only this attribute understands.
pub(crate) fn read(
    inputs: &mut syn::punctuated::Punctuated<FnArg, syn::Token![,]>,
) -> Result<Vec<Parameter>> {
    let is_alone = inputs.iter().filter(|input| !is_reference(input)).count() == 1;
    let mut read = Vec::new();
    for input in inputs.iter_mut() {
        let span = input.span();
        let FnArg::Typed(parameter) = input else {
            return Err(Error::new(span, "an operation is a function, not a method: it takes no `self`"));
        };
        let parameter = one(parameter, is_alone)?;
        let again = |seen: &Parameter| match (seen, &parameter) {
            (Parameter::Context, Parameter::Context) => Some("an operation has one context"),
            (Parameter::State(_), Parameter::State(_)) => Some(
                "an operation has one state, its reference: arguments are taken by value, such as `String`",
            ),
            _ => None,
        };
        if let Some(why) = read.iter().find_map(again) {
            return Err(Error::new(span, why));
        }
        read.push(parameter);
    }
    Ok(read)
}

fn is_reference(input: &FnArg) -> bool {
    matches!(input, FnArg::Typed(PatType { ty, .. }) if matches!(**ty, Type::Reference(_)))
}

fn one(parameter: &mut PatType, is_alone: bool) -> Result<Parameter> {
    if let Type::Reference(reference) = &*parameter.ty {
        not_described(parameter)?;
        return reference_to(reference);
    }
    if let Type::Path(path) = &*parameter.ty
        && let Some(last) = path.path.segments.last()
        && (last.ident == "Context" || last.ident == "AsyncContext")
    {
        let text = format!("the call's context is taken by reference: use `&{}`", last.ident);
        return Err(Error::new(parameter.ty.span(), text));
    }
    let name = match &*parameter.pat {
        Pat::Ident(pattern) if pattern.subpat.is_none() => Some(pattern.ident.clone()),
        _ => None,
    };
    let is_whole = name
        .as_ref()
        .is_none_or(|name| ["args", "arguments"].contains(&name.to_string().trim_start_matches('_')));
    match name {
        _ if is_alone && is_whole => {
            not_described(parameter)?;
            Ok(Parameter::Arguments(parameter.ty.clone()))
        }
        Some(name) => Argument::read(name, parameter).map(|it| Parameter::Argument(Box::new(it))),
        None => {
            let text = "expected a name: the argument is called by it. A pattern is for a struct that is \
                        the only argument";
            Err(Error::new(parameter.pat.span(), text))
        }
    }
}

/// What is no argument of its own has nothing said about it.
fn not_described(parameter: &PatType) -> Result<()> {
    match parameter.attrs.iter().find(|attribute| is_ours(attribute)) {
        None => Ok(()),
        Some(attribute) => {
            let text = "only an argument is described here: a struct of arguments has it on its fields";
            Err(Error::new(attribute.span(), text))
        }
    }
}

/// Whether an attribute is taken off, for it says something of an argument.
fn is_ours(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc") || attribute.path().is_ident("arg")
}

fn reference_to(reference: &TypeReference) -> Result<Parameter> {
    let owned = match &*reference.elem {
        Type::Path(path) if path.path.is_ident("str") => Some("String"),
        Type::Slice(_) => Some("Vec<…>"),
        _ => None,
    };
    if let Some(owned) = owned {
        let text = format!("arguments are taken by value: use `{owned}`");
        return Err(Error::new(reference.span(), text));
    }
    if reference.mutability.is_some() {
        let text = "state is shared by all calls: take it as `&State`, with a `Mutex` where it changes";
        return Err(Error::new(reference.span(), text));
    }
    let last = match &*reference.elem {
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    };
    Ok(match last.as_deref() {
        Some("Context" | "AsyncContext") => Parameter::Context,
        _ => Parameter::State(reference.elem.clone()),
    })
}

impl Argument {
    fn read(name: Ident, parameter: &mut PatType) -> Result<Argument> {
        let mut argument = Argument {
            name,
            ty: (*parameter.ty).clone(),
            attributes: Vec::new(),
            default: None,
            range: None,
        };
        let (ours, others): (Vec<Attribute>, Vec<Attribute>) =
            std::mem::take(&mut parameter.attrs).into_iter().partition(is_ours);
        parameter.attrs = others;
        for attribute in ours {
            if attribute.path().is_ident("doc") {
                argument.attributes.push(attribute.into_token_stream());
            } else {
                for named in attribute.parse_args_with(Named::all)? {
                    argument.say(&named)?;
                }
            }
        }
        argument.check_default()?;
        // A name that begins with an underscore is one that the function does not look at.
        let plain = argument.name.unraw().to_string();
        if let Some(called) = plain.strip_prefix('_') {
            argument.attributes.insert(0, quote!(#[serde(rename = #called)]));
        }
        Ok(argument)
    }

    fn say(&mut self, named: &Named) -> Result<()> {
        let said = match named.name().as_str() {
            "default" if named.is_bare() => quote!(#[serde(default)]),
            "default" => {
                self.default = Some(named.value()?.clone());
                return Ok(());
            }
            "description" => {
                let text = named.value()?;
                quote!(#[schemars(description = #text)])
            }
            "example" | "examples" => {
                let examples = named.list()?;
                quote!(#(#[schemars(example = &#examples)])*)
            }
            "format" => {
                let format = named.text()?;
                quote!(#[schemars(extend("format" = #format))])
            }
            "length" => limits(named, "length")?,
            "pattern" => {
                let pattern = named.value()?;
                quote!(#[schemars(regex(pattern = #pattern))])
            }
            "range" => {
                let said = limits(named, "range")?;
                if let Expr::Range(range) = named.value()? {
                    self.range = Some(range.clone());
                }
                said
            }
            "rename" => {
                let name = named.text()?;
                quote!(#[serde(rename = #name)])
            }
            "secret" => quote!(#[schemars(extend("writeOnly" = true))]),
            _ => return Err(named.unknown(KNOWN)),
        };
        self.attributes.push(said);
        Ok(())
    }

    /// Refuses a default beyond its bounds, where all of them are plain numbers.
    fn check_default(&self) -> Result<()> {
        let (Some(default), Some(range)) = (&self.default, &self.range) else { return Ok(()) };
        let Some(value) = number(default) else { return Ok(()) };
        let bound = |end: &Option<Box<Expr>>| end.as_deref().and_then(number);
        let is_beyond = bound(&range.start).is_some_and(|least| value < least)
            || bound(&range.end).is_some_and(|most| value > most);
        if is_beyond {
            let text = "the default is not within the range: no caller could give it";
            return Err(Error::new(default.span(), text));
        }
        Ok(())
    }

    /// The member of the struct; `owner` is the struct.
    pub(crate) fn member(&self, owner: &Ident) -> TokenStream {
        let Argument { name, ty, attributes, .. } = self;
        let default = self.default.as_ref().map(|_| {
            let function = format!("{owner}::{}", self.default_name());
            quote!(#[serde(default = #function)])
        });
        quote!(#(#attributes)* #default #name: #ty)
    }

    /// The function that gives the default, if there is one.
    pub(crate) fn default_function(&self) -> Option<TokenStream> {
        let (name, ty) = (self.default_name(), &self.ty);
        let value = self.default.as_ref()?;
        let value = match value {
            // So that "warm" will do for a `String`.
            Expr::Lit(ExprLit { lit: Lit::Str(_), .. }) => quote!(::core::convert::Into::into(#value)),
            _ => quote!(#value),
        };
        Some(quote!(fn #name() -> #ty { #value }))
    }

    fn default_name(&self) -> Ident {
        format_ident!("default_{}", self.name.unraw())
    }
}

/// The number that an expression is, where it is written as one.
fn number(expression: &Expr) -> Option<f64> {
    match expression {
        Expr::Lit(ExprLit { lit: Lit::Int(digits), .. }) => digits.base10_parse().ok(),
        Expr::Lit(ExprLit { lit: Lit::Float(digits), .. }) => digits.base10_parse().ok(),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => number(expr).map(|number| -number),
        _ => None,
    }
}

/// `range = 1..=10` as what schemars is told.
fn limits(named: &Named, keyword: &str) -> Result<TokenStream> {
    let Expr::Range(ExprRange { start, limits, end, .. }) = named.value()? else {
        return Err(Error::new(named.span(), format!("expected `{keyword} = 1..=10`, `1..` or `..=10`")));
    };
    if let (RangeLimits::HalfOpen(dots), Some(_)) = (limits, end) {
        return Err(Error::new(dots.span(), "expected `..=`: the last value is taken too"));
    }
    let keyword = Ident::new(keyword, Span::call_site());
    let least = start.as_ref().map(|start| quote!(min = #start,));
    let most = end.as_ref().map(|end| quote!(max = #end,));
    Ok(quote!(#[schemars(#keyword(#least #most))]))
}
