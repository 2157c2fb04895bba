//! One declared schema, compiled, and the check of arguments against it.

use std::fmt;

use jsonschema::{Draft, PatternOptions, Validator};
use plugd_protocol::error::ArgumentProblem;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::schema::{self, SchemaError};
use crate::shape::Shapes;
use crate::{numbers, problem, words};

/// A pattern may compile to at most this many bytes; a counted repetition can ask for gigabytes.
const PATTERN_SIZE_MAX_BYTES: usize = 4 * 1024 * 1024;

/// A schema compiled once, for checking many arguments.
pub struct Contract {
    validator: Validator,
    shapes: Shapes,
    schema: Value,
}

impl Contract {
    /// Compiles a JSON Schema 2020-12, or draft-07 where its `$schema` says so.
    ///
    /// Nothing is ever fetched, `format` is asserted, and patterns run in linear time.
    ///
    /// # Errors
    /// [`SchemaError`] for a schema that is not valid, not closed in itself, or too deep.
    pub fn compile(input_schema: &RawValue) -> Result<Contract, SchemaError> {
        let schema = schema::parse(input_schema)?;
        let draft7 =
            schema.get("$schema").and_then(Value::as_str).is_some_and(|name| name.contains("draft-07"));
        let validator = jsonschema::options()
            .with_draft(if draft7 { Draft::Draft7 } else { Draft::Draft202012 })
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_SIZE_MAX_BYTES))
            .should_validate_formats(true)
            .offline()
            .build(&schema)
            .map_err(|error| SchemaError::Invalid {
                at: error.instance_path().to_string(),
                message: words::clip_sentence(&error.to_string()),
            })?;
        Ok(Contract { validator, shapes: Shapes::of(&schema), schema })
    }

    /// Checks arguments: an object, as the schema wants it, without keys nobody declared.
    ///
    /// # Errors
    /// Every problem at once; the list is never empty.
    pub fn check(&self, arguments: &RawValue) -> Result<(), Vec<ArgumentProblem>> {
        let value = numbers::parse(arguments)?;
        if !value.is_object() {
            return Err(vec![ArgumentProblem {
                path: String::new(),
                problem: "type".to_owned(),
                expected: "an object".to_owned(),
                got: Some(words::given(&value)),
                suggestion: None,
            }]);
        }
        self.check_value(&value)
    }

    /// Checks a value that is already parsed, such as a plugin's configuration.
    ///
    /// # Errors
    /// Every problem at once; the list is never empty.
    pub fn check_value(&self, value: &Value) -> Result<(), Vec<ArgumentProblem>> {
        if self.validator.is_valid(value) && self.shapes.admit(value) {
            return Ok(());
        }
        Err(problem::collect(&self.validator, &self.shapes, &self.schema, value))
    }
}

impl fmt::Debug for Contract {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Contract").field(&self.schema).finish()
    }
}

/// Compiles one small schema, for the first one in a process takes milliseconds.
pub fn warm() {
    const SMALL: &str = r#"{"type":"object","properties":{"a":{"type":"string","pattern":"^a$"}}}"#;
    if let Ok(schema) = serde_json::from_str::<&RawValue>(SMALL) {
        drop(Contract::compile(schema));
    }
}
