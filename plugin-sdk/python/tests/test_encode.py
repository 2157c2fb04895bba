"""What handlers give is written as JSON, or told exactly why not."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import pathlib
import types
import unittest
import uuid
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import support  # noqa: F401
from plugd_sdk import Param
from plugd_sdk.encode import NotJson, dumps, to_bytes


class Tone(enum.Enum):
    WARM = "warm"


class Loud(str, enum.Enum):
    LOUD = "loud"


class Level(enum.IntEnum):
    HIGH = 2


class Point(NamedTuple):
    x: int


@dataclass
class Card:
    number: Annotated[str, Param(name="no")]
    tone: Tone = Tone.WARM


class Array:
    def tolist(self) -> Any:
        return [1, 2]


class Encoding(unittest.TestCase):
    def test_values_become_what_their_schemas_say(self) -> None:
        east = datetime.timezone(datetime.timedelta(hours=1))
        for value, expected in [
            ("跟小明", '"跟小明"'),
            ([1, 2.5, True, None, {"a": 1}], '[1,2.5,true,null,{"a":1}]'),
            (2512292042121000001234567890, "2512292042121000001234567890"),
            (Tone.WARM, '"warm"'),
            (Loud.LOUD, '"loud"'),
            (Level.HIGH, "2"),
            (Point(1), "[1]"),
            (Card("1"), '{"no":"1","tone":"warm"}'),
            (datetime.date(2024, 1, 2), '"2024-01-02"'),
            (datetime.datetime(2024, 1, 2, 3, tzinfo=east), '"2024-01-02T03:00:00+01:00"'),
            (datetime.time(9, 30), '"09:30:00"'),
            (decimal.Decimal("19.99"), "19.99"),
            (decimal.Decimal("12345678901234567890"), "12345678901234567890"),
            (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
            (pathlib.Path("/a"), '"/a"'),
            ({1}, "[1]"),
            (frozenset([1]), "[1]"),
            (deque([1]), "[1]"),
            (OrderedDict(a=1), '{"a":1}'),
            (types.MappingProxyType({"a": 1}), '{"a":1}'),
            ({"a": 1}.keys(), '["a"]'),
            ({"a": 1}.values(), "[1]"),
            (Array(), "[1,2]"),
        ]:
            with self.subTest(value):
                self.assertEqual(dumps(value), expected)

    def test_a_moment_without_a_zone_is_in_local_time(self) -> None:
        written = json.loads(dumps(datetime.datetime(2024, 1, 2, 3)))
        read = datetime.datetime.fromisoformat(written)
        self.assertEqual(read, datetime.datetime(2024, 1, 2, 3).astimezone())

    def test_what_is_no_json_is_told_with_its_place(self) -> None:
        cycle: list = []
        cycle.append({"again": cycle})

        async def later() -> int:
            return 1

        unawaited = later()
        self.addCleanup(unawaited.close)
        deep: list = []
        for _ in range(100_000):
            deep = [deep]
        for value, expected in [
            ({"a": [1, float("nan")]}, "it['a'][1] is nan"),
            (float("inf"), "it is inf"),
            (cycle, "it[0]['again'] holds itself"),
            ({"a": unawaited}, "it['a']: coroutine has no form in JSON: is an await missing?"),
            ([(x for x in "x")], "it[0]: generator has no form in JSON: make it a list"),
            ([b"x"], "it[0]: bytes has no form in JSON: decode it, or use base64"),
            ({"a": object()}, "it['a']: object has no form"),
            ({(1, 2): 3}, "it has the key (1, 2)"),
            ([decimal.Decimal("NaN")], "it[0]: NaN is no number"),
            ([Card(object())], "it[0]['no']: object has no form"),  # type: ignore[arg-type]
            (deep, "nested too deep"),
        ]:
            with self.subTest(str(type(value))):
                with self.assertRaises(NotJson) as raised:
                    dumps(value)
                self.assertIn(expected, str(raised.exception))

    def test_half_a_surrogate_pair_is_no_text(self) -> None:
        self.assertEqual(to_bytes(dumps("a\ud83d\ude00b")), '"a😀b"'.encode())
        self.assertEqual(to_bytes(dumps("a\ud83db")), '"a\ufffdb"'.encode())


if __name__ == "__main__":
    unittest.main()
