//! The golden manifest: what a typed plugin declares, member by member.

#![expect(dead_code, reason = "the types are there for their schemas")]

use std::time::Duration;

use plugd_sdk::{Context, Error, Operation, Plugin, Reply};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Looks up the weather of a city. Gives the temperature and a word for the sky.
#[derive(Deserialize, JsonSchema)]
struct GetWeather {
    /// The city's name, in English or Chinese.
    #[schemars(length(min = 1, max = 40), example = &"Beijing", example = &"北京")]
    city: String,
    /// The unit of the temperature.
    #[serde(default)]
    unit: Unit,
    /// How many days ahead.
    #[serde(default)]
    #[schemars(range(max = 14))]
    days_ahead: u8,
    /// Where to look first; anywhere when left out.
    station: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
enum Unit {
    #[default]
    Celsius,
    Fahrenheit,
}

/// The weather at one time.
#[derive(Serialize, JsonSchema)]
struct Weather {
    /// Degrees, in the unit asked for.
    temp: f64,
    /// The sky in a word.
    sky: String,
}

/// How the plugin is set up.
#[derive(Deserialize, JsonSchema)]
struct Config {
    /// Seconds to wait for the weather service.
    #[serde(default = "five")]
    api_timeout: u32,
}

fn five() -> u32 {
    5
}

struct Stations;

fn get_weather(_: GetWeather, _: &Stations, _: &Context) -> Result<Reply<Weather>, Error> {
    Ok(Reply::new(Weather { temp: 24.0, sky: "sunny".to_owned() }).summary("24C, sunny"))
}

fn refresh(_: (), _: &Context) -> Result<serde_json::Value, Error> {
    Ok(serde_json::Value::Null)
}

fn plugin() -> Plugin<Stations> {
    Plugin::new("weather", "1.2.3")
        .description("The weather, from a file.")
        .requires("cities", ">=1.0")
        .requires_optional("maps", "^2")
        .priority(10)
        .concurrency(4)
        .stops_when_cancelled()
        .init(|_: Config, _| Ok(Stations))
        .operation(
            Operation::new("get_weather", get_weather)
                .title("Weather")
                .when_to_use("Someone asks about the weather.")
                .when_not_to_use("They ask about the climate.")
                .examples(["what is the weather in Beijing", "北京天气怎么样"])
                .category("weather")
                .timeout(Duration::from_secs(5))
                .read_only()
                .idempotent(),
        )
        .operation(
            Operation::new("refresh_stations", refresh)
                .description("Reads the stations again. Nothing is lost by it.")
                .for_plugins()
                .long_running()
                .stall_timeout(Duration::from_millis(1_500))
                .destructive()
                .open_world(),
        )
}

#[test]
fn a_typed_function_gives_the_expected_manifest() {
    let manifest = plugin().manifest().expect("well declared");
    let written = format!("{:#}\n", serde_json::json!(manifest));
    let expected = include_str!("golden/manifest.json");
    assert_eq!(written, expected, "if this is meant, save the new manifest as tests/golden/manifest.json");
}

#[test]
fn what_is_declared_is_what_a_host_reads() {
    let host = plugd_sdk::testing::Host::new(plugin());
    let read = host.manifest();
    assert!(read.quarantined.is_empty());
    assert_eq!(format!("{:#}\n", serde_json::json!(read)), include_str!("golden/manifest.json"));
}
