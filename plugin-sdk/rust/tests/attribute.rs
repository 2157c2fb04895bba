//! The attribute: what it makes of a function, and that it leaves the function alone.

use std::sync::Mutex;

use plugd_sdk::testing::Host;
use plugd_sdk::{Context, Error, Operation, Plugin, operation};
use serde_json::{Value, json};

/// Plans a trip.
/// For as many days
/// as one likes.
///
/// Gives a line.
#[operation(
    name = "plan_trip",
    title = "Plan",
    destructive = false,
    open_world,
    long_running,
    cache_ttl = 60,
    timeout_ms = 5_000,
    stall_timeout_ms = 1_500,
    confirm = "always",
    audience = "plugins",
    scope = "travel",
    result_limit = 512
)]
fn plan(
    cx: &Context,
    /// The city, in English or in Chinese.
    #[arg(length = 1..=40, examples("Beijing", "北京"), pattern = r"^\S")]
    city: String,
    #[arg(default = 3, range = 1..=14, description = "For how many days.")] mut days: u32,
    #[arg(default = "celsius")] unit: String,
    #[arg(default)] tags: Vec<String>,
    #[arg(rename = "type")] kind: Option<String>,
    #[arg(secret, format = "password")] r#pass: Option<String>,
    _unused: Option<f64>,
    seen: &Mutex<u32>,
) -> Result<String, std::num::ParseIntError> {
    *seen.lock().expect("no panic") += 1;
    cx.info("planning");
    days += kind.as_deref().unwrap_or("0").parse::<u32>()?;
    Ok(format!("{city} {days} {unit} {} {}", tags.len(), pass.is_some()))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
/// Says it twice.
struct Twice {
    /// What.
    word: String,
}

#[operation]
fn twice(Twice { word }: Twice) -> String {
    format!("{word} {word}")
}

/// Not as the struct says.
#[operation(output_schema = json!({"type": "string", "minLength": 1}))]
fn thrice(args: Twice, cx: &Context) -> Result<String, Error> {
    cx.check()?;
    Ok([args.word.as_str(); 3].join(" "))
}

#[operation(read_only)]
fn nothing() {}

fn host() -> Host {
    let plugin = Plugin::new("p", "1.0.0")
        .init(|_: (), _| Ok(Mutex::new(0)))
        .operation(plan::operation())
        .operation(twice::operation())
        .operation(thrice::operation())
        .operation(nothing::operation())
        .operation(Operation::new("seen", |_: (), seen: &Mutex<u32>, _: &Context| {
            Ok(*seen.lock().expect("no panic"))
        }));
    Host::new(plugin)
}

#[test]
fn all_that_is_said_is_declared() {
    let manifest = host().manifest();
    let operation = json!(manifest.operations[0]);
    let expected = json!({
        "name": "plan_trip",
        "title": "Plan",
        "description": "Plans a trip. For as many days as one likes.\n\nGives a line.",
        "audience": "plugins",
        "input_schema": {
            "type": "object",
            "properties": {
                "city": {"description": "The city, in English or in Chinese.", "type": "string",
                    "minLength": 1, "maxLength": 40, "pattern": r"^\S", "examples": ["Beijing", "北京"]},
                "days": {"description": "For how many days.", "type": "integer", "minimum": 1, "maximum": 14,
                    "default": 3},
                "unit": {"type": "string", "default": "celsius"},
                "tags": {"type": "array", "items": {"type": "string"}, "default": []},
                "type": {"type": ["string", "null"]},
                "pass": {"type": ["string", "null"], "writeOnly": true, "format": "password"},
                "unused": {"type": ["number", "null"]},
            },
            "required": ["city"],
        },
        "output_schema": {"type": "string"},
        "effects": {"destructive": false, "open_world": true},
        "timeout_ms": 5_000,
        "stall_timeout_ms": 1_500,
        "long_running": true,
        "cache_ttl": 60,
        "confirm": "always",
        "scope": "travel",
        "result_limit": 512,
    });
    assert_eq!(operation, expected, "{operation:#}");
    let described = |at: usize| manifest.operations[at].description.as_deref();
    assert_eq!(
        (described(1), described(2), described(3)),
        (Some("Says it twice."), Some("Not as the struct says."), None)
    );
    let schema: Value =
        serde_json::from_str(manifest.operations[2].output_schema.as_ref().expect("one").get())
            .expect("JSON");
    assert_eq!(schema["minLength"], 1);
}

#[test]
fn arguments_state_and_context_come_where_they_are_wanted() {
    let host = host();
    let reply = host.call("plan_trip", json!({"city": "北京", "type": "2", "pass": "x", "unused": 1.5}));
    assert_eq!(reply.data(), json!("北京 5 celsius 0 true"));
    assert_eq!(reply.logs[0].1, "planning");
    let error = host.call("plan_trip", json!({"city": "x", "type": "many"})).error();
    assert_eq!(error.message, "invalid digit found in string");
    assert_eq!(host.call("seen", json!({})).data(), json!(2));
    assert_eq!(host.call("twice", json!({"word": "a"})).data(), json!("a a"));
    assert_eq!(host.call("thrice", json!({"word": "a"})).data(), json!("a a a"));
    assert_eq!(host.call("nothing", json!({})).data(), Value::Null);
    assert_eq!(host.call("plan_trip", json!({})).error().code(), -32602);
}

#[test]
fn the_function_stays_a_function() {
    let (cx, seen) = (Context::for_test(), Mutex::new(0));
    let line = plan(&cx, "X".to_owned(), 1, "kelvin".to_owned(), Vec::new(), None, None, None, &seen);
    assert_eq!(line.as_deref(), Ok("X 1 kelvin 0 false"));
    assert_eq!(twice(Twice { word: "b".to_owned() }), "b b");
    nothing();
}

#[test]
fn it_works_within_a_function_too() {
    #[derive(serde::Deserialize, schemars::JsonSchema, serde::Serialize)]
    struct Point {
        x: i64,
    }

    /// Moves a point. To the right.
    #[operation(idempotent)]
    fn context(arguments_of_mine: Point, by: i64) -> Point {
        Point { x: arguments_of_mine.x + by }
    }

    let host = Host::new(Plugin::new("p", "1.0.0").operation(context::operation()));
    let reply = host.call("context", json!({"arguments_of_mine": {"x": 9007199254740993_i64}, "by": 2}));
    assert_eq!(reply.data(), json!({"x": 9007199254740995_i64}));
}
