"""Arguments reach a handler as the types that it declares, and plain ones cost nothing."""

from __future__ import annotations

import datetime
import decimal
import enum
import pathlib
import unittest
import uuid
from collections import deque
from dataclasses import dataclass, field
from typing import Annotated, Any, Dict, List, Literal, NamedTuple, Optional, Set, Tuple, TypedDict, Union

import support  # noqa: F401
from plugd_sdk import Param, Plugin
from plugd_sdk.annotations import Annotations
from plugd_sdk.convert import reader
from plugd_sdk.forms import Unfit
from plugd_sdk.testing import Host


class Tone(enum.Enum):
    WARM = "warm"
    COLD = "cold"


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Period:
    start: datetime.date
    end: Optional[datetime.date] = None

    def __post_init__(self) -> None:
        if self.end is not None and self.end < self.start:
            raise ValueError("the end is before the start")


@dataclass
class Tree:
    tone: Tone
    children: List[Tree] = field(default_factory=list)


@dataclass
class Cash:
    kind: Literal["cash"]
    amount: int


@dataclass
class Card:
    kind: Literal["card"]
    number: Annotated[str, Param(name="no")]


class Trip(TypedDict):
    day: datetime.date
    city: str


class City(str):
    def __new__(cls, name: str) -> City:
        if not name.istitle():
            raise ValueError("expected a capital letter first")
        return super().__new__(cls, name)


UTC = datetime.timezone.utc
ID = "4bf92f35-77b3-4da6-a3ce-929d0e0e4736"


def read(annotation: Any, value: Any) -> Any:
    convert = reader(Annotations(__name__).form(annotation))
    return value if convert is None else convert(value)


class Reading(unittest.TestCase):
    def test_what_is_plain_is_not_looked_at(self) -> None:
        for annotation in (
            str, float, bool, None, Any, list, dict, List[str], Dict[str, Any], Literal["a"], Optional[str],
            Union[float, str], Annotated[str, "It."],
        ):  # fmt: skip
            with self.subTest(annotation):
                self.assertIsNone(reader(Annotations(__name__).form(annotation)))

    def test_values_become_what_is_declared(self) -> None:
        moment = datetime.datetime(2024, 12, 31, 9, 30, tzinfo=UTC)
        for annotation, value, expected in [
            (int, 3, 3),
            (int, 3.0, 3),
            (List[int], [1, 2.0], [1, 2]),
            (Tone, "warm", Tone.WARM),
            (Optional[Tone], None, None),
            (Optional[Tone], "cold", Tone.COLD),
            (datetime.date, "2024-12-31", datetime.date(2024, 12, 31)),
            (datetime.datetime, "2024-12-31T09:30:00Z", moment),
            (datetime.datetime, "2024-12-31T10:30:00.5+01:00", moment.replace(microsecond=500_000)),
            (datetime.datetime, "2024-12-31T09:30:00.123456789Z", moment.replace(microsecond=123_456)),
            (datetime.time, "09:30", datetime.time(9, 30)),
            (datetime.time, "09:30:15.25", datetime.time(9, 30, 15, 250_000)),
            (uuid.UUID, ID, uuid.UUID(ID)),
            (pathlib.Path, "/a/b", pathlib.Path("/a/b")),
            (decimal.Decimal, 0.1, decimal.Decimal("0.1")),
            (decimal.Decimal, 19, decimal.Decimal(19)),
            (Set[str], ["a", "b"], {"a", "b"}),
            (Tuple[int, ...], [1, 2], (1, 2)),
            (Tuple[Tone, int], ["warm", 1], (Tone.WARM, 1)),
            (Point, [1, 2], Point(1, 2)),
            (deque, [1], deque([1])),
            (Dict[str, Tone], {"a": "warm"}, {"a": Tone.WARM}),
            (Dict[Tone, int], {"warm": 1}, {Tone.WARM: 1}),
            (Dict[int, str], {"3": "x"}, {3: "x"}),
            (Period, {"start": "2024-01-01"}, Period(datetime.date(2024, 1, 1))),
            (List[Period], [{"start": "2024-01-01"}], [Period(datetime.date(2024, 1, 1))]),
            (Tree, {"tone": "warm", "children": [{"tone": "cold"}]}, Tree(Tone.WARM, [Tree(Tone.COLD)])),
            (Trip, {"day": "2024-01-01", "city": "x"}, {"day": datetime.date(2024, 1, 1), "city": "x"}),
            (City, "Berlin", "Berlin"),
        ]:
            with self.subTest(annotation, value=value):
                found = read(annotation, value)
                self.assertEqual(found, expected)
                self.assertIs(type(found), type(expected) if annotation is not City else City)

    def test_of_a_union_the_first_that_fits_counts(self) -> None:
        payment = Union[Cash, Card]
        self.assertEqual(read(payment, {"kind": "card", "no": "1"}), Card("card", "1"))
        self.assertEqual(read(payment, {"kind": "cash", "amount": 2}), Cash("cash", 2))
        self.assertEqual(read(Union[datetime.date, str], "2024-01-01"), datetime.date(2024, 1, 1))
        self.assertEqual(read(Union[datetime.date, str], "soon"), "soon")
        self.assertEqual(read(Union[List[Tone], Tone, None], ["warm"]), [Tone.WARM])
        self.assertEqual(read(Union[bool, int, Tone], True), True)
        self.assertEqual(read(Union[Tone, int], 7), 7)
        self.assertEqual(read(Union[Trip, Tone], {"day": "2024-01-01", "city": "x"})["day"].year, 2024)

    def test_what_does_not_fit_says_where_and_what_was_expected(self) -> None:
        for annotation, value, path, expected in [
            (datetime.date, "soon", "", "a date such as 2024-12-31"),
            (datetime.date, 3, "", "a date"),
            (Tone, "loud", "", "one of warm, cold"),
            (Tone, [], "", "one of warm, cold"),
            (List[Tone], ["warm", "loud"], "/1", "one of"),
            (List[Tone], "warm", "", "a list"),
            (Dict[str, Tone], {"a": "loud"}, "/a", "one of"),
            (Dict[Tone, int], {"loud": 1}, "/loud", "one of"),
            (Dict[int, str], {"x": "y"}, "/x", "a key that is an integer"),
            (Tuple[int, Tone], [1], "", "2 items"),
            (Tuple[int, Tone], [1, "loud"], "/1", "one of"),
            (Period, {"start": "2024-02-01", "end": "2024-01-01"}, "", "the end is before the start"),
            (Period, {}, "", "start is missing"),
            (Period, {"start": "2024-02-01", "stop": 1}, "", "only the keys end, start"),
            (Period, "2024", "", "an object"),
            (Tree, {"tone": "warm", "children": [{"tone": "loud"}]}, "/children/0/tone", "one of"),
            (Union[Cash, Card], {"kind": "card", "no": 1}, "/no", "text"),
            (City, "berlin", "", "a capital letter"),
        ]:
            with self.subTest(annotation, value=value):
                with self.assertRaises(Unfit) as raised:
                    read(annotation, value)
                self.assertEqual(raised.exception.path, path)
                self.assertIn(expected, raised.exception.expected)


