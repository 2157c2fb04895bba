"""Annotations become the schemas that an author would have written by hand."""

from __future__ import annotations

import datetime
import decimal
import enum
import pathlib
import sys
import types
import unittest
import uuid
from dataclasses import dataclass, field
from typing import (
    Annotated,
    Any,
    Dict,
    Generic,
    List,
    Literal,
    Mapping,
    NamedTuple,
    NewType,
    Optional,
    Sequence,
    Set,
    Tuple,
    TypedDict,
    TypeVar,
    Union,
)

import support  # noqa: F401
from plugd_sdk import Context, Param, Plugin, Reply
from plugd_sdk.scalars import TIME_PATTERN

T = TypeVar("T")


class Tone(enum.Enum):
    WARM = "warm"
    COLD = "cold"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Address:
    """Where somebody lives.

    Attributes:
        street: With its number.
    """

    street: str
    city: Annotated[str, "The city."] = "Berlin"
    tags: List[str] = field(default_factory=list)
    found: Optional[datetime.date] = field(default=None, init=False)


@dataclass
class Tree:
    name: str
    children: List[Tree] = field(default_factory=list)


class Base(TypedDict):
    name: str


class Options(Base, total=False):
    """How.

    Args:
        depth: How deep.
    """

    depth: int
    tree: Tree


class Point(NamedTuple):
    x: int
    y: float


@dataclass
class Page(Generic[T]):
    items: List[T]
    more: bool


TicketId = NewType("TicketId", str)


class Lock:
    """Nothing that JSON has."""


class City(str):
    """A name with a check of its own."""


#: Where annotations are text, the class itself does not know which of its members are marked.
MARKED = """
from __future__ import annotations
from typing import Annotated, NotRequired, Required, TypedDict

class Marked(TypedDict):
    a: int
    b: NotRequired[int]

class Loose(TypedDict, total=False):
    a: Required[Annotated[int, "A."]]
    b: int
"""


def schema_of(annotation: Any, default: Any = None) -> Dict[str, Any]:
    """The schema of one parameter of that type."""

    def handler(value: Any) -> None:
        pass

    handler.__annotations__ = {"value": annotation}
    if default is not None:
        handler.__defaults__ = (default,)
    plugin = Plugin("test")
    plugin.operation(handler)
    return dict(plugin.manifest()["operations"][0]["input_schema"]["properties"]["value"])


def output_of(annotation: Any) -> Any:
    """The output schema of a handler that returns that type."""

    def handler() -> None:
        pass

    handler.__annotations__ = {"return": annotation}
    plugin = Plugin("test")
    plugin.operation(handler)
    return plugin.manifest()["operations"][0].get("output_schema")


def faults_of(annotation: Any) -> str:
    """What is wrong with a parameter of that type."""
    try:
        schema_of(annotation)
    except ValueError as error:
        return str(error)
    raise AssertionError(f"{annotation} was taken")


