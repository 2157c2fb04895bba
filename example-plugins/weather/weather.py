"""weather: the weather of some cities. A plugd plugin in Python, with no SDK.

Each line on stdin is a request, each line on stdout its answer; print to stderr only.
To try it by hand:  echo '{"jsonrpc":"2.0","id":1,"method":"describe"}' | python3 weather.py
"""
import json, pathlib, sys, time, traceback

CITY = {"type": "string", "minLength": 1, "examples": ["Beijing", "北京"],
        "description": "The city's name, in English or in Chinese."}
UNIT = {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius",
        "description": "The unit of the temperature."}
MANIFEST = {
    "protocol": 1, "name": "weather", "version": "1.0.0",
    "description": "The weather of some Chinese cities, from the latest observations.",
    "config_schema": {"type": "object", "properties": {
        "source": {"type": "string", "default": "observations.json", "description": "Where the observations are: a file or a URL."},
        "api_timeout": {"type": "number", "exclusiveMinimum": 0, "default": 5, "description": "Seconds to wait for the source."},
        "cache_ttl": {"type": "number", "minimum": 0, "default": 60, "description": "Seconds until the observations are read again."}}},
    "operations": [
        {"name": "get_weather", "title": "Weather", "category": "weather", "timeout_ms": 5000,
         "description": "Gives the weather a city has now: temperature, sky and wind. It knows the cities with an observation only and names them when asked for another.",
         "when_to_use": "Someone asks about the weather, the temperature, rain or wind in a city now.",
         "when_not_to_use": "A forecast or the weather of an earlier day is asked for: there are none here.",
         "examples": ["what is the weather in Beijing", "is it raining in Shenzhen", "北京天气怎么样", "上海现在多少度"],
         "input_schema": {"type": "object", "properties": {"city": CITY, "unit": UNIT}, "required": ["city"]},
         "output_schema": {"type": "object", "properties": {
             "city": {"type": "string"}, "unit": {"type": "string"}, "temp": {"type": "integer"},
             "desc": {"type": "string"}, "wind_level": {"type": "integer"}},
             "required": ["city", "unit", "temp", "desc", "wind_level"]},
         "effects": {"read_only": True, "idempotent": True}},
        {"name": "list_cities", "title": "Cities", "category": "weather", "timeout_ms": 5000, "audience": "plugins",
         "description": "Lists the cities that have an observation. Each comes with its English and its Chinese name.",
         "when_to_use": "Another plugin wants to know which cities it can ask the weather for.",
         "examples": ["which cities do you know", "有哪些城市"],
         "input_schema": {"type": "object", "properties": {}},
         "effects": {"read_only": True, "idempotent": True}}]}


class Failure(Exception):
    """What a caller is told, with a name and a hint."""
    def __init__(self, name, message, hint, retryable=False):
        super().__init__(message)
        self.data = {"name": name, "hint": hint, "retryable": retryable}


class Unknown(Exception):
    """A method or an operation that is not known here."""


config = {"source": "observations.json", "api_timeout": 5, "cache_ttl": 60}
cache = {"until": 0.0, "cities": {}}


def observations():
    if time.monotonic() >= cache["until"]:
        from urllib.request import urlopen  # takes a moment to load, so only once it is needed
        source = config["source"]
        url = source if "://" in source else pathlib.Path(source).resolve().as_uri()
        try:
            with urlopen(url, timeout=config["api_timeout"]) as answer:
                cache["cities"] = json.load(answer)
        except OSError as error:
            print(error, file=sys.stderr)
            raise Failure("source_unavailable", "the observations cannot be read", "try again later", True) from error
        cache["until"] = time.monotonic() + config["cache_ttl"]
    return cache["cities"]


def get_weather(city, unit="celsius"):
    wanted = city.strip().lower()
    for name, seen in observations().items():
        if wanted in (name.lower(), seen["zh"]):
            temp, sign = (seen["temp"], "C") if unit == "celsius" else (round(seen["temp"] * 9 / 5 + 32), "F")
            chinese = wanted == seen["zh"]
            city, desc = (seen["zh"], seen["sky_zh"]) if chinese else (name, seen["sky"])
            summary = f"{city}的天气：{temp}{sign}，{desc}" if chinese else f"The weather in {city} is {temp}{sign}, {desc}"
            return {"city": city, "unit": unit, "temp": temp, "desc": desc, "wind_level": seen["wind_level"]}, summary
    known = ", ".join(f"{name} ({seen['zh']})" for name, seen in observations().items())
    raise Failure("city_not_found", f"there is no observation for {city}", f"known cities: {known}")


def list_cities():
    cities = [{"name": name, "zh": seen["zh"]} for name, seen in observations().items()]
    return {"cities": cities}, f"{len(cities)} cities: " + ", ".join(city["name"] for city in cities)


def respond(method, params):
    """The result of a request, as a dict, or the error, as an exception."""
    if method == "describe":
        return MANIFEST
    if method == "init":
        config.update(params.get("config") or {})
        return {}
    if method == "call" and params.get("operation") in ("get_weather", "list_cities"):
        data, summary = globals()[params["operation"]](**(params.get("arguments") or {}))
        return {"data": data, "summary": summary}
    if method == "shutdown":
        return {}
    raise Unknown(method)


def main():
    if sys.stdin.isatty():
        return print(__doc__)
    for line in sys.stdin.buffer:
        try:
            request = json.loads(line)
        except ValueError:
            continue  # blank, or no message
        if not isinstance(request, dict) or "id" not in request or "method" not in request:
            continue  # a notification or an answer: nobody waits for one from here
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            answer["result"] = respond(request["method"], request.get("params") or {})
        except Unknown:
            answer["error"] = {"code": -32601, "message": "weather does not know that method or operation"}
        except Failure as failure:
            answer["error"] = {"code": 1, "message": str(failure), "data": failure.data}
        except Exception:
            traceback.print_exc()  # for the log; the caller is told no more than that
            answer["error"] = {"code": 2, "message": "weather failed unexpectedly"}
        sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode(errors="replace") + b"\n")
        sys.stdout.buffer.flush()
        if request["method"] == "shutdown":
            return


if __name__ == "__main__":
    main()
