//! One declared schema, compiled, and the check of arguments and results against it.

use std::collections::HashSet;
use std::fmt;

use jsonschema::Validator;
use plugd_protocol::error::ArgumentProblem;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::defaults::Declared;
use crate::document::{Document, speaks_draft7};
use crate::schema::{self, SchemaError};
use crate::shape::Shapes;
use crate::{numbers, problem, required, validator, words};

/// A schema compiled once, for checking many arguments.
pub struct Contract {
    pub(crate) validator: Validator,
    pub(crate) shapes: Shapes,
    pub(crate) schema: Value,
    pub(crate) defaults: Declared,
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
        let options = validator::options(speaks_draft7(&schema));
        let validator = options.build(&schema).map_err(|error| SchemaError::unbuildable(&error))?;
        let (shapes, defaults) = (Shapes::of(&schema), Declared::of(&schema));
        Ok(Contract { validator, shapes, schema, defaults })
    }

    /// The same for the arguments of an operation, which are always an object.
    ///
    /// # Errors
    /// As [`Contract::compile`], and for a schema that allows no object, or none that has no key which
    /// nobody declared.
    pub fn of_arguments(input_schema: &RawValue) -> Result<Contract, SchemaError> {
        let contract = Contract::compile(input_schema)?;
        if let Some(found) = schema::instead_of_an_object(&contract.schema) {
            return Err(SchemaError::NoObject { found });
        }
        match contract.object_never_fits() {
            Some(reason) => Err(SchemaError::NeverFits { reason }),
            None => Ok(contract),
        }
    }

    /// Why no value at all can fit: it is an object, with a name that is required and that nobody declared.
    pub fn never_fits(&self) -> Option<String> {
        let document = Document::new(&self.schema);
        required::is_object(&document, &[document.root()]).then(|| self.object_never_fits()).flatten()
    }

    fn object_never_fits(&self) -> Option<String> {
        let found = required::undeclared(&self.schema, &self.shapes);
        found.iter().find(|undeclared| undeclared.always).map(|undeclared| undeclared.in_words())
    }

    /// Checks arguments: an object, as the schema wants it, without keys nobody declared.
    ///
    /// # Errors
    /// Every problem at once; the list is never empty.
    pub fn check(&self, arguments: &RawValue) -> Result<(), Vec<ArgumentProblem>> {
        let value = numbers::parse(arguments).map_err(|problems| self.concealed(problems))?;
        if !value.is_object() {
            return Err(self.concealed(vec![ArgumentProblem {
                path: String::new(),
                problem: "type".to_owned(),
                expected: "an object".to_owned(),
                got: Some(words::given(&value)),
                suggestion: None,
            }]));
        }
        self.check_value(&value)
    }

    /// Checks a value that is already parsed, such as a plugin's configuration.
    ///
    /// # Errors
    /// Every problem at once; the list is never empty.
    pub fn check_value(&self, value: &Value) -> Result<(), Vec<ArgumentProblem>> {
        self.check_filled(value, &HashSet::new())
    }

    /// As [`Contract::check_value`], where nobody wrote what lies at the pointers in `filled`.
    pub(crate) fn check_filled(
        &self,
        value: &Value,
        filled: &HashSet<String>,
    ) -> Result<(), Vec<ArgumentProblem>> {
        if self.validator.is_valid(value) && self.shapes.admit(value) {
            return Ok(());
        }
        Err(problem::collect(self, value, filled, true))
    }

    /// Checks what an operation answered: any JSON the schema allows, keys nobody declared included.
    ///
    /// # Errors
    /// Every problem at once; the list is never empty.
    pub fn check_output(&self, output: &RawValue) -> Result<(), Vec<ArgumentProblem>> {
        // Longer numbers than 64 bits pass through as text; here they are compared as doubles.
        let value = match serde_json::from_str::<Value>(output.get()) {
            Ok(value) => value,
            Err(_) => numbers::parse(output).map_err(|problems| self.concealed(problems))?,
        };
        if self.validator.is_valid(&value) {
            return Ok(());
        }
        Err(problem::collect(self, &value, &HashSet::new(), false))
    }

    fn concealed(&self, mut problems: Vec<ArgumentProblem>) -> Vec<ArgumentProblem> {
        self.conceal(&mut problems);
        problems
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