class Handlers(unittest.TestCase):
    def test_a_handler_gets_what_it_declares_under_the_names_it_has(self) -> None:
        plugin = Plugin("test")
        seen: List[Any] = []

        @plugin.operation
        def book(period: Period, *, class_: Annotated[Tone, Param(name="class")] = Tone.COLD, **more: Tone) -> None:
            seen.append((period, class_, more))

        with Host(plugin) as host:
            start = {"start": "2024-01-01"}
            host.call("book", {"period": start, "class": "warm", "extra": "cold"}).data
            host.call("book", period=start).data
            period = Period(datetime.date(2024, 1, 1))
            self.assertEqual(seen, [(period, Tone.WARM, {"extra": Tone.COLD}), (period, Tone.COLD, {})])
            error = host.call("book", {"period": start, "class": "loud"}).error
            self.assertEqual(
                (error.code, error.message), (-32602, "the arguments do not fit: /class: expected one of warm, cold")
            )

    def test_arguments_that_do_not_fit_the_signature_are_named(self) -> None:
        plugin = Plugin("test")

        @plugin.operation
        def greet(name: str) -> str:
            return name

        with support.InMemory(plugin) as partner:
            partner.send(support.call("greet", 1, nmae="Ada"))
            error = partner.receive()["error"]
            self.assertEqual(error["message"], "the arguments do not fit: name is missing; nmae is not known")

    def test_keys_that_nobody_declared_are_refused_as_a_host_does(self) -> None:
        plugin = Plugin("test")
        plugin.operation(name="none")(lambda: "ran")
        plugin.operation(name="open", input_schema={"type": "object"})(lambda **others: "ran")

        @plugin.operation
        def greet(name: str, times: int = 1) -> str:
            return name

        self.assertIs(plugin.manifest()["operations"][0]["input_schema"]["additionalProperties"], False)
        with Host(plugin) as host:
            for operation, told in [
                ("none", "the arguments do not fit none: nmae: expected no arguments"),
                (
                    "greet",
                    "the arguments do not fit greet: nmae: expected only the keys name, times; did you mean name?",
                ),
            ]:
                error = host.call(operation, nmae="Ada").error
                self.assertEqual((error.code, error.name, error.message), (2001, "invalid_arguments", told))
            self.assertEqual((host.call("open", nmae=1).data, host.call("none").data), ("ran", "ran"))


if __name__ == "__main__":
    unittest.main()