class Schemas(unittest.TestCase):
    maxDiff = None

    def test_plain_types(self) -> None:
        for annotation, expected in [
            (str, {"type": "string"}),
            (int, {"type": "integer"}),
            (float, {"type": "number"}),
            (bool, {"type": "boolean"}),
            (None, {"type": "null"}),
            (Any, {}),
            (object, {}),
            (datetime.datetime, {"type": "string", "format": "date-time"}),
            (datetime.date, {"type": "string", "format": "date"}),
            (datetime.time, {"type": "string", "pattern": TIME_PATTERN}),
            (uuid.UUID, {"type": "string", "format": "uuid"}),
            (pathlib.Path, {"type": "string"}),
            (decimal.Decimal, {"type": "number"}),
            (TicketId, {"type": "string"}),
            (City, {"type": "string"}),
            (T, {}),
        ]:
            with self.subTest(annotation):
                self.assertEqual(schema_of(annotation), expected)

    def test_collections(self) -> None:
        for annotation, expected in [
            (list, {"type": "array"}),
            (List[int], {"type": "array", "items": {"type": "integer"}}),
            ("list[int]", {"type": "array", "items": {"type": "integer"}}),
            (Sequence[str], {"type": "array", "items": {"type": "string"}}),
            (Set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
            (Tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
            (
                Tuple[int, str],
                {
                    "type": "array",
                    "prefixItems": [{"type": "integer"}, {"type": "string"}],
                    "minItems": 2,
                    "maxItems": 2,
                },
            ),
            (
                Point,
                {
                    "type": "array",
                    "prefixItems": [{"type": "integer"}, {"type": "number"}],
                    "minItems": 2,
                    "maxItems": 2,
                },
            ),
            (dict, {"type": "object"}),
            (Dict[str, Any], {"type": "object"}),
            (Dict[int, Any], {"type": "object"}),
            (
                Dict[Tone, Any],
                {"type": "object", "propertyNames": {"enum": ["warm", "cold"]}, "additionalProperties": True},
            ),
            (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        ]:
            with self.subTest(annotation):
                self.assertEqual(schema_of(annotation), expected)

    def test_choices(self) -> None:
        for annotation, expected in [
            (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
            (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
            (Literal["a", 1], {"enum": ["a", 1]}),
            (Tone, {"type": "string", "enum": ["warm", "cold"]}),
            (Level, {"type": "integer", "enum": [1, 2]}),
            (Literal[Tone.WARM], {"type": "string", "enum": ["warm"]}),
        ]:
            with self.subTest(annotation):
                self.assertEqual(schema_of(annotation), expected)

    def test_unions(self) -> None:
        for annotation, expected in [
            (Optional[str], {"type": ["string", "null"]}),
            (Optional[Tone], {"type": ["string", "null"], "enum": ["warm", "cold", None]}),
            (Optional[List[int]], {"type": ["array", "null"], "items": {"type": "integer"}}),
            (Union[int, str], {"type": ["integer", "string"]}),
            (Union[int, float], {"type": "number"}),
            (Union[int, Any], {}),
            (
                Union[datetime.date, List[int]],
                {"anyOf": [{"type": "string", "format": "date"}, {"type": "array", "items": {"type": "integer"}}]},
            ),
        ]:
            with self.subTest(annotation):
                self.assertEqual(schema_of(annotation), expected)
        if sys.version_info >= (3, 10):
            self.assertEqual(schema_of(eval("int | None")), {"type": ["integer", "null"]})
            self.assertEqual(schema_of("int | None"), {"type": ["integer", "null"]})

    def test_what_is_said_of_a_parameter(self) -> None:
        for annotation, expected in [
            (Annotated[str, "Who."], {"type": "string", "description": "Who."}),
            (Annotated[int, Param("How often.", minimum=0, maximum=9)],
             {"type": "integer", "minimum": 0, "maximum": 9, "description": "How often."}),
            (Annotated[str, Param(min_length=1, max_length=8, pattern="^a", format="email", examples=["a@b"])],
             {"type": "string", "pattern": "^a", "format": "email", "minLength": 1, "maxLength": 8, "examples": ["a@b"]}),
            (Annotated[List[int], Param(min_length=1)],
             {"type": "array", "items": {"type": "integer"}, "minItems": 1}),
            (Annotated[Dict[str, int], Param(max_length=3)],
             {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 3}),
            (Optional[Annotated[float, Param(exclusive_minimum=0, examples=[1])]],
             {"type": ["number", "null"], "exclusiveMinimum": 0, "examples": [1]}),
            (Annotated[str, Param(sensitive=True)], {"type": "string", "x-sensitive": True}),
            (Annotated[int, Param(multiple_of=5, schema={"deprecated": True})],
             {"type": "integer", "multipleOf": 5, "deprecated": True}),
            (Annotated[datetime.time, Param(format="time")], {"type": "string", "format": "time"}),
        ]:  # fmt: skip
            with self.subTest(annotation):
                self.assertEqual(schema_of(annotation), expected)

    def test_words_of_annotated_types_are_understood(self) -> None:
        class Ge:
            ge = 3

        class Length:
            min_length, max_length = 2, 4

        self.assertEqual(schema_of(Annotated[int, Ge()]), {"type": "integer", "minimum": 3})
        self.assertEqual(schema_of(Annotated[str, Length()]), {"type": "string", "minLength": 2, "maxLength": 4})

    def test_defaults(self) -> None:
        for annotation, default, expected in [
            (int, 3, {"type": "integer", "default": 3}),
            (Tone, Tone.COLD, {"type": "string", "enum": ["warm", "cold"], "default": "cold"}),
            (datetime.date, datetime.date(2024, 2, 1), {"type": "string", "format": "date", "default": "2024-02-01"}),
            (Any, object(), {}),
        ]:
            with self.subTest(annotation):
                self.assertEqual(schema_of(annotation, default), expected)

        def handler(a: str, b: Optional[str] = None, *, c: int = 0) -> None:
            pass

        plugin = Plugin("test")
        plugin.operation(handler)
        schema = plugin.manifest()["operations"][0]["input_schema"]
        self.assertEqual(
            schema,
            {
                "type": "object",
                "properties": {
                    "a": {"type": "string"},
                    "b": {"type": ["string", "null"]},
                    "c": {"type": "integer", "default": 0},
                },
                "required": ["a"],
            },
        )

    def test_dataclasses(self) -> None:
        street = {"type": "string", "description": "With its number."}
        city = {"type": "string", "description": "The city."}
        tags = {"type": "array", "items": {"type": "string"}}
        self.assertEqual(
            schema_of(Address),
            {
                "type": "object",
                "description": "Where somebody lives.",
                "properties": {
                    "street": street,
                    "city": {**city, "default": "Berlin"},
                    "tags": {**tags, "default": []},
                },
                "required": ["street"],
            },
        )
        # What is written has all of its members, and no defaults.
        self.assertEqual(
            output_of(Address),
            {
                "type": "object",
                "description": "Where somebody lives.",
                "properties": {
                    "street": street,
                    "city": city,
                    "tags": tags,
                    "found": {"type": ["string", "null"], "format": "date"},
                },
                "required": ["street", "city", "tags", "found"],
            },
        )

    def test_a_type_that_holds_itself_has_a_name(self) -> None:
        tree = {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
            },
            "required": ["name", "children"],
        }
        self.assertEqual(output_of(Tree), {**tree, "$defs": {"Tree": tree}})
        self.assertEqual(
            output_of(Tuple[Tree, Tree]),
            {
                "type": "array",
                "prefixItems": [{"$ref": "#/$defs/Tree"}, {"$ref": "#/$defs/Tree"}],
                "minItems": 2,
                "maxItems": 2,
                "$defs": {"Tree": tree},
            },
        )

    def test_typed_dictionaries(self) -> None:
        schema = schema_of(Options)
        self.assertEqual(list(schema["properties"]), ["name", "depth", "tree"])
        self.assertEqual(schema["properties"]["depth"], {"type": "integer", "description": "How deep."})
        self.assertEqual((schema["required"], schema["description"]), (["name"], "How."))

    @unittest.skipIf(sys.version_info < (3, 11), "typing has no NotRequired before Python 3.11")
    def test_markers_of_typed_dictionaries(self) -> None:
        module = types.ModuleType("marked")
        exec(MARKED, vars(module))
        sys.modules["marked"] = module
        try:
            self.assertEqual(schema_of(module.Marked)["required"], ["a"])
            loose = schema_of(module.Loose)
        finally:
            del sys.modules["marked"]
        self.assertEqual(loose["required"], ["a"])
        self.assertEqual(loose["properties"]["a"], {"type": "integer", "description": "A."})

    def test_generic_classes(self) -> None:
        schema = output_of(Reply[Page[Tone]])
        tone = {"type": "string", "enum": ["warm", "cold"]}
        self.assertEqual(schema["properties"]["items"], {"type": "array", "items": tone})
        self.assertEqual(output_of(Page[int])["properties"]["items"]["items"], {"type": "integer"})

    @unittest.skipIf(sys.version_info < (3, 12), "there are no type statements before Python 3.12")
    def test_type_statements(self) -> None:
        namespace: Dict[str, Any] = {}
        exec("type Json = dict[str, Json] | list[Json] | str\ntype Id = int", namespace)
        self.assertEqual(schema_of(namespace["Id"]), {"type": "integer"})
        schema = output_of(namespace["Json"])
        self.assertEqual(schema["anyOf"][0]["additionalProperties"], {"$ref": "#/$defs/Json"})
        self.assertEqual(list(schema["$defs"]), ["Json"])

    def test_what_is_returned(self) -> None:
        for annotation, expected in [
            (None, None),
            (Any, None),
            (Reply, None),
            (Reply[str], {"type": "string"}),
            (Reply[Any], None),
            (List[Tone], {"type": "array", "items": {"type": "string", "enum": ["warm", "cold"]}}),
        ]:
            with self.subTest(annotation):
                self.assertEqual(output_of(annotation), expected)

    def test_names_that_python_cannot_say(self) -> None:
        def handler(class_: Annotated[str, Param(name="class")], **more: int) -> None:
            pass

        plugin = Plugin("test")
        plugin.operation(handler)
        self.assertEqual(
            plugin.manifest()["operations"][0]["input_schema"],
            {
                "type": "object",
                "properties": {"class": {"type": "string"}},
                "required": ["class"],
                "additionalProperties": {"type": "integer"},
            },
        )

    def test_names_of_the_function_around_are_known(self) -> None:
        @dataclass
        class Inner:
            size: int

        plugin = Plugin("test")

        @plugin.operation
        def measure(inner: Inner, ctx: Context) -> Inner:
            return inner

        operation = plugin.manifest()["operations"][0]
        size = {"size": {"type": "integer"}}
        self.assertEqual(operation["input_schema"]["properties"]["inner"]["properties"], size)
        self.assertEqual(operation["output_schema"]["properties"], size)

    def test_what_has_no_form_is_told_with_advice(self) -> None:
        for annotation, parts in [
            (bytes, ["value", "bytes", "base64"]),
            (datetime.timedelta, ["timedelta", "seconds"]),
            (Dict[float, str], ["keys", "dict[str"]),
            (List[Lock], ["make it a dataclass"]),
            (Optional[Context], ["Context", "parameter of its own"]),
            ("Nowhere", ["Nowhere"]),
        ]:
            with self.subTest(annotation):
                told = faults_of(annotation)
                for part in parts:
                    self.assertIn(part, told)


if __name__ == "__main__":
    unittest.main()
