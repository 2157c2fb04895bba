//! Reading TOML tables key by key, so that every problem is found at once and knows its line.

use std::collections::BTreeMap;
use std::path::Path;

use plugd_contract::nearest;
use plugd_protocol::PluginName;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::ConfigProblem;
use super::{OWN_NAME, OWN_NAME_TAKEN};

/// A file being read, and what was found wrong so far.
pub(super) struct Reader<'t> {
    pub(super) file: &'t Path,
    pub(super) text: &'t str,
    pub(super) problems: &'t mut Vec<ConfigProblem>,
}

/// A value as TOML has it, with its place in the file.
pub(super) type Found<'i> = Spanned<DeValue<'i>>;

/// What can be read from a TOML value.
pub(super) trait Read: Sized {
    /// Reads a value at a key; `None` once a problem was reported.
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<Self>;
}

/// What one file says laid over what another says.
pub(super) trait Layer: Sized {
    /// This, where it says something, and `base` where it does not.
    #[must_use]
    fn over(self, base: Self) -> Self {
        let _ = base;
        self
    }
}

/// A value and the line it begins on.
#[derive(Clone)]
pub(super) struct At<T> {
    pub(super) line: usize,
    pub(super) value: T,
}

impl Reader<'_> {
    /// Reports a problem with a value; the message follows the key.
    pub(super) fn wrong(&mut self, value: &Found<'_>, key: &str, message: &str) {
        let message = if key.is_empty() { message.to_owned() } else { format!("{key}: {message}") };
        self.report(Some(self.line(value.span().start)), key, message, None);
    }

    /// Reports a value of the wrong kind.
    pub(super) fn expected<T>(&mut self, value: &Found<'_>, key: &str, expected: &str) -> Option<T> {
        self.wrong(value, key, &format!("expected {expected}, got {}", given(value.get_ref())));
        None
    }

    /// The same without showing what is there, for it may be a secret.
    pub(super) fn expected_unshown<T>(&mut self, value: &Found<'_>, key: &str, expected: &str) -> Option<T> {
        self.wrong(value, key, &format!("expected {expected}, got {}", kind(value.get_ref())));
        None
    }

    fn report(&mut self, line: Option<usize>, key: &str, message: String, suggestion: Option<String>) {
        let file = Some(self.file.to_owned());
        self.problems.push(ConfigProblem { file, line, key: key.to_owned(), message, suggestion });
    }

    /// The line a byte of the file is on, from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().get(..offset).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

/// One table, being read: it remembers which keys somebody asked for.
pub(super) struct Fields<'a, 'i> {
    table: &'a DeTable<'i>,
    key: &'a str,
    known: Vec<&'static str>,
    silent: Vec<&'static str>,
}

impl<'a, 'i> Fields<'a, 'i> {
    pub(super) fn new(table: &'a DeTable<'i>, key: &'a str) -> Fields<'a, 'i> {
        Fields { table, key, known: Vec::new(), silent: Vec::new() }
    }

    /// Reads the value of a key, where it is there and of the right form.
    pub(super) fn take<T: Read>(&mut self, name: &'static str, reader: &mut Reader<'_>) -> Option<T> {
        self.known.push(name);
        let value = self.table.get(name)?;
        T::read(value, &join(self.key, name), reader)
    }

    /// Refuses a key that has a meaning elsewhere or later.
    pub(super) fn refuse(&mut self, name: &'static str, why: &str, reader: &mut Reader<'_>) {
        self.silent.push(name);
        if let Some((key, _)) = self.table.get_key_value(name) {
            let line = reader.line(key.span().start);
            let full = join(self.key, name);
            reader.report(Some(line), &full, format!("{full}: {why}"), None);
        }
    }

    /// Reports every key nobody asked for, with the nearest one somebody did.
    pub(super) fn finish(self, reader: &mut Reader<'_>) {
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if self.known.contains(&name) || self.silent.contains(&name) {
                continue;
            }
            let full = join(self.key, name);
            let suggestion = nearest(name, self.known.iter().copied()).map(str::to_owned);
            let line = reader.line(key.span().start);
            let message = match suggestion {
                Some(_) => format!("unknown key {full}"),
                None => format!("unknown key {full}; known here: {}", self.known.join(", ")),
            };
            reader.report(Some(line), &full, message, suggestion);
        }
    }
}

