//! trip: what to pack and whether to go out. An example plugin that uses another one.

use std::process::ExitCode;

use plugd_sdk::{Context, Error, Plugin, Reply, operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Above this wind level walking outside is no pleasure.
const WIND_LEVEL_MAX: u32 = 5;

/// What `weather.get_weather` answers, as far as a trip depends on it.
#[derive(Deserialize)]
struct Weather {
    city: String,
    temp: f64,
    desc: String,
    wind_level: u32,
}

/// A trip, planned.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Plan {
    /// Where to.
    city: String,
    /// For how many days.
    days: u32,
    /// What to take along.
    packing: Vec<String>,
    /// Whether the days are for outside.
    outdoor: bool,
    /// Why.
    reason: String,
}

/// Plans a short trip by the weather at its destination. Says what to pack, whether the days are
/// for outside, and why.
#[operation(
    title = "Trip plan",
    when_to_use = "Someone plans a trip to a city, or asks what to pack or whether to go out there.",
    when_not_to_use = "Only the weather is asked for: weather.get_weather answers that.",
    examples(
        "plan a weekend in Hangzhou",
        "what should I pack for three days in Beijing",
        "我想去杭州玩两天",
        "去北京出差要带什么"
    ),
    category = "travel",
    timeout_ms = 10_000,
    read_only,
    idempotent
)]
fn recommend(
    /// The city to travel to, in English or in Chinese.
    #[arg(length = 1.., examples("Hangzhou", "杭州"))]
    city: String,
    /// For how many days.
    #[arg(default = 3, range = 1..=14)]
    days: u32,
    cx: &Context,
) -> Result<Reply<Plan>, Error> {
    let weather = cx.call::<Weather>("weather.get_weather", &json!({"city": city}))?;
    cx.info(format!("planning by: {}", weather.summary.as_deref().unwrap_or("(no summary)")));
    let plan = plan(&weather.data, days);
    let place = if plan.outdoor { "outside" } else { "inside" };
    let summary = format!("{} days in {}: {place}, because {}", plan.days, plan.city, plan.reason);
    Ok(Reply::new(plan).summary(summary))
}

fn plan(weather: &Weather, days: u32) -> Plan {
    let Weather { city, temp, desc, wind_level } = weather;
    let wet = ["rain", "storm", "snow", "雨", "雪"].iter().any(|word| desc.contains(word));
    let windy = *wind_level > WIND_LEVEL_MAX;
    let pleasant = (5.0..=32.0).contains(temp);

    let mut packing = vec![format!("{days} sets of clothes")];
    match temp {
        ..5.0 => packing.extend(["down jacket", "gloves", "hat"].map(String::from)),
        5.0..18.0 => packing.push("jacket".to_owned()),
        18.0..26.0 => packing.push("light jacket for the evening".to_owned()),
        _ => packing.extend(["sun cream", "water bottle"].map(String::from)),
    }
    if wet {
        packing.push("umbrella and waterproof shoes".to_owned());
    }
    if windy {
        packing.push("windproof jacket".to_owned());
    }

    let reason = format!("it is {temp}C, {desc}, wind level {wind_level}");
    Plan { city: city.clone(), days, packing, outdoor: !wet && !windy && pleasant, reason }
}

fn plugin() -> Plugin {
    Plugin::new("trip", env!("CARGO_PKG_VERSION"))
        .description("Plans short trips by the weather.")
        .requires("weather", ">=1.0")
        .concurrency(4)
        .operation(recommend::operation())
}

fn main() -> ExitCode {
    plugin().serve()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plugd_sdk::testing::Host;

    fn weather(temp: f64, desc: &str, wind_level: u32) -> Weather {
        Weather { city: "Beijing".to_owned(), temp, desc: desc.to_owned(), wind_level }
    }

    #[test]
    fn fine_days_are_for_outside() {
        let plan = plan(&weather(24.0, "sunny", 2), 2);
        assert!(plan.outdoor);
        assert_eq!(plan.packing, ["2 sets of clothes", "light jacket for the evening"]);
    }

    #[test]
    fn wet_windy_and_freezing_days_are_not() {
        for (temp, desc, wind) in
            [(24.0, "小雨", 1), (24.0, "sunny", 6), (-12.0, "clear", 1), (36.0, "晴", 1)]
        {
            assert!(!plan(&weather(temp, desc, wind), 3).outdoor, "{temp} {desc} {wind}");
        }
        assert!(plan(&weather(-12.0, "snow", 5), 3).packing.contains(&"gloves".to_owned()));
    }

    #[test]
    fn the_plan_is_made_from_what_weather_answers() {
        let host = Host::new(plugin()).answer_call("weather.get_weather", |arguments| {
            Ok(json!({"city": arguments["city"], "unit": "celsius", "temp": 31, "desc": "thunderstorm", "wind_level": 4}))
        });
        let reply = host.call("recommend", json!({"city": "Guangzhou"}));
        assert_eq!(reply.data()["days"], 3);
        assert_eq!(reply.data()["outdoor"], false);
        let summary = "3 days in Guangzhou: inside, because it is 31C, thunderstorm, wind level 4";
        assert_eq!(reply.summary.as_deref(), Some(summary));
    }

    #[test]
    fn a_failure_of_weather_keeps_its_words_and_its_cause() {
        let cause = json!({"operation": "weather.get_weather", "call_id": "c-2", "error": {"code": 4001,
            "name": "city_not_found", "message": "no Atlantis", "retryable": false, "outcome": "completed"}});
        let host = Host::new(plugin()).answer_call("weather.get_weather", move |_| {
            let mut error = Error::new("city_not_found", "there is no observation for Atlantis");
            error.cause = Some(serde_json::from_value(cause.clone())?);
            Err(error)
        });
        let error = host.call("recommend", json!({"city": "Atlantis"})).error();
        assert_eq!(error.message, "there is no observation for Atlantis");
        let cause = error.cause.expect("kept");
        assert_eq!((cause.operation.to_string().as_str(), cause.error.code), ("weather.get_weather", 4001));
    }
}
