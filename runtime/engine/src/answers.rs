//! Answers checked against the questions they belong to.

use std::collections::BTreeMap;

use plugd_contract::{Contract, Prepared, nearest};
use plugd_protocol::CallError;
use plugd_protocol::control::AnswerParams;
use plugd_protocol::error::{ArgumentProblem, ErrorKind};
use plugd_protocol::plugin::Question;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::call::in_words;
use crate::registry::RegisteredOperation;

/// What is asked at once, ready to check answers.
#[derive(Debug)]
pub(crate) struct Questions(BTreeMap<String, Expected>);

#[derive(Debug)]
struct Expected {
    /// None takes any text.
    contract: Option<Contract>,
    default: Option<Value>,
    sensitive: bool,
}

impl Questions {
    /// Compiles the schemas of questions.
    ///
    /// # Errors
    /// Which question cannot be asked, and why.
    pub(crate) fn compile(questions: &[Question]) -> Result<Questions, String> {
        let compile = |question: &Question| {
            let schema = question.schema.as_deref();
            let wrong = |why: String| format!("questions: the schema of {}: {why}", question.name);
            let contract = schema.map(Contract::compile).transpose();
            let contract = contract.map_err(|error| wrong(error.to_string()))?;
            // Whoever answers would be asked for ever.
            if let Some(why) = contract.as_ref().and_then(Contract::never_fits) {
                return Err(wrong(why));
            }
            let default = schema
                .and_then(|schema| serde_json::from_str::<Value>(schema.get()).ok())
                .and_then(|schema| schema.get("default").cloned());
            Ok((question.name.clone(), Expected { contract, default, sensitive: question.sensitive }))
        };
        questions.iter().map(compile).collect::<Result<_, _>>().map(Questions)
    }

    /// Whether one of that name is among them.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The answers as the plugin gets them; `only` is the answer where there is one question.
    ///
    /// # Errors
    /// 2001 with every problem, each named by a pointer that begins with the question's name.
    pub(crate) fn check(
        &self,
        mut answers: Map<String, Value>,
        only: Option<Value>,
    ) -> Result<Map<String, Value>, CallError> {
        if let Some(answer) = only {
            let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
            let name = only_name(&names, &answers)?;
            answers.insert(name.to_owned(), answer);
        }
        let mut problems = Vec::new();
        let mut fitting = Map::new();
        for (name, expected) in &self.0 {
            match answers.remove(name).or_else(|| expected.default.clone()) {
                Some(answer) => match expected.fitting(answer) {
                    Ok(answer) => drop(fitting.insert(name.clone(), answer)),
                    Err(found) => {
                        problems.extend(found.into_iter().map(|problem| expected.told(name, problem)));
                    }
                },
                None => problems.push(problem(name, "required", "an answer", None)),
            }
        }
        for name in answers.keys() {
            let near = nearest(name, self.0.keys().map(String::as_str)).map(ToOwned::to_owned);
            problems.push(problem(name, "additionalProperties", "the name of a question", near));
        }
        if problems.is_empty() { Ok(fitting) } else { Err(refused(problems)) }
    }
}

impl Expected {
    /// The answer where it fits, read as arguments are: whoever types an answer types text. What does
    /// not fit then is taken as the JSON that it may be.
    fn fitting(&self, answer: Value) -> Result<Value, Vec<ArgumentProblem>> {
        let Some(contract) = &self.contract else {
            return match answer {
                Value::String(_) => Ok(answer),
                other => Err(vec![problem("", "type", &format!("text, got {}", kind(&other)), None)]),
            };
        };
        contract.answered(&answer).or_else(|problems| {
            let read = answer.as_str().and_then(|text| serde_json::from_str(text.trim()).ok());
            read.filter(|read| contract.check_value(read).is_ok()).ok_or(problems)
        })
    }

    /// The problem as it may be told: under the question's name, and without a secret.
    fn told(&self, name: &str, mut problem: ArgumentProblem) -> ArgumentProblem {
        problem.path = format!("/{name}{}", problem.path);
        if self.sensitive {
            problem.got = None;
            problem.suggestion = None;
        }
        problem
    }
}

/// The answers to what a call lacks, where they bring it on: some may be left for the next question.
///
/// # Errors
/// 2001 with every problem, each named by a pointer that begins with the question's name.
pub(crate) fn completing(
    operation: &RegisteredOperation,
    known: &RawValue,
    params: &AnswerParams,
) -> Result<Map<String, Value>, CallError> {
    let contract = operation.contract()?;
    let asked = names(&contract.answer(known, &Map::new()));
    let mut answers = params.answers.clone();
    if let Some(answer) = &params.answer {
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        answers.insert(only_name(&asked, &answers)?.to_owned(), answer.clone());
    }
    match contract.answer(known, &answers) {
        Prepared::Wrong(problems) => Err(refused(problems)),
        // Whoever gives nothing of what is asked is not asked the same again and again.
        missing @ Prepared::Missing { .. } if names(&missing) == asked => {
            Err(refused(contract.check(known).err().unwrap_or_default()))
        }
        Prepared::Fits | Prepared::Ready { .. } | Prepared::Missing { .. } => Ok(answers),
    }
}

fn names(prepared: &Prepared) -> Vec<String> {
    match prepared {
        Prepared::Missing { questions, .. } => {
            questions.iter().map(|question| question.name.clone()).collect()
        }
        Prepared::Fits | Prepared::Ready { .. } | Prepared::Wrong(_) => Vec::new(),
    }
}

