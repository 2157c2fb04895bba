//! `name`, `name = value` and `name(value, …)`: what stands in the parentheses of an attribute.

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprLit, Lit, LitBool, LitStr, Result, Token, parenthesized, token};

/// One thing that is said in an attribute.
pub(crate) struct Named {
    name: Ident,
    given: Given,
}

enum Given {
    Nothing,
    Value(Expr),
    List(Vec<Expr>),
}

impl Parse for Named {
    fn parse(input: ParseStream<'_>) -> Result<Named> {
        let name = input.call(Ident::parse_any)?;
        let given = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            Given::Value(input.parse()?)
        } else if input.peek(token::Paren) {
            let list;
            parenthesized!(list in input);
            Given::List(Punctuated::<Expr, Token![,]>::parse_terminated(&list)?.into_iter().collect())
        } else {
            Given::Nothing
        };
        Ok(Named { name, given })
    }
}

impl Named {
    /// All that is said, in its order.
    pub(crate) fn all(input: ParseStream<'_>) -> Result<Vec<Named>> {
        Ok(Punctuated::<Named, Token![,]>::parse_terminated(input)?.into_iter().collect())
    }

    pub(crate) fn name(&self) -> String {
        self.name.unraw().to_string()
    }

    pub(crate) fn span(&self) -> Span {
        self.name.span()
    }

    /// Whether nothing but the name stands there.
    pub(crate) fn is_bare(&self) -> bool {
        matches!(self.given, Given::Nothing)
    }

    /// The value behind `=`.
    pub(crate) fn value(&self) -> Result<&Expr> {
        match &self.given {
            Given::Value(value) => Ok(value),
            Given::Nothing | Given::List(_) => Err(self.expected("= …")),
        }
    }

    /// The text behind `=`, which must stand there as a literal.
    pub(crate) fn text(&self) -> Result<&LitStr> {
        match self.value() {
            Ok(Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) => Ok(text),
            _ => Err(self.expected("= \"…\"")),
        }
    }

    /// The values in parentheses, or the one behind `=`.
    pub(crate) fn list(&self) -> Result<&[Expr]> {
        match &self.given {
            Given::List(list) => Ok(list),
            Given::Value(value) => Ok(std::slice::from_ref(value)),
            Given::Nothing => Err(self.expected("(…, …)")),
        }
    }

    /// Whether it is switched on: by its name alone, or by `= true`.
    pub(crate) fn flag(&self) -> Result<bool> {
        match &self.given {
            Given::Nothing => Ok(true),
            Given::Value(Expr::Lit(ExprLit { lit: Lit::Bool(LitBool { value, .. }), .. })) => Ok(*value),
            Given::Value(_) | Given::List(_) => Err(self.expected("or = false")),
        }
    }

    /// Says that there is no such name, and which there are.
    pub(crate) fn unknown(&self, known: &[&str]) -> Error {
        let name = self.name();
        let bare = |name: &str| name.replace('_', "");
        let slips = if name.len() > 5 { 2 } else { 1 };
        let nearest = known
            .iter()
            .find(|known| bare(known) == bare(&name) || known.starts_with(&name))
            .or_else(|| known.iter().find(|known| distance(&name, known) <= slips));
        let nearest = nearest.map(|nearest| format!("did you mean `{nearest}`? ")).unwrap_or_default();
        let known = known.join("`, `");
        Error::new(self.span(), format!("unknown option `{name}`: {nearest}there are `{known}`"))
    }

    fn expected(&self, form: &str) -> Error {
        Error::new(self.span(), format!("expected `{} {form}`", self.name()).replace(" (", "("))
    }
}

/// How many letters were left out, put in or changed.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, theirs) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *theirs);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
