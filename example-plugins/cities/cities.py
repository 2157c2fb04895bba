#!/usr/bin/env python3
"""Finds the city that a text means. A service: other plugins use it, and no model is offered it."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from plugd_sdk import Error, Param, Reply, operation, serve  # a link here; take it along by `cp -RL`

__version__ = "1.0.0"


@dataclass
class City:
    """A city, and where in the text it was found."""

    name: Annotated[str, "What it is called in English."]
    country: Annotated[str, "ISO 3166 code of its country."]
    latitude: float
    longitude: float
    said: Annotated[str, "The words that meant it."]


def load():
    """Each name in lower case, with its city; long names first, since New York is not York."""
    cities = json.loads(Path(__file__).with_name("cities.json").read_text(encoding="utf-8"))
    known = {name.lower(): city for city in cities for name in [city["name"], *city["names"]]}
    # Names in Latin letters are whole words; in Chinese, words have no spaces between them.
    latin = r"(?<![a-z]){}(?![a-z])"
    patterns = [(latin if name.isascii() else "{}").format(re.escape(name)) for name in known]
    return known, re.compile("|".join(sorted(patterns, key=len, reverse=True)), re.IGNORECASE)


KNOWN, NAMES = load()


@operation(
    title="City in a text",
    audience="plugins",
    when_to_use="A plugin has what somebody said and needs to know which city is meant.",
    when_not_to_use="The city's name is known already.",
    examples=["how warm is it in Hangzhou", "我明天去北京"],
    category="places",
    read_only=True,
    idempotent=True,
    timeout_ms=2000,
)
def parse(text: Annotated[str, Param(min_length=1, max_length=10_000, examples=["去杭州玩三天"])]) -> Reply[City]:
    """Finds the city that a text means, by its name in English or Chinese. Of several it gives the first.

    Args:
        text: What was said, in whole sentences or in part.
    """
    found = NAMES.search(text)
    if found is None:
        raise Error("no_city", "the text names no city that is known here", hint="ask for the city")
    city = KNOWN[found[0].lower()]
    place = City(city["name"], city["country"], city["latitude"], city["longitude"], said=found[0])
    return Reply(place, summary=f"{place.name}, {place.country}")


if __name__ == "__main__":
    serve()