/// The error for an answer that says yes and no at once.
pub(crate) fn contradictory() -> CallError {
    CallError::new(
        ErrorKind::InvalidArguments,
        "the answer says yes and no at once: whether the call may run",
    )
    .hint("the question waits: agree, or refuse")
}

/// The question that an answer without a name is for.
fn only_name<'a>(asked: &[&'a str], answers: &Map<String, Value>) -> Result<&'a str, CallError> {
    match asked {
        [only] if answers.is_empty() => Ok(only),
        several => {
            let message = format!("expected an answer for each of {}, by its name", several.join(", "));
            Err(CallError::new(ErrorKind::InvalidArguments, message).hint("write each as name=value"))
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn problem(name: &str, problem: &str, expected: &str, suggestion: Option<String>) -> ArgumentProblem {
    let path = if name.is_empty() { String::new() } else { format!("/{name}") };
    ArgumentProblem {
        path,
        problem: problem.to_owned(),
        expected: expected.to_owned(),
        got: None,
        suggestion,
    }
}

fn refused(problems: Vec<ArgumentProblem>) -> CallError {
    let told: Vec<String> = problems.iter().map(in_words).collect();
    let mut error = CallError::new(ErrorKind::InvalidArguments, told.join("; "))
        .hint("the question waits: answer it again");
    error.details = problems;
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn questions(schemas: &[(&str, Option<Value>)]) -> Questions {
        let question = |(name, schema): &(&str, Option<Value>)| Question {
            name: (*name).to_owned(),
            schema: schema.as_ref().map(|schema| serde_json::value::to_raw_value(schema).unwrap()),
            prompt: String::new(),
            sensitive: *name == "secret",
        };
        Questions::compile(&schemas.iter().map(question).collect::<Vec<_>>()).unwrap()
    }

    #[track_caller]
    fn check(schema: Option<Value>, answer: Value, expected: Option<Value>) {
        let checked = questions(&[("it", schema)]).check(Map::new(), Some(answer));
        match (checked, expected) {
            (Ok(answers), Some(expected)) => assert_eq!(answers["it"], expected),
            (Err(error), None) => assert_eq!((error.code, error.details[0].path.as_str()), (2001, "/it")),
            (checked, expected) => panic!("expected {expected:?}, got {checked:?}"),
        }
    }

    #[test]
    fn what_is_typed_becomes_what_was_asked_for() {
        let of = |kind: &str| Some(json!({ "type": kind }));
        check(of("integer"), json!("3"), Some(json!(3)));
        check(of("integer"), json!(3), Some(json!(3)));
        check(of("integer"), json!("three"), None);
        check(of("integer"), json!("3.5"), None);
        check(of("boolean"), json!("yes"), Some(json!(true)));
        check(of("boolean"), json!("n"), Some(json!(false)));
        check(of("boolean"), json!("perhaps"), None);
        check(of("array"), json!("[1]"), Some(json!([1])));
        // Text that fits stays text.
        check(of("string"), json!("3"), Some(json!("3")));
        check(None, json!("yes"), Some(json!("yes")));
        check(None, json!(3), None);
        check(Some(json!({ "enum": ["red", 3] })), json!("3"), Some(json!(3)));
    }

    #[test]
    fn every_answer_is_named_and_every_problem_told() {
        let both = questions(&[("age", Some(json!({ "type": "integer", "minimum": 0 }))), ("name", None)]);
        let given = |value: Value| value.as_object().cloned().unwrap();
        let good = both.check(given(json!({ "age": "7", "name": "Ada" })), None).unwrap();
        assert_eq!(Value::Object(good), json!({ "age": 7, "name": "Ada" }));
        let error = both.check(given(json!({ "age": -1, "nmae": "Ada" })), None).unwrap_err();
        let paths: Vec<&str> = error.details.iter().map(|problem| problem.path.as_str()).collect();
        assert_eq!(paths, ["/age", "/name", "/nmae"]);
        assert_eq!(error.details[2].suggestion.as_deref(), Some("name"));
        let error = both.check(Map::new(), Some(json!("Ada"))).unwrap_err();
        assert!(error.message.contains("age, name"), "{error:?}");
    }

    #[test]
    fn a_default_stands_for_no_answer_and_a_secret_is_not_told() {
        let asked = questions(&[("it", Some(json!({ "type": "integer", "default": 5 })))]);
        assert_eq!(asked.check(Map::new(), None).unwrap()["it"], 5);
        let asked = questions(&[("secret", Some(json!({ "type": "string", "maxLength": 3 })))]);
        let error = asked.check(Map::new(), Some(json!("hunter2"))).unwrap_err();
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }

    #[test]
    fn a_schema_that_does_not_compile_names_its_question() {
        let schema = serde_json::value::to_raw_value(&json!({ "type": "whatever" })).unwrap();
        let question =
            Question { name: "it".into(), schema: Some(schema), prompt: String::new(), sensitive: false };
        assert!(Questions::compile(&[question]).unwrap_err().contains("the schema of it"));
    }

    #[test]
    fn a_question_that_no_answer_fits_is_not_asked() {
        let asked = |schema: Value| {
            let schema = Some(serde_json::value::to_raw_value(&schema).unwrap());
            let question = Question { name: "it".into(), schema, prompt: String::new(), sensitive: false };
            Questions::compile(&[question]).map(drop)
        };
        let city = json!({ "city": { "type": "string" } });
        let wrong = asked(json!({ "type": "object", "properties": city, "required": ["ctiy"] })).unwrap_err();
        assert!(wrong.contains("the schema of it: \"ctiy\" is required and not declared"), "{wrong}");
        asked(json!({ "type": ["object", "null"], "properties": city, "required": ["ctiy"] })).unwrap();
    }
}