/// Declares a table of the file once: its keys, how they are read, and how two are laid over.
///
/// Every key is optional. `; with` adds the keys of another form to the same table.
macro_rules! form {
    (
        $(#[$meta:meta])*
        $name:ident {
            $($(#[$key_meta:meta])* $key:ident: $kind:ty,)*
            $(; with $inner:ident: $inner_kind:ty,)?
        }
        $(refusing $($refused:literal: $why:literal,)+)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Default, schemars::JsonSchema)]
        #[schemars(deny_unknown_fields)]
        pub(super) struct $name {
            $($(#[$key_meta])* pub(super) $key: Option<$kind>,)*
            $(#[schemars(flatten)] pub(super) $inner: $inner_kind,)?
        }

        impl $name {
            pub(super) fn read_fields(
                fields: &mut $crate::config::form::Fields<'_, '_>,
                reader: &mut $crate::config::form::Reader<'_>,
            ) -> $name {
                $($(fields.refuse($refused, $why, reader);)+)?
                $name {
                    $($key: fields.take(stringify!($key), reader),)*
                    $($inner: <$inner_kind>::read_fields(fields, reader),)?
                }
            }
        }

        impl $crate::config::form::Read for $name {
            fn read(
                value: &$crate::config::form::Found<'_>,
                key: &str,
                reader: &mut $crate::config::form::Reader<'_>,
            ) -> Option<$name> {
                let Some(table) = value.get_ref().as_table() else {
                    return reader.expected(value, key, "a table");
                };
                let mut fields = $crate::config::form::Fields::new(table, key);
                let form = $name::read_fields(&mut fields, reader);
                fields.finish(reader);
                Some(form)
            }
        }

        impl $crate::config::form::Layer for $name {
            fn over(self, base: $name) -> $name {
                $name {
                    $($key: self.$key.over(base.$key),)*
                    $($inner: self.$inner.over(base.$inner),)?
                }
            }
        }
    };
}
pub(super) use form;

impl<T: Layer> Layer for Option<T> {
    fn over(self, base: Option<T>) -> Option<T> {
        match (self, base) {
            (Some(this), Some(base)) => Some(this.over(base)),
            (this, base) => this.or(base),
        }
    }
}

impl<K: Ord, T> Layer for BTreeMap<K, T> {
    fn over(self, mut base: BTreeMap<K, T>) -> BTreeMap<K, T> {
        base.extend(self);
        base
    }
}

impl<T: Read> Read for At<T> {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<At<T>> {
        let line = reader.line(value.span().start);
        Some(At { line, value: T::read(value, key, reader)? })
    }
}

impl<T: schemars::JsonSchema> schemars::JsonSchema for At<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}

impl<T: Read> Read for BTreeMap<PluginName, T> {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<BTreeMap<PluginName, T>> {
        let Some(table) = value.get_ref().as_table() else {
            return reader.expected(value, key, "a table with a plugin's name for each key");
        };
        let mut map = BTreeMap::new();
        for (name, value) in table {
            let full = join(key, name.get_ref());
            let read = T::read(value, &full, reader);
            match PluginName::new(name.get_ref()) {
                Ok(name) if key == "plugins" && name.as_str() == OWN_NAME => {
                    reader.wrong(value, key, OWN_NAME_TAKEN);
                }
                Ok(name) => map.extend(read.map(|read| (name, read))),
                Err(error) => reader.wrong(value, key, &error.to_string()),
            }
        }
        Some(map)
    }
}

/// A key below another.
pub(super) fn join(key: &str, name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let name = if !name.is_empty() && name.bytes().all(bare) { name.to_owned() } else { format!("{name:?}") };
    if key.is_empty() { name } else { format!("{key}.{name}") }
}

/// What stands in the file, in words.
pub(super) fn given(value: &DeValue<'_>) -> String {
    const SHOWN_MAX_CHARS: usize = 60;
    match value {
        DeValue::String(text) => {
            format!("the string {:?}", plugd_protocol::error::clip(text.to_string(), SHOWN_MAX_CHARS))
        }
        DeValue::Integer(integer) => format!("the integer {integer}"),
        DeValue::Float(float) => format!("the number {float}"),
        DeValue::Boolean(boolean) => boolean.to_string(),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => kind(value).to_owned(),
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
